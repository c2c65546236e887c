"""Types as Flink writes them (scalar ones, ROW, ARRAY, MAP), and the rules of their casts."""

from collections.abc import Callable, Sequence

from joins.plan.types import (
    MAX_MICRO_DIGITS,
    NESTED,
    Member,
    SqlType,
    TypeName,
    array_type,
    map_type,
    nested_text,
    row_type,
)
from service.sql.grammar.cursor import TokenCursor, read_whole_number
from service.sql.grammar.expression_nodes import TypeNode
from service.sql.grammar.literal_parser import interval_type
from service.sql.text.dialect import SqlTokenKind
from service.sql.text.script import SqlError, suggestion

MIN_KEPT_SCALE = 6
INTEGER_BITS = {
    TypeName.TINYINT: 8,
    TypeName.SMALLINT: 16,
    TypeName.INT: 32,
    TypeName.BIGINT: 64,
}
_INTEGER_DIGITS = {
    TypeName.TINYINT: 3,
    TypeName.SMALLINT: 5,
    TypeName.INT: 10,
    TypeName.BIGINT: 19,
}
INTEGERS = frozenset(INTEGER_BITS)
APPROXIMATE = frozenset((TypeName.FLOAT, TypeName.DOUBLE))
NUMERIC = INTEGERS | APPROXIMATE | {TypeName.DECIMAL}
INSTANTS = frozenset((TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ))
TEMPORAL = INSTANTS | {TypeName.DATE, TypeName.TIME}
INTERVALS = frozenset((TypeName.INTERVAL_MONTH, TypeName.INTERVAL_SECOND))

BOOLEAN = SqlType(TypeName.BOOLEAN)
INT = SqlType(TypeName.INT)
BIGINT = SqlType(TypeName.BIGINT)
FLOAT = SqlType(TypeName.FLOAT)
DOUBLE = SqlType(TypeName.DOUBLE)
STRING = SqlType(TypeName.STRING)
BYTES = SqlType(TypeName.BYTES)
PROCTIME = SqlType(TypeName.TIMESTAMP_LTZ, 3)

_EXPLICIT: dict[TypeName, frozenset[TypeName]] = {
    TypeName.BYTES: frozenset((TypeName.STRING, TypeName.BYTES)),
    TypeName.BOOLEAN: INTEGERS | {TypeName.STRING, TypeName.BOOLEAN},
    TypeName.DATE: INSTANTS | {TypeName.STRING, TypeName.DATE},
    TypeName.TIME: INSTANTS | {TypeName.STRING, TypeName.TIME},
    TypeName.TIMESTAMP: TEMPORAL | {TypeName.STRING},
    TypeName.TIMESTAMP_LTZ: TEMPORAL | {TypeName.STRING},
    TypeName.INTERVAL_MONTH: frozenset((TypeName.INTERVAL_MONTH,)),
    TypeName.INTERVAL_SECOND: frozenset((TypeName.INTERVAL_SECOND,)),
}
_TO_NUMBER = NUMERIC | {TypeName.STRING, TypeName.BOOLEAN}


