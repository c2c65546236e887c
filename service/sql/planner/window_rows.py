"""Rows of a window without an aggregate, and ROW_NUMBER() over the rows or results of a window."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joins.plan.plan import (
    ROW_NUMBER,
    WINDOW,
    Aggregate,
    AggregateKind,
    OutputColumn,
    SortKey,
    TopN,
    Windowing,
    WindowKind,
)
from joins.plan.types import (
    Call,
    Column,
    Constant,
    Expression,
    Member,
    SqlType,
    TypeName,
    array_type,
    row_type,
    with_parts,
)
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.nested_access import refuse_nested
from service.sql.expressions.scope import NameScope, Typed
from service.sql.grammar.expression_nodes import RowNumberNode
from service.sql.grammar.query_parser import MAX_COLUMNS
from service.sql.grammar.type_rules import BIGINT
from service.sql.planner.aggregate_planner import is_of_window, window_column
from service.sql.planner.join_planner import split
from service.sql.planner.newest_rows import time_attribute
from service.sql.planner.update_sinks import refuse_unkept
from service.sql.planner.window_planner import WINDOW_COLUMNS, OpenWindow, check_count
from service.sql.text.script import OUTSIDE, Script

_NUMBER = Column(WINDOW, ROW_NUMBER, BIGINT)
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
RANK_FORM = (
    "Write SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
    "ORDER BY x DESC) AS row_num FROM …) WHERE row_num <= 3."
)


@dataclass(slots=True)
class WindowRank:
    """ROW_NUMBER() over the rows of a window that is open, or over the results of a window.

    `partition` is without the bounds of the window. `conditions` are those of the numbered rows.
    """

    partition: list[Typed]
    order: list[tuple[Typed, SortKey]]
    newest_first: bool
    at: int
    first: int = 1
    last: int | None = None
    conditions: list[Typed] = field(default_factory=list)

    def take(self, condition: Typed) -> None:
        """Take a condition of the query around it."""
        for part in split(condition):
            limits = _limits(part.expression)
            if limits is None:
                self.conditions.append(part)
                continue
            first, last = limits
            self.first = max(self.first, first)
            if last is not None:
                self.last = last if self.last is None else min(self.last, last)

    def check(self, script: Script) -> None:
        if self.last is None:
            raise script.error(
                self.at, "ROW_NUMBER() of a window without a greatest number", hint=RANK_FORM
            )

    def planned(self, script: Script, over_window: Callable[[Expression], Expression]) -> TopN:
        """The rank; `over_window` gives expressions over the relation of the windows."""
        self.check(script)
        order = [
            replace(key, expression=over_window(typed.expression)) for typed, key in self.order
        ]
        return TopN(
            partition=tuple(over_window(each.expression) for each in self.partition),
            order=tuple(order),
            first=self.first,
            last=self.last or 0,
            newest_first=self.newest_first,
            having=conjunction(script, self.conditions, over_window),
        )


def window_rank(
    script: Script, planner: ExpressionPlanner, scope: NameScope, node: RowNumberNode
) -> tuple[WindowRank, Typed]:
    """The rank of a window, and its number."""
    partition = [planner.plan(part) for part in node.partition]
    bounds = {window_column(each.expression) for each in partition}
    if not {"window_start", "window_end"} <= bounds:
        raise script.error(
            node.at,
            "ROW_NUMBER() of a window without window_start and window_end in PARTITION BY",
            hint=RANK_FORM,
        )
    keys = [each for each in partition if not _is_bound(each)]
    _check_keys(script, keys)
    order = []
    for part in node.order:
        typed = planner.plan(part.expression)
        refuse_nested(script, (typed,), "ORDER BY")
        if not _is_bound(typed):
            key = SortKey(typed.expression, part.descending, part.nulls_last)
            order.append((typed, key))
    newest_first = False
    if len(node.order) == 1 and node.order[0].descending:
        time = time_attribute(scope, node.order[0].expression)
        newest_first = time is not None
    rank = WindowRank(keys, order, newest_first, node.at)
    return rank, Typed(_NUMBER, nullable=False, at=node.at)


def _is_bound(typed: Typed) -> bool:
    return window_column(typed.expression) in WINDOW_COLUMNS


def _check_keys(script: Script, keys: Sequence[Typed]) -> None:
    refuse_nested(script, keys, "PARTITION BY")
    for each in keys:
        refuse_unkept(script, each, "PARTITION BY")


def _limits(expression: Expression) -> tuple[int, int | None] | None:
    """The least and greatest number that a condition accepts; None for other conditions."""
    if not isinstance(expression, Call) or expression.function not in _TURNED:
        return None
    (left, right), operator = expression.arguments, expression.function
    if right == _NUMBER:
        left, right, operator = right, left, _TURNED[operator]
    if left != _NUMBER or not isinstance(right, Constant) or right.value is None:
        return None
    value = int(right.value)
    if operator in ("<", "<="):
        return 1, value - (operator == "<")
    if operator in (">", ">="):
        return value + (operator == ">"), None
    return value, value


def conjunction(
    script: Script, conditions: Sequence[Typed], over_window: Callable[[Expression], Expression]
) -> Expression | None:
    if not conditions:
        return None
    parts = [replace(each, expression=over_window(each.expression)) for each in conditions]
    planner = ExpressionPlanner(NameScope(script, ()))
    return planner.conjunction("AND", parts, parts[0].at).expression


@dataclass(slots=True)
class WindowRows:
    """The columns of the rows of a window, as they are kept until it is emitted."""

    script: Script
    window: OpenWindow
    keys: Mapping[Expression, Column]
    fields: dict[Expression, str] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Script, window: OpenWindow, rank: WindowRank | None) -> "WindowRows":
        """Rows of sessions are kept by the keys of sessions, others by those of the rank."""
        is_session = window.kind is WindowKind.SESSION
        keys = list(window.partition or ()) if is_session or rank is None else rank.partition
        _check_keys(script, keys)
        check_count(script, window, "Use a longer step.")
        names = [Column(WINDOW, f"k{at}", each.type) for at, each in enumerate(keys)]
        return cls(script, window, dict(zip((e.expression for e in keys), names, strict=True)))

    def over_window(self, expression: Expression) -> Expression:
        """`expression` over the rows as one over the relation of the windows."""
        if expression in self.keys:
            return self.keys[expression]
        if isinstance(expression, Column) and expression.relation != WINDOW:
            return self._field(expression)
        return with_parts(expression, self.over_window)

    def sorted_by(self, expression: Expression) -> Expression:
        """As `over_window`; what is computed of a row is computed before it is kept."""
        is_key = expression in self.keys or is_of_window(expression)
        return self.over_window(expression) if is_key else self._field(expression)

    def _field(self, expression: Expression) -> Column:
        name = self.fields.setdefault(expression, f"r{len(self.fields)}")
        if len(self.fields) > MAX_COLUMNS:
            raise self.script.error(
                self.window.at,
                f"the rows of the window have more than {MAX_COLUMNS:,} columns",
                hint="Select fewer columns.",
            )
        return Column(WINDOW, name, expression.type)

    def windowing(self, having: Expression | None, rank: TopN | None) -> Windowing:
        window = self.window
        fields = self.fields or {Constant("true", SqlType(TypeName.BOOLEAN)): "r0"}
        members = tuple(Member(name, each.type) for each, name in fields.items())
        row = Call("ROW", tuple(fields), row_type(*members))
        rows = Aggregate("rows", AggregateKind.ROWS, row, array_type(row.type))
        return Windowing(
            kind=window.kind,
            size_ms=window.size_ms,
            time=window.time,
            time_type=window.time_type,
            keys=tuple(OutputColumn(c.name, e) for e, c in self.keys.items()),
            aggregates=(rows,),
            slide_ms=window.slide_ms,
            offset_ms=window.offset_ms,
            having=having,
            rank=rank,
        )


def refused_behind(script: Script, at: int, what: str) -> Exception:
    return script.error(
        at,
        f"{what} of the rows that ROW_NUMBER() keeps of a window",
        hint=f"{OUTSIDE} INSERT INTO a kafka table the rows that are kept, and let another job "
        "read it.",
    )
