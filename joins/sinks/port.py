"""Ports of the data path; `service.wiring.job` connects them to adapters."""

from collections.abc import Mapping
from typing import Protocol

from joins.durable.pins import Pin
from joins.worker.probe_task import BatchTask
from joins.worker.staging import BatchReport
from joins.worker.work import Work


class CommittedBatches(Protocol):
    """Knows which batches are complete."""

    def newest_batch(self) -> int | None:
        """The newest batch that the output has, None without any or if it does not keep it."""

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Counts of the batch of `pin` if its output is already complete, else None."""


class BatchWriter(CommittedBatches, Protocol):
    """One kind of sink: stages on the workers, commits on the driver."""

    @property
    def shows_early(self) -> bool:
        """True if readers may see rows of a batch before its commit."""

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join `work` under `pin` on the workers and stage the outcome."""

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Make the output of `pin` visible; repeating a committed batch changes nothing."""

    def accept(self) -> None:
        """Write to the output as it is now, after an operator has acknowledged its change."""
