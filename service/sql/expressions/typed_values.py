"""Typed literals, casts, calls, comparisons and choices."""

from collections.abc import Sequence
from dataclasses import replace

from joins.plan.types import (
    MAX_MICRO_DIGITS,
    Call,
    Case,
    Cast,
    Constant,
    Expression,
    SqlType,
    TypeName,
)
from service.sql.expressions.nested_access import PARTS_HINT, refuse_nested
from service.sql.expressions.scope import MAX_PLAN_DEPTH, MAX_PLAN_NODES, Typed
from service.sql.grammar.expression_nodes import Literal, LiteralKind
from service.sql.grammar.type_parser import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    NUMERIC,
    STRING,
    TEMPORAL,
    common_type,
    is_explicit,
    is_implicit,
    is_lossless,
    type_text,
)
from service.sql.text.script import Script

_LITERAL_TYPES = {
    LiteralKind.STRING: STRING,
    LiteralKind.BYTES: BYTES,
    LiteralKind.BOOLEAN: BOOLEAN,
    LiteralKind.DATE: SqlType(TypeName.DATE),
    LiteralKind.INTERVAL: SqlType(TypeName.INTERVAL_SECOND, 3),
    LiteralKind.INTERVAL_DAYS: SqlType(TypeName.INTERVAL_SECOND),
    LiteralKind.INTERVAL_MONTHS: SqlType(TypeName.INTERVAL_MONTH),
}


def typed_literal(script: Script, node: Literal) -> Typed:
    """A literal with Flink's type: the narrowest of INT, BIGINT and DECIMAL for whole numbers."""
    if node.kind is LiteralKind.NULL:
        return Typed(Constant(None, STRING), nullable=True, at=node.at, is_bare_null=True)
    if node.kind is LiteralKind.NUMBER:
        return _number(script, node)
    if node.kind in (LiteralKind.TIME, LiteralKind.TIMESTAMP):
        name = TypeName[node.kind.name]
        sql_type = SqlType(name, len(node.text.partition(".")[2]))
        check_nanos(script, node.text, sql_type, node.at)
    else:
        sql_type = _LITERAL_TYPES[node.kind]
    return Typed(Constant(node.text, sql_type), nullable=False, at=node.at)


def check_nanos(script: Script, text: str, kind: SqlType, at: int) -> None:
    """Refuse 7 to 9 fraction digits outside the years that nanoseconds can represent."""
    year = text.strip()[:4]
    if kind.precision > MAX_MICRO_DIGITS and year.isdigit() and not 1678 <= int(year) <= 2261:
        raise script.error(
            at,
            f"a time of the year {year} with more than 6 digits of a second's fraction",
            hint="Keep 6 digits: nanoseconds reach from the year 1678 to 2261.",
        )


def _number(script: Script, node: Literal) -> Typed:
    text = node.text
    if "e" in text.lower():
        return Typed(Constant(text, DOUBLE), nullable=False, at=node.at)
    whole, _, fraction = text.lstrip("-").partition(".")
    if "." not in text:
        value = int(text)
        for name, bits in ((TypeName.INT, 32), (TypeName.BIGINT, 64)):
            if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                return Typed(Constant(str(value), SqlType(name)), nullable=False, at=node.at)
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if precision > 38:
        raise script.error(
            node.at, f"the number has {precision} digits, more than 38", hint="Round it."
        )
    sign = "-" if text.startswith("-") else ""
    plain = f"{sign}{whole or '0'}" + (f".{fraction}" if fraction else "")
    sql_type = SqlType(TypeName.DECIMAL, precision, len(fraction))
    return Typed(Constant(plain, sql_type), nullable=False, at=node.at)


def folded(constant: Constant, target: SqlType) -> Constant | None:
    """An integer literal, as a literal of a wider exact or approximate type; else None."""
    if constant.value is None:
        return Constant(None, target)
    if constant.type.name not in (TypeName.INT, TypeName.BIGINT):
        return None
    if target.name is TypeName.BIGINT or (
        target.name is TypeName.DECIMAL
        and len(constant.value.lstrip("-")) <= target.precision - target.scale
    ):
        return Constant(constant.value, target)
    return None


def retyped_null(value: Typed, target: SqlType) -> Typed:
    return Typed(Constant(None, target), nullable=True, at=value.at)


