"""Access to ROW, ARRAY and MAP, and their constructors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from joins.plan.types import Constant, Member, SqlType, TypeName, array_type, map_type, row_type
from service.sql.expressions.arguments import Special, check_count
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal
from service.sql.grammar.type_parser import (
    BOOLEAN,
    INT,
    INTEGERS,
    MAX_TYPE_DEPTH,
    MAX_TYPE_SIZE,
    STRING,
    is_implicit,
    type_text,
)
from service.sql.text.script import Script, suggestion

if TYPE_CHECKING:
    from service.sql.expressions.expression_planner import ExpressionPlanner

PARTS_HINT = "Take a scalar value out of it: payload.field, elements[1] or labels['key']."


def refuse_nested(script: Script, values: Sequence[Typed], what: str) -> None:
    for value in values:
        if value.type.is_nested:
            raise script.error(
                value.at, f"{what} takes no {type_text(value.type)}", hint=PARTS_HINT
            )


def field_of(planner: "ExpressionPlanner", script: Script, row: Typed, name: Literal) -> Typed:
    if row.type.name is not TypeName.ROW:
        raise script.error(
            name.at,
            f'"{name.text}" is read from {_type_of(row)}, which has no fields',
            hint="Only a ROW has fields; write elements[1] of an ARRAY and labels['key'] of a MAP.",
        )
    by_name = {member.name: member for member in row.type.members}
    member = by_name.get(name.text)
    if member is None:
        raise script.error(
            name.at,
            f'unknown field "{name.text}" of {type_text(row.type)[:200]}',
            hint=suggestion(name.text, by_name, f"Fields are {', '.join(list(by_name)[:30])}."),
        )
    key = Typed(Constant(name.text, STRING), nullable=False, at=name.at)
    field = planner.call(".", (row, key), member.type, row.at)
    return replace(field, nullable=row.nullable or member.nullable)


def element_of(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`array[index]` and `map[key]`; NULL without such an element."""
    column, key = (planner.plan(argument) for argument in node.arguments)
    if column.type.name is TypeName.MAP:
        kind = column.type.members[0].type
        expected, fits = type_text(kind), key.type == kind
        if not fits and not kind.is_nested and is_implicit(key.type, kind):
            key, fits = planner.cast(key, kind), True
    elif column.type.name is TypeName.ARRAY:
        expected, fits = "an integer", key.type.name in INTEGERS
    else:
        raise script.error(
            node.at,
            f"[…] is read from {_type_of(column)}, which has no elements",
            hint="Write elements[1] of an ARRAY, labels['key'] of a MAP, payload.field of a ROW.",
        )
    if key.is_bare_null or not fits or key.type.is_nested:
        have = "NULL" if key.is_bare_null else type_text(key.type)
        raise script.error(
            key.at,
            f"the index of {column.type.name} is {have}, expected {expected}",
            hint="Write elements[1] of an ARRAY, labels['key'] of a MAP.",
        )
    _check_index(script, column, key)
    member = column.type.members[-1]
    return replace(planner.call("[]", (column, key), member.type, column.at), nullable=True)


