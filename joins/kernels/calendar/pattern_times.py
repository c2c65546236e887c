"""Texts read by a Java pattern as times: the fields of a text, and what they make together.

Of a `DateTimeFormatter` the whole text must match, its numbers have the widths of their letters,
and a day that the month does not have becomes its last one. A `SimpleDateFormat` reads the
beginning of the text, and its fields run over: month 13 is January of the next year.
"""

import datetime as dt
import re
from collections.abc import Sequence
from functools import lru_cache

from joins.kernels.calendar.java_patterns import Dialect, Item, Letter, PatternError, items_of
from joins.kernels.calendar.pattern_texts import DAYS, MONTHS

_DAY = 86_400_000_000_000
_NANOS = {"H": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
_LAST_OF_CLOCK = {"H": 23, "k": 24, "h": 12, "K": 11, "m": 59, "s": 59}
_OTHERS = {"a": "AM|PM", "X": r"Z|[+-]\d{2}:?(?:\d{2})?", "Z": r"[+-]\d{4}"}
_FIRST_OF_CLOCK = {"k": 1, "h": 1}


class TextError(ValueError):
    """A text is no time of its pattern."""


Fields = dict[str, str]


def read(text: str, pattern: str, dialect: Dialect) -> tuple[int, int | None]:
    """The local time in nanoseconds since 1970, and the offset in minutes that the text names.

    Raises:
        PatternError: it is no pattern.
        TextError: the text is not of the pattern.
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
    return _strict_piece(letter, count)


def _strict_piece(letter: str, count: int) -> str:
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
    for letter, most in _LAST_OF_CLOCK.items():
        if not _FIRST_OF_CLOCK.get(letter, 0) <= _number(fields, letter, 1) <= most:
            raise ValueError(letter)
    fraction = int(fields.get("S", "0").ljust(9, "0"))
    days = (date - dt.date(1970, 1, 1)).days
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
