"""Rows, arrays and maps compared with each other."""

import numpy as np
import pyarrow as pa

from joins.kernels.collections.codes import same_codes
from joins.kernels.expressions.casts import mask_of
from joins.kernels.expressions.operation import Operation


def equal(op: Operation) -> pa.Array:
    """Whether two nested values are equal; NULL if one is NULL."""
    left, right = op.arrays()
    first, second = same_codes(left, right, op.types[0])
    missing = mask_of(left.is_null()) | mask_of(right.is_null())
    return pa.array(first == second, pa.bool_(), mask=missing)


def distinct(op: Operation) -> pa.Array:
    left, right = op.arrays()
    first, second = same_codes(left, right, op.types[0])
    return pa.array(np.asarray(first != second), pa.bool_())
