"""Readers of dates and times: numbers in some unit, texts of ISO 8601, objects of their parts.

A value fails if its fraction is finer than the declared type, if it is outside of years 1 to 9999
or, for a TIME, beyond the 838 hours of MySQL.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.debezium import tokens
from joins.kernels.debezium.options import SpecialValues
from joins.kernels.debezium.raw import RawValues, members_of
from joins.kernels.debezium.readers import Reader, column_of, int64s
from joins.kernels.expressions.casts import Checked
from joins.plan.types import SqlType, TypeName, arrow_type

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Compiled = Callable[[Rows, Rows, Rows, Mask], None]

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DAY_LIMITS = 1 - _EPOCH, datetime.date(9999, 12, 31).toordinal() - _EPOCH
_DAY_MICROS = 86_400_000_000
_INSTANT_LIMITS = _DAY_LIMITS[0] * _DAY_MICROS, (_DAY_LIMITS[1] + 1) * _DAY_MICROS - 1
_CLOCK_LIMIT = ((838 * 60 + 59) * 60 + 60) * 1_000_000 - 1
_SECOND_MICROS = 1_000_000
_PARTS = ("year", "month", "day", "hour", "minute", "second", "nanos", "picoseconds")
_DURATIONS = ("years", "months", "days", "hours", "minutes", "seconds", "nanos", "picoseconds")
_INFINITE: dict[TypeName, tuple[Sequence[bytes], Sequence[bytes]]] = {
    TypeName.DATE: (
        (b"-622191234", b"-2147472692", b'"+292278994-08-16Z"', b'"-5877611-06-21Z"'),
        (b"-625821272", b"-2147472691", b'"+292269055-12-02Z"', b'"-5877611-06-22Z"'),
    ),
    TypeName.TIMESTAMP: (
        (b"9223372036825200000", b"9223372036825200", b'"+294247-01-10T04:00:25.2Z"'),
        (b"-9223372036832400000", b"-9223372036832400", b'"-290308-12-21T19:59:27.6Z"'),
    ),
    TypeName.TIMESTAMP_LTZ: ((b'"infinity"',), (b'"-infinity"',)),
    TypeName.DECIMAL: (
        (b'"Infinity"', b'"POSITIVE_INFINITY"'),
        (b'"-Infinity"', b'"NEGATIVE_INFINITY"'),
    ),
}
"""By type the forms of infinity, and those of -infinity."""
_NO_NUMBER = (b'"NaN"', b'"NAN"')


class TimeUnit(Enum):
    """Unit of a number that is a time."""

    MILLIS = "ms"
    MICROS = "us"
    NANOS = "ns"


@dataclass(frozen=True, slots=True)
class _Limits:
    least: int
    greatest: int
    step: int

    @classmethod
    def of(cls, kind: SqlType) -> "_Limits":
        if kind.name is TypeName.DATE:
            return cls(*_DAY_LIMITS, 1)
        step = 10 ** (6 - min(kind.precision, 6))
        if kind.name is TypeName.TIME:
            return cls(-_CLOCK_LIMIT, _CLOCK_LIMIT, step)
        return cls(*_INSTANT_LIMITS, step)

    def good(self, numbers: Rows) -> Mask:
        inside = (numbers >= self.least) & (numbers <= self.greatest)
        return inside if self.step == 1 else inside & (numbers % self.step == 0)


def last_and_first(kind: SqlType) -> tuple[int, int]:
    """Greatest and least value of a DATE, in days, or of a timestamp, in microseconds."""
    limits = _Limits.of(kind)
    return limits.greatest // limits.step * limits.step, limits.least


def _typed(numbers: Rows, fits: Mask, valid: Mask, kind: SqlType) -> Checked:
    good = fits & _Limits.of(kind).good(numbers)
    width = np.int32 if kind.name is TypeName.DATE else np.int64
    with np.errstate(over="ignore"):
        column = column_of(numbers.astype(width), good, arrow_type(kind))
    return Checked(column, valid & ~good)


def counted(kind: SqlType, unit: TimeUnit) -> Reader:
    """Numbers of a unit; a DATE counts days."""
    limits = _Limits.of(kind)

    def read(values: RawValues) -> Checked:
        numbers, fits = int64s(values)
        if kind.name is not TypeName.DATE and unit is TimeUnit.MILLIS:
            fits &= (numbers >= limits.least // 1000) & (numbers <= limits.greatest // 1000)
            numbers = np.where(fits, numbers, 0) * 1000
        if kind.name is not TypeName.DATE and unit is TimeUnit.NANOS:
            fits &= numbers % 1000 == 0
            numbers = numbers // 1000
        return _typed(numbers, fits, values.lasts >= 0, kind)

    return read


def written(kind: SqlType) -> Reader:
    """Texts of ISO 8601: a timestamp with an offset, a date or a time with none or `Z`."""
    read_texts: Compiled = {
        TypeName.DATE: tokens.dates_of,
        TypeName.TIME: tokens.clocks_of,
    }.get(kind.name, tokens.instants_of)

    def read(values: RawValues) -> Checked:
        numbers, fits = np.empty(len(values), np.int64), np.empty(len(values), np.bool_)
        read_texts(values.firsts, values.lasts, numbers, fits)
        return _typed(numbers, fits, values.lasts >= 0, kind)

    return read


def structured(kind: SqlType) -> Reader:
    """Objects with the parts of a date, a time or a timestamp; a date of zeros is NULL."""
    if kind.name is TypeName.TIME:
        return _by_parts(kind, (*_PARTS, *_DURATIONS[:6], "offsetSeconds"), _clock_of)
    made = _day_of if kind.name is TypeName.DATE else _instant_of
    return _by_parts(kind, (*_PARTS, "offsetSeconds"), made)


def _by_parts(
    kind: SqlType, names: tuple[str, ...], made: Callable[[Mapping[str, int]], int | None]
) -> Reader:
    """Objects of integers; `made` gives the number, None for NULL, or raises ValueError."""

    def read(values: RawValues) -> Checked:
        members = members_of(values, (*names, "specialValue"))
        columns = [int64s(members[name]) for name in names]
        numbers, fits = np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
        valid = values.lasts >= 0
        for row in np.flatnonzero(valid & (members["specialValue"].lasts < 0)).tolist():
            present = zip(names, columns, strict=True)
            parts = {
                name: int(column[row]) for name, (column, is_there) in present if is_there[row]
            }
            if not parts or any(members[n].lasts[row] >= 0 and n not in parts for n in names):
                continue
            try:
                number = made(parts)
                numbers[row] = number or 0
            except (ValueError, OverflowError):
                continue
            valid[row] = fits[row] = number is not None
        return _typed(numbers, fits, valid, kind)

    return read


def _day_of(parts: Mapping[str, int]) -> int | None:
    """Days since 1970, None for zeros."""
    year, month, day = (parts.get(name, 0) for name in ("year", "month", "day"))
    if not (year or month or day):
        return None
    return datetime.date(year, month, day).toordinal() - _EPOCH


def _instant_of(parts: Mapping[str, int]) -> int | None:
    day = _day_of(parts)
    if day is None:
        return None
    return day * _DAY_MICROS + _clock_of(parts)


def _clock_of(parts: Mapping[str, int]) -> int:
    """Microseconds of a time of day, or of a duration without months and years."""
    if parts.get("years") or parts.get("months"):
        raise ValueError("months have no length")
    hours = parts.get("days", 0) * 24 + parts.get("hours", 0) + parts.get("hour", 0)
    minutes = parts.get("minutes", 0) + parts.get("minute", 0)
    seconds = (hours * 60 + minutes) * 60 + parts.get("seconds", 0) + parts.get("second", 0)
    picos = parts.get("nanos", 0) * 1000 + parts.get("picoseconds", 0)
    if picos % _SECOND_MICROS:
        raise ValueError("finer than a microsecond")
    east = parts.get("offsetSeconds", 0)
    return (seconds - east) * _SECOND_MICROS + picos // _SECOND_MICROS


def without_specials(
    values: RawValues, kind: SqlType, read: Checked, handling: SpecialValues
) -> Checked:
    """`read` without the special values that `handling` accepts.

    NaN, and infinite decimals, are NULL unless they fail. Special values are infinite days and
    instants and NaN of PostgreSQL in the forms that connectors write (recorded in tests/golden): a
    snapshot and the log have different ones. As nanoseconds (`time.precision.mode=nanoseconds`) an
    infinite instant is written as one of 1970, which looks like a real one.
    """
    if handling is SpecialValues.FAIL or kind.name not in _INFINITE or not read.failed.any():
        return read
    positive, negative = (_any(values, forms) & read.failed for forms in _INFINITE[kind.name])
    special = positive | negative
    if kind.name is TypeName.DECIMAL:
        special |= _any(values, _NO_NUMBER) & read.failed
    column = read.values
    if handling is SpecialValues.LAST_DAY and kind.name is not TypeName.DECIMAL:
        for which, limit in zip((positive, negative), last_and_first(kind), strict=True):
            storage = pa.int32() if kind.name is TypeName.DATE else pa.int64()
            scalar = pa.array([limit]).cast(storage).cast(arrow_type(kind))[0]
            column = pc.if_else(pa.array(which), scalar, column)
    return Checked(column, read.failed & ~special)


def _any(values: RawValues, forms: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.logical_or.reduce([values.are(form) for form in forms]), np.bool_)
