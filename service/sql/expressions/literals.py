"""Literals: their types, and their change of type without a cast."""

from joins.plan.types import MAX_MICRO_DIGITS, Constant, SqlType, TypeName
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import Literal, LiteralKind
from service.sql.grammar.type_rules import BOOLEAN, BYTES, DOUBLE, STRING
from service.sql.text.script import Script

_LITERAL_TYPES = {
    LiteralKind.STRING: STRING,
    LiteralKind.BYTES: BYTES,
    LiteralKind.BOOLEAN: BOOLEAN,
    LiteralKind.DATE: SqlType(TypeName.DATE),
    LiteralKind.INTERVAL: SqlType(TypeName.INTERVAL_SECOND, 3),
    LiteralKind.INTERVAL_DAYS: SqlType(TypeName.INTERVAL_SECOND),
    LiteralKind.INTERVAL_MONTHS: SqlType(TypeName.INTERVAL_MONTH),
}


def typed_literal(script: Script, node: Literal) -> Typed:
    """A literal with Flink's type: the narrowest of INT, BIGINT and DECIMAL for whole numbers.

    Raises:
        SqlError: a number has more digits than DECIMAL can hold, or a time is out of range.
    """
    if node.kind is LiteralKind.NULL:
        return Typed(Constant(None, STRING), nullable=True, at=node.at, is_bare_null=True)
    if node.kind is LiteralKind.NUMBER:
        return _number(script, node)
    if node.kind in (LiteralKind.TIME, LiteralKind.TIMESTAMP):
        name = TypeName[node.kind.name]
        sql_type = SqlType(name, len(node.text.partition(".")[2]))
        check_nanos(script, node.text, sql_type, node.at)
    else:
        sql_type = _LITERAL_TYPES[node.kind]
    return Typed(Constant(node.text, sql_type), nullable=False, at=node.at)


def check_nanos(script: Script, text: str, kind: SqlType, at: int) -> None:
    """See that a time with 7 to 9 digits of a fraction is of a year that nanoseconds reach.

    Raises:
        SqlError: it is not.
    """
    year = text.strip()[:4]
    if kind.precision > MAX_MICRO_DIGITS and year.isdigit() and not 1678 <= int(year) <= 2261:
        raise script.error(
            at,
            f"a time of the year {year} with more than 6 digits of a second's fraction",
            hint="Keep 6 digits: nanoseconds reach from the year 1678 to 2261.",
        )


def _number(script: Script, node: Literal) -> Typed:
    text = node.text
    if "e" in text.lower():
        return Typed(Constant(text, DOUBLE), nullable=False, at=node.at)
    whole, _, fraction = text.lstrip("-").partition(".")
    if "." not in text:
        value = int(text)
        for name, bits in ((TypeName.INT, 32), (TypeName.BIGINT, 64)):
            if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                return Typed(Constant(str(value), SqlType(name)), nullable=False, at=node.at)
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if precision > 38:
        raise script.error(
            node.at, f"the number has {precision} digits, more than 38", hint="Round it."
        )
    sign = "-" if text.startswith("-") else ""
    plain = f"{sign}{whole or '0'}" + (f".{fraction}" if fraction else "")
    sql_type = SqlType(TypeName.DECIMAL, precision, len(fraction))
    return Typed(Constant(plain, sql_type), nullable=False, at=node.at)


def folded(constant: Constant, target: SqlType) -> Constant | None:
    """An integer literal in a wider exact or approximate type is still a literal."""
    if constant.value is None:
        return Constant(None, target)
    if constant.type.name not in (TypeName.INT, TypeName.BIGINT):
        return None
    if target.name is TypeName.BIGINT or (
        target.name is TypeName.DECIMAL
        and len(constant.value.lstrip("-")) <= target.precision - target.scale
    ):
        return Constant(constant.value, target)
    return None
