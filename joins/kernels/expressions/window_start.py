"""The start of the TUMBLE window that a time is in."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import Checked, mask_of
from joins.kernels.expressions.operation import Operation
from joins.plan.types import arrow_type

_MICROS_PER_MS = 1_000


def window_start(op: Operation) -> Checked:
    """WINDOW_START(time, size, offset) in milliseconds; a row without a time is in no window."""
    times = op.array(0)
    missing = mask_of(pc.is_null(times))
    size, offset = (_micros(op, at) for at in (1, 2))
    micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    starts = micros - np.mod(micros - offset, size)
    return Checked(cast(pa.array(starts, mask=missing), arrow_type(op.result)), missing)


def _micros(op: Operation, at: int) -> int:
    constant = op.constant(at)
    assert constant is not None, "the planner gives literals"
    return int(constant.as_py()) * _MICROS_PER_MS
