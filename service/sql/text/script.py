"""The text of a script: positions, excerpts and errors that point into it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from joins.plan.errors import nearest, suggestion
from service.errors import ServiceError
from service.sql.text.masking import masked, without_fragments

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
    """Turn a RecursionError within into a SqlError."""
    try:
        yield
    except RecursionError as exc:
        raise SqlError(
            "the script is nested too deeply", hint="Split the expression or flatten it."
        ) from exc


_EXCERPT_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Script:
    """User SQL as submitted. A position is an offset into `text`.

    Attributes:
        zone: session time zone, from SET.
        behind: catalog statements at the end of `text`.
    """

    text: str
    zone: str = "UTC"
    behind: str = ""

    @property
    def own_length(self) -> int:
        return len(self.text) - len(self.behind)

    def line_and_column(self, at: int) -> tuple[int, int]:
        start = self.text.rfind("\n", 0, at) + 1
        return self.text.count("\n", 0, at) + 1, at - start + 1

    def error(self, at: int, message: str, *, hint: str) -> SqlError:
        line, column = self.line_and_column(at)
        masked = without_fragments(message, self.text)
        if self.behind and at >= self.own_length:
            masked, line, column = f"as the catalog declares it, {masked}", 1, 1
        return SqlError(masked, hint=hint, line=line, column=column, excerpt=self.excerpt(at))

    def shown(self, start: int, end: int) -> str:
        return masked(self.text)[start:end]

    def excerpt(self, at: int) -> str:
        """The line of the character at `at`, credentials masked, and a caret below it."""
        _, column = self.line_and_column(at)
        start = at - column + 1
        end = self.text.find("\n", at)
        line = masked(self.text)[start : len(self.text) if end < 0 else end]
        first = max(0, column - 1 - _EXCERPT_WIDTH // 2)
        shown = printable(line[first : first + _EXCERPT_WIDTH])
        return f"{shown}\n{' ' * (column - 1 - first)}^"
