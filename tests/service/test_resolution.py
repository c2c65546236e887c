"""Start and end of a stream become numbers at submission, whatever they were written as."""

from dataclasses import replace

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import commit_offsets
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.errors import SourceError
from joins.plan.plan import (
    BoundedMode,
    KafkaOptions,
    KafkaSource,
    ProbeSource,
    StartupMode,
    WatermarkSpec,
)
from joins.plan.stream_topics import SPAN, in_each
from joins.plan.types import Constant, SqlType, TypeName
from service.security.resolution import (
    resolve_backlog,
    resolve_end_offsets,
    resolve_start_offsets,
    resolve_topics,
)
from tests.support.topics import create_topic, produce, unique_name
from tests.support.transactions import transactions

LATEST = {"bounded_mode": BoundedMode.LATEST}
ENDS = {
    "unbounded": ({}, None),
    "latest": (LATEST, {0: 10, 1: 4}),
    "latest_from_the_end": ({**LATEST, "startup_mode": StartupMode.LATEST}, {0: 10, 1: 4}),
    "before_all": (
        {"bounded_mode": BoundedMode.TIMESTAMP, "bounded_timestamp_ms": 1},
        {0: 0, 1: 0},
    ),
    "after_all": (
        {"bounded_mode": BoundedMode.TIMESTAMP, "bounded_timestamp_ms": 2**52},
        {0: 10, 1: 4},
    ),
    "specific_also_not_yet_written": (
        {"bounded_mode": BoundedMode.SPECIFIC, "bounded_offsets": ((0, 3), (1, 99))},
        {0: 3, 1: 99},
    ),
    "a_partition_that_is_not_named_is_not_read": (
        {"bounded_mode": BoundedMode.SPECIFIC, "bounded_offsets": ((1, 2),)},
        {0: 0, 1: 2},
    ),
    "a_preview_reads_some_records_of_each_partition": (
        {**LATEST, "bounded_records": 5},
        {0: 5, 1: 4},
    ),
    "a_preview_counts_from_its_start": (
        {
            **LATEST,
            "startup_mode": StartupMode.SPECIFIC,
            "startup_offsets": ((0, 7), (1, 1)),
            "bounded_records": 2,
        },
        {0: 9, 1: 3},
    ),
    "an_end_before_the_start_is_an_empty_range": (
        {
            "startup_mode": StartupMode.SPECIFIC,
            "startup_offsets": ((0, 8),),
            "bounded_mode": BoundedMode.SPECIFIC,
            "bounded_offsets": ((0, 3), (1, 1)),
        },
        {0: 8, 1: 1},
    ),
}


GROUP = {"startup_mode": StartupMode.GROUP}
STARTS = {  # what the group has committed, auto.offset.reset, where the stream starts
    "where_the_group_is": ({0: 7, 1: 4}, "none", {0: 7, 1: 4}),
    "a_new_partition_from_the_beginning": ({0: 7}, "earliest", {0: 7, 1: 0}),
    "a_new_partition_from_the_end": ({0: 7}, "latest", {0: 7, 1: 4}),
    "a_new_group_from_the_beginning": ({}, "earliest", {0: 0, 1: 0}),
    "an_offset_beyond_the_end_is_reset": ({0: 99, 1: 1}, "latest", {0: 10, 1: 1}),
}
NO_STARTS = {
    "a_new_group": ({}, "has no offset for partition 0"),
    "a_new_partition": ({0: 7}, "has no offset for partition 1"),
    "an_offset_beyond_the_end": ({0: 7, 1: 5}, "has the expired offset 5 for partition 1"),
}
TIME = SqlType(TypeName.TIMESTAMP, 3)


@pytest.fixture(scope="module")
def source(kafka):
    topic = create_topic(kafka.bootstrap_servers, partitions=2)
    for partition, count in ((0, 10), (1, 4)):
        produce(kafka.bootstrap_servers, topic, range(count), partition=partition)
    return KafkaSource(KafkaOptions(kafka.bootstrap_servers, topic), StartupMode.EARLIEST)


