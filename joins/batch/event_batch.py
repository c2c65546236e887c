"""One event batch: its stages on the workers and, when all is staged, its commits.

The stages and their order are those of `joins.batch.event_stages`; the last one is run through the
sink. Then come the commits: dead letters, late records, state, output. A batch that is run again
under its pin stages the same and repeats no commit.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.state_log import StateChange, StateFile, StateLog
from joins.adapters.kafka.options import reader_options
from joins.batch.event_items import StagePlan
from joins.batch.event_reports import NOTHING, added
from joins.batch.event_stages import MergedSteps, StagedEvents, run_stages
from joins.batch.event_state import EventSpec, EventState
from joins.batch.lookups import Lookups
from joins.durable.failpoints import Failpoints
from joins.durable.pins import Pin, offsets_text, pin_json
from joins.plan.plan import KafkaOptions
from joins.sinks.port import BatchWriter
from joins.worker.event_task import EventTask, act, scan, steps
from joins.worker.probe_task import DEAD_LETTERS
from joins.worker.staging import (
    REPORT_DDL,
    BatchReport,
    collect_reports,
    in_few_tasks,
    limit_arrow_batches,
    no_room,
)
from joins.worker.window_task import LATE

_Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class EventTables:
    """The tables of one job with event time; all are fenced.

    Attributes:
        waiting: rows that wait for a watermark; None if none does.
        windows: what is in windows; None without.
        late: records that came behind the watermark.
    """

    dead_letters: DeltaLog
    late: DeltaLog
    waiting: StateLog | None
    windows: StateLog | None

    @property
    def states(self) -> tuple[StateLog, ...]:
        """The tables of the state; the last one is committed last."""
        return tuple(each for each in (self.waiting, self.windows) if each is not None)

    @property
    def logs(self) -> tuple[DeltaLog, ...]:
        """What is to be fenced beside the dead letters and the output."""
        return (self.late, *(each.log for each in self.states))

    def versions(self) -> dict[str, int]:
        """The newest version of each table of the state, for a pin."""
        named = {"waiting": self.waiting, "windows": self.windows}
        return {name: log.version() for name, log in named.items() if log is not None}

    def undo(self, pin: Pin, epoch: int) -> None:
        """Give up what the batch of `pin` has committed before its output, once and for all.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: a commit failed.
        """
        event = pin.of_event
        before = EventState.before(event).as_json()
        for name, log in (("waiting", self.waiting), ("windows", self.windows)):
            if log is not None:
                log.undo(pin.batch, epoch, event.state_versions[name], before)
        self.late.retract(pin.batch, epoch)


@dataclass(frozen=True, slots=True)
class EventBatchParts:
    """What event batches are run with.

    Attributes:
        session: Spark's, for everything but reading.
        reader: the session that reads Kafka, from `reading_session`.
        writer: of the output.
        lookups: bring the rows of dimensions without an index.
        restore: make the indexes of pinned versions anew, which are lost or damaged.
        check: see, once a batch has read, that it read what it was meant to.
        small_records: whether counting records limits an Arrow batch.
    """

    session: SparkSession
    reader: SparkSession
    spec: EventSpec
    task: EventTask
    kafka: KafkaOptions
    tables: EventTables
    writer: BatchWriter
    lookups: Lookups
    restore: Callable[[Mapping[str, int]], None]
    check: Callable[[Pin], None]
    small_records: Callable[[], bool]
    failpoints: Failpoints


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """A batch whose output is committed.

    Attributes:
        counts: sums over all stages.
        state: for the next batch.
    """

    counts: Mapping[str, int]
    state: EventState


def reading_session(spark: SparkSession) -> SparkSession:
    """A session whose batch reads of Kafka are those that Spark's streaming uses.

    By default Spark reads batches with its older source, which makes an external row and back again
    of each record.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    return session


@dataclass(frozen=True, slots=True)
class _OnWorkers:
    """Stages of one batch as Spark's tasks; the last one is run through the sink.

    Attributes:
        frame: the records of the batch, None if it has none.
    """

    parts: EventBatchParts
    frame: DataFrame | None
    task: EventTask
    pin: Pin

    def steps(self) -> BatchReport:
        """Over the records."""
        return self._over_records(partial(steps, task=self.task, pin=self.pin))

    def scan(self, merged: MergedSteps | None) -> BatchReport:
        """Over the records."""
        return self._over_records(partial(scan, task=self.task, pin=self.pin, merged=merged))

    def act(self, plan: StagePlan) -> BatchReport:
        """Over the work items."""
        stage = partial(act, task=self.task, pin=self.pin)
        return collect_reports(self._items(plan).mapInArrow(stage, REPORT_DDL))

    def last(self, plan: StagePlan) -> BatchReport:
        """Over the work items, by the output's writer."""
        return self.parts.writer.run(self._items(plan), self.task, self.pin)

    def files(self, name: str) -> Sequence[StateFile]:
        """As the pin names them."""
        tables = self.parts.tables
        log = tables.waiting if name == "waiting" else tables.windows
        return () if log is None else log.files(self.pin.of_event.state_versions[name])

    def _over_records(self, stage: _Stage) -> BatchReport:
        if self.frame is None:
            return NOTHING
        return collect_reports(self.frame.mapInArrow(stage, REPORT_DDL))

    def _items(self, plan: StagePlan) -> DataFrame:
        """A row and a task for each item."""
        count = len(plan.items)
        texts = f.array(*(f.lit(item) for item in plan.items))
        numbered = self.parts.session.range(0, count, 1, count)
        return numbered.select(f.element_at(texts, f.col("id").cast("int") + 1).alias("item"))


