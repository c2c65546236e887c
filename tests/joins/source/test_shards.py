"""Several tables that match regular expressions are one table, whatever happens to them.

Every case ends with the copy that the changelog topic tells being what `SELECT` gives of all tables
that match.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from joins.adapters.mysql.source import check_source
from joins.durable.requests import Fault, Request, Stalls
from joins.plan.plan import Dimension, Field, KafkaOptions, MetadataField, MysqlCdcSource
from joins.plan.types import SqlType, TypeName
from joins.source.snapshot import SnapshotCoordinator, SourceSettings
from joins.source.table_stream import TableStreamCoordinator
from joins.worker.row_files import RowFiles
from service.embedded.database import MariaDb
from service.security.resolution import connection_of
from tests.joins.source.test_snapshot import PARTITIONS, Place, place  # noqa: F401 (a fixture)
from tests.support.copies import copy_of
from tests.support.lanes import some_of
from tests.support.sql import run_sql
from tests.support.topics import consume, create_topic, delete_topics, unique_name
from tests.support.wait import wait_until

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
NAMES = (
    MetadataField("db", "database_name", STRING),
    MetadataField("tbl", "table_name", STRING),
)
FIELDS = (*(Field(n.name, n.type) for n in NAMES), Field("id", BIGINT), Field("v", STRING))
KEY = ("db", "tbl", "id")
COLUMNS = "id BIGINT PRIMARY KEY, v VARCHAR(50)"


@dataclass
class Shards:
    """Databases that begin with `name`, and a coordinator of the tables `t_<number>` in them."""

    database: MariaDb
    name: str
    servers: str = ""
    topic: str = ""
    coordinator: SnapshotCoordinator | None = None
    stalls: Stalls | None = None
    login: tuple[str, str] | None = None

    def sql(self, *statements: str) -> list[Any]:
        return run_sql(self.database, *(text.replace("{}", self.name) for text in statements))

    def source(self, metadata: tuple[MetadataField, ...] = NAMES) -> MysqlCdcSource:
        names = {"database": f"{self.name}_[0-9]+", "table": "t_[0-9]+", "metadata": metadata}
        server = "127.0.0.1", self.database.port
        login = self.login or (self.database.cdc_user, self.database.cdc_password)
        return MysqlCdcSource(*server, *login, chunk_rows=40, **names)

    def rows(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        tables = self.sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema REGEXP '^{}_[0-9]+$' AND table_name REGEXP '^t_[0-9]+$'"
        )
        return {
            (database, table, row[0]): {"db": database, "tbl": table, "id": row[0], "v": row[1]}
            for database, table in tables
            for row in self.sql(f"SELECT id, v FROM {database}.{table}")
        }

    def wait_same(self, generation: int | None = None) -> None:
        """The copy is complete and equals the tables; in `generation`, if one is given."""
        coordinator = self.coordinator
        assert coordinator is not None

        def same() -> bool:
            state = coordinator.state
            if state is None or state.high is None or state.needed is not None:
                return False
            if generation not in (None, state.generation):
                return False
            told = copy_of(consume(self.servers, self.topic), PARTITIONS)
            return told.generation == state.generation and told.rows == self.rows()

        try:
            wait_until(same, deadline_s=90, what=f"equal in generation {generation}")
        except TimeoutError as exc:
            assert self.stalls is not None
            raise TimeoutError(f"{exc} {coordinator.state} {self.stalls.all()}") from None

    def wait_stall(self, *parts: str) -> Fault:
        stalls = self.stalls
        assert stalls is not None

        def stalled() -> Fault | None:
            first = stalls.first()
            text = "" if first is None else f"{first[1].message} {first[1].hint}"
            return first[1] if first and all(part in text for part in parts) else None

        fault = wait_until(stalled, what=f"stall {parts}")
        assert fault is not None
        return fault


@pytest.fixture
def shards(mariadb: MariaDb) -> Iterator[Shards]:
    made = Shards(mariadb, unique_name("db"))
    made.sql("CREATE DATABASE {}_1", "CREATE DATABASE {}_2", "CREATE DATABASE {}_other")
    try:
        for at, table in enumerate(("{}_1.t_1", "{}_1.t_2", "{}_2.t_1", "{}_other.t_1")):
            rows = f"SELECT seq, CONCAT('v', seq) FROM {{}}_1.seq_1_to_{100 - 30 * at or 1}"
            made.sql(f"CREATE TABLE {table} ({COLUMNS})", f"INSERT INTO {table} {rows}")
        made.sql(f"CREATE TABLE {{}}_1.u_1 ({COLUMNS})", "INSERT INTO {}_1.u_1 VALUES (1, 'u')")
        yield made
    finally:
        for number in (1, 2, 3, "other"):
            made.sql(f"DROP DATABASE IF EXISTS {{}}_{number}")
        if made.topic:
            delete_topics(made.servers, made.topic)


@contextmanager
def running(
    place: Place,  # noqa: F811
    shards: Shards,
    kind: type[SnapshotCoordinator] = SnapshotCoordinator,
    more: tuple[MetadataField, ...] = (),
) -> Iterator[Shards]:
    servers, directory = place.kafka.bootstrap_servers, place.directory
    source = shards.source((*NAMES, *more))
    fields, connection = (*FIELDS, *(Field(m.name, m.type) for m in more)), connection_of(source)
    shards.servers = servers
    shards.topic = shards.topic or create_topic(servers, partitions=PARTITIONS)
    settings = SourceSettings(
        connection=connection,
        kafka=KafkaOptions(servers, shards.topic),
        topic=shards.topic,
        partitions=PARTITIONS,
        state_file=directory / "t.json",
        offset_file=directory / "t.cdc.json",
        staged=RowFiles(directory / "staged"),
        tasks=2,
        rows_per_job=80,
    )
    dimension, stalls = Dimension("t", source, fields, KEY), Stalls()
    table = check_source(connection, fields, KEY)
    coordinator = kind(place.spark, dimension, table, settings, stalls)
    shards.coordinator, shards.stalls = coordinator, stalls
    coordinator.start()
    try:
        yield shards
    finally:
        coordinator.stop()


HAPPENED: dict[str, tuple[int, tuple[str, ...]]] = {
    "rows_of_each": (
        1,
        (
            "INSERT INTO {}_1.t_1 VALUES (900, 'new')",
            "UPDATE {}_1.t_2 SET v = 'changed', id = id + 500 WHERE id < 5",
            "DELETE FROM {}_2.t_1 WHERE id > 10",
            "INSERT INTO {}_other.t_1 VALUES (900, 'not ours')",
            "DELETE FROM {}_1.u_1",
        ),
    ),
    "a_row_that_moves_to_another_table": (
        1,
        (
            "INSERT INTO {}_2.t_1 SELECT id + 800, v FROM {}_1.t_1 WHERE id = 7",
            "DELETE FROM {}_1.t_1 WHERE id = 7",
        ),
    ),
    "others_are_changed": (
        1,
        (
            "TRUNCATE {}_other.t_1",
            "CREATE TABLE {}_1.u_2 LIKE {}_1.u_1",
            "RENAME TABLE {}_1.u_2 TO {}_other.t_2",
            "DROP TABLE {}_1.u_1",
        ),
    ),
    "a_column_that_is_not_declared": (1, ("ALTER TABLE {}_1.t_2 ADD COLUMN w INT",)),
    "an_empty_table_appears": (2, ("CREATE TABLE {}_2.t_9 (" + COLUMNS + ")",)),
    "a_table_appears_with_rows": (
        2,
        (
            "CREATE TABLE IF NOT EXISTS {}_2.t_9 (" + COLUMNS + ")",
            "INSERT INTO {}_2.t_9 VALUES (1, 'n')",
        ),
    ),
    "a_database_appears": (
        2,
        (
            "CREATE DATABASE {}_3",
            "CREATE TABLE IF NOT EXISTS {}_3.t_5 (" + COLUMNS + ")",
            "INSERT INTO {}_3.t_5 VALUES (1, 'n')",
        ),
    ),
    "a_table_is_renamed_to_match": (2, ("RENAME TABLE {}_1.u_1 TO {}_1.t_7",)),
    "a_table_is_altered_to_match": (2, ("ALTER TABLE {}_1.u_1 RENAME TO {}_1.t_7",)),
    "a_table_is_renamed_away": (2, ("RENAME TABLE {}_1.t_2 TO {}_1.u_2",)),
    "a_table_is_dropped": (2, ("DROP TABLE {}_1.t_2",)),
    "a_table_is_emptied": (2, ("TRUNCATE {}_1.t_2", "INSERT INTO {}_1.t_2 VALUES (1, 'n')")),
    "a_database_is_dropped": (2, ("DROP DATABASE {}_2",)),
    "a_table_that_was_there_for_a_moment": (
        1,
        (
            "LOCK TABLES {}_1.t_1 READ",
            "UNLOCK TABLES",
            "CREATE TABLE IF NOT EXISTS {}_1.u_9 (" + COLUMNS + ")",
            "DROP TABLE {}_1.u_9",
        ),
    ),
}


@pytest.mark.parametrize(
    ("generation", "statements"), some_of(HAPPENED, "rows_of_each", "a_table_appears_with_rows")
)
def test_the_tables_that_match_are_one(place, shards, generation, statements):  # noqa: F811
    with running(place, shards):
        shards.wait_same(1)
        shards.sql(*statements)
        shards.wait_same(generation)


def history(seed: int) -> Iterator[str]:
    """Statements that any order of them allows: each names only tables that exist then."""
    draw = random.Random(seed)
    tables = ["{}_1.t_1", "{}_1.t_2", "{}_2.t_1", "{}_other.t_1", "{}_1.u_1"]
    free = ["{}_1.t_3", "{}_2.t_2", "{}_2.u_1", "{}_other.t_2", "{}_1.T_4"]
    for number in range(40):
        one, other = draw.choice(tables), draw.choice(tables)
        kind = draw.choice(
            ("insert", "insert", "update", "delete", "move", "create", "rename", "drop", "truncate")
        )
        if kind == "insert":
            yield f"INSERT INTO {one} VALUES ({1000 + number}, 'n{number}')"
        elif kind == "update":
            yield f"UPDATE {one} SET v = 'u{number}' WHERE id % 3 = {draw.randrange(3)}"
        elif kind == "delete":
            yield f"DELETE FROM {one} WHERE id % 7 = {draw.randrange(7)}"
        elif kind == "move" and one != other:
            yield f"INSERT IGNORE INTO {other} SELECT * FROM {one} WHERE id % 5 = 1"
            yield f"DELETE FROM {one} WHERE id % 5 = 1"
        elif kind == "create" and free:
            tables.append(free.pop(draw.randrange(len(free))))
            yield f"CREATE TABLE {tables[-1]} ({COLUMNS})"
        elif kind == "rename" and free:
            tables.remove(one)
            tables.append(free.pop(draw.randrange(len(free))))
            free.append(one)
            yield f"RENAME TABLE {one} TO {tables[-1]}"
        elif kind == "drop" and len(tables) > 4:
            tables.remove(one)
            free.append(one)
            yield f"DROP TABLE {one}"
        elif kind == "truncate":
            yield f"TRUNCATE {one}"


@pytest.mark.parametrize("seed", some_of(range(4), 0))
def test_generated_histories(place, shards, seed):  # noqa: F811
    """Some statements run while the tables are copied, and some while they are followed."""
    statements = list(history(seed))
    with running(place, shards):
        shards.sql(*statements[:12])
        shards.wait_same()
        shards.sql(*statements[12:])
        shards.wait_same()


def test_a_copy_goes_on_behind_the_table_that_it_was_in(place, shards):  # noqa: F811
    """The coordinator is stopped at each group of chunks."""
    with running(place, shards):
        wait_until(lambda: (s := shards.coordinator.state) is not None and s.chunks_done >= 2)
    first = shards.coordinator.state
    assert not first.chunks_complete or first.chunks_done == 6
    shards.sql("INSERT INTO {}_1.t_1 VALUES (0, 'before')", "DELETE FROM {}_2.t_1 WHERE id = 3")
    with running(place, shards):
        shards.wait_same(1)
        assert shards.coordinator.state.chunks_done == 6


def test_a_table_that_is_gone_before_it_was_read_is_no_dead_end(place, shards):  # noqa: F811
    """The copy cannot go on, whether or not the change was seen in the log before it failed."""
    with running(place, shards):
        wait_until(lambda: (s := shards.coordinator.state) is not None and s.chunks_done >= 2)
    shards.sql("RENAME TABLE {}_2.t_1 TO {}_2.gone")
    with running(place, shards):
        shards.wait_same(2)


def test_a_row_is_sent_again_from_its_table(place, shards):  # noqa: F811
    with running(place, shards):
        shards.wait_same(1)
        with shards.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin=0")
            cursor.execute(f"UPDATE {shards.name}_2.t_1 SET v = 'silent' WHERE id = 3")
            cursor.execute(f"DELETE FROM {shards.name}_1.t_2 WHERE id = 3")
            connection.commit()
        shards.sql("INSERT INTO {}_1.u_1 VALUES (77, 'moves the position')")
        key = {"db": f"{shards.name}_2", "tbl": "t_1", "id": 3}
        gone = {"db": f"{shards.name}_1", "tbl": "t_2", "id": 3}
        body = {"keys": [json.dumps(key)], "extra": [json.dumps(gone)]}
        answer = shards.coordinator.repair(Request("r1", "repair", body, 1, "operator"))
        assert (answer["written"], answer["deleted"]) == (1, 1)
        shards.wait_same(1)


def test_a_change_has_its_time_and_a_row_of_the_copy_has_none(place, shards):  # noqa: F811
    op_ts = MetadataField("at", "op_ts", SqlType(TypeName.TIMESTAMP_LTZ, 3))
    one, other = ((f"{shards.name}_1", "t_1", number) for number in (1, 2))
    with running(place, shards, more=(op_ts,)):
        wait_until(lambda: (s := shards.coordinator.state) is not None and s.high is not None)
        with shards.database.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET timestamp = 1800000000.75")
            cursor.execute(f"UPDATE {shards.name}_1.t_1 SET v = 'new' WHERE id = 2")
            connection.commit()

        def times() -> tuple[str, str] | None:
            rows = copy_of(consume(shards.servers, shards.topic), PARTITIONS).rows
            is_there = other in rows and rows[other]["v"] == "new"
            return (rows[one]["at"], rows[other]["at"]) if is_there else None

        assert wait_until(times) == ("1970-01-01T00:00:00Z", "2027-01-15T08:00:00Z")


def test_a_stream_of_tables_stalls_where_one_appears(place, shards):  # noqa: F811
    """A new copy would not delete rows of the output."""
    with running(place, shards, TableStreamCoordinator):
        wait_until(lambda: (s := shards.coordinator.state) is not None and s.high is not None)
        shards.sql("CREATE TABLE {}_2.t_9 (" + COLUMNS + ")")
        shards.wait_stall("another table matches", "t_9", "Submit the job again")


def test_a_table_of_another_shape_that_appears_stalls_until_it_is_alike(place, shards):  # noqa: F811
    with running(place, shards):
        shards.wait_same(1)
        shards.sql("CREATE TABLE {}_2.t_9 (id BIGINT PRIMARY KEY, v DATE)")
        shards.wait_stall("another table matches", "_2.t_9", "v")
        shards.sql("ALTER TABLE {}_2.t_9 MODIFY v VARCHAR(50)")
        shards.wait_same(2)


def test_a_table_that_may_not_be_read_stalls_until_it_may(place, shards):  # noqa: F811
    """The user sees tables of the first database only, and rows of the second one in the binlog."""
    user = f"{shards.name}_user"[:60]
    shards.sql(
        f"CREATE USER {user}@'%' IDENTIFIED BY 'pw'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, SLAVE MONITOR, RELOAD ON *.* TO {user}@'%'",
        f"GRANT SELECT, LOCK TABLES ON {{}}_1.* TO {user}@'%'",
        "DROP DATABASE {}_2",
    )
    shards.login = user, "pw"
    try:
        with running(place, shards):
            shards.wait_same(1)
            shards.sql(
                "CREATE DATABASE {}_2",
                "CREATE TABLE IF NOT EXISTS {}_2.t_1 (" + COLUMNS + ")",
                "INSERT INTO {}_2.t_1 VALUES (1, 'hidden')",
            )
            shards.wait_stall("lacks SELECT", "_2", "t_1")
            shards.sql(f"GRANT SELECT, LOCK TABLES ON {{}}_2.* TO {user}@'%'")
            shards.wait_same(2)
    finally:
        shards.sql(f"DROP USER {user}@'%'")
