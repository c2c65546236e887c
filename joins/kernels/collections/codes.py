"""Values of any type as numbers: equal values of a column have one number, NULL has -1.

Two rows, arrays or maps are equal if their parts are; NULL parts are equal to each other.
"""

from collections.abc import Hashable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.nested import Parts, Rows, parts_of
from joins.plan.types import SqlType, TypeName


def codes_of(column: pa.Array, kind: SqlType) -> Rows:
    """A number a value."""
    if not kind.is_nested:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 equals 0.0
        coded = column.dictionary_encode().indices
        return np.asarray(pc.fill_null(coded, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    parts = parts_of(column, entries=kind.name is TypeName.MAP)
    inner = [
        codes_of(child, member.type)
        for child, member in zip(parts.children, kind.members, strict=True)
    ]
    codes = _numbered(_keys(parts, inner, kind, len(column)))
    codes[mask_of(column.is_null())] = -1
    return codes


def _keys(parts: Parts, inner: list[Rows], kind: SqlType, count: int) -> Iterable[Hashable]:
    if parts.lengths is None:
        return zip(*(codes.tolist() for codes in inner), strict=True) if inner else [()] * count
    starts, lengths = parts.starts.tolist(), parts.lengths.tolist()
    spans = [slice(first, first + length) for first, length in zip(starts, lengths, strict=True)]
    if kind.name is TypeName.ARRAY:
        elements = inner[0].tolist()
        return [tuple(elements[span]) for span in spans]
    keys, values = (codes.tolist() for codes in inner)
    return [frozenset(zip(keys[span], values[span], strict=True)) for span in spans]


def _numbered(keys: Iterable[Hashable]) -> Rows:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def same_codes(left: pa.Array, right: pa.Array, kind: SqlType) -> tuple[Rows, Rows]:
    codes = codes_of(pa.concat_arrays([left, right]), kind)
    return codes[: len(left)], codes[len(left) :]
