"""Open transactions that hold a stream: when they count, whose they are, and what a guard sees."""

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from joins.stream.guards import TopicView, look_at
from joins.stream.watches import TransactionWatch
from tests.support.topics import produce
from tests.support.transactions import transactions


@pytest.fixture
def cluster(kafka, topic):
    known = KafkaCluster(KafkaOptions(kafka.bootstrap_servers, topic), keep_open=True)
    found = StreamCluster(known, StreamTopics.one(topic))
    yield found
    found.close()


@pytest.fixture
def writer(kafka, topic):
    """Its transaction is open in partition 1, between plain records."""
    produce(kafka.bootstrap_servers, topic, [1, 2], partition=1)
    with transactions(kafka.bootstrap_servers) as producer:
        producer.begin()
        producer.send(topic, {1: [3]})
        produce(kafka.bootstrap_servers, topic, [4], partition=1)
        yield producer


def test_a_look_tells_how_far_a_topic_may_be_read_and_how_far_it_goes(cluster, topic, writer):
    view = look_at(cluster)
    assert (view.end_offsets, view.open_ends) == ({0: 0, 1: 2}, {1: 4})
    assert view.high_watermarks == {0: 0, 1: 4}
    writer.abort()
    view = look_at(cluster)
    assert (view.end_offsets, view.open_ends) == ({0: 0, 1: 5}, {})


def test_who_holds_a_partition_is_told_until_the_transaction_ends(cluster, topic, writer):
    watch = TransactionWatch(cluster, holds_after_s=0.0)
    watch.look(look_at(cluster))
    (held,) = watch.held
    told = held.as_json(StreamTopics.one(topic), held.since_ms + 40_000)
    assert (told["partition"], told["offset"], told["behind"]) == (1, 2, 2)
    assert (told["transactional_id"], told["age_ms"]) == (writer.id, 40_000)
    assert told["text"] == (
        f'topic "{topic}" partition 1 is held at offset 2 by a transaction of producer '
        f'{told["producer_id"]} ("{writer.id}"), open for 40 s'
    )
    writer.commit()
    watch.look(look_at(cluster))
    assert watch.held == ()


def test_a_transaction_that_has_just_begun_is_no_reason_of_waiting(cluster, topic, writer):
    watch = TransactionWatch(cluster)
    watch.look(look_at(cluster))
    assert watch.held == ()
    writer.abort()


def test_a_partition_is_held_also_where_nobody_tells_by_whom(cluster, topic):
    """No such partition: the brokers refuse to describe its producers."""
    watch = TransactionWatch(cluster, holds_after_s=0.0)
    watch.look(TopicView(("id",), {7: 0}, {7: 5}, {7: 9}))
    (held,) = watch.held
    told = held.as_json(StreamTopics.one(topic), held.since_ms + 7_000)
    assert (told["producer_id"], told["transactional_id"], told["age_ms"]) == (None, None, 7_000)
    assert "a transaction of an unknown producer, open for 7 s" in told["text"]


def test_an_end_that_moves_holds_nobody(cluster, topic):
    watch = TransactionWatch(cluster, holds_after_s=0.0)
    watch.look(TopicView(("id",), {0: 0}, {0: 5}, {0: 9}))
    seen = watch.held[0].since_ms
    watch.look(TopicView(("id",), {0: 0}, {0: 8}, {}))
    assert watch.held == ()
    watch.look(TopicView(("id",), {0: 0}, {0: 8}, {0: 12}))
    assert watch.held[0].transaction.offset == 8
    assert watch.held[0].since_ms >= seen
