"""What outputs and state keep: not each type of a value, and no windows of another zone."""

from collections.abc import Sequence

from joins.kernels.calendar.zones import UTC
from joins.plan.plan import Windowing
from joins.plan.types import TypeName
from service.sql.catalog.settings import LOCAL_TIME_ZONE
from service.sql.expressions.expression_planner import ExpressionPlanner
from service.sql.expressions.scope import NameScope, ScopeColumn, Typed
from service.sql.grammar.column_types import unfit
from service.sql.grammar.expression_nodes import Name, TypeNode
from service.sql.grammar.syntax import PhysicalColumn
from service.sql.grammar.type_rules import STRING, type_text
from service.sql.text.script import Script


def check_zone(script: Script, at: int, window: Windowing | None) -> None:
    """See that a window of instants is one of UTC, by which they are cut.

    Raises:
        SqlError: the session has another zone.
    """
    if window is None or script.zone == UTC:
        return
    if window.time is None or window.time.type.name is not TypeName.TIMESTAMP:
        raise script.error(
            at,
            f'a window of instants in the time zone "{script.zone}"',
            hint=f"Write SET '{LOCAL_TIME_ZONE}' = 'UTC', and give the window an OFFSET.",
        )


def refuse_unkept(script: Script, value: Typed, what: str) -> None:
    """See that state can keep values of a type.

    Raises:
        SqlError: it cannot.
    """
    if unfit(value.type) is not None:
        raise script.error(
            value.at,
            f"{what} takes no {type_text(value.type)[:200]}",
            hint="Write CAST(… AS STRING), or EXTRACT a number from it.",
        )


def shown(script: Script, values: Sequence[Typed]) -> list[Typed]:
    planner = ExpressionPlanner(NameScope(script, ()))
    return [value if unfit(value.type) is None else planner.cast(value, STRING) for value in values]


def created_columns(
    script: Script, columns: Sequence[ScopeColumn], at: int
) -> tuple[PhysicalColumn, ...]:
    """The columns of a table that is created for the rows of a query.

    Raises:
        SqlError: one is of a type that no column has.
    """
    for column in columns:
        reason = unfit(column.type)
        if reason is not None:
            raise script.error(
                at,
                f'column "{column.name}" of the query: {reason[0]}',
                hint="Write CAST(… AS STRING) in the query, or another type of columns.",
            )
    return tuple(
        PhysicalColumn(Name(column.name, at), TypeNode(column.type, at), column.nullable)
        for column in columns
    )
