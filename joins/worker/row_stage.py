"""Rows for a sink that is no table: workers encode them, and the dead letters become files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from joins.durable.pins import Pin
from joins.kernels.probe.files import ParquetStage
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import JoinedBatch
from joins.plan.errors import SinkError
from joins.worker.probe_task import DEAD_LETTERS, BatchTask, TaskCounts
from joins.worker.staging import BatchReport, TaskReport, current_origin, merge_reports

REPORT = pa.field("report", pa.string())

Encode = Callable[[JoinedBatch, Pin], pa.RecordBatch]


def stage_rows(
    batches: Iterator[pa.RecordBatch],
    *,
    task: BatchTask,
    pin: Pin,
    encode: Encode | None,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Emit batches of `schema` with the column `report`, which only the last row has.

    `encode` gives the columns of `schema`; without it the rows are counted and dropped.
    """
    counts = TaskCounts()
    whole = schema.append(REPORT)
    origin = current_origin(task.epoch, pin.batch)
    with ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead:
        for batch in task.answers(batches, pin, counts):
            dead.write(batch.dead_letters)
            if encode is not None:
                rows = encode(batch, pin)
                blank = pa.nulls(rows.num_rows, REPORT.type)
                yield pa.record_batch([*rows.columns, blank], schema=whole)
        counts.stage(DEAD_LETTERS, dead.finish())
    report = TaskReport(files=counts.files, counts=counts.values).to_batch().column(0)
    yield pa.record_batch([*(pa.nulls(1, item.type) for item in schema), report], schema=whole)


class PersistedRows:
    """The rows of one batch, joined once and kept in Spark until they are written."""

    def __init__(self) -> None:
        self._staged: DataFrame | None = None

    def run(self, frame: DataFrame) -> BatchReport:
        """Run `frame`, which `stage_rows` fills, keep its rows and give its reports."""
        self._forget()  # what a failed attempt has left
        self._staged = frame.persist()
        try:
            reports = self._staged.filter("report is not null").select("report").collect()
        except (PySparkException, Py4JError):
            self._forget()
            raise
        return merge_reports(row.report for row in reports)

    @contextmanager
    def taken(self) -> Iterator[DataFrame]:
        """The rows, their report empty; they are gone afterwards.

        Raises:
            SinkError: there are none.
        """
        if self._staged is None:
            raise SinkError("no batch is staged", hint="The batch is run again.")
        try:
            yield self._staged.filter("report is null")
        finally:
            self._forget()

    def _forget(self) -> None:
        if self._staged is not None:
            staged, self._staged = self._staged, None
            staged.unpersist()
