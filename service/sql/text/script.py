"""The text of a script: positions, excerpts and errors that point into it."""

from dataclasses import dataclass

from service.sql.text.errors import SqlError, printable
from service.sql.text.masking import masked, without_fragments

_EXCERPT_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Script:
    """User SQL as submitted. A position is an offset into `text`.

    Attributes:
        zone: the time zone of the session, as SET has left it.
        behind: what of `text` is no part of the script, but of the catalog; at its end.
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
        """An error that points at the character at `at`."""
        line, column = self.line_and_column(at)
        masked = without_fragments(message, self.text)
        if self.behind and at >= self.own_length:
            masked, line, column = f"as the catalog declares it, {masked}", 1, 1
        return SqlError(masked, hint=hint, line=line, column=column, excerpt=self.excerpt(at))

    def shown(self, start: int, end: int) -> str:
        return masked(self.text)[start:end]

    def excerpt(self, at: int) -> str:
        """The line of the character at `at`, credentials starred out, and a caret below it."""
        _, column = self.line_and_column(at)
        start = at - column + 1
        end = self.text.find("\n", at)
        line = masked(self.text)[start : len(self.text) if end < 0 else end]
        first = max(0, column - 1 - _EXCERPT_WIDTH // 2)
        shown = printable(line[first : first + _EXCERPT_WIDTH])
        return f"{shown}\n{' ' * (column - 1 - first)}^"
