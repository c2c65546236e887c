"""From a plan and settings to a running job."""

import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from joins.adapters.datagen import DatagenProcess
from joins.adapters.delta.features import WriterChoice
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.batch.inserts import Inserts, ProbeInsert
from joins.dimension.build_side import BuildTask
from joins.dimension.changelog_topic import ChangelogTopic
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.fold import FoldPolicy
from joins.dimension.followed import FollowedDimension
from joins.durable.checkpoint import Checkpoint
from joins.durable.failpoints import Failpoints
from joins.durable.leases import Lease
from joins.durable.requests import Stalls
from joins.job.opening import Opening, channel_name
from joins.job.parts import JobParts, JobSettings
from joins.job.session import attach_session, start_session
from joins.job.temporal_join import TemporalJoin, watermark_sink
from joins.kernels.changelog.envelope import CapturedColumn
from joins.kernels.probe.probe import DEAD_LETTERS
from joins.plan.plan import (
    DatagenSource,
    Dimension,
    JoinPlan,
    PrintSink,
    SharedSource,
)
from joins.sinks.delta import DeltaOutputWriter, MergeSinkWriter
from joins.sinks.kafka import KafkaTaskWriter
from joins.sinks.port import BatchWriter
from joins.source.coordinator import SourceCoordinator
from joins.worker.index_source import DimensionTables, on_this_node
from joins.worker.probe_task import ProbeTask
from joins.worker.resident_pool import ResidentPool
from service.config import Settings
from service.connectors.mysql import stream_coordinator
from service.connectors.plans import check_allowed, resolve_secrets
from service.connectors.port import SourceParts
from service.connectors.registry import source_connector
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.jobs.submit.places import check_nodes
from service.jobs.supervise.runner_process import RunnerLog
from service.security.resolution import (
    internal_kafka,
    probe_kafka,
)
from service.security.secrets import SecretResolver
from service.sql.catalog.settings import trigger_interval_ms
from service.wiring.context import JobContext, stream_files
from service.wiring.meta import claim_meta, hold_files, make_internal_topic
from service.wiring.past import letter_replay
from service.wiring.sinks import InsertSink, event_job
from service.wiring.spark import resident_tasks, spark_settings


