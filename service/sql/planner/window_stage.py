"""Window stage of a query: windows over its rows, filters, aggregates, ranks, and kept rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from joins.plan.plan import (
    IN_ORDER_OF_ARRIVAL,
    ROW_NUMBER,
    WINDOW,
    Aggregate,
    AggregateKind,
    DimensionJoin,
    OutputColumn,
    SortKey,
    TopN,
    Unnest,
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
from service.sql.catalog.settings import ALLOW_LATENESS
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.nested_access import refuse_nested
from service.sql.expressions.scope import NameScope, ScopeColumn, ScopeRelation, Typed
from service.sql.grammar.expression_nodes import RowNumberNode
from service.sql.grammar.query_parser import MAX_COLUMNS
from service.sql.grammar.syntax import GroupBy, Select, Star, TemporalJoinClause, WindowNode
from service.sql.grammar.type_parser import BIGINT
from service.sql.grammar.window_parser import GROUP_FORM
from service.sql.planner.aggregate_planner import (
    GroupedPlanner,
    Grouping,
    group_keys,
    is_of_window,
    numbers_of_sets,
)
from service.sql.planner.join_planner import split
from service.sql.planner.newest_rows import time_attribute
from service.sql.planner.update_sinks import refuse_unkept
from service.sql.planner.window_planner import (
    WINDOW_COLUMNS,
    GroupWindow,
    OpenWindow,
    assigned,
    check_count,
    lateness_ms,
    open_window,
    places,
    window_column,
    with_window_columns,
)
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
        for each in keys:
            if is_of_window(each.expression):
                raise script.error(
                    each.at,
                    "PARTITION BY has an expression over the bounds of the window",
                    hint="Write PARTITION BY window_start, window_end and columns of the rows.",
                )
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


Selected = Callable[[ExpressionPlanner], list[ScopeColumn]]


@dataclass(slots=True)
class WindowStage:
    """The window of a query and of the views below it; `key` is the window as a key of GROUP BY.

    `window` is not aggregated yet; `windowing` is, and excludes `rank` and the conditions in
    `having`.
    """

    script: Script
    settings: Mapping[str, str]
    window: OpenWindow | None = None
    windowing: Windowing | None = None
    having: list[Typed] = field(default_factory=list)
    key: GroupWindow | None = None
    rank: WindowRank | None = None

    @property
    def is_used(self) -> bool:
        return self.window is not None or self.windowing is not None

    def open(self, node: WindowNode, scope: NameScope) -> ScopeRelation:
        self._refuse_second(node.at)
        self.window = open_window(self.script, node, scope)
        return with_window_columns(self.script, scope.relations[0], self.window)

    def open_key(self, key: GroupWindow, scope: NameScope) -> None:
        self._refuse_second(key.node.at)
        self.window = open_window(self.script, key.node, scope, is_key=True)
        self.key = key

    def _refuse_second(self, at: int) -> None:
        if self.is_used:
            raise self.script.error(
                at,
                "a window over a window",
                hint=f"{OUTSIDE} "
                "Aggregate once, in the longer window; or INSERT INTO a kafka table what the "
                "first one gives, and put the second one over that table in another job, with "
                "WATERMARK FOR the column of window_time.",
            )

    def number(self, planner: ExpressionPlanner, scope: NameScope, node: RowNumberNode) -> Typed:
        """ROW_NUMBER() over the rows of the window, or over its results."""
        if self.rank is not None:
            raise refused_behind(self.script, node.at, "ROW_NUMBER()")
        lateness = self.windowing.lateness_ms if self.windowing is not None else 0
        if self.window is not None and isinstance(planner, GroupedPlanner):
            lateness = lateness_ms(self.script, self.window, self.settings)
        if lateness:
            raise self.script.error(
                node.at,
                f"ROW_NUMBER() of a window with {ALLOW_LATENESS}, which gives updates",
                hint=f"Write RESET '{ALLOW_LATENESS}'.",
            )
        self.rank, number = window_rank(self.script, planner, scope, node)
        return number

    def refuse_join(self, at: int, *, keeps_rows: bool = False) -> None:
        """Refuse a join behind an aggregated window, behind SESSION, or behind ROW_NUMBER().

        The windows of TUMBLE, HOP and CUMULATE depend on the row alone, so a join does not change
        them. Sessions and ranks depend on all rows; a join that `keeps_rows`, each of them once,
        may be planned before them.
        """
        is_session = self.window is not None and self.window.kind is WindowKind.SESSION
        is_behind = is_session or self.rank is not None
        if self.windowing is None and (keeps_rows or not is_behind):
            return
        if self.rank is not None and self.windowing is not None:
            raise refused_behind(self.script, at, "a join")
        what = "ROW_NUMBER() of a window" if self.rank is not None else "SESSION"
        hint = (
            f"{OUTSIDE} Join in a VIEW, and apply the window to the view; or LEFT JOIN a table "
            "with its whole PRIMARY KEY in ON, which keeps each row once."
        )
        if self.windowing is not None:
            what = "an aggregated window"
            hint = f"{OUTSIDE} Join in a VIEW, and apply the window to the view."
        raise self.script.error(at, f"a join behind {what}", hint=hint)

    @property
    def holds_rows(self) -> bool:
        """True if rows leave with their window, not when they have come."""
        is_session = self.window is not None and self.window.kind is WindowKind.SESSION
        return is_session or self.rank is not None

    def refuse_bounds(self, node: TemporalJoinClause, join: DimensionJoin) -> None:
        """Refuse a join on window bounds, which rows get after the join."""
        read = [pair.probe for pair in join.keys]
        read += [] if join.condition is None else [join.condition]
        if any(map(is_of_window, read)):
            raise self.script.error(
                node.at if node.condition is None else node.condition.at,
                "ON has a column of the window",
                hint="Compare columns of the tables; a condition on the window goes into HAVING.",
            )

    def takes(self, condition: Typed) -> bool:
        """Take a condition over the windows; False for one over the rows."""
        if self.rank is not None:
            self.rank.take(condition)
            return True
        if self.windowing is not None:
            self.having.append(condition)
            return True
        if self.window is None:
            return False
        if self.window.kind is WindowKind.SESSION:
            self.having.append(condition)
            return True
        if is_of_window(condition.expression):
            raise self.script.error(
                condition.at,
                "WHERE has a column of the window",
                hint="Put the condition into HAVING behind GROUP BY; without GROUP BY compare the "
                "time of the rows.",
            )
        return False

    def group(
        self,
        scope: NameScope,
        select: Select,
        group_by: GroupBy,
        selected: Selected,
        unnests: list[Unnest],
    ) -> list[ScopeColumn]:
        """Aggregate the window; `selected` plans the select list.

        `unnests` gets the step that makes a row for each of several grouping sets.
        """
        window = self.window
        if self.rank is not None:
            raise refused_behind(self.script, group_by.at, "GROUP BY")
        if window is not None and self.having:
            raise self.script.error(
                self.having[0].at,
                "WHERE follows SESSION, whose windows include all rows",
                hint="Put the condition into a VIEW and write SESSION(TABLE view, …), or use "
                "FILTER (WHERE …).",
            )
        if window is None:
            what = "without a window keeps a result for every key"
            if self.windowing is not None:
                what = "of the results of a window"
            raise self.script.error(group_by.at, f"GROUP BY {what}", hint=f"{OUTSIDE} {GROUP_FORM}")
        for item in select.items:
            if isinstance(item, Star):
                raise self.script.error(
                    item.at, "* beside GROUP BY", hint="List the keys and the aggregates."
                )
        grouping = group_keys(self.script, scope, window, group_by, self.key)
        if grouping.sets:
            unnests.append(numbers_of_sets(len(grouping.sets)))
        planner = GroupedPlanner(scope, grouping, window, self.key)
        self.key = None
        columns = [replace(column, time=None) for column in selected(planner)]
        if group_by.having is not None:
            self.having.append(planner.condition(group_by.having, "the HAVING condition"))
        if any(each.function in IN_ORDER_OF_ARRIVAL for each in planner.aggregates):
            names = ", ".join(IN_ORDER_OF_ARRIVAL)
            check_count(self.script, window, f"Use a longer step, or no {names}.")
        self.window = None
        self.windowing = Windowing(
            kind=window.kind,
            size_ms=window.size_ms,
            time=window.time,
            time_type=window.time_type,
            keys=grouping.output_keys(),
            aggregates=planner.aggregates,
            slide_ms=window.slide_ms,
            offset_ms=window.offset_ms,
            lateness_ms=self._lateness_ms(window, grouping),
        )
        return columns

    def _lateness_ms(self, window: OpenWindow, grouping: Grouping) -> int:
        lateness = lateness_ms(self.script, window, self.settings)
        if lateness and grouping.sets:
            raise self.script.error(
                window.at,
                f"{ALLOW_LATENESS} gives updates, and no column of a result tells its grouping set",
                hint=f"Write RESET '{ALLOW_LATENESS}'.",
            )
        return lateness

    def assigned(self, values: list[Typed], unnests: list[Unnest]) -> list[Typed]:
        """The `values` over rows instead of over a window without an aggregate.

        A row in several windows becomes several rows; `unnests` gets the step that does this. Rows
        of a session and numbered rows are kept until their window is emitted.
        """
        window = self.window
        if window is None:
            return values
        self.window = None
        if window.kind is WindowKind.SESSION or self.rank is not None:
            return self._kept(window, values)
        several = places(self.script, window)
        if several is not None:
            unnests.append(several)
        return [assigned(window, value) for value in values]

    def _kept(self, window: OpenWindow, values: list[Typed]) -> list[Typed]:
        rows = WindowRows.of(self.script, window, self.rank)
        rank = None
        if self.rank is not None:
            order = [
                (replace(typed, expression=rows.sorted_by(typed.expression)), key)
                for typed, key in self.rank.order
            ]
            rank = replace(self.rank, order=order).planned(self.script, rows.over_window)
        having = conjunction(self.script, self.having, rows.over_window)
        values = [replace(v, expression=rows.over_window(v.expression)) for v in values]
        self.windowing, self.rank, self.having = rows.windowing(having, rank), None, []
        return values

    def planned(self) -> Windowing | None:
        if self.windowing is None:
            return None
        windowing = self.windowing
        if self.rank is not None:
            rank = self.rank.planned(self.script, lambda each: each)
            windowing = replace(windowing, rank=rank)
        if self.having:
            having = conjunction(self.script, self.having, lambda each: each)
            windowing = replace(windowing, having=having)
        return windowing
