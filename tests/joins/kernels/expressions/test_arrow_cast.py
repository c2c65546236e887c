"""DECIMAL as floating point: the nearest number for all precisions and scales, on one way only."""

import ast
import random
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import joins
from joins.kernels.expressions.casts import cast
from joins.kernels.expressions.conversion import convert
from joins.plan.types import SqlType, TypeName
from tests.support.expressions import arrays, evaluated, planned

SOURCES = Path(joins.__file__).parent
EXACT = Context(prec=38)
DECIMALS_IN_ALL = 100_000


def numbers(scale, count, seed):
    """Digits of all lengths, and those around the powers of two, where a tie is near."""
    dice = random.Random(seed)
    edges = [10**38 - 1, 2**53 - 1, 2**53, 2**53 + 1, 2**24 + 1, 2**64 + 2**11, 0, 1, 83_880, 5]
    found = [sign * edge for edge in edges for sign in (1, -1)]
    while len(found) < count:
        digits = 10 ** dice.randint(1, 38)
        found.append(dice.randint(1 - digits, digits - 1))
    return [Decimal(number).scaleb(-scale, EXACT) for number in found]


def nearest_float32(number):
    exact, near = Fraction(number), np.float32(float(number))
    infinity = np.float32(np.inf)
    candidates = (near, np.nextafter(near, infinity), np.nextafter(near, -infinity))
    return min(
        candidates,
        key=lambda item: (abs(Fraction(float(item)) - exact), int(item.view(np.uint32)) & 1),
    )


@pytest.mark.parametrize("scale", range(39))
def test_a_decimal_becomes_the_nearest_double(scale):
    with_null = [None, *numbers(scale, DECIMALS_IN_ALL // 39, scale)]
    column = pa.array(with_null, pa.decimal128(38, scale))
    expected = [None if number is None else float(str(number)) for number in with_null]
    assert cast(column, pa.float64()).to_pylist() == expected
    assert cast(column.slice(3, 99), pa.float64()).to_pylist() == expected[3:102]
    wide = column.slice(0, 99).cast(pa.decimal256(76, scale))
    assert cast(wide, pa.float64()).to_pylist() == expected[:99]


@pytest.mark.parametrize("scale", range(39))
def test_a_decimal_becomes_the_nearest_float_without_a_double_in_between(scale):
    found = numbers(scale, 150, scale)
    column = pa.array(found, pa.decimal128(38, scale))
    expected = [float(nearest_float32(number)) for number in found]
    assert cast(column, pa.float32()).to_pylist() == expected


@pytest.mark.parametrize("scale", [0, 2, 10, 22, 23])
@pytest.mark.parametrize("to", [pa.float32(), pa.float64()], ids=str)
def test_the_quick_way_gives_what_the_text_gives(scale, to):
    dice = random.Random(scale)
    for limit in (2**24, 2**53):
        found = [Decimal(dice.randint(-limit, limit)).scaleb(-scale, EXACT) for _ in range(500)]
        column = pa.array([*found, None], pa.decimal128(38, scale))
        assert cast(column, to).equals(column.cast(pa.string()).cast(to))


def test_an_empty_column_and_one_of_nulls_stay_so():
    for values in ([], [None, None]):
        assert cast(pa.array(values, pa.decimal128(10, 2)), pa.float64()).to_pylist() == values


PRICES = [(Decimal("838.80"), 838.8), (Decimal("0.10"), 0.1), (Decimal("-1234567.89"), -1234567.89)]
TYPES = {"d": "DECIMAL(10, 2)", "r": "DOUBLE"}
WHERE_THEY_MEET = {
    "equality": ("d = r", True),
    "equality_turned_round": ("r = d", True),
    "not_distinct": ("d IS NOT DISTINCT FROM r", True),
    "between": ("d BETWEEN r AND r", True),
    "in": ("d IN (0, r)", True),
    "nullif": ("NULLIF(r, d) IS NULL", True),
    "cast": ("CAST(d AS DOUBLE) - r", 0.0),
    "sum": ("d + r = r + r", True),
    "choice": ("CASE WHEN r IS NULL THEN r ELSE d END - r", 0.0),
    "coalesce": ("COALESCE(CAST(NULL AS DOUBLE), d) - r", 0.0),
    "greatest": ("GREATEST(d, r) - LEAST(d, r)", 0.0),
    "function": ("POWER(d, 2) = POWER(r, 2)", True),
    "array": ("ARRAY[d, r][1] - r", 0.0),
    "array_cast": ("CAST(ARRAY[d] AS ARRAY<DOUBLE>)[1] - r", 0.0),
    "text": ("CAST(CAST(d AS DOUBLE) AS STRING) = CAST(r AS STRING)", True),
    "float": ("CAST(CAST(d AS FLOAT) AS STRING) = CAST(CAST(r AS FLOAT) AS STRING)", True),
}


@pytest.mark.parametrize(("expression", "expected"), WHERE_THEY_MEET.values(), ids=WHERE_THEY_MEET)
def test_a_decimal_meets_a_double_as_the_same_number(expression, expected):
    answer = evaluated(planned(expression, TYPES), arrays(TYPES, PRICES))
    assert answer.values.to_pylist() == [expected] * len(PRICES)


def test_a_decimal_in_a_nested_value_is_rounded_as_well():
    source = SqlType(TypeName.DECIMAL, 10, 2)
    column = pa.array([Decimal("838.80")], pa.decimal128(10, 2))
    assert convert(column, source, SqlType(TypeName.DOUBLE)).values.to_pylist() == [838.8]


def casts_in(path):
    """(line, target) of each `.cast(target)`; None where only a run knows the target."""
    for node in ast.walk(ast.parse(path.read_text())):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr == "cast" and node.args:
            target = node.args[0]
            named = isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute)
            yield node.lineno, target.func.attr if named else None


def imported(module):
    """The kernels that a module is made of."""
    found, pending = set(), [module]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("joins.kernels"):
                pending.append(SOURCES.parent / (node.module.replace(".", "/") + ".py"))
    return {path for path in found if path.exists()}


ONE_WAY = SOURCES / "kernels" / "expressions" / "arrow_cast.py"
TEXT_ONLY = SOURCES / "kernels" / "expressions" / "casts.py"


def test_nothing_else_casts_to_floating_point():
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text()
        if path != ONE_WAY and ("float32" in text or "float64" in text):
            found = [line for line, name in casts_in(path) if name in ("float32", "float64")]
            assert found == [], f"{path}: use joins.kernels.expressions.casts"


@pytest.mark.parametrize("module", ["expressions/evaluate", "windows/accumulators"])
def test_what_computes_values_has_no_cast_whose_target_may_be_floating_point(module):
    for path in sorted(imported(SOURCES / "kernels" / f"{module}.py") - {ONE_WAY, TEXT_ONLY}):
        found = [line for line, name in casts_in(path) if name is None]
        assert found == [], f"{path}: use joins.kernels.expressions.casts"
