"""SQL types of columns and the Arrow types that carry them everywhere in the data path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal as Tag

import pyarrow as pa


class TypeName(StrEnum):
    """Flink's names of the types that Sluice supports."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    INTERVAL_MONTH = "INTERVAL YEAR TO MONTH"
    INTERVAL_SECOND = "INTERVAL DAY TO SECOND"
    ROW = "ROW"
    ARRAY = "ARRAY"
    MAP = "MAP"


NESTED = frozenset((TypeName.ROW, TypeName.ARRAY, TypeName.MAP))


@dataclass(frozen=True, slots=True)
class SqlType:
    """A SQL type."""

    # without parameters; CHAR and VARCHAR are STRING, BINARY and VARBINARY are BYTES
    name: TypeName
    # digits of a DECIMAL (1 to 38), fractional digits of TIME and TIMESTAMP, 3 for an INTERVAL with
    # hours, minutes or seconds, else 0
    precision: int = 0
    scale: int = 0
    # the fields of a ROW, the `element` of an ARRAY, the `key` and the `value` of a MAP
    members: tuple[Member, ...] = ()

    def __str__(self) -> str:
        if self.name is TypeName.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        return nested_text(self, str) if self.members else self.name.value

    @property
    def is_nested(self) -> bool:
        return self.name in NESTED

    @property
    def size(self) -> int:
        return 1 + sum(part.type.size for part in self.members)

    @property
    def depth(self) -> int:
        return 1 + max((part.type.depth for part in self.members), default=0)

    def leaves(self) -> Iterator[SqlType]:
        if not self.members:
            yield self
        for part in self.members:
            yield from part.type.leaves()


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a nested type; `nullable` if it can be NULL in a parent that is not NULL."""

    name: str
    type: SqlType
    nullable: bool = True


def row_type(*members: Member) -> SqlType:
    return SqlType(TypeName.ROW, members=members)


def array_type(element: SqlType, *, nullable: bool = True) -> SqlType:
    return SqlType(TypeName.ARRAY, members=(Member("element", element, nullable),))


def map_type(value: SqlType, *, key: Member | None = None, nullable: bool = True) -> SqlType:
    of_key = key or Member("key", SqlType(TypeName.STRING), nullable=False)
    return SqlType(TypeName.MAP, members=(of_key, Member("value", value, nullable)))


def quoted(name: str) -> str:
    """`name` as an identifier in the SQL of Flink, Spark and MySQL; the name is user input."""
    return "`" + name.replace("`", "``") + "`"


def nested_text(nested: SqlType, text: Callable[[SqlType], str]) -> str:
    """The name of a nested type as Flink writes it; `text` renders its parts."""
    parts: list[str] = []
    for at, part in enumerate(nested.members):
        name = f"{quoted(part.name)} " if nested.name is TypeName.ROW else ""
        is_key = nested.name is TypeName.MAP and at == 0
        parts.append(f"{name}{text(part.type)}{'' if part.nullable or is_key else ' NOT NULL'}")
    return f"{nested.name.value}<{', '.join(parts)}>"


_ARROW: dict[TypeName, pa.DataType] = {
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.TINYINT: pa.int8(),
    TypeName.SMALLINT: pa.int16(),
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.FLOAT: pa.float32(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.STRING: pa.string(),
    TypeName.BYTES: pa.binary(),
    TypeName.DATE: pa.date32(),
    TypeName.TIME: pa.int64(),
    TypeName.TIMESTAMP: pa.timestamp("us"),
    TypeName.TIMESTAMP_LTZ: pa.timestamp("us", tz="UTC"),
    TypeName.INTERVAL_MONTH: pa.int64(),
    TypeName.INTERVAL_SECOND: pa.int64(),
}
_NANOS = {TypeName.TIMESTAMP: pa.timestamp("ns"), TypeName.TIMESTAMP_LTZ: pa.timestamp("ns", "UTC")}
MAX_MICRO_DIGITS = 6


def nested_type(nested: SqlType, parts: Sequence[pa.DataType]) -> pa.DataType:
    fields = [pa.field(m.name, kind) for m, kind in zip(nested.members, parts, strict=True)]
    if nested.name is TypeName.ROW:
        return pa.struct(fields)
    if nested.name is TypeName.ARRAY:
        return pa.list_(fields[0])
    return pa.map_(fields[0].type, fields[1].type)


def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow type that carries `sql_type`; TIME is int64 microseconds since midnight, signed.

    An INTERVAL is int64 months or milliseconds, a TIMESTAMP of 7 to 9 digits nanoseconds, a MAP
    whose keys may be NULL (only expressions make one) a list of its entries. All parts of nested
    types are nullable here; NOT NULL is checked where values come in.
    """
    if sql_type.members:
        made = nested_type(sql_type, [arrow_type(part.type) for part in sql_type.members])
        if sql_type.name is TypeName.MAP and sql_type.members[0].nullable:
            return pa.list_(pa.struct([("key", made.key_type), ("value", made.item_type)]))
        return made
    if sql_type.name is TypeName.DECIMAL:
        return pa.decimal128(sql_type.precision, sql_type.scale)
    if sql_type.name in _NANOS and sql_type.precision > MAX_MICRO_DIGITS:
        return _NANOS[sql_type.name]
    return _ARROW[sql_type.name]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the joined row; `relation` is an alias of `ProbeSource` or `DimensionJoin`."""

    relation: str
    name: str
    type: SqlType
    kind: Tag["column"] = "column"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal as text, None for NULL, in the form that a CAST from STRING to `type` reads.

    BYTES are hexadecimal digits, BOOLEAN is `true` or `false`, TIMESTAMP is `YYYY-MM-DD
    HH:MM:SS[.ffffff]`.
    """

    value: str | None
    type: SqlType
    kind: Tag["constant"] = "constant"


