"""Configurations of the processes that copy topics and files; they need no Spark."""

from dataclasses import replace

from joins.adapters.files.listing import FileFeedConfig
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.polled.table import PolledConfig
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.plan.plan import Dimension, FileSource, PolledSource, TopicSource
from service.security.resolution import connection_of, files_path, history_path, internal_kafka
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


def polled_feed(
    job: JobContext, dimension: Dimension, source: PolledSource, captured: CapturedTable | None
) -> PolledConfig:
    kafka = internal_kafka(job.plan, job.settings)
    return PolledConfig(
        connection=connection_of(source),
        captured=captured,
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
        refresh_ms=source.refresh_ms,
        column=source.column,
        whole_refresh_ms=source.whole_refresh_ms,
    )
