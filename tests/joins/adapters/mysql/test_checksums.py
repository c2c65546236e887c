"""Files of a binlog with and without checksums, whatever the server's setting is now."""

import json

import pytest

from joins.adapters.mysql.position import take_high
from tests.support.cdc import CdcProcess, captured_table, records_of
from tests.support.sql import run_sql


@pytest.mark.parametrize("checksums", [("CRC32", "NONE"), ("NONE", "CRC32")], ids="-".join)
def test_files_with_and_without_checksums_are_read(own_database, kafka, tmp_path, checksums):
    """A row has as many bytes as a checksum: an event that is cut by one lacks its last row."""
    first, second = (f"SET GLOBAL binlog_checksum={each}" for each in checksums)
    small = "ALTER TABLE t MODIFY id MEDIUMINT"
    [[before]] = run_sql(own_database, "SELECT @@GLOBAL.binlog_checksum")
    run_sql(own_database, first)

    def insert(row):
        return f"INSERT INTO t VALUES ({row}, NULL), ({row + 1}, NULL)"

    try:
        with captured_table(own_database, kafka.bootstrap_servers, tmp_path, small) as (
            schema,
            config,
        ):
            with CdcProcess(config) as process:
                run_sql(own_database, insert(1), schema=schema)
                process.wait_for_position(take_high(config.connection, 0))
                run_sql(own_database, second, insert(3), schema=schema)
                process.wait_for_position(take_high(config.connection, 0))
                assert process.stop() == 0
            run_sql(own_database, insert(5), first, insert(7), schema=schema)
            with CdcProcess(config) as again:
                again.wait_for_position(take_high(config.connection, 0))
            events = [*process.events, *again.events]
            assert [event for event in events if event["event"] == "error"] == []
            ids = {json.loads(record.key)["id"] for record in records_of(config)}
            assert sorted(ids) == [1, 2, 3, 4, 5, 6, 7, 8]
    finally:
        run_sql(own_database, f"SET GLOBAL binlog_checksum={before}")


def test_a_statement_is_whole_in_a_file_without_checksums(own_database, kafka, tmp_path):
    """Cut by a checksum, TRUNCATE TABLE t is TRUNCATE TAB, of another table."""
    [[before]] = run_sql(own_database, "SELECT @@GLOBAL.binlog_checksum")
    run_sql(own_database, "SET GLOBAL binlog_checksum=CRC32")
    try:
        with (
            captured_table(own_database, kafka.bootstrap_servers, tmp_path) as (schema, config),
            CdcProcess(config) as process,
        ):
            process.wait_for("streaming")
            run_sql(
                own_database,
                "SET GLOBAL binlog_checksum=NONE",
                "TRUNCATE TABLE t",
                schema=schema,
            )
            error = process.wait_for("error")
            assert error["type"] == "SnapshotNeededError"
            assert 'by "TRUNCATE TABLE t"' in error["message"]
    finally:
        run_sql(own_database, f"SET GLOBAL binlog_checksum={before}")
