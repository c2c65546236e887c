"""Functions of mathematics: logarithms, angles, TRUNCATE and RAND by a seed.

Results are written with the digits that tell them apart, so that two libraries may differ in the
last one; sine, cosine and tangent are those of Java.
"""

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.arrow_cast import cast
from joins.kernels.expressions.casts import Checked, mask_of
from joins.kernels.expressions.conversion import FLOATS, INTEGERS, checked_decimal, rowwise
from joins.kernels.expressions.operation import Function, Operation
from joins.kernels.numbers.angles import cosine, sine, tangent
from joins.plan.types import arrow_type

_MULTIPLIER, _ADDEND, _MODULUS = 0x5DEECE66D, 0xB, 2**48
_MOST_PLACES = 400


def _real(function: Callable[..., float]) -> Function:
    """Of DOUBLE; where C has no value the result is NaN or infinite, as in Java."""

    def apply(op: Operation) -> pa.Array:
        arrays = [cast(item, pa.float64()) for item in op.arrays()]
        numbers = [item.to_pylist() for item in arrays]
        valid = np.logical_and.reduce([mask_of(item.is_valid()) for item in arrays])
        values = [
            function(*row) if there else 0.0
            for there, row in zip(valid, zip(*numbers, strict=True), strict=True)
        ]
        return pa.array(values, pa.float64(), mask=~valid)

    return apply


def _defined(function: Callable[..., float]) -> Callable[..., float]:
    def apply(*numbers: float) -> float:
        try:
            return function(*numbers)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return apply


def _log(number: float) -> float:
    return -math.inf if number == 0 else math.log(number) if number > 0 else math.nan


def _log10(number: float) -> float:
    return -math.inf if number == 0 else math.log10(number) if number > 0 else math.nan


def _log_of(base: float, number: float | None = None) -> float:
    if number is None:
        return _log(base)
    return _ratio(_log(number), _log(base))


def _ratio(top: float, bottom: float) -> float:
    if bottom == 0:
        return math.nan if top == 0 or top != top else math.copysign(math.inf, top)
    return top / bottom


def _cot(number: float) -> float:
    slope = tangent(number)
    return math.copysign(math.inf, slope) if slope == 0 else 1.0 / slope


def _sinh(number: float) -> float:
    try:
        return math.sinh(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _truncate(op: Operation) -> Checked:
    """To a number of places; a negative one clears digits before the point."""
    kind, to = op.types[0].name, arrow_type(op.result)
    places = op.array(1) if len(op.arguments) > 1 else pa.array([0] * op.num_rows, pa.int32())

    def of_row(number: float | Decimal, digits: int) -> object:
        exact = Decimal(repr(number)) if kind in FLOATS else Decimal(number)
        if not exact.is_finite() or digits > 40:
            return number
        unit = Decimal(1).scaleb(-max(digits, -_MOST_PLACES))
        cut = (exact / unit).to_integral_value(ROUND_DOWN) * unit
        if kind in FLOATS:
            return float(cut)
        return int(cut) if kind in INTEGERS else checked_decimal(cut, op.result)

    column = op.array(0)
    if kind in FLOATS and column.type == pa.float32():
        column = pa.array(
            [None if n is None else float(str(np.float32(n))) for n in column.to_pylist()],
            pa.float64(),
        )
    return rowwise(of_row, [column, places], to)


def _bits(seed: int, draws: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers that `java.util.Random(seed)` draws first, of so many bits each."""
    state = (seed ^ _MULTIPLIER) % _MODULUS
    numbers = []
    for bits in draws:
        state = (state * _MULTIPLIER + _ADDEND) % _MODULUS
        numbers.append(state >> (48 - bits))
    return tuple(numbers)


def _rand(seed: int) -> float:
    high, low = _bits(seed, (26, 27))
    return float(((high << 27) + low) * 2.0**-53)


def _rand_integer(seed: int, bound: int) -> int:
    if bound <= 0:
        raise ValueError(bound)
    draws = 1
    while True:
        number = _bits(seed, (31,) * draws)[-1]
        if bound & -bound == bound:
            return bound * number >> 31
        if number - number % bound + bound - 1 < 2**31:
            return number % bound
        draws += 1


MATHEMATICS: Mapping[str, Function] = {
    "EXP": _real(_defined(math.exp)),
    "LN": _real(_log),
    "LOG": _real(_log_of),
    "LOG10": _real(_log10),
    "LOG2": _real(lambda number: _log(number) / math.log(2)),
    "SIN": _real(_defined(sine)),
    "COS": _real(_defined(cosine)),
    "TAN": _real(_defined(tangent)),
    "COT": _real(_defined(_cot)),
    "ASIN": _real(_defined(math.asin)),
    "ACOS": _real(_defined(math.acos)),
    "ATAN": _real(math.atan),
    "ATAN2": _real(math.atan2),
    "SINH": _real(_sinh),
    "COSH": _real(_defined(math.cosh)),
    "TANH": _real(math.tanh),
    "DEGREES": _real(lambda number: number * _DEGREES),
    "RADIANS": _real(lambda number: number * _RADIANS),
    "TRUNCATE": _truncate,
    "RAND": lambda op: rowwise(_rand, op.arrays(), pa.float64()),
    "RAND_INTEGER": lambda op: rowwise(_rand_integer, op.arrays(), pa.int32()),
}
_DEGREES = 57.29577951308232
_RADIANS = 0.017453292519943295
