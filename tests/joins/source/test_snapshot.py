"""The coordinator of a source on real parts: what happens to its table during the copy and after.

Every case ends with the copy that the changelog topic tells being what `SELECT` gives.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from joins.adapters.mysql.source import check_source
from joins.durable.requests import Fault, Stalls
from joins.plan.plan import Dimension, Field, KafkaOptions, MysqlCdcSource
from joins.plan.types import SqlType, TypeName
from joins.source.snapshot import SnapshotCoordinator, SourceSettings, SumAt
from joins.worker.row_files import RowFiles
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.joins.adapters.mysql.test_binlog import purged_to
from tests.support.beside import beside
from tests.support.copies import Copy, copy_of
from tests.support.lanes import some_of
from tests.support.rig import descendants
from tests.support.sql import cdc_connection, new_schema, run_sql
from tests.support.topics import consume, create_topic, delete_topics
from tests.support.wait import wait_until

PARTITIONS = 2
CDC = "joins.adapters.mysql.binlog"
ROWS = 1_000
TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(50), other DECIMAL(9,2),"
    " doubled BIGINT AS (id * 2) VIRTUAL, kept BIGINT AS (id * 3) STORED, UNIQUE (other))",
    f"INSERT INTO t (id, v, other) SELECT seq, CONCAT('v', seq), seq FROM seq_1_to_{ROWS}",
)
FIELDS = (
    Field("id", SqlType(TypeName.BIGINT)),
    Field("v", SqlType(TypeName.STRING)),
    Field("doubled", SqlType(TypeName.BIGINT)),
    Field("kept", SqlType(TypeName.BIGINT)),
)
REFILL = ("DELETE FROM t", TABLE[1])
SELECT = "SELECT id, v, doubled, kept FROM t"


@dataclass
class Source:
    """A running coordinator, its topic and its table."""

    database: MariaDb
    schema: str
    kafka: KafkaBroker
    topic: str
    stalls: Stalls
    coordinator: SnapshotCoordinator

    def sql(self, *statements: str) -> None:
        run_sql(self.database, *statements, schema=self.schema)

    def copy(self) -> Copy:
        return copy_of(consume(self.kafka.bootstrap_servers, self.topic), PARTITIONS)

    def table(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        names = [field.name for field in FIELDS]
        rows = run_sql(self.database, SELECT, schema=self.schema)
        return {(row[0],): dict(zip(names, row, strict=True)) for row in rows}

    def wait_same(self, generation: int, deadline_s: float = 60.0, what: str = "") -> None:
        """The copy is complete in `generation` and equals the table."""

        def same() -> bool:
            state = self.coordinator.state
            if state is None or state.generation != generation or state.high is None:
                return False
            found = self.copy()
            return found.generation == generation and found.rows == self.table()

        try:
            wait_until(same, deadline_s=deadline_s, what=f"{what}: equal in {generation}")
        except TimeoutError as exc:
            raise TimeoutError(f"{exc} {self.coordinator.state} {self.stalls.all()}") from None
        assert self.coordinator.state is not None
        assert self.coordinator.state.generation == generation

    def wait_chunks(self, chunks: int) -> None:
        wait_until(lambda: (s := self.coordinator.state) is not None and s.chunks_done >= chunks)

    def wait_stall(self, *parts: str) -> Fault:
        """A fault whose message and hint have all `parts`."""

        def stalled() -> Fault | None:
            first = self.stalls.first()
            told = "" if first is None else f"{first[1].message} {first[1].hint}"
            return first[1] if first and all(part in told for part in parts) else None

        fault = wait_until(stalled, what=f"stall {parts}")
        assert fault is not None
        return fault


@dataclass(frozen=True)
class Place:
    """The parts that a coordinator runs on, and where its files are."""

    spark: SparkSession
    database: MariaDb
    kafka: KafkaBroker
    directory: Path


@pytest.fixture
def place(spark: SparkSession, mariadb: MariaDb, kafka: KafkaBroker, tmp_path: Path) -> Place:
    return Place(spark, mariadb, kafka, tmp_path / "source")


def coordinator_of(
    place: Place, schema: str, topic: str, *, chunk_rows: int = 400, sum_at: SumAt | None = None
) -> tuple[SnapshotCoordinator, Stalls]:
    kafka, directory = KafkaOptions(place.kafka.bootstrap_servers, topic), place.directory
    connection = cdc_connection(place.database, schema)
    source = MysqlCdcSource(
        connection.hostname,
        connection.port,
        connection.username,
        connection.password,
        schema,
        "t",
        chunk_rows=chunk_rows,
    )
    settings = SourceSettings(
        connection=connection,
        kafka=kafka,
        topic=topic,
        partitions=PARTITIONS,
        state_file=directory / "t.json",
        offset_file=directory / "t.cdc.json",
        staged=RowFiles(directory / "staged"),
        tasks=2,
        rows_per_job=2 * chunk_rows,
    )
    dimension, stalls = Dimension("t", source, FIELDS, ("id",)), Stalls()
    table = check_source(connection, FIELDS, ("id",))
    made = SnapshotCoordinator(place.spark, dimension, table, settings, stalls, sum_at=sum_at)
    return made, stalls


@contextmanager
def running(
    place: Place,
    schema: str,
    chunk_rows: int = 400,
    config: dict[str, str] | None = None,
    sum_of: Callable[[str, str], SumAt] | None = None,
) -> Iterator[Source]:
    """`sum_of` makes the coordinator's `sum_at` from the servers and the topic of the changelog."""
    servers = place.kafka.bootstrap_servers
    topic = create_topic(servers, partitions=PARTITIONS, config=config)
    sum_at = None if sum_of is None else sum_of(servers, topic)
    coordinator, stalls = coordinator_of(place, schema, topic, chunk_rows=chunk_rows, sum_at=sum_at)
    coordinator.start()
    try:
        yield Source(place.database, schema, place.kafka, topic, stalls, coordinator)
    finally:
        coordinator.stop()
        delete_topics(place.kafka.bootstrap_servers, topic)


