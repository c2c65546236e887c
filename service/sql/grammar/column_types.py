"""Types of a table's columns: those of values, less what neither JSON nor a database has."""

from joins.plan.types import MAX_MICRO_DIGITS, SqlType, TypeName
from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import TypeNode
from service.sql.grammar.type_parser import parse_type
from service.sql.grammar.type_rules import INSTANTS, INTERVALS, STRING, type_text


def column_type(cursor: TokenCursor) -> TypeNode:
    """Read the type of a column.

    Raises:
        SqlError: it is not a type, or not one of a column.
    """
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
    """Why no column has this type, and what to do; None for a type of columns."""
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
