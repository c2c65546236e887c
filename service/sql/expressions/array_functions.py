"""Functions of arrays and maps."""

from dataclasses import replace
from typing import TYPE_CHECKING

from joins.plan.types import Constant, Member, TypeName, array_type, map_type, row_type
from service.sql.expressions.arguments import Special, check_count
from service.sql.expressions.functions import Takes
from service.sql.expressions.nested_access import whole
from service.sql.expressions.scope import Typed
from service.sql.expressions.typed_values import retyped_null
from service.sql.grammar.expression_nodes import FunctionCall
from service.sql.grammar.type_parser import BOOLEAN, INT, type_text
from service.sql.text.script import Script

if TYPE_CHECKING:
    from service.sql.expressions.expression_planner import ExpressionPlanner


def _of_arrays(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    many = node.name == "ARRAY_CONCAT"
    check_count(script, node, 1 if many else 2, 10_000 if many else 2)
    values = [planner.plan(argument) for argument in node.arguments]
    for value in values:
        if not value.is_bare_null and value.type.name is not TypeName.ARRAY:
            raise _no_array(script, node, value)
    arrays = planner.common(values, node.at, node.name)
    if arrays[0].type.name is not TypeName.ARRAY:
        raise _no_array(script, node, values[0])
    return planner.call(node.name, arrays, arrays[0].type, node.at)


def _no_array(script: Script, node: FunctionCall, value: Typed) -> Exception:
    have = "NULL" if value.is_bare_null else type_text(value.type)[:200]
    return script.error(
        value.at, f"{node.name} takes an ARRAY, not {have}", hint="Write ARRAY[a, b]."
    )


def _with_element(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """An array and an element, each cast to their common type."""
    check_count(script, node, 2, 2)
    column = whole(planner, script, node, TypeName.ARRAY)
    member = column.type.members[0]
    value = planner.plan(node.arguments[1])
    if value.is_bare_null:
        element = retyped_null(value, member.type)
    elif node.name in ("ARRAY_APPEND", "ARRAY_PREPEND"):
        like = replace(column, expression=Constant(None, member.type))
        _, element = planner.common((like, value), node.at, node.name)
    else:
        what = f"the value that {node.name} takes with {type_text(column.type)[:200]}"
        element = planner.implicit_cast(value, member.type, what)
    kind = array_type(element.type, nullable=member.nullable or element.nullable)
    column = planner.cast(column, kind)
    if node.name == "ARRAY_POSITION":
        return planner.call(node.name, (column, element), INT, node.at)
    made = planner.call(node.name, (column, element), kind, node.at)
    return replace(made, nullable=column.nullable)


def _of_array(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    column = whole(planner, script, node, TypeName.ARRAY)
    return planner.call(node.name, (column,), column.type, node.at)


def _slice(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 2, 3)
    column = whole(planner, script, node, TypeName.ARRAY)
    bounds = [
        planner.argument(node.name, planner.plan(argument), Takes.WHOLE)
        for argument in node.arguments[1:]
    ]
    return planner.call(node.name, (column, *bounds), column.type, node.at)


def _sort(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 3)
    column = _ordered(planner, script, node)
    flags = []
    for argument in node.arguments[1:]:
        planned = planner.plan(argument)
        flags.append(planner.implicit_cast(planned, BOOLEAN, "an order of ARRAY_SORT"))
    return planner.call(node.name, (column, *flags), column.type, node.at)


def _ordered(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    column = whole(planner, script, node, TypeName.ARRAY)
    if column.type.members[0].type.is_nested:
        raise script.error(
            column.at,
            f"{node.name} takes no {type_text(column.type)[:200]}",
            hint="Rows, arrays and maps have no order: take a scalar part of each.",
        )
    return column


def _element(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    if node.name == "ELEMENT":
        column = whole(planner, script, node, TypeName.ARRAY)
    else:
        column = _ordered(planner, script, node)
        if column.type.members[0].type == BOOLEAN:
            raise script.error(
                column.at,
                f"{node.name} takes no ARRAY of BOOLEAN",
                hint="Write ARRAY_CONTAINS(x, TRUE).",
            )
    made = planner.call(node.name, (column,), column.type.members[0].type, node.at)
    return replace(made, nullable=True)


def _entries(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    column = whole(planner, script, node, TypeName.MAP)
    key, value = column.type.members
    row = row_type(
        Member("key", key.type, key.nullable), Member("value", value.type, value.nullable)
    )
    return planner.call(node.name, (column,), array_type(row, nullable=False), node.at)


def _from_arrays(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 2, 2)
    keys = whole(planner, script, node, TypeName.ARRAY)
    values = whole(planner, script, replace(node, arguments=node.arguments[1:]), TypeName.ARRAY)
    key, value = keys.type.members[0], values.type.members[0]
    of_key = Member("key", key.type, key.nullable)
    kind = map_type(value.type, key=of_key, nullable=value.nullable)
    return planner.call(node.name, (keys, values), kind, node.at)


def _union(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 10_000)
    values = [planner.plan(argument) for argument in node.arguments]
    for value in values:
        if value.is_bare_null or value.type.name is not TypeName.MAP:
            have = "NULL" if value.is_bare_null else type_text(value.type)[:200]
            raise script.error(
                value.at, f"MAP_UNION takes maps, not {have}", hint="Write MAP['key', value]."
            )
    maps = planner.common(values, node.at, node.name)
    return planner.call(node.name, maps, maps[0].type, node.at)


ARRAY_FUNCTIONS: dict[str, Special] = {
    **dict.fromkeys(("ARRAY_CONCAT", "ARRAY_UNION", "ARRAY_EXCEPT", "ARRAY_INTERSECT"), _of_arrays),
    **dict.fromkeys(
        ("ARRAY_APPEND", "ARRAY_PREPEND", "ARRAY_REMOVE", "ARRAY_POSITION"), _with_element
    ),
    **dict.fromkeys(("ARRAY_DISTINCT", "ARRAY_REVERSE"), _of_array),
    **dict.fromkeys(("ARRAY_MAX", "ARRAY_MIN", "ELEMENT"), _element),
    "ARRAY_SLICE": _slice,
    "ARRAY_SORT": _sort,
    "MAP_ENTRIES": _entries,
    "MAP_FROM_ARRAYS": _from_arrays,
    "MAP_UNION": _union,
}