@pytest.mark.parametrize(("given", "end"), ENDS.values(), ids=ENDS)
def test_the_end_is_resolved_to_offsets(source, given, end):
    asked, cluster = replace(source, **given), stream_of(source)
    assert resolve_end_offsets(asked, resolve_start_offsets(asked, cluster), cluster) == end


def stream_of(source):
    return StreamCluster(KafkaCluster(source.kafka), source.topics)


def grouped(source, committed, reset="none"):
    """The stream with a group that has committed these offsets."""
    group = unique_name("group")
    if committed:
        cluster = KafkaCluster(source.kafka)
        commit_offsets(cluster.connection, group, source.kafka.topic, committed)
    properties = (("auto.offset.reset", reset), ("group.id", group))
    kafka = replace(source.kafka, properties=properties)
    return replace(source, kafka=kafka, **GROUP)


@pytest.mark.parametrize(("committed", "reset", "start"), STARTS.values(), ids=STARTS)
def test_a_stream_starts_where_its_group_is(source, committed, reset, start):
    asked = grouped(source, committed, reset)
    assert resolve_start_offsets(asked, stream_of(asked)) == start


@pytest.mark.parametrize(("committed", "what"), NO_STARTS.values(), ids=NO_STARTS)
def test_a_group_without_an_offset_is_no_place_to_start(source, committed, what):
    asked = grouped(source, committed)
    with pytest.raises(SourceError, match=what) as caught:
        resolve_start_offsets(asked, stream_of(asked))
    assert "'properties.auto.offset.reset' = 'earliest' or 'latest'" in caught.value.hint
    followed = grouped(source, committed, "earliest")
    assert resolve_start_offsets(followed, stream_of(followed))[1] == 0


def test_a_stream_ends_where_another_group_is(source):
    ends = {"startup_mode": StartupMode.EARLIEST, "bounded_mode": BoundedMode.GROUP}
    asked = replace(grouped(source, {0: 3, 1: 2}), **ends)
    cluster = stream_of(asked)
    assert resolve_end_offsets(asked, {0: 0, 1: 0}, cluster) == {0: 3, 1: 2}
    asked = replace(grouped(source, {0: 3}), **ends)
    with pytest.raises(SourceError, match="has no offset for partition 1") as caught:
        resolve_end_offsets(asked, {0: 0, 1: 0}, cluster)
    assert "another 'scan.bounded.mode'" in caught.value.hint
    followed = replace(asked, **LATEST)
    assert resolve_end_offsets(followed, {0: 0, 1: 0}, cluster) == {0: 10, 1: 4}


def test_a_backlog_is_what_is_there_now_or_was_at_submission(source):
    watermark = WatermarkSpec("ts", Constant("x", TIME), after_backlog=True)
    probe = ProbeSource("s", "s", source, (), watermark=watermark)
    cluster = stream_of(source)
    assert resolve_backlog(probe, cluster) == {0: 10, 1: 4}
    kept = replace(probe, source=replace(source, backlog_offsets=((0, 7), (1, 0))))
    assert resolve_backlog(kept, cluster) == {0: 7, 1: 0}
    stays = replace(probe, watermark=replace(watermark, after_backlog=False))
    assert resolve_backlog(stays, cluster) is None
    assert resolve_backlog(replace(probe, watermark=None), cluster) is None


def test_an_end_in_a_partition_that_is_not_there_is_refused(source):
    asked = replace(source, bounded_mode=BoundedMode.SPECIFIC, bounded_offsets=((7, 1),))
    with pytest.raises(SourceError, match="no partition 7") as caught:
        resolve_end_offsets(asked, {0: 0, 1: 0}, stream_of(source))
    assert "scan.bounded.specific-offsets" in caught.value.hint


