"""ORDER BY of a query that does not end: taken where it names the time of the rows, and told."""

from service.sql.expressions.scope import NameScope, ScopeColumn
from service.sql.grammar.expression_nodes import Node, Reference
from service.sql.grammar.syntax import Select
from service.sql.planner.aggregate_planner import window_column
from service.sql.planner.window_planner import WINDOW_COLUMNS
from service.sql.text.script import Script


def check_order(
    script: Script, select: Select, columns: list[ScopeColumn], scope: NameScope | None
) -> list[str]:
    """A warning about ORDER BY, if the query has it.

    Rows of a stream come in the order of their batches, so that only an order by their time, which
    goes on as they do, may be asked for: the first item is that time or a bound of the window.

    Args:
        script: the script.
        select: the query.
        columns: that it selects.
        scope: what its rows are of; None behind UNION ALL.

    Raises:
        SqlError: it begins with something else, or goes backwards.
    """
    if not select.order:
        return []
    first = select.order[0]
    if first.descending or not _is_time(first.expression, columns, scope):
        raise script.error(
            first.at,
            "ORDER BY something else than the time would keep all rows until the stream ends",
            hint="Begin with the time of the stream or window_start, ascending; or leave ORDER BY "
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
