"""Functions of numbers."""

from collections.abc import Sequence

from joins.plan.types import SqlType, TypeName
from service.sql.expressions.library.function import Function, Takes, first, fixed, text
from service.sql.grammar.type_rules import DOUBLE

_N, _W = Takes.NUMBER, Takes.WHOLE
_REAL = ("EXP", "LN", "LOG10", "LOG2", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN", "SINH",
         "COSH", "TANH", "DEGREES", "RADIANS", "SQRT")  # fmt: skip


def _without_scale(types: Sequence[SqlType]) -> SqlType:
    operand = types[0]
    if operand.name is TypeName.DECIMAL:
        return SqlType(TypeName.DECIMAL, operand.precision, 0)
    return operand


NUMBERS: dict[str, Function] = {
    "NEG": Function((_N,), first, "NEG"),
    "ABS": Function((_N,), first, "ABS"),
    "CEIL": Function((_N,), _without_scale, "CEIL"),
    "CEILING": Function((_N,), _without_scale, "CEIL"),
    "FLOOR": Function((_N,), _without_scale, "FLOOR"),
    "ROUND": Function((_N, _W), first, "ROUND", optional=1),
    "TRUNCATE": Function((_N, _W), first, "TRUNCATE", optional=1),
    "SIGN": Function((_N,), first, "SIGN"),
    **{name: Function((_N,), fixed(DOUBLE), name) for name in _REAL},
    "POWER": Function((_N, _N), fixed(DOUBLE), "POWER"),
    "ATAN2": Function((_N, _N), fixed(DOUBLE), "ATAN2"),
    "LOG": Function((_N, _N), fixed(DOUBLE), "LOG", optional=1),
    "BIN": text("BIN", Takes.LONG),
}
TO_DOUBLE = frozenset((*_REAL, "POWER", "ATAN2", "LOG"))
