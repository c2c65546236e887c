"""Literals as tokens spell them."""

import datetime as dt
import re

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Literal, LiteralKind
from service.sql.grammar.interval_literals import at_interval, interval_literal
from service.sql.text.dialect import SqlToken, SqlTokenKind

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{1,2}:\d{2}:\d{2}(\.\d{1,6})?"
_LONG_TIME = r"\d{1,2}:\d{2}:\d{2}(\.\d{1,9})?"
_TEMPORAL = {
    "DATE": (LiteralKind.DATE, _DATE, "2024-01-31"),
    "TIME": (LiteralKind.TIME, _TIME, "23:59:59"),
    "TIMESTAMP": (LiteralKind.TIMESTAMP, f"{_DATE} {_LONG_TIME}", "2024-01-31 23:59:59"),
}


def plain_literal(cursor: TokenCursor) -> Literal:
    """Read a number, a string or binary digits."""
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
    """`.5`: the tokenizer takes the point for an operator."""
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
    """Read DATE, TIME or TIMESTAMP and the text after it, or an INTERVAL, if one comes next."""
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
