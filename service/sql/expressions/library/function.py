"""What a function is: its arguments, its result, its name in the plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from joins.plan.types import SqlType, TypeName
from service.sql.grammar.type_rules import INSTANTS, INTEGERS, NUMERIC, STRING, TEMPORAL


class Takes(Enum):
    """What a function accepts in one place."""

    TEXT = auto()
    BYTES = auto()
    TEXT_OR_BYTES = auto()
    WHOLE = auto()
    LONG = auto()
    NUMBER = auto()
    CONDITION = auto()
    CALENDAR = auto()
    CLOCK = auto()
    TIME = auto()
    MOMENT = auto()
    ANYTHING = auto()


ACCEPTED: dict[Takes, tuple[frozenset[TypeName], str]] = {
    Takes.TEXT: (frozenset((TypeName.STRING,)), "STRING"),
    Takes.BYTES: (frozenset((TypeName.BYTES,)), "BYTES"),
    Takes.TEXT_OR_BYTES: (frozenset((TypeName.STRING, TypeName.BYTES)), "STRING or BYTES"),
    Takes.WHOLE: (INTEGERS - {TypeName.BIGINT}, "INT"),
    Takes.LONG: (INTEGERS, "BIGINT"),
    Takes.NUMBER: (NUMERIC, "a number"),
    Takes.CONDITION: (frozenset((TypeName.BOOLEAN,)), "BOOLEAN"),
    Takes.CALENDAR: (TEMPORAL - {TypeName.TIME}, "DATE or TIMESTAMP"),
    Takes.CLOCK: (TEMPORAL - {TypeName.DATE}, "TIME or TIMESTAMP"),
    Takes.TIME: (TEMPORAL, "DATE, TIME or TIMESTAMP"),
    Takes.MOMENT: (INSTANTS, "TIMESTAMP"),
    Takes.ANYTHING: (frozenset(TypeName), "a value"),
}

Result = Callable[[Sequence[SqlType]], SqlType]


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function.

    Attributes:
        takes: of each argument; the last `optional` ones may be left out.
        repeats: the last argument may come any number of times.
        result: the result's type by the arguments' types, after they were cast.
        common: all arguments are first cast to one common type.
        call: the name in the plan.
        null_free: the result is never NULL, whatever the arguments are.
        may_be_null: the result may be NULL though no argument is.
    """

    takes: tuple[Takes, ...]
    result: Result
    call: str
    optional: int = 0
    repeats: bool = False
    common: bool = False
    null_free: bool = False
    may_be_null: bool = False


def fixed(sql_type: SqlType) -> Result:
    return lambda _: sql_type


def first(types: Sequence[SqlType]) -> SqlType:
    return types[0]


def text(
    call: str, *takes: Takes, optional: int = 0, repeats: bool = False, may_be_null: bool = False
) -> Function:
    return Function(takes, fixed(STRING), call, optional, repeats, may_be_null=may_be_null)
