"""Expressions of a plan: typed, frozen trees that the one Arrow evaluator understands.

The planner has resolved every name, inserted every implicit cast and typed every node; nothing here
is user text. `joins.kernels.expressions.evaluate` gives the meaning of each node, `FUNCTIONS` there
lists the calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as Tag

from joins.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the joined row.

    Attributes:
        relation: the relation's alias in the statement, as `ProbeSource.alias` or
            `DimensionJoin.alias`.
        name: the column's name there.
    """

    relation: str
    name: str
    type: SqlType
    kind: Tag["column"] = "column"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal as text (`None` is SQL NULL), in the form that a CAST from STRING to `type` reads.

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
    """CAST, or TRY_CAST when `safe`: what cannot be cast is NULL.

    Attributes:
        wraps: a number that does not fit the type wraps, is limited or is NULL, as Flink's CAST has
            it; otherwise it fails.
        zone: of the session, between TIMESTAMP_LTZ and local times.
    """

    operand: Expression
    type: SqlType
    safe: bool = False
    wraps: bool = False
    zone: str = "UTC"
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
    """An expression and all that it is made of, each before its parts."""
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


def columns_of(expression: Expression) -> Iterator[Column]:
    return (node for node in nodes(expression) if isinstance(node, Column))
