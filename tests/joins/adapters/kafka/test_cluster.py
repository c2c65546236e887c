"""Topics and offsets on a real broker, and what is said when there is none."""

import asyncio
import time

import pytest
from kafka import errors as kafka_errors
from kafka.admin import OffsetSpec
from kafka.protocol.admin import DescribeConfigsResponse

from joins.adapters.kafka.client import KafkaClient
from joins.adapters.kafka.cluster import KafkaCluster, TopicPolicy, cluster_id, topic_policy
from joins.adapters.kafka.options import NetClient, client_options
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from service.embedded.process import free_port
from tests.support.topics import (
    add_partitions,
    create_topic,
    delete_topics,
    produce,
    unique_name,
)
from tests.support.wait import wait_until

LOGIN = (
    ("security.protocol", "SASL_PLAINTEXT"),
    ("sasl.mechanism", "SCRAM-SHA-512"),
    ("sasl.username", "joe"),
    ("sasl.password", 'a"b\\c'),
)


@pytest.fixture
def cluster(kafka):
    return KafkaCluster(KafkaOptions(kafka.bootstrap_servers, ""))


def test_a_login_is_given_to_the_client_as_it_is():
    kafka = KafkaOptions("a:1,b:2", "t", LOGIN)
    assert client_options(kafka) == {
        "kafka_client": NetClient,
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "joe",
        "sasl_plain_password": 'a"b\\c',
    }


def test_a_cluster_has_one_id_however_it_is_addressed(kafka, cluster):
    port = kafka.bootstrap_servers.rpartition(":")[2]
    ids = {cluster_id(cluster)}
    for servers in (f"localhost:{port}", f"127.0.0.1:{port},localhost:{port}"):
        named = KafkaCluster(KafkaOptions(servers, "any"))
        ids.add(cluster_id(named))
        named.close()
    assert len(ids) == 1
    assert None not in ids


def test_a_topic_that_does_not_exist_is_none_or_named(cluster):
    name = unique_name("missing")
    assert cluster.describe(name) is None
    for ask in (cluster.require, cluster.end_offsets, cluster.beginning_offsets):
        with pytest.raises(SourceError, match=name) as caught:
            ask(name)
        assert not isinstance(caught.value, SourceUnavailableError)


def test_a_misspelt_topic_is_told_the_one_that_is_there(cluster, topic):
    with pytest.raises(SourceError) as caught:
        cluster.require(f"{topic}x")
    assert caught.value.hint == f'Did you mean "{topic}"?'
    assert cluster.require(topic).name == topic


def test_a_topic_is_created_once(cluster):
    name = unique_name("created")
    try:
        cluster.create(name, 3, 1, {"retention.ms": "-1"})
        first = cluster.require(name)
        assert first.partitions == (0, 1, 2)
        cluster.create(name, 1, 1, {})
        assert cluster.require(name) == first
    finally:
        cluster.delete(name)


def test_a_topic_that_was_created_again_has_another_id(cluster):
    name = unique_name("again")
    cluster.create(name, 1, 1, {})
    first = cluster.require(name).topic_id
    cluster.delete(name)
    wait_until(lambda: cluster.describe(name) is None, what="the topic is gone")
    cluster.delete(name)
    cluster.create(name, 1, 1, {})
    assert cluster.require(name).topic_id not in ("", first)
    cluster.delete(name)


def test_more_replicas_than_brokers_are_refused(cluster):
    with pytest.raises(SourceError, match="cannot be created"):
        cluster.create(unique_name("wide"), 1, 5, {})


def test_offsets_follow_what_is_written_and_trimmed(kafka, cluster, topic):
    assert cluster.end_offsets(topic) == cluster.beginning_offsets(topic) == {0: 0, 1: 0}
    produce(kafka.bootstrap_servers, topic, range(10), partition=0)
    produce(kafka.bootstrap_servers, topic, range(4), partition=1)
    assert cluster.end_offsets(topic) == {0: 10, 1: 4}
    cluster.delete_records_before(topic, {0: 7, 1: 0})
    assert cluster.beginning_offsets(topic) == {0: 7, 1: 0}
    cluster.delete_records_before(topic, {0: 3})
    cluster.delete_records_before(topic, {0: 99})
    cluster.delete_records_before(topic, {})
    assert cluster.beginning_offsets(topic)[0] == 7
    assert cluster.end_offsets(topic) == {0: 10, 1: 4}


def test_a_time_is_the_first_record_that_is_not_older_or_the_end(kafka, cluster, topic):
    before_ms = int(time.time() * 1000) - 60_000
    produce(kafka.bootstrap_servers, topic, range(3), partition=0)
    assert cluster.offsets_at(topic, before_ms) == {0: 0, 1: 0}
    assert cluster.offsets_at(topic, before_ms + 3_600_000) == {0: 3, 1: 0}


class GrowingCluster(KafkaCluster):
    """Its topic has a record more at each question, the first of them at offset 10."""

    end = 10

    def _offsets(self, topic, spec, isolation=None):
        found = self.end if spec is OffsetSpec.LATEST else 10 if self.end > 10 else -1
        self.end += 1
        return {0: found}


