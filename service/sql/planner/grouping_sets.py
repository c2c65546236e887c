"""GROUPING SETS: a row is grouped once for each set of keys, in which all other keys are NULL."""

from collections.abc import Collection, Sequence

from joins.plan.plan import JoinType, OutputColumn, Unnest
from joins.plan.types import Call, Case, Column, Constant, Expression, array_type
from service.sql.grammar.type_rules import BIGINT, BOOLEAN, INT

SETS = "$sets"
"""The relation of the number of a set: a row for each set."""
NUMBER = Column(SETS, "element", INT)
FUNCTIONS = ("GROUPING", "GROUPING_ID", "GROUP_ID")


def numbers_of_sets(count: int) -> Unnest:
    """The step that makes a row for each set."""
    value = Call("ARRAY", tuple(map(_number, range(count))), array_type(INT, nullable=False))
    return Unnest(SETS, value, JoinType.INNER)


def keyed(
    keys: Sequence[OutputColumn], sets: Sequence[Collection[str]]
) -> tuple[OutputColumn, ...]:
    """The keys over the rows of all sets, and the number of the set as a further key."""
    columns = []
    for key in keys:
        having = [at for at, names in enumerate(sets) if key.name in names]
        if len(having) == len(sets):
            columns.append(key)
            continue
        value = Case(((_is_one_of(NUMBER, having), key.expression),), None, key.expression.type)
        columns.append(OutputColumn(key.name, value))
    return (*columns, OutputColumn(f"k{len(keys)}", NUMBER, nullable=False))


def bits(number: Column, names: Sequence[str], sets: Sequence[Collection[str]]) -> Expression:
    """GROUPING and GROUPING_ID: a bit for each key, 1 where its set has not the key."""
    values = [sum((name not in each) << at for at, name in enumerate(names[::-1])) for each in sets]
    return _by_set(number, values)


def repetitions(number: Column, sets: Sequence[Collection[str]]) -> Expression:
    """GROUP_ID: how many sets before have the same keys."""
    return _by_set(number, [list(sets[:at]).count(each) for at, each in enumerate(sets)])


def _by_set(number: Column, values: Sequence[int]) -> Expression:
    branches = tuple(
        (
            _is_one_of(number, [at for at, each in enumerate(values) if each == value]),
            Constant(str(value), BIGINT),
        )
        for value in dict.fromkeys(values)
    )
    if len(branches) < 2:
        return Constant(str(values[0]) if values else "0", BIGINT)
    return Case(branches[:-1], branches[-1][1], BIGINT)


def _is_one_of(number: Column, places: Sequence[int]) -> Expression:
    return Call("IN", (number, *map(_number, places)), BOOLEAN)


def _number(value: int) -> Constant:
    return Constant(str(value), INT)
