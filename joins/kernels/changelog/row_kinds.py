"""Kinds of rows, as Flink's RowKind: the effect of an output row on the rows before it."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
SIGNS = ("+I", "-U", "+U", "-D")
TYPE = pa.int8()


def all_kinds(kinds: pa.Array | None, num_rows: int) -> pa.Array:
    if kinds is not None:
        return kinds
    return pa.array(np.zeros(num_rows, dtype=np.int8))


def is_any(kinds: pa.Array, chosen_kinds: Collection[int]) -> pa.BooleanArray:
    return pc.is_in(kinds, value_set=pa.array(list(chosen_kinds), TYPE))


def signs(kinds: pa.Array) -> pa.StringArray:
    places: npt.NDArray[np.int64] = kinds.to_numpy().astype(np.int64)
    return pa.array(SIGNS, pa.string()).take(pa.array(places))


def rows_left(changes: pa.Table, key: Sequence[str], kind: str) -> pa.Table:
    """Each key's last row in the order of `changes`, unless it deletes the key.

    The column `kind` has the row kinds, no column is named `place`. `key` has plain types without
    NaN and -0.0; NULL is a value like others.
    """
    places = pa.array(np.arange(changes.num_rows))
    keyed = changes.select(list(key)).append_column("place", places)
    last = keyed.group_by(list(key), use_threads=False).aggregate([("place", "max")])
    rows = changes.take(last.column("place_max").sort())
    return rows.filter(pc.not_equal(rows.column(kind), DELETE))
