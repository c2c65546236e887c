"""Functions of a row's values as columns, where NULL is a value or bytes may be text."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.operation import Function, Operation
from joins.plan.types import arrow_type


def with_nulls(function: Callable[..., object]) -> Function:
    """A Python function of each row's values, which are None where they are NULL."""

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
    """A text as UTF-8."""
    return value.encode() if isinstance(value, str) else value


def as_text(value: str | bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes U+FFFD, as in Java."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
