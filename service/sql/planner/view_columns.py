"""The columns of queries: what is selected, and the names that a view or another query sees."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from joins.plan.plan import OutputColumn
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, TimeAttribute, Typed
from service.sql.grammar.expression_nodes import FunctionCall, Name, Node, Reference
from service.sql.grammar.syntax import CreateView, Select, Star
from service.sql.text.script import Script

VIEW, QUERY = "view", "query"


def named_columns(
    script: Script, view: CreateView, columns: Sequence[ScopeColumn], kind: str
) -> list[ScopeColumn]:
    """The `columns` of a view as it names them; those of a query may have none in the script.

    Raises:
        SqlError: it names more or less, or a column has no name, no type or that of another one.
    """
    if view.columns is not None:
        columns = _renamed(script, view, view.columns, columns, kind)
    elif kind == QUERY:
        own = own_names([column.name for column in columns])
        columns = [replace(c, name=name) for c, name in zip(columns, own, strict=True)]
    names: set[str] = set()
    for column in columns:
        _check(script, view, column, names, kind)
        names.add(column.name)
    return list(columns)


def selected_columns(
    scope: NameScope, planner: ExpressionPlanner, select: Select
) -> Iterator[ScopeColumn]:
    """The columns of a select list; the name is empty where it gives none."""
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


def _name_and_time(scope: NameScope, node: Node) -> tuple[str, TimeAttribute | None]:
    """The name that an expression gives its column, and the time attribute that it is."""
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
    if not column.name:
        what, hint = "a column without a name", "Write AS and a name behind the expression."
    elif column.name in names:
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
    """A name for each column, as Flink makes them: `EXPR$2`, `id`, `id0`."""
    names: dict[str, None] = {}
    for at, text in enumerate(texts):
        plain = text or f"EXPR${at}"
        name, number = plain, 0
        while name in names:
            name, number = f"{plain}{number}", number + 1
        names[name] = None
    return list(names)
