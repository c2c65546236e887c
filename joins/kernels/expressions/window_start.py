"""The start of the TUMBLE window that a time is in; where all its windows are of HOP, CUMULATE."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import Checked, Mask, mask_of
from joins.kernels.expressions.operation import Operation
from joins.plan.types import arrow_type

_MICROS_PER_MS = 1_000


def window_start(op: Operation) -> Checked:
    """WINDOW_START(time, size, offset) in milliseconds; a row without a time is in no window."""
    micros, missing = _times(op)
    size, offset = (_micros(op, at) for at in (1, 2))
    starts = micros - np.mod(micros - offset, size)
    return Checked(cast(pa.array(starts, mask=missing), arrow_type(op.result)), missing)


def window_places(op: Operation) -> Checked:
    """WINDOW_PLACES(time, size, step, offset, grows): an array with a time for each window.

    Of HOP it is the windows' starts; where it `grows`, the ends of those of CUMULATE, which begin
    together. The latest comes first, as the reference has them. A row without a time has none.
    """
    micros, missing = _times(op)
    size, step, offset = (_micros(op, at) for at in (1, 2, 3))
    grows = op.constant(4)
    assert grows is not None, "the planner gives literals"
    latest = micros - np.mod(micros - offset, size if grows.as_py() else step)
    counts = np.maximum(0, -(-(size - (micros - latest)) // step))
    counts[missing] = 0
    ends = np.cumsum(counts)
    back = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    places = np.repeat(latest + (size if grows.as_py() else 0), counts) - back * step
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    kind = arrow_type(op.result)
    values = cast(pa.array(places), kind.value_type)
    lists = pa.ListArray.from_arrays(offsets, values, type=kind, mask=pa.array(missing))
    return Checked(lists, missing)


def _times(op: Operation) -> tuple[npt.NDArray[np.int64], Mask]:
    times = op.array(0)
    micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return micros, mask_of(pc.is_null(times))


def _micros(op: Operation, at: int) -> int:
    constant = op.constant(at)
    assert constant is not None, "the planner gives literals"
    return int(constant.as_py()) * _MICROS_PER_MS
