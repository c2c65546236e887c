"""What functions with rules of their own need of the planner: their operands, casts and calls."""

from collections.abc import Callable, Sequence
from typing import Protocol

from joins.plan.types import Constant, SqlType
from service.sql.expressions.library.function import Takes
from service.sql.expressions.scope import Typed
from service.sql.grammar.expression_nodes import FunctionCall, Literal, Node
from service.sql.grammar.type_rules import STRING
from service.sql.text.script import Script


class OperandPlanner(Protocol):
    """What plans the operands."""

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        ...

    def plan(self, node: Node) -> Typed:
        """The typed form of a node."""
        ...

    def common(self, values: Sequence[Typed], at: int, what: str) -> list[Typed]:
        """All values in their common type."""
        ...

    def implicit_cast(self, value: Typed, target: SqlType, what: str) -> Typed:
        """`value` as `target`, where Flink casts by itself."""
        ...

    def cast(self, value: Typed, target: SqlType, *, safe: bool = False) -> Typed:
        """`value` as `target`."""
        ...

    def retyped_null(self, value: Typed, target: SqlType) -> Typed:
        """The literal NULL with a type."""
        ...

    def argument(self, name: str, value: Typed, takes: Takes) -> Typed:
        """`value` as the function `name` takes it."""
        ...

    def comparison(self, name: str, left: Typed, right: Typed, at: int) -> Typed:
        """Both in their common type, compared."""
        ...

    def conjunction(self, name: str, parts: Sequence[Typed], at: int) -> Typed:
        """AND or OR of all parts."""
        ...

    def call(self, name: str, arguments: Sequence[Typed], result: SqlType, at: int) -> Typed:
        """A call of a function."""
        ...


Special = Callable[[OperandPlanner, Script, FunctionCall], Typed]


def text_constant(text: str, at: int) -> Typed:
    return Typed(Constant(text, STRING), nullable=False, at=at)


def word_of(node: Node) -> str:
    assert isinstance(node, Literal), "the grammar names it"
    return node.text


def literal_of(value: Typed) -> str | None:
    expression = value.expression
    return expression.value if isinstance(expression, Constant) else None
