"""A stream that goes on at a replica of real servers: no change twice, none left out."""

from dataclasses import replace

import pytest

from joins.adapters.mysql.events.transactions import Boundary, RowImages
from joins.adapters.mysql.failover import applied_at, take_over
from joins.adapters.mysql.gtids import gtid_position
from joins.adapters.mysql.position import server_identity, take_high, take_low
from joins.adapters.mysql.sender import AcknowledgedBoundary, CdcConfig
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.durable.checkpoint import read_document
from joins.durable.codec import as_json, from_json
from joins.plan.errors import SnapshotNeededError
from joins.plan.plan import KafkaOptions
from tests.support.cdc import FIELDS, PARTITIONS, TABLE, CdcProcess, records_of
from tests.support.copies import copy_of
from tests.support.mysql import mysql_home
from tests.support.replicas import OF_MYSQL, replicas
from tests.support.sql import cdc_connection, run_sql
from tests.support.topics import create_topic, delete_topics

SERVER_ID = 4_000_000
ROWS = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
    "SELECT i, 'before' FROM n"
)


@pytest.fixture
def servers(database_home, tmp_path):
    with replicas(tmp_path, database_home) as made:
        yield with_table(made)


def with_table(made):
    run_sql(made.primary, "CREATE DATABASE shop")
    run_sql(made.primary, TABLE, schema="shop")
    return made


@pytest.fixture
def servers_of_mysql(tmp_path):
    with replicas(tmp_path, mysql_home(), OF_MYSQL) as made:
        yield with_table(made)


def config_of(servers, port):
    config = cdc_connection(servers.primary, "shop", port=port)
    return config.of_server(server_identity(config))


def changes_to(stream, mark):
    """(changes up to a position, the boundary there)."""
    changes = []
    try:
        for event in stream.events():
            if isinstance(event, RowImages):
                changes += [(event.op, *change) for change in event.changes()]
            elif isinstance(event, Boundary):
                place = (event.file, event.pos)
                if place >= (mark.position.file, mark.position.pos):
                    return changes, event
    finally:
        stream.close()
    raise AssertionError("the stream has ended")


def test_a_stream_goes_on_at_a_replica_or_says_why_not(servers, tmp_path):
    """Two domains, whose transactions the job has read in part, in two binlog files."""
    primary, replica = servers.primary, servers.replica
    config = config_of(servers, primary.port)
    table, low = check_source(config, FIELDS, ("id",)), take_low(config, 0)
    run_sql(
        primary,
        "INSERT INTO t VALUES (1, 'a')",
        "SET SESSION gtid_domain_id = 7",
        "INSERT INTO t VALUES (2, 'b')",
        "SET SESSION gtid_domain_id = 0",
        "UPDATE t SET v = 'c' WHERE id = 1",
        schema="shop",
    )
    start = StreamStart(SERVER_ID, low.file_name, low.position.pos, gtid_position(low.gtid or ""))
    _, read = changes_to(BinlogStream(config, table, start), take_high(config, 0))
    assert str(read.gtids).endswith("7-1-1")
    run_sql(primary, "INSERT INTO t VALUES (3, 'unread')", schema="shop")
    servers.wait_replicated()
    run_sql(replica, "FLUSH BINARY LOGS")
    run_sql(primary, "DELETE FROM t WHERE id = 2", schema="shop")
    servers.wait_replicated()
    servers.fail_over()
    config = config_of(servers, replica.port)
    gtids = str(read.gtids)
    position = replace(low.position, file=read.file, pos=read.pos)
    kept = AcknowledgedBoundary(position, 0, 1, gtids, gtids)

    first = take_over(config, kept, 1)
    run_sql(replica, "INSERT INTO t VALUES (4, 'after')", schema="shop")
    cdc = CdcConfig(
        *(config, table, SERVER_ID, first.low, 1, KafkaOptions("nowhere:1", "t"), 2),
        tmp_path / "boundary.json",
        takeover=first.takeover,
    )
    assert from_json(CdcConfig, as_json(cdc)) == cdc
    applied = applied_at(cdc, None)
    start = StreamStart(
        SERVER_ID, first.low.file_name, first.low.position.pos, applied.gtids, applied.new
    )
    changes, end = changes_to(BinlogStream(config, table, start), take_high(config, 1))
    assert changes == [
        ("c", None, [3, "unread"]),
        ("d", [2, "b"], None),
        ("c", None, [4, "after"]),
    ]
    assert end.gtids.lacks(applied.new.executed) == ""
    refused = {
        f"{end.gtids},0-1-99": "it has not transaction 0-1-99",
        f"{end.gtids},3-1-1": "it has not transaction 3-1-1",
        None: "the CDC process was killed",
    }
    for sent, why in refused.items():
        with pytest.raises(SnapshotNeededError, match=why):
            take_over(config, replace(kept, sent=sent), 2)
    with pytest.raises(SnapshotNeededError, match="the GTIDs of what was applied are not known"):
        take_over(config, replace(kept, gtids=None), 2)
    servers.purge_replica()
    with pytest.raises(SnapshotNeededError, match=r"it has purged transaction 0-2-\d+, which was"):
        take_over(config, kept, 2)


