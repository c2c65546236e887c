"""Functions of mathematics: logarithms, angles, TRUNCATE and RAND by a seed.

SIN, COS and TAN have the digits of Java's fdlibm up to the angle `_MOST`; other results may differ
in the last digit. Source: the public description of fdlibm's kernels (k_sin, k_cos, k_tan,
rem_pio2).
"""

import math
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, Decimal

import numpy as np
import pyarrow as pa

from joins.kernels.expressions.casts import Checked, cast, mask_of
from joins.kernels.expressions.conversion import (
    ALL_DIGITS,
    FLOATS,
    INTEGERS,
    checked_decimal,
    rowwise,
)
from joins.kernels.expressions.operation import Function, Operation
from joins.plan.types import arrow_type

_HALF_PI = (
    (1.57079632673412561417e00, 6.07710050650619224932e-11, 0),
    (6.07710050630396597660e-11, 2.02226624879595063154e-21, 16),
    (2.02226624871116645580e-21, 8.47842766036889956997e-32, 49),
)
_SIN = (-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08,
        1.58969099521155010221e-10)  # fmt: skip
_COS = (4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09,
        -1.13596475577881948265e-11)  # fmt: skip
_TAN = (3.33333333333334091986e-01, 1.33333333333201242699e-01, 5.39682539762260521377e-02,
        2.18694882948595424599e-02, 8.86323982359930005737e-03, 3.59207910759131235356e-03,
        1.45620945432529025516e-03, 5.88041240820264096874e-04, 2.46463134818469906812e-04,
        7.81794442939557092300e-05, 7.14072491382608190305e-05, -1.85586374855275456654e-05,
        2.59073051863633712884e-05)  # fmt: skip
_QUARTER = math.pi / 4
_MOST = 2.0**19 * math.pi / 2
_LARGE = 0.6744
_PIO4, _PIO4_LOW = 7.85398163397448278999e-01, 3.06161699786838301793e-17


def sine(angle: float) -> float:
    if not abs(angle) < _MOST:
        return math.sin(angle)
    turns, x, y = _reduced(angle)
    value = _sin(x, y) if turns % 2 == 0 else _cos(x, y)
    return -value if turns % 4 in (2, 3) else value


def cosine(angle: float) -> float:
    if not abs(angle) < _MOST:
        return math.cos(angle)
    turns, x, y = _reduced(angle)
    value = _cos(x, y) if turns % 2 == 0 else _sin(x, y)
    return -value if turns % 4 in (1, 2) else value


def tangent(angle: float) -> float:
    if not abs(angle) < _MOST:
        return math.tan(angle)
    turns, x, y = _reduced(angle)
    return _tan(x, y, inverted=turns % 2 == 1)


def _reduced(angle: float) -> tuple[int, float, float]:
    """Number of right angles removed, and the rest in two parts."""
    if abs(angle) <= _QUARTER:
        return 0, angle, 0.0
    turns = int(abs(angle) * (2 / math.pi) + 0.5)
    exponent = math.frexp(angle)[1]
    rest = abs(angle) - turns * _HALF_PI[0][0]
    low = turns * _HALF_PI[0][1]
    first = rest - low
    for part, tail, lost in _HALF_PI[1:]:
        if exponent - math.frexp(first)[1] <= lost:
            break
        before, step = rest, turns * part
        rest = before - step
        low = turns * tail - ((before - rest) - step)
        first = rest - low
    second = (rest - first) - low
    return (turns, first, second) if angle > 0 else (-turns, -first, -second)


def _sin(x: float, y: float) -> float:
    if abs(x) < 2.0**-27:
        return x
    z = x * x
    v = z * x
    r = _SIN[1] + z * (_SIN[2] + z * (_SIN[3] + z * (_SIN[4] + z * _SIN[5])))
    if y == 0:
        return x + v * (_SIN[0] + z * r)
    return x - ((z * (0.5 * y - v * r) - y) - v * _SIN[0])


def _cos(x: float, y: float) -> float:
    if abs(x) < 2.0**-27:
        return 1.0
    z = x * x
    r = z * (_COS[0] + z * (_COS[1] + z * (_COS[2] + z * (_COS[3] + z * (_COS[4] + z * _COS[5])))))
    if abs(x) < 0.3:
        return 1.0 - (0.5 * z - (z * r - x * y))
    quarter = 0.28125 if abs(x) > 0.78125 else _high(abs(x) / 4)
    half = 0.5 * z - quarter
    return (1.0 - quarter) - (half - (z * r - x * y))


def _high(number: float) -> float:
    bits = struct.unpack("<q", struct.pack("<d", number))[0]
    kept: float = struct.unpack("<d", struct.pack("<q", bits & ~0xFFFFFFFF))[0]
    return kept


def _tan(x: float, y: float, *, inverted: bool) -> float:
    if abs(x) < 2.0**-28 and not inverted:
        return x
    negative, large = x < 0, abs(x) >= _LARGE
    if large:
        if negative:
            x, y = -x, -y
        x, y = (_PIO4 - x) + (_PIO4_LOW - y), 0.0
    z = x * x
    w = z * z
    odd = _TAN[1] + w * (_TAN[3] + w * (_TAN[5] + w * (_TAN[7] + w * (_TAN[9] + w * _TAN[11]))))
    even = z * (
        _TAN[2] + w * (_TAN[4] + w * (_TAN[6] + w * (_TAN[8] + w * (_TAN[10] + w * _TAN[12]))))
    )
    s = z * x
    r = y + z * (s * (odd + even) + y)
    r += _TAN[0] * s
    w = x + r
    if large:
        one = -1.0 if inverted else 1.0
        value = one - 2.0 * (x - (w * w / (w + one) - r))
        return -value if negative else value
    if not inverted:
        return w
    z = _high(w)
    v = r - (z - x)
    a = -1.0 / w
    t = _high(a)
    s = 1.0 + t * z
    return t + a * (s + t * v)


_MULTIPLIER, _ADDEND, _MODULUS = 0x5DEECE66D, 0xB, 2**48
_MOST_PLACES = 400


def _real(function: Callable[..., float]) -> Function:
    """A function of DOUBLE; NaN or infinite where C has no value, as in Java."""

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
    """TRUNCATE; a negative number of places clears digits before the point."""
    kind, to = op.types[0].name, arrow_type(op.result)
    places = op.array(1) if len(op.arguments) > 1 else pa.array([0] * op.num_rows, pa.int32())

    def of_row(number: float | Decimal, digits: int) -> object:
        exact = Decimal(repr(number)) if kind in FLOATS else Decimal(number)
        if not exact.is_finite() or digits > 40:
            return number
        unit = Decimal(1).scaleb(-max(digits, -_MOST_PLACES))
        cut = exact.quantize(unit, ROUND_DOWN, ALL_DIGITS)
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
    """The first numbers of `java.util.Random(seed)`, with `draws` bits each."""
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
