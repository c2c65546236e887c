"""EXTRACT: parts of dates, times and intervals."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from joins.kernels.calendar.ticks import (
    MICROS_OF_DAY,
    Integers,
    Ticks,
    argument_ticks,
    numbers_of,
    whole_numbers,
)
from joins.kernels.expressions.operation import Function, Operation
from joins.plan.types import TypeName

_MONDAY = 3  # days from 1970-01-01, a Thursday, back to a Monday
Part = Callable[[Ticks], Integers]


def part_of(part: Part) -> Function:
    """A part of a DATE, TIME or TIMESTAMP."""

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
_MS = {"HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000, "MILLISECOND": 1}
_ABOVE = {"HOUR": 86_400_000, "MINUTE": 3_600_000, "SECOND": 60_000, "MILLISECOND": 1_000}
OfInterval = Callable[[Integers, Integers], Integers]


def _clock(unit: str) -> OfInterval:
    return lambda size, sign: sign * (size % _ABOVE[unit] // _MS[unit])


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
    **{unit: _clock(unit) for unit in _MS},
}
MONTH_PARTS, MILLISECOND_PARTS = frozenset(_OF_MONTHS), frozenset(_OF_MILLIS)
