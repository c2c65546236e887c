"""Rows for a sink that is no table: workers encode them, and the dead letters become files."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from joins.kernels.files import ParquetStage
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import JoinedBatch
from joins.pins import Pin
from joins.probe_task import DEAD_LETTERS, ProbeTask, TaskCounts, joined
from joins.staging import TaskReport, current_origin

REPORT = pa.field("report", pa.string())
REPORT_COLUMN_DDL = "report string"

Encode = Callable[[JoinedBatch, Pin], pa.RecordBatch]


def stage_rows(
    batches: Iterator[pa.RecordBatch],
    *,
    task: ProbeTask,
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
        for batch in joined(counts.reading(batches), task, pin):
            dead.write(batch.dead_letters)
            counts.add(batch)
            if encode is not None:
                rows = encode(batch, pin)
                blank = pa.nulls(rows.num_rows, REPORT.type)
                yield pa.record_batch([*rows.columns, blank], schema=whole)
        staged = dead.finish()
    files = {} if staged is None else {DEAD_LETTERS: staged}
    report = TaskReport(files=files, counts=counts.values).to_batch().column(0)
    yield pa.record_batch([*(pa.nulls(1, item.type) for item in schema), report], schema=whole)
