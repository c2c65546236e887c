"""The INSERTs of one job: all of them write their rows of a batch under one pin.

They are staged in turn; each reads the records of its topics. Once all are staged, their outputs
are committed in the order of the script. A batch is complete when all outputs have it; a batch that
runs again skips the INSERTs whose output has it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from joins.batch.batches import (
    FinishedBatch,
    ProbeHooks,
    StageClock,
    commit_letters,
    records_work,
    worker_errors,
)
from joins.batch.event_state import EventState
from joins.durable.pins import Pin
from joins.kernels.probe.files import StagedFile
from joins.plan.stream_topics import StreamTopics
from joins.sinks.port import BatchWriter
from joins.worker.probe_task import DEAD_LETTERS, ProbeTask
from joins.worker.staging import BatchReport
from joins.worker.topic_reader import TopicReader
from joins.worker.work import Work

Counts = Mapping[str, int]
WorkOf = Callable[[Pin, Sequence[int], bool], Work]
"""The records of a batch in the topics at these indexes; in all topics if there are none.

With True no partition is divided among tasks.
"""


@dataclass(frozen=True, slots=True)
class ProbeInsert:
    """What batches need for one INSERT."""

    task: ProbeTask
    writer: BatchWriter
    whole_partitions: bool = False  # no partition is divided among tasks


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A batch that is computed but not committed."""

    # by INSERT, None where the output has the batch already
    reports: tuple[BatchReport | None, ...]
    counts: Counts  # of all INSERTs, including those committed before

    @property
    def dead_letters(self) -> tuple[StagedFile, ...]:
        reports = [report for report in self.reports if report is not None]
        return tuple(file for report in reports for file in report.files.get(DEAD_LETTERS, ()))


class Inserts:
    """The INSERTs of one job, in the order of the script."""

    def __init__(self, inserts: Sequence[ProbeInsert]) -> None:
        self.first = inserts[0]
        self._all = tuple(inserts)

    def read_topics(self, topics: StreamTopics) -> None:
        self._all = tuple(replace(each, task=each.task.reading(topics)) for each in self._all)
        self.first = self._all[0]

    @property
    def record_columns(self) -> tuple[str, ...]:
        names = (insert.task.kernel.record_columns for insert in self._all)
        return tuple(dict.fromkeys(name for columns in names for name in columns))

    def attach(self, versions: Mapping[str, int]) -> None:
        for insert in self._all:
            insert.task.attach(versions)

    def committed(self, pin: Pin) -> tuple[Counts | None, ...]:
        return tuple(insert.writer.committed_counts(pin) for insert in self._all)

    def committed_counts(self, pin: Pin) -> Counts | None:
        return counts_of_all(self.committed(pin))

    @property
    def show_early(self) -> bool:
        return any(insert.writer.shows_early for insert in self._all)

    def newest_batch(self) -> int | None:
        """The newest batch that an output has, None without any or if none keeps it."""
        batches = (insert.writer.newest_batch() for insert in self._all)
        return max((batch for batch in batches if batch is not None), default=None)

    def accept(self) -> None:
        """Write to the outputs as they are now."""
        for insert in self._all:
            insert.writer.accept()

    def stage(self, work_of: WorkOf, pin: Pin, committed: Sequence[Counts | None]) -> StagedBatch:
        """Raises as the writers do."""
        reports = tuple(
            _staged(insert, work_of, pin) if counts is None else None
            for insert, counts in zip(self._all, committed, strict=True)
        )
        counts = [
            known if report is None else report.counts
            for known, report in zip(committed, reports, strict=True)
        ]
        return StagedBatch(reports, counts_of_all(counts) or {})

    def commit(self, batch: StagedBatch, pin: Pin, epoch: int, between: Callable[[], None]) -> None:
        """Call `between` before each commit but the first."""
        waiting = [
            (insert.writer, report)
            for insert, report in zip(self._all, batch.reports, strict=True)
            if report is not None
        ]
        for number, (writer, report) in enumerate(waiting):
            if number > 0:
                between()
            writer.commit(report, pin, epoch)


def _staged(insert: ProbeInsert, work_of: WorkOf, pin: Pin) -> BatchReport:
    work = work_of(pin, insert.task.kernel.reads, insert.whole_partitions)
    return insert.writer.run(work, insert.task, pin)


def counts_of_all(counts: Sequence[Counts | None]) -> Counts | None:
    """The sums over the INSERTs of a batch; None if those of one are unknown."""
    known = [each for each in counts if each is not None]
    if len(known) < len(counts):
        return None
    if len(known) == 1:
        return known[0]
    totals: dict[str, int] = {}
    for each in known:
        for name, number in each.items():
            totals[name] = totals.get(name, 0) + number
    return totals


class JoinBatches:
    """Runs batches of one job; one at a time."""

    def __init__(
        self, spark: SparkSession, inserts: Inserts, reader: TopicReader, hooks: ProbeHooks
    ) -> None:
        self._spark = spark
        self._inserts = inserts
        self._reader = reader
        self._hooks = hooks

    def sweep(self) -> None:
        """Does nothing: a batch removes its own leftovers."""

    def newest_state(self) -> EventState:
        return EventState()

    def committed(self, pin: Pin) -> FinishedBatch | None:
        counts = self._inserts.committed_counts(pin)
        return None if counts is None else FinishedBatch(pin, counts)

    @property
    def shows_early(self) -> bool:
        return self._inserts.show_early

    def run(self, pin: Pin, settle: Callable[[], None]) -> FinishedBatch:
        hit, number, epoch = self._hooks.guards.failpoints.hit, pin.batch, self._hooks.epoch
        clock, committed = StageClock(), self._inserts.committed(pin)
        self._inserts.attach(pin.versions)
        clock.ends("index")
        hit("C4", number)
        with worker_errors(self._reader.topics, pin, self._hooks.restore):
            staged = self._inserts.stage(self._work_of, pin, committed)
        self._hooks.check()
        clock.ends("join")
        hit("C6", number)
        settle()
        commit_letters(self._hooks, pin, staged.dead_letters)
        hit("C7", number)
        self._inserts.commit(staged, pin, epoch, lambda: hit("C14", number))
        clock.ends("commit")
        hit("C8", number)
        return FinishedBatch(pin, staged.counts, stages_ms=clock.stages_ms)

    def _work_of(self, pin: Pin, reads: Sequence[int], whole: bool) -> Work:
        tasks = self._hooks.tasks
        return records_work(self._spark, tasks, self._reader, pin, reads=reads, whole=whole)
