"""Expressions and types that the grammar reads; `at` is an offset into the script."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from joins.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier without backticks; a table may have its database and catalog as `qualifier`."""

    text: str
    at: int
    qualifier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A possibly qualified column."""

    parts: tuple[Name, ...]
    at: int
    depth: int = 1


class LiteralKind(Enum):
    """The forms of a literal."""

    NUMBER = auto()
    STRING = auto()
    BYTES = auto()
    BOOLEAN = auto()
    NULL = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    INTERVAL = auto()
    INTERVAL_DAYS = auto()
    INTERVAL_MONTHS = auto()


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal; the text is as in `joins.plan.types.Constant`.

    INTERVAL and INTERVAL_DAYS have milliseconds, INTERVAL_MONTHS has months.
    """

    kind: LiteralKind
    text: str
    at: int
    depth: int = 1


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function or operator by its name in upper case; AND, OR and || take two or more."""

    name: str
    arguments: tuple[Node, ...]
    at: int
    depth: int


@dataclass(frozen=True, slots=True)
class TypeNode:
    """A type as written; `parts` are the member types of a nested type.

    `length` is None when unbounded; a `fixed` type (CHAR, BINARY) pads to it.
    """

    type: SqlType
    at: int
    length: int | None = None
    fixed: bool = False
    parts: tuple[TypeNode, ...] = ()


@dataclass(frozen=True, slots=True)
class CastNode:
    """CAST, or TRY_CAST when `safe`."""

    operand: Node
    type: TypeNode
    safe: bool
    at: int
    depth: int


@dataclass(frozen=True, slots=True)
class CaseNode:
    """CASE: with an operand, each branch's first half is compared with it."""

    operand: Node | None
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None
    at: int
    depth: int


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """`name([DISTINCT] arguments) [FILTER (WHERE condition)]`; COUNT(*) has no argument."""

    name: str
    arguments: tuple[Node, ...]
    distinct: bool
    where: Node | None
    at: int
    depth: int


@dataclass(frozen=True, slots=True)
class SortNode:
    """An expression of ORDER BY; by default NULL is the least value, as in Flink."""

    expression: Node
    descending: bool
    nulls_last: bool


@dataclass(frozen=True, slots=True)
class RowNumberNode:
    """`ROW_NUMBER() OVER (PARTITION BY … ORDER BY …)`."""

    partition: tuple[Node, ...]
    order: tuple[SortNode, ...]
    at: int
    depth: int


Node = Reference | Literal | FunctionCall | CastNode | CaseNode | AggregateNode | RowNumberNode
