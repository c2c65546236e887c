"""Times moved by milliseconds or months, and times made of numbers: exact, a column at a time."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import Checked, Mask, mask_of
from joins.kernels.expressions.operation import Operation
from joins.plan.types import arrow_type

_MOST = 2**63 - 1
_MICROS_PER_MS = 1_000
_MICROS_OF_PRECISION = {0: 1_000_000, 3: 1_000}
_MOST_MONTHS = 120_000
# Years 1 to 9999: beyond them others cannot read the time.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
Integers = npt.NDArray[np.int64]


def shift(op: Operation, sign: int) -> Checked:
    """TIMESTAMP plus `sign` times whole milliseconds."""
    micros, valid = _numbers(op.array(0).cast(pa.int64()), op.array(1))
    delta = sign * _numbers(op.array(1), op.array(0))[0] * _MICROS_PER_MS
    fits = (micros <= _MOST - delta.clip(0)) & (micros >= -_MOST - delta.clip(None, 0))
    moved = np.where(fits, micros, 0) + np.where(fits, delta, 0)
    return _checked(op, moved, valid, valid & ~fits)


def add_months(op: Operation) -> Checked:
    """TIMESTAMP plus months; a day that the month does not have becomes its last one."""
    micros, valid = _numbers(op.array(0).cast(pa.int64()), op.array(1))
    count, _ = _numbers(op.array(1), op.array(0))
    fits = (np.abs(count) <= _MOST_MONTHS) & (micros >= _FIRST) & (micros <= _LAST)
    times = np.where(fits, micros, 0).astype("datetime64[us]")
    days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
    there = months + np.where(fits, count, 0)
    first, after = there.astype("datetime64[D]"), (there + 1).astype("datetime64[D]")
    day = np.minimum(days - months.astype("datetime64[D]"), (after - first) - 1)
    moved = (first + day).astype("datetime64[us]") + (times - days.astype("datetime64[us]"))
    return _checked(op, moved.astype(np.int64), valid, valid & ~fits)


def from_epoch(op: Operation) -> Checked:
    """TO_TIMESTAMP_LTZ: whole seconds (precision 0) or milliseconds (3, the default)."""
    numbers, valid = _numbers(op.array(0))
    precision = 3
    if len(op.arguments) > 1:
        precision_value = op.constant(1)
        assert precision_value is not None, "the planner takes literals only"
        precision = precision_value.as_py()
    unit = _MICROS_OF_PRECISION[precision]
    fits = (numbers >= _FIRST // unit) & (numbers <= _LAST // unit)
    return _checked(op, np.where(fits, numbers, 0) * unit, valid, valid & ~fits)


def _numbers(values: pa.Array, *others: pa.Array) -> tuple[Integers, Mask]:
    """The values with 0 for NULL, and where neither they nor `others` are NULL."""
    valid = mask_of(pc.is_valid(values))
    for other in others:
        valid = valid & mask_of(pc.is_valid(other))
    filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64, copy=False), valid


def _checked(op: Operation, micros: Integers, valid: Mask, failed: Mask) -> Checked:
    values = pa.array(micros, mask=~valid | failed)
    return Checked(cast(values, arrow_type(op.result)), failed)
