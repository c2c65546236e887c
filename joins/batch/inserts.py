"""The INSERTs of one job: a batch is one pin, under which all of them have their rows.

They are staged one after the other, each reads the records of its topics anew; nothing is committed
before all are staged. Their outputs are committed in the order of the script. A batch is complete
when all outputs have it; when it is run again, an INSERT whose output has it already is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from joins.durable.pins import Pin
from joins.kernels.probe.files import StagedFile
from joins.plan.stream_topics import StreamTopics
from joins.sinks.port import BatchWriter
from joins.worker.probe_task import DEAD_LETTERS, ProbeTask
from joins.worker.staging import BatchReport
from joins.worker.work import Work

Counts = Mapping[str, int]
WorkOf = Callable[[Pin, Sequence[int]], Work]
"""The records of a batch that are of the topics at these indexes, all without any."""


@dataclass(frozen=True, slots=True)
class ProbeInsert:
    """What batches need for one INSERT."""

    task: ProbeTask
    writer: BatchWriter


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A batch of which nothing more is to be computed.

    Attributes:
        reports: by INSERT, None where the output has the batch already.
        counts: of all INSERTs, those committed before too.
    """

    reports: tuple[BatchReport | None, ...]
    counts: Counts

    @property
    def dead_letters(self) -> tuple[StagedFile, ...]:
        reports = [report for report in self.reports if report is not None]
        return tuple(file for report in reports for file in report.files.get(DEAD_LETTERS, ()))


class Inserts:
    """The INSERTs of one job, in the order of the script.

    Attributes:
        first: the only one, unless the job is a statement set of several.
    """

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
        """Map the indexes of `versions` into this process; raises as `ProbeTask.attach`."""
        for insert in self._all:
            insert.task.attach(versions)

    def committed(self, pin: Pin) -> tuple[Counts | None, ...]:
        return tuple(insert.writer.committed_counts(pin) for insert in self._all)

    def committed_counts(self, pin: Pin) -> Counts | None:
        return counts_of_all(self.committed(pin))

    def stage(self, work_of: WorkOf, pin: Pin, committed: Sequence[Counts | None]) -> StagedBatch:
        """Join and stage what is not yet `committed`; raises as the writers do."""
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
        """Commit what is staged; `between` is called before each commit but the first."""
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
    work = work_of(pin, insert.task.kernel.reads)
    return insert.writer.run(work, insert.task, pin)


def counts_of_all(counts: Sequence[Counts | None]) -> Counts | None:
    """The counts of a batch from those of its INSERTs; None if one is not known."""
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