def dimension_runtime(
    job: JobContext, dimension: Dimension, columns: tuple[CapturedColumn, ...], opening: Opening
) -> DimensionRuntime:
    """Follows the dimension's changelog; its commits feed the `opening`."""
    root = job.layout.table(dimension)
    numbers = range(len(job.plan.inserts))
    specs = [spec for n in numbers for spec in job.index_specs(dimension, n).values()]
    places = DimensionPlaces(
        topic=job.meta.changelog_topics[dimension.name],
        partitions=job.partitions(dimension),
        changelog=root / "changelog",
        current=root / "current",
        index=on_this_node(job.index_directory(dimension)),
        index_is_shared=isinstance(dimension.source, SharedSource),
        index_specs=tuple(dict.fromkeys(specs)),
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


def source_coordinator(
    job: JobContext, spark: SparkSession, runtime: DimensionRuntime, stalls: Stalls
) -> SourceCoordinator:
    """The source of a dimension; its answers about its time go to the `runtime`."""
    source = runtime.dimension.source
    parts = SourceParts(job, spark, runtime, stalls)
    coordinator = source_connector(source).coordinator(parts, source)
    coordinator.freshness = runtime.freshness
    return coordinator


def table_stream(job: JobContext, spark: SparkSession, stalls: Stalls) -> SourceCoordinator | None:
    table = job.plan.probe.captured
    return None if table is None else stream_coordinator(job, spark, table, stalls)


def tables_of(job: JobContext, dimension: Dimension) -> DimensionTables:
    root, app_id = job.layout.table(dimension), job.table_app_id(dimension)
    return DimensionTables(root / "changelog", root / "current", f"{app_id}:{dimension.name}")


_PRINTED_PER_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job whose checkpoint this process owns; `at_end` is released before the lock.

    `driver` is the file with the address of a shared driver; None starts one.
    """

    layout: JobLayout
    settings: Settings
    checkpoint: Checkpoint
    log: RunnerLog
    driver: Path | None
    at_end: ExitStack

    def start(self, on_tick: Callable[[TemporalJoin], None]) -> TemporalJoin:
        """Assemble the job under the plan of its next batch; nothing runs before `run` of it.

        Raises SluiceError.
        """
        plans = JobPlans(self.layout)
        self.at_end.enter_context(hold_files(self.layout, plans.newest()))
        plan = plans.to_run()
        check_allowed(plan, self.settings)
        check_nodes(plan, self.settings, in_store=self.layout.is_in_store())
        secrets = SecretResolver.of(self.settings, self.layout.job_dir)
        plan = resolve_secrets(plan, secrets)
        meta = claim_meta(plan, self.settings, self.checkpoint, self.layout.job_dir.name)
        context = JobContext(plan, self.settings, self.layout, self.checkpoint, meta)
        return _Assembly(context, self.log, self.driver).assemble(on_tick)


@contextmanager
def open_job(
    layout: JobLayout, settings: Settings, driver: Path | None = None
) -> Iterator[OpenJob]:
    checkpoint = Checkpoint(layout.checkpoint)
    checkpoint.lock.acquire()
    try:
        log = RunnerLog(layout.runner_log, sys.stdout)
        with ExitStack() as at_end:
            yield OpenJob(layout, settings, checkpoint, log, driver, at_end)
    finally:
        checkpoint.lock.release()


class _Assembly:
    """The parts of one job; parts without a JVM come first, as they may fail."""

    def __init__(self, context: JobContext, log: RunnerLog, driver: Path | None) -> None:
        self.context = context
        self.log = log
        self.driver = driver
        self.plan = context.plan
        self.settings = context.settings
        self.sinks = [InsertSink(context, n) for n in range(len(self.plan.inserts))]
        self.stalls = Stalls()
        self.failpoints = Failpoints(
            self.settings.failpoints, context.checkpoint.directory / "failpoints"
        )

    def assemble(self, on_tick: Callable[[TemporalJoin], None]) -> TemporalJoin:
        job, plan = self.context, self.plan
        columns = {
            d.name: source_connector(d.source).captured(job, d, d.source) for d in plan.dimensions
        }
        tables = [dimension.name for dimension in plan.dimensions]
        opening = Opening(job.checkpoint, self._channels(), lambda: join.request_open(), tables)
        dimensions = tuple(
            dimension_runtime(job, d, columns[d.name], opening) for d in plan.dimensions
        )
        for sink in self.sinks:
            sink.prepare()
        create_table(job.layout.dead_letters, DEAD_LETTERS)
        dead_letters = DeltaLog(job.layout.dead_letters, job.app_id)
        event = event_job(job, self._probe_task(), dead_letters)
        spark = self._session()
        inserts, outputs = self._inserts(spark, dimensions)
        parts = JobParts(
            job_id=job.job_id,
            plan=plan,
            meta=job.meta,
            checkpoint=job.checkpoint,
            spark=spark,
            changelog_kafka=internal_kafka(plan, self.settings),
            probe_kafka=probe_kafka(plan, self.settings, job.meta.probe_topic),
            dimensions=dimensions,
            inserts=Inserts(inserts),
            sources=tuple(source_coordinator(job, spark, d, self.stalls) for d in dimensions),
            outputs=(*outputs, dead_letters, *(() if event is None else event.tables.logs)),
            dead_letters=dead_letters,
            opening=opening,
            stalls=self.stalls,
            failpoints=self.failpoints,
            settings=_job_settings(plan, self.settings),
            requests=job.layout.requests,
            handlers={"replay-dead-letters": letter_replay(job, spark, self.log)},
            table_stream=table_stream(job, spark, self.stalls),
            generator=_generator(job),
            writer_choice=partial(_choice_of, [insert.writer for insert in inserts]),
            residents=self._residents(spark),
            event=event,
            stream_files=stream_files(plan, self.settings, _columns_read(inserts)),
            has_newer_plan=partial(JobPlans(job.layout).has_newer, plan.number),
        )
        join = TemporalJoin(parts, on_tick)
        return join

    def _session(self) -> SparkSession:
        job = self.context
        if self.driver is not None:
            host = os.getppid()
            return attach_session(self.driver, job.job_id, lambda: os.getppid() == host)
        settings = spark_settings(
            job.settings,
            f"sluice {job.plan.name} {job.job_id}",
            job.layout.job_dir / "scratch",
            residents=resident_tasks(job.settings),
        )
        return start_session(settings, inherit=(job.checkpoint.lock.descriptor,))

    def _residents(self, spark: SparkSession) -> ResidentPool | None:
        """None without any, and where runners share Spark's slots: each would hold some."""
        size = resident_tasks(self.settings)
        if size == 0 or self.driver is not None:
            return None
        return ResidentPool(spark, size, timeout_s=self.settings.resident_task_timeout_s)

    def _channels(self) -> list[str]:
        return [
            channel_name(d.name, p)
            for d in self.plan.dimensions
            for p in range(self.context.partitions(d))
        ]

    def _inserts(
        self, spark: SparkSession, runtimes: Sequence[DimensionRuntime]
    ) -> tuple[list[ProbeInsert], list[DeltaLog]]:
        inserts: list[ProbeInsert] = []
        outputs: list[DeltaLog] = []
        for number, sink in enumerate(self.sinks):
            writer, logs = sink.writer(spark, self.log, self.failpoints)
            task = self._probe_task(number)
            inserts.append(ProbeInsert(task, writer, isinstance(writer, KafkaTaskWriter)))
            outputs += logs
        return inserts, outputs

    def _probe_task(self, number: int = 0) -> ProbeTask:
        job, dimensions = self.context, self.plan.dimensions
        return ProbeTask(
            kernel=job.kernel(number),
            indexes=job.index_places(dimensions, number),
            dead_letters=job.layout.dead_letters,
            epoch=job.meta.epoch,
            failpoints=self.failpoints,
            tables={d.name: tables_of(job, d) for d in dimensions},
        )


def _job_settings(plan: JoinPlan, settings: Settings) -> JobSettings:
    trigger = trigger_interval_ms(plan)
    limit = settings.max_records_per_batch
    if any(isinstance(insert.sink, PrintSink) for insert in plan.inserts):
        limit = min(limit, _PRINTED_PER_BATCH)  # printed rows pass through the driver
    return JobSettings(
        build_trigger_ms=trigger or settings.build_trigger_ms,
        probe_trigger_ms=trigger or settings.probe_trigger_ms,
        max_records_per_batch=limit,
        max_bytes_per_batch=settings.max_bytes_per_batch,
        fold_interval_s=settings.fold_interval_s,
        fold=FoldPolicy(settings.fold_share, settings.fold_max_interval_s),
        replay_batches=settings.replay_batches,
        replay_state_bytes=settings.replay_state_max_mib << 20,
        maintenance_interval_s=settings.maintenance_interval_s,
        current_retention_hours=settings.current_retention_hours,
    )


def _columns_read(inserts: Iterable[ProbeInsert]) -> frozenset[str]:
    return frozenset(name for insert in inserts for name in insert.task.kernel.names)


def _generator(job: JobContext) -> Callable[[], None] | None:
    source = job.plan.probe.source
    if not isinstance(source, DatagenSource) or job.plan.shared_table is not None:
        return None
    kafka = replace(internal_kafka(job.plan, job.settings), topic=job.meta.probe_topic)
    seed = uuid.UUID(job.meta.incarnation).int % 2**63
    return DatagenProcess(kafka, source, job.plan.probe.fields, seed).keep_alive


def _choice_of(writers: Iterable[BatchWriter]) -> WriterChoice | None:
    delta = (w for w in writers if isinstance(w, DeltaOutputWriter | MergeSinkWriter))
    choices = [writer.choice for writer in delta]
    return min(choices, key=lambda choice: not choice.is_spark, default=None)
