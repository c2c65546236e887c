"""Bounded reads of a real topic: what is between two offsets, no more, and what is gone is said."""

import json
import threading
import time

import pytest
from kafka import KafkaProducer

from joins.adapters.kafka import records as fetched
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import (
    OF_A_CHANGELOG,
    OF_THE_PROBE,
    KafkaRecords,
)
from joins.plan.errors import RecordsExpiredError, SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from tests.support.topics import create_topic, delete_topics, produce
from tests.support.wait import wait_until


@pytest.fixture
def topic(kafka):
    name = create_topic(kafka.bootstrap_servers, partitions=2)
    for partition in (0, 1):
        values = [{"n": n} for n in range(50)]
        produce(kafka.bootstrap_servers, name, values, partition=partition)
    return name


def read(kafka, topic, ranges):
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        return [
            (row["partition"], row["offset"], json.loads(row["value"])["n"])
            for batch in records.batches(StreamTopics.one(topic), ranges)
            for row in batch.to_pylist()
        ]


def test_only_the_ranges_are_read_in_the_order_of_each_partition(kafka, topic):
    found = read(kafka, topic, {0: (10, 13), 1: (48, 50)})
    assert sorted(found) == [(0, 10, 10), (0, 11, 11), (0, 12, 12), (1, 48, 48), (1, 49, 49)]
    assert [row for row in found if row[0] == 0] == sorted(row for row in found if row[0] == 0)


def test_empty_ranges_read_nothing(kafka, topic):
    assert read(kafka, topic, {0: (7, 7)}) == []


def test_one_connection_serves_several_reads(kafka, topic):
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        for first in (40, 0, 20):
            (batch,) = records.batches(StreamTopics.one(topic), {1: (first, first + 1)})
            assert batch.column("offset").to_pylist() == [first]


def test_a_few_records_of_many_are_asked_for_by_their_bytes(kafka):
    """A broker sends what it may: a batch of a long topic was read many times over."""
    topic = create_topic(kafka.bootstrap_servers)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for _ in range(4_000):
            producer.send(topic, b"x" * 1_000)
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        sizes, topics = list[int](), StreamTopics.one(topic)
        see = records._sizes.see
        records._sizes.see = lambda *of: (sizes.append(len(of[1])), see(*of))
        for first in range(0, 4_000, 100):
            batches = records.batches(topics, {0: (first, first + 100)})
            offsets = [n for batch in batches for n in batch.column("offset").to_pylist()]
            assert offsets == list(range(first, first + 100))
    assert sizes[0] > 1_000_000
    assert max(sizes[1:]) < 300_000


def test_records_are_read_whole_however_their_sizes_change(kafka):
    """What was seen says little of what comes: each answer has a batch at least."""
    topic, lengths = create_topic(kafka.bootstrap_servers), [1, 200_000, 1, 1, 900_000, 10, 300_000]
    for length in lengths:
        produce(kafka.bootstrap_servers, topic, [{"n": "x" * length}])
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        for first in range(len(lengths)):
            batches = records.batches(StreamTopics.one(topic), {0: (first, len(lengths))})
            values = [v for batch in batches for v in batch.column("value").to_pylist()]
            assert [len(json.loads(v)["n"]) for v in values] == lengths[first:]


def test_removed_records_are_an_error_and_never_skipped(kafka, topic):
    KafkaCluster(KafkaOptions(kafka.bootstrap_servers, "")).delete_records_before(topic, {0: 5})
    with pytest.raises(RecordsExpiredError, match=topic):
        read(kafka, topic, {0: (4, 8)})
    assert read(kafka, topic, {0: (5, 6)}) == [(0, 5, 5)]


def test_a_cluster_that_does_not_answer_is_named():
    with (
        KafkaRecords(KafkaOptions("127.0.0.1:1", "")) as records,
        pytest.raises(SourceUnavailableError, match=r"127\.0\.0\.1:1"),
    ):
        list(records.batches(StreamTopics.one("t"), {0: (0, 1)}))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_topics_are_read(kafka, codec):
    name = create_topic(kafka.bootstrap_servers, partitions=1)
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, compression_type=codec
    ) as producer:
        for n in range(100):
            producer.send(name, json.dumps({"n": n}).encode())
    assert [n for _, _, n in read(kafka, name, {0: (0, 100)})] == list(range(100))