def type_text(sql_type: SqlType) -> str:
    if sql_type.name in (TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return f"{sql_type.name.value}({sql_type.precision})"
    return nested_text(sql_type, type_text) if sql_type.is_nested else str(sql_type)


def as_decimal(sql_type: SqlType) -> SqlType:
    if sql_type.name is TypeName.DECIMAL:
        return sql_type
    return SqlType(TypeName.DECIMAL, _INTEGER_DIGITS[sql_type.name], 0)


def common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The type that all `types` are cast to; None if there is none."""
    result = types[0]
    for other in types[1:]:
        merged = _common_of_two(result, other)
        if merged is None:
            return None
        result = merged
    return result


def _common_of_two(left: SqlType, right: SqlType) -> SqlType | None:
    if left == right:
        return left
    names = {left.name, right.name}
    if names <= NUMERIC:
        return _common_number(left, right)
    if names & NESTED:
        return _common_by_parts(left, right)
    if len(names) == 1:
        return SqlType(left.name, max(left.precision, right.precision))
    if names <= INSTANTS | {TypeName.DATE}:
        name = TypeName.TIMESTAMP_LTZ if TypeName.TIMESTAMP_LTZ in names else TypeName.TIMESTAMP
        return SqlType(name, max(left.precision, right.precision))
    return None


def _common_by_parts(left: SqlType, right: SqlType) -> SqlType | None:
    """Two nested types of one form: common types of their members, under the first one's names."""
    if left.name is not right.name or len(left.members) != len(right.members):
        return None
    parts = []
    for one, other in zip(left.members, right.members, strict=True):
        merged = _common_of_two(one.type, other.type)
        if merged is None:
            return None
        parts.append(Member(one.name, merged, one.nullable or other.nullable))
    return SqlType(left.name, members=tuple(parts))


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    names = {left.name, right.name}
    if names & APPROXIMATE:
        return DOUBLE if names & {TypeName.DOUBLE, TypeName.DECIMAL} else FLOAT
    if TypeName.DECIMAL not in names:
        return max(left, right, key=lambda t: INTEGER_BITS[t.name])
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    return _adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def arithmetic_type(operator: str, left: SqlType, right: SqlType) -> SqlType:
    names = {left.name, right.name}
    if TypeName.DECIMAL not in names or names & APPROXIMATE:
        return _common_number(left, right)
    a, b = as_decimal(left), as_decimal(right)
    if operator == "*":
        return _adjusted(a.precision + b.precision + 1, a.scale + b.scale)
    if operator == "/":
        scale = max(6, a.scale + b.precision + 1)
        return _adjusted(a.precision - a.scale + b.scale + scale, scale)
    scale = max(a.scale, b.scale)
    whole = (a.precision - a.scale, b.precision - b.scale)
    if operator == "%":
        return _adjusted(min(whole) + scale, scale)
    return _adjusted(max(whole) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> SqlType:
    """With too many digits, keep the whole digits and reduce the scale, down to six."""
    if precision <= MAX_PRECISION:
        return SqlType(TypeName.DECIMAL, max(precision, 1), scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, MIN_KEPT_SCALE))
    return SqlType(TypeName.DECIMAL, MAX_PRECISION, kept)


def rounded_type(operand: SqlType, digits: int) -> SqlType:
    if operand.name is not TypeName.DECIMAL or digits >= operand.scale:
        return operand
    whole = 1 + operand.precision - operand.scale
    if digits < 0:
        return SqlType(TypeName.DECIMAL, min(MAX_PRECISION, whole), 0)
    return SqlType(TypeName.DECIMAL, min(MAX_PRECISION, whole + digits), digits)


def is_implicit(source: SqlType, target: SqlType) -> bool:
    """True if `source` may be written to a column of `target` without a CAST."""
    if source.is_nested or target.is_nested:
        return _is_by_parts(source, target, is_implicit)
    if source.name is target.name:
        return True
    if target.name is TypeName.DECIMAL:
        return source.name in NUMERIC
    if target.name in APPROXIMATE:
        return source.name in INTEGERS | {TypeName.DECIMAL} or (
            source.name is TypeName.FLOAT and target.name is TypeName.DOUBLE
        )
    if target.name in INTEGERS:
        return source.name in INTEGERS and INTEGER_BITS[source.name] < INTEGER_BITS[target.name]
    if target.name in (TypeName.DATE, TypeName.TIME):
        return source.name is TypeName.TIMESTAMP
    return {source.name, target.name} <= INSTANTS


def is_explicit(source: SqlType, target: SqlType) -> bool:
    if target.name is TypeName.STRING:
        return True
    if source.is_nested or target.is_nested:
        return _is_by_parts(source, target, is_explicit)
    if target.name in NUMERIC:
        return source.name in _TO_NUMBER
    return source.name in _EXPLICIT[target.name]


def _is_by_parts(
    source: SqlType, target: SqlType, rule: Callable[[SqlType, SqlType], bool]
) -> bool:
    if source.name is not target.name or len(source.members) != len(target.members):
        return False
    return all(rule(a.type, b.type) for a, b in zip(source.members, target.members, strict=True))


def is_lossless(source: SqlType, target: SqlType) -> bool:
    """True if every value of `source` exists in `target`, so that equality survives the cast."""
    if source.name is target.name and source.name is not TypeName.DECIMAL:
        return source.precision <= target.precision
    if target.name is TypeName.DECIMAL and source.name in INTEGERS | {TypeName.DECIMAL}:
        exact = as_decimal(source)
        whole = exact.precision - exact.scale
        return exact.scale <= target.scale and whole <= target.precision - target.scale
    if source.name is TypeName.DATE:
        return target.name is TypeName.TIMESTAMP
    if source.name in INTEGERS and target.name in INTEGERS:
        return INTEGER_BITS[source.name] <= INTEGER_BITS[target.name]
    return False


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
_SPELLINGS = {"CHARACTER": "CHAR"}
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
    word = _SPELLINGS.get(word, word)
    if word in _SIMPLE:
        cursor.advance()
        return TypeNode(SqlType(_SIMPLE[word]), token.start)
    if word in _SIZED:
        cursor.advance()
        if word in ("CHAR", "BINARY") and cursor.accept_words("VARYING"):
            word = f"VAR{word}"
        name, fixed = _SIZED[word]
        length = _in_parentheses(cursor, "a length", 1, MAX_LENGTH)
        if cursor.accept_words("CHARACTER", "SET"):
            cursor.name("a character set")  # Flink prints it: a STRING has no other
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
    precision = read_whole_number(cursor, "a precision", 1, MAX_PRECISION)
    scale = read_whole_number(cursor, "a scale", 0, precision) if cursor.accept_symbol(",") else 0
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
    value = read_whole_number(cursor, what, lowest, highest)
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
