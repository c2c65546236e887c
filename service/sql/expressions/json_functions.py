"""Functions of JSON; paths are literals."""

from dataclasses import replace

from joins.kernels.expressions.json_functions import EMPTIES
from joins.kernels.expressions.json_paths import PathError, path_of
from joins.plan.types import SqlType, TypeName, array_type
from service.sql.expressions.arguments import (
    OperandPlanner,
    Special,
    check_count,
    literal_of,
    text_constant,
    word_of,
)
from service.sql.expressions.functions import Takes
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import CastNode, FunctionCall, Literal, Node
from service.sql.grammar.type_rules import (
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVALS,
    STRING,
    type_text,
)
from service.sql.text.script import Script

_SCALARS = (STRING, BOOLEAN, INT, DOUBLE)
_LISTS = (STRING, array_type(STRING))
_NESTING = ("JSON_OBJECT", "JSON_ARRAY", "JSON")


def _text_and_path(
    planner: OperandPlanner, script: Script, node: FunctionCall
) -> tuple[Typed, Typed]:
    text, path = (planner.plan(argument) for argument in node.arguments[:2])
    text = planner.argument(node.name, text, Takes.TEXT)
    written = literal_of(path)
    hint = "Write '$.a', '$[0]', '$.a[*].b' or \"$['a b']\" in single quotes, lax or strict."
    if written is None:
        raise script.error(path.at, f"the path of {node.name} must be a literal", hint=hint)
    try:
        path_of(written)
    except PathError as error:
        raise script.error(
            path.at, f'"{written[:100]}" is not a supported JSON path', hint=hint
        ) from error
    return text, path


def _exists(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    text, path = _text_and_path(planner, script, node)
    rule = word_of(node.arguments[2])
    made = planner.call("JSON_EXISTS", (text, path, text_constant(rule, node.at)), BOOLEAN, node.at)
    return replace(made, nullable=text.nullable or rule == "UNKNOWN")


def _returned(script: Script, node: Node, known: tuple[SqlType, ...]) -> SqlType:
    if isinstance(node, Literal):
        return STRING
    assert isinstance(node, CastNode), "the grammar reads a type"
    if node.type.type not in known:
        raise script.error(
            node.type.at,
            f"RETURNING {type_text(node.type.type)} is not supported",
            hint="Types are " + ", ".join(map(type_text, known)) + "; CAST the text to others.",
        )
    return node.type.type


def _value(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    text, path = _text_and_path(planner, script, node)
    kind = _returned(script, node.arguments[6], _SCALARS)
    rules = [text_constant(word_of(rule), node.at) for rule in node.arguments[2:4]]
    defaults = []
    for default in node.arguments[4:6]:
        planned = planner.plan(default)
        defaults.append(planner.implicit_cast(planned, kind, "the DEFAULT of JSON_VALUE"))
    made = planner.call("JSON_VALUE", (text, path, *rules, *defaults), kind, node.at)
    return replace(made, nullable=True)


def _query(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    text, path = _text_and_path(planner, script, node)
    kind = _returned(script, node.arguments[5], _LISTS)
    rules = [word_of(rule) for rule in node.arguments[2:5]]
    if kind.is_nested and "EMPTY OBJECT" in rules:
        raise script.error(
            node.at, "EMPTY OBJECT is not an ARRAY", hint="Write EMPTY ARRAY ON EMPTY, or ON ERROR."
        )
    words = [text_constant(rule, node.at) for rule in rules]
    made = planner.call("JSON_QUERY", (text, path, *words), kind, node.at)
    never = all(rule in (*EMPTIES, "ERROR") for rule in rules[1:])
    return replace(made, nullable=text.nullable or not never)


def _is_json(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    value = planner.argument("IS JSON", planner.plan(node.arguments[0]), Takes.TEXT)
    form = text_constant(word_of(node.arguments[1]), node.at)
    return planner.call("IS JSON", (value, form), BOOLEAN, node.at)


def _length(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 2)
    if len(node.arguments) == 2:
        arguments: tuple[Typed, ...] = _text_and_path(planner, script, node)
    else:
        value = planner.plan(node.arguments[0])
        arguments = (planner.argument(node.name, value, Takes.TEXT),)
    return replace(planner.call("JSON_LENGTH", arguments, INT, node.at), nullable=True)


def _written(script: Script, name: str, value: Typed) -> Typed:
    for leaf in value.type.leaves():
        if leaf.name in (*INTERVALS, TypeName.DATE, TypeName.TIME):
            raise script.error(
                value.at,
                f"{name} takes no {type_text(value.type)[:200]}",
                hint="Write CAST(… AS STRING).",
            )
    for kind in _nested(value.type):
        key = kind.members[0] if kind.name is TypeName.MAP else None
        if key is not None and (key.type != STRING or key.nullable):
            raise script.error(
                value.at,
                f"{name} takes no {type_text(value.type)[:200]}",
                hint="The keys of a MAP must be STRING and never NULL: write COALESCE(key, '').",
            )
    return value


def _nested(kind: SqlType) -> list[SqlType]:
    return [kind, *(inner for member in kind.members for inner in _nested(member.type))]


def _string(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    """JSON_STRING; of a constructor it is the constructor's JSON, not that JSON as a text."""
    check_count(script, node, 1, 1)
    (argument,) = node.arguments
    if isinstance(argument, FunctionCall) and argument.name in ("JSON_OBJECT", "JSON_ARRAY"):
        return planner.plan(argument)
    value = _written(script, node.name, planner.plan(argument))
    return planner.call("JSON_STRING", (value,), STRING, node.at)


def _object(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    rule, *parts = node.arguments
    values = []
    for at, part in enumerate(parts):
        if at % 2 == 0:
            key = planner.argument(node.name, planner.plan(part), Takes.TEXT)
            values.append(key)
        else:
            values.append(_part(planner, script, node, part))
    return _made(planner, node, word_of(rule), values)


def _array(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    rule, *parts = node.arguments
    values = [_part(planner, script, node, part) for part in parts]
    return _made(planner, node, word_of(rule), values)


def _part(planner: OperandPlanner, script: Script, node: FunctionCall, part: Node) -> Typed:
    if isinstance(part, FunctionCall) and part.name == "JSON":
        check_count(script, part, 1, 1)
        text = planner.argument("JSON", planner.plan(part.arguments[0]), Takes.TEXT)
        return replace(planner.call("JSON", (text,), STRING, part.at), nullable=True)
    return _written(script, node.name, planner.plan(part))


def _made(planner: OperandPlanner, node: FunctionCall, rule: str, values: list[Typed]) -> Typed:
    parts = node.arguments[1:]
    marks = "".join(
        "r" if isinstance(part, FunctionCall) and part.name in _NESTING else "v" for part in parts
    )
    arguments = (text_constant(rule, node.at), text_constant(marks, node.at), *values)
    return replace(planner.call(node.name, arguments, STRING, node.at), nullable=False)


def _outside(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    raise script.error(
        node.at,
        "JSON(text) stands outside of JSON_OBJECT and JSON_ARRAY",
        hint="Write JSON_OBJECT(KEY 'a' VALUE JSON(text)), or take the text itself.",
    )


JSON_FUNCTIONS: dict[str, Special] = {
    "JSON_EXISTS": _exists,
    "JSON_VALUE": _value,
    "JSON_QUERY": _query,
    "JSON_LENGTH": _length,
    "JSON_STRING": _string,
    "JSON_OBJECT": _object,
    "JSON_ARRAY": _array,
    "JSON": _outside,
    "IS JSON": _is_json,
}
