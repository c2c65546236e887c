"""The workers' half of windows: rows become parts, parts and state become fired rows.

One task gets all parts and the state of a bucket.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.durable.pins import ABSENT, EventPin, Pin
from joins.kernels.probe.arrival_files import (
    EVENT_TIME,
    OFFSET,
    PARTITION,
    RECORD,
    ScratchFiles,
    mapped,
    with_column,
)
from joins.kernels.probe.event_times import LATE_FOR_WINDOW, LATE_RECORDS, late_records
from joins.kernels.probe.files import FileOrigin, ParquetStage, SharedTable
from joins.kernels.probe.probe import (
    COORDINATES,
    DEAD_LETTERS,
    JoinedBatch,
    ProbeKernelSpec,
    pin_columns,
)
from joins.kernels.table_path import TablePath, readable
from joins.kernels.windows.firing import Projected, fire, project, reads
from joins.kernels.windows.partials import partials
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import WatermarkAdvance, compact, partial_schema, state_schema
from joins.plan.plan import WINDOW
from joins.worker.probe_task import TaskCounts, pinned_context

FILES = "windows/"
LATE = "late"
_BUCKET = "_bucket"


@dataclass(frozen=True, slots=True)
class WindowClock:
    """The operator's watermark before a batch; and in processing time the time of all rows."""

    start_ms: int
    clock_ms: int | None = None

    @classmethod
    def of(cls, pin: Pin, *, follows_clock: bool) -> "WindowClock":
        event = pin.event or EventPin()
        if follows_clock:
            clock_ms = pin.batch_timestamp_ms if event.clock_ms is ABSENT else event.clock_ms
            return cls(clock_ms - 1, clock_ms)
        before = event.window_watermark
        return cls(event.watermark if before is ABSENT else before)

    def timed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.clock_ms is not None:
            count = rows.num_rows
            times = (self.clock_ms, self.start_ms)
            for name, time in zip(EVENT_TIME.names, times, strict=True):
                rows = with_column(rows, name, pa.repeat(pa.scalar(time, pa.int64()), count))
        for item in RECORD:
            if item.name not in rows.schema.names:
                rows = with_column(rows, item.name, pa.nulls(rows.num_rows, item.type))
        return rows


class WindowParts:
    """Writes the parts of windows that one task finds; use as a context manager."""

    def __init__(self, spec: WindowSpec, scratch: TablePath, origin: FileOrigin) -> None:
        self._spec = spec
        self._files = ScratchFiles(scratch, partial_schema(spec), origin, by="bucket")

    def __enter__(self) -> "WindowParts":
        return self

    def __exit__(self, *_: object) -> None:
        self._files.__exit__()

    def add(self, rows: pa.RecordBatch, clock: WindowClock) -> pa.Table:
        """Add joined rows in order of arrival; returns those that no window took."""
        parts = partials(self._spec, clock.timed(rows))
        buckets = parts.table.column(_BUCKET).to_numpy()
        starts = np.searchsorted(buckets, np.arange(self._spec.buckets + 1))
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            first, end = int(starts[bucket]), int(starts[bucket + 1])
            self._files.write(bucket, parts.table.slice(first, end - first))
        return parts.late

    def finish(self) -> list[dict[str, Any]]:
        """The files, for the report: `bucket`, `path`, `rows`, `bytes`."""
        return self._files.finish()


def once_a_record(late: pa.Table) -> pa.Table:
    """Keep the first row of each record; its further rows follow directly."""
    if late.num_rows < 2:
        return late
    places = np.stack([late.column(name).to_numpy() for name in (PARTITION, OFFSET)])
    first = np.concatenate([[True], (np.diff(places) != 0).any(axis=0)])
    return late.filter(pa.array(first))


