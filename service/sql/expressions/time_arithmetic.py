"""INTERVAL arithmetic in whole milliseconds or months; an INTERVAL is also a value."""

from dataclasses import dataclass, replace

from joins.plan.types import Call, Constant, Expression, SqlType, TypeName
from service.sql.expressions.arguments import OperandPlanner
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Node
from service.sql.grammar.literal_parser import MAX_INTERVAL_MS
from service.sql.grammar.type_rules import (
    BIGINT,
    INT,
    INTEGERS,
    INTERVALS,
    NUMERIC,
    TEMPORAL,
    type_text,
)
from service.sql.text.script import Script

_KINDS = {
    LiteralKind.INTERVAL: LiteralKind.INTERVAL,
    LiteralKind.INTERVAL_DAYS: LiteralKind.INTERVAL,
    LiteralKind.INTERVAL_MONTHS: LiteralKind.INTERVAL_MONTHS,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """An INTERVAL known at planning time, in milliseconds, or in months for `INTERVAL_MONTHS`."""

    kind: LiteralKind
    size: int


def interval_of(node: Node) -> Interval | None:
    """The INTERVAL of `node`, a literal or a sum of literals of one kind; else None."""
    if isinstance(node, Literal):
        kind = _KINDS.get(node.kind)
        return None if kind is None else Interval(kind, int(node.text))
    if not isinstance(node, FunctionCall) or node.name not in ("+", "-", "NEG"):
        return None
    parts = [interval_of(argument) for argument in node.arguments]
    if node.name == "NEG" and parts[0] is not None:
        return replace(parts[0], size=-parts[0].size)
    if len(parts) != 2 or parts[0] is None or parts[1] is None or parts[0].kind != parts[1].kind:
        return None
    sign = 1 if node.name == "+" else -1
    return replace(parts[0], size=parts[0].size + sign * parts[1].size)


def shifted(
    planner: OperandPlanner, script: Script, node: FunctionCall, both: tuple[Typed, Typed]
) -> Typed | None:
    """Arithmetic with an INTERVAL; None for arithmetic without one."""
    if node.name not in ("+", "-", "*"):
        return None
    left, right = both
    names = (left.type.name, right.type.name)
    if not set(names) & INTERVALS or (left.is_bare_null and right.is_bare_null):
        return None
    if node.name == "*":
        return _multiplied(planner, script, (left, right), node.at)
    if set(names) <= INTERVALS:
        return _of_intervals(planner, node, left, right)
    if node.name == "+" and names[0] in INTERVALS:
        left, right = right, left
    if right.type.name not in INTERVALS:
        raise _unfit(script, node, right)
    return moved(planner, script, left, right, node)


def _of_intervals(planner: OperandPlanner, node: FunctionCall, left: Typed, right: Typed) -> Typed:
    first, second = planner.common((left, right), node.at, f'"{node.name}"')
    return planner.call(node.name, (first, second), first.type, node.at)


def _multiplied(
    planner: OperandPlanner, script: Script, both: tuple[Typed, Typed], at: int
) -> Typed:
    left, right = both if both[0].type.name in INTERVALS else both[::-1]
    if right.type.name not in NUMERIC or right.is_bare_null:
        raise script.error(
            right.at,
            f'"*" of an INTERVAL takes a number, not {type_text(right.type)}',
            hint="Write INTERVAL '1' SECOND * 3.",
        )
    return planner.call("*", (left, right), left.type, at)


def moved(
    planner: OperandPlanner, script: Script, time: Typed, by: Typed, node: FunctionCall
) -> Typed:
    """`time` plus or minus an INTERVAL of milliseconds or months."""
    if time.is_bare_null:
        null = Constant(None, SqlType(TypeName.TIMESTAMP, 3))
        return Typed(null, nullable=True, at=node.at)
    if time.type.name not in TEMPORAL:
        raise _unfit(script, node, time)
    sign = "-" if node.name == "-" else "+"
    if by.type.name is TypeName.INTERVAL_MONTH:
        return planner.call("ADD_MONTHS", (time, _months(planner, by, sign)), time.type, node.at)
    result = _result(time.type, by)
    value = planner.cast(time, result)
    constant = by.expression
    if isinstance(constant, Constant) and constant.value is not None:
        size = int(constant.value) * (-1 if sign == "-" else 1)
        sign = "-" if size < 0 else "+"
        by = Typed(Constant(str(abs(size)), BIGINT), nullable=False, at=by.at)
    return planner.call(sign, (value, by), result, node.at)


def _result(time: SqlType, by: Typed) -> SqlType:
    if time.name is TypeName.DATE:
        return SqlType(TypeName.TIMESTAMP, 6) if by.type.precision else time
    return time if _is_whole(by.expression) or time.precision >= 3 else SqlType(time.name, 3)


def _is_whole(by: Expression) -> bool:
    if isinstance(by, Call) and by.function == "*" and by.arguments[1].type.name in INTEGERS:
        return _is_whole(by.arguments[0])
    return isinstance(by, Constant) and int(by.value or 0) % 1_000 == 0


def _months(planner: OperandPlanner, by: Typed, sign: str) -> Typed:
    constant = by.expression
    if isinstance(constant, Constant) and constant.value is not None:
        count = int(constant.value) * (-1 if sign == "-" else 1)
        return Typed(Constant(str(count), INT), nullable=False, at=by.at)
    return planner.call("NEG", (by,), by.type, by.at) if sign == "-" else by


def _unfit(script: Script, node: FunctionCall, value: Typed) -> Exception:
    return script.error(
        value.at,
        f'"{node.name}" with an INTERVAL takes a time, not {type_text(value.type)}',
        hint="Write CAST(… AS TIMESTAMP(3)), or TO_TIMESTAMP_LTZ(…, 3) for milliseconds.",
    )


def _check_size(script: Script, interval: Interval, at: int) -> None:
    most = MAX_INTERVAL_MS if interval.kind is LiteralKind.INTERVAL else MAX_INTERVAL_MS // 10**9
    if abs(interval.size) > most:
        raise script.error(
            at, "the INTERVAL is longer than 10,000 years", hint="Use a shorter one."
        )


def folded_interval(script: Script, node: FunctionCall) -> Typed | None:
    """The value of an INTERVAL known at planning time; None for another node."""
    interval = interval_of(node)
    if interval is None:
        return None
    _check_size(script, interval, node.at)
    if interval.kind is LiteralKind.INTERVAL_MONTHS:
        kind = SqlType(TypeName.INTERVAL_MONTH)
    else:
        kind = SqlType(TypeName.INTERVAL_SECOND, 0 if _is_of_days(node) else 3)
    return Typed(Constant(str(interval.size), kind), nullable=False, at=node.at)


def _is_of_days(node: Node) -> bool:
    if isinstance(node, FunctionCall):
        return all(map(_is_of_days, node.arguments))
    return isinstance(node, Literal) and node.kind is LiteralKind.INTERVAL_DAYS
