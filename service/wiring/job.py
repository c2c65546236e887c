"""The one place where ports meet adapters: from a plan and settings to a running job."""

import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
from pyspark.sql import SparkSession

from joins.adapters.datagen.supervision import DatagenProcess
from joins.adapters.delta.features import Appends, WriterChoice
from joins.adapters.delta.feed_state import DeltaFeedConfig
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.merge import MergedOutput
from joins.adapters.delta.output import OutputLog
from joins.adapters.delta.source import captured_columns
from joins.adapters.delta.state_log import StateColumns, StateLog
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.pool import OpenClusters
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import CapturedTable
from joins.batch.event_batch import EventTables
from joins.batch.event_items import WAITING_COLUMNS, WINDOW_COLUMNS
from joins.batch.event_state import EventSpec
from joins.batch.inserts import Inserts, ProbeInsert
from joins.batch.lookups import Lookups, Role
from joins.dimension.build_side import BuildTask
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.fold_schedule import FoldPolicy
from joins.durable.app_ids import job_app_id, late_app_id, output_app_id, replay_app_id
from joins.durable.checkpoint import Checkpoint, JobMeta, read_json, write_json_atomically
from joins.durable.failpoints import Failpoints
from joins.durable.letter_replays import LetterReplays
from joins.durable.requests import Handler, Request
from joins.durable.stalls import Stalls
from joins.job.event_job import EventJob
from joins.job.opening import Opening, channel_name
from joins.job.parts import JobParts, JobSettings
from joins.job.session import SparkSettings, start_session
from joins.job.temporal_join import TemporalJoin, watermark_sink
from joins.kernels.changelog.envelope import CapturedColumn
from joins.kernels.index.spec import IndexSpec
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.generate import row_limit
from joins.kernels.probe.probe import DEAD_LETTERS, ProbeKernelSpec, index_spec, kernel_spec
from joins.lookback.dead_letter_replay import DeadLetterReplay, ReplayParts
from joins.lookback.dead_letters import DeadLetters
from joins.lookback.history import (
    History,
    HistoryPlaces,
    sent_note,
)
from joins.lookback.letter_rows import LetterInsert, LetterWriter
from joins.lookup.index_source import DimensionTables
from joins.plan.errors import JoinError, SinkError
from joins.plan.plan import (
    BlackholeSink,
    DatagenSource,
    DeltaSink,
    DeltaTableSource,
    Dimension,
    JoinPlan,
    KafkaSink,
    LookupStrategy,
    MysqlCdcSource,
    PrintSink,
    SinkWriter,
)
from joins.sinks.console import ConsoleLetterWriter, ConsoleSinkWriter
from joins.sinks.kafka import KafkaLetterWriter, KafkaSinkWriter
from joins.sinks.merge import MergeSinkWriter
from joins.sinks.port import BatchWriter
from joins.sinks.spark import DeltaOutputLetterWriter, DeltaOutputWriter
from joins.source.coordinator import SourceCoordinator
from joins.source.delta_coordinator import DeltaCoordinator
from joins.source.snapshot import SnapshotCoordinator, SourceSettings
from joins.worker.event_task import (
    EventPlaces,
    EventTask,
    event_task,
    waiting_schema,
    windows_schema,
)
from joins.worker.node_directory import on_this_node
from joins.worker.probe_task import IndexPlace, ProbeTask
from joins.worker.row_files import RowFiles
from service.config import Settings
from service.embedded.class_archive import class_archive
from service.embedded.jarlock import JarSet
from service.embedded.jars import JarCache
from service.embedded.java import find_java
from service.jobs.store.layout import JobLayout
from service.jobs.store.requests import not_replayable
from service.jobs.submit.places import check_new_table
from service.jobs.supervise.runner_log import RunnerLog
from service.security.allowed import check_allowed
from service.security.resolution import (
    connection_of,
    index_directory,
    internal_kafka,
    output_path,
    probe_kafka,
    resolve_backlog,
    resolve_end_offsets,
    resolve_secrets,
    resolve_start_offsets,
)
from service.security.secrets import SecretResolver
from service.sql.catalog.settings import trigger_interval_ms
from service.wiring.event_places import event_places

