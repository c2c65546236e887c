"""ROW_NUMBER() of the rows of a window: rows in the order of their sort keys, numbered."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of
from joins.kernels.windows.spec import Rows


@dataclass(frozen=True, slots=True)
class SortColumn:
    """Values to sort by."""

    values: pa.Array
    descending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True)
class Numbered:
    """`order` sorts rows by code, then by their keys; `numbers` counts those of a code from 1."""

    order: Rows
    numbers: Rows


def numbered(codes: Rows, keys: Sequence[SortColumn], *, newest_first: bool) -> Numbered:
    """Number the rows of each code; equal ones in the order of arrival, or in the reverse one."""
    arrival = np.arange(len(codes))
    ranks = [_ranks(key) for key in reversed(keys)]
    order = np.lexsort([-arrival if newest_first else arrival, *ranks, codes])
    opens = np.ones(len(codes), dtype=np.bool_)
    opens[1:] = np.diff(codes[order]) != 0
    starts = np.flatnonzero(opens)
    numbers = arrival + 1 - np.repeat(starts, np.diff([*starts, len(codes)]))
    return Numbered(order, numbers)


def _ranks(key: SortColumn) -> Rows:
    direction = "descending" if key.descending else "ascending"
    ranks = pc.rank(key.values, sort_keys=direction, tiebreaker="dense")
    numbers = np.asarray(ranks, dtype=np.int64)
    nulls = mask_of(key.values.is_null())
    return np.where(nulls, len(numbers) + 1 if key.nulls_last else -1, numbers)
