"""Tables that a real Debezium captures, as dimensions: every type, and every kind of snapshot."""

import datetime
import re
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psutil
import pytest

from service.embedded.connect import KafkaConnect
from service.embedded.postgres import PostgreSql
from tests.golden import mariadb_tables, postgres_tables
from tests.golden.columns import Column, Table
from tests.support.debezium import DebeziumConnector, Setting, mariadb_source, postgres_source
from tests.support.rig import Rig, RunningJob, kafka_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until

MARIADB, POSTGRES = "mariadb", "postgres"
USERS = "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(40))"
FILL = {
    MARIADB: "INSERT INTO users SELECT seq, CONCAT('user ', seq) FROM seq_1_to_{}",
    POSTGRES: "INSERT INTO users SELECT n, 'user ' || n FROM generate_series(1, {}) AS n",
}
ROWS = 4000
SETTLED_WITHIN_S = 180.0  # rows that were read at several times are proven by the settle time alone
PRODUCER = "producer.override."
SLOW = {  # a request for each row, one after the other
    "max.batch.size": "20",
    "max.queue.size": "40",
    f"{PRODUCER}batch.size": "0",
    f"{PRODUCER}max.in.flight.requests.per.connection": "1",
}
QUICK = {
    "max.batch.size": "2048",
    "max.queue.size": "8192",
    "poll.interval.ms": "50",
    f"{PRODUCER}batch.size": "16384",
    f"{PRODUCER}max.in.flight.requests.per.connection": "5",
}
CHUNKED = {"snapshot.max.threads": "3", "snapshot.max.threads.multiplier": "2"}  # of one table
# What a connector writes otherwise than the database has it; tests of golden records say how.
LOST = {
    MARIADB: {"c_enum", "c_uuid"},
    POSTGRES: {"c_inet", "c_money", "c_timetz", "c_timestamptz3"},
}
USERS_COLUMNS = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
SOURCES = {MARIADB: (mariadb_source, mariadb_tables), POSTGRES: (postgres_source, postgres_tables)}


@pytest.fixture(scope="module")
def connect(own_connect: KafkaConnect) -> KafkaConnect:
    return own_connect


@contextmanager
def captured(
    rig: Rig,
    connect: KafkaConnect,
    postgres: PostgreSql,
    kind: str,
    *statements: str,
    **settings: Any,
) -> Iterator[DebeziumConnector]:
    """A connector, not started, of a database of its own."""
    database = {MARIADB: rig.mariadb, POSTGRES: postgres}[kind]
    source, tables = SOURCES[kind]
    prepared = getattr(tables, "PREPARATION", ())
    with source(connect, rig.kafka, database, *prepared, *statements, **settings) as made:
        yield made


def dimension(source: DebeziumConnector, table: str, columns: str) -> str:
    return (
        f"CREATE TABLE {table} ({columns}) WITH ('connector'='kafka', "
        f"'topic'='{source.topic(table)}', 'format'='debezium-json', "
        f"'properties.bootstrap.servers'='{source.kafka.bootstrap_servers}', "
        "'debezium-json.bigint.unsigned.handling.mode'='long', "
        f"'snapshot.notifications.topic'='{source.notification_topic}');"
    )


def enriched(rig: Rig, source: DebeziumConnector, clicks: str, path: str) -> str:
    return (
        dimension(source, "users", USERS_COLUMNS)
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + "CREATE TABLE enriched (item_id BIGINT, user_id BIGINT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, c.user_id, u.name FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id;"
    )


def view_of(status: dict[str, Any], name: str = "users") -> dict[str, Any]:
    return next(one for one in status["dimensions"] if one["name"] == name)


