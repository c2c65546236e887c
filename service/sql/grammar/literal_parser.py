"""Literals: numbers, texts, times and intervals."""

import datetime as dt
import re

from joins.plan.types import SqlType, TypeName
from service.sql.grammar.cursor import TokenCursor, read_string, read_whole_number
from service.sql.grammar.expression_nodes import Literal, LiteralKind
from service.sql.text.dialect import SqlToken, SqlTokenKind
from service.sql.text.script import suggestion

MAX_INTERVAL_MS = 10_000 * 366 * 86_400_000
_MAX_MONTHS = 120_000
_FORM = "Write INTERVAL '5' SECOND, INTERVAL '1:30' MINUTE TO SECOND or INTERVAL '2' DAY."
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_UNITS_MS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000}
_UNITS = (*_MONTHS, *_UNITS_MS, "SECOND")
_CLOCK = ("DAY", "HOUR", "MINUTE", "SECOND")
_BELOW = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
_BEFORE = {"HOUR": " +", "MINUTE": ":", "SECOND": ":"}
_FIELD, _SECONDS = r"(\d{1,12})", r"(\d{1,12}(?:\.\d{1,9})?)"


def at_interval(cursor: TokenCursor) -> bool:
    """True before an INTERVAL literal; a column may have this name too."""
    if not cursor.at_words("INTERVAL"):
        return False
    follows = cursor.ahead(1)
    if follows.kind is SqlTokenKind.SYMBOL and follows.text in ("+", "-"):
        follows = cursor.ahead(2)
        return follows.kind is SqlTokenKind.STRING and cursor.ahead(3).kind is SqlTokenKind.WORD
    return follows.kind in (SqlTokenKind.STRING, SqlTokenKind.NUMBER)


def interval_literal(cursor: TokenCursor) -> Literal:
    """Read INTERVAL ['-'] 'text' unit [TO unit]."""
    at = cursor.advance().start
    sign = -1 if cursor.accept_symbol("-") else 1
    cursor.accept_symbol("+")
    token = read_string(cursor, "a text in single quotes", hint=_FORM)
    first = _unit(cursor)
    last = _unit(cursor) if cursor.accept_words("TO") else first
    text = token.text.strip()
    if text.startswith(("-", "+")):
        sign, text = (-sign if text[0] == "-" else sign), text[1:]
    kind, value = _value(cursor, token.start, text, (first, last))
    return Literal(kind, str(sign * value), at)


def interval_type(cursor: TokenCursor) -> SqlType:
    at = cursor.at
    first = _unit(cursor)
    last = _unit(cursor) if cursor.accept_words("TO") else first
    if {first, last} <= set(_MONTHS):
        return SqlType(TypeName.INTERVAL_MONTH)
    if first in _MONTHS or last in _MONTHS:
        raise cursor.script.error(
            at, f"INTERVAL has no {first} TO {last}", hint="Write INTERVAL DAY TO SECOND."
        )
    return SqlType(TypeName.INTERVAL_SECOND, 0 if last in ("DAY", "WEEK") else 3)


def _unit(cursor: TokenCursor) -> str:
    word = cursor.token.text.upper().removesuffix("S")
    if cursor.token.kind is not SqlTokenKind.WORD or word not in _UNITS:
        known = "Units are " + ", ".join(_UNITS) + "."
        raise cursor.unexpected("a unit", hint=suggestion(word[:20], _UNITS, known))
    cursor.advance()
    if cursor.accept_symbol("("):
        read_whole_number(cursor, "a number of digits", 0, 10)
        if cursor.accept_symbol(","):
            read_whole_number(cursor, "a number of digits", 0, 9)
        cursor.expect_symbol(")", hint=_FORM)
    return word


def _value(
    cursor: TokenCursor, at: int, text: str, units: tuple[str, str]
) -> tuple[LiteralKind, int]:
    first, last = units
    if units == ("YEAR", "MONTH"):
        match = re.fullmatch(r"(\d{1,6})-(\d{1,2})", text, re.ASCII)
        months = None if match is None else 12 * int(match[1]) + int(match[2])
        if match is not None and int(match[2]) > 11:
            months = None
    elif first == last and first in _MONTHS:
        months = int(text) * _MONTHS[first] if re.fullmatch(_FIELD, text, re.ASCII) else None
    else:
        whole_days = first == last and first in ("DAY", "WEEK")
        kind = LiteralKind.INTERVAL_DAYS if whole_days else LiteralKind.INTERVAL
        return kind, _milliseconds(cursor, at, text, units)
    if months is None or months > _MAX_MONTHS:
        raise _malformed(cursor, at, units)
    return LiteralKind.INTERVAL_MONTHS, months


