"""One event batch: its stages on the workers, then its commits.

`joins.batch.event_stages` defines the stages; the last one runs through the sink. The commits
follow: dead letters, late records, state, output. A batch that runs again under its pin stages the
same and repeats no commit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.state_log import StateChange, StateFile, StateLog
from joins.batch.batches import (
    FinishedBatch,
    ProbeHooks,
    StageClock,
    commit_letters,
    records_work,
    worker_errors,
)
from joins.batch.event_stages import (
    NOTHING,
    MergedSteps,
    StagedEvents,
    StagePlan,
    added,
    run_stages,
)
from joins.batch.event_state import EventSpec, EventState
from joins.durable.pins import Pin
from joins.kernels.table_path import remove_below
from joins.sinks.port import BatchWriter
from joins.worker.event_task import EventTask, act, scan, steps
from joins.worker.late_rows import LateReader, answer_items
from joins.worker.probe_task import DEAD_LETTERS
from joins.worker.staging import BatchReport
from joins.worker.topic_reader import TopicReader
from joins.worker.window_task import LATE
from joins.worker.work import Stage, Work, parallelism, split


@dataclass(frozen=True, slots=True)
class EventTables:
    """The tables of one job with event time, all fenced; None for a state that it does not have."""

    dead_letters: DeltaLog
    late: DeltaLog
    waiting: StateLog | None
    windows: StateLog | None

    @property
    def states(self) -> tuple[StateLog, ...]:
        return tuple(each for each in (self.waiting, self.windows) if each is not None)

    @property
    def logs(self) -> tuple[DeltaLog, ...]:
        return (self.late, *(each.log for each in self.states))

    def versions(self) -> dict[str, int]:
        named = {"waiting": self.waiting, "windows": self.windows}
        return {name: log.version() for name, log in named.items() if log is not None}

    def undo(self, pin: Pin, epoch: int) -> None:
        """Undo what the batch of `pin` has committed before its output, for good.

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
class _OnWorkers:
    """Stages of one batch as Spark's tasks; the last one runs through the sink."""

    batches: "EventBatches"
    records: Work | None
    task: EventTask
    pin: Pin

    def steps(self) -> BatchReport:
        return self._over_records(partial(steps, task=self.task, pin=self.pin))

    def scan(self, merged: MergedSteps | None) -> BatchReport:
        return self._over_records(partial(scan, task=self.task, pin=self.pin, merged=merged))

    def act(self, plan: StagePlan) -> BatchReport:
        return self._items(plan).report(partial(act, task=self.task, pin=self.pin))

    def last(self, plan: StagePlan) -> BatchReport:
        return self.batches.writer.run(self._items(plan), self.task, self.pin)

    def answer(self, waiting: Mapping[int, Mapping[str, Any]]) -> BatchReport:
        batches, tasks = self.batches, self.batches.hooks.tasks
        items = answer_items(waiting, split(self.pin.ranges(), parallelism(batches.spark)))
        reader = LateReader(batches.reader)
        work = Work(batches.spark, items, reader, has_index=True, tasks=tasks)
        return batches.writer.run(work, self.task, self.pin)

    def files(self, name: str) -> Sequence[StateFile]:
        tables = self.batches.tables
        log = tables.waiting if name == "waiting" else tables.windows
        return () if log is None else log.files(self.pin.of_event.state_versions[name])

    def _over_records(self, stage: Stage) -> BatchReport:
        return NOTHING if self.records is None else self.records.report(stage)

    def _items(self, plan: StagePlan) -> Work:
        tasks = self.batches.hooks.tasks
        return Work(self.batches.spark, plan.items, has_index=True, tasks=tasks)


@dataclass(frozen=True, slots=True)
class EventBatches:
    """Runs batches of one job; one at a time."""

    spark: SparkSession
    spec: EventSpec
    task: EventTask
    reader: TopicReader
    tables: EventTables
    writer: BatchWriter
    hooks: ProbeHooks

    def committed(self, pin: Pin) -> FinishedBatch | None:
        """The batch of `pin`, if its output is complete; CheckpointError if the state lacks it."""
        counts = self.writer.committed_counts(pin)
        if counts is None:
            return None
        return FinishedBatch(pin, counts, EventState.of(self.tables.states[-1].after(pin.batch)))

    def newest_state(self) -> EventState:
        stored = self.tables.states[-1].newest_after()
        return EventState() if stored is None else EventState.of(stored)

    @property
    def shows_early(self) -> bool:
        return self.writer.shows_early

    def run(self, pin: Pin, settle: Callable[[], None]) -> FinishedBatch:
        hit, clock = self.hooks.guards.failpoints.hit, StageClock()
        self.task.probe.attach(pin.versions)
        clock.ends("index")
        hit("C4", pin.batch)
        with (
            self._scratch(pin) as task,
            worker_errors(self.reader.topics, pin, self.hooks.restore),
        ):
            done, changes = self._staged(task, pin)
        self.hooks.check()
        clock.ends("join")
        hit("C6", pin.batch)
        settle()
        after = done.move.after.counted(done.report.counts)
        self._commit(pin, done.report, changes, after)
        clock.ends("commit")
        return FinishedBatch(pin, done.report.counts, after, clock.stages_ms)

    @contextmanager
    def _scratch(self, pin: Pin) -> Iterator[EventTask]:
        task = self.task
        place = task.places.scratch / f"{task.epoch:05d}" / f"{pin.batch:010d}"
        remove_below(place)
        try:
            yield replace(task, places=replace(task.places, scratch=place))
        finally:
            remove_below(place)

    def sweep(self) -> None:
        remove_below(self.task.places.scratch)

    def _staged(self, task: EventTask, pin: Pin) -> tuple[StagedEvents, Mapping[str, StateChange]]:
        records = None if task.kernel.waits_for else self._records(pin)
        done = run_stages(self.spec, pin, _OnWorkers(self, records, task, pin))
        changes = {
            name: StateChange(added(done.report, name), paths)
            for name, paths in done.removed.items()
        }
        return done, changes

    def _records(self, pin: Pin) -> Work | None:
        if not pin.ranges():
            return None
        return records_work(self.spark, self.hooks.tasks, self.reader, pin, whole=True)

    def _commit(
        self,
        pin: Pin,
        report: BatchReport,
        changes: Mapping[str, StateChange],
        after: EventState,
    ) -> None:
        """Commit the output last: it ends the batch."""
        tables, epoch = self.tables, self.task.epoch
        hit = self.hooks.guards.failpoints.hit
        commit_letters(self.hooks, pin, report.files.get(DEAD_LETTERS, ()))
        hit("C7", pin.batch)
        late = report.files.get(LATE, ())
        if late:
            tables.late.commit(pin.batch, epoch, late, {"sluice.batch": pin.batch})
        for name, log in (("waiting", tables.waiting), ("windows", tables.windows)):
            if log is not None:
                change = replace(changes[name], after=after.as_json())
                log.commit(pin.batch, epoch, change)
        hit("C13", pin.batch)
        self.writer.commit(report, pin, epoch)
        hit("C8", pin.batch)