# What happens to the table, and the generation that the copy is in afterwards.
FOLLOWED: dict[str, tuple[str, ...]] = {
    "primary_keys_move": (
        "UPDATE t SET id = id + 5000 WHERE id % 7 = 0",
        "UPDATE t SET id = -id WHERE id IN (1, 2, 3) ORDER BY id",
        "UPDATE t SET id = id + 1 WHERE id > 990 AND id < 2000 ORDER BY id DESC",
    ),
    "replace_and_on_duplicate_key": (
        "REPLACE INTO t (id, v, other) VALUES (1, 'replaced', 1), (2000, 'by unique key', 2)",
        "INSERT INTO t (id, v, other) VALUES (3, 'x', 3), (2001, 'y', 2001)"
        " ON DUPLICATE KEY UPDATE v = CONCAT(v, '!')",
        "INSERT IGNORE INTO t (id, v, other) VALUES (4, 'no', 4), (2002, 'yes', 2002)",
    ),
    "several_tables_at_once": (
        "CREATE TABLE s (id BIGINT PRIMARY KEY, w VARCHAR(9))",
        "INSERT INTO s SELECT id, 'joined' FROM t WHERE id <= 50",
        "UPDATE t JOIN s USING (id) SET t.v = s.w, s.w = 'done' WHERE id % 2",
        "DELETE t, s FROM t JOIN s USING (id) WHERE id > 40",
        "INSERT INTO t (id, v, other) SELECT id + 3000, w, id + 3000 FROM s",
    ),
    "rolled_back": (
        "START TRANSACTION",
        "DELETE FROM t",
        "ROLLBACK",
        "START TRANSACTION",
        "UPDATE t SET v = 'kept' WHERE id = 1",
        "SAVEPOINT a",
        "UPDATE t SET v = 'gone' WHERE id = 2",
        "ROLLBACK TO a",
        "COMMIT",
    ),
    "generated_columns": ("UPDATE t SET id = 77777 WHERE id = 7",),
    "trigger": (
        "CREATE TABLE s (id BIGINT PRIMARY KEY)",
        "CREATE TRIGGER tr AFTER INSERT ON s FOR EACH ROW"
        " UPDATE t SET v = 'fired' WHERE id = NEW.id",
        "INSERT INTO s SELECT seq FROM seq_1_to_20",
    ),
    "columns_added_anywhere": (
        "ALTER TABLE t ADD COLUMN a INT DEFAULT 5 FIRST, ADD COLUMN b TEXT AFTER id",
        "INSERT INTO t (id, v, other, b) VALUES (2100, 'n', 2100, 'b')",
        "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 0 AFTER v, ALGORITHM=COPY",
        "UPDATE t SET v = 'after', c = 9 WHERE id < 5",
    ),
    "columns_of_no_interest_changed": (
        "ALTER TABLE t MODIFY other VARCHAR(20)",
        "UPDATE t SET v = 'after', other = CONCAT('x', id) WHERE id < 5",
        "ALTER TABLE t CHANGE other another TEXT, DROP INDEX other",
        "INSERT INTO t (id, v, another) VALUES (2200, 'n', 'o')",
        "ALTER TABLE t RENAME COLUMN another TO third",
        "UPDATE t SET v = 'renamed', third = 'o' WHERE id = 7",
        "ALTER TABLE t DROP COLUMN third",
        "DELETE FROM t WHERE id = 6",
    ),
    "captured_column_widened": (
        "ALTER TABLE t MODIFY v LONGTEXT",
        "UPDATE t SET v = REPEAT('w', 4000) WHERE id = 5",
        "ALTER TABLE t ADD INDEX (v(20)), ALTER v SET DEFAULT 'd'",
        "INSERT INTO t (id) VALUES (2300)",
    ),
    "distributed_and_not_ours_or_undone": (
        "CREATE TABLE s (id BIGINT PRIMARY KEY)",
        "XA START 'a'",
        "INSERT INTO s VALUES (1)",
        "XA END 'a'",
        "XA PREPARE 'a'",
        "XA COMMIT 'a'",
        "XA START 'b'",
        "DELETE FROM t",
        "XA END 'b'",
        "XA PREPARE 'b'",
        "XA ROLLBACK 'b'",
        "XA START 'c'",
        "DELETE FROM t WHERE id = 1",
        "XA END 'c'",
        "XA COMMIT 'c' ONE PHASE",
    ),
}
COPIED_AGAIN: dict[str, tuple[str, ...]] = {
    "truncated": ("TRUNCATE TABLE t", "INSERT INTO t (id, v, other) VALUES (1, 'again', 1)"),
    "many_times_in_a_row": (
        *("SET STATEMENT max_statement_time=60 FOR TRUNCATE TABLE t",) * 5,
        TABLE[1],
        "RENAME TABLES t TO old, old TO t",
        "/*!50000 TRUNCATE t */",
        TABLE[1],
    ),
    "replaced_by_another_table": (
        "CREATE TABLE n LIKE t",
        "INSERT INTO n (id, v, other) SELECT id, 'new', id FROM t WHERE id % 3 = 0",
        "RENAME TABLE t TO old, n TO t",
    ),
    "dropped_and_made_again": ("DROP TABLE t", *TABLE, "DELETE FROM t WHERE id > 500"),
    "captured_column_narrowed": (
        "SET SESSION sql_mode=''",
        "ALTER TABLE t MODIFY v VARCHAR(2)",
    ),
    "spaces_at_the_end_cut_in_a_strict_session": (
        "ALTER TABLE t MODIFY v LONGTEXT",
        "UPDATE t SET v = CONCAT(LEFT(v, 2), '   ')",
        "ALTER TABLE t MODIFY v VARCHAR(2)",
    ),
    "captured_column_dropped_and_added": (
        "ALTER TABLE t DROP COLUMN v",
        "INSERT INTO t (id, other) VALUES (2000, 2000)",
        "ALTER TABLE t ADD COLUMN v VARCHAR(50) DEFAULT 'fresh'",
    ),
    "names_swapped": (
        "ALTER TABLE t ADD COLUMN w VARCHAR(50) DEFAULT 'was w'",
        "ALTER TABLE t RENAME COLUMN v TO w, RENAME COLUMN w TO v",
    ),
    "duplicates_ignored": (
        "UPDATE t SET v = 'same' WHERE id < 10",
        "ALTER IGNORE TABLE t ADD UNIQUE (v)",
    ),
    "generated_by_another_expression": ("ALTER TABLE t MODIFY kept BIGINT AS (id * 4) STORED",),
    "statement_format": ("SET SESSION binlog_format=STATEMENT", "UPDATE t SET v = 'x'"),
    "load_data_as_a_statement": (
        "SET SESSION binlog_format=STATEMENT",
        "LOAD DATA LOCAL INFILE '{file}' INTO TABLE t (id, v)",
    ),
    "partial_row_image": (
        "SET SESSION binlog_row_image=MINIMAL",
        "UPDATE t SET v = 'y' WHERE id = 1",
    ),
    "distributed_transaction": (
        "XA START 'x'",
        "DELETE FROM t WHERE id < 100",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
    ),
}
# What brings the declared table back, row by row and without another copy.
UNDONE: dict[str, tuple[str, ...]] = {
    "replaced_by_another_table": ("DROP TABLE old",),
    "captured_column_narrowed": ("ALTER TABLE t MODIFY v LONGTEXT",),
    "spaces_at_the_end_cut_in_a_strict_session": ("ALTER TABLE t MODIFY v LONGTEXT",),
    "names_swapped": ("ALTER TABLE t DROP COLUMN w",),
    "duplicates_ignored": ("ALTER TABLE t DROP INDEX v",),
}
CASES = {name: (1, does) for name, does in FOLLOWED.items()} | {
    name: (2, does) for name, does in COPIED_AGAIN.items()
}


