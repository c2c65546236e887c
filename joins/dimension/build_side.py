"""One dimension's build side: changelog topic → Arrow → append to the changelog table → watermarks.

Each micro-batch, in LOAD and JOIN, appends its changes in source order, in one commit under its
batch number. Watermark records in the topic count after the commit that has them. The dimension
version is the table's Delta version.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joins.adapters.delta.log import DeltaLog, FileActions
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import OF_A_CHANGELOG, KafkaRecords, Ranges
from joins.dimension.changelog_topic import ChangelogTopic, KnownTopic
from joins.dimension.freshness import TableFreshness
from joins.kernels.changelog.digest import (
    DIGEST_COLUMNS,
    ChangelogDigest,
    ChangelogEventTime,
    ChangelogState,
    Position,
    compacted_reads,
)
from joins.kernels.changelog.envelope import CapturedColumn, changelog_schema, decode, now_ms
from joins.kernels.probe.files import ParquetStage
from joins.kernels.table_path import TablePath
from joins.loop import Loop, LoopGuards, LoopSettings
from joins.plan.causes import fault_in
from joins.plan.errors import RecordsExpiredError
from joins.plan.plan import KafkaOptions, WatermarkSpec
from joins.worker.staging import BatchReport, TaskReport, current_origin
from joins.worker.topic_reader import TopicReader, range_item
from joins.worker.work import Tasks, Work, parallelism, split, spread

APART_S = 1.7


class BuildPace:
    """Keeps build batches of one dimension `APART_S` apart while the stream has a backlog.

    Each commit is a version that a probe batch has to index. In a backlog a probe batch takes about
    a second, so that more versions than one a batch cost time and bring nothing. `is_draining` is
    true if more records wait than arrive; `wait` returns sooner when the job stops.
    """

    def __init__(
        self,
        is_draining: Callable[[], bool],
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_draining = is_draining
        self._wait = wait
        self._clock = clock
        self._went_on_at_s = clock()

    def rest(self) -> None:
        """Return when the next batch may begin; called after each commit."""
        since_s = self._clock() - self._went_on_at_s
        if since_s < APART_S and self._is_draining():
            self._wait(APART_S - since_s)
        self._went_on_at_s = self._clock()


_MOST_BESIDE_THE_STREAM = 20_000
"""A larger batch runs as a Spark job: a probe batch would wait for the tasks that they share."""
_TABLE = "changelog"
_NEXT_OFFSET = "next-offset-"
_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """What one commit of the changelog makes true."""

    version: int
    state: ChangelogState
    marked_partitions: tuple[int, ...]  # their watermark record is in this commit
    streamed: int  # number of appended changes that are no rows of a snapshot
    source_ts_ms: int  # source time of the newest of them, 0 without any
    low_water: Position | None = None  # position of the oldest of them


@dataclass(frozen=True, slots=True)
class BuildTask:
    """What a worker needs to stage changes; with a `watermark`, deletes keep their rowtime."""

    topic: str
    table: TablePath
    columns: tuple[CapturedColumn, ...]
    epoch: int
    watermark: WatermarkSpec | None = None


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings of one build loop."""

    kafka: KafkaOptions
    trigger_ms: int = 100
    max_records_per_batch: int = 200_000


@dataclass(frozen=True, slots=True)
class BuildHooks:
    """Callbacks of a build loop, all on its thread.

    `state` is what a batch continues. `on_start` reports commits of the loop before, which may have
    ended between a commit and its report. `rest` returns when the next batch may begin.
    """

    state: Callable[[], ChangelogState]
    on_start: Callable[[], None]
    on_commit: Callable[[CommittedBatch], None]
    rest: Callable[[], object]
    guards: LoopGuards
    freshness: TableFreshness


