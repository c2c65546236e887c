"""Patterns of Java's `DateTimeFormatter` (TIMESTAMPs) and `SimpleDateFormat` (texts, seconds).

Eras, week years and names of zones are refused. A `DateTimeFormatter` reads the whole text and
limits a day to the last of its month; a `SimpleDateFormat` reads the beginning of the text, and its
fields overflow: month 13 is January of the next year.
"""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache


class Dialect(Enum):
    """The Java class of a pattern."""

    FORMATTER = auto()
    SIMPLE = auto()


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter of a pattern, `count` times."""

    letter: str
    count: int


Item = Letter | str
_NUMBERS = "yuMLdDHhKkmsS"
_LETTERS = {Dialect.FORMATTER: _NUMBERS + "aEeQqnA", Dialect.SIMPLE: _NUMBERS + "aEXZ"}
_MOST = {**dict.fromkeys("dHhKkms", 2), "D": 3, "S": 9, "a": 1, "y": 9, "u": 9, "M": 4, "L": 4,
         "E": 4, "e": 1, "Q": 2, "q": 2, "n": 9, "A": 9, "X": 3, "Z": 3}  # fmt: skip
MAX_PATTERN = 200


class PatternError(ValueError):
    """A pattern is invalid in Java, or has letters that are not supported."""


@lru_cache(maxsize=256)
def items_of(pattern: str, dialect: Dialect) -> tuple[Item, ...]:
    """Fields of a pattern and the texts between them; raises PatternError."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern of {len(pattern)} characters")
    items: list[Item] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            text, at = _quoted(pattern, at)
            items.append(text)
        elif character.isascii() and character.isalpha():
            stop = at
            while stop < len(pattern) and pattern[stop] == character:
                stop += 1
            items.append(_field(character, stop - at, dialect))
            at = stop
        elif character in "{}#[]" and dialect is Dialect.FORMATTER:
            raise PatternError(f'"{character}"')
        else:
            items.append(character)
            at += 1
    return tuple(items)


def _field(letter: str, count: int, dialect: Dialect) -> Letter:
    most = _MOST.get(letter, 0)
    if dialect is Dialect.SIMPLE and letter in "yMLdDHhKkmsSEa":
        most = 20
    if letter not in _LETTERS[dialect] or count > most:
        raise PatternError(f'"{letter * min(count, 20)}"')
    return Letter(letter, count)


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at + 1 : at + 2] == "'":
        return "'", at + 2
    text, place = [], at + 1
    while place < len(pattern):
        if pattern[place] != "'":
            text.append(pattern[place])
            place += 1
        elif pattern[place + 1 : place + 2] == "'":
            text.append("'")
            place += 2
        else:
            return "".join(text), place + 1
    raise PatternError("a quote is not closed")