def execute(source: Source, statements: tuple[str, ...], file: Path, cursor: Any = None) -> None:
    """All `statements` in one session."""
    if cursor is not None:
        for statement in statements:
            cursor.execute(statement.format(file=file))
        return
    with (
        source.database.connect(source.schema, local_infile=True) as connection,
        connection.cursor() as own,
    ):
        execute(source, statements, file, own)


@pytest.fixture
def load_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    path.write_text("".join(f"{n}\tloaded {n}\n" for n in range(4000, 4050)))
    return path


def test_what_the_binlog_tells_row_by_row_is_followed(place, load_file):
    with (
        new_schema(place.database, *TABLE) as schema,
        running(place, schema) as source,
    ):
        source.wait_same(1)
        for name, statements in FOLLOWED.items():
            execute(source, ("DROP TABLE IF EXISTS s", *statements), load_file)
            source.wait_same(1, what=name)


@pytest.mark.experiment
def test_what_it_does_not_tell_is_copied_again(own_place, load_file):
    """On a server that no other test follows: a statement concerns all its tables."""
    with (
        new_schema(own_place.database, *TABLE) as schema,
        running(own_place, schema) as source,
    ):
        source.wait_same(1)
        for generation, (name, statements) in enumerate(COPIED_AGAIN.items(), start=2):
            execute(source, statements, load_file)
            source.sql("UPDATE t SET v = 'e' WHERE id = 500")
            source.wait_same(generation, what=name)
            source.sql(*UNDONE.get(name, ()), *REFILL)
            source.wait_same(generation, what=f"after {name}")