def cardinality(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    column = whole(planner, script, node, TypeName.ARRAY, TypeName.MAP)
    return planner.call("CARDINALITY", (column,), INT, node.at)


def entries_of(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    column = whole(planner, script, node, TypeName.MAP)
    member = column.type.members[0 if node.name == "MAP_KEYS" else 1]
    kind = array_type(member.type, nullable=member.nullable)
    return planner.call(node.name, (column,), kind, node.at)


def array_contains(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`ARRAY_CONTAINS(array, value)`: NULL for a NULL array; it also finds a NULL value."""
    check_count(script, node, 2, 2)
    column = whole(planner, script, node, TypeName.ARRAY)
    element = column.type.members[0].type
    what = f"the value that ARRAY_CONTAINS looks for in {type_text(column.type)}"
    value = planner.implicit_cast(planner.plan(node.arguments[1]), element, what)
    contains = planner.call("ARRAY_CONTAINS", (column, value), BOOLEAN, node.at)
    return replace(contains, nullable=column.nullable)


def array_join(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`ARRAY_JOIN(texts, delimiter[, text for NULL])`: without the third, NULLs are skipped."""
    check_count(script, node, 2, 3)
    column = whole(planner, script, node, TypeName.ARRAY)
    if column.type.members[0].type != STRING:
        raise script.error(
            column.at,
            f"ARRAY_JOIN takes an ARRAY of texts, not {_type_of(column)}",
            hint="Write CAST(… AS ARRAY<STRING>) if its elements are scalar.",
        )
    texts = [
        planner.implicit_cast(planner.plan(argument), STRING, "an argument of ARRAY_JOIN")
        for argument in node.arguments[1:]
    ]
    return planner.call("ARRAY_JOIN", (column, *texts), STRING, node.at)


def whole(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall, *kinds: TypeName
) -> Typed:
    """The first argument, which must be of one of `kinds`."""
    column = planner.plan(node.arguments[0])
    if column.type.name not in kinds or column.is_bare_null:
        names = " or ".join(f"{'an' if kind.value[0] == 'A' else 'a'} {kind}" for kind in kinds)
        text = node.name == "CARDINALITY" and column.type == STRING
        raise script.error(
            column.at,
            f"{node.name} takes {names}, not {_type_of(column)}",
            hint="Use CHAR_LENGTH for texts." if text else "Name such a column.",
        )
    return column


def row_of(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`ROW(a, b)`: its fields are `EXPR$0`, `EXPR$1`."""
    check_count(script, node, 1, MAX_TYPE_SIZE - 1)
    values = [planner.plan(argument) for argument in node.arguments]
    fields = (Member(f"EXPR${at}", value.type, value.nullable) for at, value in enumerate(values))
    return _made(planner, script, node, values, row_type(*fields))


def array_of(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    planned = [planner.plan(argument) for argument in node.arguments]
    elements = planner.common(planned, node.at, "ARRAY")
    nullable = any(element.nullable for element in elements)
    kind = array_type(elements[0].type, nullable=nullable)
    return _made(planner, script, node, elements, kind)


def map_of(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    planned = [planner.plan(argument) for argument in node.arguments]
    keys, values = planned[::2], planned[1::2]
    if len(keys) > len(values):
        raise script.error(
            keys[-1].at, "the last key of MAP has no value", hint="Write MAP['key', value, …]."
        )
    for key in keys:
        if key.is_bare_null:
            raise script.error(key.at, "a key of MAP is NULL", hint="Write MAP['key', value, …].")
    keys = planner.common(keys, node.at, "MAP")
    values = planner.common(values, node.at, "MAP")
    nullable = any(value.nullable for value in values)
    of_key = Member("key", keys[0].type, any(key.nullable for key in keys))
    kind = map_type(values[0].type, key=of_key, nullable=nullable)
    pairs = [part for pair in zip(keys, values, strict=True) for part in pair]
    return _made(planner, script, node, pairs, kind)


def _made(
    planner: "ExpressionPlanner",
    script: Script,
    node: FunctionCall,
    values: Sequence[Typed],
    kind: SqlType,
) -> Typed:
    for value in values:
        if value.is_bare_null:
            raise script.error(
                value.at,
                f"a part of {node.name} is {_type_of(value)}",
                hint="Write CAST(NULL AS TYPE).",
            )
    if kind.depth > MAX_TYPE_DEPTH:
        raise script.error(
            node.at,
            f"the type is nested more than {MAX_TYPE_DEPTH} levels deep",
            hint="Select the parts as separate columns.",
        )
    return replace(planner.call(node.name, values, kind, node.at), nullable=False)


def _check_index(script: Script, column: Typed, key: Typed) -> None:
    value = key.expression
    if column.type.name is not TypeName.ARRAY or not isinstance(value, Constant):
        return
    if value.value is not None and int(value.value) < 1:
        raise script.error(
            key.at, f"the index of ARRAY is {value.value}", hint="The first element is [1]."
        )


def _field(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    row, name = node.arguments
    assert isinstance(name, Literal), "the grammar reads a name behind the point"
    return field_of(planner, script, planner.plan(row), name)


def _type_of(value: Typed) -> str:
    return "NULL" if value.is_bare_null else type_text(value.type)[:200]


NESTED: dict[str, Special] = {
    ".": _field,
    "[]": element_of,
    "CARDINALITY": cardinality,
    "ROW": row_of,
    "ARRAY": array_of,
    "MAP": map_of,
    "MAP_KEYS": entries_of,
    "MAP_VALUES": entries_of,
    "ARRAY_CONTAINS": array_contains,
    "ARRAY_JOIN": array_join,
}
