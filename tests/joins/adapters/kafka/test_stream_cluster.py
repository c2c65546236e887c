"""A stream of several topics on a real broker: numbers go in and come out, topics are asked."""

import json

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.kafka.stream_cluster import StreamCluster, matching_topics
from joins.plan.errors import RecordsExpiredError, SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics
from joins.stream.guards import look_at
from tests.support.topics import create_topic, delete_topics, produce, unique_name
from tests.support.transactions import transactions
from tests.support.wait import wait_until

COUNTS = {0: 3, 1: 5, SPAN: 4, SPAN + 2: 1}


@pytest.fixture
def stream(kafka):
    """Two partitions of one topic and three of another, with some records each."""
    servers = kafka.bootstrap_servers
    names = [create_topic(servers, unique_name(n), partitions=p) for n, p in (("a", 2), ("b", 3))]
    for number, count in COUNTS.items():
        index, partition = divmod(number, SPAN)
        records = [{"topic": index, "n": n} for n in range(count)]
        produce(servers, names[index], records, partition=partition)
    cluster = KafkaCluster(KafkaOptions(servers, names[0]), keep_open=True)
    found = StreamCluster(cluster, StreamTopics(tuple(map(StreamTopic, names))))
    found.topics = found.identified()
    yield found
    found.close()


def read(servers, topics, ranges):
    rows = []
    with KafkaRecords(KafkaOptions(servers, "")) as records:
        for batch in records.batches(topics, ranges):
            rows += batch.select(["partition", "offset", "value"]).to_pylist()
    return rows


def test_offsets_are_by_number_over_all_topics(stream):
    ends = {0: 3, 1: 5, SPAN: 4, SPAN + 1: 0, SPAN + 2: 1}
    assert stream.end_offsets() == stream.high_watermarks() == ends
    assert stream.beginning_offsets() == dict.fromkeys(ends, 0)
    assert stream.offsets_at(0) == dict.fromkeys(ends, 0) | {SPAN + 1: 0}
    assert {n: first[0] for n, first in stream.first_since(dict.fromkeys(ends, 0)).items()} == (
        dict.fromkeys(COUNTS, 0)
    )
    sizes = stream.partition_bytes([SPAN])
    assert sizes is not None
    assert set(sizes) == {SPAN, SPAN + 1, SPAN + 2}
    assert stream.size_bytes() > sum(sizes.values()) > 0


def test_a_group_has_the_offsets_of_all_topics(stream):
    group = unique_name("group")
    offsets = {1: 4, SPAN + 2: 1}
    stream.commit_group_offsets(group, offsets)
    assert stream.group_offsets(group) == offsets


@pytest.mark.parametrize("by_id", [True, False], ids=["by_id", "by_name"])
def test_one_read_has_the_records_of_all_topics(kafka, stream, by_id):
    unknown = StreamTopics(tuple(map(StreamTopic, stream.topics.names)))
    topics = stream.topics if by_id else unknown
    assert all(topic.topic_id for topic in stream.topics.topics)
    rows = read(kafka.bootstrap_servers, topics, {n: (0, end) for n, end in COUNTS.items()})
    for number, count in COUNTS.items():
        own = [row for row in rows if row["partition"] == number]
        assert [row["offset"] for row in own] == list(range(count))
        assert {json.loads(row["value"])["topic"] for row in own} == {number // SPAN}
    assert len(rows) == sum(COUNTS.values())


def test_a_wait_ends_with_a_record_of_any_topic(kafka, stream):
    with KafkaRecords(KafkaOptions(kafka.bootstrap_servers, "")) as records:
        records.wait(stream.topics, {**stream.end_offsets(), SPAN: 3}, 600.0)


def test_records_that_one_topic_does_not_keep_are_named(kafka, stream):
    KafkaCluster(KafkaOptions(kafka.bootstrap_servers, "")).delete_records_before(
        stream.topics.names[1], {0: 2}
    )
    with pytest.raises(RecordsExpiredError, match=f"{stream.topics.names[1]}/0"):
        read(kafka.bootstrap_servers, stream.topics, {SPAN: (0, 4)})
    assert stream.beginning_offsets()[SPAN] == 2


def test_who_holds_a_partition_of_another_topic_is_told(kafka, stream):
    with transactions(kafka.bootstrap_servers) as writer:
        writer.begin()
        writer.send(stream.topics.names[1], {2: [1]})
        view = look_at(stream)
        assert (view.end_offsets[SPAN + 2], view.open_ends) == (1, {SPAN + 2: 2})
        (held,) = stream.open_transactions({SPAN + 2: 1})
        assert (held.partition, held.transactional_id) == (SPAN + 2, writer.id)
        writer.abort()


def test_a_topic_that_is_gone_or_another_one_is_seen_among_others(kafka, stream):
    servers, name = kafka.bootstrap_servers, stream.topics.names[1]
    ids = tuple(topic.topic_id for topic in stream.topics.topics)
    assert look_at(stream).topic_ids == ids
    delete_topics(servers, name)
    wait_until(lambda: look_at(stream).topic_ids == (ids[0], None), what="the topic is gone")
    with pytest.raises(SourceError, match=name):
        stream.end_offsets()
    create_topic(servers, name, partitions=3)
    wait_until(lambda: None not in look_at(stream).topic_ids, what="the new topic")
    assert look_at(stream).topic_ids[0] == ids[0]
    assert not look_at(stream).is_of(stream.topics)
    with pytest.raises(SourceError):
        read(servers, stream.topics, {SPAN: (0, 1)})


MATCHES = {
    "clicks-.*": ["clicks-", "clicks-a", "clicks-b"],
    "clicks-": ["clicks-"],
    "(?i)CLICKS-[ab]": ["clicks-a", "clicks-b"],
    ".*": ["clicks-", "clicks-a", "clicks-b", "my_clicks-a"],
    "[^c].*": ["my_clicks-a"],
    "other": [],
}


@pytest.mark.parametrize(("pattern", "names"), MATCHES.items(), ids=MATCHES)
def test_a_pattern_matches_whole_names_and_none_of_ours_and_kafkas_own(pattern, names):
    there = ["my_clicks-a", "clicks-b", "clicks-a", "clicks-", "__clicks-a", "sluice.1.clicks-a"]
    assert matching_topics(pattern, there) == names
