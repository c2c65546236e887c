"""The text of a script: positions, excerpts and errors that point into it."""

import re
from dataclasses import dataclass

from service.sql.errors import SqlError, printable

_LEXEME = re.compile(
    r"(?P<string>'(?:[^']|'')*'?)|(?P<blank>\s+|--[^\n]*|/\*(?!\+).*?(?:\*/|\Z))|(?P<equals>=)|`[^`]*`?|[^\s'`=/-]+|.",
    re.DOTALL,
)
_CREDENTIAL = re.compile(r"password|secret|token|credential|jaas", re.IGNORECASE)
_EXCERPT_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Script:
    """User SQL as submitted. A position is an offset into `text`."""

    text: str

    def line_and_column(self, at: int) -> tuple[int, int]:
        """The 1-based line and column of the character at `at`."""
        start = self.text.rfind("\n", 0, at) + 1
        return self.text.count("\n", 0, at) + 1, at - start + 1

    def error(self, at: int, message: str, *, hint: str) -> SqlError:
        """An error that points at the character at `at`."""
        line, column = self.line_and_column(at)
        return SqlError(
            message, hint=hint, line=line, column=column, excerpt=self._excerpt(at, column)
        )

    def shown(self, start: int, end: int) -> str:
        """The text from `start` to `end`, with the values of credential options starred out."""
        return _mask(self.text, start, end)

    def _excerpt(self, at: int, column: int) -> str:
        start = at - column + 1
        end = self.text.find("\n", at)
        line = _mask(self.text, start, len(self.text) if end < 0 else end)
        first = max(0, column - 1 - _EXCERPT_WIDTH // 2)
        shown = printable(line[first : first + _EXCERPT_WIDTH])
        return f"{shown}\n{' ' * (column - 1 - first)}^"


def _mask(text: str, start: int, end: int) -> str:
    """The characters from `start` to `end` with the values of credential options starred out."""
    masked = list(text)
    key, has_equals = "", False
    for lexeme in _LEXEME.finditer(text):
        if lexeme["blank"]:
            continue
        if lexeme["string"] and has_equals and _CREDENTIAL.search(key):
            inside = range(lexeme.start() + 1, lexeme.end() - lexeme[0].endswith("'", 1))
            masked[inside.start : inside.stop] = "*" * len(inside)
        has_equals = bool(lexeme["equals"] and key)
        key = lexeme["string"] or (key if has_equals else "")
    return "".join(masked[start:end])
