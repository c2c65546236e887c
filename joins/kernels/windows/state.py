"""State tables of open windows, and the columns of all other parts.

A state row is a part of a window: `_bucket`, `_due` (the window's last instant, at which it fires),
`_keep` (that plus the lateness, from which on the row is dropped), the window's bounds, the keys
`key_<n>` and the accumulators `acc_<n>_<m>`. All rows of a window add up, in row order. Only
sessions can have `_fired` true.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import TYPE
from joins.kernels.expressions.casts import whole
from joins.kernels.index.hash_table import hash_rows
from joins.kernels.probe.arrival_files import EVENT_TIME, RECORD
from joins.kernels.windows.accumulators import Aggregation, aggregations
from joins.kernels.windows.spec import WINDOW_COLUMNS, Groups, Rows, WindowSpec
from joins.plan.types import arrow_type
from watermark.model import MAX_TIMESTAMP


@dataclass(frozen=True, slots=True)
class WatermarkAdvance:
    """The operator's watermark before a batch, and its ascending steps."""

    before_ms: int
    watermarks_ms: Rows

    @classmethod
    def of(cls, before_ms: int, after_ms: int, steps: Iterable[int] = ()) -> Self:
        """From one watermark to the other; without `steps` all records see `before_ms`."""
        between = (each for each in steps if before_ms < each < after_ms)
        last = [after_ms] if after_ms > before_ms else []
        return cls(before_ms, np.array([*sorted(set(between)), *last], dtype=np.int64))

    @property
    def after_ms(self) -> int:
        return int(self.watermarks_ms[-1]) if len(self.watermarks_ms) else self.before_ms

    def seen(self, watermarks_ms: Rows) -> Rows:
        return np.searchsorted(self.watermarks_ms, watermarks_ms, side="right")

    def steps_at(self, due: Rows) -> Rows:
        return np.searchsorted(self.watermarks_ms, due)

    def held(self, steps: Rows) -> Rows:
        reached: Rows = np.concatenate([[self.before_ms], self.watermarks_ms])[steps]
        return reached


BUCKET, DUE, KEEP, FIRED = "_bucket", "_due", "_keep", "_fired"
START, END = "window_start", "window_end"
_HEAD = pa.schema(
    [
        (BUCKET, pa.int32()),
        (DUE, pa.int64()),
        (KEEP, pa.int64()),
        (START, pa.int64()),
        (END, pa.int64()),
        (FIRED, pa.bool_()),
    ]
)
IS_LATE = "_late"
LATE = pa.schema([*RECORD, *EVENT_TIME])
"""A row that no window took: its record, its time, and the watermark that it came behind."""

FIRST_RECORD = pa.schema([(IS_LATE, pa.bool_()), *LATE])
"""Columns of a part behind those of the state: its first record, the only one if it is late.

`_value` is only there if the record may still turn out to be too late.
"""


def key_names(spec: WindowSpec) -> list[str]:
    return [f"key_{at}" for at in range(len(spec.keys))]


def accumulator_names(parts: Sequence[Aggregation]) -> list[list[str]]:
    return [
        [f"acc_{at}_{number}" for number in range(len(item.types))] for at, item in enumerate(parts)
    ]


def state_schema(spec: WindowSpec) -> pa.Schema:
    keys = [pa.field(f"key_{at}", arrow_type(key.type)) for at, key in enumerate(spec.keys)]
    parts = aggregations(spec.aggregates)
    values = [
        pa.field(name, kind)
        for names, item in zip(accumulator_names(parts), parts, strict=True)
        for name, kind in zip(names, item.types, strict=True)
    ]
    return pa.schema([*_HEAD, *keys, *values])


def partial_schema(spec: WindowSpec) -> pa.Schema:
    return pa.schema([*state_schema(spec), *FIRST_RECORD])