def _milliseconds(cursor: TokenCursor, at: int, text: str, units: tuple[str, str]) -> int:
    first, last = units
    fields: tuple[str, ...] = (first,)
    if first != last:
        if first not in _CLOCK or last not in _CLOCK or _CLOCK.index(first) > _CLOCK.index(last):
            raise cursor.script.error(
                at, f"INTERVAL has no {first} TO {last}", hint="Write INTERVAL '5' SECOND."
            )
        fields = _CLOCK[_CLOCK.index(first) : _CLOCK.index(last) + 1]
    pattern = "".join(
        (_BEFORE[unit] if place else "") + (_SECONDS if unit == "SECOND" else _FIELD)
        for place, unit in enumerate(fields)
    )
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        raise _malformed(cursor, at, units)
    total = 0
    for place, (unit, digits) in enumerate(zip(fields, match.groups(), strict=True)):
        whole, _, fraction = digits.partition(".")
        if place and int(whole) >= _BELOW[unit]:
            raise _malformed(cursor, at, units)
        if fraction[3:].strip("0"):
            raise cursor.script.error(
                at, "an INTERVAL is finer than a millisecond", hint="Keep three digits at most."
            )
        total += int(whole) * _UNITS_MS.get(unit, 1_000) + int(fraction[:3].ljust(3, "0"))
    if total > MAX_INTERVAL_MS:
        raise cursor.script.error(at, "an INTERVAL is longer than 10,000 years", hint=_FORM)
    return total


def _malformed(cursor: TokenCursor, at: int, units: tuple[str, str]) -> Exception:
    first, last = units
    what = first if first == last else f"{first} TO {last}"
    return cursor.script.error(at, f"malformed INTERVAL of {what}", hint=_FORM)


_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{1,2}:\d{2}:\d{2}(\.\d{1,6})?"
_LONG_TIME = r"\d{1,2}:\d{2}:\d{2}(\.\d{1,9})?"
_TEMPORAL = {
    "DATE": (LiteralKind.DATE, _DATE, "2024-01-31"),
    "TIME": (LiteralKind.TIME, _TIME, "23:59:59"),
    "TIMESTAMP": (LiteralKind.TIMESTAMP, f"{_DATE} {_LONG_TIME}", "2024-01-31 23:59:59"),
}


def plain_literal(cursor: TokenCursor) -> Literal:
    token = cursor.advance()
    if token.kind is SqlTokenKind.NUMBER:
        return _number(cursor, token)
    if token.kind is SqlTokenKind.HEX:
        if len(token.text) % 2:
            raise cursor.script.error(
                token.start,
                "a binary literal needs an even number of digits",
                hint="Write x'0A'.",
            )
        return Literal(LiteralKind.BYTES, token.text.lower(), token.start)
    return Literal(LiteralKind.STRING, token.text, token.start)


def _number(cursor: TokenCursor, token: SqlToken) -> Literal:
    follows = cursor.token
    adjacent = follows.start == token.end and follows.kind in (
        SqlTokenKind.WORD,
        SqlTokenKind.NUMBER,
    )
    if adjacent or not re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", token.text, re.ASCII):
        raise cursor.script.error(token.start, "malformed number", hint="Write 42, 4.2 or 4.2E1.")
    return Literal(LiteralKind.NUMBER, token.text, token.start)


def fraction(cursor: TokenCursor) -> Literal:
    """`.5`: the tokenizer reads the point as an operator."""
    point = cursor.advance()
    digits = cursor.advance()
    if digits.start != point.end:
        raise cursor.script.error(
            point.start, "malformed number", hint="Write 0.5 without a blank."
        )
    return _number(
        cursor, SqlToken(SqlTokenKind.NUMBER, "." + digits.text, point.start, digits.end)
    )


def time_literal(cursor: TokenCursor) -> Literal | None:
    """Read a DATE, TIME, TIMESTAMP or INTERVAL literal; None if another token comes next."""
    if at_interval(cursor):
        return interval_literal(cursor)
    word = cursor.token.text.upper()
    if word not in _TEMPORAL or cursor.ahead(1).kind is not SqlTokenKind.STRING:
        return None
    kind, pattern, example = _TEMPORAL[word]
    cursor.advance()
    token = cursor.advance()
    if not re.fullmatch(pattern, token.text, re.ASCII) or not _on_calendar(kind, token.text):
        raise cursor.script.error(
            token.start, f"malformed {word} literal", hint=f"Write {word} '{example}'."
        )
    return Literal(kind, token.text, token.start)


def _on_calendar(kind: LiteralKind, text: str) -> bool:
    try:
        if kind is LiteralKind.TIME:
            dt.time.fromisoformat(_padded(text))
        else:
            date, _, clock = text.partition(" ")
            dt.datetime.fromisoformat(f"{date} {_padded(clock)}" if clock else date)
    except ValueError:
        return False
    return True


def _padded(clock: str) -> str:
    return clock.partition(".")[0].rjust(8, "0")
