"""Configurations of the processes that copy topics and files; they need no Spark."""

from collections.abc import Collection
from dataclasses import replace

from joins.adapters.files.listing import FileFeedConfig
from joins.adapters.files.stream_rows import StreamFiles
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.plan.plan import Dimension, FileSource, JoinPlan, KafkaSource, TopicSource
from service.config import Settings
from service.security.resolution import files_path, history_path, internal_kafka
from service.wiring.context import JobContext


def topic_feed(job: JobContext, dimension: Dimension, source: TopicSource) -> TopicFeedConfig:
    history, state_file = source.history, job.checkpoint.source_file(dimension.name)
    kafka = internal_kafka(job.plan, job.settings)
    return TopicFeedConfig(
        source=source,
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        state_file=state_file,
        decisions_file=state_file.with_suffix(".decisions.json"),
        rowtime=None if dimension.watermark is None else dimension.watermark.rowtime,
        failpoints=job.settings.failpoints,
        freshness_s=job.settings.freshness_interval_s,
        history_path=None if history is None else history_path(history, job.settings),
    )


def stream_files(
    plan: JoinPlan, settings: Settings, names: Collection[str] | None = None
) -> StreamFiles | None:
    """The files before the stream's topic, with the columns `names`; None without a history."""
    source = plan.probe.source
    if not isinstance(source, KafkaSource) or source.history is None:
        return None
    history, fields = source.history, plan.probe.fields
    assert history.listed is not None, "submission has listed them"
    read = tuple(field for field in fields if names is None or field.name in names)
    path = history_path(history, settings)
    return StreamFiles(path, history.version, read or fields[:1], history.listed)


def file_feed(job: JobContext, dimension: Dimension, source: FileSource) -> FileFeedConfig:
    kafka = internal_kafka(job.plan, job.settings)
    return FileFeedConfig(
        path=files_path(source, job.settings),
        source=source,
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
    )
