"""Functions of JSON, whose paths are literals, and of texts and types with special rules."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from joins.kernels.expressions.json_functions import EMPTIES
from joins.kernels.expressions.json_paths import PathError, path_of
from joins.plan.types import Call, Case, Cast, Constant, Expression, SqlType, TypeName, array_type
from service.sql.expressions.arguments import (
    Special,
    check_count,
    literal_of,
    text_constant,
    word_of,
)
from service.sql.expressions.functions import MAX_PADDED_LENGTH, PADDING, Takes
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import CastNode, FunctionCall, Literal, Node
from service.sql.grammar.type_parser import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    INTEGERS,
    INTERVALS,
    STRING,
    type_text,
)
from service.sql.text.script import Script

if TYPE_CHECKING:
    from service.sql.expressions.expression_planner import ExpressionPlanner

MAX_GROWTH = 256
MAX_REPEATED = 1 << 20
_GROWTH_OF_ANY_TEXT = 100


def check_length(script: Script, at: int, call: str, arguments: Sequence[Typed]) -> None:
    """Refuse the call at `at` if the length of its result is unbounded."""
    if call in PADDING:
        check_padding(script, arguments[1])
    if call == "REPEAT" and _repeated(*(a.expression for a in arguments)) > MAX_REPEATED:
        raise script.error(
            at,
            f"REPEAT may make a text more than {MAX_REPEATED:,} times as long",
            hint="Lower the count, and do not nest functions that lengthen a text.",
        )
    if call == "REPLACE" and _replaced(*(a.expression for a in arguments)) > MAX_GROWTH:
        raise script.error(
            at,
            f"REPLACE may make a text more than {MAX_GROWTH} times as long",
            hint="Shorten the replacement, and do not nest replacements that make a text longer.",
        )


def check_padding(script: Script, length: Typed) -> None:
    """Refuse padding to a length that is not a literal, or too large."""
    value, highest = length.expression, MAX_PADDED_LENGTH
    if isinstance(value, Constant) and (value.value is None or int(value.value) <= highest):
        return
    raise script.error(
        length.at,
        f"the length must be a literal up to {highest:,}",
        hint="Write LPAD(text, 10, '0').",
    )


def _growth(expression: Expression) -> float:
    """Upper bound of the result's length as a multiple of the length of its texts."""
    if isinstance(expression, Cast):
        return _growth(expression.operand)
    if isinstance(expression, Case):
        values = [value for _, value in expression.branches]
        if expression.otherwise is not None:
            values.append(expression.otherwise)
        return max(_growth(value) for value in values)
    if not isinstance(expression, Call):
        return 1.0
    if expression.function == "REPLACE":
        return _replaced(*expression.arguments)
    if expression.function == "REPEAT":
        return _repeated(*expression.arguments)
    grown = [_growth(argument) for argument in expression.arguments]
    return sum(grown) if expression.function.startswith("CONCAT") else max(grown, default=1.0)


def _repeated(text: Expression, count: Expression) -> float:
    times = int(count.value or 0) if isinstance(count, Constant) else 1
    return _growth(text) * max(1, times)


def _replaced(text: Expression, old: Expression, new: Expression) -> float:
    added = _GROWTH_OF_ANY_TEXT * _growth(new)
    if isinstance(new, Constant):
        old_length = len(old.value or "") if isinstance(old, Constant) else 1
        added = len(new.value or "") / max(1, old_length)
    return _growth(text) * max(1.0, added)


_CONSTANTS = {"PI": math.pi, "E": math.e}


def _constant(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 0, 0)
    value = Constant(repr(_CONSTANTS[node.name]), DOUBLE)
    return Typed(value, nullable=False, at=node.at)