class EventBatches:
    """Runs batches of one job; one at a time.

    All of them read under one consumer group, which nobody joins, so that executors keep their
    consumers from batch to batch.
    """

    def __init__(self, parts: EventBatchParts) -> None:
        self._parts = parts
        self._tables = parts.tables
        self._group = f"spark-kafka-source-{uuid.uuid4()}"

    def committed(self, pin: Pin) -> EventOutcome | None:
        """What the batch of `pin` has done, if its output is complete.

        Raises:
            CheckpointError: the state does not know of it.
        """
        counts = self._parts.writer.committed_counts(pin)
        if counts is None:
            return None
        return EventOutcome(counts, EventState.of(self._tables.states[-1].after(pin.batch)))

    def newest_state(self) -> EventState:
        """What the newest batch has left that was not given up."""
        stored = self._tables.states[-1].newest_after()
        return EventState() if stored is None else EventState.of(stored)

    def run(self, pin: Pin, *, is_retry: bool) -> EventOutcome:
        """Run the batch of `pin`, commit it and say what it has done.

        Raises:
            SluiceError: a part of it failed; nothing is visible, or the rest is not yet.
        """
        hit = self._parts.failpoints.hit
        self._parts.task.probe.attach(pin.versions)
        hit("C4", pin.batch)
        with self._scratch(pin) as task, self._explained(pin):
            done, changes = self._staged(task, pin, is_retry=is_retry)
        self._parts.check(pin)
        hit("C6", pin.batch)
        after = done.move.after.counted(done.report.counts)
        self._commit(pin, done.report, changes, after)
        return EventOutcome(done.report.counts, after)

    @contextmanager
    def _explained(self, pin: Pin) -> Iterator[None]:
        """Where workers fail, see that the index files are not the reason."""
        try:
            yield
        except Exception as exc:
            disk_error = no_room(exc)
            if disk_error is not None:
                raise disk_error from exc
            self._parts.restore(pin.versions)
            raise

    @contextmanager
    def _scratch(self, pin: Pin) -> Iterator[EventTask]:
        """The task with a directory of this attempt for what stages give each other."""
        places = self._parts.task.places
        place = places.scratch / f"{pin.batch:010d}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            yield replace(self._parts.task, places=replace(places, scratch=place))
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what an earlier runner has left in the scratch directory."""
        shutil.rmtree(self._parts.task.places.scratch, ignore_errors=True)

    def _staged(
        self, task: EventTask, pin: Pin, *, is_retry: bool
    ) -> tuple[StagedEvents, Mapping[str, StateChange]]:
        """All stages, and what becomes of the state."""
        records = self._records(pin, is_retry=is_retry)
        with self._ready(records, task, pin) as ready:
            stages = _OnWorkers(self._parts, records, ready, pin)
            done = run_stages(self._parts.spec, pin, stages)
        changes = {
            name: StateChange(added(done.report, name), paths)
            for name, paths in done.removed.items()
        }
        return done, changes

    def _records(self, pin: Pin, *, is_retry: bool) -> DataFrame | None:
        """The records of the batch, None if it has none."""
        ranges = pin.ranges()
        if not ranges:
            return None
        start, end = ({p: bounds[at] for p, bounds in ranges.items()} for at in (0, 1))
        reader = (
            self._parts.reader.read.format("kafka")
            .options(**reader_options(self._parts.kafka))
            .option("kafka.group.id", self._group)
            .option("assign", json.dumps({pin.topic: sorted(ranges)}))
            .option("startingOffsets", json.dumps({pin.topic: offsets_text(start)}))
            .option("endingOffsets", json.dumps({pin.topic: offsets_text(end)}))
            .option("failOnDataLoss", "true")
        )
        frame = reader.load().select("value", "partition", "offset", "timestamp")
        limit_arrow_batches(frame, by_bytes=is_retry or not self._parts.small_records())
        return in_few_tasks(frame, pin.records())

    @contextmanager
    def _ready(self, frame: DataFrame | None, task: EventTask, pin: Pin) -> Iterator[EventTask]:
        """The task with copies of the dimensions that are broadcast."""
        base = self._parts.session.range(1) if frame is None else frame
        with self._parts.lookups.ready(base, task.probe, pin) as (_, probe):
            yield replace(task, probe=probe)

    # Commits

    def _commit(
        self,
        pin: Pin,
        report: BatchReport,
        changes: Mapping[str, StateChange],
        after: EventState,
    ) -> None:
        """Everything before the output: its commit is the end of the batch."""
        tables, epoch, hit = self._tables, self._parts.task.epoch, self._parts.failpoints.hit
        letters = report.files.get(DEAD_LETTERS, ())
        tables.dead_letters.commit(pin.batch, epoch, letters, pin_json(pin))
        hit("C7", pin.batch)
        late = report.files.get(LATE, ())
        if late:
            tables.late.commit(pin.batch, epoch, late, {"sluice.batch": pin.batch})
        for name, log in (("waiting", tables.waiting), ("windows", tables.windows)):
            if log is not None:
                change = replace(changes[name], after=after.as_json())
                log.commit(pin.batch, epoch, change)
        hit("C13", pin.batch)
        self._parts.writer.commit(report, pin, epoch)
        hit("C8", pin.batch)
