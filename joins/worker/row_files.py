"""Rows that workers encode for a sink: in files for the driver, or in Spark.

The next batch removes files that a crash has left.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from joins.durable.pins import Pin
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import JoinedBatch
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError, StoreUnavailableError
from joins.worker.probe_task import DEAD_LETTERS, BatchTask, TaskCounts
from joins.worker.staging import BatchReport, current_origin, merge_reports
from joins.worker.work import Work

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
    report = counts.report.to_batch().column(0)
    yield pa.record_batch([*(pa.nulls(1, item.type) for item in schema), report], schema=whole)


class PersistedRows:
    """The rows of one batch, joined once and kept in Spark until they are written."""

    def __init__(self) -> None:
        self._staged: DataFrame | None = None

    def run(self, frame: DataFrame) -> BatchReport:
        """Run `frame`, which `stage_rows` fills, keep its rows and return its reports."""
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
        """The rows, which are dropped at exit; raises SinkError without any."""
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


ROWS = "rows"
_COPIED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class RowEncoding:
    """Encodes joined rows, in order, for a file of `schema`; picklable."""

    schema: pa.Schema
    encode: Callable[[JoinedBatch, Pin], pa.RecordBatch]


def _stage(
    batches: Iterator[pa.RecordBatch],
    *,
    task: BatchTask,
    pin: Pin,
    encoding: RowEncoding,
    place: TablePath,
) -> Iterator[pa.RecordBatch]:
    origin = current_origin(task.epoch, pin.batch)
    counts = TaskCounts()
    with (
        ParquetStage(place, encoding.schema, origin, kept=False) as rows,
        ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead,
    ):
        for batch in task.answers(batches, pin, counts):
            rows.write(encoding.encode(batch, pin))
            dead.write(batch.dead_letters)
        counts.stage(ROWS, rows.finish())
        counts.stage(DEAD_LETTERS, dead.finish())
    yield counts.report.to_batch()


class RowFiles:
    """The files of one job's newest batch, seen by all nodes; `copies` are the driver's."""

    def __init__(self, place: TablePath, copies: Path | None = None) -> None:
        self.place = place
        self._copies = copies

    def run(self, work: Work, task: BatchTask, pin: Pin, encoding: RowEncoding) -> BatchReport:
        stage = partial(_stage, task=task, pin=pin, encoding=encoding, place=self.place)
        self.clear(task.epoch)
        return work.report(stage)

    def paths(self, report: BatchReport) -> list[str]:
        """Local paths in task order; raises SinkError, StoreUnavailableError."""
        files = self.staged(report)
        if len(files) > 1 and not isinstance(self.place, Path):
            with ThreadPoolExecutor(_COPIED_AT_ONCE) as threads:
                return list(threads.map(self._here, files))
        return [self._here(file) for file in files]

    def _here(self, file: StagedFile) -> str:
        path = self.place / file.path
        try:
            if isinstance(path, Path):
                path.stat()
                return str(path)
            content = path.read_bytes()
        except FileNotFoundError as exc:
            raise SinkError(
                f'staged file "{path}" is gone',
                hint="Another attempt of the batch was begun; the batch is run again.",
            ) from exc
        assert self._copies is not None, "files of a store are read from copies"
        self._copies.mkdir(parents=True, exist_ok=True)
        copy = self._copies / file.path
        copy.write_bytes(content)
        return str(copy)

    @staticmethod
    def staged(report: BatchReport) -> tuple[StagedFile, ...]:
        return report.files.get(ROWS, ())

    def remove(self, report: BatchReport) -> None:
        for file in self.staged(report):
            for place in self._places:
                (place / file.path).unlink(missing_ok=True)

    def clear(self, epoch: int) -> None:
        for place in self._places:
            # The directory is missing, or the store is down and the next batch clears it.
            with suppress(FileNotFoundError, StoreUnavailableError):
                paths: list[TablePath] = list(place.iterdir())
                for path in paths:
                    origin = FileOrigin.of_name(path.name)
                    if origin is not None and origin.epoch <= epoch:
                        path.unlink(missing_ok=True)

    @property
    def _places(self) -> tuple[TablePath, ...]:
        return tuple(dict.fromkeys((self.place, self._copies or self.place)))
