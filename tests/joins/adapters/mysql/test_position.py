"""LOW, HIGH, and whether an old position still means the same."""

import threading

import pytest

from joins.adapters.mysql.chunks import Chunk, read_chunk
from joins.adapters.mysql.events.transactions import Boundary, RowImages
from joins.adapters.mysql.position import (
    BinlogMark,
    binlog_still_has,
    same_history,
    server_identity,
    statement_after,
    take_high,
    take_low,
)
from joins.adapters.mysql.source import check_source, choose_server_id
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.durable.codec import as_json, from_json
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.sql import cdc_connection, new_schema, run_sql
from tests.support.wait import wait_until

FIELDS = (Field("id", SqlType(TypeName.BIGINT)), Field("v", SqlType(TypeName.STRING)))


@pytest.fixture(scope="module")
def own_database(tmp_path_factory, database_home):
    options = {
        "rpl-semi-sync-master-wait-no-slave": "ON",
        "rpl-semi-sync-master-wait-point": "AFTER_SYNC",
        "rpl-semi-sync-master-timeout": "60000",
        "sync-binlog": "1",
    }
    with MariaDb(
        tmp_path_factory.mktemp("own") / "db", database_home, DatabaseSettings(options=options)
    ) as database:
        yield database


def keys_read(config, table) -> set[int]:
    batches = read_chunk(config, table, Chunk(None, None))
    return {key for batch in batches for key in batch.column("id").to_pylist()}


def keys_streamed(config, table, low: BinlogMark, high: BinlogMark) -> set[int]:
    start = StreamStart(choose_server_id(config), low.file_name, low.position.pos)
    stream = BinlogStream(config, table, start)
    keys = set()
    try:
        for event in stream.events():
            if isinstance(event, RowImages):
                keys |= {row[0] for change in event.changes() for row in change if row}
            end = (high.position.file, high.position.pos)
            if isinstance(event, Boundary) and (event.file, event.pos) >= end:
                return keys
    finally:
        stream.close()
    raise AssertionError("the stream ended by itself")


def test_transaction_between_binlog_and_commit_is_not_lost(own_database):
    with new_schema(
        own_database,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))",
        "INSERT INTO t VALUES (1, 'seen')",
    ) as schema:
        config = cdc_connection(own_database, schema)
        table = check_source(config, FIELDS, ("id",))
        before = take_high(config, 0).position
        run_sql(own_database, "SET GLOBAL rpl_semi_sync_master_enabled=ON")
        insert = "INSERT INTO t VALUES (2, 'held')"
        writer = threading.Thread(
            target=run_sql, args=(own_database, insert), kwargs={"schema": schema}
        )
        try:
            writer.start()
            wait_until(lambda: take_high(config, 0).position > before, deadline_s=20)
            low = take_low(config, 0)
            snapshot = keys_read(config, table)
            assert writer.is_alive()
            assert snapshot == {1}
            assert low.position == before < take_high(config, 0).position
        finally:
            run_sql(own_database, "SET GLOBAL rpl_semi_sync_master_enabled=OFF")
            writer.join()
        high = take_high(config, 0)
        assert snapshot | keys_streamed(config, table, low, high) == {1, 2}


def test_low_and_high_of_a_quiet_server_are_the_same_place(own_database):
    with new_schema(own_database, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))") as schema:
        config = cdc_connection(own_database, schema)
        low, high = take_low(config, 3), take_high(config, 3)
        assert low.position == high.position
        assert low.position.epoch == 3
        assert low.gtid == high.gtid
        assert from_json(BinlogMark, as_json(low)) == low
        assert binlog_still_has(config, low)
        assert same_history(config, low)
        assert server_identity(config).same_server(server_identity(config))


def test_the_change_behind_a_position_is_named_by_its_statement(own_database):
    with new_schema(own_database, "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))") as schema:
        config = cdc_connection(own_database, schema)
        low = take_high(config, 0)
        assert statement_after(config, low) == ""
        run_sql(own_database, "INSERT INTO t VALUES (1, 'named')", schema=schema)
        assert "INSERT INTO t VALUES (1, 'named')" in statement_after(config, low)


def test_reset_of_the_binlog_is_noticed(own_database):
    table = "CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(9))"
    with new_schema(own_database, table) as schema:
        config = cdc_connection(own_database, schema)
        run_sql(own_database, "FLUSH BINARY LOGS", "INSERT INTO t VALUES (1, 'a')", schema=schema)
        mark = take_high(config, 0)
        run_sql(own_database, "RESET MASTER")
        assert not binlog_still_has(config, mark)
        inserts = [f"INSERT INTO t VALUES ({n}, 'b')" for n in range(2, 30)]
        run_sql(own_database, "FLUSH BINARY LOGS", *inserts, schema=schema)
        assert binlog_still_has(config, mark)
        assert not same_history(config, mark)
