"""Errors of user SQL: where in the script, what was expected, and the nearest form that works.

| error | fault |
|---|---|
| `SqlError` | a script cannot be planned: syntax, names, types, options or an unsupported form |
"""

from collections.abc import Iterator
from contextlib import contextmanager

from joins.plan.errors import nearest, suggestion
from service.errors import ServiceError

__all__ = ["SqlError", "nearest", "not_too_deep", "printable", "suggestion"]


class SqlError(ServiceError, fault="sql"):
    """A script cannot be planned; the error has line and column.

    Attributes:
        line: 1-based line of the script.
        column: 1-based column in characters.
        excerpt: the line of the script and a caret below it; secrets are masked.
    """

    def __init__(
        self, message: str, *, hint: str, line: int = 1, column: int = 1, excerpt: str = ""
    ) -> None:
        super().__init__(
            f"line {line}, column {column}: {printable(message)}", hint=printable(hint)
        )
        self.line = line
        self.column = column
        self.excerpt = excerpt


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Read and plan within.

    Raises:
        SqlError: what was read is nested deeper than can be followed.
    """
    try:
        yield
    except RecursionError as exc:
        raise SqlError(
            "the script is nested too deeply", hint="Split the expression or flatten it."
        ) from exc
