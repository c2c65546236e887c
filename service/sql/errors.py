"""Errors of user SQL: where in the script, what was expected, and the nearest form that works.

| error | fault |
|---|---|
| `SqlError` | a script cannot be planned: syntax, names, types, options or an unsupported form |
"""

import difflib
from collections.abc import Iterable

from service.errors import ServiceError


class SqlError(ServiceError):
    """A script cannot be planned.

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
    """`text` with every control character replaced, so that it can be shown on a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be, ignoring case."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold()[:200], by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """The sentence `Did you mean "…"?`, or `otherwise` when nothing known is near."""
    close = nearest(name, known)
    return f'Did you mean "{close}"?' if close is not None else otherwise
