"""What Flink's own tests say of expressions: each has that result here, or fails as it does there.

Left out are expressions that Sluice refuses, nested results, and results that do not fit their type
(Flink wraps, saturates or gives NULL; here the record is a dead letter).
"""

import json
from itertools import groupby
from pathlib import Path

import pytest

from joins.kernels.expressions.conversion import constant, convert
from joins.plan.types import TypeName
from tests.support.expressions import evaluated, planned, sql_type

CASES = json.loads(Path(__file__).with_name("flink_expressions.json").read_text("utf-8"))["cases"]
BY_TEST = {
    name: list(cases) for name, cases in groupby(CASES, lambda case: case["id"].partition(":")[0])
}
STRING = sql_type("STRING")
FAILS = "fails"


@pytest.mark.parametrize("cases", BY_TEST.values(), ids=BY_TEST)
def test_an_expression_gives_what_flink_gives(cases):
    wrong = {case["id"]: (case, found) for case in cases if (found := result(case)) != wanted(case)}
    assert wrong == {}


def wanted(case):
    return FAILS if case.get("fails") else case["expected"]


def result(case):
    columns = case.get("columns", {})
    types = {name: kind for name, (kind, _) in columns.items()}
    values = {
        name: constant(value, sql_type(kind)).values for name, (kind, value) in columns.items()
    }
    typed = planned(case["expr"], types)
    answer = evaluated(typed, values)
    if answer.errors:
        return FAILS
    if typed.type.name is TypeName.BYTES:
        value = answer.values[0].as_py()
        return None if value is None else value.hex()
    return convert(answer.values, typed.type, STRING).values[0].as_py()
