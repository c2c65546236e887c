"""What a kernel raises for a batch is the failure of the rows that cause it, and of no other."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import Checked, Mask
from joins.plan.errors import ExpressionError

_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Isolated:
    """A computed column; `reasons` has those of the rows for which the kernel has raised."""

    values: pa.Array
    failed: Mask
    reasons: dict[int, str] = field(default_factory=dict)


def isolated(compute: Callable[[int, int], Checked], count: int, to: pa.DataType) -> Isolated:
    """`compute(0, count)`, in halves again and again around the rows for which it raises.

    Raises:
        ExpressionError: the expression is wrong, whatever the rows are.
        MemoryError: there is none left, which no row is to blame for.
    """
    pieces: list[Checked] = []
    reasons: dict[int, str] = {}
    pending = [(0, count)]
    while pending:
        first, stop = pending.pop()
        try:
            pieces.append(compute(first, stop))
        except (ExpressionError, MemoryError):
            raise
        except Exception as error:
            if stop - first > 1:
                middle = (first + stop) // 2
                pending += [(middle, stop), (first, middle)]
                continue
            failed = np.ones(stop - first, dtype=np.bool_)
            pieces.append(Checked(pa.nulls(stop - first, to), failed))
            reasons[first] = f"{type(error).__name__}: {error}".split("\n")[0][:_SHOWN_CHARACTERS]
    if len(pieces) == 1:
        return Isolated(pieces[0].values, pieces[0].failed, reasons)
    values = pa.concat_arrays([piece.values for piece in pieces])
    return Isolated(values, np.concatenate([piece.failed for piece in pieces]), reasons)
