"""Limits on what an expression may make of a record, looked at before memory is taken for it.

A value may have 16 MiB, a column of a batch 1 GiB: Arrow's offsets end at 2 GiB. A row beyond that
fails. Values that are only passed on have no limit here.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, null_where
from joins.kernels.expressions.nested import parts_of
from joins.kernels.expressions.operation import Function, Operation, Value, broadcast

MAX_VALUE_BYTES = 1 << 24
MAX_COLUMN_BYTES = 1 << 30
_FIXED_BYTES = 8
Sizes: TypeAlias = npt.NDArray[np.int64]


def bounded(make: Function, sizes: Callable[[Operation], Sizes]) -> Function:
    """`make`; `sizes` says beforehand how many bytes each row's value has at the most."""

    def apply(op: Operation) -> Value | Checked:
        if sizes is bytes_of_all and _whole_bytes(op) <= min(MAX_VALUE_BYTES, MAX_COLUMN_BYTES):
            return make(op)
        expected = sizes(op)
        too_large = expected > MAX_VALUE_BYTES
        too_large |= np.cumsum(np.where(too_large, 0, expected)) > MAX_COLUMN_BYTES
        if not too_large.any():
            return make(op)
        kept = [
            null_where(item, too_large) if isinstance(item, pa.Array) else item
            for item in op.arguments
        ]
        made = make(replace(op, arguments=tuple(kept)))
        if isinstance(made, Checked):
            return Checked(null_where(made.values, too_large), made.failed | too_large)
        return Checked(null_where(made, too_large), too_large)

    return apply


def grown(make: Function, factor: int = 1) -> Function:
    """`make`, whose results have at most `factor` times the bytes of all arguments together."""
    return bounded(make, bytes_of_all if factor == 1 else lambda op: bytes_of_all(op) * factor)


def _whole_bytes(op: Operation) -> int:
    """Of all arguments in all rows."""
    scalars = [item for item in op.arguments if isinstance(item, pa.Scalar)]
    columns = [item for item in op.arguments if not isinstance(item, pa.Scalar)]
    fixed = sum(int(bytes_of(item)[0]) for item in scalars)
    return int(sum(item.nbytes for item in columns)) + fixed * op.num_rows


def bytes_of_all(op: Operation) -> Sizes:
    return sum((bytes_of(item) for item in op.arguments), np.zeros(op.num_rows, dtype=np.int64))


def bytes_of(value: Value) -> Sizes:
    """The bytes of each value of a column, about; 0 for NULL, of a scalar one number for all."""
    if isinstance(value, pa.Scalar):
        return bytes_of(broadcast(value, 1))
    if pa.types.is_nested(value.type):
        return _nested_bytes(value)
    if pa.types.is_string(value.type) or pa.types.is_binary(value.type):
        return np.asarray(pc.fill_null(pc.binary_length(value), 0), dtype=np.int64)
    return np.full(len(value), _FIXED_BYTES, dtype=np.int64)


def _nested_bytes(column: pa.Array) -> Sizes:
    parts = parts_of(column)
    inner = sum((bytes_of(child) for child in parts.children), np.zeros(1, dtype=np.int64))
    if parts.owners is None:
        return np.broadcast_to(inner, len(column))
    summed = np.bincount(parts.owners, weights=inner, minlength=len(column))
    return summed.astype(np.int64) + _FIXED_BYTES
