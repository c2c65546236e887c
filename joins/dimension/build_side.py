"""One dimension's build side: changelog topic → Arrow → append to the changelog table → watermarks.

In LOAD and in JOIN alike each micro-batch appends its changes, in source order, in one commit under
its batch number; only after that commit its watermarks go on. The dimension version is the table's
Delta version.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta.log import DeltaLog, FileActions
from joins.adapters.kafka.options import reader_options
from joins.durable.pins import read_offset_log
from joins.kernels.changelog.digest import (
    DIGEST_COLUMNS,
    ChangelogDigest,
    ChangelogState,
    compacted_reads,
)
from joins.kernels.changelog.envelope import CapturedColumn, changelog_schema, decode, now_ms
from joins.kernels.changelog.event_marks import ChangelogEventTime
from joins.kernels.probe.files import ParquetStage
from joins.plan.plan import KafkaOptions, WatermarkSpec
from joins.worker.staging import (
    REPORT_DDL,
    BatchReport,
    QueryGuards,
    TaskReport,
    collect_reports,
    current_origin,
    in_few_tasks,
)

_TABLE = "changelog"


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """What one commit of the changelog made true.

    Attributes:
        version: the dimension version.
        state: the table's state after the commit.
        marked_partitions: those whose watermark record is in this commit.
        streamed: changes that it appended.
        source_ts_ms: newest source time of a streamed change, 0 if there was none.
    """

    version: int
    state: ChangelogState
    marked_partitions: tuple[int, ...]
    streamed: int
    source_ts_ms: int


@dataclass(frozen=True, slots=True)
class BuildTask:
    """What a worker needs to decode and stage a part of a micro-batch; picklable.

    Attributes:
        watermark: of a dimension with event time; its deletes keep the rowtime of the row.
    """

    topic: str
    table: Path
    columns: tuple[CapturedColumn, ...]
    epoch: int
    watermark: WatermarkSpec | None = None


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings of one build query."""

    kafka: KafkaOptions
    checkpoint: Path
    trigger_ms: int = 200
    max_records_per_batch: int = 100_000


@dataclass(frozen=True, slots=True)
class BuildHooks:
    """What a build query asks and tells, all on Spark's batch thread.

    Attributes:
        state: the committed state that a batch continues.
        on_commit: a commit and what it made true.
        rest: return when the next batch may begin.
        on_repeat: a batch comes again that is committed; what its commit made true may be untold.
    """

    state: Callable[[], ChangelogState]
    on_commit: Callable[[CommittedBatch], None]
    rest: Callable[[], object]
    on_repeat: Callable[[], None]
    guards: QueryGuards


def stage_changes(
    batches: Iterator[pa.RecordBatch], *, task: BuildTask, batch: int, state: ChangelogState
) -> Iterator[pa.RecordBatch]:
    """Decode Kafka rows `[key, value, partition, offset]` and stage them; emits one report.

    A streamed change whose position its partition has already seen is a repeat and is dropped.
    """
    digest = ChangelogDigest(state.high_water)
    before = () if task.watermark is None else (task.watermark.rowtime,)
    clock_ms = now_ms()
    origin = current_origin(task.epoch, batch)
    with ParquetStage(task.table, changelog_schema(task.columns), origin) as stage:
        for rows in batches:
            changes = decode(rows, task.columns, topic=task.topic, before=before)
            fresh = digest.take(changes.batch)
            if task.watermark is not None:
                digest.events.take(fresh, task.watermark, clock_ms)
            stage.write(fresh)
        staged = stage.finish()
    files = {} if staged is None else {_TABLE: staged}
    yield TaskReport(files=files, detail=digest.to_json()).to_batch()


class BuildSide:
    """The streaming query of one dimension; callbacks come on Spark's batch thread."""

    def __init__(
        self,
        spark: SparkSession,
        task: BuildTask,
        settings: BuildSettings,
        log: DeltaLog,
        hooks: BuildHooks,
    ) -> None:
        self._spark = spark
        self._task = task
        self._settings = settings
        self._log = log
        self._hooks = hooks

    def start(self) -> StreamingQuery:
        """Start the query; it goes on from its checkpoint."""
        reader = (
            self._spark.readStream.format("kafka")
            .options(**reader_options(self._settings.kafka))
            .option("subscribe", self._task.topic)
            .option("startingOffsets", "earliest")
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", self._settings.max_records_per_batch)
        )
        return (
            reader.load()
            .select("key", "value", "partition", "offset")
            .writeStream.queryName(f"build-{self._task.topic}")
            .option("checkpointLocation", str(self._settings.checkpoint))
            .trigger(processingTime=f"{self._settings.trigger_ms} milliseconds")
            .foreachBatch(self._hooks.guards.guarded(self._run_batch))
            .start()
        )

    def _run_batch(self, frame: DataFrame, batch: int) -> None:
        last = self._log.batches.last_batch()
        if last is not None and last >= batch:
            self._hooks.on_repeat()
            return
        before = self._hooks.state()
        frame = in_few_tasks(frame, self._records(batch, before))
        stage = partial(stage_changes, task=self._task, batch=batch, state=before)
        report = collect_reports(frame.mapInArrow(stage, REPORT_DDL))
        self._hooks.guards.failpoints.hit("C11", batch)
        committed = _committed(before, report)
        counters = committed.state.events.counters()
        version = self._log.commit_change(
            batch,
            self._task.epoch,
            FileActions(report.files.get(_TABLE, ()), counters=counters),
            {"sluice.batch": batch, "sluice.epoch": self._task.epoch},
        )
        self._hooks.guards.failpoints.hit("C12", batch)
        self._hooks.on_commit(replace(committed, version=version))
        self._hooks.rest()

    def _records(self, batch: int, before: ChangelogState) -> int:
        """How many records Spark has planned behind the committed ones, at the most."""
        logged = read_offset_log(self._settings.checkpoint, batch, self._task.topic)
        planned = logged.end_offsets if logged is not None else {}
        return sum(max(0, end - before.next_offsets.get(p, 0)) for p, end in planned.items())


def _committed(before: ChangelogState, report: BatchReport) -> CommittedBatch:
    """What the commit will make true; its version is not known yet."""
    digest = ChangelogDigest(before.high_water)
    for detail in report.details:
        digest.merge(detail)
    return CommittedBatch(
        version=-1,
        state=digest.state_after(before),
        marked_partitions=tuple(sorted(digest.marks)),
        streamed=digest.streamed,
        source_ts_ms=digest.source_ts_ms,
    )


def read_changelog_state(log: DeltaLog, version: int) -> ChangelogState:
    """The state of the changelog table at `version`: its rows, and what compaction counted."""
    digest = ChangelogDigest({})
    for table in log.files.read_files(log.files.files_at(version), DIGEST_COLUMNS):
        for batch in table.to_batches():
            digest.count(batch)
    counter = compacted_reads(digest.generation)
    dropped = log.batches.counters([counter], version).get(counter, 0)
    compacted = ChangelogState(snapshot_rows=dropped, generation=digest.generation)
    state = digest.state_after(compacted)
    return replace(state, events=read_event_state(log, version, state.next_offsets))


def read_event_state(log: DeltaLog, version: int, partitions: Iterable[int]) -> ChangelogEventTime:
    """What the changelog table at `version` says of event time."""
    return ChangelogEventTime.of_counters(
        log.batches.counters(ChangelogEventTime.names(partitions), version)
    )
