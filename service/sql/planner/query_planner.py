"""Queries over tables and views: views are written out, so that a plan has tables only."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from joins.plan.expressions import Column
from joins.plan.formats import OF_CHANGES
from joins.plan.plan import DatagenSource, Dimension, DimensionJoin, JoinType
from service.sql.catalog.catalog import Table, relation_of
from service.sql.catalog.connectors import KafkaTable
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.grammar.expression_nodes import FunctionCall, Name, Node, Reference
from service.sql.grammar.syntax import (
    CreateView,
    OptionNode,
    Relation,
    Select,
    Star,
    TemporalJoinClause,
)
from service.sql.planner.dimension_planner import check_not_written, check_versioned, plan_dimension
from service.sql.planner.join_planner import JoinPlanner, conjuncts, is_key, system_time
from service.sql.planner.window_stage import WindowStage
from service.sql.text.script import Script

MAX_DIMENSIONS = 32
MAX_VIEW_DEPTH = 32
MAX_VIEW_COLUMNS = 100_000


class Relations(Protocol):
    """The tables and views that a query may name."""

    script: Script
    settings: dict[str, str]

    def find(self, name: Name, what: str = "table") -> Table | CreateView:
        """The table or view of this name."""
        ...

    def hinted(self, table: Table, options: tuple[OptionNode, ...]) -> Table:
        """The table with the options of a hint."""
        ...

    def count_view_columns(self, count: int, at: int) -> None:
        """Limit how many columns views are expanded to."""
        ...


@dataclass(slots=True)
class Base:
    """The first table of a query, below all views."""

    table: Table
    alias: str
    at: int


@dataclass(frozen=True, slots=True)
class _DimensionSide:
    """What is joined: a table, or a view of one with its filters."""

    table: Table
    relation: ScopeRelation
    filters: tuple[Typed, ...] = ()


@dataclass(slots=True)
class QueryPlanner:
    """Plans one query; what it reads from is collected on the way, from left to right.

    Attributes:
        of_job: it is the query of a job, which reads a stream; that of a view may read any table.
        written: the table that the job writes, which it cannot join; named at `written_at`.
        joins: all joins, those in views too.
        filters: all WHERE conditions.
        tables: that are read, with their hints.
        windows: the window, if there is one.
    """

    relations: Relations
    of_job: bool = False
    written: Table | None = None
    written_at: int | None = None
    base: Base | None = None
    dimensions: dict[str, Dimension] = field(default_factory=dict)
    joins: list[DimensionJoin] = field(default_factory=list)
    filters: list[Typed] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    windows: WindowStage = field(init=False)
    _taken: set[str] = field(default_factory=set)
    _depth: int = 0

    def __post_init__(self) -> None:
        self.windows = WindowStage(self.relations.script, self.relations.settings)

    @property
    def script(self) -> Script:
        """The script that the query is in."""
        return self.relations.script

    def query(self, select: Select) -> list[ScopeColumn]:
        """The columns of a query; a name is empty where the query gives none.

        Raises:
            SqlError: a name is unknown, a type does not fit or a form is not supported.
        """
        first = self._first(select.probe)
        if select.window is not None:
            first = self.windows.open(select.window, first)
        scope = NameScope(self.script, (first,))
        where = [] if select.where is None else [select.where]
        if any(join.condition is None for join in select.joins):
            where = [part for node in where for part in conjuncts(node)]
        moved: list[Node] = []
        for node in select.joins:
            scope = self._join(scope, node, where, moved)
        planner = ExpressionPlanner(scope)
        for node_of_where in moved:
            planner.condition(node_of_where, "the WHERE condition")
        conditions = [planner.condition(node, "the WHERE condition") for node in where]
        self.filters += [condition for condition in conditions if not self.windows.takes(condition)]

        def selected(planner: ExpressionPlanner) -> list[ScopeColumn]:
            return list(self._selected(planner, scope, select))

        if select.group_by is None:
            return selected(planner)
        return self.windows.group(scope, select, select.group_by, selected)

    def view(self, view: CreateView) -> list[ScopeColumn]:
        """The columns of a view, named.

        Raises:
            SqlError: as `query`, or a column has no name or type, or one of another column.
        """
        self._depth += 1
        if self._depth > MAX_VIEW_DEPTH:
            raise self.script.error(
                view.name.at,
                f"more than {MAX_VIEW_DEPTH} views are nested",
                hint="Write one of the views into the view that uses it.",
            )
        columns = self.query(view.select)
        self._depth -= 1
        self.relations.count_view_columns(len(columns), view.name.at)
        if view.columns is not None:
            columns = self._renamed(view, view.columns, columns)
        seen: set[str] = set()
        for column in columns:
            self._check_view_column(view, column, seen)
            seen.add(column.name)
        return columns

    def _renamed(
        self, view: CreateView, names: tuple[Name, ...], columns: list[ScopeColumn]
    ) -> list[ScopeColumn]:
        if len(names) != len(columns):
            raise self.script.error(
                view.name.at,
                f'view "{view.name.text}" names {len(names)} columns, its query has {len(columns)}',
                hint="Name all columns, or none.",
            )
        return [replace(c, name=name.text) for c, name in zip(columns, names, strict=True)]

    def _check_view_column(self, view: CreateView, column: ScopeColumn, seen: set[str]) -> None:
        assert column.value is not None
        if not column.name:
            what, hint = "a column without a name", "Write AS and a name behind the expression."
        elif column.name in seen:
            what, hint = f'column "{column.name}" twice', "Rename one of the two with AS."
        elif column.value.is_bare_null:
            what, hint = f'column "{column.name}" without a type', "Write CAST(NULL AS STRING)."
        else:
            return
        raise self.script.error(column.value.at, f'view "{view.name.text}" has {what}', hint=hint)

    def _first(self, node: Relation) -> ScopeRelation:
        declared = self.relations.find(node.table)
        if isinstance(declared, CreateView):
            self._refuse_hint(node)
            columns = tuple(self.view(declared))
            return ScopeRelation(node.alias.text, declared.name.text, columns, node.alias.text)
        table = self.relations.hinted(declared, node.options)
        if self.of_job and not isinstance(table.connector, KafkaTable | DatagenSource):
            raise self.script.error(
                node.table.at,
                f'table "{table.name}" is {table.connector_name}, which cannot be a probe',
                hint="The first table is the stream: kafka or datagen.",
            )
        self._check_format(node, table)
        self.tables.append(table)
        source = self._new_source(node.alias)
        self.base = Base(table, source, node.table.at)
        return relation_of(self.script, table, node.alias.text, source)

    def _check_format(self, node: Relation, table: Table) -> None:
        connector = table.connector
        form = connector.source.value.name if isinstance(connector, KafkaTable) else None
        if form in OF_CHANGES:
            raise self.script.error(
                node.table.at,
                f'table "{table.name}" has format {form}, which cannot be read',
                hint="A stream has rows, such as json; join a topic of changes as a dimension.",
            )

    def _refuse_hint(self, node: Relation) -> None:
        if node.options:
            raise self.script.error(
                node.options[0].at,
                f'"{node.table.text}" is a view, which has no options',
                hint="Put the hint behind the table's name in the view.",
            )

    def _new_source(self, alias: Name) -> str:
        """An alias that the plan does not have yet."""
        source, number = alias.text, 2
        while source in self._taken:
            source, number = f"{alias.text}_{number}", number + 1
        self._taken.add(source)
        return source

    def _join(
        self, scope: NameScope, node: TemporalJoinClause, where: list[Node], moved: list[Node]
    ) -> NameScope:
        """`scope` with the dimension; its conditions in WHERE go from `where` to `moved`."""
        self.windows.refuse_join(node.at)
        self._check_alias(scope, node.relation.alias)
        time = system_time(scope, node)
        side = self._dimension_side(node.relation)
        self._add_dimension(side.table, node, time)
        joined = NameScope(self.script, (*scope.relations, side.relation))
        if node.condition is not None:
            conditions = list(conjuncts(node.condition))
        else:
            conditions = [part for part in where if is_key(joined, part)]
            where[:] = [part for part in where if not is_key(joined, part)]
            moved += conditions
        planner = JoinPlanner(joined, side.relation, side.table.name)
        join = replace(planner.plan(node, conditions, side.filters), time=time)
        if time is not None:
            check_versioned(self.script, node, side.table, join)
        self.joins.append(join)
        if node.join_type is JoinType.LEFT:
            seen = replace(side.relation, columns=tuple(self._outer(side)))
            return NameScope(self.script, (*scope.relations, seen))
        return joined

    def _check_alias(self, scope: NameScope, alias: Name) -> None:
        if any(relation.alias == alias.text for relation in scope.relations):
            raise self.script.error(
                alias.at,
                f'alias "{alias.text}" is used twice',
                hint="Give each role of a table its own alias: … AS OF p.proctime AS other ON ….",
            )
        if len(self.joins) >= MAX_DIMENSIONS:
            raise self.script.error(
                alias.at, f"more than {MAX_DIMENSIONS} joins", hint="Split the job."
            )

    def _outer(self, side: _DimensionSide) -> Iterator[ScopeColumn]:
        """The dimension's columns where NULL stands for the row that is not there."""
        key = next(f for f in side.table.fields if f.name in side.table.primary_key)
        planner = ExpressionPlanner(NameScope(self.script, ()))
        for column in side.relation.columns:
            value = column.value
            if value is not None and not isinstance(value.expression, Column):
                row = Typed(
                    Column(side.relation.source, key.name, key.type), nullable=True, at=value.at
                )
                value = planner.if_present(row, value)
            yield replace(column, nullable=True, value=value)

    def _dimension_side(self, node: Relation) -> _DimensionSide:
        declared = self.relations.find(node.table)
        if isinstance(declared, CreateView):
            self._refuse_hint(node)
            return self._view_side(declared, node)
        table = self.relations.hinted(declared, node.options)
        source = self._new_source(node.alias)
        relation = relation_of(self.script, table, node.alias.text, source)
        return _DimensionSide(table, _without_time(relation))

    def _view_side(self, view: CreateView, node: Relation) -> _DimensionSide:
        """A view of one dimension: its columns, and its WHERE as a condition of each match."""
        inner = QueryPlanner(self.relations, _taken=self._taken, _depth=self._depth)
        columns = inner.view(view)
        if inner.joins or inner.base is None or inner.windows.is_used:
            has = "has a window" if inner.windows.is_used else "joins tables"
            raise self.script.error(
                node.table.at,
                f'view "{view.name.text}" {has}, so it cannot be a dimension',
                hint="Join the tables of the view one after the other, or make the view the probe.",
            )
        base = inner.base
        relation = ScopeRelation(node.alias.text, view.name.text, tuple(columns), base.alias)
        return _DimensionSide(base.table, _without_time(relation), tuple(inner.filters))

    def _add_dimension(self, table: Table, node: TemporalJoinClause, time: Column | None) -> None:
        name = node.relation.table
        dimension = plan_dimension(self.relations, table, name, is_versioned=time is not None)
        if self.written is not None and self.written_at is not None:
            check_not_written(self.script, table, self.written, self.written_at)
        if self.joins and (self.joins[0].time is None) != (time is None):
            raise self.script.error(
                node.time.at,
                "a statement joins by event time or by processing time, not by both",
                hint="Use one time in every FOR SYSTEM_TIME AS OF, or split the job in two.",
            )
        if self.dimensions.setdefault(table.name, dimension) != dimension:
            raise self.script.error(
                name.at,
                f'table "{table.name}" is joined twice with different OPTIONS',
                hint="Give both roles the same hint, or put the options into CREATE TABLE.",
            )
        self.tables.append(table)

    def _selected(
        self, planner: ExpressionPlanner, scope: NameScope, select: Select
    ) -> Iterator[ScopeColumn]:
        for item in select.items:
            if isinstance(item, Star):
                of = scope.relations if item.relation is None else (scope.relation(item.relation),)
                for relation in of:
                    for column in relation.columns:
                        yield replace(column, value=scope.typed(relation, column, item.at))
                continue
            typed = planner.plan(item.expression)
            name, time = _name_and_time(scope, item.expression)
            if item.alias is not None:
                name = item.alias.text
            yield ScopeColumn(name, typed.type, typed.nullable, time, typed)


def _without_time(relation: ScopeRelation) -> ScopeRelation:
    """The relation of a dimension, whose times are plain columns of the joined row."""
    return replace(relation, columns=tuple(replace(c, time=None) for c in relation.columns))


def _name_and_time(scope: NameScope, node: Node) -> tuple[str, TimeAttribute | None]:
    """The name that an expression gives its column, and the time attribute that it is."""
    if isinstance(node, Reference):
        _, column, fields = scope.located(node)
        return (fields[-1].text, None) if fields else (column.name, column.time)
    is_now = isinstance(node, FunctionCall) and node.name == "PROCTIME"
    return "", TimeAttribute.PROCESSING if is_now else None