@dataclass(frozen=True, slots=True)
class WindowTask:
    """Stage C of one task; `read_from` is where files of open windows (`root`) are read.

    `scratch` has the parts of the batch.
    """

    spec: WindowSpec
    kernel: ProbeKernelSpec
    root: TablePath
    late: SharedTable
    read_from: TablePath
    scratch: TablePath

    def fired(
        self, item: Mapping[str, Any], pin: Pin, counts: TaskCounts, origin: FileOrigin
    ) -> Iterator[JoinedBatch]:
        """The rows of a work item's buckets, in order; stages new state and late records.

        An item is `{"parts": [{"bucket", "state": [{"path", "min_due", "max_due", "rewrite"}],
        "partials": [{"path", …}]}], "after", "upto", "steps": [watermark]}`.
        """
        advance = WatermarkAdvance.of(item["after"], item["upto"], item.get("steps", ()))
        with self.late.stage(LATE_RECORDS, origin) as late:
            for part in item["parts"]:
                yield self._bucket(part, advance, pin, counts, origin, late)
            counts.stage(LATE, late.finish())

    def _bucket(
        self,
        part: Mapping[str, Any],
        advance: WatermarkAdvance,
        pin: Pin,
        counts: TaskCounts,
        origin: FileOrigin,
        late: ParquetStage,
    ) -> JoinedBatch:
        files = [self.scratch / each["path"] for each in part["partials"]]
        parts = [pa.Table.from_batches(mapped(file)) for file in files]
        state = _State.of(self, part["state"], reads(self.spec, parts, advance))
        fired = fire(self.spec, state.read.values(), parts, advance)
        kept = fired.state
        if not fired.replaces_state and state.rewritten:
            kept = compact(self.spec, [*state.rewritten, fired.state], advance.after_ms)
        with ParquetStage(self.root, kept.schema, origin) as stage:
            for batch in kept.combine_chunks().to_batches():
                stage.write(batch)
            counts.stage(FILES + str(part["bucket"]), stage.finish())
        records = late_records(once_a_record(fired.late), self.kernel.topics, LATE_FOR_WINDOW)
        late.write(records)
        counts.add(LATE, records.num_rows)
        counts.add("fired", fired.rows.num_rows)
        projected = project(self.spec, fired, pin.batch_timestamp_ms)
        answer = self._answer(projected, int(part["bucket"]), pin)
        counts.add("joined", answer.rows.num_rows)
        counts.add("dead_letters", answer.dead_letters.num_rows)
        return answer

    def _answer(self, projected: Projected, bucket: int, pin: Pin) -> JoinedBatch:
        """The rows as the sink gets them; no single record of the topic produced them."""
        rows = projected.rows
        columns = list(rows.columns)
        if self.kernel.row_metadata:
            columns += pin_columns(pinned_context(pin), rows.num_rows)
        empty = [pa.nulls(rows.num_rows, item.type) for item in COORDINATES]
        return JoinedBatch(
            rows=pa.RecordBatch.from_arrays(columns, schema=self.kernel.output_schema),
            coordinates=pa.RecordBatch.from_arrays(empty, schema=COORDINATES),
            dead_letters=_dead_letters(projected.dead, bucket),
            matched=0,
            unmatched=0,
            kinds=projected.kinds,
            watermarks=projected.watermarks,
        )


@dataclass(frozen=True, slots=True)
class _State:
    """State tables of a bucket, oldest first; `rewritten` ones lose their files."""

    read: Mapping[str, pa.Table]
    rewritten: Sequence[pa.Table]

    @classmethod
    def of(
        cls,
        task: WindowTask,
        files: Sequence[Mapping[str, Any]],
        needed: tuple[int, int] | None,
    ) -> "_State":
        """Read the files that have windows ending within `needed` (both ends included)."""
        low, high = (1, 0) if needed is None else needed
        tables = {}
        for each in files:
            meets = each["min_due"] <= high and each["max_due"] >= low
            if meets or each["rewrite"]:
                schema = state_schema(task.spec)
                tables[each["path"]] = pq.read_table(
                    readable(task.read_from / each["path"]), schema=schema, partitioning=None
                )
        rewritten = [tables[each["path"]] for each in files if each["rewrite"]]
        return cls(tables, rewritten)


def _dead_letters(dead: pa.RecordBatch, bucket: int) -> pa.RecordBatch:
    """Window rows that could not be computed, as letters.

    The topic is `WINDOW`, the partition negative, one for each bucket; the offset counts.
    """
    count = dead.num_rows
    columns = {
        "topic": pa.repeat(pa.scalar(WINDOW), count),
        "partition": pa.repeat(pa.scalar(-1 - bucket, pa.int32()), count),
        "offset": pa.array(np.arange(count)),
        "reason": dead.column("reason"),
        "value": dead.column("value"),
    }
    columns |= {
        item.name: pa.nulls(count, item.type) for item in DEAD_LETTERS if item.name not in columns
    }
    cast = [columns[item.name].cast(item.type) for item in DEAD_LETTERS]
    return pa.RecordBatch.from_arrays(cast, schema=DEAD_LETTERS)