def test_load_data_as_rows_is_followed(place, load_file):
    with (
        new_schema(place.database, *TABLE) as schema,
        running(place, schema) as source,
    ):
        source.wait_same(1)
        load = "LOAD DATA LOCAL INFILE '{file}' REPLACE INTO TABLE t (id, v) SET other = id"
        execute(source, (load,), load_file)
        source.wait_same(1)


# Those that a session can do while it holds the table locked, in the middle of the copy.
MEANWHILE = (
    "primary_keys_move",
    "columns_added_anywhere",
    "captured_column_widened",
    "truncated",
    "captured_column_narrowed",
    "captured_column_dropped_and_added",
)


@pytest.mark.parametrize("name", some_of(MEANWHILE, "columns_added_anywhere", "truncated"))
def test_during_the_copy(place, load_file, name):
    generation, statements = CASES[name]
    with (
        new_schema(place.database, *TABLE) as schema,
        place.database.connect(schema) as lock,
        lock.cursor() as cursor,
        running(place, schema, chunk_rows=50) as source,
    ):
        source.wait_chunks(2)
        cursor.execute("LOCK TABLES t WRITE")
        execute(source, statements, load_file, cursor)
        assert source.copy().generation == 0
        cursor.execute("UNLOCK TABLES")
        source.wait_same(generation)


