"""Functions with special rules for arguments, except those of times, JSON and arrays."""

import math
from collections.abc import Sequence
from dataclasses import replace

from joins.plan.types import Call, Case, Cast, Constant, Expression, TypeName
from service.sql.expressions.arguments import OperandPlanner, Special, check_count, literal_of
from service.sql.expressions.functions import MAX_PADDED_LENGTH, PADDING, Takes
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall
from service.sql.grammar.type_rules import BYTES, DOUBLE, INT, INTEGERS, STRING, type_text
from service.sql.text.script import Script

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


def _constant(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 0, 0)
    value = Constant(repr(_CONSTANTS[node.name]), DOUBLE)
    return Typed(value, nullable=False, at=node.at)


def _hex(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    check_count(script, node, 1, 1)
    value = planner.plan(node.arguments[0])
    if value.type in (STRING, BYTES):
        text = planner.argument(node.name, value, Takes.TEXT_OR_BYTES)
        return planner.call("HEX_TEXT", (text,), STRING, node.at)
    number = planner.argument(node.name, value, Takes.LONG)
    return planner.call("HEX", (number,), STRING, node.at)


def _instr(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    """`INSTR(text, part[, start[, occurrence]])`; POSITION where it is the first."""
    check_count(script, node, 2, 4)
    values = [planner.plan(argument) for argument in node.arguments]
    texts = [planner.argument(node.name, value, Takes.TEXT) for value in values[:2]]
    if len(values) == 2:
        return planner.call("POSITION", texts[::-1], INT, node.at)
    counts = [planner.argument(node.name, value, Takes.WHOLE) for value in values[2:]]
    return planner.call("INSTR", (*texts, *counts), INT, node.at)


def _locate(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    """`LOCATE(part, text[, start])`; POSITION without a start."""
    check_count(script, node, 2, 3)
    values = [planner.plan(argument) for argument in node.arguments]
    texts = [planner.argument(node.name, value, Takes.TEXT) for value in values[:2]]
    starts = [planner.argument(node.name, value, Takes.WHOLE) for value in values[2:]]
    call = "LOCATE" if starts else "POSITION"
    return planner.call(call, (*texts, *starts), INT, node.at)


def _split_index(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
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


def _elt(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    """`ELT(index, text, …)`: texts, or all BYTES."""
    check_count(script, node, 2, 10_000)
    values = [planner.plan(argument) for argument in node.arguments]
    index = planner.argument(node.name, values[0], Takes.LONG)
    parts = [planner.argument(node.name, value, Takes.TEXT_OR_BYTES) for value in values[1:]]
    parts = planner.common(parts, node.at, node.name)
    made = planner.call(node.name, (index, *parts), parts[0].type, node.at)
    return replace(made, nullable=True)


def _printf(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
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


def _typeof(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
    """`TYPEOF(value[, serializable])`: the name of the value's type, known at planning time."""
    check_count(script, node, 1, 2)
    value = planner.plan(node.arguments[0])
    name = "NULL" if value.is_bare_null else type_text(value.type)
    if not value.nullable and not value.is_bare_null:
        name += " NOT NULL"
    return Typed(Constant(name, STRING), nullable=False, at=node.at)


def _rand(planner: OperandPlanner, script: Script, node: FunctionCall) -> Typed:
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
