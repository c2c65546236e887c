"""SIMILAR TO: patterns of SQL as regular expressions of RE2.

As in Flink (Calcite's `Like`): `_` is a character, `%` any number of them, letters and operators
are those of regular expressions, an escaped character stands for itself.
"""

import re
from functools import lru_cache

import pyarrow as pa

from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.operation import Operation
from joins.kernels.strings.regular import Expression, compiled

_CLASSES = {
    "[:ALPHA:]": r"\p{L}", "[:alpha:]": r"\p{L}", "[:UPPER:]": r"\p{Lu}", "[:upper:]": r"\p{Lu}",
    "[:LOWER:]": r"\p{Ll}", "[:lower:]": r"\p{Ll}", "[:DIGIT:]": r"\d", "[:digit:]": r"\d",
    "[:SPACE:]": " ", "[:space:]": " ", "[:WHITESPACE:]": r"\s", "[:whitespace:]": r"\s",
    "[:ALNUM:]": r"\p{L}\p{N}", "[:alnum:]": r"\p{L}\p{N}",
}  # fmt: skip


class SimilarError(ValueError):
    """A pattern is none of SIMILAR TO."""


def similar(op: Operation) -> Checked:
    def of_row(text: str, pattern: str, escape: str = "") -> bool:
        return matcher(pattern, escape).fullmatch(text) is not None

    return rowwise(of_row, op.arrays(), pa.bool_())


@lru_cache(maxsize=256)
def matcher(pattern: str, escape: str = "") -> Expression:
    """What matches a whole text by the pattern.

    Raises:
        SimilarError: it is no pattern.
        UnknownAnswerError: only a backtracking engine knows what it matches.
    """
    if len(escape) > 1:
        raise SimilarError(f'the escape is "{escape}"')
    by = compiled(_regular(pattern, escape))
    if by is None:
        raise SimilarError(pattern)
    return by


def _regular(pattern: str, escape: str) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if escape and character == escape:
            if at + 1 == len(pattern):
                raise SimilarError(pattern)
            pieces.append(re.escape(pattern[at + 1]))
            at += 2
        elif character == "[":
            piece, at = _enumeration(pattern, at, escape)
            pieces.append(piece)
        else:
            pieces.append({"_": ".", "%": "(?:.*)"}.get(character, character))
            at += 1
    return "".join(pieces)


def _enumeration(pattern: str, at: int, escape: str) -> tuple[str, int]:
    """The part from `[` to its `]`."""
    pieces, at = ["["], at + 1
    while at < len(pattern):
        for name, regular in _CLASSES.items():
            if pattern.startswith(name, at):
                pieces.append(regular)
                at += len(name)
                break
        else:
            character = pattern[at]
            if escape and character == escape and at + 1 < len(pattern):
                pieces.append("\\" + pattern[at + 1])
                at += 2
                continue
            pieces.append(character)
            at += 1
            if character == "]":
                return "".join(pieces), at
    raise SimilarError(pattern)