INCOMPATIBLE = {
    "dropped": (("ALTER TABLE t DROP COLUMN v",), ('no column "v"',), "ADD COLUMN v VARCHAR(50)"),
    "renamed": (
        ("ALTER TABLE t RENAME COLUMN v TO w",),
        ('no column "v"', "RENAME COLUMN v TO w"),
        "RENAME COLUMN w TO v",
    ),
    "retyped": (
        ("ALTER TABLE t MODIFY v BLOB",),
        ('column "v" is blob, declared STRING', "MODIFY v BLOB"),
        "MODIFY v VARCHAR(50)",
    ),
    "sign_lost": (
        ("ALTER TABLE t MODIFY kept INT UNSIGNED AS (id) STORED",),
        (),
        "MODIFY kept BIGINT AS (id) STORED",
    ),
    "other_key": (
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)",),
        ("primary key (id, v), declared (id)",),
        "DROP PRIMARY KEY, ADD PRIMARY KEY (id)",
    ),
    "cascade": (
        (
            "CREATE TABLE p (id BIGINT PRIMARY KEY)",
            "INSERT INTO p SELECT id FROM t",
            "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES p (id) ON DELETE CASCADE",
            "DELETE FROM p WHERE id < 10",
        ),
        ('foreign key "f" with ON DELETE CASCADE', "does not write to its binlog"),
        "DROP FOREIGN KEY f",
    ),
    "history": (
        ("ALTER TABLE t ADD SYSTEM VERSIONING", "UPDATE t SET v = 'versioned' WHERE id < 5"),
        ("system versioned",),
        "DROP SYSTEM VERSIONING",
    ),
}


@pytest.mark.parametrize(
    ("change", "told", "undo"),
    some_of(INCOMPATIBLE, "renamed", "retyped", "sign_lost", "cascade"),
)
def test_incompatible_change_stalls_until_it_is_undone(place, change, told, undo):
    with (
        new_schema(place.database, *TABLE) as schema,
        running(place, schema) as source,
    ):
        source.wait_same(1)
        if not told:
            source.sql(*change, f"ALTER TABLE t {undo}", "UPDATE t SET v = 'x' WHERE id = 1")
            source.wait_same(2)
            return
        source.sql(*change)
        fault = source.wait_stall(*told, "copied again by itself")
        assert "Declare" not in fault.hint, "a job's declaration stays as it is"
        assert source.coordinator.state.needed
        source.sql(f"ALTER TABLE t {undo}", "UPDATE t SET v = 'undone' WHERE id = 3")
        source.wait_same(2)
        assert source.stalls.first() is None


