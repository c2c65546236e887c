"""What holds of every plan: it survives being stored, and its expressions have their types."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from joins.kernels.expressions.evaluate import Scope, evaluate_rows
from joins.plan.plan import WINDOW, JoinPlan
from joins.plan.types import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expression,
    SqlType,
    TypeName,
    arrow_type,
)
from service.jobs.store import plan_codec
from service.sql.expressions.functions import COMPARISONS

NOW_MS = 1_700_000_000_123
_ROW: dict[TypeName, Any] = {
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
_SAME_TYPES = COMPARISONS | {"IN", "COALESCE", "GREATEST", "LEAST"}


def column_of(value: object) -> Callable[[Column], pa.Array]:
    """One row: NULL in each column if `value` is None, else a value of its type."""

    def resolve(column: Column) -> pa.Array:
        item = None if value is None else _value_of(column.type)
        return pa.array([item], arrow_type(column.type))

    return resolve


def _value_of(kind: SqlType) -> Any:
    parts = [_value_of(member.type) for member in kind.members]
    if kind.name is TypeName.ROW:
        return dict(zip((member.name for member in kind.members), parts, strict=True))
    if kind.name is TypeName.ARRAY:
        return parts
    return [tuple(parts)] if kind.name is TypeName.MAP else _ROW[kind.name]


def assert_is_stored(made: JoinPlan) -> None:
    assert plan_codec.load(plan_codec.dump(made)) == made


def assert_has_types(made: JoinPlan) -> None:
    """Keys, comparisons and outputs have the types that the data path expects."""
    dimensions = {dimension.name: dimension for dimension in made.dimensions}
    for join in made.joins:
        types = {field.name: field.type for field in dimensions[join.dimension].fields}
        for key in join.keys:
            kind = types.get(key.dimension_column)
            if key.computed is not None:
                assert key.dimension_column not in types
                kind = key.computed.type
            assert key.probe.type == kind
    for root in _roots(made):
        for part in _parts(root):
            _check(part)
    _check_rows(made)


def _check_rows(made: JoinPlan) -> None:
    """What is computed before a window reads rows; what is computed behind it, windows."""
    rows: list[Expression | None] = [made.where]
    behind: list[Expression | None] = [column.expression for column in made.output]
    if made.window is None:
        rows += behind
    else:
        rows += [key.expression for key in made.window.keys]
        rows += [part for each in made.window.aggregates for part in (each.argument, each.where)]
        assert {column.relation for each in behind for column in _columns(each)} <= {WINDOW}
    assert WINDOW not in {column.relation for each in rows for column in _columns(each)}


def _columns(expression: Expression | None) -> Iterator[Column]:
    return (part for part in _parts(expression) if isinstance(part, Column))


def assert_is_evaluated(made: JoinPlan, *, may_fail: bool) -> None:
    """Each expression makes a row of its type, of NULLs and of values; no row fails of itself."""
    for value in (None, "full"):
        for root in _roots(made):
            result = evaluate_rows(root, Scope(column_of(value), 1, NOW_MS))
            assert result.values.type == arrow_type(root.type)
            assert len(result.values) == 1
            assert value is None or may_fail or result.errors == {}


def _roots(made: JoinPlan) -> Iterator[Expression]:
    found: list[Expression | None] = [field.expression for field in made.probe.computed_fields]
    for join in made.joins:
        found += [*(key.probe for key in join.keys), join.condition]
        found += [key.computed for key in join.keys]
    found.append(made.where)
    for watermark in (made.probe.watermark, *(d.watermark for d in made.dimensions)):
        found.append(None if watermark is None else watermark.expression)
    if made.window is not None:
        found += [key.expression for key in made.window.keys]
        for item in made.window.aggregates:
            found += [item.argument, item.where]
        found.append(made.window.having)
        if made.window.rank is not None:
            found += [*made.window.rank.partition, made.window.rank.having]
            found += [key.expression for key in made.window.rank.order]
    found += [column.expression for column in made.output]
    yield from (root for root in found if root is not None)


def _parts(expression: Expression | None) -> Iterator[Expression]:
    if expression is None:
        return
    yield expression
    if isinstance(expression, Cast):
        yield from _parts(expression.operand)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _parts(argument)
    elif isinstance(expression, Case):
        for branch in expression.branches:
            for part in branch:
                yield from _parts(part)
        yield from _parts(expression.otherwise)


def _check(part: Expression) -> None:
    if isinstance(part, Call) and part.function in _SAME_TYPES:
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
