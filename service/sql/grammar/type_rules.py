"""Flink's rules about types: common types, results of arithmetic, casts.

Source: Flink's LogicalTypeMerging (decimal results) and LogicalTypeCasts (casts).
"""

from collections.abc import Callable, Sequence

from joins.plan.types import NESTED, Member, SqlType, TypeName, nested_text

MAX_PRECISION = 38
MIN_KEPT_SCALE = 6
INTEGER_BITS = {
    TypeName.TINYINT: 8,
    TypeName.SMALLINT: 16,
    TypeName.INT: 32,
    TypeName.BIGINT: 64,
}
_INTEGER_DIGITS = {
    TypeName.TINYINT: 3,
    TypeName.SMALLINT: 5,
    TypeName.INT: 10,
    TypeName.BIGINT: 19,
}
INTEGERS = frozenset(INTEGER_BITS)
APPROXIMATE = frozenset((TypeName.FLOAT, TypeName.DOUBLE))
NUMERIC = INTEGERS | APPROXIMATE | {TypeName.DECIMAL}
INSTANTS = frozenset((TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ))
TEMPORAL = INSTANTS | {TypeName.DATE, TypeName.TIME}
INTERVALS = frozenset((TypeName.INTERVAL_MONTH, TypeName.INTERVAL_SECOND))

BOOLEAN = SqlType(TypeName.BOOLEAN)
INT = SqlType(TypeName.INT)
BIGINT = SqlType(TypeName.BIGINT)
FLOAT = SqlType(TypeName.FLOAT)
DOUBLE = SqlType(TypeName.DOUBLE)
STRING = SqlType(TypeName.STRING)
BYTES = SqlType(TypeName.BYTES)
PROCTIME = SqlType(TypeName.TIMESTAMP_LTZ, 3)

_EXPLICIT: dict[TypeName, frozenset[TypeName]] = {
    TypeName.BYTES: frozenset((TypeName.STRING, TypeName.BYTES)),
    TypeName.BOOLEAN: INTEGERS | {TypeName.STRING, TypeName.BOOLEAN},
    TypeName.DATE: INSTANTS | {TypeName.STRING, TypeName.DATE},
    TypeName.TIME: INSTANTS | {TypeName.STRING, TypeName.TIME},
    TypeName.TIMESTAMP: TEMPORAL | {TypeName.STRING},
    TypeName.TIMESTAMP_LTZ: TEMPORAL | {TypeName.STRING},
    TypeName.INTERVAL_MONTH: frozenset((TypeName.INTERVAL_MONTH,)),
    TypeName.INTERVAL_SECOND: frozenset((TypeName.INTERVAL_SECOND,)),
}
_TO_NUMBER = NUMERIC | {TypeName.STRING, TypeName.BOOLEAN}


def type_text(sql_type: SqlType) -> str:
    if sql_type.name in (TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ):
        return f"{sql_type.name.value}({sql_type.precision})"
    return nested_text(sql_type, type_text) if sql_type.is_nested else str(sql_type)


def as_decimal(sql_type: SqlType) -> SqlType:
    if sql_type.name is TypeName.DECIMAL:
        return sql_type
    return SqlType(TypeName.DECIMAL, _INTEGER_DIGITS[sql_type.name], 0)


