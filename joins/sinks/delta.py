"""The `delta` sink: columnar commits, Spark's own writer, and MERGE for upserts.

Each writes exactly once under the batch number. Spark's writer serves tables with features that the
columnar commits lack; it is slower, as rows become JVM objects.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.merge import MergedOutput, MergeSource, change_schema
from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.durable.pins import Pin, pin_json
from joins.kernels.changelog.row_kinds import DELETE, INSERT, UPDATE_AFTER, all_kinds, is_any
from joins.kernels.probe.files import FileOrigin
from joins.kernels.probe.probe import JoinedBatch
from joins.worker.late_rows import LATE_CORRECTED
from joins.worker.probe_task import OUTPUT, BatchTask, stage_delta
from joins.worker.row_files import REPORT, PersistedRows, RowEncoding, RowFiles, stage_rows
from joins.worker.staging import BatchReport
from joins.worker.work import Work

# In file names, above every batch number: only a newer epoch makes these files orphans.
_FIRST_REPLAY = 9_000_000_000


class DeltaSinkWriter:
    """Writes exactly once to one Delta table."""

    shows_early = False

    def __init__(self, log: DeltaLog) -> None:
        self._log = log

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        output = self._log.shared
        stage = partial(stage_delta, task=task, pin=pin, output=output)
        return work.report(stage)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        self._log.commit(pin.batch, epoch, report.files.get(OUTPUT, ()), metadata)

    def accept(self) -> None:
        """Does nothing: the log of the table counts its batches."""

    def newest_batch(self) -> int | None:
        return self._log.batches.last_batch()

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        last = self.newest_batch()
        if last is None or last < pin.batch:
            return None
        metadata = self._log.batches.batch_metadata(pin.batch) or {}
        return dict(metadata.get("counts", {}))


class DeltaLetterWriter:
    """Writes replayed dead letters exactly once; `log` has the app id `<app id>:replay`."""

    def __init__(self, log: DeltaLog, schema: pa.Schema) -> None:
        self._log = log
        self._schema = schema

    def committed(self, number: int) -> Mapping[str, Any] | None:
        last = self._log.batches.last_batch()
        if last is None or last < number:
            return None
        metadata = self._log.batches.batch_metadata(number) or {}
        return metadata.get("outcome")

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Stage the rows and commit them; calls `outcome` after the last part.

        Raises FencedError if a newer runner has taken over, SinkError if the commit fails.
        """
        origin = FileOrigin(epoch, _FIRST_REPLAY + number, 0, 0)
        with self._log.shared.stage(self._schema, origin) as stage:
            for batch, _ in parts:
                stage.write(batch.rows)
            staged = stage.finish()
        files = () if staged is None else (staged,)
        metadata = {"replay": number, "outcome": dict(outcome())}
        self._log.commit(number, epoch, files, metadata)


_log = structlog.get_logger(__name__)


def _rows_of(batch: JoinedBatch, pin: Pin) -> pa.RecordBatch:
    return batch.rows


class SparkDeltaSinkWriter(DeltaSinkWriter):
    """Writes exactly once to one Delta table through Spark's writer."""

    _log: OutputLog

    def __init__(self, log: OutputLog) -> None:
        super().__init__(log)
        self._staged = PersistedRows()

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        types = [item.type for item in task.kernel.output_schema]
        # Numbered: a column of the output may have the name of the report column.
        schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(types)])
        stage = partial(stage_rows, task=task, pin=pin, encode=_rows_of, schema=schema)
        return self._staged.run(work.map(stage, spark_schema(schema.append(REPORT))))

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Append the rows; raises ConstraintViolatedError for a table constraint."""
        names = self._log.schema.names
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        with self._staged.taken() as staged:
            rows = staged.drop(REPORT.name).toDF(*names)
            append = SparkAppend(rows, report.counts.get("joined", 0), metadata)
            self._log.append(pin.batch, epoch, append)


class DeltaOutputWriter(DeltaSinkWriter):
    """Chooses the writer that the output needs at the start and before each batch."""

    _log: OutputLog

    def __init__(self, log: OutputLog) -> None:
        super().__init__(log)
        self._spark = SparkDeltaSinkWriter(log)
        self.choice = log.choice()

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Raises SinkError if the table no longer accepts the job's rows."""
        choice = self._log.choice()
        if choice != self.choice:
            _log.warning(
                "the output's table has changed", writer=choice.writer, reason=choice.reason
            )
        self.choice = choice
        return self._spark.run(work, task, pin) if choice.is_spark else super().run(work, task, pin)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        """Raises SinkError if the batch's commit by Spark has another number of rows."""
        counts = super().committed_counts(pin)
        if counts:
            self._log.spark.check_batch(pin.batch, counts.get("joined", 0))
        return counts

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        commit = self._spark.commit if self.choice.is_spark else super().commit
        commit(report, pin, epoch)


class DeltaOutputLetterWriter(DeltaLetterWriter):
    """Writes replayed dead letters through the writer that the output needs at that time."""

    _log: OutputLog

    def __init__(self, log: OutputLog, spark: SparkSession) -> None:
        super().__init__(log, log.schema)
        self._spark = spark

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Write the rows; calls `outcome` after the last part.

        Raises FencedError if a newer runner has taken over, SinkError if the commit fails.
        """
        if not self._log.choice().is_spark:
            super().write(parts, number, epoch, outcome)
            return
        table = pa.Table.from_batches([batch.rows for batch, _ in parts], self._schema)
        rows = self._spark.createDataFrame(table, spark_schema(self._schema))
        metadata = {"replay": number, "outcome": dict(outcome())}
        self._log.append(number, epoch, SparkAppend(rows, table.num_rows, metadata))


_APPLIED = (INSERT, UPDATE_AFTER, DELETE)  # the row that an update replaces has the same key


def _changes_of(batch: JoinedBatch, _: Pin) -> pa.RecordBatch:
    kinds = all_kinds(batch.kinds, batch.rows.num_rows)
    schema = change_schema(batch.rows.schema)
    changes = pa.RecordBatch.from_arrays([*batch.rows.columns, kinds], schema=schema)
    return changes if batch.kinds is None else changes.filter(is_any(kinds, _APPLIED))


class MergeSinkWriter(DeltaSinkWriter):
    """Writes exactly once to one Delta table; of rows with equal keys it keeps the newest."""

    def __init__(self, output: MergedOutput, staged: RowFiles) -> None:
        super().__init__(output.log)
        self._output = output
        self._staged = staged
        self.choice = output.log.choice()

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join and stage changes; raises SinkError if the table no longer accepts the rows."""
        self.choice = self._output.log.choice()
        encoding = RowEncoding(change_schema(self._output.log.schema), _changes_of)
        return self._staged.run(work, task, pin, encoding)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Merge the changes; raises ConstraintViolatedError for a table constraint."""
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        is_new = report.counts.get(LATE_CORRECTED) == 0
        changes = MergeSource(self._staged.paths(report), metadata, is_new)
        self._output.merge(pin.batch, epoch, changes)
        self._staged.clear(epoch)