class TypedValues:
    """Combines typed expressions, within the limits of a plan."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @property
    def zone(self) -> str:
        return self._script.zone

    def implicit_cast(self, value: Typed, target: SqlType, what: str) -> Typed:
        """`value` as `target`, if Flink casts implicitly."""
        if value.is_bare_null:
            return retyped_null(value, target)
        if is_implicit(value.type, target):
            return self.cast(value, target)
        have, want = type_text(value.type), type_text(target)
        hint = f"Write CAST(… AS {want})."
        if value.type.is_nested and not target.is_nested:
            hint = PARTS_HINT
        elif not is_explicit(value.type, target):
            hint = f"There is no cast from {have} to {want}; change the column's type."
        raise self._script.error(value.at, f"{what} is {have}, expected {want}", hint=hint)

    def cast(self, value: Typed, target: SqlType, *, safe: bool = False) -> Typed:
        return self._cast(value, target, Cast(value.expression, target, safe))

    def written_cast(self, value: Typed, target: SqlType, *, safe: bool) -> Typed:
        """`value` as `target` by an explicit CAST: numbers wrap as in Flink."""
        pairs = zip(value.type.leaves(), target.leaves(), strict=False)
        wraps = any(
            (one.name in NUMERIC and other.name in NUMERIC and not is_lossless(one, other))
            or (one.name is TypeName.STRING and other.name is TypeName.DECIMAL)
            for one, other in pairs
        )
        return self._cast(value, target, Cast(value.expression, target, safe, wraps))

    def _cast(self, value: Typed, target: SqlType, cast: Cast) -> Typed:
        if value.type == target:
            return value
        expression = value.expression
        if isinstance(expression, Constant) and (literal := folded(expression, target)) is not None:
            return replace(value, expression=literal)
        if _has_instant(value.type) or _has_instant(target):
            cast = replace(cast, zone=self.zone)
        return self._made(cast, value.nullable or cast.safe, value.at, (value,))

    def call(self, name: str, arguments: Sequence[Typed], result: SqlType, at: int) -> Typed:
        nullable = any(argument.nullable for argument in arguments)
        expression = Call(name, tuple(a.expression for a in arguments), result)
        return self._made(expression, nullable, at, arguments)

    def conjunction(self, name: str, parts: Sequence[Typed], at: int) -> Typed:
        """AND or OR of all parts, as a balanced tree: long chains stay shallow."""
        if len(parts) == 1:
            return parts[0]
        middle = len(parts) // 2
        halves = [self.conjunction(name, p, at) for p in (parts[:middle], parts[middle:])]
        return self.call(name, halves, BOOLEAN, at)

    def comparison(self, name: str, left: Typed, right: Typed, at: int) -> Typed:
        if name not in _EQUALITIES:
            refuse_nested(self._script, (left, right), f'"{name}"')
        typed = self.call(name, self.common((left, right), at, f'"{name}"'), BOOLEAN, at)
        return replace(typed, nullable=False) if "DISTINCT" in name else typed

    def _made(
        self, expression: Expression, nullable: bool, at: int, parts: Sequence[Typed]
    ) -> Typed:
        size = expression.type.size + sum(part.size for part in parts)
        depth = 1 + max((part.depth for part in parts), default=0)
        if size > MAX_PLAN_NODES or depth > MAX_PLAN_DEPTH:
            raise self._script.error(
                at,
                "the expression is too large once it is written out",
                hint="Split it or move a part into a computed column of the stream.",
            )
        return Typed(expression, nullable, at, size, depth)

    def common(self, values: Sequence[Typed], at: int, what: str) -> list[Typed]:
        """All values in their common type; bare NULLs adopt it, text literals become times."""
        types = [value.type for value in values if not value.is_bare_null]
        times = {sql_type for sql_type in types if sql_type.name in TEMPORAL}
        if times and STRING in types:
            types = [sql_type for sql_type in types if sql_type != STRING]
        target = common_type(types) if types else STRING
        if target is None:
            names = " and ".join(dict.fromkeys(type_text(sql_type) for sql_type in types))
            raise self._script.error(
                at, f"{what} has operands of {names}", hint="Cast one side to the other's type."
            )
        return [
            retyped_null(value, target) if value.is_bare_null else self.cast(value, target)
            for value in values
        ]

    def searched(self, conditions: list[Typed], values: list[Typed], at: int) -> Typed:
        """CASE of planned parts; if there is one value more than conditions, it is ELSE."""
        cast = self.common(values, at, "CASE")
        pairs = tuple((c.expression, v.expression) for c, v in zip(conditions, cast, strict=False))
        otherwise = cast[-1].expression if len(cast) > len(conditions) else None
        nullable = otherwise is None or any(value.nullable for value in cast)
        return self._made(Case(pairs, otherwise, cast[0].type), nullable, at, (*conditions, *cast))

    def if_present(self, row: Typed, value: Typed) -> Typed:
        present = self.call("IS NOT NULL", (row,), BOOLEAN, value.at)
        return self.searched([replace(present, nullable=False)], [value], value.at)


def _has_instant(kind: SqlType) -> bool:
    return any(leaf.name is TypeName.TIMESTAMP_LTZ for leaf in kind.leaves())


_EQUALITIES = frozenset(("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
