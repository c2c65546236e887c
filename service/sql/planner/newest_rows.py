"""Views of the newest row of each key, `ROW_NUMBER() OVER (…) = 1`, as tables with a key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from joins.plan.formats import OF_CHANGES
from joins.plan.plan import TopicSource
from joins.plan.types import Call, Column, Constant, Expression, columns_of
from service.sql.catalog.catalog import Table
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, TimeAttribute, Typed
from service.sql.grammar.expression_nodes import (
    FunctionCall,
    Name,
    Node,
    Reference,
    RowNumberNode,
)
from service.sql.grammar.syntax import TemporalJoinClause
from service.sql.grammar.type_parser import BIGINT
from service.sql.planner.join_planner import split
from service.sql.text.script import Script, SqlError

RANK = "$rank"
"""The relation of the number of a row in its view; no plan has it."""
_ONE = Constant("1", BIGINT)


@dataclass(frozen=True, slots=True)
class Rank:
    """The ROW_NUMBER() of a view.

    Attributes:
        time: the time attribute that rows are ordered by, newest first; None for another order.
        before: conditions of the rows before they are numbered.
        drops_rows: True if an INNER JOIN is in front of it.
        is_oldest: True if rows are ordered by a time attribute, oldest first.
    """

    partition: tuple[Typed, ...]
    time: TimeAttribute | None
    before: tuple[Typed, ...]
    at: int
    drops_rows: bool = False
    is_oldest: bool = False


@dataclass(frozen=True, slots=True)
class KeyedView:
    """A view of the newest rows as a table with a key; `time` is what orders them.

    `time` is None where the table has the key already, so that each row is the newest.
    """

    table: Table
    columns: tuple[ScopeColumn, ...]
    filters: tuple[Typed, ...]
    time: TimeAttribute | None


def number_of_a_row(node: RowNumberNode) -> Typed:
    return Typed(Column(RANK, "row_number", BIGINT), nullable=False, at=node.at)


def rank_of(
    scope: NameScope, node: RowNumberNode, before: Sequence[Typed], *, drops_rows: bool = False
) -> Rank:
    planner = ExpressionPlanner(scope)
    partition = tuple(planner.plan(part) for part in node.partition)
    for part in node.order:
        planner.plan(part.expression)
    first, *more = node.order
    time = None if more else time_attribute(scope, first.expression)
    is_oldest = time is not None and not first.descending
    newest = None if is_oldest else time
    return Rank(partition, newest, tuple(before), node.at, drops_rows, is_oldest)


def time_attribute(scope: NameScope, node: Node) -> TimeAttribute | None:
    """The time attribute that `node` names."""
    if isinstance(node, FunctionCall) and node.name == "PROCTIME":
        return TimeAttribute.PROCESSING
    if not isinstance(node, Reference):
        return None
    _, column, fields = scope.located(node)
    return None if fields else column.time


def newest_rows(
    script: Script,
    view: Name,
    rank: Rank,
    table: Table,
    columns: Sequence[ScopeColumn],
    filters: Sequence[Typed],
) -> KeyedView:
    """The view as its table with the key of PARTITION BY; other views are refused."""
    refused = partial(_refused, script, rank, view)
    conditions = [part for each in filters for part in split(each)]
    rest = tuple(each for each in conditions if not _is_first(each.expression))
    if len(rest) == len(conditions):
        raise refused("keeps more than one row of a key", "Add WHERE row_num = 1 to it.")
    shown = [
        replace(c, value=replace(c.written_out, expression=_ONE))
        if _is_rank(c.written_out.expression)
        else c
        for c in columns
    ]
    if any(_has_rank(each.expression) for each in (*rest, *(c.written_out for c in shown))):
        raise refused(
            "computes with ROW_NUMBER()",
            "Compare ROW_NUMBER() with 1 in WHERE, and do not select it.",
        )
    of_key = [each.expression for each in rank.partition]
    names = [each.name for each in of_key if isinstance(each, Column)]
    physical = {field.name for field in table.fields}
    if table.primary_key and set(table.primary_key) <= set(names):
        return KeyedView(table, tuple(shown), rest, None)
    _check_topic(script, rank, view, table)
    if len(names) < len(of_key) or not set(names) <= physical or not names:
        raise refused(
            "has PARTITION BY of something else than columns of the table",
            "Write PARTITION BY with the bare columns of the key.",
        )
    if any({c.name for c in columns_of(each.expression)} - set(names) for each in rank.before):
        raise refused(
            "filters rows before it numbers them, so that an older row may be its newest",
            "Move the condition of the inner query beside row_num = 1, which leaves a key out once "
            "its newest row does not meet it; or keep in it columns of PARTITION BY alone.",
        )
    key = tuple(dict.fromkeys(names))
    fields = tuple(
        replace(each, nullable=each.nullable and each.name not in key) for each in table.fields
    )
    keyed = replace(table, primary_key=key, fields=fields)
    return KeyedView(keyed, tuple(shown), rest, rank.time)


def check_time(
    script: Script, node: TemporalJoinClause, newest: KeyedView, time: Column | None
) -> None:
    """Require the join's kind of time to be that which orders the rows of a key."""
    if newest.time is None:
        return
    if newest.time is TimeAttribute.EVENT and time is None:
        raise script.error(
            node.at,
            f'"{node.relation.table.text}" has the row of each key with the greatest time, and a '
            "join by processing time has the row that came last",
            hint="Write FOR SYSTEM_TIME AS OF the rowtime of the stream; or, if the rows of each "
            "key come in the order of their time, ORDER BY a PROCTIME() column DESC.",
        )
    if newest.time is TimeAttribute.PROCESSING and time is not None:
        raise script.error(
            node.at,
            f'"{node.relation.table.text}" has the row of each key that came last, which has no '
            "versions by event time",
            hint="Write FOR SYSTEM_TIME AS OF PROCTIME(); or order the rows by the column of their "
            "WATERMARK.",
        )


