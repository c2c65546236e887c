"""The allow-list and the evaluator agree: on names, and on the type of every result."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from joins.expressions import Column
from joins.kernels.evaluate import FUNCTIONS as EVALUATED
from joins.kernels.evaluate import Scope, evaluate_rows
from joins.types import TypeName, arrow_type
from service.sql.functions import CALLS, FUNCTIONS, REFUSED
from service.sql.planner import plan

CASES = {
    path.stem: text
    for path in sorted((Path(__file__).parent / "cases").glob("*.sql"))
    if (text := path.read_text()).startswith("-- plan: ")
}
TEXT_CASTS = re.compile(r"CAST\(s?\.?t AS TIMESTAMP")  # "12" is no time
ROW = {
    TypeName.BOOLEAN: True,
    TypeName.TINYINT: 3,
    TypeName.SMALLINT: 3,
    TypeName.INT: 3,
    TypeName.BIGINT: 5,
    TypeName.FLOAT: 1.5,
    TypeName.DOUBLE: 2.5,
    TypeName.DECIMAL: Decimal("4.25"),
    TypeName.STRING: "12",
    TypeName.BYTES: b"x",
    TypeName.DATE: dt.date(2024, 2, 29),
    TypeName.TIME: 1_000_000,
    TypeName.TIMESTAMP: dt.datetime.fromisoformat("2024-02-29T12:00:00"),
    TypeName.TIMESTAMP_LTZ: dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
}


def test_every_call_of_the_planner_is_known_to_the_evaluator():
    assert CALLS <= EVALUATED


def test_no_function_is_both_allowed_and_refused():
    assert not set(FUNCTIONS) & set(REFUSED)


def column_of(value):
    def resolve(column: Column) -> pa.Array:
        item = None if value is None else ROW[column.type.name]
        return pa.array([item], arrow_type(column.type))

    return resolve


@pytest.mark.parametrize("row", [None, "full"], ids=["nulls", "values"])
@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_planned_expression_evaluates_to_its_type(text, row):
    made = plan(text)
    roots = [item.expression for item in (*made.probe.computed_fields, *made.output)]
    roots += [key.probe for join in made.joins for key in join.keys]
    roots += [join.condition for join in made.joins if join.condition is not None]
    for root in roots:
        result = evaluate_rows(root, Scope(column_of(row), 1, 1_700_000_000_123))
        assert result.values.type == arrow_type(root.type)
        assert len(result.values) == 1
        assert row is None or TEXT_CASTS.search(text) or result.errors == {}