def stage_changes(
    batches: Iterator[pa.RecordBatch],
    *,
    task: BuildTask,
    batch: int,
    state: ChangelogState,
    first: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Decode records `[key, value, partition, offset]` and stage them; emits one report.

    An offset of the table is that of the topic plus `first`: a topic that was made again continues
    the offsets of the one before. A streamed change whose position its partition has already seen
    is a repeat and is dropped.
    """
    digest = ChangelogDigest(state.high_water)
    before = () if task.watermark is None else (task.watermark.rowtime,)
    clock_ms = now_ms()
    origin = current_origin(task.epoch, batch)
    with ParquetStage(task.table, changelog_schema(task.columns), origin) as stage:
        for rows in batches:
            changes = decode(
                _with_table_offsets(rows, first), task.columns, topic=task.topic, before=before
            )
            fresh = digest.take(changes.batch)
            if task.watermark is not None:
                digest.events.take(fresh, task.watermark, clock_ms)
            stage.write(fresh)
        staged = stage.finish()
    files = {} if staged is None else {_TABLE: staged}
    yield TaskReport(files=files, detail=digest.to_json()).to_batch()


def _with_table_offsets(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    if not first:
        return rows
    at = rows.schema.get_field_index("offset")
    return rows.set_column(at, "offset", pc.add(rows.column(at), first))


class BuildSide:
    """The steps of one dimension's loop; files of a batch without a commit are in no version."""

    def __init__(
        self,
        spark: SparkSession,
        task: BuildTask,
        settings: BuildSettings,
        log: DeltaLog,
        hooks: BuildHooks,
        topic: ChangelogTopic,
        tasks: Tasks,
    ) -> None:
        self._spark = spark
        self._tasks = tasks
        self._task = task
        self._settings = settings
        self._log = log
        self._hooks = hooks
        self._cluster = KafkaCluster(settings.kafka, keep_open=True)
        self._reached: Mapping[int, int] = {}  # reached by the newest step
        self._records = KafkaRecords(settings.kafka)
        self._topic = topic

    def loop(self) -> Loop:
        settings = LoopSettings(f"build-{self._task.topic}", "build", self._settings.trigger_ms)
        return Loop(self._spark, self, settings, self._hooks.guards, self._tasks.cancel)

    def recover(self) -> None:
        self._hooks.on_start()

    def close(self) -> None:
        self._cluster.close()
        self._records.close()

    def wait(self) -> None:
        """Return when the topic has more, after half a second at the latest."""
        now = self._topic.now
        if now is None or self._topic.lost is not None or not self._reached:
            time.sleep(_WAIT_S)
            return
        own = {p: max(0, offset - now.first) for p, offset in self._reached.items()}
        self._records.wait(self._topic.topics(now), own, _WAIT_S)

    def step(self) -> bool:
        """Append what the topic has beyond the table; true if there was something.

        Raises FencedError, SourceUnavailableError, and RecordsExpiredError if uncommitted records
        are gone.
        """
        before, topic = self._hooks.state(), self._topic.now
        answers = self._hooks.freshness.waiting()  # before the ends, which are then behind them
        ends = self._topic.look(self._cluster)
        if ends is None or topic is None or topic != self._topic.now:
            return False  # the source's coordinator makes it, or makes it again, and reports it
        self._hooks.freshness.placed(answers, topic.number, ends, before.next_offsets)
        first = {p: max(topic.first, before.next_offsets.get(p, 0)) for p in ends}
        upto = spread(first, ends, self._settings.max_records_per_batch)
        start = {p: first[p] for p in upto}
        ranges = {p: (start[p], end) for p, end in upto.items() if start[p] < end}
        self._reached = upto
        if ranges:
            self._append(topic, ranges, before)
            self._hooks.rest()
        return bool(ranges)

    def _append(self, topic: KnownTopic, ranges: Ranges, before: ChangelogState) -> None:
        hit = self._hooks.guards.failpoints.hit
        last = self._log.batches.last_batch()
        batch = 0 if last is None else last + 1
        # one task makes a partition's digest, in the order of its offsets
        first = topic.first
        own = {p: (start - first, end - first) for p, (start, end) in ranges.items()}
        parts = split(own, parallelism(self._spark), whole=True)
        reader = TopicReader(self._settings.kafka, self._topic.topics(topic), OF_A_CHANGELOG)
        records = sum(end - start for start, end in ranges.values())
        tasks = self._tasks if records <= _MOST_BESIDE_THE_STREAM else None
        work = Work(self._spark, [range_item(part) for part in parts], reader, tasks=tasks)
        stage = partial(stage_changes, task=self._task, batch=batch, state=before, first=first)
        try:
            report = work.report(stage)
        except (PySparkException, Py4JError) as exc:
            known = fault_in(str(exc))
            if known is None:
                raise
            if isinstance(known, RecordsExpiredError):
                self._topic.lose(
                    topic,
                    f'changelog topic "{self._topic.name}" lost records before they were committed',
                )
            raise known from exc
        hit("C11", batch)
        committed = _committed(before, report, {p: end for p, (_, end) in ranges.items()})
        version = self._log.commit_change(
            batch,
            self._task.epoch,
            FileActions(report.files.get(_TABLE, ()), counters=_counters(committed.state)),
            {"sluice.batch": batch, "sluice.epoch": self._task.epoch},
        )
        hit("C12", batch)
        self._hooks.on_commit(replace(committed, version=version))


def _counters(state: ChangelogState) -> dict[str, int]:
    ends = {f"{_NEXT_OFFSET}{p}": offset for p, offset in state.next_offsets.items()}
    return {**state.events.counters(), **ends}


def _committed(
    before: ChangelogState, report: BatchReport, ends: Mapping[int, int]
) -> CommittedBatch:
    """What the commit up to `ends` makes true; its version is not known yet."""
    digest = ChangelogDigest(before.high_water)
    for detail in report.details:
        digest.merge(detail)
    return CommittedBatch(
        version=-1,
        state=read_to(digest.state_after(before), ends),
        marked_partitions=tuple(sorted(digest.marks)),
        streamed=digest.streamed,
        source_ts_ms=digest.source_ts_ms,
        low_water=digest.low_water,
    )


def read_to(state: ChangelogState, offsets: Mapping[int, int]) -> ChangelogState:
    known = state.next_offsets
    ends = {p: max(known.get(p, 0), offsets.get(p, 0)) for p in {*known, *offsets}}
    return replace(state, next_offsets=ends)


def read_changelog_state(log: DeltaLog, version: int) -> ChangelogState:
    """The state of the changelog at `version`, from its rows and the counts of compactions."""
    digest = ChangelogDigest({})
    for table in log.files.read_files(log.files.files_at(version), DIGEST_COLUMNS):
        for batch in table.to_batches():
            digest.count(batch)
    counter = compacted_reads(digest.generation)
    dropped = log.batches.counters([counter], version).get(counter, 0)
    compacted = ChangelogState(snapshot_rows=dropped, generation=digest.generation)
    state = digest.state_after(compacted)
    return replace(state, events=read_event_state(log, version, state.next_offsets))


def committed_offsets(log: DeltaLog, version: int, partitions: int) -> dict[int, int]:
    names = {f"{_NEXT_OFFSET}{partition}": partition for partition in range(partitions)}
    return {names[n]: offset for n, offset in log.batches.counters(names, version).items()}


def read_event_state(log: DeltaLog, version: int, partitions: Iterable[int]) -> ChangelogEventTime:
    return ChangelogEventTime.of_counters(
        log.batches.counters(ChangelogEventTime.names(partitions), version)
    )
