"""What a window reads of a joined row: its keys and what its aggregates read, as columns."""

from collections.abc import Iterator

from joins.plan.plan import Aggregate, OutputColumn, Windowing
from joins.plan.types import Case, Expression


def window_input_columns(window: Windowing) -> tuple[OutputColumn, ...]:
    """What is computed of each joined row before it goes into windows; all may be NULL.

    `key_<n>` for the keys in their order, then for the aggregate `n` its argument `arg_<n>` and the
    condition of its FILTER `where_<n>`, if it has them. An argument is computed only where the
    condition is true, elsewhere it is NULL.
    """
    keys = [OutputColumn(f"key_{at}", key.expression) for at, key in enumerate(window.keys)]
    read = [column for at, each in enumerate(window.aggregates) for column in _read(at, each)]
    return (*keys, *read)


def _read(at: int, aggregate: Aggregate) -> Iterator[OutputColumn]:
    if aggregate.argument is not None:
        yield OutputColumn(f"arg_{at}", _filtered(aggregate.argument, aggregate.where))
    if aggregate.where is not None:
        yield OutputColumn(f"where_{at}", aggregate.where)


def _filtered(argument: Expression, where: Expression | None) -> Expression:
    return argument if where is None else Case(((where, argument),), None, argument.type)