def test_interrupted_copy_goes_on_under_the_same_low(place):
    """Stopped and killed in the middle, several times, with changes in between."""
    topic = create_topic(place.kafka.bootstrap_servers, partitions=PARTITIONS)
    with new_schema(place.database, *TABLE) as schema:
        lows = set()
        for round_ in range(4):
            coordinator, stalls = coordinator_of(place, schema, topic, chunk_rows=100)
            coordinator.start()
            source = Source(place.database, schema, place.kafka, topic, stalls, coordinator)
            source.wait_chunks(2 * round_ + 1)
            lows.add(coordinator.state.low)
            for child in descendants(psutil.Process(), CDC):
                child.kill()
            coordinator.stop()
            source.sql(
                f"DELETE FROM t WHERE id % 10 = {round_}",
                f"UPDATE t SET id = id + 10000 WHERE id % 100 = {round_ + 50} AND id < 10000",
                f"INSERT INTO t (id, v, other) VALUES ({20000 + round_}, 'n', {20000 + round_})",
            )
        coordinator, stalls = coordinator_of(place, schema, topic, chunk_rows=100)
        coordinator.start()
        try:
            Source(place.database, schema, place.kafka, topic, stalls, coordinator).wait_same(1)
            assert lows == {coordinator.state.low}
        finally:
            coordinator.stop()


def test_a_process_that_dies_twice_at_one_position_is_a_stall_until_it_has_passed(place):
    with (
        new_schema(place.database, *TABLE) as schema,
        running(place, schema) as source,
    ):
        source.wait_same(1)
        for _ in range(2):
            (child,) = wait_until(lambda: descendants(psutil.Process(), CDC), deadline_s=30)
            child.kill()
            wait_until(lambda gone=child: not gone.is_running(), deadline_s=30)
        fault = source.wait_stall("died 2 times behind binlog.")
        assert "runner's log" in fault.hint
        source.sql("INSERT INTO t (id, v, other) VALUES (30000, 'passed', -1)")
        source.wait_same(1)
        wait_until(lambda: source.stalls.first() is None, deadline_s=60)


# Servers that are not what they were
# ---------------------------------------------------------------------------------------------


@pytest.fixture
def own_place(spark, kafka, database_home, tmp_path) -> Iterator[Place]:
    with MariaDb(tmp_path / "db", database_home) as database:
        yield Place(spark, database, kafka, tmp_path / "source")


