"""Relations of a query: tables, views and unions, and their columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from joins.plan.plan import OutputColumn
from joins.plan.types import TypeName
from service.sql.catalog.catalog import Table
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import (
    NameScope,
    ScopeColumn,
    ScopeRelation,
    TimeAttribute,
    Typed,
)
from service.sql.grammar.expression_nodes import (
    FunctionCall,
    Name,
    Node,
    Reference,
    RowNumberNode,
)
from service.sql.grammar.syntax import CreateView, Select, Star
from service.sql.grammar.type_parser import TEMPORAL
from service.sql.text.script import Script

VIEW, QUERY = "view", "query"


def named_columns(
    script: Script, view: CreateView, columns: Sequence[ScopeColumn], kind: str
) -> list[ScopeColumn]:
    """The `columns` of a view under the view's names, or under those that Flink gives them."""
    if view.columns is not None:
        columns = _renamed(script, view, view.columns, columns, kind)
    else:
        own = own_names([column.name for column in columns])
        columns = [replace(c, name=name) for c, name in zip(columns, own, strict=True)]
    names: set[str] = set()
    for column in columns:
        _check(script, view, column, names, kind)
        names.add(column.name)
    return list(columns)


def selected_columns(
    scope: NameScope,
    planner: ExpressionPlanner,
    select: Select,
    number: Callable[[ExpressionPlanner, RowNumberNode], Typed],
) -> Iterator[ScopeColumn]:
    """The columns of a select list; a column without a name has an empty one."""
    for item in select.items:
        if isinstance(item, Star):
            for relation, column in _all_columns(scope, item):
                yield replace(column, value=scope.typed(relation, column, item.at))
            continue
        if isinstance(item.expression, RowNumberNode):
            typed = number(planner, item.expression)
        else:
            typed = planner.plan(item.expression)
        name, time = _name_and_time(scope, item.expression)
        if item.alias is not None:
            name = item.alias.text
        yield ScopeColumn(name, typed.type, typed.nullable, time, typed)


def _all_columns(scope: NameScope, star: Star) -> Iterator[tuple[ScopeRelation, ScopeColumn]]:
    """The columns of `*`: those of USING first, the newest join's in front, each once."""
    if star.relation is not None:
        relation = scope.relation(star.relation)
        yield from ((relation, column) for column in relation.columns)
        return
    each = [(r, c) for r in scope.relations for c in r.columns if c.name not in r.merged]
    names = [name for relation in reversed(scope.relations) for name in relation.merged]
    for name in dict.fromkeys(names):
        yield next(pair for pair in each if pair[1].name == name)
    yield from (pair for pair in each if pair[1].name not in names)


def _name_and_time(scope: NameScope, node: Node) -> tuple[str, TimeAttribute | None]:
    if isinstance(node, Reference):
        _, column, fields = scope.located(node)
        return (fields[-1].text, None) if fields else (column.name, column.time)
    is_now = isinstance(node, FunctionCall) and node.name == "PROCTIME"
    return "", TimeAttribute.PROCESSING if is_now else None


def _renamed(
    script: Script,
    view: CreateView,
    names: Sequence[Name],
    columns: Sequence[ScopeColumn],
    kind: str,
) -> list[ScopeColumn]:
    if len(names) != len(columns):
        raise script.error(
            view.name.at,
            f'{kind} "{view.name.text}" names {len(names)} columns, its query has {len(columns)}',
            hint="Name all columns, or none.",
        )
    return [replace(c, name=name.text) for c, name in zip(columns, names, strict=True)]


def _check(
    script: Script, view: CreateView, column: ScopeColumn, names: set[str], kind: str
) -> None:
    assert column.value is not None, "columns of a query have values"
    if column.name in names:
        what, hint = f'column "{column.name}" twice', "Rename one of the two with AS."
    elif column.value.is_bare_null:
        what, hint = f'column "{column.name}" without a type', "Write CAST(NULL AS STRING)."
    else:
        return
    raise script.error(column.value.at, f'{kind} "{view.name.text}" has {what}', hint=hint)


def preview_output(own: Sequence[str], values: Sequence[Typed]) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(name, value.expression)
        for name, value in zip(own_names(own), values, strict=True)
    )


def own_names(texts: Sequence[str]) -> list[str]:
    """A name for each column, as Flink generates them: `EXPR$2`, `id`, `id0`."""
    names: dict[str, None] = {}
    for at, text in enumerate(texts):
        plain = text or f"EXPR${at}"
        name, number = plain, 0
        while name in names:
            name, number = f"{plain}{number}", number + 1
        names[name] = None
    return list(names)


@dataclass(slots=True)
class Unions:
    """Which query of each UNION ALL is planned, in order; after `picks`, the first query."""

    picks: tuple[int, ...] = ()
    _counts: list[int] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        return bool(self._counts)

    def choose(self, count: int) -> int:
        met = len(self._counts)
        self._counts.append(count)
        return self.picks[met] if met < len(self.picks) else 0

    def refuse_beside_state(self, script: Script, select: Select) -> None:
        if not self.is_used:
            return
        hint = "Write a job for each query: an INSERT INTO the same table, without the others."
        if not select.others:
            hint = (
                "Let one job insert the rows of UNION ALL into a topic, and another one have the "
                "window or the join over that topic."
            )
        what = "UNION ALL beside a window, a join by event time or 'join.late-rows.wait'"
        raise script.error(select.at, what, hint=hint)

    def others(self) -> Iterator[tuple[int, ...]]:
        """The picks that lead to all other queries, each once."""
        taken = (*self.picks, *(0 for _ in self._counts[len(self.picks) :]))
        for place in range(len(self.picks), len(self._counts)):
            for pick in range(1, self._counts[place]):
                yield (*taken[:place], pick)


def in_common_types(
    script: Script,
    columns: Sequence[Sequence[ScopeColumn]],
    queries: Sequence[Select],
    chosen: int,
) -> list[ScopeColumn]:
    """The `chosen` query's columns, under the first query's names, in the common types of all."""
    for query, own in zip(queries, columns, strict=True):
        if len(own) != len(columns[0]):
            raise script.error(
                query.at,
                f"UNION ALL has a query of {len(own)} columns behind one of {len(columns[0])}",
                hint="Select as many columns in each of them; they are matched by position.",
            )
    planner = ExpressionPlanner(NameScope(script, ()))
    united = []
    for at, alike in enumerate(zip(*columns, strict=True)):
        values = [column.written_out for column in alike]
        _check_texts(script, values, queries[chosen].at)
        value = planner.common(values, queries[chosen].at, "UNION ALL")[chosen]
        is_time = {column.time for column in alike} == {alike[0].time}
        nullable = any(column.nullable for column in alike)
        united.append(
            replace(
                alike[chosen],
                name=columns[0][at].name,
                type=value.type,
                nullable=nullable,
                time=alike[chosen].time if is_time and value == values[chosen] else None,
                value=replace(value, nullable=nullable),
            )
        )
    return united


def _check_texts(script: Script, values: Sequence[Typed], at: int) -> None:
    names = {value.type.name for value in values if not value.is_bare_null}
    if TypeName.STRING in names and names & TEMPORAL:
        raise script.error(
            at,
            "UNION ALL has a text and a time in one column",
            hint="Write CAST(… AS STRING) around the time, or a CAST of the text.",
        )


MAX_DIMENSIONS = 32
MAX_VIEW_DEPTH = 32
MAX_VIEW_COLUMNS = 100_000


@dataclass(slots=True)
class Base:
    """The first table of a query, below all views."""

    table: Table
    alias: str
    at: int
