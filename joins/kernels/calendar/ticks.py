"""Times of every type as whole microseconds in NumPy, and back.

A DATE is its midnight, a TIME counts from midnight, an INTERVAL counts milliseconds or months.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked, Mask, cast, mask_of
from joins.kernels.expressions.operation import Operation
from joins.plan.types import SqlType, TypeName, arrow_type

Times = npt.NDArray[np.int64]

_MICROS = 1_000
_MOST_MS = (2**63 - 1) // _MICROS - 1


def micros(times_ms: Times) -> Times:
    """The last microsecond of each millisecond, as rowtime columns have them."""
    clipped = np.clip(times_ms, -_MOST_MS, _MOST_MS)
    last: Times = clipped * _MICROS + (_MICROS - 1)
    return last


def rowtimes(column: pa.Array) -> Times:
    """Microseconds of a rowtime column without NULL."""
    return np.asarray(column.view(pa.int64()).to_numpy(), dtype=np.int64)


def millis(column: pa.Array) -> Times:
    """Milliseconds of a rowtime column of any unit, NULL as 0; the fraction is cut off."""
    filled = pc.fill_null(column.cast(pa.timestamp(column.type.unit)).cast(pa.int64()), 0)
    ticks = np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
    of_unit = {"s": 1, "ms": 1, "us": _MICROS, "ns": _MICROS * 1_000}[column.type.unit]
    times: Times = ticks * 1_000 if column.type.unit == "s" else ticks // of_unit
    return times


Integers = npt.NDArray[np.int64]
MICROS_OF_DAY = 86_400_000_000
MICROS_OF_MS = 1_000
# Years 1 to 9999: other systems cannot read times beyond them.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class Ticks:
    """Times of a column, 0 where `valid` is false; `nanos` is 0 to 999, below the microsecond."""

    micros: Integers
    nanos: Integers
    valid: Mask


def numbers_of(values: pa.Array) -> tuple[Integers, Mask]:
    filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64, copy=False), mask_of(values.is_valid())


def ticks_of(values: pa.Array, kind: SqlType) -> Ticks:
    """The times of a column of type `kind`, in UTC or within a day."""
    to = pa.int32() if kind.name is TypeName.DATE else pa.int64()
    numbers, valid = numbers_of(cast(values, to))
    nothing = np.zeros(len(numbers), dtype=np.int64)
    if kind.name is TypeName.DATE:
        return Ticks(numbers * MICROS_OF_DAY, nothing, valid)
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        return Ticks(numbers // 1_000, numbers % 1_000, valid)
    return Ticks(numbers, nothing, valid)


def argument_ticks(op: Operation, at: int) -> Ticks:
    return ticks_of(op.array(at), op.types[at])


def column_of(ticks: Ticks, kind: SqlType, failed: Mask | None = None) -> Checked:
    """A column of type `kind`; `failed` rows are NULL, and so are times that do not fit it."""
    failed = np.zeros(len(ticks.valid), dtype=np.bool_) if failed is None else failed
    numbers, to = ticks.micros, arrow_type(kind)
    if kind.name is TypeName.DATE:
        days = numbers // MICROS_OF_DAY
        failed = failed | (ticks.valid & (np.abs(days) > 2**31 - 1))
        return _made(days, ticks.valid, failed, pa.int32(), to)
    if pa.types.is_timestamp(to) and to.unit == "ns":
        fits = np.abs(numbers) < (2**63 - 1) // 1_000
        failed = failed | (ticks.valid & ~fits)
        numbers = np.where(fits, numbers, 0) * 1_000 + ticks.nanos
    return _made(numbers, ticks.valid, failed, pa.int64(), to)


def _made(
    numbers: Integers, valid: Mask, failed: Mask, plain: pa.DataType, to: pa.DataType
) -> Checked:
    kept = valid & ~failed
    whole = pa.array(np.where(kept, numbers, 0), pa.int64(), mask=~kept)
    return Checked(cast(cast(whole, plain), to), failed & valid)


def whole_numbers(numbers: Integers, valid: Mask) -> pa.Array:
    return pa.array(numbers, pa.int64(), mask=~valid)
