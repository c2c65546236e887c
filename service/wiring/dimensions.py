"""The tables that a job joins with: source, storage and lookup."""

from dataclasses import replace

from pyspark.sql import SparkSession

from joins.adapters.delta.source import DeltaFeedConfig, captured_columns
from joins.adapters.files.listing import FileFeedConfig
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import CapturedTable
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.dimension.build_side import BuildTask
from joins.dimension.changelog_topic import ChangelogTopic
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.followed import FollowedDimension
from joins.durable.checkpoint import read_json, write_json_atomically
from joins.durable.leases import Lease
from joins.durable.requests import Stalls
from joins.job.opening import Opening
from joins.job.temporal_join import watermark_sink
from joins.kernels.changelog.envelope import CapturedColumn
from joins.kernels.index.segment import IndexSpec
from joins.plan.plan import (
    DeltaTableSource,
    Dimension,
    FileSource,
    MysqlCdcSource,
    SharedSource,
    TopicSource,
)
from joins.source.coordinator import SourceCoordinator
from joins.source.feed_coordinator import (
    DeltaCoordinator,
    FileCoordinator,
    HistoryCoordinator,
    TopicCoordinator,
)
from joins.source.snapshot import SnapshotCoordinator, SourceSettings
from joins.worker.index_source import DimensionTables, on_this_node
from service.security.resolution import (
    connection_of,
    files_path,
    history_path,
    internal_kafka,
    output_path,
)
from service.wiring.context import JobContext, shared_coordinator, shared_meta
from service.wiring.meta import make_internal_topic


def captured(job: JobContext, dimension: Dimension) -> tuple[CapturedColumn, ...]:
    """The columns of the dimension's changelog. Raises SluiceError."""
    source = dimension.source
    if isinstance(source, MysqlCdcSource):
        return _captured_table(job, dimension, source).captured
    if isinstance(source, SharedSource):
        shared_meta(job.layout, source)  # its own job's first start creates the table
    return captured_columns(dimension.fields)


def _captured_table(job: JobContext, dimension: Dimension, source: MysqlCdcSource) -> CapturedTable:
    """The table as first seen: a restart joins without the database."""
    path = job.checkpoint.directory / "sources" / f"{dimension.name}.table.json"
    kept = read_json(path)
    if kept is not None:
        return CapturedTable.from_json(kept)
    table = check_source(connection_of(source), dimension.fields, dimension.primary_key)
    write_json_atomically(path, table.as_json())
    return table


def dimension_runtime(
    job: JobContext, dimension: Dimension, columns: tuple[CapturedColumn, ...], opening: Opening
) -> DimensionRuntime:
    """Follows the dimension's changelog; its commits feed the `opening`."""
    root = job.layout.table(dimension)
    places = DimensionPlaces(
        topic=job.meta.changelog_topics[dimension.name],
        partitions=job.partitions(dimension),
        changelog=root / "changelog",
        current=root / "current",
        index=on_this_node(job.index_directory(dimension)),
        index_is_shared=isinstance(dimension.source, SharedSource),
        index_specs=_all_specs(job, dimension),
    )
    on_watermark, source = watermark_sink(opening), dimension.source
    if isinstance(source, SharedSource):
        lease, app_id = Lease(job.layout.lease(source)), job.table_app_id(dimension)
        return FollowedDimension(dimension, places, lease, app_id=app_id, on_watermark=on_watermark)
    task = BuildTask(places.topic, places.changelog, columns, job.meta.epoch, dimension.watermark)
    return DimensionRuntime(
        dimension,
        places,
        task,
        app_id=job.app_id,
        on_watermark=on_watermark,
        topic=_changelog_topic(job, dimension, places),
    )


def _changelog_topic(
    job: JobContext, dimension: Dimension, places: DimensionPlaces
) -> ChangelogTopic:
    def make(cluster: KafkaCluster) -> None:
        make_internal_topic(cluster, job.settings, places.topic, places.partitions)

    file = job.checkpoint.source_file(dimension.name).with_suffix(".topic.json")
    kafka = internal_kafka(job.plan, job.settings)
    return ChangelogTopic(kafka, places.topic, places.partitions, make, file)


