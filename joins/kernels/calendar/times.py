"""Times and units of time: arithmetic with intervals, EXTRACT, FLOOR and CEIL.

    shift, add_months, difference  a time plus milliseconds or months, and TIMESTAMPDIFF
    PARTS                          EXTRACT that Arrow does not have, of times and of INTERVALs
    rounded                        FLOOR and CEIL: units up to DAY by division, others by whole days

As in Flink: weeks begin on Sunday; from the week on FLOOR and CEIL ignore the time in the day; CEIL
to a day of a DATE, and to a decade, century or millennium, is always the next one.
"""

from collections.abc import Callable, Mapping

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
from joins.kernels.expressions.operation import Function, Operation
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
_FIXED_MICROS = {
    **{"NANOSECOND": 1, "MICROSECOND": 1},
    **{unit: ms * MICROS_OF_MS for unit, ms in _FIXED_MS.items() if unit != "WEEK"},
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_YEARS = {"YEAR": 1, "DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1_000}
_MONDAY, _SUNDAY = 3, 4  # days from 1970-01-01, a Thursday, back to these
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
    """A time plus months; a day beyond the end of the month becomes its last day."""
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
    """As Flink: whole months of the days, less one if the day is equal but the time is earlier."""
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


Part = Callable[[Ticks], Integers]


def part_of(part: Part) -> Function:
    def apply(op: Operation) -> pa.Array:
        ticks = argument_ticks(op, 0)
        return whole_numbers(part(ticks), ticks.valid)

    return apply


def interval_part(op: Operation) -> pa.Array:
    """A part of an INTERVAL, which the second argument names."""
    unit = op.constant(1)
    assert unit is not None, "the planner names a unit"
    numbers, valid = numbers_of(op.array(0))
    sign, size = np.sign(numbers), np.abs(numbers)
    of = _OF_MONTHS if op.types[0].name is TypeName.INTERVAL_MONTH else _OF_MILLIS
    return whole_numbers(of[unit.as_py()](size, sign), valid)


def _days(ticks: Ticks) -> Integers:
    return ticks.micros // MICROS_OF_DAY


def _years(ticks: Ticks) -> Integers:
    years = _days(ticks).astype("datetime64[D]").astype("datetime64[Y]")
    return np.asarray(years.astype(np.int64) + 1970)


def _grouped(years: int) -> Part:
    return lambda ticks: -(-_years(ticks) // years)


def _iso_day(ticks: Ticks) -> Integers:
    return (_days(ticks) + _MONDAY) % 7 + 1


def _iso_year(ticks: Ticks) -> Integers:
    thursday = _days(ticks) - _iso_day(ticks) + 4
    years = thursday.astype("datetime64[D]").astype("datetime64[Y]")
    return np.asarray(years.astype(np.int64) + 1970)


def _in_second(ticks: Ticks) -> Integers:
    return ticks.micros % 1_000_000


PARTS: Mapping[str, Function] = {
    "MILLENNIUM": part_of(_grouped(1_000)),
    "CENTURY": part_of(_grouped(100)),
    "DECADE": part_of(lambda ticks: _years(ticks) // 10),
    "ISOYEAR": part_of(_iso_year),
    "ISODOW": part_of(_iso_day),
    "EPOCH": part_of(lambda ticks: ticks.micros // 1_000_000),
    "MILLISECOND": part_of(lambda ticks: _in_second(ticks) // 1_000),
    "MICROSECOND": part_of(_in_second),
    "NANOSECOND": part_of(lambda ticks: _in_second(ticks) * 1_000 + ticks.nanos),
    "INTERVAL_PART": interval_part,
}
OfInterval = Callable[[Integers, Integers], Integers]


def _clock(unit: str, above: str) -> OfInterval:
    return lambda size, sign: sign * (size % _FIXED_MS[above] // _FIXED_MS[unit])


_OF_MONTHS: Mapping[str, OfInterval] = {
    "MILLENNIUM": lambda size, sign: sign * (size // 12_000),
    "CENTURY": lambda size, sign: sign * (size // 1_200),
    "DECADE": lambda size, sign: sign * (size // 120),
    "YEAR": lambda size, sign: sign * (size // 12),
    "QUARTER": lambda size, sign: sign * (size % 12 // 3) + 1,
    "MONTH": lambda size, sign: sign * (size % 12),
}
_OF_MILLIS: Mapping[str, OfInterval] = {
    "DAY": lambda size, sign: sign * (size // 86_400_000),
    "EPOCH": lambda size, sign: sign * (size // 1_000),
    "HOUR": _clock("HOUR", "DAY"),
    "MINUTE": _clock("MINUTE", "HOUR"),
    "SECOND": _clock("SECOND", "MINUTE"),
    "MILLISECOND": _clock("MILLISECOND", "SECOND"),
}
MONTH_PARTS, MILLISECOND_PARTS = frozenset(_OF_MONTHS), frozenset(_OF_MILLIS)


def rounded(*, up: bool) -> Function:
    """CEIL or FLOOR; the second argument names the unit."""

    def apply(op: Operation) -> Checked:
        unit = op.constant(1)
        assert unit is not None, "the planner names a unit"
        ticks, name = argument_ticks(op, 0), unit.as_py()
        if name not in _FIXED_MICROS:
            micros = _whole_days(_days(ticks), name, up) * MICROS_OF_DAY
        elif op.types[0].name is TypeName.DATE:
            micros = ticks.micros + MICROS_OF_DAY * (name == "DAY" and up)
        else:
            micros = _multiple(ticks, _FIXED_MICROS[name], up)
        return column_of(Ticks(micros, np.zeros_like(micros), ticks.valid), op.result)

    return apply


def _multiple(ticks: Ticks, step: int, up: bool) -> Integers:
    if not up:
        return ticks.micros - ticks.micros % step
    above = ticks.micros + (ticks.nanos > 0)
    return np.asarray(-(-above // step) * step)


def _whole_days(days: Integers, unit: str, up: bool) -> Integers:
    if unit == "WEEK":
        past = (days + _SUNDAY) % 7
        return np.asarray(days - past + 7 * (up & (past > 0)))
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    number = months.astype(np.int64)
    begun = days > days_of(number)
    if unit == "MONTH":
        return days_of(number + (up & begun))
    if unit == "QUARTER":
        begun = begun | (number % 12 > 0)
        return days_of(3 * (number // 3 + (up & begun)))
    return _of_years(days, number // 12 + 1970, _YEARS[unit], up)


def _of_years(days: Integers, years: Integers, step: int, up: bool) -> Integers:
    """Decades begin with year 0 of ten, centuries and millennia with year 1."""
    if step == 1:
        first = years + (up & (days > _new_year(years)))
    elif step == 10:
        first = 10 * (years // 10 + up)
    else:
        first = step * (-(-years // step) - 1 + up) + 1
    return _new_year(first)


def _new_year(years: Integers) -> Integers:
    return days_of((years - 1970) * 12)


def days_of(months: Integers) -> Integers:
    first: Callable[[str], Integers] = months.astype("datetime64[M]").astype
    return np.asarray(first("datetime64[D]")).astype(np.int64)
