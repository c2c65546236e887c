"""The `delta` sink of a job whose rows replace others by key.

The workers stage the changes in files of their own, and one MERGE makes the batch's commit of them.
"""

from collections.abc import Mapping

import pyarrow as pa

from joins.adapters.delta.merge import MergedOutput, MergeSource, change_schema
from joins.durable.pins import Pin, pin_json
from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, all_kinds, is_any
from joins.kernels.probe.probe import JoinedBatch
from joins.sinks.delta import DeltaSinkWriter
from joins.worker.probe_task import BatchTask
from joins.worker.row_files import RowEncoding, RowFiles
from joins.worker.staging import BatchReport
from joins.worker.work import Work

_APPLIED = (INSERT, UPDATE_AFTER, DELETE)  # the row that an update replaces has the same key


def _changes_of(batch: JoinedBatch, _: Pin) -> pa.RecordBatch:
    kinds = all_kinds(batch.kinds, batch.rows.num_rows)
    schema = change_schema(batch.rows.schema)
    changes = pa.RecordBatch.from_arrays([*batch.rows.columns, kinds], schema=schema)
    return changes if batch.kinds is None else changes.filter(is_any(kinds, _APPLIED))


class MergeSinkWriter:
    """Writes exactly once to one Delta table; of the rows with equal keys it has the newest.

    Attributes:
        choice: the writer of the newest batch, which is always Spark's.
    """

    def __init__(self, output: MergedOutput, staged: RowFiles) -> None:
        self._output = output
        self._staged = staged
        self.choice = output.log.choice()

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join on the workers and stage the changes.

        Raises:
            SinkError: the table does not take the job's rows any more.
        """
        self.choice = self._output.log.choice()
        encoding = RowEncoding(change_schema(self._output.log.rows), _changes_of)
        return self._staged.run(work, task, pin, encoding)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Merge the batch's changes, with its pin and its counts in the commit's metadata.

        Raises:
            ConstraintViolatedError: a row violates what the table asks for.
        """
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        self._output.merge(pin.batch, epoch, MergeSource(self._staged.paths(report), metadata))
        self._staged.clear(epoch)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        return DeltaSinkWriter(self._output.log).committed_counts(pin)
