"""Window stage of a query: open windows over its rows, filter, aggregate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from joins.plan.plan import IN_ORDER_OF_ARRIVAL, DimensionJoin, Unnest, Windowing, WindowKind
from service.sql.catalog.settings import ALLOW_LATENESS
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, ScopeRelation, Typed
from service.sql.grammar.expression_nodes import RowNumberNode
from service.sql.grammar.syntax import GroupBy, Select, Star, TemporalJoinClause, WindowNode
from service.sql.grammar.window_parser import GROUP_FORM
from service.sql.planner.aggregate_planner import (
    GroupedPlanner,
    Grouping,
    group_keys,
    is_of_window,
)
from service.sql.planner.grouping_sets import numbers_of_sets
from service.sql.planner.window_planner import (
    GroupWindow,
    OpenWindow,
    assigned,
    check_count,
    lateness_ms,
    open_window,
    places,
    with_window_columns,
)
from service.sql.planner.window_rows import (
    WindowRank,
    WindowRows,
    conjunction,
    refused_behind,
    window_rank,
)
from service.sql.text.script import OUTSIDE, Script

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

    def refuse_join(self, at: int) -> None:
        """Refuse a join behind an aggregated window or behind SESSION.

        The windows of TUMBLE, HOP and CUMULATE depend on the row alone, so a join does not change
        them. Sessions depend on all rows.
        """
        if self.rank is not None:
            raise refused_behind(self.script, at, "a join")
        is_session = self.window is not None and self.window.kind is WindowKind.SESSION
        if self.windowing is not None or is_session:
            what = "SESSION" if is_session else "an aggregated window"
            raise self.script.error(
                at,
                f"a join behind {what}",
                hint=f"{OUTSIDE} Join in a VIEW, and apply the window to the view.",
            )

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
                hint="Put the condition into HAVING.",
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
        """The `values` over the rows that are kept of a window."""
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