_PRINTED_PER_BATCH = 20_000
_CHANGELOG_CONFIG = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": str(64 << 20),
}


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job whose checkpoint this process owns."""

    layout: JobLayout
    settings: Settings
    checkpoint: Checkpoint
    log: RunnerLog

    def start(self, plan: JoinPlan, on_tick: Callable[[TemporalJoin], None]) -> TemporalJoin:
        """Put the job together; nothing runs before `TemporalJoin.run`.

        Raises:
            SluiceError: a part cannot be used; what was created stays and is found again.
        """
        check_allowed(plan, self.settings)
        secrets = SecretResolver.of(self.settings, self.layout.job_dir)
        return _Assembly(self, resolve_secrets(plan, secrets)).assemble(on_tick)


@contextmanager
def open_job(layout: JobLayout, settings: Settings) -> Iterator[OpenJob]:
    """Take the lock of the job's checkpoint.

    Raises:
        CheckpointInUseError: another runner has it.
    """
    checkpoint = Checkpoint(layout.checkpoint)
    checkpoint.lock.acquire()
    try:
        yield OpenJob(layout, settings, checkpoint, RunnerLog(layout.runner_log, sys.stdout))
    finally:
        checkpoint.lock.release()


class _Assembly:
    def __init__(self, job: OpenJob, plan: JoinPlan) -> None:
        self.job = job
        self.plan = plan
        self.settings = job.settings
        self.layout = job.layout
        self.checkpoint = job.checkpoint
        self.job_id = job.layout.job_dir.name
        self.kafka = internal_kafka(plan, job.settings)
        self.stalls = Stalls()
        self.failpoints = Failpoints(
            self.settings.failpoints, job.checkpoint.directory / "failpoints"
        )
        self.meta = self._meta()
        self.app_id = job_app_id(self.job_id, self.meta.incarnation)
        self.plans = plan.inserts

    def assemble(self, on_tick: Callable[[TemporalJoin], None]) -> TemporalJoin:
        trigger = trigger_interval_ms(self.plan)
        columns = {d.name: self._captured(d) for d in self.plan.dimensions}
        channels = [
            channel_name(d.name, p)
            for d in self.plan.dimensions
            for p in range(self._partitions(d))
        ]
        opening = Opening(self.checkpoint, channels, lambda: join.request_open())
        dimensions = tuple(
            self._dimension(d, columns[d.name], opening) for d in self.plan.dimensions
        )
        for number in range(len(self.plans)):
            self._prepare_output(number)
        create_table(self.layout.dead_letters, DEAD_LETTERS)
        dead_letters = DeltaLog(self.layout.dead_letters, self.app_id)
        event = self._event(dead_letters)
        spark = start_session(self._spark_settings(), inherit=(self.checkpoint.lock.descriptor,))
        sources = tuple(self._source(spark, d) for d in self.plan.dimensions)
        inserts, outputs = self._inserts(spark, dimensions)
        parts = JobParts(
            job_id=self.job_id,
            plan=self.plan,
            meta=self.meta,
            checkpoint=self.checkpoint,
            spark=spark,
            changelog_kafka=self.kafka,
            probe_kafka=probe_kafka(self.plan, self.settings, self.meta.probe_topic),
            dimensions=dimensions,
            inserts=Inserts(inserts),
            sources=sources,
            outputs=(*outputs, dead_letters, *(() if event is None else event.tables.logs)),
            dead_letters=dead_letters,
            opening=opening,
            stalls=self.stalls,
            failpoints=self.failpoints,
            settings=JobSettings(
                build_trigger_ms=trigger or self.settings.build_trigger_ms,
                probe_trigger_ms=trigger or self.settings.probe_trigger_ms,
                max_records_per_batch=self._max_records_per_batch(),
                max_bytes_per_batch=self.settings.max_bytes_per_batch,
                fold_interval_s=self.settings.fold_interval_s,
                fold=FoldPolicy(self.settings.fold_share, self.settings.fold_max_interval_s),
                replay_batches=self.settings.replay_batches,
                replay_state_bytes=self.settings.replay_state_max_mib << 20,
                maintenance_interval_s=self.settings.maintenance_interval_s,
                current_retention_hours=self.settings.current_retention_hours,
            ),
            requests=self.layout.requests,
            handlers={"replay-dead-letters": self._replays(spark)},
            generator=self._generator(),
            writer_choice=partial(_choice_of, [insert.writer for insert in inserts]),
            event=event,
        )
        join = TemporalJoin(parts, on_tick)
        return join

    def _max_records_per_batch(self) -> int:
        """Printed rows pass through the driver, so that their batches are small."""
        limit = self.settings.max_records_per_batch
        is_printed = any(isinstance(plan.sink, PrintSink) for plan in self.plans)
        return min(limit, _PRINTED_PER_BATCH) if is_printed else limit

    # Durable beginnings
    # ------------------------------------------------------------------------------

    def _meta(self) -> JobMeta:
        kept = self.checkpoint.read_meta() or self.checkpoint.create_meta(self._first_meta())
        meta = replace(kept, epoch=self.checkpoint.claim_epoch(kept.epoch))
        self.checkpoint.write_meta(meta)
        return meta

    def _first_meta(self) -> JobMeta:
        topics = {d.name: f"sluice.{self.job_id}.{d.name}" for d in self.plan.dimensions}
        cluster = KafkaCluster(self.kafka)
        config = {
            **_CHANGELOG_CONFIG,
            "min.insync.replicas": str(self.settings.changelog_min_insync),
        }
        for dimension in self.plan.dimensions:
            partitions = self._partitions(dimension)
            cluster.create(
                topics[dimension.name], partitions, self.settings.changelog_replication, config
            )
        source = self.plan.probe.source
        if isinstance(source, DatagenSource):
            topic = self._datagen_topic()
            cluster.create(topic, 1, self.settings.changelog_replication, config)
            offsets, described = {0: 0}, cluster.require(topic)
            rows = row_limit(source)
            ends = None if rows is None else {0: rows}
            backlog = None
        else:
            with OpenClusters() as clusters:
                probed = clusters.of(source.kafka)
                offsets = resolve_start_offsets(source, probed)
                ends = resolve_end_offsets(source, offsets, probed)
                backlog = resolve_backlog(self.plan.probe, probed)
                described = probed.require(source.kafka.topic)
        return JobMeta(
            incarnation=str(uuid.uuid4()),
            epoch=0,
            probe_topic=described.name,
            probe_topic_id=described.topic_id,
            probe_start_offsets=offsets,
            changelog_topics=topics,
            probe_end_offsets=ends,
            probe_backlog_offsets=backlog,
        )

    def _datagen_topic(self) -> str:
        return f"sluice.{self.job_id}.probe"

    def _partitions(self, dimension: Dimension) -> int:
        return dimension.source.changelog_partitions or self.settings.changelog_partitions

    def _captured(self, dimension: Dimension) -> tuple[CapturedColumn, ...]:
        """The columns of the changelog."""
        source = dimension.source
        if isinstance(source, MysqlCdcSource):
            return self._captured_table(dimension, source).captured
        return captured_columns(dimension.fields)

    def _captured_table(self, dimension: Dimension, source: MysqlCdcSource) -> CapturedTable:
        """As first seen: a restart does not need the database to go on joining."""
        path = self.checkpoint.directory / "sources" / f"{dimension.name}.table.json"
        kept = read_json(path)
        if kept is not None:
            return CapturedTable.from_json(kept)
        table = check_source(connection_of(source), dimension.fields, dimension.primary_key)
        write_json_atomically(path, table.as_json())
        return table

    # Parts
    # -------------------------------------------------------------------------------------------

    def _spark_settings(self) -> SparkSettings:
        java = find_java(self.settings.cache_dir)
        cache_dir = self.settings.cache_dir
        jars = JarCache(cache_dir, java).jars(JarSet.SPARK)
        return SparkSettings(
            app_name=f"sluice {self.plan.name} {self.job_id}",
            jars=jars,
            scratch_directory=self.layout.job_dir / "scratch",
            master=self.settings.spark_master,
            driver_memory=self.settings.spark_driver_memory,
            java_home=java.home,
            class_archive=class_archive(cache_dir, java, jars),
            extra=self.settings.spark_conf,
        )

    def _specs(self, dimension: Dimension, number: int) -> dict[str, IndexSpec]:
        """Role's alias in an INSERT → the index that it looks up."""
        return {
            j.alias: index_spec(self.plan, j, self._partitions(dimension))
            for j in self.plans[number].joins
            if j.dimension == dimension.name
        }

    def _all_specs(self, dimension: Dimension) -> tuple[IndexSpec, ...]:
        numbers = range(len(self.plans))
        specs = [spec for n in numbers for spec in self._specs(dimension, n).values()]
        return tuple(dict.fromkeys(specs))

    def _dimension(
        self, dimension: Dimension, columns: tuple[CapturedColumn, ...], opening: Opening
    ) -> DimensionRuntime:
        root = self.layout.tables / dimension.name
        places = DimensionPlaces(
            topic=self.meta.changelog_topics[dimension.name],
            partitions=self._partitions(dimension),
            changelog=root / "changelog",
            current=root / "current",
            index=on_this_node(index_directory(self.layout, self.settings) / dimension.name),
            index_specs=(
                self._all_specs(dimension)
                if dimension.lookup.strategy is LookupStrategy.INDEX
                else ()
            ),
        )
        task = BuildTask(
            places.topic, places.changelog, columns, self.meta.epoch, dimension.watermark
        )
        return DimensionRuntime(
            dimension,
            places,
            task,
            app_id=self.app_id,
            on_watermark=watermark_sink(opening),
        )

    def _source(self, spark: SparkSession, dimension: Dimension) -> SourceCoordinator:
        source = dimension.source
        if isinstance(source, DeltaTableSource):
            return DeltaCoordinator(dimension.name, self._feed(dimension, source), self.stalls)
        table = self._captured_table(dimension, source)
        settings = self._source_settings(dimension, source)
        return SnapshotCoordinator(spark, dimension, table, settings, self.stalls)

    def _feed(self, dimension: Dimension, source: DeltaTableSource) -> DeltaFeedConfig:
        return DeltaFeedConfig(
            path=output_path(source, self.settings),
            fields=dimension.fields,
            primary_key=dimension.primary_key,
            kafka=replace(self.kafka, topic=self.meta.changelog_topics[dimension.name]),
            partitions=self._partitions(dimension),
            state_file=self.checkpoint.source_file(dimension.name),
            monitor_interval_ms=source.monitor_interval_ms,
        )

    def _source_settings(self, dimension: Dimension, source: MysqlCdcSource) -> SourceSettings:
        return SourceSettings(
            connection=connection_of(source),
            kafka=self.kafka,
            topic=self.meta.changelog_topics[dimension.name],
            partitions=self._partitions(dimension),
            state_file=self.checkpoint.source_file(dimension.name),
            offset_file=self.checkpoint.cdc_file(dimension.name),
            chunks_per_job=4 * self.settings.snapshot_parallelism,
        )

    def _kernel(self, number: int = 0) -> ProbeKernelSpec:
        return replace(kernel_spec(self.plan, number), topic=self.meta.probe_topic)

    def _index_places(
        self, dimensions: Iterable[Dimension], number: int = 0
    ) -> dict[str, IndexPlace]:
        directory = index_directory(self.layout, self.settings)
        return {
            alias: IndexPlace(dimension.name, directory / dimension.name, spec)
            for dimension in dimensions
            for alias, spec in self._specs(dimension, number).items()
        }

    def _inserts(
        self, spark: SparkSession, runtimes: Sequence[DimensionRuntime]
    ) -> tuple[list[ProbeInsert], list[DeltaLog]]:
        """What the batches of each INSERT need, and the Delta outputs."""
        inserts: list[ProbeInsert] = []
        outputs: list[DeltaLog] = []
        for number in range(len(self.plans)):
            writer, logs = self._writer(spark, number)
            task, lookups = self._probe_task(number), self._lookups(runtimes, number)
            inserts.append(ProbeInsert(task, lookups, writer))
            outputs += logs
        return inserts, outputs

    def _lookups(self, runtimes: Sequence[DimensionRuntime], number: int) -> Lookups:
        known = {runtime.dimension.name: runtime for runtime in runtimes}
        specs = {a: s for r in runtimes for a, s in self._specs(r.dimension, number).items()}
        roles = [
            Role(
                alias=join.alias,
                dimension=join.dimension,
                spec=specs[join.alias],
                strategy=known[join.dimension].dimension.lookup.strategy,
                changelog=known[join.dimension].changelog,
            )
            for join in self.plans[number].joins
        ]
        limit = self.settings.lookup_broadcast_max_mib << 20
        return Lookups(roles, max_broadcast_bytes=limit)

    def _probe_task(self, number: int = 0) -> ProbeTask:
        indexed = [d for d in self.plan.dimensions if d.lookup.strategy is LookupStrategy.INDEX]
        return ProbeTask(
            topic=self.meta.probe_topic,
            kernel=self._kernel(number),
            indexes=self._index_places(indexed, number),
            dead_letters=self.layout.dead_letters,
            epoch=self.meta.epoch,
            failpoints=self.failpoints,
            tables={d.name: self._tables(d) for d in self.plan.dimensions},
        )

    def _tables(self, dimension: Dimension) -> DimensionTables:
        root = self.layout.tables / dimension.name
        app_id = f"{self.app_id}:{dimension.name}"
        return DimensionTables(root / "changelog", root / "current", app_id)

    def _generator(self) -> Callable[[], None] | None:
        source = self.plan.probe.source
        if not isinstance(source, DatagenSource):
            return None
        kafka = replace(self.kafka, topic=self.meta.probe_topic)
        seed = uuid.UUID(self.meta.incarnation).int % 2**63
        return DatagenProcess(kafka, source, self.plan.probe.fields, seed).keep_alive

    def _prepare_output(self, number: int) -> None:
        """What can go wrong with the output goes wrong before a JVM is started."""
        sink = self.plans[number].sink
        if isinstance(sink, DeltaSink):
            path, appends = output_path(sink, self.settings), self._appends(sink, number)
            check_new_table(sink, self.settings)
            create_table(path, appends.rows, creator=self.app_id)
            DeltaLog(path, self.app_id).choose_writer(appends)
        if isinstance(sink, KafkaSink):
            KafkaCluster(sink.kafka).require(sink.kafka.topic)

    def _appends(self, sink: DeltaSink, number: int = 0) -> Appends:
        return Appends(self._kernel(number).output_schema, sink.writer, sink.merge_key)

    def _writer(self, spark: SparkSession, number: int) -> tuple[BatchWriter, tuple[DeltaLog, ...]]:
        sink, staged = self.plans[number].sink, RowFiles(self.layout.staged_rows(number))
        if isinstance(sink, DeltaSink):
            path, appends = output_path(sink, self.settings), self._appends(sink, number)
            app_id = output_app_id(self.app_id, number)
            if sink.merge_key:
                merged = MergedOutput(path, app_id, appends, spark)
                return MergeSinkWriter(merged, staged), (merged.log,)
            log = OutputLog(path, app_id, appends, spark)
            return DeltaOutputWriter(log), (log,)
        if isinstance(sink, KafkaSink):
            noted = self.checkpoint.directory / sent_note(number)
            return KafkaSinkWriter(sink, noted, staged), ()
        return self._console_writer(sink), ()

    def _console_writer(self, sink: PrintSink | BlackholeSink) -> ConsoleSinkWriter:
        if isinstance(sink, PrintSink):
            if sink.row_limit is not None:
                self.job.log.keep_all()  # whoever asked for the preview reads it as a whole
            return ConsoleSinkWriter(self.job.log, sink.print_identifier, sink.row_limit)
        return ConsoleSinkWriter(self.job.log, None)

    # Event time and windows
    # ---------------------------------------------------------------------------------

    def _event(self, dead_letters: DeltaLog) -> EventJob | None:
        """What event batches need beside the rest; their tables are there afterwards."""
        if not self.plan.needs_event_batches:
            return None
        self._check_lookups()
        places = event_places(self.plan, self.layout, self.settings, self.app_id)
        self._check_late_path(places)
        task = event_task(self.plan, self._probe_task(), places)
        return EventJob(EventSpec.of(self.plan), task, self._event_tables(task, dead_letters))

    def _check_lookups(self) -> None:
        for dimension in self.plan.dimensions:
            if dimension.lookup.strategy is LookupStrategy.SHUFFLE:
                raise JoinError(
                    f'dimension "{dimension.name}" is to be shuffled to records that wait for '
                    "event time or go into windows",
                    hint="Use lookup strategy 'index', or 'broadcast' for a small table.",
                )

    def _check_late_path(self, places: EventPlaces) -> None:
        sink = self.plan.sink
        if isinstance(sink, DeltaSink) and output_path(sink, self.settings) == places.late.root:
            given = self.plan.probe.late_records_path
            raise SinkError(
                f'late records and output of job "{self.plan.name}" have one path, "{given}"',
                hint="Give 'late-records.path' a table of its own.",
            )

    def _event_tables(self, task: EventTask, dead_letters: DeltaLog) -> EventTables:
        late, appends = task.places.late.root, Appends(LATE_RECORDS, SinkWriter.COLUMNAR)
        create_table(late, LATE_RECORDS, creator=self.app_id)
        DeltaLog(late, self.app_id).choose_writer(appends)
        return EventTables(
            dead_letters=dead_letters,
            late=DeltaLog(late, late_app_id(self.app_id), appends),
            waiting=self._state(task.places.waiting, WAITING_COLUMNS, lambda: waiting_schema(task)),
            windows=self._state(task.places.windows, WINDOW_COLUMNS, lambda: windows_schema(task)),
        )

    def _state(
        self, path: Path | None, columns: StateColumns, schema: Callable[[], pa.Schema]
    ) -> StateLog | None:
        if path is None:
            return None
        StateLog.create(path, schema())
        return StateLog(DeltaLog(path, f"{self.app_id}:{path.name}"), columns)

    # Replays of dead letters
    # ------------------------------------------------------------------------

    def _replays(self, spark: SparkSession) -> Handler:
        if self.plan.needs_event_batches:
            return partial(_refuse_replay, self.plan)
        replays = LetterReplays(self.checkpoint.directory / "replays")
        parts = ReplayParts(
            letters=DeadLetters(self.layout.dead_letters, replays),
            replays=replays,
            inserts=[
                LetterInsert(History(self._history_places(n)), self._letter_writer(spark, n))
                for n in range(len(self.plans))
            ],
            epoch=self.meta.epoch,
        )
        return DeadLetterReplay(parts).handle

    def _history_places(self, number: int) -> HistoryPlaces:
        sink = self.plans[number].sink
        return HistoryPlaces(
            app_id=self.app_id,
            checkpoint=self.checkpoint,
            kernel=self._kernel(number).by_itself(),
            roles=self._index_places(self.plan.dimensions, number),
            tables={d.name: self.layout.tables / d.name for d in self.plan.dimensions},
            dimensions={d.name: d for d in self.plan.dimensions},
            dead_letters=self.layout.dead_letters,
            replays=self.checkpoint.directory / "replays",
            output=output_path(sink, self.settings) if isinstance(sink, DeltaSink) else None,
            probe_kafka=probe_kafka(self.plan, self.settings, self.meta.probe_topic),
            sink=sink,
            insert=number,
        )

    def _letter_writer(self, spark: SparkSession, number: int) -> LetterWriter:
        sink, kernel = self.plans[number].sink, self._kernel(number)
        if isinstance(sink, DeltaSink):
            path = output_path(sink, self.settings)
            app_id = replay_app_id(output_app_id(self.app_id, number))
            log = OutputLog(path, app_id, self._appends(sink, number), spark)
            log.commit_epoch(self.meta.epoch)
            return DeltaOutputLetterWriter(log, spark)
        if isinstance(sink, KafkaSink):
            return KafkaLetterWriter(sink, kernel.output)
        identifier = sink.print_identifier if isinstance(sink, PrintSink) else None
        return ConsoleLetterWriter(self.job.log, identifier, kernel.output)


def _refuse_replay(plan: JoinPlan, _: Request) -> NoReturn:
    raise not_replayable(plan)


def _choice_of(writers: Iterable[BatchWriter]) -> WriterChoice | None:
    """Of several outputs that of the first one which is not written in columns."""
    delta = (w for w in writers if isinstance(w, DeltaOutputWriter | MergeSinkWriter))
    choices = [writer.choice for writer in delta]
    return min(choices, key=lambda choice: not choice.is_spark, default=None)