def _hex(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    value = planner.plan(node.arguments[0])
    if value.type in (STRING, BYTES):
        text = planner.argument(node.name, value, Takes.TEXT_OR_BYTES)
        return planner.call("HEX_TEXT", (text,), STRING, node.at)
    number = planner.argument(node.name, value, Takes.LONG)
    return planner.call("HEX", (number,), STRING, node.at)


def _instr(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`INSTR(text, part[, start[, occurrence]])`; POSITION where it is the first."""
    check_count(script, node, 2, 4)
    values = [planner.plan(argument) for argument in node.arguments]
    texts = [planner.argument(node.name, value, Takes.TEXT) for value in values[:2]]
    if len(values) == 2:
        return planner.call("POSITION", texts[::-1], INT, node.at)
    counts = [planner.argument(node.name, value, Takes.WHOLE) for value in values[2:]]
    return planner.call("INSTR", (*texts, *counts), INT, node.at)


def _locate(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`LOCATE(part, text[, start])`; POSITION without a start."""
    check_count(script, node, 2, 3)
    values = [planner.plan(argument) for argument in node.arguments]
    texts = [planner.argument(node.name, value, Takes.TEXT) for value in values[:2]]
    starts = [planner.argument(node.name, value, Takes.WHOLE) for value in values[2:]]
    call = "LOCATE" if starts else "POSITION"
    return planner.call(call, (*texts, *starts), INT, node.at)


def _split_index(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`SPLIT_INDEX(text, delimiter, index)`; a number is the code of the delimiter."""
    check_count(script, node, 3, 3)
    values = [planner.plan(argument) for argument in node.arguments]
    text = planner.argument(node.name, values[0], Takes.TEXT)
    is_code = values[1].type.name in INTEGERS
    delimiter = planner.argument(node.name, values[1], Takes.WHOLE if is_code else Takes.TEXT)
    index = planner.argument(node.name, values[2], Takes.WHOLE)
    call = "SPLIT_INDEX_AT" if is_code else "SPLIT_INDEX"
    made = planner.call(call, (text, delimiter, index), STRING, node.at)
    return replace(made, nullable=True)


def _elt(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`ELT(index, text, …)`: texts, or all BYTES."""
    check_count(script, node, 2, 10_000)
    values = [planner.plan(argument) for argument in node.arguments]
    index = planner.argument(node.name, values[0], Takes.LONG)
    parts = [planner.argument(node.name, value, Takes.TEXT_OR_BYTES) for value in values[1:]]
    parts = planner.common(parts, node.at, node.name)
    made = planner.call(node.name, (index, *parts), parts[0].type, node.at)
    return replace(made, nullable=True)


def _printf(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 10_000)
    pattern, *values = [planner.plan(argument) for argument in node.arguments]
    pattern = planner.argument(node.name, pattern, Takes.TEXT)
    for value in values:
        if value.type.is_nested or value.type.name is TypeName.BYTES:
            raise script.error(
                value.at,
                f"PRINTF takes no {type_text(value.type)[:200]}",
                hint="Write CAST(… AS STRING).",
            )
    made = planner.call(node.name, (pattern, *values), STRING, node.at)
    return replace(made, nullable=True)


def _typeof(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`TYPEOF(value[, serializable])`: the name of the value's type, known at planning time."""
    check_count(script, node, 1, 2)
    value = planner.plan(node.arguments[0])
    name = "NULL" if value.is_bare_null else type_text(value.type)
    if not value.nullable and not value.is_bare_null:
        name += " NOT NULL"
    return Typed(Constant(name, STRING), nullable=False, at=node.at)


def _rand(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """`RAND(seed)`, `RAND_INTEGER(seed, bound)`: deterministic for a seed from the record."""
    most = 1 if node.name == "RAND" else 2
    values = [planner.plan(argument) for argument in node.arguments]
    if len(values) != most or (literal_of(values[0]) is not None):
        raise script.error(
            node.at,
            f"function {node.name} without a seed from the record",
            hint=f"Write {node.name}(seed{', 10' if most == 2 else ''}) with a column as the "
            f"seed; without one a retried batch gives other rows.",
        )
    numbers = [planner.argument(node.name, value, Takes.WHOLE) for value in values]
    kind = DOUBLE if node.name == "RAND" else INT
    return planner.call(node.name, numbers, kind, node.at)


OTHER_FUNCTIONS: dict[str, Special] = {
    "PI": _constant,
    "E": _constant,
    "HEX": _hex,
    "INSTR": _instr,
    "LOCATE": _locate,
    "SPLIT_INDEX": _split_index,
    "ELT": _elt,
    "PRINTF": _printf,
    "TYPEOF": _typeof,
    "RAND": _rand,
    "RAND_INTEGER": _rand,
}


_SCALARS = (STRING, BOOLEAN, INT, DOUBLE)
_LISTS = (STRING, array_type(STRING))
_NESTING = ("JSON_OBJECT", "JSON_ARRAY", "JSON")


def _text_and_path(
    planner: "ExpressionPlanner", script: Script, node: FunctionCall
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


def _exists(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
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


def _value(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    text, path = _text_and_path(planner, script, node)
    kind = _returned(script, node.arguments[6], _SCALARS)
    rules = [text_constant(word_of(rule), node.at) for rule in node.arguments[2:4]]
    defaults = []
    for default in node.arguments[4:6]:
        planned = planner.plan(default)
        defaults.append(planner.implicit_cast(planned, kind, "the DEFAULT of JSON_VALUE"))
    made = planner.call("JSON_VALUE", (text, path, *rules, *defaults), kind, node.at)
    return replace(made, nullable=True)


def _query(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
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


def _is_json(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    value = planner.argument("IS JSON", planner.plan(node.arguments[0]), Takes.TEXT)
    form = text_constant(word_of(node.arguments[1]), node.at)
    return planner.call("IS JSON", (value, form), BOOLEAN, node.at)


def _length(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
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


def _string(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    """JSON_STRING; of a constructor it is the constructor's JSON, not that JSON as a text."""
    check_count(script, node, 1, 1)
    (argument,) = node.arguments
    if isinstance(argument, FunctionCall) and argument.name in ("JSON_OBJECT", "JSON_ARRAY"):
        return planner.plan(argument)
    value = _written(script, node.name, planner.plan(argument))
    return planner.call("JSON_STRING", (value,), STRING, node.at)


def _object(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    rule, *parts = node.arguments
    values = []
    for at, part in enumerate(parts):
        if at % 2 == 0:
            key = planner.argument(node.name, planner.plan(part), Takes.TEXT)
            values.append(key)
        else:
            values.append(_part(planner, script, node, part))
    return _made(planner, node, word_of(rule), values)


def _array(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
    rule, *parts = node.arguments
    values = [_part(planner, script, node, part) for part in parts]
    return _made(planner, node, word_of(rule), values)


def _part(planner: "ExpressionPlanner", script: Script, node: FunctionCall, part: Node) -> Typed:
    if isinstance(part, FunctionCall) and part.name == "JSON":
        check_count(script, part, 1, 1)
        text = planner.argument("JSON", planner.plan(part.arguments[0]), Takes.TEXT)
        return replace(planner.call("JSON", (text,), STRING, part.at), nullable=True)
    return _written(script, node.name, planner.plan(part))


def _made(
    planner: "ExpressionPlanner", node: FunctionCall, rule: str, values: list[Typed]
) -> Typed:
    parts = node.arguments[1:]
    marks = "".join(
        "r" if isinstance(part, FunctionCall) and part.name in _NESTING else "v" for part in parts
    )
    arguments = (text_constant(rule, node.at), text_constant(marks, node.at), *values)
    return replace(planner.call(node.name, arguments, STRING, node.at), nullable=False)


def _outside(planner: "ExpressionPlanner", script: Script, node: FunctionCall) -> Typed:
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
