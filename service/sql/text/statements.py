"""The statements of a script as pieces of its text: where each is, and what it is for.

Only words and semicolons are looked at, so that a script can be cut before it is understood.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from service.sql.text.dialect import SqlToken, SqlTokenKind, tokenize
from service.sql.text.script import Script

_ASKS = ("EXPLAIN", "DESCRIBE", "DESC", "SHOW", "STOP")
_PREVIEWS = ("SELECT", "WITH")
_RUNS = ("INSERT", "EXECUTE", "BEGIN")
_OPENS, _CLOSES = ("BEGIN", "CASE"), "END"


class Use(Enum):
    """What a statement is for."""

    DECLARES = auto()
    ASKS = auto()
    RUNS = auto()
    PREVIEWS = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script.

    Attributes:
        word: its first one, in capitals.
        start: offset of its first character.
        end: offset behind its last one, the semicolon not counted.
        closed_at: of the semicolon that follows; None at the end of an open script.
    """

    use: Use
    word: str
    start: int
    end: int
    closed_at: int | None


def pieces(text: str) -> tuple[Piece, ...]:
    """The statements of `text`; those within a statement set are not told apart.

    Raises:
        SqlError: the text is too large, or has something that is no token, such as half a string.
    """
    return tuple(_piece(tokens, closed_at) for tokens, closed_at in _groups(text))


def only(text: str, kept: Collection[Piece]) -> str:
    """`text` with blanks in place of all statements but `kept`: every line stays where it was."""
    chars = [char if char == "\n" else " " for char in text]
    for piece in kept:
        stop = piece.end if piece.closed_at is None else piece.closed_at + 1
        chars[piece.start : stop] = text[piece.start : stop]
    return "".join(chars).rstrip()


def _groups(text: str) -> Iterator[tuple[list[SqlToken], int | None]]:
    group: list[SqlToken] = []
    depth = 0
    for token in tokenize(Script(text)):
        if token.kind is SqlTokenKind.WORD:
            word = token.text.upper()
            depth += (word in _OPENS) - (word == _CLOSES and depth > 0)
        closes = token.kind is SqlTokenKind.SYMBOL and token.text == ";" and depth == 0
        if not closes and token.kind is not SqlTokenKind.END:
            group.append(token)
        elif group:
            yield group, token.start if closes else None
            group = []


def _piece(tokens: Sequence[SqlToken], closed_at: int | None) -> Piece:
    word = tokens[0].text.upper() if tokens[0].kind is SqlTokenKind.WORD else ""
    return Piece(_use(word, tokens), word, tokens[0].start, tokens[-1].end, closed_at)


def _use(word: str, tokens: Sequence[SqlToken]) -> Use:
    if word in _PREVIEWS:
        return Use.PREVIEWS
    if word in _RUNS or (word == "CREATE" and _has_query(tokens)):
        return Use.RUNS
    return Use.ASKS if word in _ASKS or (word == "SET" and len(tokens) == 1) else Use.DECLARES


def _has_query(tokens: Sequence[SqlToken]) -> bool:
    """Whether a CREATE is one of a table that is filled: CREATE TABLE … AS."""
    words, depth = set[str](), 0
    for token in tokens:
        if token.kind is SqlTokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        elif token.kind is SqlTokenKind.WORD and depth == 0:
            words.add(token.text.upper())
    return {"TABLE", "AS"} <= words and "VIEW" not in words