def _all_specs(job: JobContext, dimension: Dimension) -> tuple[IndexSpec, ...]:
    numbers = range(len(job.plan.inserts))
    specs = [spec for n in numbers for spec in job.index_specs(dimension, n).values()]
    return tuple(dict.fromkeys(specs))


def source_coordinator(
    job: JobContext, spark: SparkSession, runtime: DimensionRuntime, stalls: Stalls
) -> SourceCoordinator:
    """The source of a dimension; its answers about its time go to the `runtime`."""
    coordinator = _coordinator(job, spark, runtime, stalls)
    coordinator.freshness = runtime.freshness
    return coordinator


def _coordinator(
    job: JobContext, spark: SparkSession, runtime: DimensionRuntime, stalls: Stalls
) -> SourceCoordinator:
    dimension, topic = runtime.dimension, runtime.topic
    source = dimension.source
    if isinstance(source, DeltaTableSource):
        return DeltaCoordinator(dimension.name, _feed(job, dimension, source), stalls, topic)
    if isinstance(source, TopicSource):
        acknowledgements = job.checkpoint.directory / "acknowledgements.jsonl"
        kafka = internal_kafka(job.plan, job.settings)
        state_file = job.checkpoint.source_file(dimension.name)
        config = TopicFeedConfig(
            source=source,
            fields=dimension.fields,
            primary_key=dimension.primary_key,
            kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
            state_file=state_file,
            decisions_file=state_file.with_suffix(".decisions.json"),
            rowtime=None if dimension.watermark is None else dimension.watermark.rowtime,
            failpoints=job.settings.failpoints,
            freshness_s=job.settings.freshness_interval_s,
        )
        if source.history is None:
            return TopicCoordinator(dimension.name, config, stalls, acknowledgements, topic)
        config = replace(config, history_path=history_path(source.history, job.settings))
        return HistoryCoordinator(dimension.name, config, stalls, acknowledgements, topic)
    if isinstance(source, FileSource):
        return FileCoordinator(dimension.name, _file_feed(job, dimension, source), stalls, topic)
    if isinstance(source, SharedSource):
        return shared_coordinator(job.layout, dimension.name, source, stalls)
    table = _captured_table(job, dimension, source)
    settings = SourceSettings(
        connection=connection_of(source),
        kafka=internal_kafka(job.plan, job.settings),
        topic=job.meta.changelog_topics[dimension.name],
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
        offset_file=job.checkpoint.cdc_file(dimension.name),
        staged=job.row_files(f"snapshot_{dimension.name}"),
        tasks=job.settings.snapshot_parallelism,
        rows_per_job=job.settings.snapshot_job_rows,
        freshness_s=job.settings.freshness_interval_s,
    )
    return SnapshotCoordinator(spark, dimension, table, settings, stalls, topic)


def _feed(job: JobContext, dimension: Dimension, source: DeltaTableSource) -> DeltaFeedConfig:
    kafka = internal_kafka(job.plan, job.settings)
    return DeltaFeedConfig(
        path=output_path(source, job.settings),
        fields=dimension.fields,
        primary_key=dimension.primary_key,
        kafka=replace(kafka, topic=job.meta.changelog_topics[dimension.name]),
        partitions=job.partitions(dimension),
        state_file=job.checkpoint.source_file(dimension.name),
        monitor_interval_ms=source.monitor_interval_ms,
        freshness_s=job.settings.freshness_interval_s,
    )


def _file_feed(job: JobContext, dimension: Dimension, source: FileSource) -> FileFeedConfig:
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


def tables_of(job: JobContext, dimension: Dimension) -> DimensionTables:
    root, app_id = job.layout.table(dimension), job.table_app_id(dimension)
    return DimensionTables(root / "changelog", root / "current", f"{app_id}:{dimension.name}")
