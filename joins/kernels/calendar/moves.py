"""Times moved by intervals, and what lies between two of them: exact, a column at a time."""

import numpy as np
import pyarrow as pa

from joins.kernels.calendar.ticks import (
    FIRST,
    LAST,
    MICROS_OF_DAY,
    MICROS_OF_MS,
    Integers,
    Ticks,
    argument_ticks,
    column_of,
    numbers_of,
    whole_numbers,
)
from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.operation import Operation
from joins.plan.types import TypeName

_MOST = 2**63 - 1
_MOST_MONTHS = 120_000
_FIXED_MS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
DIFFERENCE_UNITS = frozenset((*_FIXED_MS, *_MONTHS))


def shift(op: Operation, sign: int) -> Checked:
    """A time plus `sign` times whole milliseconds; a TIME stays in its day."""
    ticks = argument_ticks(op, 0)
    size, there = numbers_of(op.array(1))
    valid = ticks.valid & there
    if op.result.name is TypeName.TIME:
        moved = (ticks.micros + sign * (size % 86_400_000) * MICROS_OF_MS) % MICROS_OF_DAY
        return column_of(Ticks(moved, ticks.nanos, valid), op.result)
    small = np.abs(size) <= _MOST // (2 * MICROS_OF_MS)
    delta = np.where(small, sign * size, 0) * MICROS_OF_MS
    fits = (ticks.micros <= _MOST - delta.clip(0)) & (ticks.micros >= -_MOST - delta.clip(None, 0))
    fits = fits & small
    moved = np.where(fits, ticks.micros, 0) + np.where(fits, delta, 0)
    return column_of(Ticks(moved, ticks.nanos, valid), op.result, valid & ~fits)


def add_months(op: Operation) -> Checked:
    """A time plus months; a day that the month does not have becomes its last one."""
    ticks = argument_ticks(op, 0)
    count, there = numbers_of(op.array(1))
    valid = ticks.valid & there
    if op.result.name is TypeName.TIME:
        return column_of(Ticks(ticks.micros, ticks.nanos, valid), op.result)
    fits = (np.abs(count) <= _MOST_MONTHS) & (ticks.micros >= FIRST) & (ticks.micros <= LAST)
    micros = np.where(fits, ticks.micros, 0)
    days = months_later(micros // MICROS_OF_DAY, np.where(fits, count, 0))
    moved = days * MICROS_OF_DAY + micros % MICROS_OF_DAY
    return column_of(Ticks(moved, ticks.nanos, valid), op.result, valid & ~fits)


def months_later(days: Integers, count: Integers) -> Integers:
    """Days since 1970 moved by months."""
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    there = months + count
    first, after = there.astype("datetime64[D]"), (there + 1).astype("datetime64[D]")
    day = np.minimum(dates - months.astype("datetime64[D]"), (after - first) - 1)
    return np.asarray((first + day).astype(np.int64))


def difference(op: Operation) -> Checked:
    """TIMESTAMPDIFF: from the first time to the second, in whole units of the third argument."""
    unit = op.constant(2)
    assert unit is not None, "the planner names a unit"
    first, second = argument_ticks(op, 0), argument_ticks(op, 1)
    valid = first.valid & second.valid
    name = unit.as_py()
    if name in _MONTHS:
        whole = _towards_zero(_months_between(second.micros, first.micros), _MONTHS[name])
    else:
        ms = second.micros // MICROS_OF_MS - first.micros // MICROS_OF_MS
        whole = _towards_zero(ms, _FIXED_MS[name])
    failed = valid & (np.abs(whole) > 2**31 - 1)
    return Checked(whole_numbers(whole, valid & ~failed).cast(pa.int32()), failed)


def _towards_zero(numbers: Integers, step: int) -> Integers:
    return np.asarray(np.sign(numbers) * (np.abs(numbers) // step))


def _months_between(to: Integers, start: Integers) -> Integers:
    """As Flink: whole months of the days, less one if the day is the same but not yet the time."""
    to_day, start_day = to // MICROS_OF_DAY, start // MICROS_OF_DAY
    forward = to_day >= start_day
    whole = _whole_months(np.maximum(to_day, start_day), np.minimum(to_day, start_day))
    months = np.where(forward, whole, -whole)
    same_day = months_later(start_day, months) == to_day
    return np.asarray(months - (same_day & (to % MICROS_OF_DAY < start % MICROS_OF_DAY)))


def _whole_months(later: Integers, earlier: Integers) -> Integers:
    of_later = later.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    of_earlier = earlier.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    months = of_later - of_earlier
    return np.asarray(months - (months_later(earlier, months) > later))
