"""Queries over tables and views. Views are expanded, so that a plan has only tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from joins.plan.formats import OF_CHANGES
from joins.plan.plan import (
    Dimension,
    DimensionJoin,
    JoinType,
    KafkaSource,
    TableStream,
    Unnest,
)
from joins.plan.types import Column
from service.sql.catalog.catalog import Table, relation_of
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    Typed,
)
from service.sql.grammar.expression_nodes import Name, Node, Reference, RowNumberNode
from service.sql.grammar.expression_parser import rank_refused
from service.sql.grammar.query_parser import QUERY_HINTS
from service.sql.grammar.syntax import (
    CreateView,
    HintNode,
    JoinNode,
    Relation,
    Select,
    TemporalJoinClause,
    UnnestClause,
)
from service.sql.planner.dimension_planner import (
    check_not_written,
    check_probe,
    check_versioned,
    dimension_relation,
    outer_columns,
    plan_dimension,
    with_compared_key,
)
from service.sql.planner.join_planner import (
    JoinPlanner,
    UnnestPlanner,
    conjuncts,
    is_key,
    is_own_clock,
    snapshot_warnings,
    system_time,
)
from service.sql.planner.newest_rows import (
    KeyedView,
    Rank,
    check_time,
    newest_rows,
    newest_rows_text,
    number_of_a_row,
    rank_of,
)
from service.sql.planner.relations import (
    MAX_DIMENSIONS,
    MAX_VIEW_DEPTH,
    QUERY,
    VIEW,
    Base,
    Unions,
    in_common_types,
    named_columns,
    selected_columns,
)
from service.sql.planner.window_planner import WINDOW_COLUMNS, group_window, window_column
from service.sql.planner.window_stage import WindowStage
from service.sql.text.script import OUTSIDE, Script

if TYPE_CHECKING:
    from service.sql.planner.session import ScriptSession


def check_order(
    script: Script, select: Select, columns: list[ScopeColumn], scope: NameScope | None
) -> list[str]:
    """A warning about ORDER BY, if the query has it.

    Rows leave in the order of their batches, so the first item must be the row's time or a bound of
    the window. `scope` is None behind UNION ALL.
    """
    if not select.order:
        return []
    first = select.order[0]
    if first.descending or not _is_time(first.expression, columns, scope):
        raise script.error(
            first.at,
            "ORDER BY without the time first keeps all rows until the stream ends",
            hint=f"{OUTSIDE} "
            "Begin with the time of the stream or window_start, ascending; or leave ORDER BY "
            "out and sort where the rows are read.",
        )
    return [
        "ORDER BY has no effect: rows come with the batch that has read or completed them, those "
        "of one partition or window in the order of the stream."
    ]


def _is_time(node: Node, columns: list[ScopeColumn], scope: NameScope | None) -> bool:
    if not isinstance(node, Reference):
        return False
    named = [c for c in columns if len(node.parts) == 1 and c.name == node.parts[0].text]
    if not named and scope is not None:
        _, column, fields = scope.located(node)
        named = [] if fields else [column]
    return bool(named) and (named[0].time is not None or _is_bound(named[0]))


def _is_bound(column: ScopeColumn) -> bool:
    return column.value is not None and (window_column(column.value.expression) in WINDOW_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Named:
    """A query of WITH, and the names that it may use itself."""

    view: CreateView
    names: "Mapping[str, _Named]"


@dataclass(frozen=True, slots=True)
class _DimensionSide:
    """What is joined: a table, or a view of one with its filters."""

    table: Table
    relation: ScopeRelation
    filters: tuple[Typed, ...] = ()
    newest: KeyedView | None = None


@dataclass(slots=True)
class QueryPlanner:
    """Plans one query and collects its parts, also in views, from left to right.

    Attributes:
        of_job: the query of a job, which reads a stream; the query of a view may read any table.
        of_dimension: the query of a joined view; its table is a dimension.
        written: the table that the job writes, which it cannot join; named at `written_at`.
        unions: which query of each UNION ALL is planned.
        newest_by: the columns of `ROW_NUMBER() … = 1` over the stream of a job.
    """

    relations: "ScriptSession"
    of_job: bool = False
    of_dimension: bool = False
    written: Table | None = None
    written_at: int | None = None
    base: Base | None = None
    dimensions: dict[str, Dimension] = field(default_factory=dict)
    joins: list[DimensionJoin] = field(default_factory=list)
    unnests: list[Unnest] = field(default_factory=list)
    filters: list[Typed] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    newest_by: tuple[str, ...] = ()
    tables: list[Table] = field(default_factory=list)
    windows: WindowStage = field(init=False)
    unions: Unions = field(default_factory=Unions)
    warnings: list[str] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    _depth: int = 0
    _names: Mapping[str, _Named] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.windows = WindowStage(self.relations.script, self.relations.settings)

    @property
    def script(self) -> Script:
        return self.relations.script

    def query(self, select: Select) -> list[ScopeColumn]:
        """The columns of a query; a column without a name has an empty one."""
        outside = self._names
        for view in select.names:
            self._name(view, outside)
        try:
            return self._united(select)
        finally:
            self._names = outside

    def _name(self, view: CreateView, outside: Mapping[str, _Named]) -> None:
        """Register a query of WITH; an unused one is planned too, to find its faults."""
        earlier = self._names.get(view.name.text)
        if earlier is not None and outside.get(view.name.text) is not earlier:
            raise self.script.error(
                view.name.at,
                f'WITH names "{view.name.text}" twice',
                hint="Rename one of the two.",
            )
        self._apart().view(view)
        self._names = {**self._names, view.name.text: _Named(view, self._names)}

    def _apart(self) -> "QueryPlanner":
        return QueryPlanner(
            self.relations, _taken=set(self._taken), _depth=self._depth, _names=self._names
        )

    def _united(self, select: Select) -> list[ScopeColumn]:
        """The chosen query of UNION ALL, in the common column types of all its queries."""
        queries = [replace(select, others=(), order=()), *select.others]
        if len(queries) == 1:
            return self._select(select)
        columns = [self._apart()._select(query) for query in queries]
        chosen = self.unions.choose(len(queries))
        columns[chosen] = self._select(queries[chosen])
        united = in_common_types(self.script, columns, queries, chosen)
        self.warnings += check_order(self.script, select, united, None)
        return united

    def _select(self, select: Select) -> list[ScopeColumn]:
        first = self._first(select.probe)
        if select.window is not None:
            first = self.windows.open(select.window, NameScope(self.script, (first,)))
        scope = NameScope(self.script, (first,))
        where = [] if select.where is None else [select.where]
        if any(isinstance(j, TemporalJoinClause) and j.condition is None for j in select.joins):
            where = [part for node in where for part in conjuncts(node)]
        moved: list[Node] = []
        for node in select.joins:
            scope = self._join(scope, node, where, moved)
        planner = ExpressionPlanner(scope)
        for node_of_where in moved:
            planner.condition(node_of_where, "the WHERE condition")
        conditions = [planner.condition(node, "the WHERE condition") for node in where]
        self.filters += [condition for condition in conditions if not self.windows.takes(condition)]
        self.warnings += [_hint_text(node) for node in select.hints]

        def number(planner: ExpressionPlanner, node: RowNumberNode) -> Typed:
            if self.windows.is_used:
                return self.windows.number(planner, scope, node)
            if select.group_by is not None:
                raise rank_refused(self.script, "ROW_NUMBER", node.at)
            drops = any(join.join_type is JoinType.INNER for join in self.joins)
            self.ranks.append(rank_of(scope, node, self.filters, drops_rows=drops))
            return number_of_a_row(node)

        def selected(planner: ExpressionPlanner) -> list[ScopeColumn]:
            return list(selected_columns(scope, planner, select, number))

        if select.group_by is None:
            columns = selected(planner)
        else:
            key = group_window(self.script, select.group_by)
            if key is not None:
                self.windows.open_key(key, scope)
            columns = self.windows.group(scope, select, select.group_by, selected, self.unnests)
        self.warnings += check_order(self.script, select, columns, scope)
        return columns

    def view(self, view: CreateView, what: str = VIEW) -> list[ScopeColumn]:
        self._depth += 1
        if self._depth > MAX_VIEW_DEPTH:
            raise self.script.error(
                view.name.at,
                f"more than {MAX_VIEW_DEPTH} views are nested",
                hint="Replace one of the views by its query.",
            )
        columns = self.query(view.select)
        self._depth -= 1
        self.relations.count_view_columns(len(columns), view.name.at)
        return named_columns(self.script, view, columns, what)

    def _first(self, node: Relation) -> ScopeRelation:
        declared = self._declared(node)
        if isinstance(declared, CreateView):
            columns = tuple(self._view_of(node, declared))
            return ScopeRelation(node.alias.text, declared.name.text, columns, node.alias.text)
        table = self.relations.hinted(declared, node.options)
        if self.of_job:
            check_probe(self.script, table, node.table.at)
        stream = table.endpoints.stream
        form = stream.value.name if isinstance(stream, KafkaSource) else None
        are_changes = form in OF_CHANGES or isinstance(stream, TableStream)
        if self.of_job and are_changes and not table.primary_key:
            raise self.script.error(
                table.at,
                f'table "{table.name}" has no primary key, and its records are changes of rows',
                hint="Add PRIMARY KEY (…) NOT ENFORCED: a change replaces the row of its key.",
            )
        self.tables.append(table)
        source = self._new_source(node.alias)
        self.base = Base(table, source, node.table.at)
        if self.of_dimension:
            return dimension_relation(self.script, table, node.alias.text, source)
        return relation_of(self.script, table, node.alias.text, source)

    def _declared(self, node: Relation) -> Table | CreateView:
        if node.query is not None:
            return node.query
        named = None if node.table.qualifier else self._names.get(node.table.text)
        declared = self.relations.find(node.table) if named is None else named.view
        if isinstance(declared, CreateView) and node.options:
            raise self.script.error(
                node.options[0].at,
                f'"{node.table.text}" is a view, which has no options',
                hint="Put the hint behind the table's name in the view.",
            )
        return declared

    def _view_of(self, node: Relation, view: CreateView) -> list[ScopeColumn]:
        """The columns of a view or query, which sees the names known at its position."""
        outside = self._names
        if node.query is None:
            named = self._names.get(view.name.text)
            self._names = named.names if named is not None and named.view is view else {}
        try:
            return self.view(view, VIEW if node.query is None else QUERY)
        finally:
            self._names = outside

    def _new_source(self, alias: Name) -> str:
        source, number = alias.text or "unnamed", 2
        while source in self._taken:
            source, number = f"{alias.text or 'unnamed'}_{number}", number + 1
        self._taken.add(source)
        return source

    def _join(
        self, scope: NameScope, node: JoinNode, where: list[Node], moved: list[Node]
    ) -> NameScope:
        """`scope` with the join; its conditions move from `where` to `moved`."""
        if isinstance(node, UnnestClause):
            return self._unnest(scope, node)
        self.windows.refuse_join(node.at, keeps_rows=True)
        self._check_alias(scope, node.relation.alias)
        side = self._dimension_side(node.relation)
        if node.snapshot is not None:
            self.warnings += snapshot_warnings(self.script, side.relation, node.snapshot)
        time = None if is_own_clock(scope, side.relation, node) else system_time(scope, node)
        if side.newest is not None:
            check_time(self.script, node, side.newest, time)
        merged = tuple(name.text for name in node.using)
        side = replace(side, relation=replace(_without_time(side.relation), merged=merged))
        joined = NameScope(self.script, (*scope.relations, side.relation))
        if node.condition is not None:
            conditions = list(conjuncts(node.condition))
        else:
            conditions = [part for part in where if is_key(joined, part)]
            where[:] = [part for part in where if not is_key(joined, part)]
            moved += conditions
        planner = JoinPlanner(joined, side.relation, side.table.name)
        join = replace(planner.plan(node, conditions, side.filters), time=time)
        side = replace(side, table=self._with_key(side.table, join))
        self.windows.refuse_join(node.at, keeps_rows=_keeps_rows(join, side.table))
        self.windows.refuse_bounds(node, join)
        if self.windows.holds_rows and time is None:
            self.warnings.append(
                f'Table "{side.table.name}" is joined when a row comes, not when its window ends.'
            )
        self._add_dimension(side.table, node, time)
        if time is not None:
            check_versioned(self.script, node, side.table, join)
        self.joins.append(join)
        if node.join_type is JoinType.LEFT:
            columns = outer_columns(self.script, side.table, side.relation)
            seen = replace(side.relation, columns=columns)
            return NameScope(self.script, (*scope.relations, seen))
        return joined

    def _unnest(self, scope: NameScope, node: UnnestClause) -> NameScope:
        self.windows.refuse_join(node.at)
        self._check_alias(scope, node.alias)
        assert self.base is not None, "a query has its first table"
        known = frozenset((self.base.alias, *(each.alias for each in self.unnests)))
        planner = UnnestPlanner(self.script, scope, known)
        unnest, relation = planner.plan(node, self._new_source(node.alias))
        self.unnests.append(unnest)
        return NameScope(self.script, (*scope.relations, relation))

    def _check_alias(self, scope: NameScope, alias: Name) -> None:
        if alias.text and any(relation.alias == alias.text for relation in scope.relations):
            raise self.script.error(
                alias.at,
                f'alias "{alias.text}" is used twice',
                hint="Give each role of a table its own alias: … AS OF p.proctime AS other ON ….",
            )
        if len(self.joins) + len(self.unnests) >= MAX_DIMENSIONS:
            raise self.script.error(
                alias.at, f"more than {MAX_DIMENSIONS} joins", hint="Split the job."
            )

    def _dimension_side(self, node: Relation) -> _DimensionSide:
        declared = self._declared(node)
        if isinstance(declared, CreateView):
            return self._view_side(declared, node)
        table = self.relations.hinted(declared, node.options)
        source = self._new_source(node.alias)
        return _DimensionSide(
            table, dimension_relation(self.script, table, node.alias.text, source)
        )

    def _view_side(self, view: CreateView, node: Relation) -> _DimensionSide:
        """A view of one dimension: its columns, and its WHERE as a condition of each match."""
        inner = QueryPlanner(
            self.relations,
            of_dimension=True,
            _taken=self._taken,
            _depth=self._depth,
            _names=self._names,
        )
        columns = inner._view_of(node, view)
        plain = not (inner.joins or inner.unnests or inner.windows.is_used)
        if not plain or inner.base is None or inner.unions.is_used:
            has = "has a window" if inner.windows.is_used else "joins tables"
            has = "has UNION ALL" if inner.unions.is_used else has
            raise self.script.error(
                node.table.at,
                f'view "{view.name.text}" {has}, so it cannot be a dimension',
                hint=f"{OUTSIDE} "
                "Join the tables of the view one after the other, or make the view the stream.",
            )
        base, table, filters = inner.base, inner.base.table, tuple(inner.filters)
        newest = None
        if len(inner.ranks) > 1:
            raise rank_refused(self.script, "ROW_NUMBER", inner.ranks[1].at)
        if inner.ranks:
            newest = newest_rows(
                self.script, view.name, inner.ranks[0], table, columns, inner.filters
            )
            table, filters, columns = newest.table, newest.filters, list(newest.columns)
            if newest.time is not None:
                self.warnings.append(newest_rows_text(view.name, newest))
        relation = ScopeRelation(node.alias.text, view.name.text, tuple(columns), base.alias)
        return _DimensionSide(table, relation, filters, newest)

    def _with_key(self, table: Table, join: DimensionJoin) -> Table:
        keyed = with_compared_key(table, join)
        if keyed is not table:
            self.warnings.append(
                f'Table "{table.name}" has no PRIMARY KEY; the columns that ON compares, '
                f"({', '.join(keyed.primary_key)}), are used as its key and must be that of the "
                "database."
            )
        return keyed

    def _add_dimension(self, table: Table, node: TemporalJoinClause, time: Column | None) -> None:
        name = node.relation.table
        dimension = plan_dimension(self.relations, table, name, is_versioned=time is not None)
        if self.written is not None and self.written_at is not None:
            check_not_written(self.script, table, self.written, self.written_at)
        if self.joins and (self.joins[0].time is None) != (time is None):
            raise self.script.error(
                node.at if node.time is None else node.time.at,
                "a statement joins by event time or by processing time, not by both",
                hint="Use one time in every FOR SYSTEM_TIME AS OF, or split the job in two.",
            )
        before = self.dimensions.setdefault(table.name, dimension)
        if before.primary_key != dimension.primary_key:
            raise self.script.error(
                name.at,
                f'table "{table.name}" is joined twice with different keys',
                hint="Declare the table twice, under two names, and join each once.",
            )
        if before != dimension:
            raise self.script.error(
                name.at,
                f'table "{table.name}" is joined twice with different OPTIONS',
                hint="Give both roles the same hint, or put the options into CREATE TABLE.",
            )
        self.tables.append(table)


def _hint_text(node: HintNode) -> str:
    instead = QUERY_HINTS.get(node.name, "no hint of this name is known here")
    return f"Hint {node.name[:100]} has no effect: {instead}."


def _keeps_rows(join: DimensionJoin, table: Table) -> bool:
    """True if each row of the stream leaves the join once."""
    compared = {pair.dimension_column for pair in join.keys if pair.computed is None}
    is_unique = bool(table.primary_key) and set(table.primary_key) <= compared
    return join.join_type is JoinType.LEFT and is_unique


def _without_time(relation: ScopeRelation) -> ScopeRelation:
    return replace(relation, columns=tuple(replace(c, time=None) for c in relation.columns))
