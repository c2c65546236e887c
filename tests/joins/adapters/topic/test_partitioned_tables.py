"""A table with partitions, whose records are in one topic: by PostgreSQL, and as they were made."""

import json
from datetime import date, timedelta

import pytest

from joins.adapters.topic.feed_state import TopicFeedConfig, write_decisions
from joins.plan.errors import ForeignRecordError, SourceError
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field, KafkaOptions, SnapshotEvidence, TopicSource
from joins.plan.types import SqlType, TypeName
from tests.joins.adapters.topic.test_feed import skipped
from tests.support.debezium import postgres_source
from tests.support.foreign_topics import Connector, TopicFeed, envelope, heard, row, topic_feed
from tests.support.topics import create_topic
from tests.support.wait import wait_until

EPOCH = date(1970, 1, 1)
COLUMNS = (
    Field("id", SqlType(TypeName.BIGINT), nullable=False),
    Field("day", SqlType(TypeName.DATE), nullable=False),
    Field("name", SqlType(TypeName.STRING)),
)
TABLE = (
    "CREATE TABLE orders (id BIGINT, day DATE, name TEXT, PRIMARY KEY (id, day)) "
    "PARTITION BY RANGE (day)",
    "CREATE TABLE orders_2024 PARTITION OF orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')",
    "CREATE TABLE orders_2025 PARTITION OF orders FOR VALUES FROM ('2025-01-01') TO ('2026-01-01')",
    "CREATE TABLE orders_rest PARTITION OF orders DEFAULT",
    "CREATE TABLE others (id BIGINT PRIMARY KEY, name TEXT)",
    "INSERT INTO orders SELECT n, date '2024-01-01' + n * 40, 'n' || n "
    "FROM generate_series(1, 30) AS n",
    "INSERT INTO others VALUES (1, 'other')",
)
CHANGES = (
    "UPDATE orders SET name = 'changed' WHERE id = 1",
    "UPDATE orders SET day = '2025-06-01' WHERE id = 2",  # into another partition
    "UPDATE orders SET day = '2024-06-01', name = 'back' WHERE id = 30",
    "DELETE FROM orders WHERE id = 3",
    "INSERT INTO orders VALUES (100, '2024-02-29', 'new'), (101, '2030-01-01', 'late')",
    # as the rows of a default partition are moved into one of their own
    "WITH moved AS (DELETE FROM orders WHERE day = '2030-01-01' RETURNING *), "
    "  kept AS (SELECT id, day, name FROM moved) INSERT INTO others SELECT id, name FROM kept",
    "CREATE TABLE orders_2030 PARTITION OF orders FOR VALUES FROM ('2030-01-01') TO ('2031-01-01')",
    "INSERT INTO orders VALUES (101, '2030-01-01', 'moved')",
)
ROUTE = {
    "transforms": "route",
    "transforms.route.type": "io.debezium.transforms.ByLogicalTableRouter",
    "transforms.route.topic.regex": r"(.*)\.orders_.*",
    "transforms.route.topic.replacement": "$1.orders",
    "transforms.route.key.enforce.uniqueness": "false",
}
BY_ROOT = 'ALTER PUBLICATION "{}" SET (publish_via_partition_root = true)'
PARTITIONS = {"orders_2024", "orders_2025", "orders_2030", "orders_rest"}
WAYS = {
    "partitions": ({"table.include.list": r"public\.(orders_.*|others)", **ROUTE}, "orders_.*"),
    "parent": ({"table.include.list": "public.orders"}, None),
}


def feed_of(source, directory, pattern, **evidence):
    form = RecordFormat(
        KafkaFormat.DEBEZIUM_JSON,
        () if pattern is None else (("source.table-pattern", pattern),),
    )
    kafka = KafkaOptions(source.kafka.bootstrap_servers, source.topic("orders"))
    changelog = create_topic(source.kafka.bootstrap_servers, partitions=2)
    return TopicFeed(
        TopicFeedConfig(
            source=TopicSource(
                kafka=kafka,
                value=form,
                evidence=SnapshotEvidence(settle_ms=0, **evidence),
                changelog_partitions=2,
            ),
            fields=COLUMNS,
            primary_key=("id", "day"),
            kafka=KafkaOptions(source.kafka.bootstrap_servers, changelog),
            state_file=directory / "source.json",
            decisions_file=directory / "decisions.json",
        )
    )


@pytest.mark.parametrize(("settings", "pattern"), WAYS.values(), ids=WAYS)
def test_a_table_with_partitions_is_one_table(
    settings, pattern, kafka, connect, postgres, tmp_path
):
    with postgres_source(connect, kafka, postgres, *TABLE, settings=settings) as source:
        if pattern is None:
            source.sql(BY_ROOT.format(source.prefix))
        source.start()
        source.await_snapshot()
        source.await_records("orders", 30)
        feed = feed_of(source, tmp_path, pattern, notifications_topic=source.notification_topic)
        wait_until(lambda: feed.run()["complete"], deadline_s=90, what="the proof")
        assert rows_of(feed) == in_database(source)
        source.sql(*CHANGES)
        wait_until(lambda: feed.run() and rows_of(feed) == in_database(source), what="the changes")
        tables = [json.loads(r.value) for r in source.records("orders") if r.value is not None]
        names = {each["payload"]["source"]["table"] for each in tables}
        assert names == ({"orders"} if pattern is None else PARTITIONS)
        source.begin_anew(
            "DELETE FROM orders WHERE id < 10", "INSERT INTO orders VALUES (1, '2024-01-01', 'x')"
        )
        source.await_snapshot(count=2)
        wait_until(lambda: feed.run()["complete"], deadline_s=90, what="the second proof")
        assert feed.told.state["generation"] == 2
        assert rows_of(feed) == in_database(source)