@pytest.mark.parametrize(
    "kind", ["servers", pytest.param("servers_of_mysql", marks=pytest.mark.experiment)]
)
def test_the_process_of_a_source_goes_on_at_a_replica(kind, request, kafka, tmp_path):
    """It ends where another server answers, and the next one reads there from what was sent."""
    servers = request.getfixturevalue(kind)
    primary, replica = servers.primary, servers.replica
    topic = create_topic(kafka.bootstrap_servers, partitions=PARTITIONS)
    connection = config_of(servers, servers.address)
    table, low = check_source(connection, FIELDS, ("id",)), take_low(connection, 0)
    options = KafkaOptions(kafka.bootstrap_servers, topic)
    file = tmp_path / "boundary.json"
    config = CdcConfig(connection, table, SERVER_ID, low, 1, options, PARTITIONS, file)
    run_sql(primary, "INSERT INTO t " + ROWS, schema="shop")
    with CdcProcess(config) as process:
        process.high(take_high(connection, 0))
        process.wait_for("watermark")
        run_sql(primary, "UPDATE t SET v = 'sent' WHERE id % 2 = 0", schema="shop")
        process.wait_for_position(take_high(connection, 0))
        servers.wait_replicated()
        servers.fail_over()
        run_sql(replica, "UPDATE t SET v = 'after' WHERE id % 3 = 0", schema="shop")
        error = process.wait_for("error", lambda e: not e["retry"], deadline_s=60)
        assert error["type"] == "ServerChangedError"
        assert process.exit_code() == 1
    kept = read_document(file, AcknowledgedBoundary)
    assert kept.sent == kept.gtids
    connection = config_of(servers, servers.address)
    first = take_over(connection, kept, 1)
    again = replace(config, connection=connection, low=first.low, takeover=first.takeover)
    with CdcProcess(again) as process:
        process.high(first.high)
        process.wait_for("watermark", deadline_s=60)
        run_sql(replica, "DELETE FROM t WHERE id > 490", schema="shop")
        process.wait_for_position(take_high(connection, 1))
        assert process.stop() == 0
    rows = run_sql(replica, "SELECT id, v FROM t", schema="shop")
    copy = copy_of(records_of(again), PARTITIONS)
    assert {key[0]: row["v"] for key, row in copy.rows.items()} == dict(rows)
    kept = read_document(file, AcknowledgedBoundary)
    assert kept.position.epoch == 1
    assert kept.position.file >= first.low.position.file
    assert kept.sent == kept.gtids
    delete_topics(kafka.bootstrap_servers, topic)
