"""What a window reads of a joined row: its keys and the arguments of its aggregates, as columns."""

from joins.expressions import Case, Constant, Expression
from joins.plan import Aggregate, OutputColumn, Windowing
from joins.types import SqlType, TypeName

_BOOLEAN = SqlType(TypeName.BOOLEAN)
_COUNTED = Constant("true", _BOOLEAN)


def key_name(at: int) -> str:
    """The column of the group key at this place of `Windowing.keys`."""
    return f"k{at}"


def argument_name(at: int) -> str:
    """The column of the aggregate at this place of `Windowing.aggregates`."""
    return f"a{at}"


def argument_of(aggregate: Aggregate) -> Expression | None:
    """What `aggregate` reads of a row, NULL in a row that does not count; None for all rows.

    FILTER is in it: the argument is computed only where the condition is true, and
    `COUNT(*) FILTER (WHERE …)` counts the rows in which it is not NULL.
    """
    if aggregate.where is None:
        return aggregate.argument
    argument = aggregate.argument or _COUNTED
    return Case(((aggregate.where, argument),), None, argument.type)


def window_input_columns(window: Windowing) -> tuple[OutputColumn, ...]:
    """The columns of a window's input that are computed from joined rows; all may be NULL.

    Keys first (`key_name`), then the arguments of those aggregates that have one
    (`argument_name`); behind them come the columns of the record.
    """
    keys = [OutputColumn(key_name(at), key.expression) for at, key in enumerate(window.keys)]
    read = [(at, argument_of(each)) for at, each in enumerate(window.aggregates)]
    given = [OutputColumn(argument_name(at), each) for at, each in read if each is not None]
    return (*keys, *given)