def common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The type that all `types` are cast to; None if there is none."""
    result = types[0]
    for other in types[1:]:
        merged = _common_of_two(result, other)
        if merged is None:
            return None
        result = merged
    return result


def _common_of_two(left: SqlType, right: SqlType) -> SqlType | None:
    if left == right:
        return left
    names = {left.name, right.name}
    if names <= NUMERIC:
        return _common_number(left, right)
    if names & NESTED:
        return _common_by_parts(left, right)
    if len(names) == 1:
        return SqlType(left.name, max(left.precision, right.precision))
    if names <= INSTANTS | {TypeName.DATE}:
        name = TypeName.TIMESTAMP_LTZ if TypeName.TIMESTAMP_LTZ in names else TypeName.TIMESTAMP
        return SqlType(name, max(left.precision, right.precision))
    return None


def _common_by_parts(left: SqlType, right: SqlType) -> SqlType | None:
    """Two nested types of one form: common types of their members, under the first one's names."""
    if left.name is not right.name or len(left.members) != len(right.members):
        return None
    parts = []
    for one, other in zip(left.members, right.members, strict=True):
        merged = _common_of_two(one.type, other.type)
        if merged is None:
            return None
        parts.append(Member(one.name, merged, one.nullable or other.nullable))
    return SqlType(left.name, members=tuple(parts))


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    names = {left.name, right.name}
    if names & APPROXIMATE:
        return DOUBLE if names & {TypeName.DOUBLE, TypeName.DECIMAL} else FLOAT
    if TypeName.DECIMAL not in names:
        return max(left, right, key=lambda t: INTEGER_BITS[t.name])
    a, b = as_decimal(left), as_decimal(right)
    scale = max(a.scale, b.scale)
    return _adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def arithmetic_type(operator: str, left: SqlType, right: SqlType) -> SqlType:
    names = {left.name, right.name}
    if TypeName.DECIMAL not in names or names & APPROXIMATE:
        return _common_number(left, right)
    a, b = as_decimal(left), as_decimal(right)
    if operator == "*":
        return _adjusted(a.precision + b.precision + 1, a.scale + b.scale)
    if operator == "/":
        scale = max(6, a.scale + b.precision + 1)
        return _adjusted(a.precision - a.scale + b.scale + scale, scale)
    scale = max(a.scale, b.scale)
    whole = (a.precision - a.scale, b.precision - b.scale)
    if operator == "%":
        return _adjusted(min(whole) + scale, scale)
    return _adjusted(max(whole) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> SqlType:
    """With too many digits, keep the whole digits and reduce the scale, down to six."""
    if precision <= MAX_PRECISION:
        return SqlType(TypeName.DECIMAL, max(precision, 1), scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, MIN_KEPT_SCALE))
    return SqlType(TypeName.DECIMAL, MAX_PRECISION, kept)


def rounded_type(operand: SqlType, digits: int) -> SqlType:
    if operand.name is not TypeName.DECIMAL or digits >= operand.scale:
        return operand
    whole = 1 + operand.precision - operand.scale
    if digits < 0:
        return SqlType(TypeName.DECIMAL, min(MAX_PRECISION, whole), 0)
    return SqlType(TypeName.DECIMAL, min(MAX_PRECISION, whole + digits), digits)


def is_implicit(source: SqlType, target: SqlType) -> bool:
    """True if `source` may be written to a column of `target` without a CAST."""
    if source.is_nested or target.is_nested:
        return _is_by_parts(source, target, is_implicit)
    if source.name is target.name:
        return True
    if target.name is TypeName.DECIMAL:
        return source.name in NUMERIC
    if target.name in APPROXIMATE:
        return source.name in INTEGERS | {TypeName.DECIMAL} or (
            source.name is TypeName.FLOAT and target.name is TypeName.DOUBLE
        )
    if target.name in INTEGERS:
        return source.name in INTEGERS and INTEGER_BITS[source.name] < INTEGER_BITS[target.name]
    if target.name in (TypeName.DATE, TypeName.TIME):
        return source.name is TypeName.TIMESTAMP
    return {source.name, target.name} <= INSTANTS


def is_explicit(source: SqlType, target: SqlType) -> bool:
    """True if CAST from `source` to `target` is defined."""
    if target.name is TypeName.STRING:
        return True
    if source.is_nested or target.is_nested:
        return _is_by_parts(source, target, is_explicit)
    if target.name in NUMERIC:
        return source.name in _TO_NUMBER
    return source.name in _EXPLICIT[target.name]


def _is_by_parts(
    source: SqlType, target: SqlType, rule: Callable[[SqlType, SqlType], bool]
) -> bool:
    if source.name is not target.name or len(source.members) != len(target.members):
        return False
    return all(rule(a.type, b.type) for a, b in zip(source.members, target.members, strict=True))


def is_lossless(source: SqlType, target: SqlType) -> bool:
    """True if every value of `source` exists in `target`, so that equality survives the cast."""
    if source.name is target.name and source.name is not TypeName.DECIMAL:
        return source.precision <= target.precision
    if target.name is TypeName.DECIMAL and source.name in INTEGERS | {TypeName.DECIMAL}:
        exact = as_decimal(source)
        whole = exact.precision - exact.scale
        return exact.scale <= target.scale and whole <= target.precision - target.scale
    if source.name is TypeName.DATE:
        return target.name is TypeName.TIMESTAMP
    if source.name in INTEGERS and target.name in INTEGERS:
        return INTEGER_BITS[source.name] <= INTEGER_BITS[target.name]
    return False
