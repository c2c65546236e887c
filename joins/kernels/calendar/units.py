"""FLOOR and CEIL of a time to a unit.

As in Flink: weeks begin on Sunday; from the week on only the day counts, not the time in it; CEIL
to a day of a DATE, and to a decade, century or millennium of any time, is always the next one.
"""

from collections.abc import Callable

import numpy as np

from joins.kernels.calendar.ticks import MICROS_OF_DAY, Integers, Ticks, argument_ticks, column_of
from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.operation import Function, Operation
from joins.plan.types import TypeName

FIXED = {
    "NANOSECOND": 1,
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": MICROS_OF_DAY,
}
_YEARS = {"YEAR": 1, "DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1_000}
_SUNDAY = 4  # 1970-01-01 is a Thursday


def rounded(*, up: bool) -> Function:
    """CEIL or FLOOR; the second argument names the unit."""

    def apply(op: Operation) -> Checked:
        unit = op.constant(1)
        assert unit is not None, "the planner names a unit"
        ticks, name = argument_ticks(op, 0), unit.as_py()
        if name in FIXED:
            is_date = op.types[0].name is TypeName.DATE
            micros = _whole_days(ticks, name, up) if is_date else _fixed(ticks, FIXED[name], up)
        else:
            day = ticks.micros // MICROS_OF_DAY
            micros = _of_day(day, name, up) * MICROS_OF_DAY
        return column_of(Ticks(micros, np.zeros_like(micros), ticks.valid), op.result)

    return apply


def _fixed(ticks: Ticks, step: int, up: bool) -> Integers:
    if not up:
        return ticks.micros - ticks.micros % step
    above = ticks.micros + (ticks.nanos > 0)
    return np.asarray(-(-above // step) * step)


def _whole_days(ticks: Ticks, unit: str, up: bool) -> Integers:
    return ticks.micros + MICROS_OF_DAY * (unit == "DAY" and up)


def _of_day(days: Integers, unit: str, up: bool) -> Integers:
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
