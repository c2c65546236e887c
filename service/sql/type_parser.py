"""Types as Flink writes them."""

from collections.abc import Callable

from joins.types import SqlType, TypeName
from service.sql.cursor import TokenCursor
from service.sql.dialect import Kind
from service.sql.errors import suggestion
from service.sql.syntax import TypeNode

MAX_PRECISION = 38
MAX_LENGTH = 2**31 - 1
_SIMPLE = {
    "BOOLEAN": TypeName.BOOLEAN,
    "TINYINT": TypeName.TINYINT,
    "SMALLINT": TypeName.SMALLINT,
    "INT": TypeName.INT,
    "INTEGER": TypeName.INT,
    "BIGINT": TypeName.BIGINT,
    "FLOAT": TypeName.FLOAT,
    "STRING": TypeName.STRING,
    "BYTES": TypeName.BYTES,
    "DATE": TypeName.DATE,
}
_SIZED = {
    "CHAR": (TypeName.STRING, True),
    "VARCHAR": (TypeName.STRING, False),
    "BINARY": (TypeName.BYTES, True),
    "VARBINARY": (TypeName.BYTES, False),
}
_LATER = ("ARRAY", "MAP", "MULTISET", "ROW", "RAW", "INTERVAL", "VARIANT", "STRUCTURED")

_NESTED = dict.fromkeys(
    ("ROW", "ARRAY", "MAP", "MULTISET"),
    "Use flat columns; nested data is read as STRING only where the producer writes it as text.",
)


def parse_type(cursor: TokenCursor) -> TypeNode:
    """Read a type.

    Raises:
        SqlError: it is not a type, or not one that Sluice carries.
    """
    token = cursor.token
    word = token.text.upper() if token.kind is Kind.WORD else ""
    if word in _SIMPLE:
        cursor.advance()
        return TypeNode(SqlType(_SIMPLE[word]), token.start)
    if word in _SIZED:
        cursor.advance()
        name, fixed = _SIZED[word]
        length = _in_parentheses(cursor, "a length", 1, MAX_LENGTH)
        return TypeNode(SqlType(name), token.start, 1 if length is None else length, fixed)
    if word in _PARSERS:
        cursor.advance()
        return TypeNode(_PARSERS[word](cursor), token.start)
    if word in _LATER:
        raise cursor.script.error(
            token.start,
            f"type {word} is not supported",
            hint=_NESTED.get(word, "Use scalar columns."),
        )
    known = (*_SIMPLE, *_SIZED, *_PARSERS)
    raise cursor.unexpected(
        "a type", hint=suggestion(token.text, known, "Types are " + ", ".join(known) + ".")
    )


def _double(cursor: TokenCursor) -> SqlType:
    cursor.accept_words("PRECISION")
    return SqlType(TypeName.DOUBLE)


def _decimal(cursor: TokenCursor) -> SqlType:
    if not cursor.accept_symbol("("):
        return SqlType(TypeName.DECIMAL, 10, 0)
    precision = cursor.whole_number("a precision", 1, MAX_PRECISION)
    scale = cursor.whole_number("a scale", 0, precision) if cursor.accept_symbol(",") else 0
    cursor.expect_symbol(")", hint="Write DECIMAL(precision, scale).")
    return SqlType(TypeName.DECIMAL, precision, scale)


def _time(cursor: TokenCursor) -> SqlType:
    digits = _fraction(cursor)
    if cursor.accept_words("WITHOUT"):
        cursor.expect_words("TIME", "ZONE", hint="Write TIME(3).")
    return SqlType(TypeName.TIME, 0 if digits is None else digits)


def _timestamp(cursor: TokenCursor) -> SqlType:
    digits = _fraction(cursor)
    name = TypeName.TIMESTAMP
    if cursor.accept_words("WITH"):
        hint = "Write TIMESTAMP_LTZ(3); a TIMESTAMP WITH TIME ZONE is not supported."
        cursor.expect_words("LOCAL", "TIME", "ZONE", hint=hint)
        name = TypeName.TIMESTAMP_LTZ
    elif cursor.accept_words("WITHOUT"):
        cursor.expect_words("TIME", "ZONE", hint="Write TIMESTAMP(3).")
    return SqlType(name, 6 if digits is None else digits)


def _timestamp_ltz(cursor: TokenCursor) -> SqlType:
    digits = _fraction(cursor)
    return SqlType(TypeName.TIMESTAMP_LTZ, 6 if digits is None else digits)


def _fraction(cursor: TokenCursor) -> int | None:
    """Fractional digits; Arrow carries microseconds, so 7 to 9 are refused."""
    return _in_parentheses(cursor, "the number of fractional digits", 0, 6)


def _in_parentheses(cursor: TokenCursor, what: str, lowest: int, highest: int) -> int | None:
    if not cursor.accept_symbol("("):
        return None
    value = cursor.whole_number(what, lowest, highest)
    cursor.expect_symbol(")", hint=f"Close the parenthesis after {what}.")
    return value


_PARSERS: dict[str, Callable[[TokenCursor], SqlType]] = {
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "DEC": _decimal,
    "NUMERIC": _decimal,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _timestamp_ltz,
}
