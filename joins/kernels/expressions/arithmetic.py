"""Numbers: operators and functions, a column at a time.

Integers wrap as in Java and `/` truncates; `%` has the sign of the dividend. As in Flink, division
by zero fails unless it is floating; DECIMAL rounds half up and is NULL beyond its digits.
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.calendar.times import shift
from joins.kernels.expressions.casts import Checked, cast, mask_of
from joins.kernels.expressions.conversion import (
    ALL_DIGITS,
    FLOATS,
    INTEGERS,
    checked_decimal,
    rowwise,
    to_decimal,
)
from joins.kernels.expressions.operation import Function, Operation, Value, broadcast, plain
from joins.plan.types import TypeName, arrow_type

_DIVISION = Context(prec=38, rounding=ROUND_HALF_UP, Emin=-9999, Emax=9999)
_EXACT = Context(prec=120, rounding=ROUND_DOWN, Emin=-9999, Emax=9999)
_WIDEST = 76
INTERVALS = frozenset((TypeName.INTERVAL_MONTH, TypeName.INTERVAL_SECOND))
_TIMES = frozenset((TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ, TypeName.DATE, TypeName.TIME))
_MOST_DIGITS = 400


def _arithmetic(function: Callable[..., Value], exact: Callable[..., Decimal]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        if op.result.name is not TypeName.DECIMAL:
            return function(*op.arguments)
        digits = sum(item.precision for item in op.types) + 1
        if digits <= _WIDEST and all(item.name is TypeName.DECIMAL for item in op.types):
            wide = [
                cast(item, pa.decimal256(t.precision, t.scale))
                for item, t in zip(op.arguments, op.types, strict=True)
            ]
            return to_decimal(broadcast(function(*wide), op.num_rows), op.result).values
        return _decimal_rows(exact, op)

    return apply


def _decimal_rows(exact: Callable[..., Decimal], op: Operation) -> Checked:
    def apply(*values: Decimal) -> Decimal | None:
        number = exact(*map(Decimal, values))
        try:
            return checked_decimal(number, op.result)
        except InvalidOperation:
            return None

    return rowwise(apply, op.arrays(), arrow_type(op.result))


def _divide(op: Operation) -> Value | Checked:
    if op.result.name is TypeName.DECIMAL or TypeName.DECIMAL in {item.name for item in op.types}:
        return _decimal_rows(_DIVISION.divide, op)
    if op.types[0].name not in INTEGERS:
        return pc.divide(*op.arguments)
    return _integer_quotient(op)


def _integer_quotient(op: Operation) -> Checked:
    left, right = op.arrays()
    zero = mask_of(pc.equal(right, 0)) & mask_of(pc.is_valid(left))
    minus_one = pc.equal(right, -1)
    special = pc.or_(minus_one, pc.equal(right, 0))
    quotient = pc.divide(left, pc.if_else(special, pa.scalar(1, right.type), right))
    values = pc.if_else(minus_one, pc.negate(left), quotient)
    return Checked(pc.if_else(pa.array(zero), pa.scalar(None, values.type), values), zero)


def _remainder(op: Operation) -> Value | Checked:
    if TypeName.DECIMAL in {item.name for item in op.types}:
        return _decimal_rows(_EXACT.remainder, op)
    if op.types[0].name in INTEGERS:
        quotient = _integer_quotient(op)
        left, right = op.arrays()
        rest = pc.subtract(left, pc.multiply(quotient.values, right))
        return Checked(rest, quotient.failed)
    left, right = (np.asarray(item.to_numpy(zero_copy_only=False)) for item in op.arrays())
    with np.errstate(invalid="ignore"):
        rest = pa.array(np.fmod(left, right))
    valid = pc.and_(*(pc.is_valid(item) for item in op.arrays()))
    return pc.if_else(valid, rest, pa.scalar(None, rest.type))


def _whole(function: Callable[..., Value]) -> Function:
    def apply(op: Operation) -> Value | Checked:
        if op.types[0].name in INTEGERS:
            return op.arguments[0]
        if op.types[0].name is TypeName.DECIMAL:
            wide = cast(op.array(0), pa.decimal256(_WIDEST, op.types[0].scale))
            return to_decimal(function(wide), op.result)
        return function(op.arguments[0])

    return apply


def _sign(op: Operation) -> Value | Checked:
    if op.types[0].name is not TypeName.DECIMAL:
        return pc.sign(op.arguments[0])
    numbers = op.array(0)
    zero = pa.scalar(Decimal(0), numbers.type)
    signs = pc.if_else(pc.greater(numbers, zero), 1, pc.if_else(pc.less(numbers, zero), -1, 0))
    return to_decimal(cast(signs, pa.int64()), op.result)


def _round(op: Operation) -> Value | Checked:
    digits = op.array(1) if len(op.arguments) > 1 else pa.array([0] * op.num_rows)
    kind = op.types[0].name

    def of_row(number: float | Decimal, places: int) -> object:
        exact = Decimal(repr(number)) if kind in FLOATS else Decimal(number)
        if not exact.is_finite() or places > 40:
            return number
        unit = Decimal(1).scaleb(-max(places, -_MOST_DIGITS))
        rounded = exact.quantize(unit, ROUND_HALF_UP, ALL_DIGITS)
        if kind in FLOATS:
            return float(rounded)
        return int(rounded) if kind in INTEGERS else checked_decimal(rounded, op.result)

    if kind in INTEGERS:
        return rowwise(_rounded_integer, [op.array(0), digits], pa.int64()).values
    return rowwise(of_row, [op.array(0), digits], arrow_type(op.result))


def _rounded_integer(number: int, places: int) -> int:
    """Rounds to tens, hundreds, …; a result beyond 64 bits wraps, as in Java."""
    if places >= 0:
        return number
    step: int = 10 ** min(-places, 20)  # more than twice of any
    whole, rest = divmod(abs(number), step)
    rounded = (whole + (2 * rest >= step)) * step * (1 if number >= 0 else -1)
    return (rounded + 2**63) % 2**64 - 2**63


def _moved_or(plain_sum: Function, sign: int) -> Function:
    def apply(op: Operation) -> Value | Checked:
        if op.result.name in INTERVALS:
            return (pc.add_checked if sign > 0 else pc.subtract_checked)(*op.arguments)
        return shift(op, sign) if op.result.name in _TIMES else plain_sum(op)

    return apply


def _multiplied(numbers: Function) -> Function:
    """`*`; the fraction of an interval times a number is cut."""

    def apply(op: Operation) -> Value | Checked:
        if op.result.name not in INTERVALS:
            return numbers(op)
        size, count = op.arrays()
        if op.types[1].name in INTEGERS:
            return pc.multiply_checked(size, cast(count, pa.int64()))
        return rowwise(lambda each, number: int(each * number), [size, count], pa.int64())

    return apply


def _double(function: Callable[..., Value]) -> Function:
    return lambda op: function(*(cast(item, pa.float64()) for item in op.arguments))


ARITHMETIC: Mapping[str, Function] = {
    "+": _moved_or(_arithmetic(pc.add, _EXACT.add), 1),
    "-": _moved_or(_arithmetic(pc.subtract, _EXACT.subtract), -1),
    "*": _multiplied(_arithmetic(pc.multiply, _EXACT.multiply)),
    "/": _divide,
    "%": _remainder,
    "MOD": _remainder,
    "NEG": plain(pc.negate),
    "ABS": plain(pc.abs),
    "CEIL": _whole(pc.ceil),
    "FLOOR": _whole(pc.floor),
    "ROUND": _round,
    "SIGN": _sign,
    "SQRT": _double(pc.sqrt),
    "POWER": _double(pc.power),
}
