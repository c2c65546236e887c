"""What benchmarks join: clicks of a topic with users of a table, who may change meanwhile."""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Protocol

import pyarrow as pa
from deltalake import write_deltalake

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.bench.place import Place
from tests.support.beside import RunsBeside
from tests.support.bulk import BulkProducer
from tests.support.rig import Rig, cdc_table, kafka_table
from tests.support.sql import new_schema
from tests.support.topics import create_topic, end_offsets
from tests.support.wait import wait_until

PARTITIONS = 4
CLICKS = "user_id BIGINT, item_id BIGINT, sent_ms BIGINT"
_USERS = (
    "CREATE TABLE user_info (user_id BIGINT PRIMARY KEY, gender VARCHAR(8), name VARCHAR(64), "
    "changed_ms BIGINT)"
)
USERS_DDL = (
    "user_id BIGINT, gender STRING, name STRING, changed_ms BIGINT, "
    "PRIMARY KEY (user_id) NOT ENFORCED"
)
_CHUNK = 10_000
_ABSENT_EVERY = 100
_FILES = 4


def now_ms() -> int:
    """Wall clock, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


# The table
# --------------------------------------------------------------------------------------------------


class UserTable(Protocol):
    """Users 1 to `rows`, as a job reads them."""

    rows: int

    def declared(self) -> str:
        """The DDL of `user_info`."""

    def changes(self, per_second: int = 1_000) -> "Paced":
        """Changes of users for as long as the block lasts; each says when it was made."""


@dataclass(frozen=True, slots=True)
class DatabaseUsers:
    """Users in a database, read by `mysql-cdc` with these `options`."""

    mariadb: MariaDb
    schema: str
    rows: int
    options: tuple[str, ...] = ()

    def declared(self) -> str:
        return cdc_table(self.mariadb, self.schema, "user_info", USERS_DDL, self.options)

    def changes(self, per_second: int = 1_000) -> "DatabaseChanges":
        return DatabaseChanges(self, per_second)


@contextmanager
def users(mariadb: MariaDb, rows: int) -> Iterator[DatabaseUsers]:
    fill = (
        "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M'), CONCAT('user ', seq), NULL "
        f"FROM seq_1_to_{rows}"
    )
    with new_schema(mariadb, "SET sql_log_bin = 0", _USERS, fill) as schema:
        yield DatabaseUsers(mariadb, schema, rows)


def users_in_delta(place: Place, rows: int) -> str:
    """The same users as a Delta table, for the reference; as many files as it has tasks."""
    path = str(place.new("users"))
    step = -(-rows // _FILES)
    for first in range(1, rows + 1, step):
        ids = range(first, min(first + step, rows + 1))
        genders = ["F" if user % 2 else "M" for user in ids]
        columns = {
            "user_id": pa.array(ids, pa.int64()),
            "gender": pa.array(genders, pa.string()),
            "name": pa.array([f"user {user}" for user in ids], pa.string()),
            "changed_ms": pa.nulls(len(ids), pa.int64()),
        }
        write_deltalake(path, pa.table(columns), mode="append")
    return path


# The stream
# --------------------------------------------------------------------------------------------------


def clicks_of(dim: int) -> Callable[[range], list[bytes]]:
    """Clicks by their item's number: users in no order, each hundredth is not in the table."""

    at = now_ms()

    def click(items: range) -> list[bytes]:
        return [
            b'{"user_id":%d,"item_id":%d,"sent_ms":%d}'
            % (dim + 1 + i if i % _ABSENT_EVERY == 0 else 1 + i * 7919 % dim, i, at + i)
            for i in items
        ]

    return click


class Stream:
    """A topic that records are appended to."""

    def __init__(
        self,
        kafka: KafkaBroker,
        config: dict[str, str] | None = None,
        *,
        partitions: int = PARTITIONS,
    ) -> None:
        servers = kafka.bootstrap_servers
        self.topic = create_topic(servers, partitions=partitions, config=config)
        wait_until(lambda: len(end_offsets(servers, self.topic)) == partitions, what="leaders")
        self._servers = servers
        self.ends = dict.fromkeys(range(partitions), 0)

    @property
    def sent(self) -> int:
        return sum(self.ends.values())

    def append(
        self, records: int, values: Callable[[range], Sequence[bytes]], *, at_once: int = _CHUNK
    ) -> dict[int, int]:
        """Append `records` made by `values`, so many a request, which the broker must take.

        Returns:
            The offsets at which they begin.
        """
        before, first = dict(self.ends), self.sent
        with BulkProducer(self._servers, self.topic) as producer:
            for start in range(first, first + records, at_once):
                self.send(producer, values(range(start, min(start + at_once, first + records))))
        return before

    def send(self, producer: BulkProducer, values: Sequence[bytes]) -> None:
        """Spread `values` over all partitions, in one request."""
        count = len(self.ends)
        parts = {p: values[p::count] for p in range(count)}
        producer.send(parts)
        for partition, part in parts.items():
            self.ends[partition] += len(part)

    def producer(self) -> BulkProducer:
        return BulkProducer(self._servers, self.topic)


