"""Operations as nodes: their arguments are read, and the depth of what they make is limited."""

from collections.abc import Callable, Sequence

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Node
from service.sql.text.dialect import MAX_DEPTH
from service.sql.text.errors import SqlError


class FormReader:
    """What reads functions with words between their arguments.

    Args:
        cursor: stands behind the word that the function begins with.
        parse: reads an expression.
        operand: reads an expression without comparisons and logic.
    """

    def __init__(
        self, cursor: TokenCursor, parse: Callable[[], Node], operand: Callable[[], Node]
    ) -> None:
        self.cursor = cursor
        self.parse = parse
        self.operand = operand


def named(word: str, at: int) -> Literal:
    return Literal(LiteralKind.STRING, word, at)


def read_arguments(
    cursor: TokenCursor, parse: Callable[[], Node], closing: str = ")"
) -> tuple[Node, ...]:
    """The rest of `(a, b, …)` after its opening parenthesis.

    Raises:
        SqlError: it is no list, or not closed.
    """
    arguments = [parse()]
    while cursor.accept_symbol(","):
        arguments.append(parse())
    cursor.expect_symbol(closing, hint="Separate arguments by commas and close the list.")
    return tuple(arguments)


def operation(cursor: TokenCursor, name: str, arguments: Sequence[Node], at: int) -> FunctionCall:
    """The operation `name` of `arguments`, which stands at `at`.

    Raises:
        SqlError: it is nested too deeply.
    """
    return FunctionCall(name, tuple(arguments), at, depth_over(cursor, arguments, at))


def depth_over(cursor: TokenCursor, parts: Sequence[Node], at: int) -> int:
    """The depth of a node over `parts`.

    Raises:
        SqlError: it is nested too deeply.
    """
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise too_deep(cursor, at)
    return depth


def too_deep(cursor: TokenCursor, at: int) -> SqlError:
    return cursor.script.error(
        at,
        f"the expression is nested more than {MAX_DEPTH} levels deep",
        hint="Split it or move a part into a computed column.",
    )