class Clicks:
    """Clicks that are sent one after the other, and the names that they were joined with."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.topic = create_topic(rig.kafka.bootstrap_servers)
        self.path = unique_name("debezium")
        self._sent = 0

    def send(self, *users: int) -> None:
        values = [click(user, self._sent + number) for number, user in enumerate(users)]
        produce(self.rig.kafka.bootstrap_servers, self.topic, values)
        self._sent += len(users)

    def names(self, job: RunningJob, *users: int) -> list[str | None]:
        """What clicks of `users`, sent now, are joined with."""
        first = self._sent
        self.send(*users)
        rows = {row["item_id"]: row["name"] for row in job.wait_output(self.path, self._sent)}
        return [rows[first + number] for number in range(len(users))]

    def await_names(self, job: RunningJob, wanted_names: dict[int, str | None]) -> None:
        wait_until(
            lambda: self.names(job, *wanted_names) == list(wanted_names.values()),
            deadline_s=90,
            what=f"names {wanted_names}",
        )


# Every kind of snapshot


@pytest.mark.parametrize(
    ("kind", "threads"),
    [
        pytest.param(MARIADB, {}, marks=pytest.mark.experiment, id=MARIADB),
        pytest.param(POSTGRES, CHUNKED, marks=pytest.mark.experiment, id=f"{POSTGRES}-in-chunks"),
    ],
)
def test_a_table_is_whole_before_the_first_join_whatever_becomes_of_its_connector(
    kind: str, threads: Setting, rig: Rig, connect: KafkaConnect, postgres: PostgreSql
) -> None:
    clicks = Clicks(rig)
    fill, slow = FILL[kind].format(ROWS), {**SLOW, **threads}
    with captured(rig, connect, postgres, kind, USERS, fill, signals=True, settings=slow) as source:
        source.start()
        killed_in_the_middle(source)
        clicks.send(1, ROWS // 2, ROWS, ROWS + 1)
        with rig.job(enriched(rig, source, clicks.topic, clicks.path)) as job:
            source.go_on(QUICK)
            copied_after_all(source, job)
            job.wait_joining()
            rows = {r["user_id"]: r["name"] for r in job.wait_output(clicks.path, 4)}
            assert rows == {
                1: "user 1",
                ROWS // 2: f"user {ROWS // 2}",
                ROWS: f"user {ROWS}",
                ROWS + 1: None,
            }
            changes_are_followed(source, clicks, job)
            an_incremental_snapshot_changes_nothing(source, clicks, job)
            a_blocking_snapshot_is_another_copy(source, clicks, job)
            a_second_snapshot_lacks_what_was_deleted_meanwhile(source, clicks, job)


def killed_in_the_middle(source: DebeziumConnector) -> None:
    """The connector has copied a part of the table, and is gone."""
    servers, topic = source.kafka.bootstrap_servers, source.topic("users")

    def copied() -> int:
        return sum(end_offsets(servers, topic).values())

    wait_until(copied, what="the first rows")
    assert source.connect.pid is not None
    psutil.Process(source.connect.pid).send_signal(signal.SIGKILL)
    wait_until(lambda: not source.connect.running, what="Connect is gone")
    assert 0 < copied() < ROWS


def copied_after_all(source: DebeziumConnector, job: RunningJob) -> None:
    """Killed in chunks, a connector may skip the rest; then it has to take another snapshot."""

    def told() -> str | None:
        kinds = [n["type"] for n in source.notifications()]
        return next((kind for kind in kinds if kind in ("COMPLETED", "SKIPPED")), None)

    if source.wait(told, "the end of a snapshot, or that it is skipped") == "SKIPPED":
        reason = "has skipped the rest of its snapshot"
        wait_until(lambda: reason in (job.status()["reason"] or ""), what="the reason it stalls")
        source.begin_anew()
        source.await_snapshot()


def changes_are_followed(source: DebeziumConnector, clicks: Clicks, job: RunningJob) -> None:
    source.sql(
        "UPDATE users SET name = 'Ada' WHERE id = 1",
        f"UPDATE users SET id = {ROWS + 1} WHERE id = {ROWS}",
        "DELETE FROM users WHERE id = 2",
    )
    clicks.await_names(job, {1: "Ada", ROWS: None, ROWS + 1: f"user {ROWS}", 2: None, 3: "user 3"})


def an_incremental_snapshot_changes_nothing(
    source: DebeziumConnector, clicks: Clicks, job: RunningJob
) -> None:
    generation = view_of(job.status())["generation"]
    source.snapshot_again("again", "incremental", "users")
    source.await_notification("Incremental Snapshot", "COMPLETED")
    source.sql("INSERT INTO users VALUES (9999, 'behind it')")
    clicks.await_names(job, {9999: "behind it", 1: "Ada", 2: None, 3: "user 3"})
    assert view_of(job.status())["generation"] == generation


def a_blocking_snapshot_is_another_copy(
    source: DebeziumConnector, clicks: Clicks, job: RunningJob
) -> None:
    generation = view_of(job.status())["generation"]
    source.snapshot_again("blocking", "blocking", "users")
    job.wait_for(
        lambda s: view_of(s)["generation"] == generation + 1 and view_of(s)["evidence"],
        "the blocking one is proven",
        deadline_s=SETTLED_WITHIN_S,
    )
    source.sql("UPDATE users SET name = 'behind' WHERE id = 5")
    clicks.await_names(job, {5: "behind", 1: "Ada", 2: None, 3: "user 3", 9999: "behind it"})


def a_second_snapshot_lacks_what_was_deleted_meanwhile(
    source: DebeziumConnector, clicks: Clicks, job: RunningJob
) -> None:
    generation = view_of(job.status())["generation"]
    connectors = source.connect.connectors
    source.begin_anew("DELETE FROM users WHERE id = 3", "UPDATE users SET name = 'A' WHERE id = 1")
    assert connectors.failure(source.prefix) is None
    clicks.await_names(job, {1: "A", 3: None, 4: "user 4", 2: None, 9999: "behind it"})
    proofs = ("table_scan_completed", "last_snapshot_row")
    status = job.wait_for(lambda s: view_of(s)["evidence"] in proofs, "the second one is proven")
    assert view_of(status)["generation"] == generation + 1


def joins(status: dict[str, Any]) -> bool:
    assert status["state"] != "STALLED", status["reason"]
    return bool(status["state"] == "JOINING")


ROUTER = {
    "type": "org.apache.kafka.connect.transforms.RegexRouter",
    "regex": r".*\.users",
    "replacement": "{}",
}


@pytest.mark.experiment
def test_notifications_count_where_a_transformation_has_renamed_the_topic(
    rig: Rig, connect: KafkaConnect, postgres: PostgreSql
) -> None:
    """Without them the last row would prove one of the two partitions only."""
    clicks, topic = Clicks(rig), unique_name("everybody")
    settings = {f"transforms.route.{name}": text.format(topic) for name, text in ROUTER.items()}
    settings["transforms"] = "route"
    fill = FILL[POSTGRES].format(100)
    with captured(rig, connect, postgres, POSTGRES, USERS, fill, settings=settings) as source:
        source.start()
        source.await_snapshot()
        clicks.send(1, 100, 101)
        sql = enriched(rig, source, clicks.topic, clicks.path)
        sql = sql.replace(source.topic("users"), topic).replace(
            "'snapshot.notifications", "'snapshot.settle-time'='1 h', 'snapshot.notifications"
        )
        with rig.job(sql) as job:
            opened = job.wait_joining()
            assert view_of(opened)["evidence"] in ("last_snapshot_row", "table_scan_completed")
            rows = {r["user_id"]: r["name"] for r in job.wait_output(clicks.path, 3)}
            assert rows == {1: "user 1", 100: "user 100", 101: None}


# Every type


@pytest.mark.parametrize(
    "kind", [pytest.param(MARIADB), pytest.param(POSTGRES, marks=pytest.mark.experiment)]
)
def test_every_type_of_a_column_is_joined_as_the_database_has_it(
    kind: str, rig: Rig, connect: KafkaConnect, postgres: PostgreSql
) -> None:
    (table,) = [one for one in SOURCES[kind][1].TABLES if one.name == "types"]
    columns = [column for column in table.columns if is_joined(column)]
    empty = "CREATE TABLE empty (id BIGINT PRIMARY KEY, name VARCHAR(40))"
    inserts, steps = (
        [of_our_calendar(one) for one in part] for part in (table.inserts(), table.steps)
    )
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("types")
    with captured(rig, connect, postgres, kind, table.ddl(), *inserts, empty) as source:
        create_topic(rig.kafka.bootstrap_servers, source.topic("empty"), partitions=2)
        ids = [1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 10, 33]
        source.start()
        source.await_snapshot()
        source.sql(*steps)
        source.await_records("types", len(inserts) + len(steps) + 3)  # a new key, a tombstone
        produce(rig.kafka.bootstrap_servers, clicks, [click(number, number) for number in ids])
        with rig.job(every_type(rig, source, columns, clicks, path)) as job:
            opened = job.wait_for(joins, "the gate opens")
            assert view_of(opened, "empty")["evidence"] == "table_scan_completed"
            rows = {
                row["item_id"]: {name: row[name] for name in row if name.startswith("c_")}
                for row in job.wait_output(path, len(ids))
            }
        shown = in_database(source, table, columns)
    assert sorted(shown) == [1, 2, 5, 6, 10, 11, 12, 13, 14, 33]
    bits = [column.name for column in columns if has_bits(column) and column.sql != "BOOLEAN"]
    for number in ids:
        assert rows[number].pop("c_empty") is None
        rows[number] |= {name: without_zeros(rows[number][name]) for name in bits}
        assert rows[number] == shown.get(number, dict.fromkeys(rows[number]))


def of_our_calendar(statement: str) -> str:
    return re.sub("'(0001|1000)-01-01", "'1600-01-01", statement)


def is_joined(column: Column) -> bool:
    if column.name in LOST[MARIADB if column.truth.startswith("CAST") else POSTGRES]:
        return False
    return bool(column.sql) and not column.sql.startswith(("ARRAY", "TIME("))


def every_type(
    rig: Rig, source: DebeziumConnector, columns: list[Column], clicks: str, path: str
) -> str:
    fields = ", ".join(f"{c.name} {c.sql}" for c in columns)
    outputs = ", ".join(f"{c.name} {c.sql}" for c in columns[1:])
    selected = ", ".join(f"t.{c.name}" for c in columns[1:])
    return (
        dimension(source, "types", f"{fields}, PRIMARY KEY (id) NOT ENFORCED")
        + dimension(source, "empty", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED")
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE enriched (item_id BIGINT, c_empty STRING, {outputs}) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        f"INSERT INTO enriched SELECT c.item_id, e.name, {selected} FROM click_event AS c "
        "LEFT JOIN types FOR SYSTEM_TIME AS OF c.proctime AS t ON c.user_id = t.id "
        "LEFT JOIN empty FOR SYSTEM_TIME AS OF c.proctime AS e ON c.user_id = e.id;"
    )


def in_database(
    source: DebeziumConnector, table: Table, columns: list[Column]
) -> dict[int, dict[str, Any]]:
    texts = ", ".join(
        c.truth.format(c.name) if has_bits(c) or c.sql == "STRING" else c.name for c in columns
    )
    return {
        row[0]: {c.name: declared(c, v) for c, v in zip(columns[1:], row[1:], strict=True)}
        for row in source.sql(f"SELECT {texts} FROM {table.name}")
    }


def without_zeros(value: Any) -> Any:
    """Little-endian bits; a connector leaves out bytes at their end that are zero."""
    return value.rstrip(b"\0") if isinstance(value, bytes) else value


def has_bits(column: Column) -> bool:
    return column.database_type.startswith(("BIT(", "VARBIT"))


def declared(column: Column, value: Any) -> Any:
    """A driver's value as a value of the declared type."""
    if value is None:
        return None
    of, utc = column.sql, datetime.UTC
    if of == "BOOLEAN":
        return bool(int(value))
    if has_bits(column):
        is_text = column.truth.endswith("::text")
        number, size = (
            (int(value or "0", 2), len(value)) if is_text else (int(value), int(of[7:-1]) * 8)
        )
        return without_zeros(number.to_bytes(-(-size // 8), "little"))
    if of == "FLOAT":
        return struct.unpack("f", struct.pack("f", value))[0]
    if of.startswith("DECIMAL"):
        return Decimal(re.sub("[$,]", "", str(value)))
    if of.startswith("TIMESTAMP_LTZ"):
        return value.replace(tzinfo=utc) if value.tzinfo is None else value.astimezone(utc)
    if of == "STRING":
        return str(value)
    return value
