"""One event batch: its stages on the workers and, when all is staged, its commits.

| stage | what the workers do |
|---|---|
| steps | with a watermark for each record: say which records raise it |
| scan | parse the records; late and dead ones go to files, the others to files of arrivals |
| act | what is due is joined; what is not goes to files of the state |
| windows | what is in windows that are due, or late and allowed, becomes rows |

Between scan and act the driver moves the watermark. The last stage is run through the sink. A job
in which nothing waits has no act: its scan joins. Then come the commits: dead letters, late
records, state, output. A batch that is run again under its pin stages the same and repeats no
commit.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from joins.adapters.delta_log import DeltaLog
from joins.adapters.kafka_cluster import reader_options
from joins.adapters.state_log import StateChange, StateFile, StateLog
from joins.event_channels import Steps
from joins.event_items import StagePlan, act_stage, window_stage
from joins.event_reports import (
    NOTHING,
    added,
    details,
    pinned_advance,
    steps_told,
    together,
)
from joins.event_state import Advance, EventSpec, EventState
from joins.event_task import EventTask, act, scan, steps
from joins.failpoints import Failpoints
from joins.lookups import Lookups
from joins.pins import Pin, offsets_text, pin_json
from joins.plan import KafkaOptions
from joins.ports import BatchWriter
from joins.probe_task import DEAD_LETTERS
from joins.staging import (
    REPORT_DDL,
    BatchReport,
    collect_reports,
    in_few_tasks,
    limit_arrow_batches,
    no_room,
)
from joins.window_task import LATE


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
        event = pin.event or {}
        before = EventState.of(event).as_json()
        for name, log in (("waiting", self.waiting), ("windows", self.windows)):
            if log is not None:
                log.undo(pin.batch, epoch, event["state_versions"][name], before)
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
        told = self._tables.states[-1].newest_after()
        return EventState() if told is None else EventState.of(told)

    def run(self, pin: Pin, *, is_retry: bool) -> EventOutcome:
        """Run the batch of `pin`, commit it and say what it has done.

        Raises:
            SluiceError: a part of it failed; nothing is visible, or the rest is not yet.
        """
        hit = self._parts.failpoints.hit
        self._parts.task.probe.attach(pin.versions)
        hit("C4", pin.batch)
        with self._scratch(pin) as task, self._explained(pin):
            report, move, changes = self._staged(task, pin, is_retry=is_retry)
        self._parts.check(pin)
        hit("C6", pin.batch)
        after = move.after.counted(report.counts)
        self._commit(pin, report, changes, after)
        return EventOutcome(report.counts, after)

    @contextmanager
    def _explained(self, pin: Pin) -> Iterator[None]:
        """Where workers fail, see that the index files are not the reason."""
        try:
            yield
        except Exception as exc:
            told = no_room(exc)
            if told is not None:
                raise told from exc
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

    # Stages

    def _staged(
        self, task: EventTask, pin: Pin, *, is_retry: bool
    ) -> tuple[BatchReport, Advance, Mapping[str, StateChange]]:
        """All stages: their report, the move of time, and what becomes of the state."""
        records = self._records(pin, is_retry=is_retry)
        with self._ready(records, task, pin) as (frame, ready):
            told = self._read_steps(frame, ready, pin)
            scanned, move = self._scan(frame, ready, pin, told)
            reports, removed = [scanned], {}
            partials = details(scanned, "partials")
            if task.waits:
                plan = act_stage(details(scanned, "arrivals"), self._files(pin, "waiting"), move)
                removed["waiting"] = plan.removed
                reports.append(self._act(plan, ready, pin))
                partials = details(reports[-1], "partials")
            window = self._parts.spec.window
            if window is not None:
                plan = window_stage(partials, self._files(pin, "windows"), move, window.kind)
                removed["windows"] = plan.removed
                reports.append(self._parts.writer.run(self._frame(plan), ready, pin))
        report = together(reports)
        changes = {name: StateChange(added(report, name), paths) for name, paths in removed.items()}
        return report, move, changes

    def _records(self, pin: Pin, *, is_retry: bool) -> DataFrame | None:
        """The records of the batch, None if it has none."""
        wanted = pin.ranges()
        if not wanted:
            return None
        start, end = ({p: found[at] for p, found in wanted.items()} for at in (0, 1))
        reader = (
            self._parts.reader.read.format("kafka")
            .options(**reader_options(self._parts.kafka))
            .option("kafka.group.id", self._group)
            .option("assign", json.dumps({pin.topic: sorted(wanted)}))
            .option("startingOffsets", json.dumps({pin.topic: offsets_text(start)}))
            .option("endingOffsets", json.dumps({pin.topic: offsets_text(end)}))
            .option("failOnDataLoss", "true")
        )
        frame = reader.load().select("value", "partition", "offset", "timestamp")
        limit_arrow_batches(frame, by_bytes=is_retry or not self._parts.small_records())
        return in_few_tasks(frame, pin.records())

    @contextmanager
    def _ready(
        self, frame: DataFrame | None, task: EventTask, pin: Pin
    ) -> Iterator[tuple[DataFrame | None, EventTask]]:
        """The task with copies of the dimensions that are broadcast."""
        base = self._parts.session.range(1) if frame is None else frame
        with self._parts.lookups.ready(base, task.probe, pin) as (_, probe):
            yield frame, replace(task, probe=probe)

    def _read_steps(self, frame: DataFrame | None, task: EventTask, pin: Pin) -> Steps | None:
        if not self._parts.spec.on_event:
            return None
        if frame is None:
            return {}
        stage = partial(steps, task=task, pin=pin)
        return steps_told(collect_reports(frame.mapInArrow(stage, REPORT_DDL)))

    def _scan(
        self, frame: DataFrame | None, task: EventTask, pin: Pin, told: Steps | None
    ) -> tuple[BatchReport, Advance]:
        """Scan the records and move the time; with steps the other way round."""
        spec = self._parts.spec
        if frame is None:
            return NOTHING, pinned_advance(spec, pin, NOTHING, told)
        if told is not None:
            move = pinned_advance(spec, pin, NOTHING, told)
            stage = partial(scan, task=task, pin=pin, merged=move.merged.by_partition)
            return collect_reports(frame.mapInArrow(stage, REPORT_DDL)), move
        stage = partial(scan, task=task, pin=pin, merged=None)
        report = collect_reports(frame.mapInArrow(stage, REPORT_DDL))
        return report, pinned_advance(spec, pin, report, None)

    def _act(self, plan: StagePlan, task: EventTask, pin: Pin) -> BatchReport:
        frame = self._frame(plan)
        if self._parts.spec.window is None:
            return self._parts.writer.run(frame, task, pin)
        return collect_reports(frame.mapInArrow(partial(act, task=task, pin=pin), REPORT_DDL))

    def _frame(self, plan: StagePlan) -> DataFrame:
        """A row and a task for each item."""
        count = len(plan.items)
        texts = f.array(*(f.lit(item) for item in plan.items))
        numbered = self._parts.session.range(0, count, 1, count)
        return numbered.select(f.element_at(texts, f.col("id").cast("int") + 1).alias("item"))

    def _files(self, pin: Pin, name: str) -> Sequence[StateFile]:
        """The files of the state as the pin names it."""
        log = self._tables.waiting if name == "waiting" else self._tables.windows
        if log is None:
            return ()
        return log.files((pin.event or {})["state_versions"][name])

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
