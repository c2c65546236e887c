"""Record batches on a real broker: acknowledged, in order, not twice, refused with a reason."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from joins.adapters.kafka.batch_producer import BODY_BYTES, BatchProducer
from joins.adapters.kafka.client import compressed
from joins.kernels.records.encode import Places, encode_bodies
from joins.plan.errors import SinkError
from joins.plan.plan import COMPRESSION_TYPE, Compression, KafkaOptions
from service.embedded.broker import BrokerSettings, KafkaBroker
from tests.support.topics import consume, create_topic, delete_topics, unique_name


def options(kafka, topic, compression=Compression.NONE):
    return KafkaOptions(kafka.bootstrap_servers, topic, ((COMPRESSION_TYPE, compression.value),))


def bodies(count, partitions=1, *, size=10, body_bytes=4_000, first=0):
    keys = [b"%d" % number for number in range(first, first + count)]
    values = [key.ljust(size, b".") for key in keys]
    columns = [pa.array(each, pa.binary()) for each in (keys, values)]
    chosen = Places(partitions, 0, body_bytes).of(columns[0])
    return encode_bodies(*columns, {"h": b"1"}, chosen, body_bytes)


PARTITIONS = 3


@pytest.fixture
def producer(kafka, topic):
    found = BatchProducer(options(kafka, topic))
    yield found
    found.close()


def keys_by_partition(kafka, topic):
    found = {}
    for record in consume(kafka.bootstrap_servers, topic):
        found.setdefault(record.partition, []).append(int(record.key))
    return found


def test_records_of_a_partition_come_in_the_order_of_their_batches(kafka, topic, producer):
    assert producer.partitions() == 3
    producer.send(bodies(2_000, 3, first=first) for first in (0, 2_000))
    producer.send([bodies(2_000, 3, first=4_000)])
    found = keys_by_partition(kafka, topic)
    assert sorted(key for keys in found.values() for key in keys) == list(range(6_000))
    assert all(keys == sorted(keys) for keys in found.values())
    assert len(found) == 3


def test_what_was_sent_again_for_a_lost_answer_is_there_once(kafka, topic, producer):
    producer.send([bodies(100, 3, body_bytes=400)])
    producer._producer.sequences.clear()  # as if no answer had come
    producer.send([bodies(100, 3, body_bytes=400)])
    producer.send([bodies(100, 3, first=100)])
    found = keys_by_partition(kafka, topic)
    assert sorted(key for keys in found.values() for key in keys) == list(range(200))


def test_nothing_overtakes_a_batch_that_is_refused(kafka):
    """Of several requests under way."""
    topic = create_topic(kafka.bootstrap_servers, config={"max.message.bytes": "5000"})
    producer = BatchProducer(options(kafka, topic))
    producer.send([bodies(10)])
    parts = [bodies(10, first=at) for at in (10, 20)]
    parts += [bodies(1, first=30, size=6_000), *(bodies(10, first=at) for at in (31, 41))]
    with pytest.raises(SinkError) as refused:
        producer.send_whole(parts)
    assert "MessageSizeTooLarge" in refused.value.detail
    assert keys_by_partition(kafka, topic) == {0: list(range(30))}
    assert producer.send_whole(parts[3:]) == {0: (30, 50)}
    assert keys_by_partition(kafka, topic) == {0: [*range(30), *range(31, 51)]}
    producer.close()
    delete_topics(kafka.bootstrap_servers, topic)


def test_another_producer_sends_what_it_has_to_send(kafka, topic, producer):
    producer.send([bodies(5, 3)])
    producer.close()
    producer.send([bodies(5, 3)])
    assert len(consume(kafka.bootstrap_servers, topic)) == 10


@pytest.mark.parametrize("compression", Compression)
def test_every_codec_is_read_by_consumers(kafka, topic, compression):
    producer = BatchProducer(options(kafka, topic, compression))
    producer.send([compressed(bodies(3_000, 3, size=200, body_bytes=200_000), compression)])
    producer.close()
    found = consume(kafka.bootstrap_servers, topic)
    assert {record.value.rstrip(b".") for record in found} == {b"%d" % n for n in range(3_000)}


def test_batches_are_as_large_as_the_topic_takes(kafka):
    small = create_topic(kafka.bootstrap_servers, config={"max.message.bytes": "5000"})
    producer = BatchProducer(options(kafka, small))
    most = producer.body_bytes()
    assert 4_000 < most < 5_000
    producer.send([bodies(1_000, body_bytes=most)])
    assert len(consume(kafka.bootstrap_servers, small)) == 1_000
    with pytest.raises(SinkError, match=rf'topic "{small}"') as refused:
        producer.send([bodies(1, size=6_000)])
    assert "MessageSizeTooLarge" in refused.value.detail
    producer.close()
    delete_topics(kafka.bootstrap_servers, small)


def test_a_usual_topic_takes_the_usual_batch(producer):
    assert producer.body_bytes() == BODY_BYTES


def test_a_usual_topic_takes_larger_batches_where_they_are_asked_for(kafka):
    topic = create_topic(kafka.bootstrap_servers)
    producer = BatchProducer(options(kafka, topic), 1 << 20)
    most = producer.body_bytes()
    assert 1_000_000 < most < 1 << 20
    producer.send([bodies(3_000, size=1_000, body_bytes=most)])
    assert len(consume(kafka.bootstrap_servers, topic)) == 3_000
    producer.close()
    delete_topics(kafka.bootstrap_servers, topic)


@pytest.mark.parametrize("name", ["missing-topic", "bad topic name"])
def test_a_topic_that_is_not_there_is_refused_and_not_made(kafka, name):
    producer = BatchProducer(options(kafka, name))
    for question in (producer.partitions, lambda: producer.send([bodies(1)])):
        with pytest.raises(SinkError, match=f'topic "{name}"'):
            question()


def test_once_the_missing_topic_is_there_the_same_batch_is_sent(kafka):
    missing = unique_name("later")
    producer = BatchProducer(options(kafka, missing))
    with pytest.raises(SinkError, match=missing) as refused:
        producer.send([bodies(3)])
    assert refused.value.hint == "Repair what the detail names; the batch is sent again."
    create_topic(kafka.bootstrap_servers, missing)
    producer.send([bodies(3)])
    producer.close()
    assert len(consume(kafka.bootstrap_servers, missing)) == 3
    delete_topics(kafka.bootstrap_servers, missing)


@pytest.fixture
def own_broker(tmp_path, java, broker_jars):
    with KafkaBroker(tmp_path, java, broker_jars, BrokerSettings(heap="256m")) as broker:
        yield broker


@pytest.mark.experiment
def test_what_a_broker_did_not_take_before_it_went_is_sent_once_it_is_back(own_broker):
    topic = create_topic(own_broker.bootstrap_servers, partitions=2)
    producer = BatchProducer(options(own_broker, topic))
    producer.send([bodies(100, 2)])
    own_broker.stop()
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(producer.send, [bodies(100, 2, first=100), bodies(100, 2, first=200)])
        own_broker.start()
        sent.result(timeout=90)
    producer.close()
    keys = [key for keys in keys_by_partition(own_broker, topic).values() for key in keys]
    assert sorted(keys) == list(range(300))


def test_a_cluster_that_does_not_answer_is_named():
    producer = BatchProducer(KafkaOptions("127.0.0.1:1", "topic"))
    with pytest.raises(SinkError, match=r'Kafka at "127\.0\.0\.1:1"'):
        producer.partitions()


def test_a_topic_tells_what_a_message_may_have(kafka):
    small = create_topic(kafka.bootstrap_servers, config={"max.message.bytes": "5000"})
    producer = BatchProducer(KafkaOptions(kafka.bootstrap_servers, small))
    try:
        assert producer.message_bytes() == 5000
    finally:
        producer.close()
        delete_topics(kafka.bootstrap_servers, small)
