"""Times as texts of a Java pattern."""

import datetime as dt
from collections.abc import Callable, Mapping

from joins.kernels.calendar.java_patterns import Dialect, Letter, items_of

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def moment_of(micros: int) -> dt.datetime:
    """Microseconds since 1970 as a time of the calendar.

    Raises:
        OverflowError: its year is not 1 to 9999.
    """
    return _EPOCH + dt.timedelta(microseconds=micros)


def shown(micros: int, nanos: int, pattern: str, dialect: Dialect, offset: int = 0) -> str:
    """A local time by a pattern; `offset` is that of its zone, in minutes.

    Raises:
        PatternError: it is no pattern.
        OverflowError: the year of the time is not 1 to 9999.
    """
    time = moment_of(micros)
    return "".join(
        item if isinstance(item, str) else _written(item, time, nanos, (dialect, offset))
        for item in items_of(pattern, dialect)
    )


def _written(field: Letter, time: dt.datetime, nanos: int, way: tuple[Dialect, int]) -> str:
    dialect, offset = way
    letter, count = field.letter, field.count
    if letter in "XZ":
        return _offset_text(field, offset)
    if letter in "Sn":
        return _fraction(field, f"{time.microsecond:06}{nanos:03}", dialect)
    if letter == "u" and dialect is Dialect.SIMPLE:
        return str(time.isoweekday()).zfill(count)
    named = _named(field, time)
    return str(_NUMBERS[letter](time)).zfill(count) if named is None else named


def _fraction(field: Letter, nanos: str, dialect: Dialect) -> str:
    if field.letter == "n":
        return str(int(nanos)).zfill(field.count)
    if dialect is Dialect.SIMPLE:
        return str(int(nanos[:3])).zfill(field.count)
    return nanos[: field.count]


def _named(field: Letter, time: dt.datetime) -> str | None:
    """What is not written as the whole number."""
    letter, count = field.letter, field.count
    if letter in "yu" and count == 2:
        return f"{time.year % 100:02}"
    if letter in "ML" and count > 2:
        return MONTHS[time.month - 1][: 3 if count == 3 else None]
    if letter == "E":
        return DAYS[time.weekday()][: 3 if count < 4 else None]
    if letter == "a":
        return "AM" if time.hour < 12 else "PM"
    return None


def _offset_text(field: Letter, minutes: int) -> str:
    if field.letter == "X" and minutes == 0:
        return "Z"
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    if field.letter == "X" and field.count == 1:
        return f"{sign}{hours:02}"
    between = ":" if field.letter == "X" and field.count == 3 else ""
    return f"{sign}{hours:02}{between}{rest:02}"


_NUMBERS: Mapping[str, Callable[[dt.datetime], int]] = {
    "y": lambda time: time.year,
    "u": lambda time: time.year,
    "M": lambda time: time.month,
    "L": lambda time: time.month,
    "d": lambda time: time.day,
    "D": lambda time: time.timetuple().tm_yday,
    "H": lambda time: time.hour,
    "k": lambda time: time.hour or 24,
    "h": lambda time: time.hour % 12 or 12,
    "K": lambda time: time.hour % 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
    "e": lambda time: time.isoweekday() % 7 + 1,
    "Q": lambda time: (time.month + 2) // 3,
    "q": lambda time: (time.month + 2) // 3,
    "A": lambda time: (
        (time.hour * 3600 + time.minute * 60 + time.second) * 1_000 + time.microsecond // 1_000
    ),
}
