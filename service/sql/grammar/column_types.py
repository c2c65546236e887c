"""Types of a table's columns: those of values, less what neither JSON nor a database has."""

from joins.plan.types import MAX_MICRO_DIGITS, TypeName
from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import TypeNode
from service.sql.grammar.type_parser import parse_type
from service.sql.grammar.type_rules import INSTANTS, INTERVALS, type_text


def column_type(cursor: TokenCursor) -> TypeNode:
    """Read the type of a column.

    Raises:
        SqlError: it is not a type, or not one of a column.
    """
    node = parse_type(cursor)
    _check(cursor, node)
    return node


def _check(cursor: TokenCursor, node: TypeNode) -> None:
    kind = node.type
    if kind.name in INTERVALS:
        raise cursor.script.error(
            node.at,
            f"a column of type {kind.name.value}",
            hint="Declare its milliseconds as BIGINT; INTERVAL is a type of values.",
        )
    if kind.name in INSTANTS and kind.precision > MAX_MICRO_DIGITS:
        raise cursor.script.error(
            node.at,
            f"a column of type {type_text(kind)}, which has more than 6 digits",
            hint=f"Declare {kind.name.value}(6): digits beyond are cut.",
        )
    if kind.name is TypeName.MAP and node.parts[0].type.name is not TypeName.STRING:
        key = node.parts[0]
        raise cursor.script.error(
            key.at,
            f"the keys of a MAP are {type_text(key.type)}, expected STRING",
            hint="Write MAP<STRING, TYPE>: the members of a JSON object have texts as names.",
        )
    for part in node.parts:
        if part.type.name is TypeName.TIME:
            raise cursor.script.error(
                part.at,
                "TIME inside of a nested type is not supported",
                hint="Declare it as STRING and cast it: CAST(payload.at AS TIME).",
            )
        _check(cursor, part)
