"""Types as Flink writes them: scalar ones, and ROW, ARRAY and MAP of others."""

from collections.abc import Callable

from joins.plan.types import (
    MAX_MICRO_DIGITS,
    Member,
    SqlType,
    TypeName,
    array_type,
    map_type,
    row_type,
)
from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import TypeNode
from service.sql.grammar.literal_parser import interval_type
from service.sql.grammar.type_rules import INSTANTS, INTERVALS, STRING, type_text
from service.sql.text.dialect import SqlTokenKind
from service.sql.text.script import SqlError, suggestion

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
_LATER = ("MULTISET", "RAW", "VARIANT", "STRUCTURED", "BITMAP")
MAX_TYPE_DEPTH = 16
MAX_TYPE_SIZE = 1_000
_FORMS = {
    "ROW": "Write ROW<name TYPE, …>.",
    "ARRAY": "Write ARRAY<TYPE>.",
    "MAP": "Write MAP<STRING, TYPE>.",
}


def parse_type(cursor: TokenCursor, depth: int = 1) -> TypeNode:
    at = cursor.at
    if depth > MAX_TYPE_DEPTH:
        raise _too_deep(cursor, at)
    node = _plain(cursor, depth)
    while cursor.at_words("ARRAY"):
        cursor.advance()
        node = _array(at, node, nullable=True)
    if node.type.depth > MAX_TYPE_DEPTH:
        raise _too_deep(cursor, at)
    if node.type.size > MAX_TYPE_SIZE:
        raise cursor.script.error(
            at,
            f"the type has more than {MAX_TYPE_SIZE:,} parts",
            hint="Declare the fields that the job reads only; others are ignored.",
        )
    return node


def _too_deep(cursor: TokenCursor, at: int) -> SqlError:
    return cursor.script.error(
        at,
        f"the type is nested more than {MAX_TYPE_DEPTH} levels deep",
        hint="Declare what lies deeper as STRING, if the producer writes it as text.",
    )


def _plain(cursor: TokenCursor, depth: int) -> TypeNode:
    token = cursor.token
    word = token.text.upper() if token.kind is SqlTokenKind.WORD else ""
    if word in _SIMPLE:
        cursor.advance()
        return TypeNode(SqlType(_SIMPLE[word]), token.start)
    if word in _SIZED:
        cursor.advance()
        name, fixed = _SIZED[word]
        length = _in_parentheses(cursor, "a length", 1, MAX_LENGTH)
        if length is None and fixed:
            length = 1  # only CHAR and BINARY: Flink's VARCHAR is STRING, its VARBINARY is BYTES
        return TypeNode(SqlType(name), token.start, length, fixed)
    if word in _PARSERS:
        cursor.advance()
        return TypeNode(_PARSERS[word](cursor), token.start)
    if word in _FORMS:
        cursor.advance()
        return _nested(cursor, word, token.start, depth)
    if word in _LATER:
        raise cursor.script.error(
            token.start,
            f"type {word} is not supported",
            hint="Use scalar columns, or ROW, ARRAY and MAP of them.",
        )
    known = (*_SIMPLE, *_SIZED, *_PARSERS, *_FORMS)
    raise cursor.unexpected(
        "a type", hint=suggestion(token.text, known, "Types are " + ", ".join(known) + ".")
    )


def _nested(cursor: TokenCursor, word: str, at: int, depth: int) -> TypeNode:
    closing = ">"
    if word == "ROW" and cursor.accept_symbol("("):
        closing = ")"
    else:
        cursor.expect_symbol("<", hint=_FORMS[word])
    if word == "ROW":
        made = _row(cursor, at, depth)
    elif word == "ARRAY":
        element, nullable = _part(cursor, depth)
        made = _array(at, element, nullable=nullable)
    else:
        made = _map(cursor, at, depth)
    cursor.expect_symbol(closing, hint=_FORMS[word])
    return made


def _part(cursor: TokenCursor, depth: int) -> tuple[TypeNode, bool]:
    """A member's type, and True if it may be NULL."""
    node = parse_type(cursor, depth + 1)
    if cursor.accept_words("NOT", "NULL"):
        return node, False
    cursor.accept_words("NULL")
    return node, True


def _row(cursor: TokenCursor, at: int, depth: int) -> TypeNode:
    members: list[Member] = []
    parts: list[TypeNode] = []
    while True:
        name = cursor.name("a field name")
        if any(name.text == member.name for member in members):
            raise cursor.script.error(
                name.at,
                f'field "{name.text}" of the ROW is declared twice',
                hint="Rename one of the two.",
            )
        node, nullable = _part(cursor, depth)
        if cursor.token.kind is SqlTokenKind.STRING:  # a comment
            cursor.advance()
        members.append(Member(name.text, node.type, nullable))
        parts.append(node)
        if not cursor.accept_symbol(","):
            return TypeNode(row_type(*members), at, parts=tuple(parts))


def _array(at: int, element: TypeNode, *, nullable: bool) -> TypeNode:
    return TypeNode(array_type(element.type, nullable=nullable), at, parts=(element,))


def _map(cursor: TokenCursor, at: int, depth: int) -> TypeNode:
    key, _ = _part(cursor, depth)
    cursor.expect_symbol(",", hint=_FORMS["MAP"])
    value, nullable = _part(cursor, depth)
    kind = map_type(value.type, key=Member("key", key.type, nullable=False), nullable=nullable)
    return TypeNode(kind, at, parts=(key, value))


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
    digits = _in_parentheses(cursor, "the number of fractional digits", 0, 6)
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
    return _in_parentheses(cursor, "the number of fractional digits", 0, 9)


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
    "INTERVAL": interval_type,
}


def column_type(cursor: TokenCursor) -> TypeNode:
    node = parse_type(cursor)
    _check(cursor, node)
    return node


def _check(cursor: TokenCursor, node: TypeNode) -> None:
    reason = _unfit_itself(node.type)
    if reason is not None:
        message, hint = reason
        raise cursor.script.error(node.at, message, hint=hint)
    for part in node.parts:
        if part.type.name is TypeName.TIME:
            raise cursor.script.error(part.at, _TIME_INSIDE[0], hint=_TIME_INSIDE[1])
        _check(cursor, part)


def unfit(kind: SqlType) -> tuple[str, str] | None:
    """Why no column can have this type, and a hint; None if one can."""
    reason = _unfit_itself(kind)
    for member in kind.members:
        inside = _TIME_INSIDE if member.type.name is TypeName.TIME else unfit(member.type)
        reason = reason or inside
    return reason


def _unfit_itself(kind: SqlType) -> tuple[str, str] | None:
    if kind.name in INTERVALS:
        return (
            f"a column of type {kind.name.value}",
            "Declare its milliseconds as BIGINT; INTERVAL is a type of values.",
        )
    if kind.name in INSTANTS and kind.precision > MAX_MICRO_DIGITS:
        return (
            f"a column of type {type_text(kind)}, which has more than 6 digits",
            f"Declare {kind.name.value}(6): digits beyond are cut.",
        )
    if kind.name is TypeName.MAP and kind.members[0].type != STRING:
        return (
            f"the keys of a MAP are {type_text(kind.members[0].type)}, expected STRING",
            "Write MAP<STRING, TYPE>: the members of a JSON object have texts as names.",
        )
    return None


_TIME_INSIDE = (
    "TIME inside of a nested type is not supported",
    "Declare it as STRING and cast it: CAST(payload.at AS TIME).",
)
