"""What windows emit, put in order, and as rows of the relation of the windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.changelog.row_kinds import TYPE
from joins.kernels.index.hashing import hash_rows
from joins.kernels.windows.accumulators import aggregations
from joins.kernels.windows.advance import WatermarkAdvance
from joins.kernels.windows.grouping import Rows
from joins.kernels.windows.spec import WINDOW_COLUMNS, WindowSpec
from joins.kernels.windows.state import (
    DUE,
    END,
    START,
    accumulator_names,
    column,
    key_names,
    numbers,
    state_schema,
)
from joins.plan.types import arrow_type

LAST = 2**62
"""The place of what the next step of the watermark causes: behind all records before it."""

_MICROS = 1000


@dataclass(frozen=True, slots=True)
class WindowFiring:
    """Contents of windows that are emitted, with what orders them.

    Attributes:
        contents: state rows.
        kinds: the kind of each.
        steps: how many steps of the watermark came before.
        places: order among those with as many steps; what the next step causes is `LAST`.
        watermarks: that came before.
    """

    contents: pa.Table
    kinds: npt.NDArray[np.int8]
    steps: Rows
    places: Rows
    watermarks: Rows


def by_steps(contents: pa.Table, advance: WatermarkAdvance, kind: int) -> WindowFiring:
    steps = advance.steps_at(numbers(contents, DUE))
    return WindowFiring(
        contents,
        np.full(contents.num_rows, kind, dtype=np.int8),
        steps,
        np.full(len(steps), LAST),
        advance.held(steps),
    )


@dataclass(frozen=True, slots=True)
class Ordered:
    """Emissions in their order.

    Attributes:
        rows: the relation of the windows: its columns, the keys and the aggregates, by name.
        kinds: int8, the kind of each row.
        watermarks: int64, the operator's watermark that came before each row, milliseconds.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    watermarks: pa.Array


def ordered(spec: WindowSpec, emissions: Sequence[WindowFiring]) -> Ordered:
    """What a sink gets, in the order in which the operator emits it."""
    names = state_schema(spec).names
    contents = pa.concat_tables([item.contents.select(names) for item in emissions])
    contents = contents.combine_chunks()
    kinds = np.concatenate([item.kinds for item in emissions])
    steps = np.concatenate([item.steps for item in emissions])
    places = np.concatenate([item.places for item in emissions])
    watermarks = np.concatenate([item.watermarks for item in emissions])
    keys = [column(contents, name) for name in key_names(spec)]
    spread = hash_rows(keys) if keys and len(kinds) else np.zeros(len(kinds))
    ends, starts = numbers(contents, END), numbers(contents, START)
    order = np.lexsort([starts, spread, ends, places, steps])
    rows = relation(spec, contents.take(pa.array(order)))
    return Ordered(rows, pa.array(kinds[order], TYPE), pa.array(watermarks[order]))


def relation(spec: WindowSpec, contents: pa.Table) -> pa.RecordBatch:
    """Contents of windows as rows of the relation of the windows."""
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
