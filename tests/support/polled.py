"""Tables that are read by queries, on real databases, and what the records say they are."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.mysql.source import check_readable_table
from joins.adapters.polled.feed import PolledSession
from joins.adapters.polled.table import PolledConfig
from joins.adapters.process.sessions import SourceProtocol
from joins.plan.plan import Field, KafkaOptions
from service.embedded.database import MariaDb
from service.embedded.postgres import PostgreSql
from tests.support.debezium import run_postgres
from tests.support.feeds import PARTITIONS, BatchTopic
from tests.support.sql import new_schema, run_sql
from tests.support.topics import unique_name

NEVER_MS = 10**12
READER, READER_PASSWORD = "reader", "only-reads"


@dataclass
class Told(SourceProtocol):
    """A protocol that keeps its events."""

    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        self.events.append((event, value))

    def proofs(self) -> list[Mapping[str, Any]]:
        return [value for event, value in self.events if event == "fresh"]


@dataclass
class PolledTable:
    """A table `t` in a schema for one test; `run` runs statements as its owner."""

    run: Callable[..., Any]
    connection: MysqlConnectionConfig
    is_postgres: bool
    directory: Path
    topic: BatchTopic = field(default_factory=BatchTopic)
    told: Told = field(default_factory=Told)

    def config(self, fields: tuple[Field, ...], **changes: Any) -> PolledConfig:
        captured = None
        if not self.is_postgres:
            captured = check_readable_table(self.connection, fields, ("id",))
        config = PolledConfig(
            connection=self.connection,
            captured=captured,
            fields=fields,
            primary_key=("id",),
            kafka=KafkaOptions("nowhere:9092", "topic"),
            partitions=PARTITIONS,
            state_file=self.directory / "t.json",
            refresh_ms=NEVER_MS,
            column=None,
            whole_refresh_ms=NEVER_MS,
        )
        return replace(config, **changes)

    def session(self, config: PolledConfig) -> PolledSession:
        return PolledSession(config, self.told)

    def sent(self, session: PolledSession) -> PolledSession:
        """Everything is sent that there is to send now."""
        while session.step(self.topic):
            pass
        return session

    def read(self, session: PolledSession) -> PolledSession:
        """One more read, and its changes sent."""
        self.sent(session).read(self.topic)
        return self.sent(session)

    def rows(self) -> list[dict[str, Any]]:
        rows = self.topic.topic.copy().rows
        return [rows[key] for key in sorted(rows)]


@contextmanager
def postgres_table(
    postgres: PostgreSql, directory: Path, *statements: str
) -> Iterator[PolledTable]:
    """`statements` run with the schema as the search path."""
    schema = unique_name("shop")
    path = f"SET search_path TO {schema}"
    run_postgres(postgres, f"CREATE SCHEMA {schema}")
    config = MysqlConnectionConfig(
        "127.0.0.1", postgres.port, "cdc", postgres.cdc_password, "postgres", f"{schema}.t"
    )

    def run(*more: str) -> Any:
        return run_postgres(postgres, path, *more)

    try:
        run(*statements)
        yield PolledTable(run, config, True, directory)
    finally:
        run_postgres(postgres, f"DROP SCHEMA {schema} CASCADE")


@contextmanager
def mariadb_table(mariadb: MariaDb, directory: Path, *statements: str) -> Iterator[PolledTable]:
    """Its reader has SELECT and nothing else."""
    with new_schema(mariadb, *statements) as schema:
        user = f"{READER}@'127.0.0.1'"
        run_sql(
            mariadb,
            f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{READER_PASSWORD}'",
            f"GRANT SELECT ON `{schema}`.* TO {user}",
        )
        config = MysqlConnectionConfig(
            "127.0.0.1", mariadb.port, READER, READER_PASSWORD, schema, "t"
        )

        def run(*more: str) -> Any:
            return run_sql(mariadb, *more, schema=schema)

        yield PolledTable(run, config, False, directory)