@dataclass(frozen=True, slots=True)
class ProcTime:
    """The pinned time of the micro-batch: PROCTIME() and CURRENT_TIMESTAMP."""

    type: SqlType
    kind: Tag["proctime"] = "proctime"


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, or TRY_CAST when `safe`: values that cannot be cast become NULL."""

    operand: Expression
    type: SqlType
    safe: bool = False
    # a number that does not fit the type wraps, is clamped or is NULL, as in Flink's CAST;
    # otherwise the cast fails
    wraps: bool = False
    zone: str = "UTC"  # of the session, between TIMESTAMP_LTZ and local times
    kind: Tag["cast"] = "cast"


@dataclass(frozen=True, slots=True)
class Case:
    """Searched CASE: the first true condition's value, else `otherwise` (NULL when None)."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    type: SqlType
    kind: Tag["case"] = "case"


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator by its Flink name in upper case: `UPPER`, `+`, `AND`, `IS NULL`."""

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    kind: Tag["call"] = "call"


Expression = Column | Constant | ProcTime | Cast | Case | Call


def nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, parents first."""
    pending: list[Expression | None] = [expression]
    while pending:
        current = pending.pop()
        if current is None:
            continue
        yield current
        if isinstance(current, Cast):
            pending.append(current.operand)
        elif isinstance(current, Call):
            pending.extend(reversed(current.arguments))
        elif isinstance(current, Case):
            pending.append(current.otherwise)
            pending.extend(part for branch in reversed(current.branches) for part in branch[::-1])


def with_parts(expression: Expression, changed: Callable[[Expression], Expression]) -> Expression:
    """`expression` with `changed` applied to its operands."""
    if isinstance(expression, Cast):
        return replace(expression, operand=changed(expression.operand))
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(map(changed, expression.arguments)))
    if isinstance(expression, Case):
        branches = tuple((changed(c), changed(value)) for c, value in expression.branches)
        otherwise = None if expression.otherwise is None else changed(expression.otherwise)
        return replace(expression, branches=branches, otherwise=otherwise)
    return expression


def unqualified(expression: Expression) -> Expression:
    """`expression` with its columns of no relation."""
    if isinstance(expression, Column):
        return replace(expression, relation="")
    return with_parts(expression, unqualified)


def columns_of(expression: Expression) -> Iterator[Column]:
    return (node for node in nodes(expression) if isinstance(node, Column))