_DAY = 86_400_000_000_000
_NANOS = {"H": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
_LAST_OF_CLOCK = {"H": 23, "k": 24, "h": 12, "K": 11, "m": 59, "s": 59}
_OTHERS = {"a": "AM|PM", "X": r"Z|[+-]\d{2}:?(?:\d{2})?", "Z": r"[+-]\d{4}"}
_FIRST_OF_CLOCK = {"k": 1, "h": 1}


class TextError(ValueError):
    """A text does not match its pattern."""


Fields = dict[str, str]


def read(text: str, pattern: str, dialect: Dialect) -> tuple[int, int | None]:
    """The local time in nanoseconds since 1970, and the offset in minutes that the text names.

    Raises PatternError for an invalid pattern, TextError if the text does not match it.
    """
    regex, letters = _reader(pattern, dialect)
    match = regex.fullmatch(text) if dialect is Dialect.FORMATTER else regex.match(text)
    if match is None:
        raise TextError(text)
    fields: Fields = {}
    for letter, part in zip(letters, match.groups(), strict=True):
        if fields.setdefault(letter, part) != part and dialect is Dialect.FORMATTER:
            raise TextError(text)
        fields[letter] = part
    try:
        return _strict(fields) if dialect is Dialect.FORMATTER else _lenient(fields)
    except (ValueError, OverflowError) as error:
        raise TextError(text) from error


@lru_cache(maxsize=256)
def _reader(pattern: str, dialect: Dialect) -> tuple[re.Pattern[str], tuple[str, ...]]:
    items = items_of(pattern, dialect)
    pieces, letters = [], []
    for at, item in enumerate(items):
        if isinstance(item, str):
            pieces.append(re.escape(item))
            continue
        pieces.append(f"({_piece(item, items[at + 1 : at + 2], dialect)})")
        letters.append("M" if item.letter == "L" else "y" if item.letter == "u" else item.letter)
    flags = re.ASCII | (re.IGNORECASE if dialect is Dialect.SIMPLE else re.NOFLAG)
    return re.compile("".join(pieces), flags), tuple(letters)


def _piece(field: Letter, follows: Sequence[Item], dialect: Dialect) -> str:
    letter, count = field.letter, field.count
    if letter == "E":
        return "|".join(name[:3] if count < 4 else name for name in DAYS)
    if letter in "ML" and count > 2:
        return "|".join(name[:3] if count == 3 else name for name in MONTHS)
    if letter in _OTHERS:
        return _OTHERS[letter]
    if dialect is Dialect.SIMPLE:
        if letter == "y" and count == 2:
            raise PatternError('"yy" to read by, whose century is that of today')
        adjacent = bool(follows) and isinstance(follows[0], Letter)
        return rf"\d{{{count}}}" if adjacent else r"\s*-?\d{1,9}"
    if letter in "yu" and count not in (2, 4):
        return r"-?\d{1,9}" if count < 4 else rf"\d{{{count}}}"
    if letter == "S" or count > 1:
        return rf"\d{{{count}}}"
    return r"\d{1,2}" if letter in "MLdHhKkms" else r"\d{1,3}"


def _number(fields: Fields, letter: str, otherwise: int) -> int:
    return int(fields[letter]) if letter in fields else otherwise


def _strict(fields: Fields) -> tuple[int, int | None]:
    year = _number(fields, "y", 1970)
    if "y" in fields and len(fields["y"]) == 2:
        year += 2000
    date = _date(year, fields)
    days = (date - dt.date(1970, 1, 1)).days
    is_whole = "y" in fields and ("D" in fields or {"M", "d"} <= fields.keys())
    if is_whole and not DAYS[date.weekday()].startswith(fields.get("E", "")):
        raise ValueError(fields["E"])
    if fields.get("H") == "24" and not any(_number(fields, each, 0) for each in "msS"):
        fields, days = {**fields, "H": "0"}, days + is_whole
    for letter, most in _LAST_OF_CLOCK.items():
        if not _FIRST_OF_CLOCK.get(letter, 0) <= _number(fields, letter, 1) <= most:
            raise ValueError(letter)
    fraction = int(fields.get("S", "0").ljust(9, "0"))
    clock = _hour(fields) * _NANOS["H"]
    clock += sum(_number(fields, each, 0) * _NANOS[each] for each in "ms")
    return days * _DAY + clock + fraction, None


def _date(year: int, fields: Fields) -> dt.date:
    if "D" in fields and "M" not in fields:
        return dt.date(year, 1, 1) + dt.timedelta(days=_in_year(year, int(fields["D"])) - 1)
    month, day = _month(fields), _number(fields, "d", 1)
    if not 1 <= day <= 31:
        raise ValueError(day)
    after = dt.date(year + month // 12, month % 12 + 1, 1) if year < 9999 or month < 12 else None
    last = 31 if after is None else (after - dt.timedelta(days=1)).day
    return dt.date(year, month, min(day, last))


def _in_year(year: int, day: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= 365 + leap:
        raise ValueError(day)
    return day


def _month(fields: Fields) -> int:
    text = fields.get("M", "1")
    if text.lstrip(" -").isdigit():
        return int(text)
    return 1 + next(at for at, name in enumerate(MONTHS) if name.lower()[:3] == text.lower()[:3])


def _hour(fields: Fields) -> int:
    if "H" in fields:
        return int(fields["H"])
    if "k" in fields:
        return int(fields["k"]) % 24
    half = 12 * (fields.get("a", "AM").upper() == "PM")
    if "K" in fields:
        return int(fields["K"]) + half
    return int(fields["h"]) % 12 + half if "h" in fields else half


def _lenient(fields: Fields) -> tuple[int, int | None]:
    year, month = _number(fields, "y", 1970), _month(fields) - 1
    first = dt.date(year + month // 12, month % 12 + 1, 1)
    days = (first - dt.date(1970, 1, 1)).days + _number(fields, "d", 1) - 1
    if "D" in fields and "M" not in fields and "d" not in fields:
        days += int(fields["D"]) - 1
    clock = _hour(fields) * _NANOS["H"] + _number(fields, "S", 0) * 1_000_000
    clock += sum(_number(fields, each, 0) * _NANOS[each] for each in "ms")
    zone = fields.get("X", fields.get("Z"))
    return days * _DAY + clock, None if zone is None else _minutes(zone)


def _minutes(offset: str) -> int:
    if offset.upper() == "Z":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return -minutes if offset[0] == "-" else minutes


MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def moment_of(micros: int) -> dt.datetime:
    """Microseconds since 1970 as a datetime; raises OverflowError outside of years 1 to 9999."""
    return _EPOCH + dt.timedelta(microseconds=micros)


def shown(micros: int, nanos: int, pattern: str, dialect: Dialect, offset: int = 0) -> str:
    """A local time by a pattern; `offset` is that of its zone, in minutes.

    Raises PatternError for an invalid pattern, OverflowError outside of years 1 to 9999.
    """
    time = moment_of(micros)
    return "".join(
        item if isinstance(item, str) else _written(item, time, nanos, dialect, offset)
        for item in items_of(pattern, dialect)
    )


def _written(field: Letter, time: dt.datetime, nanos: int, dialect: Dialect, offset: int) -> str:
    letter, count = field.letter, field.count
    if letter in "XZ":
        return _offset_text(field, offset)
    if letter in "Sn":
        return _fraction(field, f"{time.microsecond:06}{nanos:03}", dialect)
    if letter == "u" and dialect is Dialect.SIMPLE:
        return str(time.isoweekday()).zfill(count)
    named = _named(field, time)
    return str(_FIELD_NUMBERS[letter](time)).zfill(count) if named is None else named


def _fraction(field: Letter, nanos: str, dialect: Dialect) -> str:
    if field.letter == "n":
        return str(int(nanos)).zfill(field.count)
    if dialect is Dialect.SIMPLE:
        return str(int(nanos[:3])).zfill(field.count)
    return nanos[: field.count]


def _named(field: Letter, time: dt.datetime) -> str | None:
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


_FIELD_NUMBERS: Mapping[str, Callable[[dt.datetime], int]] = {
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
