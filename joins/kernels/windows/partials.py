"""Rows into parts of windows: a row for each key and window, whatever the batch has of it.

A row that comes before its window has fired counts in its window's part. One that comes later, but
within the lateness, is a part of its own (`_late`), for it fires. One that no window takes is late.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.arrivals import TIME, TIMESTAMP, VALUE, WATERMARK
from joins.kernels.casts import Mask
from joins.kernels.hashing import hash_rows
from joins.kernels.windows.accumulators import aggregations
from joins.kernels.windows.grouping import Groups, Rows, plain_floats
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import (
    LATE,
    column,
    keeps,
    key_names,
    numbers,
    partial_schema,
)


@dataclass(frozen=True, slots=True)
class Partials:
    """What a part of a batch brings.

    Attributes:
        table: `partial_schema`, ordered by bucket.
        late: rows that no window took, `LATE`, in order of arrival.
    """

    table: pa.Table
    late: pa.Table


def partials(spec: WindowSpec, rows: pa.RecordBatch) -> Partials:
    """The parts of windows in `rows`, which are in order of arrival.

    Args:
        spec: the windows.
        rows: the columns of `window_input_columns` and of `LATE`. Where windows follow the clock,
            it is their `_time`, and `_wm` the millisecond before.
    """
    keys = [plain_floats(column(rows, name)) for name in key_names(spec)]
    batch = _Batch(spec, rows, keys, numbers(rows, TIME), numbers(rows, WATERMARK))
    return batch.sessions() if spec.merges else batch.windows()


@dataclass(frozen=True, slots=True)
class _Batch:
    spec: WindowSpec
    rows: pa.RecordBatch
    keys: list[pa.Array]
    times: Rows
    watermarks: Rows

    def windows(self) -> Partials:
        """TUMBLE and HOP: a row's windows go from its latest one back by the slide."""
        spec = self.spec
        latest = self.times - (self.times - spec.offset_ms) % spec.slide_ms
        reach = spec.size_ms - (self.times - latest)
        windows = np.maximum(0, -(-reach // spec.slide_ms))
        last = latest + spec.size_ms - 1
        on_time = _counted(last, self.watermarks, spec.slide_ms, windows)
        taken = _counted(keeps(last, spec.lateness_ms), self.watermarks, spec.slide_ms, windows)
        parts = [self._on_time(latest, on_time)]
        if (taken > on_time).any():
            parts.append(self._singly(latest, on_time, taken))
        table = pa.concat_tables(parts).combine_chunks()
        return Partials(_by_bucket(table), self._late(taken == 0))

    def _on_time(self, latest: Rows, counts: Rows) -> pa.Table:
        """Rows of the same key and the same windows add up before they are spread over windows."""
        living = np.flatnonzero(counts > 0)
        part = self if len(living) == len(counts) else self._picked(living)
        latest, counts = latest[living], counts[living]
        steps = [latest // self.spec.slide_ms]
        if self.spec.size_ms != self.spec.slide_ms:
            steps.append(counts)
        groups = Groups.of([*steps, *part.keys], len(living))
        firsts = groups.firsts()
        sums = [item.of_rows(part.rows, groups) for item in aggregations(self.spec.aggregates)]
        accumulators = [value for values in sums for value in values]
        spread, back = _spread(counts[firsts])
        starts = latest[firsts][spread] - back * self.spec.slide_ms
        return part._table(firsts, starts, accumulators, spread, late=False)

    def _singly(self, latest: Rows, on_time: Rows, taken: Rows) -> pa.Table:
        """Rows within the lateness, a part for each of their windows, the latest window first."""
        found = np.flatnonzero(taken > on_time)
        part = self._picked(found)
        each = Groups(np.arange(len(found)), len(found))
        sums = [item.of_rows(part.rows, each) for item in aggregations(self.spec.aggregates)]
        accumulators = [value for values in sums for value in values]
        spread, back = _spread((taken - on_time)[found])
        starts = latest[found][spread] - (back + on_time[found][spread]) * self.spec.slide_ms
        return part._table(np.arange(len(found)), starts, accumulators, spread, late=True)

    def sessions(self) -> Partials:
        raise NotImplementedError

    def _picked(self, at: Rows) -> "_Batch":
        positions = pa.array(at)
        return _Batch(
            self.spec,
            self.rows.take(positions),
            [key.take(positions) for key in self.keys],
            self.times[at],
            self.watermarks[at],
        )

    def _table(
        self,
        firsts: Rows,
        starts: Rows,
        accumulators: list[pa.Array],
        spread: Rows,
        *,
        late: bool,
    ) -> pa.Table:
        """Parts with a row for each of `spread`, which are positions in the others."""
        spec = self.spec
        keys = [key.take(pa.array(firsts)) for key in self.keys]
        buckets = _buckets(keys, len(firsts), spec.buckets)
        ends = starts + spec.size_ms
        origin = firsts[spread]
        same = len(spread) == len(firsts) and len(spread) == len(starts)
        where = None if same and (spread == np.arange(len(spread))).all() else pa.array(spread)
        columns = [
            pa.array(buckets[spread]),
            pa.array(ends - 1),
            pa.array(keeps(ends - 1, spec.lateness_ms)),
            pa.array(starts),
            pa.array(ends),
            pa.repeat(pa.scalar(False), len(spread)),
            *(item if where is None else item.take(where) for item in [*keys, *accumulators]),
            pa.repeat(pa.scalar(late), len(spread)),
            *self._places(origin),
        ]
        return pa.table(columns, schema=partial_schema(spec))

    def _late(self, nowhere: Mask) -> pa.Table:
        """The rows that went nowhere, if they are late: a row between two windows is not."""
        late = nowhere & (keeps(self.times, self.spec.lateness_ms) <= self.watermarks)
        at = np.flatnonzero(late)
        if len(at) == 0:
            return LATE.empty_table()
        return pa.Table.from_batches([self.rows.select(LATE.names).take(pa.array(at)).cast(LATE)])

    def _places(self, at: Rows) -> list[pa.Array]:
        """The columns of `LATE` without the record."""
        where = pa.array(at)
        return [
            pa.nulls(len(at), item.type)
            if item.name in {TIMESTAMP, VALUE}
            else column(self.rows, item.name).take(where)
            for item in LATE
        ]


def _counted(last: Rows, watermarks: Rows, slide_ms: int, windows: Rows) -> Rows:
    """How many of a row's windows have a last instant behind the watermark, the latest first.

    `last` is that of the latest window; each further one is a slide earlier.
    """
    ahead = last > watermarks
    if ahead.all() and bool((windows <= 1).all()):
        return windows
    # The difference may not fit 64 bits at the start of time, where all windows are ahead.
    limit = np.maximum(watermarks, last - windows * slide_ms - 1)
    counted = -((limit - last) // slide_ms)
    return np.where(ahead, np.minimum(windows, counted), 0)


def _spread(counts: Rows) -> tuple[Rows, Rows]:
    """Each position as often as `counts` says, and how often it was there before."""
    spread = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return spread, np.arange(len(spread)) - starts[spread]


def _buckets(keys: list[pa.Array], count: int, buckets: int) -> npt.NDArray[np.int32]:
    if not keys or buckets == 1:
        return np.zeros(count, dtype=np.int32)
    return (hash_rows(keys) % np.uint64(buckets)).astype(np.int32)


def _by_bucket(table: pa.Table) -> pa.Table:
    buckets = numbers(table, "_bucket")
    if len(buckets) == 0 or (np.diff(buckets) >= 0).all():
        return table
    return table.take(pa.array(np.argsort(buckets, kind="stable")))