def test_purged_and_reset_binlogs_are_copied_again(own_place):
    """Purged while we are away; reset while we read."""
    server = own_place.database
    with new_schema(server, *TABLE) as schema:
        topic = create_topic(own_place.kafka.bootstrap_servers, partitions=PARTITIONS)
        for generation in (1, 2):
            coordinator, stalls = coordinator_of(own_place, schema, topic)
            coordinator.start()
            source = Source(server, schema, own_place.kafka, topic, stalls, coordinator)
            source.wait_same(generation)
            if generation == 1:
                coordinator.stop()
            source.sql("DELETE FROM t WHERE id < 100", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
            last = run_sql(server, "SHOW MASTER STATUS")[0][0]
            if generation == 1:  # a file that a dying session still reads stays
                wait_until(lambda last=last: purged_to(server, last), what="it is purged")
        try:
            source.wait_same(2)
            source.sql("RESET MASTER", "DELETE FROM t WHERE id < 200")
            source.wait_same(3)
        finally:
            coordinator.stop()


@pytest.mark.experiment
def test_changed_identity_is_another_server_with_the_same_transactions(own_place):
    """Same address, same files, same positions: only what the server calls itself differs."""
    dumps = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
    with (
        new_schema(own_place.database, *TABLE) as schema,
        running(own_place, schema) as source,
    ):
        source.wait_same(1)
        source.sql("SET GLOBAL gtid_domain_id = 9")
        threads = run_sql(own_place.database, dumps)
        source.sql(*(f"KILL {row[0]}" for row in threads), "DELETE FROM t WHERE id < 50")
        source.wait_same(1)
        assert source.coordinator.state.epoch == 1


@pytest.mark.experiment
def test_restored_older_copy_is_copied_again(own_place, tmp_path):
    """The server comes back with the files of an earlier day, and other changes follow."""
    database, home, backup = own_place.database, tmp_path / "db", tmp_path / "backup"
    with (
        new_schema(database, *TABLE) as schema,
        running(own_place, schema) as source,
    ):
        source.wait_same(1)
        database.stop()
        shutil.copytree(home, backup)
        database.start()
        source.sql("INSERT INTO t (id, v, other) VALUES (2000, 'lost', 2000)")
        source.sql("UPDATE t SET v = 'lost, too' WHERE id < 100")
        source.wait_same(1)
        database.stop()
        shutil.rmtree(home)
        shutil.copytree(backup, home)
        database.start()
        other = "UPDATE t SET v = CONCAT('other ', {0}) WHERE id BETWEEN 1 AND 500"
        source.sql(*(other.format(n) for n in range(20)))
        source.wait_same(2)
        assert (2000,) not in source.copy().rows


@pytest.mark.experiment
def test_writers_during_every_fault(place):
    """Changes go on while the copy is interrupted by a TRUNCATE and killed processes."""

    def write(schema: str, stop: Event) -> None:
        with place.database.connect(schema) as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                number += 1
                cursor.execute(
                    "REPLACE INTO t (id, v, other) VALUES (%s, %s, %s)",
                    (number * 37 % 1500, f"w{number}", number * 37 % 1500),
                )
                cursor.execute("DELETE FROM t WHERE id = %s", (number * 11 % 1500,))

    with (
        new_schema(place.database, *TABLE) as schema,
        running(place, schema, chunk_rows=50) as source,
    ):
        with beside(partial(write, schema)):
            source.wait_chunks(2)
            source.sql("TRUNCATE TABLE t")
            wait_until(lambda: source.copy().generation == 2)
        source.wait_same(2)


# Rows that no message can hold
# ---------------------------------------------------------------------------------------------

LARGE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, v LONGTEXT, other LONGBLOB,"
    " doubled BIGINT AS (id * 2) VIRTUAL, kept BIGINT AS (id * 3) STORED)",
    "INSERT INTO t (id, v) VALUES (1, 'small'), (2, 'small'), (3, 'small')",
)


def large_rows_are_dead_letters(source: Source, large: int) -> None:
    """Rows 4 and 5 come by the copy, 1 and 2 by the log; what is not captured never counts."""

    def is_there(*, without: tuple[int, ...]) -> None:
        def same() -> bool:
            table = {key: row for key, row in source.table().items() if key[0] not in without}
            warnings = source.coordinator.warnings()
            told = warnings[0]["message"] if warnings else ""
            counted = told.startswith(f"{len(without)} row")
            state = source.coordinator.state
            is_whole = state is not None and state.high is not None
            return is_whole and source.copy().rows == table and counted == bool(without)

        wait_until(same, deadline_s=120, what=f"all but {without}")
        assert source.stalls.first() is None

    is_there(without=(4,))
    message = source.coordinator.warnings()[0]["message"]
    assert 'with key {"id":4}' in message
    source.sql(
        f"UPDATE t SET v = REPEAT('x', {large}) WHERE id = 1",
        f"UPDATE t SET other = REPEAT('y', {large}) WHERE id = 2",
        "UPDATE t SET v = 'passed' WHERE id = 3",
    )
    is_there(without=(4, 1))
    source.sql("UPDATE t SET v = 'small again' WHERE id IN (1, 4)", "DELETE FROM t WHERE id = 2")
    is_there(without=())


def test_a_row_beyond_the_limit_is_a_dead_letter_with_its_key(place):
    with new_schema(place.database, *LARGE) as schema:
        run_sql(
            place.database,
            "INSERT INTO t (id, v) VALUES (4, REPEAT('x', 300000))",
            "INSERT INTO t (id, v, other) VALUES (5, 'small', REPEAT('y', 300000))",
            schema=schema,
        )
        with running(place, schema, config={"max.message.bytes": "200000"}) as source:
            large_rows_are_dead_letters(source, 300_000)
