"""Transactions on a real broker: whole or not there, numbered, and of one producer at a time."""

import pyarrow as pa
import pytest

from joins.adapters.kafka.transactional_producer import CommitNote, TransactionalProducer
from joins.kernels.records.encode import Places, encode_bodies
from joins.plan.errors import SinkError
from joins.plan.plan import KafkaOptions
from tests.support.topics import consume, unique_name

PARTITIONS = 3


@pytest.fixture
def producers(kafka, topic):
    """Makes producers of one transactional id."""
    made, name = [], unique_name("transactions")

    def make(servers=kafka.bootstrap_servers):
        made.append(TransactionalProducer(KafkaOptions(servers, topic), name))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


def bodies(*numbers):
    keys = pa.array([b"%d" % number for number in numbers], pa.binary())
    return encode_bodies(keys, keys, {}, Places(3, 0, 4_000).of(keys), 4_000)


def committed(kafka, topic):
    records = consume(kafka.bootstrap_servers, topic)
    return sorted(int(record.key) for record in records)


def test_records_are_there_when_they_are_committed_and_the_number_with_them(
    kafka, topic, producers
):
    producer = producers()
    assert producer.newest() is None
    producer.send([bodies(*range(100))])
    assert committed(kafka, topic) == []
    producer.commit(CommitNote(0, "first"))
    assert committed(kafka, topic) == list(range(100))
    producer.send([bodies(*range(100, 200)), bodies(*range(200, 300))])
    producer.commit(CommitNote(1, "second"))
    producer.commit(CommitNote(2, "nothing"))
    assert committed(kafka, topic) == list(range(300))
    assert producer.newest() == CommitNote(2, "nothing")
    assert producers().newest() == CommitNote(2, "nothing")


def test_who_comes_next_ends_what_was_left_open_and_fences_who_was_there(kafka, topic, producers):
    older = producers()
    older.send([bodies(1, 2)])
    older.commit(CommitNote(4, ""))
    older.send([bodies(3, 4)])
    newer = producers()
    assert newer.newest() == CommitNote(4, "")
    with pytest.raises(SinkError):
        older.commit(CommitNote(5, "of the older one"))
    newer.send([bodies(5)])
    newer.commit(CommitNote(5, "of the newer one"))
    assert committed(kafka, topic) == [1, 2, 5]
    assert older.newest() == CommitNote(5, "of the newer one"), "it has come back, and knows"


def test_a_transaction_that_failed_leaves_nothing(kafka, topic, producers):
    producer = producers()
    producer.send([bodies(1)])
    producer.close()
    producer.send([bodies(2)])
    producer.commit(CommitNote(0, ""))
    assert committed(kafka, topic) == [2]


def test_a_commit_whose_answer_was_lost_can_be_told_from_one_that_did_not_happen(
    kafka, topic, producers
):
    producer = producers()
    producer.send([bodies(1)])
    producer.commit(CommitNote(7, "sent"))
    producer.close()  # whoever asked did not hear of it
    assert producer.newest() == CommitNote(7, "sent")


def test_a_topic_that_is_missing_is_said(kafka):
    producer = TransactionalProducer(
        KafkaOptions(kafka.bootstrap_servers, unique_name("missing")), unique_name("transactions")
    )
    try:
        with pytest.raises(SinkError, match="cannot be sent to topic") as refused:
            producer.send([bodies(1)])
        assert "does not exist" in refused.value.detail
    finally:
        producer.close()
