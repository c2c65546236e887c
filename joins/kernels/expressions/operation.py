"""A call on columns, simple ways to evaluate it, and the size limits of its results.

A value may have 16 MiB, a column of a batch 1 GiB: Arrow's offsets end at 2 GiB. A row beyond that
fails before memory is allocated for it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, null_where
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.nested import parts_of
from joins.plan.types import SqlType, arrow_type

Value: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True, slots=True)
class Operation:
    """One call on columns: at least one of `arguments` is an array, or there is one row."""

    arguments: tuple[Value, ...]
    types: tuple[SqlType, ...]
    result: SqlType
    num_rows: int

    def array(self, at: int) -> pa.Array:
        return broadcast(self.arguments[at], self.num_rows)

    def arrays(self) -> list[pa.Array]:
        return [self.array(at) for at in range(len(self.arguments))]

    def part(self, first: int, stop: int) -> "Operation":
        if stop - first == self.num_rows:
            return self
        cut = (
            item if isinstance(item, pa.Scalar) else item.slice(first, stop - first)
            for item in self.arguments
        )
        return replace(self, arguments=tuple(cut), num_rows=stop - first)

    def constant(self, at: int) -> pa.Scalar | None:
        """Argument `at` if it is equal in every row and not NULL."""
        value = self.arguments[at]
        if isinstance(value, pa.Scalar):
            return value if value.is_valid else None
        return value[0] if self.num_rows == 1 and value[0].is_valid else None


Function: TypeAlias = Callable[[Operation], Value | Checked]


def broadcast(value: Value, num_rows: int) -> pa.Array:
    return pa.repeat(value, num_rows) if isinstance(value, pa.Scalar) else value


def plain(function: Callable[..., Value]) -> Function:
    return lambda op: function(*op.arguments)


def of_rows(function: Callable[..., object]) -> Function:
    return lambda op: rowwise(function, op.arrays(), arrow_type(op.result))


def with_nulls(function: Callable[..., object]) -> Function:
    def apply(op: Operation) -> Checked:
        failed = np.zeros(op.num_rows, dtype=np.bool_)
        results: list[object] = [None] * op.num_rows
        columns = [item.to_pylist() for item in op.arrays()]
        for row, values in enumerate(zip(*columns, strict=True)):
            try:
                results[row] = function(*values)
            except (ArithmeticError, ValueError):
                failed[row] = True
        return Checked(pa.array(results, arrow_type(op.result)), failed)

    return apply


def as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def as_text(value: str | bytes) -> str:
    """Bytes as text; invalid UTF-8 becomes U+FFFD, as in Java."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


MAX_VALUE_BYTES = 1 << 24
MAX_COLUMN_BYTES = 1 << 30
_FIXED_BYTES = 8
Sizes: TypeAlias = npt.NDArray[np.int64]


def bounded(make: Function, sizes: Callable[[Operation], Sizes]) -> Function:
    """`make`, limited by `sizes`: an upper bound of the bytes of each row's value."""

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
    scalars = [item for item in op.arguments if isinstance(item, pa.Scalar)]
    columns = [item for item in op.arguments if not isinstance(item, pa.Scalar)]
    fixed = sum(int(bytes_of(item)[0]) for item in scalars)
    return int(sum(item.nbytes for item in columns)) + fixed * op.num_rows


def bytes_of_all(op: Operation) -> Sizes:
    return sum((bytes_of(item) for item in op.arguments), np.zeros(op.num_rows, dtype=np.int64))


def bytes_of(value: Value) -> Sizes:
    """Approximate bytes of each value of a column; 0 for NULL, one number for a scalar."""
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
