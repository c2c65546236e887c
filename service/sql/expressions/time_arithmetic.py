"""`time + INTERVAL` and `time - INTERVAL`: the plan has whole milliseconds or months instead."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from joins.plan.expressions import Constant
from joins.plan.types import SqlType, TypeName
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Node
from service.sql.grammar.interval_literals import MAX_INTERVAL_MS
from service.sql.grammar.type_rules import BIGINT, INSTANTS, INT, type_text
from service.sql.text.script import Script

_KINDS = (LiteralKind.INTERVAL, LiteralKind.INTERVAL_MONTHS)


@dataclass(frozen=True, slots=True)
class Interval:
    """An INTERVAL that is known when the script is planned.

    Attributes:
        kind: `INTERVAL`, whose size is milliseconds, or `INTERVAL_MONTHS`.
    """

    kind: LiteralKind
    size: int


class IntervalOperandPlanner(Protocol):
    """What plans the operand of an INTERVAL."""

    def plan(self, node: Node) -> Typed:
        """The typed form of a node."""
        ...

    def cast(self, value: Typed, target: SqlType, *, safe: bool = False) -> Typed:
        """The value as another type."""
        ...

    def call(self, name: str, arguments: Sequence[Typed], result: SqlType, at: int) -> Typed:
        """A call of a function."""
        ...


def interval_of(node: Node) -> Interval | None:
    """The INTERVAL that `node` is: a literal, or a sum of literals of one kind."""
    if isinstance(node, Literal):
        return Interval(node.kind, int(node.text)) if node.kind in _KINDS else None
    if not isinstance(node, FunctionCall) or node.name not in ("+", "-", "NEG"):
        return None
    parts = [interval_of(argument) for argument in node.arguments]
    if node.name == "NEG" and parts[0] is not None:
        return replace(parts[0], size=-parts[0].size)
    if len(parts) != 2 or parts[0] is None or parts[1] is None or parts[0].kind != parts[1].kind:
        return None
    sign = 1 if node.name == "+" else -1
    return replace(parts[0], size=parts[0].size + sign * parts[1].size)


def shifted(planner: IntervalOperandPlanner, script: Script, node: FunctionCall) -> Typed | None:
    """A time and an INTERVAL, added or subtracted; None for arithmetic without an INTERVAL.

    Raises:
        SqlError: an INTERVAL meets something that is no TIMESTAMP.
    """
    if node.name not in ("+", "-"):
        return None
    time, interval = node.arguments[0], interval_of(node.arguments[1])
    if interval is None and node.name == "+":
        time, interval = node.arguments[1], interval_of(node.arguments[0])
    if interval is None:
        return None
    _check_size(script, interval, node.at)
    value = planner.plan(time)
    if value.is_bare_null:
        null = Constant(None, SqlType(TypeName.TIMESTAMP, 3))
        return Typed(null, nullable=True, at=node.at)
    if value.type.name not in INSTANTS:
        raise script.error(
            value.at,
            f'"{node.name}" with an INTERVAL takes TIMESTAMP, not {type_text(value.type)}',
            hint="Write CAST(… AS TIMESTAMP(3)), or TO_TIMESTAMP_LTZ(…, 3) for milliseconds.",
        )
    return _moved(planner, value, replace(interval, size=_signed(node, interval)), node.at)


def _signed(node: FunctionCall, interval: Interval) -> int:
    return interval.size if node.name == "+" else -interval.size


def _moved(planner: IntervalOperandPlanner, value: Typed, by: Interval, at: int) -> Typed:
    if by.kind is LiteralKind.INTERVAL_MONTHS:
        months = Typed(Constant(str(by.size), INT), nullable=False, at=at)
        return planner.call("ADD_MONTHS", (value, months), value.type, at)
    result = value.type
    if by.size % 1_000 and result.precision < 3:
        result = SqlType(result.name, 3)
    size = Typed(Constant(str(abs(by.size)), BIGINT), nullable=False, at=at)
    name = "-" if by.size < 0 else "+"
    return planner.call(name, (planner.cast(value, result), size), result, at)


def _check_size(script: Script, interval: Interval, at: int) -> None:
    most = MAX_INTERVAL_MS if interval.kind is LiteralKind.INTERVAL else MAX_INTERVAL_MS // 10**9
    if abs(interval.size) > most:
        raise script.error(
            at, "the INTERVAL is longer than 10,000 years", hint="Use a shorter one."
        )
