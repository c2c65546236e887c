"""The `print` and `blackhole` sinks: for looking and measuring, nothing durable."""

from collections.abc import Iterator
from functools import partial
from typing import TextIO

import pyarrow as pa
from pyspark.sql import DataFrame

from joins.kernels.files import ParquetStage
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.render import render_rows, with_text_times
from joins.pins import Pin
from joins.probe_task import DEAD_LETTERS, ProbeTask, TaskCounts, joined
from joins.staging import (
    BatchReport,
    TaskReport,
    current_origin,
    merge_reports,
)

_LINES = pa.schema([("line", pa.string()), ("report", pa.string())])
_LINES_DDL = "line string, report string"


def _stage(
    batches: Iterator[pa.RecordBatch], *, task: ProbeTask, pin: Pin, identifier: str | None
) -> Iterator[pa.RecordBatch]:
    """Emit the rendered rows (none when `identifier` is None) and, last, the task's report."""
    counts = TaskCounts()
    with ParquetStage(
        task.dead_letters, DEAD_LETTER_SCHEMA, current_origin(task.epoch, pin.batch)
    ) as dead:
        for batch in joined(batches, task, pin):
            dead.write(batch.dead_letters)
            counts.add(batch)
            if identifier is not None:
                lines = render_rows(with_text_times(batch.rows, task.kernel.output), identifier)
                yield pa.record_batch([lines, pa.nulls(len(lines), pa.string())], schema=_LINES)
        staged = dead.finish()
    files = {} if staged is None else {DEAD_LETTERS: staged}
    report = TaskReport(files=files, counts=counts.values).to_batch().column(0)
    yield pa.record_batch([pa.nulls(1, pa.string()), report], schema=_LINES)


class ConsoleSinkWriter:
    """Prints each row as `+I[…]` to `stream`; a retried batch may be printed twice."""

    def __init__(self, stream: TextIO, identifier: str | None) -> None:
        self._stream = stream
        self._identifier = identifier
        self._lines: list[str] = []

    def run(self, frame: DataFrame, task: ProbeTask, pin: Pin) -> BatchReport:
        """Join on the workers and bring the rendered rows to the driver, in partition order."""
        stage = partial(_stage, task=task, pin=pin, identifier=self._identifier)
        rows = frame.mapInArrow(stage, _LINES_DDL).collect()
        self._lines = [row.line for row in rows if row.line is not None]
        return merge_reports(row.report for row in rows if row.report is not None)

    def commit(self, report: BatchReport, pin: Pin, epoch: int) -> None:
        """Print the rows."""
        for line in self._lines:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._lines = []

    def committed_counts(self, pin: Pin) -> None:
        """Nothing durable tells; the batch runs again."""
