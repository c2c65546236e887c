"""Patterns of dates and times as two classes of Java read them, as fields and plain text.

`DateTimeFormatter` serves TIMESTAMPs, `SimpleDateFormat` texts and numbers of seconds; Flink uses
both. The letters of both are the same here but for `S`, `u` and zones. What Java knows and this
does not (eras, week years, names of zones) is refused.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache


class Dialect(Enum):
    """Whose pattern it is."""

    FORMATTER = auto()
    SIMPLE = auto()


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter of a pattern, `count` times."""

    letter: str
    count: int


Item = Letter | str
_NUMBERS = "yuMLdDHhKkmsS"
_LETTERS = {Dialect.FORMATTER: _NUMBERS + "aEeQqnA", Dialect.SIMPLE: _NUMBERS + "aEXZ"}
_MOST = {**dict.fromkeys("dHhKkms", 2), "D": 3, "S": 9, "a": 1, "y": 9, "u": 9, "M": 4, "L": 4,
         "E": 4, "e": 1, "Q": 2, "q": 2, "n": 9, "A": 9, "X": 3, "Z": 3}  # fmt: skip
MAX_PATTERN = 200


class PatternError(ValueError):
    """A pattern is none of Java's, or has letters that are not supported."""


@lru_cache(maxsize=256)
def items_of(pattern: str, dialect: Dialect) -> tuple[Item, ...]:
    """The fields of a pattern and the texts between them.

    Raises:
        PatternError: it is no pattern, or one with other letters.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern of {len(pattern)} characters")
    items: list[Item] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "'":
            text, at = _quoted(pattern, at)
            items.append(text)
        elif character.isascii() and character.isalpha():
            stop = at
            while stop < len(pattern) and pattern[stop] == character:
                stop += 1
            items.append(_field(character, stop - at, dialect))
            at = stop
        elif character in "{}#[]" and dialect is Dialect.FORMATTER:
            raise PatternError(f'"{character}"')
        else:
            items.append(character)
            at += 1
    return tuple(items)


def _field(letter: str, count: int, dialect: Dialect) -> Letter:
    most = _MOST.get(letter, 0)
    if dialect is Dialect.SIMPLE and letter in "yMLdDHhKkmsSEa":
        most = 20
    if letter not in _LETTERS[dialect] or count > most:
        raise PatternError(f'"{letter * min(count, 20)}"')
    return Letter(letter, count)


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    """The text between quotes, and where it ends; two quotes are one."""
    if pattern[at + 1 : at + 2] == "'":
        return "'", at + 2
    text, place = [], at + 1
    while place < len(pattern):
        if pattern[place] != "'":
            text.append(pattern[place])
            place += 1
        elif pattern[place + 1 : place + 2] == "'":
            text.append("'")
            place += 2
        else:
            return "".join(text), place + 1
    raise PatternError("a quote is not closed")