def joined(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    tables = [table.select(schema.names).cast(schema) for table in tables]
    return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()


def column(table: pa.Table | pa.RecordBatch, name: str) -> pa.Array:
    chunked = table.column(name)
    return whole(chunked) if isinstance(chunked, pa.ChunkedArray) else chunked


def numbers(table: pa.Table | pa.RecordBatch, name: str) -> Rows:
    return np.asarray(column(table, name).to_numpy(zero_copy_only=False), dtype=np.int64)


def merged(spec: WindowSpec, table: pa.Table, groups: Groups) -> pa.Table:
    """One row a group: its first row with the accumulators of all."""
    if groups.are_rows:
        return table
    firsts = table.take(pa.array(groups.firsts()))
    parts = aggregations(spec.aggregates)
    for names, item in zip(accumulator_names(parts), parts, strict=True):
        values = item.merge([column(table, name) for name in names], groups)
        for name, value in zip(names, values, strict=True):
            firsts = firsts.set_column(firsts.schema.get_field_index(name), name, value)
    return firsts


def by_window(spec: WindowSpec, table: pa.Table) -> Groups:
    keys = [column(table, name) for name in key_names(spec)]
    return Groups.of([numbers(table, START), numbers(table, END), *keys], table.num_rows)


def compact(spec: WindowSpec, tables: Iterable[pa.Table], watermark_ms: int) -> pa.Table:
    """State tables, in order, as one: the needed rows, one a window or session."""
    table = living(joined(tables, state_schema(spec)), watermark_ms)
    if spec.merges:
        return table
    return merged(spec, table, by_window(spec, table))


def living(table: pa.Table, watermark_ms: int) -> pa.Table:
    kept = numbers(table, KEEP) > watermark_ms
    return table if kept.all() else table.filter(pa.array(kept))


def keeps(due: Rows, lateness_ms: int) -> Rows:
    lateness_ms = min(lateness_ms, MAX_TIMESTAMP)
    return np.where(due > MAX_TIMESTAMP - lateness_ms, MAX_TIMESTAMP, due + lateness_ms)


OF_WATERMARK = 2**62
"""The rank of what a step of the watermark causes: behind all records before that step."""

_MICROS = 1000


@dataclass(frozen=True, slots=True)
class WindowFiring:
    """Contents of fired windows, and their order.

    `steps` counts the watermark's steps before each row. `ranks` orders rows with equal `steps`: by
    the record that causes them, then `OF_WATERMARK`. `watermarks` are those before.
    """

    contents: pa.Table
    kinds: npt.NDArray[np.int8]
    steps: Rows
    ranks: Rows
    watermarks: Rows


def by_steps(contents: pa.Table, advance: WatermarkAdvance, kind: int) -> WindowFiring:
    steps = advance.steps_at(numbers(contents, DUE))
    return WindowFiring(
        contents,
        np.full(contents.num_rows, kind, dtype=np.int8),
        steps,
        np.full(len(steps), OF_WATERMARK),
        advance.held(steps),
    )


@dataclass(frozen=True, slots=True)
class Ordered:
    """Emissions in order: the relation of the windows.

    `kinds` is int8, the kind of each row; `watermarks` is int64, the operator's watermark before
    it, milliseconds.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    watermarks: pa.Array


def ordered(spec: WindowSpec, emissions: Sequence[WindowFiring]) -> Ordered:
    names = state_schema(spec).names
    contents = pa.concat_tables([item.contents.select(names) for item in emissions])
    contents = contents.combine_chunks()
    kinds = np.concatenate([item.kinds for item in emissions])
    steps = np.concatenate([item.steps for item in emissions])
    ranks = np.concatenate([item.ranks for item in emissions])
    watermarks = np.concatenate([item.watermarks for item in emissions])
    keys = [column(contents, name) for name in key_names(spec)]
    spread = hash_rows(keys) if keys and len(kinds) else np.zeros(len(kinds))
    ends, starts = numbers(contents, END), numbers(contents, START)
    order = np.lexsort([starts, spread, ends, ranks, steps])
    rows = relation(spec, contents.take(pa.array(order)))
    if spec.rows is not None:
        lists = rows.column(spec.rows.name)
        of = pc.list_parent_indices(lists)
        order = order[of.to_numpy()]
        fields = lists.flatten()
        names = [*rows.schema.names, *(field.name for field in fields.type)]
        rows = pa.RecordBatch.from_arrays([*rows.take(of).columns, *fields.flatten()], names=names)
        rows = rows.drop_columns([spec.rows.name])
    return Ordered(rows, pa.array(kinds[order], TYPE), pa.array(watermarks[order]))


def relation(spec: WindowSpec, contents: pa.Table) -> pa.RecordBatch:
    kind = arrow_type(spec.time_type)
    ends = numbers(contents, END)
    bounds = (numbers(contents, START), ends, ends - 1)
    columns = [pa.array(values * _MICROS).cast(kind) for values in bounds]
    columns += [column(contents, name) for name in key_names(spec)]
    parts = aggregations(spec.aggregates)
    for names, item in zip(accumulator_names(parts), parts, strict=True):
        columns.append(item.result([column(contents, name) for name in names]))
    names = [*WINDOW_COLUMNS, *(k.name for k in spec.keys), *(a.name for a in spec.aggregates)]
    return pa.RecordBatch.from_arrays(columns, names=names)
