"""The durable beginning of a job: its topics, and the start and end of its stream."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.pool import OpenClusters
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.adapters.network import within
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.stored import keep_stored, stop_storing
from joins.durable.stored_directory import take_over
from joins.kernels.probe.generate import row_limit
from joins.plan.errors import SourceError
from joins.plan.plan import (
    DatagenSource,
    Dimension,
    JoinPlan,
    KafkaSource,
    SharedSource,
    TableStream,
)
from joins.plan.stream_topics import NO_TOPICS, StreamTopics
from service.config import PREFIX, Settings
from service.jobs.store.layout import JobLayout
from service.security.resolution import (
    internal_kafka,
    resolve_backlog,
    resolve_end_offsets,
    resolve_start_offsets,
)
from service.wiring.context import changelog_partitions

_LAST_PUTS_S = 2.0  # a stopping runner is killed after some seconds
TOPIC_SETTINGS = {
    "retention.ms": f"{PREFIX}CHANGELOG_RETENTION_MS",
    "max.message.bytes": f"{PREFIX}CHANGELOG_MAX_MESSAGE_BYTES",
    "min.insync.replicas": f"{PREFIX}CHANGELOG_MIN_INSYNC",
}
"""Config of the topics that a job creates → the setting that it comes from."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """The topics of the probe and the job's offsets in them."""

    topics: StreamTopics
    start: dict[int, int]
    end: dict[int, int] | None
    backlog: dict[int, int] | None


def claim_meta(plan: JoinPlan, settings: Settings, checkpoint: Checkpoint, job_id: str) -> JobMeta:
    """The durable facts of the job's first start, under a new epoch. Raises SluiceError.

    A table that a newer plan has added gets its changelog topic.
    """
    kept = checkpoint.read_meta()  # `hold_files` has completed the directory before
    kept = kept or checkpoint.create_meta(_first_meta(plan, settings, job_id))
    added = [d for d in plan.dimensions if d.name not in kept.changelog_topics]
    topics = {**kept.changelog_topics, **_made_topics(plan, added, settings, job_id)}
    epoch = checkpoint.claim_epoch(kept.epoch)
    meta = replace(kept, epoch=epoch, changelog_topics=topics)
    checkpoint.write_meta(meta)
    return meta


@contextmanager
def hold_files(layout: JobLayout, plan: JoinPlan) -> Iterator[None]:
    """Hold the stored durable files of a job as their newest runner.

    Raises SourceUnavailableError or StoreRefusedError.
    """
    files = layout.stored()
    if files is None:
        yield
        return
    meta = Checkpoint(layout.checkpoint).read_meta()
    take_over(files, 0 if meta is None else meta.epoch)
    tables = {
        d.source.job_id: d.source for d in plan.dimensions if isinstance(d.source, SharedSource)
    }
    leased = [layout.stored_of_shared(source) for source in tables.values()]
    stored = [files, *(each for each in leased if each is not None)]
    for each in stored:
        keep_stored(each)
    try:
        yield
    finally:
        with within(_LAST_PUTS_S):
            for each in stored:
                stop_storing(each.directory)


def make_internal_topic(
    cluster: KafkaCluster, settings: Settings, name: str, partitions: int
) -> None:
    cluster.create(
        name,
        partitions,
        settings.changelog_replication,
        topic_config(settings),
        settings=TOPIC_SETTINGS,
    )


def _first_meta(plan: JoinPlan, settings: Settings, job_id: str) -> JobMeta:
    topics = _made_topics(plan, plan.dimensions, settings, job_id)
    cluster = KafkaCluster(internal_kafka(plan, settings))
    source = plan.probe.source
    if isinstance(source, DatagenSource):
        topic = f"sluice.{job_id}.probe"
        make_internal_topic(cluster, settings, topic, 1)
        stream = _generated(source, cluster, topic)
    elif isinstance(source, TableStream):
        topic = f"sluice.{job_id}.probe"
        partitions = source.table.changelog_partitions or settings.changelog_partitions
        make_internal_topic(cluster, settings, topic, partitions)
        described = cluster.require(topic)
        topics_of_stream = StreamTopics.one(described.name, described.topic_id)
        stream = _Stream(topics_of_stream, dict.fromkeys(range(partitions), 0), None, None)
    else:
        stream = _read(plan, source)
    return JobMeta(
        incarnation=str(uuid.uuid4()),
        epoch=0,
        probe_topic=stream.topics.names[0],
        probe_topic_id=stream.topics.topics[0].topic_id,
        probe_start_offsets=stream.start,
        changelog_topics=topics,
        probe_end_offsets=stream.end,
        probe_backlog_offsets=stream.backlog,
        probe_topics=stream.topics if stream.topics.are_several else NO_TOPICS,
    )


def _made_topics(
    plan: JoinPlan, dimensions: Sequence[Dimension], settings: Settings, job_id: str
) -> dict[str, str]:
    """Table → its changelog topic, which exists then."""
    topics = {d.name: _changelog_topic(d, job_id) for d in dimensions}
    own = [d for d in dimensions if not isinstance(d.source, SharedSource)]  # another job's else
    if own:
        cluster = KafkaCluster(internal_kafka(plan, settings))
        for dimension in own:
            partitions = changelog_partitions(dimension, settings)
            make_internal_topic(cluster, settings, topics[dimension.name], partitions)
    return topics


def topic_config(settings: Settings) -> dict[str, str]:
    return {
        "retention.ms": str(settings.changelog_retention_ms),
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        "max.message.bytes": str(settings.changelog_max_message_bytes),
        "min.insync.replicas": str(settings.changelog_min_insync),
    }


def _changelog_topic(dimension: Dimension, job_id: str) -> str:
    source = dimension.source
    if isinstance(source, SharedSource):
        return f"sluice.{source.job_id}.{source.table}"
    return f"sluice.{job_id}.{dimension.name}"


def _generated(source: DatagenSource, cluster: KafkaCluster, topic: str) -> _Stream:
    described, rows = cluster.require(topic), row_limit(source)
    end = None if rows is None else {0: rows}
    topics = StreamTopics.one(described.name, described.topic_id)
    return _Stream(topics, {0: 0}, end, None)


def _read(plan: JoinPlan, source: KafkaSource) -> _Stream:
    with OpenClusters() as clusters:
        cluster = StreamCluster(clusters.of(source.kafka), source.topics)
        topics = cluster.identified()
        for topic, expected in zip(topics.topics, source.topic_ids, strict=False):
            if topic.topic_id != expected:
                raise SourceError(
                    f'topic "{topic.name}" has id {topic.topic_id}, expected {expected}: it was '
                    "deleted and created again since the job was submitted",
                    hint="Remove the job and submit it again: it has joined nothing yet.",
                )
        start = resolve_start_offsets(source, cluster)
        end = resolve_end_offsets(source, start, cluster)
        backlog = resolve_backlog(plan.probe, cluster)
    return _Stream(topics, start, end, backlog)
