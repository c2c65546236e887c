"""Tables of windows: what is kept of windows that are open, and the columns of all other parts.

A state row is a part of a window: `_bucket`, `_due` (the window's last instant, at which it fires),
`_keep` (that plus the lateness, from where on the row is forgotten), the window's bounds, the keys
`key_<n>` and the accumulators `acc_<n>_<m>`. All rows of a window add up, in the order of the rows.
`_fired` is only true of sessions.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import whole
from joins.kernels.probe.arrivals import EVENT_TIME, RECORD
from joins.kernels.windows.accumulators import Aggregation, aggregations
from joins.kernels.windows.grouping import Groups, Rows
from joins.kernels.windows.spec import WindowSpec
from joins.plan.types import arrow_type
from watermark.model import MAX_TIMESTAMP

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

PLACE = pa.schema([(IS_LATE, pa.bool_()), *LATE])
"""Behind a state row, what a part of a batch tells of its first record, or of its only one.

`_value` is only there if the record may still turn out to be late.
"""


def key_names(spec: WindowSpec) -> list[str]:
    return [f"key_{at}" for at in range(len(spec.keys))]


def accumulator_names(parts: Sequence[Aggregation]) -> list[list[str]]:
    return [
        [f"acc_{at}_{number}" for number in range(len(item.types))] for at, item in enumerate(parts)
    ]


def state_schema(spec: WindowSpec) -> pa.Schema:
    """Of state tables."""
    keys = [pa.field(f"key_{at}", arrow_type(key.type)) for at, key in enumerate(spec.keys)]
    parts = aggregations(spec.aggregates)
    values = [
        pa.field(name, kind)
        for names, item in zip(accumulator_names(parts), parts, strict=True)
        for name, kind in zip(names, item.types, strict=True)
    ]
    return pa.schema([*_HEAD, *keys, *values])


def partial_schema(spec: WindowSpec) -> pa.Schema:
    return pa.schema([*state_schema(spec), *PLACE])


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
    """State tables, in order, as one: what is still needed, windows of one size in one row each.

    Sessions have one table a bucket, whose rows are sessions already.
    """
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
