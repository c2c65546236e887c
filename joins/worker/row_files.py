"""Rows that workers leave in files until the driver hands them on: read once, then removed.

They are no part of any table. What a crash leaves behind is removed before the next batch is
staged; a batch that comes again is joined again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from joins.durable.pins import Pin
from joins.kernels.probe.files import FileOrigin, ParquetStage, StagedFile
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import JoinedBatch
from joins.plan.errors import SinkError
from joins.worker.probe_task import DEAD_LETTERS, BatchTask, TaskCounts
from joins.worker.staging import BatchReport, TaskReport, current_origin
from joins.worker.work import Work

ROWS = "rows"


@dataclass(frozen=True, slots=True)
class RowEncoding:
    """What becomes of joined rows in a file; picklable.

    Attributes:
        schema: of the file.
        encode: the columns of `schema` for each row that is kept, in their order.
    """

    schema: pa.Schema
    encode: Callable[[JoinedBatch, Pin], pa.RecordBatch]


def _stage(
    batches: Iterator[pa.RecordBatch],
    *,
    task: BatchTask,
    pin: Pin,
    encoding: RowEncoding,
    directory: Path,
) -> Iterator[pa.RecordBatch]:
    """Join and stage the rows and the dead letters; emits one report."""
    origin = current_origin(task.epoch, pin.batch)
    counts = TaskCounts()
    with (
        ParquetStage(directory, encoding.schema, origin, kept=False) as rows,
        ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead,
    ):
        for batch in task.answers(batches, pin, counts):
            rows.write(encoding.encode(batch, pin))
            dead.write(batch.dead_letters)
        counts.stage(ROWS, rows.finish())
        counts.stage(DEAD_LETTERS, dead.finish())
    yield TaskReport(files=counts.files, counts=counts.values).to_batch()


class RowFiles:
    """The files of one job's newest batch, in a directory that all nodes see."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, work: Work, task: BatchTask, pin: Pin, encoding: RowEncoding) -> BatchReport:
        """Join on the workers; nothing of another batch is left."""
        stage = partial(_stage, task=task, pin=pin, encoding=encoding, directory=self.directory)
        self.clear(task.epoch)
        return work.report(stage)

    def paths(self, report: BatchReport) -> list[str]:
        """The files of the batch, in the order of its tasks.

        Raises:
            SinkError: one is gone.
        """
        paths = [self.directory / file.path for file in self.staged(report)]
        for path in paths:
            if not path.is_file():
                raise SinkError(
                    f'staged file "{path}" is gone',
                    hint="Another attempt of the batch was begun; the batch is run again.",
                )
        return [str(path) for path in paths]

    @staticmethod
    def staged(report: BatchReport) -> tuple[StagedFile, ...]:
        """The same, as the tasks have described them."""
        return report.files.get(ROWS, ())

    def remove(self, report: BatchReport) -> None:
        """Remove the files of the batch."""
        for file in self.staged(report):
            (self.directory / file.path).unlink(missing_ok=True)

    def clear(self, epoch: int) -> None:
        """Remove what runner `epoch` and older ones have left."""
        if not self.directory.is_dir():
            return
        for path in self.directory.iterdir():
            origin = FileOrigin.of_name(path.name)
            if origin is not None and origin.epoch <= epoch:
                path.unlink(missing_ok=True)