def test_starts_ends_and_backlogs_are_where_committed_records_end(kafka):
    """Of an open transaction nothing is there yet; an aborted one is passed."""
    topic = create_topic(kafka.bootstrap_servers)
    kafka_options = KafkaOptions(kafka.bootstrap_servers, topic)
    source = KafkaSource(kafka_options, StartupMode.LATEST, bounded_mode=BoundedMode.LATEST)
    cluster = stream_of(source)
    watermark = WatermarkSpec("ts", Constant("x", TIME), after_backlog=True)
    probe = ProbeSource("s", "s", source, (), watermark=watermark)
    with transactions(kafka.bootstrap_servers) as writer:
        writer.committed(topic, {0: [1]})
        writer.begin()
        writer.send(topic, {0: [2]})
        assert resolve_start_offsets(source, cluster) == {0: 2}
        assert resolve_end_offsets(source, {0: 0}, cluster) == {0: 2}
        assert resolve_backlog(probe, cluster) == {0: 2}
        writer.abort()
    assert resolve_start_offsets(source, cluster) == {0: 4}
    assert resolve_end_offsets(source, {0: 0}, cluster) == {0: 4}


@pytest.fixture(scope="module")
def several(kafka):
    """Two topics with one and two partitions."""
    servers = kafka.bootstrap_servers
    first, second = (create_topic(servers, partitions=n) for n in (1, 2))
    for topic, partition, count in ((first, 0, 3), (second, 0, 5), (second, 1, 7)):
        produce(servers, topic, range(count), partition=partition)
    return KafkaSource(KafkaOptions(servers, first), StartupMode.EARLIEST, more_topics=(second,))


def specific(source, *pairs):
    offsets = in_each(source.topics, pairs)
    return replace(source, startup_mode=StartupMode.SPECIFIC, startup_offsets=offsets)


def test_each_topic_of_several_starts_and_ends_by_itself(several):
    cluster = stream_of(several)
    ends = {0: 3, SPAN: 5, SPAN + 1: 7}
    latest = replace(several, **LATEST)
    assert resolve_start_offsets(several, cluster) == dict.fromkeys(ends, 0)
    assert resolve_end_offsets(latest, dict.fromkeys(ends, 0), cluster) == ends
    asked = specific(several, (0, 2))
    assert resolve_start_offsets(asked, cluster) == {0: 2, SPAN: 2, SPAN + 1: 0}
    with pytest.raises(SourceError) as caught:
        resolve_start_offsets(specific(several, (1, 2)), cluster)
    assert f'topic "{several.kafka.topic}" has no partition 1' in caught.value.message
    assert "its partitions are [0]" in caught.value.message


def test_each_topic_of_several_starts_where_the_group_is_in_it(several):
    group, (first, second) = unique_name("group"), several.topics.names
    cluster = KafkaCluster(several.kafka)
    commit_offsets(cluster.connection, group, first, {0: 1})
    commit_offsets(cluster.connection, group, second, {1: 6})
    properties = (("auto.offset.reset", "latest"), ("group.id", group))
    asked = replace(several, kafka=replace(several.kafka, properties=properties), **GROUP)
    assert resolve_start_offsets(asked, stream_of(asked)) == {0: 1, SPAN: 5, SPAN + 1: 6}
    strict = replace(asked, kafka=replace(asked.kafka, properties=(("group.id", group),)))
    with pytest.raises(SourceError) as caught:
        resolve_start_offsets(strict, stream_of(strict))
    assert f'has no offset for partition 0 of topic "{second}"' in caught.value.message


def test_a_pattern_is_the_topics_that_match_when_the_job_is_submitted(kafka):
    prefix = unique_name("like")
    source = KafkaSource(
        KafkaOptions(kafka.bootstrap_servers, ""),
        StartupMode.SPECIFIC,
        startup_offsets=((0, 4),),
        topic_pattern=f"{prefix}-[ab]+",
    )
    cluster = KafkaCluster(source.kafka)
    with pytest.raises(SourceError, match="no topic matches"):
        resolve_topics(source, cluster)
    for name in ("b", "ab", "c"):
        create_topic(kafka.bootstrap_servers, f"{prefix}-{name}")
    found = resolve_topics(source, cluster)
    assert found.topics.names == (f"{prefix}-ab", f"{prefix}-b")
    assert found.startup_offsets == ((0, 4), (SPAN, 4))
    assert resolve_topics(found, cluster) == found, "once they are known, they stay"