def test_a_changelog_is_read_with_its_keys(kafka):
    name = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, name, [{"n": 1}, b"mark"], keys=[{"k": 1}, None])
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        (batch,) = records.batches(StreamTopics.one(name), {0: (0, 2)}, OF_A_CHANGELOG)
    assert batch.to_pylist() == [
        {"key": b'{"k":1}', "value": b'{"n":1}', "partition": 0, "offset": 0},
        {"key": None, "value": b"mark", "partition": 0, "offset": 1},
    ]


def test_a_timestamp_that_no_calendar_has_is_null_and_keeps_nobody_from_reading(kafka):
    config = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    name = create_topic(kafka.bootstrap_servers, partitions=1, config=config)
    sent = [0, 253_402_300_799_999, 253_402_300_800_000, 10**17, 2**63 - 1, 1]
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for stamp in sent:
            producer.send(name, b"{}", timestamp_ms=stamp)
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        batches = list(records.batches(StreamTopics.one(name), {0: (0, len(sent))}))
    read_ms = [stamp for batch in batches for stamp in batch["timestamp"].cast("int64").to_pylist()]
    assert read_ms == [0, 253_402_300_799_999_000, None, None, None, 1_000]


@pytest.mark.parametrize("newest_fetch", [17, 12], ids=["by_id", "by_name"])
def test_another_topic_of_the_same_name_is_not_read(kafka, topic, newest_fetch, monkeypatch):
    """Brokers before Kafka 3.1 are asked by names; what they have answered is checked behind it."""
    monkeypatch.setattr(fetched, "_BY_ID", min(newest_fetch, fetched._BY_ID))
    cluster = KafkaCluster(KafkaOptions(kafka.bootstrap_servers, ""), keep_open=True)
    first = StreamTopics.one(topic, cluster.require(topic).topic_id)
    assert first.topics[0].topic_id
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        (batch,) = records.batches(first, {1: (0, 50)})
        assert batch.num_rows == 50
        delete_topics(kafka.bootstrap_servers, topic)
        create_topic(kafka.bootstrap_servers, topic, partitions=2)
        wait_until(lambda: cluster.describe(topic) is not None)
        produce(kafka.bootstrap_servers, topic, [{"n": -n} for n in range(60)], partition=1)
        with pytest.raises(SourceError, match=topic):
            list(records.batches(first, {1: (0, 50)}))
        second = StreamTopics.one(topic, cluster.require(topic).topic_id)
        (batch,) = records.batches(second, {1: (0, 50)})
        assert json.loads(batch.column("value")[49].as_py()) == {"n": -49}
    cluster.close()


def test_a_wait_ends_with_the_first_record_and_not_before_its_time_without_one(kafka, topic):
    name = StreamTopics.one(topic)
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        records.wait(name, {0: 49, 1: 50}, 600.0)
        began = time.monotonic()
        records.wait(name, {0: 50, 1: 50}, 0.3)
        assert time.monotonic() - began >= 0.29
        sent = threading.Timer(0.2, lambda: produce(kafka.bootstrap_servers, topic, [{"n": 1}]))
        sent.start()
        records.wait(name, {0: 50, 1: 50}, 600.0)
        sent.join()


def test_a_wait_for_a_cluster_that_does_not_answer_ends():
    with KafkaRecords(KafkaOptions("127.0.0.1:1", "")) as records:
        records.wait(StreamTopics.one("t"), {0: 0}, 600.0)


def test_headers_and_what_the_broker_says_are_read_if_they_are_asked_for(kafka):
    config = {"message.timestamp.type": "LogAppendTime"}
    appended = create_topic(kafka.bootstrap_servers, config=config)
    created = create_topic(kafka.bootstrap_servers)
    headers = [("a", b"1"), ("b", b""), ("a", b"\xff2")]
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for topic in (appended, created):
            producer.send(topic, b"v", key=b"k", headers=headers).get(60)
            producer.send(topic, b"w").get(60)
    names = ("key", *OF_THE_PROBE, "headers", "leader-epoch", "timestamp-type")
    for topic, stamped in ((appended, "LogAppendTime"), (created, "CreateTime")):
        with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
            batches = list(records.batches(StreamTopics.one(topic), {0: (0, 2)}, names))
        rows = [row for batch in batches for row in batch.to_pylist()]
        assert [(row["key"], row["value"]) for row in rows] == [(b"k", b"v"), (None, b"w")]
        assert [dict(row["headers"]) for row in rows] == [{"a": b"\xff2", "b": b""}, {}]
        assert {(row["leader-epoch"], row["timestamp-type"]) for row in rows} == {(0, stamped)}