def test_what_comes_between_two_questions_is_not_before_a_time():
    cluster = GrowingCluster(KafkaOptions("127.0.0.1:9", "t"))
    assert cluster.offsets_at("t", 0) == {0: 10}


def test_the_size_grows_with_the_records(kafka, cluster, topic):
    stream = StreamCluster(cluster, StreamTopics.one(topic))
    assert stream.size_bytes() == 0
    produce(kafka.bootstrap_servers, topic, [b"x" * 1000] * 5, partition=0)
    produce(kafka.bootstrap_servers, topic, [b"x" * 1000] * 5, partition=1)
    assert 10_000 < stream.size_bytes() < 20_000


def test_a_cluster_that_does_not_answer_is_unavailable():
    cluster = KafkaCluster(KafkaOptions(f"127.0.0.1:{free_port()}", "t"))
    with pytest.raises(SourceUnavailableError, match="cannot be reached"):
        cluster.end_offsets("t")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (kafka_errors.UnknownBrokerIdError(-1), SourceUnavailableError),
        (kafka_errors.NotLeaderForPartitionError(), SourceUnavailableError),
        (kafka_errors.TopicAuthorizationFailedError("t"), SourceError),
    ],
)
def test_a_broker_that_is_away_refuses_nothing(error, kind):
    cluster = KafkaCluster(KafkaOptions("127.0.0.1:1", "t"))
    assert type(cluster.connection._unanswered(error)) is kind


def test_a_kept_client_answers_again_and_again(kafka, topic):
    cluster = KafkaCluster(KafkaOptions(kafka.bootstrap_servers, ""), keep_open=True)
    try:
        for count in range(1, 4):
            produce(kafka.bootstrap_servers, topic, [count], partition=0)
            assert cluster.end_offsets(topic)[0] == count
    finally:
        cluster.close()
        cluster.close()


def test_a_kept_client_follows_a_topic_that_grows_and_one_that_is_created_again(kafka, topic):
    """It knows who led what it was asked for before."""
    servers = kafka.bootstrap_servers
    cluster = KafkaCluster(KafkaOptions(servers, ""), keep_open=True)
    try:
        assert cluster.end_offsets(topic) == {0: 0, 1: 0}
        add_partitions(servers, topic, 4)
        wait_until(lambda: cluster.end_offsets(topic) == dict.fromkeys(range(4), 0))
        delete_topics(servers, topic)
        wait_until(lambda: cluster.describe(topic) is None)
        with pytest.raises(SourceError, match=topic):
            cluster.end_offsets(topic)
        create_topic(servers, topic, partitions=1)
        produce(servers, topic, ["new"])
        assert cluster.end_offsets(topic) == {0: 1}
    finally:
        cluster.close()


class AnsweringClient(KafkaClient):
    """A client whose broker gives `answer` to every request, or fails by it."""

    def __init__(self, answer):
        self._manager, self._answer = self, answer

    def run(self, work, *arguments):
        return asyncio.run(work(*arguments))

    async def send(self, request, node_id=None):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def close(self):
        pass


def answered_settings(code, **settings):
    result = DescribeConfigsResponse.DescribeConfigsResult
    setting = result.DescribeConfigsResourceResult
    configs = [
        setting(name=name.replace("_", "."), value=value) for name, value in settings.items()
    ]
    answer = result(error_code=code, resource_type=2, resource_name="t", configs=configs)
    return DescribeConfigsResponse(results=[answer])


def policy_of(answer):
    cluster = KafkaCluster(KafkaOptions("b:1", ""), keep_open=True)
    cluster.connection._kept = AnsweringClient(answer)
    return topic_policy(cluster, "t")


def test_a_topic_whose_settings_may_not_be_read_may_be_compacted():
    """A broker says so beside the settings, of which there are none then."""
    known = answered_settings(0, cleanup_policy="compact", delete_retention_ms="5")
    assert policy_of(known).tombstone_retention_ms == 5
    assert policy_of(answered_settings(29)) == TopicPolicy()
    assert policy_of(kafka_errors.IncompatibleBrokerVersion("none")) == TopicPolicy()


@pytest.mark.parametrize(
    "answer",
    [
        kafka_errors.KafkaTimeoutError("no answer"),
        kafka_errors.KafkaConnectionError("cut"),
        answered_settings(3),
        answered_settings(7),
    ],
    ids=["silent", "cut", "unknown_topic", "late"],
)
def test_settings_are_not_taken_as_unreadable_while_a_broker_does_not_answer(answer):
    """What compaction may have removed is looked up by them, once a start."""
    with pytest.raises(SourceUnavailableError):
        policy_of(answer)


def test_a_missing_topic_has_no_settings(kafka, cluster):
    with pytest.raises(SourceUnavailableError, match="UnknownTopicOrPartition"):
        topic_policy(cluster, unique_name("none"))
