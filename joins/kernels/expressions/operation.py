"""A call on columns, and the plain ways to answer it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import rowwise
from joins.plan.types import SqlType, arrow_type

Value: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True, slots=True)
class Operation:
    """One call on columns: at least one of `arguments` is an array, or there is one row.

    Attributes:
        types: of the arguments.
        result: of the call.
    """

    arguments: tuple[Value, ...]
    types: tuple[SqlType, ...]
    result: SqlType
    num_rows: int

    def array(self, at: int) -> pa.Array:
        return broadcast(self.arguments[at], self.num_rows)

    def arrays(self) -> list[pa.Array]:
        return [self.array(at) for at in range(len(self.arguments))]

    def part(self, first: int, stop: int) -> "Operation":
        """The rows from `first` to `stop`."""
        if stop - first == self.num_rows:
            return self
        cut = (
            item if isinstance(item, pa.Scalar) else item.slice(first, stop - first)
            for item in self.arguments
        )
        return replace(self, arguments=tuple(cut), num_rows=stop - first)

    def constant(self, at: int) -> pa.Scalar | None:
        """Argument `at` if it is the same in every row and not NULL."""
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
