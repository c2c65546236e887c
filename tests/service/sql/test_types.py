"""Types of arithmetic, and the type that several have in common."""

import pytest

from joins.plan.types import SqlType, TypeName
from service.sql.grammar.type_parser import arithmetic_type, common_type


def decimal(precision, scale):
    return SqlType(TypeName.DECIMAL, precision, scale)


# (operator, left, right, result): the values that Flink's own tests name, and plain ones.
DECIMALS = {
    "division_keeps_six_digits": ("/", decimal(32, 8), decimal(38, 8), decimal(38, 6)),
    "division_keeps_whole_digits": ("/", decimal(30, 20), decimal(30, 20), decimal(38, 8)),
    "product_keeps_six_digits": ("*", decimal(30, 10), decimal(30, 10), decimal(38, 6)),
    "product_keeps_whole_digits": ("*", decimal(30, 20), decimal(30, 20), decimal(38, 17)),
    "product_of_the_widest": ("*", decimal(38, 2), decimal(38, 3), decimal(38, 5)),
    "modulo": ("%", decimal(30, 20), decimal(25, 20), decimal(25, 20)),
    "modulo_without_whole_digits": ("%", decimal(10, 10), decimal(10, 10), decimal(10, 10)),
    "sum_has_one_more_digit": ("+", decimal(10, 2), decimal(8, 3), decimal(12, 3)),
    "integer_counts_its_digits": ("-", decimal(5, 2), SqlType(TypeName.INT), decimal(13, 2)),
    "double_wins": ("*", decimal(5, 2), SqlType(TypeName.DOUBLE), SqlType(TypeName.DOUBLE)),
    "float_with_decimal_is_double": (
        "+",
        decimal(5, 2),
        SqlType(TypeName.FLOAT),
        SqlType(TypeName.DOUBLE),
    ),
}


@pytest.mark.parametrize(("operator", "left", "right", "result"), DECIMALS.values(), ids=DECIMALS)
def test_arithmetic_has_flinks_type(operator, left, right, result):
    assert arithmetic_type(operator, left, right) == result


def test_common_type_does_not_depend_on_the_order():
    types = [SqlType(name, 3 if name.name.startswith("TIME") else 0) for name in TypeName]
    types[list(TypeName).index(TypeName.DECIMAL)] = decimal(9, 4)
    for left in types:
        for right in types:
            assert common_type([left, right]) == common_type([right, left])