OF_PARTITIONS = RecordFormat(KafkaFormat.DEBEZIUM_JSON, (("source.table-pattern", "users_[0-9]"),))


def change(connector, table, op, key, snapshot="false"):
    old, new = (row(key, table), None) if op == "d" else (None, row(key, table))
    record = envelope(op, old, new, snapshot, connector.tick())
    record["source"] |= {"table": table, "file": "log", "pos": 7 if op == "r" else connector.at_ms}
    connector.send({"id": key}, record)


@pytest.fixture
def single(kafka):
    made = Connector(kafka.bootstrap_servers)
    yield made
    made.close()


def test_the_last_row_of_one_partition_does_not_prove_the_table(single, tmp_path):
    feed = topic_feed(single, tmp_path, heard(single), value=OF_PARTITIONS)
    single.notify("STARTED")
    change(single, "users_1", "r", 1, "first_in_data_collection")
    change(single, "users_1", "r", 2, "last_in_data_collection")
    single.notify("TABLE_SCAN_COMPLETED", scanned_collection="shop.users_1", total_rows_scanned="2")
    assert feed.run()["missing"] == "evidence"
    change(single, "users_2", "r", 3, "first_in_data_collection")
    change(single, "users", "r", 9, "first_in_data_collection")
    change(single, "users_2", "r", 4, "last")
    assert feed.run()["missing"] == "evidence"
    single.notify("COMPLETED")
    state = feed.run()
    assert (state["complete"], state["generation"]) == (True, 1)
    assert feed.rows() == {1: "users_1", 2: "users_1", 3: "users_2", 4: "users_2"}


def test_a_repeated_first_row_of_a_partition_begins_a_later_snapshot(single, tmp_path):
    """Of the snapshot before nothing else shows that it was given up."""
    feed = topic_feed(single, tmp_path, value=OF_PARTITIONS)
    change(single, "users_1", "r", 1, "first_in_data_collection")
    change(single, "users_2", "r", 2, "first_in_data_collection")
    assert feed.run()["generation"] == 1
    for table, key in (("users_1", 3), ("users_2", 4)):
        record = envelope("r", None, row(key, table), "first_in_data_collection", single.tick())
        record["source"] |= {"table": table, "file": "log", "pos": 8}
        single.send({"id": key}, record)
    change(single, "users_2", "c", 5)
    state = feed.run()
    assert (state["complete"], state["generation"]) == (True, 2)
    assert feed.rows() == {3: "users_1", 4: "users_2", 5: "users_2"}


def test_a_key_with_rows_in_two_partitions_stalls_until_it_is_skipped(single, tmp_path):
    feed = topic_feed(single, tmp_path, value=OF_PARTITIONS)
    change(single, "users_1", "c", 1)
    change(single, "users_1", "d", 1)
    single.send({"id": 1}, None)
    change(single, "users_2", "c", 1)  # the row was moved
    feed.run()
    assert feed.rows() == {1: "users_2"}
    change(single, "users_1", "u", 1)
    with pytest.raises(ForeignRecordError, match="another partition of the table has a row"):
        feed.run()
    write_decisions(feed.config.decisions_file, skipped(feed, 0, 4))
    change(single, "users_2", "u", 1)
    change(single, "users_1", "c", 2)
    feed.run()
    assert feed.rows() == {1: "users_2", 2: "users_1"}


def test_a_partition_that_is_emptied_stalls(single, tmp_path):
    feed = topic_feed(single, tmp_path, value=OF_PARTITIONS)
    change(single, "users_1", "c", 1)
    single.send(None, replaced(envelope("t", None, None, "false", single.tick())))
    with pytest.raises(ForeignRecordError, match="it empties one partition of the table"):
        feed.run()


def replaced(record):
    record["source"]["table"] = "users_1"
    return record


def test_without_the_option_a_second_table_stalls_and_the_option_is_named(single, tmp_path):
    change(single, "users_1", "c", 1)
    change(single, "users_2", "c", 2)
    with pytest.raises(SourceError, match=r'beside those of "shop\.users_1"') as caught:
        topic_feed(single, tmp_path).run()
    assert "debezium-json.source.table-pattern" in caught.value.hint


def rows_of(feed):
    rows = feed.copy().rows.values()
    return {(row["id"], EPOCH + timedelta(days=int(row["day"]))): row["name"] for row in rows}


def in_database(source):
    return {(key, day): name for key, day, name in source.sql("SELECT * FROM orders")}
