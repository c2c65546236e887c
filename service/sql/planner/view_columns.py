"""The columns of views and of queries in parentheses: each has a name and a type of its own."""

from collections.abc import Sequence
from dataclasses import replace

from service.sql.expressions.scope import ScopeColumn
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import CreateView
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
        columns = [replace(c, name=c.name or f"EXPR${at}") for at, c in enumerate(columns)]
    names: set[str] = set()
    for column in columns:
        _check(script, view, column, names, kind)
        names.add(column.name)
    return list(columns)


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