# What goes on meanwhile
# --------------------------------------------------------------------------------------------------


class Paced(RunsBeside):
    """Does so many things a second in a thread of its own, until the block ends."""

    _TICKS_PER_S = 50

    def __init__(self, per_second: int) -> None:
        self._each = max(1, per_second // self._TICKS_PER_S)
        self.made = 0

    def make(self, count: int) -> None:
        """Make so many as fast as they are taken."""
        with self._ready() as change:
            while self.made < count:
                change(self._each)
                self.made += self._each

    @abstractmethod
    def _ready(self) -> AbstractContextManager[Callable[[int], None]]:
        """What is called each tick with how many to make."""

    def _run(self, ended: Event) -> None:
        with self._ready() as make:
            due = time.monotonic()
            while not ended.wait(max(0.0, due - time.monotonic())):
                make(self._each)
                self.made += self._each
                due += 1 / self._TICKS_PER_S


class DatabaseChanges(Paced):
    """Changes users, several in a transaction; each says when it was made."""

    def __init__(self, table: DatabaseUsers, per_second: int) -> None:
        super().__init__(per_second)
        self._table = table

    @contextmanager
    def _ready(self) -> Iterator[Callable[[int], None]]:
        statement = (
            "INSERT INTO user_info (user_id, gender, name, changed_ms) VALUES (%s, %s, %s, %s) "
            "ON DUPLICATE KEY UPDATE name = VALUES(name), changed_ms = VALUES(changed_ms)"
        )
        table = self._table
        with table.mariadb.connect(table.schema) as link, link.cursor() as cursor:

            def change(count: int) -> None:
                at = now_ms()
                numbers = range(self.made, self.made + count)
                rows = [(1 + n * 104_729 % table.rows, "F", f"name {n}", at) for n in numbers]
                cursor.executemany(statement, rows)

            yield change


class Clicks(Paced):
    """Appends clicks to a stream; each says when it was sent."""

    def __init__(self, stream: Stream, dim: int, per_second: int = 1_000) -> None:
        super().__init__(per_second)
        self._stream, self._dim = stream, dim

    @contextmanager
    def _ready(self) -> Iterator[Callable[[int], None]]:
        with self._stream.producer() as producer:

            def click(count: int) -> None:
                at, first = now_ms(), self._stream.sent
                values = [
                    b'{"user_id":%d,"item_id":%d,"sent_ms":%d}' % (1 + n * 7919 % self._dim, n, at)
                    for n in range(first, first + count)
                ]
                self._stream.send(producer, values)

            yield click


# The job
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Output:
    """Where the rows go, and which columns of the stream they begin with.

    Attributes:
        options: of the sink's connector.
    """

    options: str
    columns: str = CLICKS


BLACKHOLE = Output("'connector'='blackhole'")


def delta_output(path: str, columns: str = CLICKS) -> Output:
    return Output(f"'connector'='delta', 'path'='{path}'", columns)


def kafka_output(kafka: KafkaBroker, topic: str) -> Output:
    return Output(
        f"'connector'='kafka', 'topic'='{topic}', 'format'='json', "
        f"'properties.bootstrap.servers'='{kafka.bootstrap_servers}'"
    )


def join_sql(
    rig: Rig, table: UserTable, topic: str, output: Output, options: tuple[str, ...] = ()
) -> str:
    names = ", ".join(f"c.{column.split()[0]}" for column in output.columns.split(", "))
    clicks = f"{output.columns}, proctime AS PROCTIME()"
    return (
        table.declared()
        + kafka_table(rig.kafka, "click_event", topic, clicks, options)
        + f"CREATE TABLE enriched ({output.columns}, gender STRING, name STRING) "
        f"WITH ({output.options});"
        f"INSERT INTO enriched SELECT {names}, u.gender, u.name "
        "FROM click_event AS c LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u "
        "ON c.user_id = u.user_id;"
    )
