"""Configuration and durable state of the process of a `jdbc` dimension, and its table as it is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.table import CapturedTable
from joins.kernels.changelog.envelope import BinlogPosition, now_ms
from joins.plan.plan import Field, KafkaOptions

Take = Callable[[pa.RecordBatch], None]


@dataclass(frozen=True, slots=True)
class PolledConfig:
    """Configuration of the process; `kafka` has the changelog topic.

    `captured` is a table of MySQL or MariaDB; without it the database is PostgreSQL.
    """

    connection: MysqlConnectionConfig
    captured: CapturedTable | None
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    kafka: KafkaOptions
    partitions: int
    state_file: Path
    refresh_ms: int
    column: str | None
    whole_refresh_ms: int


@dataclass(frozen=True, slots=True)
class PolledState:
    """Durable state; Kafka has acknowledged all changes of the reads up to `sent`.

    The changes of read `done` are in a file beside it, whole, before any of them is sent: a
    process that ends amid them sends the same ones again.
    """

    generation: int
    done: int = 0  # number of reads that are complete
    sent: int = 0  # `done`, or the one before
    rows: int = 0  # in the table by read `done`
    started_ms: int = 0  # when read `done` began
    whole_ms: int = 0  # when the newest read of all rows began
    clock_ms: int = 0  # the database's time then
    greatest: str | None = None  # value of the column that grows, as the database writes it
    needed: str | None = None  # why a new copy is needed, else None

    @property
    def is_copied(self) -> bool:
        return self.sent > 0 and self.needed is None

    def place(self, read: int) -> BinlogPosition:
        """The copy has the place 1, and the changes of each later read its number."""
        return BinlogPosition(self.generation - 1, read, 0)


class OpenTable(Protocol):
    """A table in one transaction of its database."""

    def clock_ms(self) -> int:
        """The database's time."""

    def read(self, since: tuple[str, str] | None, take: Take) -> None:
        """Hand over the rows of one moment, now or later, as wire columns.

        With `since`, a declared column and a value as text, those with no smaller one.
        """


def is_due(config: PolledConfig, state: PolledState) -> bool:
    """True if it is time for the next read; a clock that went back makes none late."""
    since_ms = now_ms() - state.started_ms
    return state.done == 0 or not 0 <= since_ms < config.refresh_ms


def is_whole_due(config: PolledConfig, state: PolledState) -> bool:
    if state.done == 0 or config.column is None or state.greatest is None:
        return True
    return not 0 <= now_ms() - state.whole_ms < config.whole_refresh_ms
