"""Keys, comparisons and outputs have the types that the data path expects."""

import pytest

from joins.plan.plan import JoinPlan
from joins.plan.types import Call, Case, Cast, Constant, Expression, SqlType, TypeName
from service.sql.expressions.functions import COMPARISONS
from service.sql.grammar.type_rules import arithmetic_type, common_type
from service.sql.planner.planner import plan
from tests.support.sql_cases import sql_cases

CASES = sql_cases("plan")


def parts_of(expression: Expression | None):
    if expression is None:
        return
    yield expression
    if isinstance(expression, Cast):
        yield from parts_of(expression.operand)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from parts_of(argument)
    elif isinstance(expression, Case):
        for branch in expression.branches:
            for part in branch:
                yield from parts_of(part)
        yield from parts_of(expression.otherwise)


def roots_of(made: JoinPlan):
    yield from (field.expression for field in made.probe.computed_fields)
    for join in made.joins:
        yield from (key.probe for key in join.keys)
        yield join.condition
    yield made.where
    for watermark in (made.probe.watermark, *(d.watermark for d in made.dimensions)):
        if watermark is not None:
            yield watermark.expression
    if made.window is not None:
        yield from (key.expression for key in made.window.keys)
        for item in made.window.aggregates:
            yield from (item.argument, item.where)
        yield made.window.having
    yield from (column.expression for column in made.output)


def check(part: Expression):
    if isinstance(part, Call) and part.function in COMPARISONS | {
        "IN",
        "COALESCE",
        "GREATEST",
        "LEAST",
    }:
        assert len({argument.type for argument in part.arguments}) == 1, part
    if isinstance(part, Call) and part.function in {"AND", "OR", "NOT"}:
        assert {argument.type.name for argument in part.arguments} == {TypeName.BOOLEAN}
    if isinstance(part, Case):
        assert all(condition.type.name is TypeName.BOOLEAN for condition, _ in part.branches)
        assert {value.type for _, value in part.branches} <= {part.type}
    if isinstance(part, Cast):
        assert part.operand.type != part.type or part.safe
    if isinstance(part, Constant) and part.type.name is TypeName.BOOLEAN:
        assert part.value in (None, "true", "false")


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_every_operand_has_the_type_that_the_data_path_expects(text):
    made = plan(text)
    dimensions = {dimension.name: dimension for dimension in made.dimensions}
    for join in made.joins:
        types = {field.name: field.type for field in dimensions[join.dimension].fields}
        for key in join.keys:
            assert key.probe.type == types[key.dimension_column]
    for root in roots_of(made):
        for part in parts_of(root):
            check(part)


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
