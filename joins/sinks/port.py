"""Ports of the data path; `service.wiring.job` connects them to adapters."""

from collections.abc import Mapping
from typing import Protocol

from joins.durable.pins import Pin
from joins.worker.probe_task import BatchTask
from joins.worker.staging import BatchReport
from joins.worker.work import Work


class CommittedBatches(Protocol):
    """Knows which batches are complete."""

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Counts of the batch of `pin` if its output is already complete, else None."""


class BatchWriter(Protocol):
    """One kind of sink: stages on the workers, commits on the driver."""

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join `work` under the durable `pin` on the workers and stage the outcome.

        Nothing is visible yet, but for rows that may be there twice.
        """

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Make the output of `pin` visible; repeating a committed batch changes nothing."""

    def accept(self) -> None:
        """Write to the output as it is now, after an operator has acknowledged its change."""

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Counts of the batch of `pin` if its output is already complete, else None."""
