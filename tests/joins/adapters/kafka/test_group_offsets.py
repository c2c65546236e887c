"""The group of a stream is told where it is, and what cannot be told keeps nobody."""

import re
import time

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import committed_offsets
from joins.adapters.kafka.stream_cluster import GroupOffsets
from joins.plan.plan import KafkaOptions
from service.embedded.process import free_port
from tests.joins.adapters.kafka.test_groups import member
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until


@pytest.fixture
def kafka_options(kafka):
    topic = create_topic(kafka.bootstrap_servers, partitions=2)
    produce(kafka.bootstrap_servers, topic, [1], partition=0)
    return KafkaOptions(kafka.bootstrap_servers, topic, (("group.id", unique_name("group")),))


def shown(kafka: KafkaOptions) -> dict[int, int]:
    return committed_offsets(KafkaCluster(kafka).connection, str(kafka.group), kafka.topic)


def test_the_newest_offsets_are_shown_soon(kafka_options):
    reporter = GroupOffsets(kafka_options)
    try:
        for offset in range(1, 50):
            reporter.report({0: offset, 1: 0})
        wait_until(lambda: shown(kafka_options) == {0: 49, 1: 0}, what="the newest are there")
        assert reporter.warning() is None
    finally:
        reporter.close()


def test_what_was_reported_last_is_committed_at_the_end(kafka_options):
    reporter = GroupOffsets(kafka_options)
    reporter.report({0: 1})
    reporter.close()
    assert shown(kafka_options) == {0: 1}
    reporter.report({0: 2})
    assert shown(kafka_options) == {0: 1}, "nothing is reported after the end"


def test_who_reports_nothing_commits_nothing(kafka_options):
    reporter = GroupOffsets(kafka_options)
    reporter.report({})
    reporter.close()
    assert shown(kafka_options) == {}


def test_members_are_warned_of_and_once_they_are_gone_the_group_is_told(kafka_options):
    reporter = GroupOffsets(kafka_options, retry_s=0.2)
    try:
        servers, group = kafka_options.bootstrap_servers, str(kafka_options.group)
        with member(servers, group, kafka_options.topic):
            reporter.report({0: 1})
            wait_until(
                lambda: re.search(r"\((?!1 )\d+ failed attempts", str(reporter.warning())),
                what="it is tried again",
            )
            warning = reporter.warning()
            assert warning is not None
            assert warning["type"] == "group-offsets"
            assert f'"{group}" has members' in str(warning["message"])
            assert "stop them" in str(warning["hint"])
        wait_until(lambda: shown(kafka_options) == {0: 1}, what="the newest are there")
        wait_until(lambda: reporter.warning() is None, what="the warning is gone")
    finally:
        reporter.close()


def test_a_cluster_that_is_away_keeps_nobody_waiting():
    port = free_port()
    reporter = GroupOffsets(KafkaOptions(f"127.0.0.1:{port}", "t", (("group.id", "g"),)))
    began_at = time.monotonic()
    for offset in range(1_000):
        reporter.report({0: offset})
    assert time.monotonic() - began_at < 1.0
    wait_until(lambda: reporter.warning() is not None, deadline_s=30, what="it is told")
    reporter.close()
    assert time.monotonic() - began_at < 30.0
