"""Rows into parts of windows: one row for each key and window of the batch.

A part has all rows that come before their window fires, or one row that comes later (`_late`).
A row behind the lateness of all its windows is too late, and no part of any. Of fixed windows it is
known here which one; of sessions only by `sessions`, after those of the state.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.expressions.casts import Mask, null_where
from joins.kernels.index.hash_table import hash_rows
from joins.kernels.probe.arrival_files import TIME, TIMESTAMP, VALUE, WATERMARK
from joins.kernels.windows.accumulators import aggregations
from joins.kernels.windows.spec import Groups, Rows, WindowSpec, connected, plain_floats
from joins.kernels.windows.state import (
    LATE,
    column,
    keeps,
    key_names,
    numbers,
    partial_schema,
)
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Partials:
    """Parts of windows in a part of a batch, ordered by bucket (`partial_schema`).

    `late` are rows that no window took, `LATE`, in order of arrival.
    """

    table: pa.Table
    late: pa.Table


def partials(spec: WindowSpec, rows: pa.RecordBatch) -> Partials:
    """The parts of windows in `rows`, which are in order of arrival.

    `rows` has the columns of `window_input_columns` and of `LATE`. Where windows follow the clock,
    `_time` is the clock, and `_wm` the millisecond before.
    """
    keys = [plain_floats(column(rows, name)) for name in key_names(spec)]
    batch = _TimedRows(spec, rows, keys, numbers(rows, TIME), numbers(rows, WATERMARK))
    return batch.sessions() if spec.merges else batch.windows()


@dataclass(frozen=True, slots=True)
class _Windows:
    starts: Rows
    ends: Rows
    of: Rows  # the row or group that each window is of


@dataclass(frozen=True, slots=True)
class _TimedRows:
    spec: WindowSpec
    rows: pa.RecordBatch
    keys: list[pa.Array]
    times: Rows
    watermarks: Rows

    def windows(self) -> Partials:
        """Parts of fixed windows, counted for each row from its latest window back by the slide.

        `total` windows have the row's time, the first `unfired` of these have not fired, and the
        next ones up to `taken` are within the lateness. In CUMULATE only their ends differ.
        """
        spec = self.spec
        apart_ms = spec.size_ms if spec.grows else spec.slide_ms
        latest = self.times - (self.times - spec.offset_ms) % apart_ms
        reach = spec.size_ms - (self.times - latest)
        total = np.maximum(0, -(-reach // spec.slide_ms))
        last = latest + spec.size_ms - 1
        taken = unfired = _counted(last, self.watermarks, spec.slide_ms, total)
        parts = [self._on_time(latest, unfired)]
        if spec.lateness_ms:
            keep = keeps(last, spec.lateness_ms)
            taken = _counted(keep, self.watermarks, spec.slide_ms, total)
            if (taken > unfired).any():
                parts.append(self._late(latest, unfired, taken))
        table = pa.concat_tables(parts).combine_chunks()
        return Partials(_by_bucket(table), self._too_late(taken == 0))

    def _on_time(self, latest: Rows, counts: Rows) -> pa.Table:
        """Rows of one key and the same windows add up before they are spread over windows."""
        spec, rows = self.spec, np.flatnonzero(counts > 0)
        part = self if len(rows) == len(counts) else self._picked(rows)
        latest, counts = latest[rows], counts[rows]
        if spec.lists_rows and spec.size_ms != spec.slide_ms:
            return part._window_by_window(latest, counts)
        steps = [latest // spec.slide_ms]
        if spec.size_ms != spec.slide_ms:
            steps.append(counts)
        groups = Groups.of([*steps, *part.keys], len(rows))
        firsts = groups.firsts()
        skipped = None
        if spec.carries:  # to the first window alone, `counts` - 1 slides before the latest
            skipped = (counts[firsts] - 1) * spec.slide_ms
            counts = np.minimum(counts, 1)
        windows = self._back_from(latest[firsts], counts[firsts], skipped)
        return part._table(groups, windows, late=False)

    def _window_by_window(self, latest: Rows, counts: Rows) -> pa.Table:
        """Rows are spread first: a list has all rows of its window in the order of arrival."""
        windows = self._back_from(latest, counts)
        part = self._picked(windows.of)
        groups = Groups.of([windows.ends, *part.keys], len(windows.of))
        firsts, each = groups.firsts(), np.arange(groups.count)
        windows = _Windows(windows.starts[firsts], windows.ends[firsts], each)
        return part._table(groups, windows, late=False)

    def _late(self, latest: Rows, unfired: Rows, taken: Rows) -> pa.Table:
        """A part for each row and each of its windows that have fired, the latest window first."""
        late = np.flatnonzero(taken > unfired)
        skipped = unfired[late] * self.spec.slide_ms
        windows = self._back_from(latest[late], (taken - unfired)[late], skipped)
        return self._picked(late)._table(Groups.each(len(late)), windows, late=True)

    def _back_from(self, latest: Rows, counts: Rows, skipped: Rows | None = None) -> "_Windows":
        """The `counts` windows of each row, from the one that is `skipped` ms before the latest."""
        of = np.repeat(np.arange(len(counts)), counts)
        back = (np.arange(len(of)) - (np.cumsum(counts) - counts)[of]) * self.spec.slide_ms
        if skipped is not None:
            back += skipped[of]
        starts = latest[of]
        ends = starts + self.spec.size_ms - back
        return _Windows(starts if self.spec.grows else starts - back, ends, of)

    def sessions(self) -> Partials:
        """A part is a connected group of a key's rows with the same watermark.

        If a row of the key comes after its own end, each row is a separate part: their order
        decides.
        """
        keys = Groups.of(self.keys, self.rows.num_rows)
        ends = self.times + self.spec.size_ms
        has_late = np.zeros(keys.count, dtype=np.bool_)
        has_late[keys.codes[ends - 1 <= self.watermarks]] = True
        single = has_late[keys.codes]
        parts = [self._connected(np.flatnonzero(~single), keys.codes)]
        if single.any():
            parts.append(self._row_by_row(np.flatnonzero(single)))
        table = pa.concat_tables(parts).combine_chunks()
        return Partials(_by_bucket(table), LATE.empty_table())

    def _connected(self, at: Rows, codes: Rows) -> pa.Table:
        part = self if len(at) == len(codes) else self._picked(at)
        ends = part.times + self.spec.size_ms
        same_watermark = Groups.of([codes[at], part.watermarks], len(at))
        groups = connected(same_watermark.codes, part.times, ends)
        low, high = np.full(groups.count, MAX_TIMESTAMP), np.full(groups.count, MIN_TIMESTAMP)
        np.minimum.at(low, groups.codes, part.times)
        np.maximum.at(high, groups.codes, ends)
        return part._table(groups, _Windows(low, high, np.arange(groups.count)), late=False)

    def _row_by_row(self, at: Rows) -> pa.Table:
        part = self._picked(at)
        ends = part.times + self.spec.size_ms
        windows = _Windows(part.times, ends, np.arange(len(at)))
        table = part._table(Groups.each(len(at)), windows, late=True)
        unsure = keeps(ends - 1, self.spec.lateness_ms) <= part.watermarks
        for name in (TIMESTAMP, VALUE):
            field = LATE.field(name)
            values = null_where(column(part.rows, name).cast(field.type), ~unsure)
            table = table.set_column(table.schema.get_field_index(name), field, values)
        return table

    def _picked(self, at: Rows) -> "_TimedRows":
        positions = pa.array(at)
        return _TimedRows(
            self.spec,
            self.rows.take(positions),
            [key.take(positions) for key in self.keys],
            self.times[at],
            self.watermarks[at],
        )

    def _table(self, groups: Groups, windows: "_Windows", *, late: bool) -> pa.Table:
        firsts = groups.firsts()
        keys = [key.take(pa.array(firsts)) for key in self.keys]
        added = [each.of_rows(self.rows, groups) for each in aggregations(self.spec.aggregates)]
        columns = [*keys, *(item for values in added for item in values)]
        of, due = windows.of, windows.ends - 1
        if not (len(of) == groups.count and (of == np.arange(len(of))).all()):
            columns = [item.take(pa.array(of)) for item in columns]
        head = [
            pa.array(_buckets(self.spec, keys, len(firsts))[of]),
            pa.array(due),
            pa.array(keeps(due, self.spec.lateness_ms)),
            pa.array(windows.starts),
            pa.array(windows.ends),
            pa.repeat(pa.scalar(False), len(of)),
        ]
        record = [pa.repeat(pa.scalar(late), len(of)), *self._records(firsts[of])]
        return pa.table([*head, *columns, *record], schema=partial_schema(self.spec))

    def _too_late(self, is_untaken: Mask) -> pa.Table:
        """Late rows that no window took; a row in a gap between windows is not late."""
        if not is_untaken.any():
            return LATE.empty_table()
        late = is_untaken & (keeps(self.times, self.spec.lateness_ms) <= self.watermarks)
        at = np.flatnonzero(late)
        return pa.Table.from_batches([self.rows.select(LATE.names).take(pa.array(at)).cast(LATE)])

    def _records(self, at: Rows) -> list[pa.Array]:
        where = pa.array(at)
        return [
            pa.nulls(len(at), item.type)
            if item.name in {TIMESTAMP, VALUE}
            else column(self.rows, item.name).take(where)
            for item in LATE
        ]


def _counted(last: Rows, watermarks: Rows, slide_ms: int, total: Rows) -> Rows:
    """How many of each row's `total` windows have their last instant after the watermark.

    `last` is the last instant of the latest window; each further one is a slide earlier.
    """
    ahead = last > watermarks
    if ahead.all() and bool((total <= 1).all()):
        return total
    # The difference may not fit 64 bits at the start of time, where all windows are ahead.
    limit = np.maximum(watermarks, last - total * slide_ms - 1)
    counted = -((limit - last) // slide_ms)
    return np.where(ahead, np.minimum(total, counted), 0)


def _buckets(spec: WindowSpec, keys: list[pa.Array], count: int) -> npt.NDArray[np.int32]:
    if spec.bucket_keys is not None:
        keys = [keys[at] for at in spec.bucket_keys]
    if not keys or spec.buckets == 1:
        return np.zeros(count, dtype=np.int32)
    return (hash_rows(keys) % np.uint64(spec.buckets)).astype(np.int32)


def _by_bucket(table: pa.Table) -> pa.Table:
    buckets = numbers(table, "_bucket")
    if len(buckets) == 0 or (np.diff(buckets) >= 0).all():
        return table
    return table.take(pa.array(np.argsort(buckets, kind="stable")))
