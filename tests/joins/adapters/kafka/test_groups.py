"""Consumer groups on a real broker: offsets without a member, and groups that somebody uses."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaConsumer

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import commit_offsets, committed_offsets, require_no_members
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until


@pytest.fixture
def cluster(kafka):
    found = KafkaCluster(KafkaOptions(kafka.bootstrap_servers, ""), keep_open=True)
    yield found
    found.close()


@contextmanager
def member(servers: str, group: str, topic: str) -> Iterator[KafkaConsumer]:
    """Somebody else's consumer, which has joined the group."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,  # a new topic may not be known to each broker's cache at once
    )
    try:
        wait_until(
            lambda: consumer.poll(timeout_ms=1_000) or consumer.assignment(),
            deadline_s=60,
            what="the member has a partition",
        )
        yield consumer
    finally:
        consumer.close(autocommit=False)


def test_offsets_are_committed_to_a_group_that_nobody_has_joined(kafka, cluster):
    topic, other = (create_topic(kafka.bootstrap_servers, partitions=2) for _ in range(2))
    group = unique_name("group")
    assert committed_offsets(cluster.connection, group, topic) == {}
    require_no_members(cluster.connection, group)
    commit_offsets(cluster.connection, group, topic, {0: 3})
    commit_offsets(cluster.connection, group, other, {1: 9})
    commit_offsets(cluster.connection, group, topic, {0: 5, 1: 0})
    assert committed_offsets(cluster.connection, group, topic) == {0: 5, 1: 0}
    assert committed_offsets(cluster.connection, group, other) == {1: 9}
    require_no_members(cluster.connection, group)


def test_a_group_with_members_is_refused_until_they_are_gone(kafka, cluster):
    servers = kafka.bootstrap_servers
    topic, group = create_topic(servers), unique_name("group")
    produce(servers, topic, [1])
    with member(servers, group, topic):
        for use in (
            lambda: require_no_members(cluster.connection, group),
            lambda: commit_offsets(cluster.connection, group, topic, {0: 1}),
        ):
            with pytest.raises(SourceError, match=f'"{group}".* has ') as caught:
                use()
            assert "separate 'properties.group.id', or stop them" in caught.value.hint
        with pytest.raises(SourceError, match="has members"):
            commit_offsets(cluster.connection, group, topic, {0: 1})
    require_no_members(cluster.connection, group)
    commit_offsets(cluster.connection, group, topic, {0: 1})
    assert committed_offsets(cluster.connection, group, topic) == {0: 1}
    commit_offsets(cluster.connection, unique_name("group"), topic, {0: 1})  # the hint's other way


def test_an_offset_of_a_partition_that_is_not_there_is_told(kafka, cluster):
    topic = create_topic(kafka.bootstrap_servers)
    with pytest.raises(SourceError, match="partition 7"):
        commit_offsets(cluster.connection, unique_name("group"), topic, {7: 1})
