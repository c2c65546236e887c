"""ROW, ARRAY and MAP: access, constructors, functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from joins.plan.types import Constant, Member, SqlType, TypeName, array_type, map_type, row_type
from service.sql.expressions.arguments import Special, check_count
from service.sql.expressions.functions import Takes
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
        element = planner.retyped_null(value, member.type)
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
