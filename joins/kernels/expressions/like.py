"""LIKE in linear time: RE2 for a short literal pattern, a walk over the pattern's pieces otherwise.

The texts between two `%` are looked for one after the other, each at its first place: what matches
at all, matches so. A piece with `_` may be compared at each place of the text, so the two lengths
together have a limit.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import rowwise
from joins.kernels.expressions.operation import Operation, Value

MAX_COMPARISONS = 100_000_000
_RE2_CHARACTERS = 128
_ANY = None
_Piece = tuple[str | None, ...]


def like(op: Operation) -> Value | Checked:
    """`text LIKE pattern [ESCAPE character]`; no character stands for no escape."""
    escape = op.constant(2) if len(op.arguments) > 2 else None
    pattern = op.constant(1)
    if pattern is not None and (escape is not None or len(op.arguments) == 2):
        try:
            pieces = _pieces(pattern.as_py(), escape.as_py() if escape else None)
        except ValueError:
            return Checked(pa.nulls(op.num_rows, pa.bool_()), np.ones(op.num_rows, dtype=np.bool_))
        if sum(map(len, pieces)) + len(pieces) <= _RE2_CHARACTERS:
            return pc.match_substring_regex(op.array(0), rf"(?s)\A{_regex(pieces)}\z")

    def matches(value: str, pattern: str, escape: str | None = None) -> bool:
        return _matches(value, _pieces(pattern, escape))

    return rowwise(matches, op.arrays(), pa.bool_())


def _pieces(pattern: str, escape: str | None) -> list[_Piece]:
    """What stands between the `%` of a pattern: characters, and `_ANY` for each `_`.

    Raises:
        ValueError: the escape is several characters, or stands before another than it may.
    """
    if escape and len(escape) != 1:
        raise ValueError(escape)
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped not in {"%", "_", escape}:
                raise ValueError(pattern)
            pieces[-1].append(escaped)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(_ANY if character == "_" else character)
    return [tuple(piece) for piece in pieces]


def _regex(pieces: list[_Piece]) -> str:
    return ".*".join("".join(map(_literal, piece)) for piece in pieces)


def _literal(character: str | None) -> str:
    """In a regular expression that RE2 and Python read alike."""
    if character is _ANY:
        return "."
    plain = character.isalnum() or ord(character) > 127
    return character if plain else f"\\x{ord(character):02x}"


def _matches(value: str, pieces: list[_Piece]) -> bool:
    """Whether the first and the last piece stand at the ends, the others between them, in order."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(value) == len(first) and _stands(value, first, 0)
    place, end = len(first), len(value) - len(last)
    if place > end or not _stands(value, first, 0) or not _stands(value, last, end):
        return False
    for piece in pieces[1:-1]:
        at = _place_of(value, piece, place, end)
        if at < 0:
            return False
        place = at + len(piece)
    return True


def _stands(value: str, piece: _Piece, at: int) -> bool:
    return all(c is _ANY or c == value[at + k] for k, c in enumerate(piece))


def _place_of(value: str, piece: _Piece, place: int, end: int) -> int:
    """The first place of `piece` between two places, -1 if there is none."""
    if _ANY not in piece:
        return value.find("".join(filter(None, piece)), place, end)
    if (end - place) * len(piece) > MAX_COMPARISONS:
        raise ValueError(len(piece))
    match = re.compile("".join(map(_literal, piece)), re.DOTALL).search(value, place, end)
    return -1 if match is None else match.start()
