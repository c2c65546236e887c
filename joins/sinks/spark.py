"""The `delta` sink through Spark's own writer, and the choice between it and the columnar one.

For tables that ask more of their writers than our columnar commits keep. The rows become JVM
objects once more, which is slower; exactly once and fencing are the same.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.durable.pins import Pin, pin_json
from joins.kernels.probe.probe import JoinedBatch
from joins.sinks.delta import DeltaLetterWriter, DeltaSinkWriter
from joins.worker.probe_task import BatchTask
from joins.worker.row_stage import REPORT, PersistedRows, stage_rows
from joins.worker.staging import BatchReport
from joins.worker.work import Work

_log = structlog.get_logger(__name__)


def _rows_of(batch: JoinedBatch, pin: Pin) -> pa.RecordBatch:
    return batch.rows


class SparkDeltaSinkWriter:
    """Writes exactly once to one Delta table through Spark's writer."""

    def __init__(self, log: OutputLog) -> None:
        self._log = log
        self._staged = PersistedRows()

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """Join on the workers once and keep the rows in Spark for `commit`."""
        types = [item.type for item in task.kernel.output_schema]
        # Numbered: a column of the output may have the name of the report's.
        schema = pa.schema([(f"c{at}", kind) for at, kind in enumerate(types)])
        stage = partial(stage_rows, task=task, pin=pin, encode=_rows_of, schema=schema)
        return self._staged.run(work.map(stage, spark_schema(schema.append(REPORT))))

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Append the batch's rows with its pin and its counts in the commit's metadata.

        Raises:
            ConstraintViolatedError: a row violates what the table asks for.
        """
        names = self._log.rows.names
        metadata = {**pin_json(pin), "counts": dict(report.counts)}
        with self._staged.taken() as staged:
            rows = staged.drop(REPORT.name).toDF(*names)
            append = SparkAppend(rows, report.counts.get("joined", 0), metadata)
            self._log.append(pin.batch, epoch, append)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        return DeltaSinkWriter(self._log).committed_counts(pin)


class SparkDeltaLetterWriter:
    """Writes the rows of replayed dead letters exactly once: one commit a replay.

    Args:
        log: the output under the app id of its own, `<app id>:replay`; the number is the replay's.
        spark: the session of the writer.
    """

    def __init__(self, log: OutputLog, spark: SparkSession) -> None:
        self._log = log
        self._spark = spark

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Append the rows with `outcome`, which is asked for after the last part.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: the commit failed.
        """
        table = pa.Table.from_batches([batch.rows for batch, _ in parts], self._log.rows)
        rows = self._spark.createDataFrame(table, spark_schema(self._log.rows))
        metadata = {"replay": number, "outcome": dict(outcome())}
        self._log.append(number, epoch, SparkAppend(rows, table.num_rows, metadata))


class DeltaOutputWriter:
    """The writer that the output needs, chosen anew before each batch.

    Attributes:
        choice: of the newest batch; before the first one, of the start.
    """

    def __init__(self, log: OutputLog) -> None:
        self._log = log
        self._columnar = DeltaSinkWriter(log)
        self._spark = SparkDeltaSinkWriter(log)
        self.choice = log.choice()

    @property
    def _writer(self) -> DeltaSinkWriter | SparkDeltaSinkWriter:
        return self._spark if self.choice.is_spark else self._columnar

    def run(self, work: Work, task: BatchTask, pin: Pin) -> BatchReport:
        """As the chosen writer.

        Raises:
            SinkError: the table does not take the job's rows any more.
        """
        choice = self._log.choice()
        if choice != self.choice:
            _log.warning(
                "the output's table has changed", writer=choice.writer, reason=choice.reason
            )
        self.choice = choice
        return self._writer.run(work, task, pin)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        self._writer.commit(report, pin, epoch)

    def committed_counts(self, pin: Pin) -> Mapping[str, int] | None:
        return self._columnar.committed_counts(pin)


class DeltaOutputLetterWriter:
    """Writes replayed dead letters through the writer that the output needs at that time."""

    def __init__(self, log: OutputLog, spark: SparkSession) -> None:
        self._log = log
        self._columnar = DeltaLetterWriter(log, log.rows)
        self._spark = SparkDeltaLetterWriter(log, spark)

    def committed(self, number: int) -> Mapping[str, Any] | None:
        return self._columnar.committed(number)

    def write(
        self,
        parts: Iterable[tuple[JoinedBatch, Pin]],
        number: int,
        epoch: int,
        outcome: Callable[[], Mapping[str, Any]],
    ) -> None:
        """As the writer that the table needs.

        Raises:
            FencedError: a newer runner has taken over.
            SinkError: the commit failed.
        """
        writer = self._spark if self._log.choice().is_spark else self._columnar
        writer.write(parts, number, epoch, outcome)
