"""The CDC process on a real MariaDB and broker: nothing lost, watermarks, errors."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest

from joins.adapters.mysql.position import take_high
from joins.adapters.mysql.sender import AcknowledgedBoundary
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import as_json
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.cdc import (
    FIELDS,
    PARTITIONS,
    CdcProcess,
    captured_table,
    newest,
    position_of,
    records_of,
)
from tests.support.lanes import some_of
from tests.support.sql import run_sql
from tests.support.wait import wait_until

RAW_FIELDS = (FIELDS[0], Field("v", SqlType(TypeName.BYTES)))


@pytest.fixture(scope="module")
def mariadb(own_database: MariaDb) -> MariaDb:
    return own_database


def test_changes_arrive_in_order_with_positions(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        run_sql(
            mariadb,
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "UPDATE t SET v = 'c' WHERE id = 1",
            "UPDATE t SET id = 3 WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
            schema=schema,
        )
        with CdcProcess(config) as process:
            process.wait_for_position(take_high(config.connection, 0))
            assert process.stop() == 0
        values = [json.loads(record.value) for record in records_of(config)]
        values.sort(key=position_of)
        told = [(v["op"], v["before"], v["after"]) for v in values]
        a, b, c, d = ({"id": i, "v": t} for i, t in ((1, "a"), (2, "b"), (1, "c"), (3, "c")))
        assert told == [
            ("c", None, a),
            ("c", None, b),
            ("u", a, c),
            ("d", c, None),
            ("c", None, d),
            ("d", b, None),
        ]
        assert [v["source"]["row"] for v in values] == [0, 1, 0, 0, 1, 0]
        assert values[0]["source"]["pos"] == config.low.position.pos


def test_watermark_is_written_to_every_partition_after_high(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        run_sql(mariadb, "INSERT INTO t SELECT seq, 'x' FROM seq_1_to_5000", schema=schema)
        high = take_high(config.connection, 0)
        with CdcProcess(config) as process:
            process.high(high)
            event = process.wait_for("watermark")
        assert event["generation"] == 1
        records = records_of(config)
        marks = [record for record in records if record.key is None]
        assert {(m.partition, m.offset) for m in marks} == {
            (p["partition"], p["offset"]) for p in event["partitions"]
        }
        assert len(marks) == PARTITIONS
        last = {p: max(r.offset for r in records if r.partition == p) for p in range(PARTITIONS)}
        assert all(mark.offset == last[mark.partition] for mark in marks)
        assert len(newest(records)) == 5000


def test_idle_table_beside_a_busy_one_reaches_high(mariadb, kafka, tmp_path):
    busy = "CREATE TABLE busy (id BIGINT PRIMARY KEY AUTO_INCREMENT, v INT)"
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path, busy) as (schema, config):
        inserts = ["INSERT INTO busy (v) SELECT seq FROM seq_1_to_100"] * 50
        run_sql(mariadb, *inserts, "FLUSH BINARY LOGS", inserts[0], schema=schema)
        high = take_high(config.connection, 0)
        assert high.position > config.low.position
        with CdcProcess(config) as process:
            process.high(high)
            process.wait_for("watermark")
        assert [record.key for record in records_of(config)] == [None] * PARTITIONS


@contextmanager
def halted(database: MariaDb):
    [server] = [
        each
        for each in psutil.process_iter(["name", "cmdline"])
        if each.info["name"] == "mariadbd" and f"--port={database.port}" in each.info["cmdline"]
    ]
    server.suspend()
    try:
        yield
    finally:
        server.resume()


def proven(process, mark, *, after_ms=0):
    """The first answer, of a question after `after_ms`, whose position is `mark` or later."""
    place = (mark.file_name, mark.position.pos)

    def is_behind(event):
        position = event["position"]
        return event["time_ms"] >= after_ms and (position["file"], position["pos"]) >= place

    return process.wait_for("fresh", is_behind)


def test_time_and_position_are_proven_once_kafka_has_the_changes(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        config = replace(config, freshness_s=0.2)
        run_sql(mariadb, "INSERT INTO t VALUES (1, 'a')", schema=schema)
        with CdcProcess(config) as process:
            process.wait_for_position(take_high(config.connection, 0))
            assert [e for e in process.events if e["event"] == "fresh"] == []  # not whole yet
            process.high(take_high(config.connection, 0))
            process.wait_for("watermark")
            run_sql(mariadb, "INSERT INTO t VALUES (2, 'b')", schema=schema)
            event = proven(process, take_high(config.connection, 0))
            count = len(records_of(config))
            assert count == 2 + PARTITIONS
            assert abs(event["source_ms"] - event["time_ms"]) < 60_000
            assert abs(event["offset_ms"]) <= event["within_ms"] + 1_000
            [[gtid]] = run_sql(mariadb, "SELECT @@GLOBAL.gtid_binlog_pos")
            assert event["position"]["gtid"] == gtid


def test_quiet_server_advances_like_a_busy_one(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        config = replace(config, freshness_s=0.2)
        with CdcProcess(config) as process:
            process.high(take_high(config.connection, 0))
            first = process.wait_for("fresh")
            second = process.wait_for("fresh", lambda e: e["time_ms"] > first["time_ms"])
            assert second["position"] == first["position"]
            run_sql(mariadb, "FLUSH BINARY LOGS")
            high = take_high(config.connection, 0)
            assert proven(process, high)["position"]["file"] == high.file_name


def test_server_that_does_not_answer_leaves_the_time_where_it_is(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        config = replace(config, freshness_s=0.2)
        with CdcProcess(config) as process:
            process.high(take_high(config.connection, 0))
            process.wait_for("fresh")
            with halted(mariadb):
                paused_ms = time.time_ns() // 1_000_000
                reports = sum(e["event"] == "progress" for e in process.events)
                wait_until(
                    lambda: sum(e["event"] == "progress" for e in process.events) > reports + 2,
                    deadline_s=30,
                    what="reports of the process",
                )
                times = [e["time_ms"] for e in process.events if e["event"] == "fresh"]
                assert max(times) <= paused_ms
            process.wait_for("fresh", lambda e: e["time_ms"] > paused_ms)


def test_quiet_server_reaches_high_at_once(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        with CdcProcess(config) as process:
            process.high(take_high(config.connection, 0))
            process.wait_for("watermark")
            process.high(take_high(config.connection, 0))
            assert process.end_input() == 0
        assert (
            read_document(config.offset_file, AcknowledgedBoundary).position == config.low.position
        )


def test_big_transaction_keeps_the_boundary_before_it_and_little_memory(mariadb, kafka, tmp_path):
    """A million rows of 150 bytes were measured once: 40 MiB more than at rest."""
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        big = "INSERT INTO t SELECT seq, REPEAT('x', 50) FROM seq_1_to_100000"
        run_sql(mariadb, big, schema=schema)
        with CdcProcess(config) as process:
            process.wait_for("streaming")
            at_rest = psutil.Process(process.pid).memory_info().rss
            event = process.wait_for("progress", lambda e: e["records"] > 0)
            assert event["records"] < 100_000
            assert event["acknowledged"]["pos"] == config.low.position.pos
            process.wait_for_position(take_high(config.connection, 0))
            assert psutil.Process(process.pid).memory_info().rss - at_rest < 80 << 20
        rows = [json.loads(r.value)["source"]["row"] for r in records_of(config)]
        assert sorted(rows) == list(range(100_000))


DDL = {
    "truncate": ["TRUNCATE TABLE t"],
    "drop": ["DROP TABLE t"],
    "captured_column_dropped": ["ALTER TABLE t DROP COLUMN v"],
    "captured_column_retyped": ["ALTER TABLE t MODIFY v BLOB"],
    "statement_format": ["SET SESSION binlog_format=STATEMENT", "UPDATE t SET v = 'x'"],
    "set_statement": ["SET STATEMENT max_statement_time=60 FOR TRUNCATE TABLE t"],
    "undone_beside_a_temporary_table": [
        "BEGIN",
        "INSERT INTO t VALUES (2, 'undone')",
        "CREATE TEMPORARY TABLE kept (id INT)",
        "ROLLBACK",
    ],
    "undone_to_a_savepoint": [
        "CREATE TABLE plain (id INT) ENGINE=MyISAM",
        "BEGIN",
        "INSERT INTO plain VALUES (1)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (2, 'undone')",
        "INSERT INTO plain VALUES (2)",
        "ROLLBACK TO s",
        "COMMIT",
    ],
    "partial_row_image": [
        "SET SESSION binlog_row_image=MINIMAL",
        "UPDATE t SET v = 'y' WHERE id = 1",
    ],
    "column_whose_length_is_not_told": [
        "SET GLOBAL mysql56_temporal_format=OFF",
        "ALTER TABLE t ADD ts TIMESTAMP(1) NULL FIRST",
        "SET GLOBAL mysql56_temporal_format=ON",
        "INSERT INTO t (id, v) VALUES (2, 'b')",
        "ALTER TABLE t DROP ts",
    ],
}


# test_statements.py reads what the others say.
IN_EVERY_RUN = (
    *("captured_column_retyped", "set_statement", "undone_to_a_savepoint"),
    *("partial_row_image", "column_whose_length_is_not_told"),
)


@pytest.mark.parametrize("statements", some_of(DDL, *IN_EVERY_RUN))
def test_change_that_cannot_be_followed_ends_the_process(own_database, kafka, tmp_path, statements):
    """On a server that no other test follows: some statements concern its other tables, too."""
    row = "INSERT INTO t VALUES (1, 'a')"
    with (
        captured_table(own_database, kafka.bootstrap_servers, tmp_path, row) as (schema, config),
        CdcProcess(config) as process,
    ):
        process.wait_for("streaming")
        run_sql(own_database, *statements, schema=schema)
        error = process.wait_for("error")
        assert error["retry"] is False
        assert error["hint"]
        assert process.exit_code() == 1


def test_added_column_and_other_tables_are_ignored(mariadb, kafka, tmp_path):
    with (
        captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config),
        CdcProcess(config) as process,
    ):
        run_sql(
            mariadb,
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t ADD COLUMN first INT DEFAULT 5 FIRST",
            "INSERT INTO t (id, v) VALUES (2, 'b')",
            "CREATE TABLE tt LIKE t",
            "TRUNCATE TABLE tt",
            "DROP TABLE tt",
            "ALTER TABLE t MODIFY v LONGTEXT",
            "INSERT INTO t (id, v) VALUES (3, 'c')",
            schema=schema,
        )
        process.wait_for_position(take_high(config.connection, 0))
        assert newest(records_of(config)) == {1: "a", 2: "b", 3: "c"}
        assert [e for e in process.events if e["event"] == "error"] == []


def test_values_are_read_by_what_their_column_was_then(mariadb, kafka, tmp_path):
    with (
        captured_table(
            mariadb,
            kafka.bootstrap_servers,
            tmp_path,
            "ALTER TABLE t MODIFY v BINARY(4)",
            columns=RAW_FIELDS,
        ) as (schema, config),
        CdcProcess(config) as process,
    ):
        run_sql(
            mariadb,
            "INSERT INTO t VALUES (1, 'a')",
            "ALTER TABLE t MODIFY v VARBINARY(10)",
            "INSERT INTO t VALUES (2, 'b')",
            schema=schema,
        )
        process.wait_for_position(take_high(config.connection, 0))
        assert newest(records_of(config)) == {1: "YQAAAA==", 2: "Yg=="}
        assert [e for e in process.events if e["event"] == "error"] == []


def test_an_update_of_which_the_binlog_has_what_changed_is_whole(mariadb, kafka, tmp_path):
    wide = "ALTER TABLE t ADD a INT DEFAULT 1, ADD b INT DEFAULT 2"
    with (
        captured_table(mariadb, kafka.bootstrap_servers, tmp_path, wide) as (schema, config),
        CdcProcess(config) as process,
    ):
        run_sql(
            mariadb,
            "INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b')",
            "SET SESSION binlog_row_image='FULL_NODUP'",
            "UPDATE t SET b = b + 19",
            "UPDATE t SET v = 'c' WHERE id = 2",
            schema=schema,
        )
        process.wait_for_position(take_high(config.connection, 0))
        assert newest(records_of(config)) == {1: "a", 2: "c"}
        assert [e for e in process.events if e["event"] == "error"] == []


COMPRESSED = {
    *("Query_compressed", "Write_rows_compressed_v1", "Update_rows_compressed_v1"),
    "Delete_rows_compressed_v1",
}
LENGTHS = (0, 1, 9, 10, 11, 200, 255, 256, 257, 65_535, 65_536, 2_000_000)


def test_compressed_events_of_every_size_are_read(own_database, kafka, tmp_path):
    wide = "ALTER TABLE t MODIFY v LONGTEXT"
    [before] = run_sql(
        own_database, "SELECT @@GLOBAL.log_bin_compress, @@GLOBAL.log_bin_compress_min_len"
    )
    run_sql(
        own_database, "SET GLOBAL log_bin_compress=ON", "SET GLOBAL log_bin_compress_min_len=10"
    )
    try:
        with (
            captured_table(own_database, kafka.bootstrap_servers, tmp_path, wide) as (
                schema,
                config,
            ),
            CdcProcess(config) as process,
        ):
            inserts = [
                f"INSERT INTO t VALUES ({at}, REPEAT(CHAR(97 + {at}), {length}))"
                for at, length in enumerate(LENGTHS)
            ]
            run_sql(
                own_database,
                *inserts,
                "INSERT INTO t SELECT seq, REPEAT(CHAR(65 + seq % 26), seq) FROM seq_100_to_900",
                "ALTER TABLE t ADD COLUMN other INT DEFAULT 5, COMMENT 'is compressed, too'",
                "UPDATE t SET v = REPEAT('z', id) WHERE id % 3 = 0",
                "DELETE FROM t WHERE id % 7 = 0",
                schema=schema,
            )
            high = take_high(config.connection, 0)
            process.wait_for_position(high)
            rows = run_sql(own_database, "SELECT id, v FROM t", schema=schema)
            assert newest(records_of(config)) == dict(rows)
            assert [e for e in process.events if e["event"] == "error"] == []
            file, pos = config.low.file_name, config.low.position.pos
            events = run_sql(own_database, f"SHOW BINLOG EVENTS IN '{file}' FROM {pos}")
            assert {str(event[2]) for event in events} >= COMPRESSED
    finally:
        run_sql(
            own_database,
            f"SET GLOBAL log_bin_compress={before[0]}",
            f"SET GLOBAL log_bin_compress_min_len={before[1]}",
        )


def test_database_that_comes_back_is_followed_again(tmp_path, database_home, kafka):
    with (
        MariaDb(tmp_path / "db", database_home) as database,
        captured_table(database, kafka.bootstrap_servers, tmp_path) as (schema, config),
        CdcProcess(config) as process,
    ):
        run_sql(database, "INSERT INTO t VALUES (1, 'a')", schema=schema)
        process.wait_for_position(take_high(config.connection, 0))
        database.stop()
        error = process.wait_for("error")
        assert error["retry"] is True
        assert error["type"] == "SourceUnavailableError"
        database.start()
        run_sql(database, "INSERT INTO t VALUES (2, 'b')", schema=schema)
        process.high(take_high(config.connection, 0))
        process.wait_for("watermark")
        assert newest(records_of(config)) == {1: "a", 2: "b"}


@pytest.mark.experiment
def test_broker_that_comes_back_gets_every_record(tmp_path, mariadb, java, broker_jars):
    with (
        KafkaBroker(tmp_path / "kafka", java, broker_jars) as broker,
        captured_table(mariadb, broker.bootstrap_servers, tmp_path) as (schema, config),
        CdcProcess(config) as process,
    ):
        run_sql(mariadb, "INSERT INTO t VALUES (1, 'a')", schema=schema)
        process.wait_for_position(take_high(config.connection, 0))
        broker.stop()
        run_sql(mariadb, "INSERT INTO t VALUES (2, 'b')", schema=schema)
        process.high(take_high(config.connection, 0))
        broker.start()
        process.wait_for("watermark", deadline_s=90)
        assert newest(records_of(config)) == {1: "a", 2: "b"}


def test_what_earlier_sessions_have_sent_is_known_until_it_is_read_again(mariadb, kafka, tmp_path):
    """A session that ends early, or follows a killed one, does not call too little sent."""
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        config, file = replace(config, freshness_s=0.2), config.offset_file
        run_sql(mariadb, "INSERT INTO t VALUES (1, 'a')", schema=schema)
        high = take_high(config.connection, 0)

        def after_session(sent, *, until):
            write_document(file, replace(kept, sent=sent))
            with CdcProcess(config) as process:
                process.wait_for("streaming")
                if until != "streaming":
                    process.high(high)
                event = process.wait_for(until)
                process.stop()
            return event, read_document(file, AcknowledgedBoundary).sent

        with CdcProcess(config) as process:
            process.wait_for_position(high)
            process.stop()
        kept = read_document(file, AcknowledgedBoundary)
        assert kept.sent == kept.gtids
        lost = f"{kept.gtids},99-1-7"
        assert after_session(lost, until="streaming")[1] == lost
        assert after_session(None, until="streaming")[1] is None
        assert after_session(None, until="fresh")[1] == kept.gtids
        error, _ = after_session(lost, until="error")
        assert error["type"] == "SnapshotNeededError"
        assert "no longer has transaction 99-1-7" in error["message"]


def purged_to(server: MariaDb, last: str) -> bool:
    run_sql(server, f"PURGE BINARY LOGS TO '{last}'")
    return bool(run_sql(server, "SHOW BINARY LOGS")[0][0] == last)


def test_purged_binlog_is_a_permanent_error(tmp_path, database_home, kafka):
    with (
        MariaDb(tmp_path / "db", database_home) as database,
        captured_table(database, kafka.bootstrap_servers, tmp_path) as (_, config),
    ):
        run_sql(database, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        last = run_sql(database, "SHOW MASTER STATUS")[0][0]
        wait_until(lambda: purged_to(database, last), what="it is purged")
        with CdcProcess(config) as process:
            error = process.wait_for("error")
            assert error["retry"] is False
            assert "purged" in error["hint"]
            assert process.exit_code() == 1


PARENT = """
import subprocess, sys, time
command = [sys.executable, "-m", "joins.adapters.mysql.binlog"]
child = subprocess.Popen(command, stdout=subprocess.PIPE)
child.stdout.readline()
sys.stdout.write(f"{child.pid}\\n")
sys.stdout.flush()
time.sleep(600)
"""


def test_process_dies_with_its_parent_even_when_input_stays_open(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (_, config):
        command = [sys.executable, "-c", PARENT]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent:
            parent.stdin.write(json.dumps({"config": as_json(config)}) + "\n")
            parent.stdin.flush()
            child = psutil.Process(int(parent.stdout.readline()))
            assert child.is_running()
            parent.kill()
            wait_until(lambda: not child.is_running() or child.status() == "zombie", deadline_s=10)