def newest_rows_text(view: Name, newest: KeyedView) -> str:
    key, table = ", ".join(newest.table.primary_key), newest.table.name
    return (
        f'View "{view.text}" has the newest row of each ({key}): table "{table}" is joined as if '
        f"it had PRIMARY KEY ({key}), so that a later row replaces an earlier one."
    )


def _check_topic(script: Script, rank: Rank, view: Name, table: Table) -> None:
    refused, source = partial(_refused, script, rank, view), table.endpoints.dimension
    if table.primary_key:
        key = ", ".join(table.primary_key)
        raise refused(
            f"needs all rows of a key that is not the PRIMARY KEY ({key}) of its table",
            f"Write PARTITION BY {key}.",
        )
    if not isinstance(source, TopicSource) or source.value.name in OF_CHANGES:
        raise refused(
            f'numbers the rows of table "{table.name}", which has no PRIMARY KEY and is no topic '
            "of rows",
            "Declare PRIMARY KEY (…) NOT ENFORCED in the table, with the columns of PARTITION BY.",
        )
    if rank.is_oldest:
        raise refused(
            "has the first row of each key, and a copy has the newest one",
            "Write ORDER BY ts DESC for the newest row; for the first one let the topic have one "
            "row of each key.",
        )
    if rank.time is None:
        raise refused(
            "does not order the rows of a key by one time, newest first",
            "Write ORDER BY ts DESC with the column of WATERMARK FOR, or with a PROCTIME() column.",
        )


def _refused(script: Script, rank: Rank, view: Name, why: str, hint: str) -> SqlError:
    return script.error(
        rank.at, f'view "{view.text}" {why}, so it cannot be a dimension', hint=hint
    )


def is_first_row(condition: Typed) -> bool:
    """True for `row_number = 1` and `row_number <= 1`."""
    return _is_first(condition.expression)


def without_rank(value: Typed) -> Typed | None:
    """The value where each number is 1; None if it computes with the number."""
    if _is_rank(value.expression):
        return replace(value, expression=_ONE)
    return None if _has_rank(value.expression) else value


def _is_rank(expression: Expression) -> bool:
    return isinstance(expression, Column) and expression.relation == RANK


def _has_rank(expression: Expression) -> bool:
    return any(column.relation == RANK for column in columns_of(expression))


def _is_first(expression: Expression) -> bool:
    """True for `row_number = 1` and `row_number <= 1`."""
    if not isinstance(expression, Call) or len(expression.arguments) != 2:
        return False
    left, right = expression.arguments
    if expression.function == "=" and _is_rank(right):
        left, right = right, left
    is_one = isinstance(right, Constant) and right.value == "1"
    return expression.function in ("=", "<=") and _is_rank(left) and is_one
