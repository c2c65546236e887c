"""Statements of MySQL and MariaDB as tokens, as the server's own lexer reads them.

Executable comments (``/*!50700 … */``, ``/*M!100100 … */``) are code where the server is new
enough, so that a statement may have several readings. What cannot be read for sure has none.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Self

_ANSI_QUOTES = 1 << 2
_NO_BACKSLASH_ESCAPES = 1 << 20
_STRICT = 3 << 21  # STRICT_TRANS_TABLES and STRICT_ALL_TABLES
_RUN_EVERYWHERE = 50_700  # MariaDB skips the versions of MySQL 5.7 and what follows it
_MOST_GATES = 4
_MOST_CHARACTERS = 1 << 20  # what is longer is a write in statement format
UNDECODED = "\ufffd"

_ESCAPED = r"'(?:[^'\\]++|\\.|'')*+'", r'"(?:[^"\\]++|\\.|"")*+"'
_DOUBLED = r"'(?:[^']++|'')*+'", r'"(?:[^"]++|"")*+"'
# What is no token, such as a quote without its end, matches nothing. Unquoted U+0080 to U+00A0 are
# spaces or parts of a word, as the session's character set says.
_FORMS = r"""
  (?P<space>[ \t\n\v\f\r]+)
| (?P<line>(?:\#|--(?=[\x00-\x20\x7f]|\Z))[^\n]*)
| (?P<code>/\*(?P<maria>M?)!(?P<version>[0-9]{5,6})?)
| (?P<comment>/\*.*?\*/)
| (?P<end>\*/)
| (?P<name>`(?:[^`]++|``)*+`)
| (?P<text>%s)
| (?P<double>%s)
| (?P<word>[0-9A-Za-z_$\u00a1-\ufffc\U00010000-\U0010ffff]+)
| (?P<symbol>(?!/\*)[!%%&()*+,\-./:;<=>?@\[\\\]^{|}~])
"""


def _compiled(texts: tuple[str, str], double: str) -> re.Pattern[str]:
    return re.compile(_FORMS % (texts[0], double), re.VERBOSE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Modes:
    """What of a session's `sql_mode` decides how its statements are read, and what they may do.

    Attributes:
        strict: whether it refuses values that do not fit, instead of changing them.
        ansi_quotes: whether double quotes are around names instead of texts.
        escapes: whether a backslash in a text takes the next character's meaning away.
    """

    strict: bool = True
    ansi_quotes: bool = False
    escapes: bool = True

    @classmethod
    def of(cls, sql_mode: int) -> Self:
        return cls(
            bool(sql_mode & _STRICT),
            bool(sql_mode & _ANSI_QUOTES),
            not sql_mode & _NO_BACKSLASH_ESCAPES,
        )


class Kind(Enum):
    """What a token is."""

    WORD = "a keyword, an unquoted name or a number"
    NAME = "a quoted name"
    TEXT = "a text"
    SYMBOL = "any other character"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        text: of a quoted name what it names, else as it was written.
    """

    kind: Kind
    text: str

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind is Kind.WORD else ""

    @property
    def is_name(self) -> bool:
        return self.kind in (Kind.WORD, Kind.NAME)

    def is_symbol(self, character: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text == character


Reading = tuple[Token, ...]
_Gate = tuple[str, int]
_FORMS_OF = {
    (ansi, escapes): _compiled(
        _ESCAPED if escapes else _DOUBLED,
        _ESCAPED[1] if escapes and not ansi else _DOUBLED[1],
    )
    for ansi, escapes in product((False, True), repeat=2)
}


def readings(text: str, modes: Modes) -> list[Reading]:
    """Every way in which a server may read the statement `text`; none if that is not sure.

    A reading without any token is left out: a server does not log what it has not carried out.

    Args:
        text: the statement; U+FFFD stands for what could not be decoded.
        modes: of its session.
    """
    if len(text) > _MOST_CHARACTERS:
        return []
    try:
        tokens = list(_gated(text, modes))
    except ValueError:
        return []
    gates = sorted({gate for _, gate in tokens if gate is not None})
    if len(gates) > _MOST_GATES:
        return []
    token_runs = (
        tuple(token for token, gate in tokens if gate is None or gate in run)
        for run in _choices(gates)
    )
    return [reading for reading in dict.fromkeys(token_runs) if reading]


def folded(name: str) -> str:
    apart = unicodedata.normalize("NFKD", name)
    return "".join(c for c in apart if not unicodedata.combining(c)).casefold()


def _choices(gates: list[_Gate]) -> Iterator[set[_Gate]]:
    for chosen in product((True, False), repeat=len(gates)):
        yield {gate for gate, is_run in zip(gates, chosen, strict=True) if is_run}


def _gated(text: str, modes: Modes) -> Iterator[tuple[Token, _Gate | None]]:
    """Each token with the executable comment that it depends on, if it may be skipped.

    Raises:
        ValueError: it cannot be read for sure.
    """
    form = _FORMS_OF[modes.ansi_quotes, modes.escapes]
    at, in_code, gate = 0, False, None
    while at < len(text):
        match = form.match(text, at)
        if match is None:
            raise ValueError(f"no token at {at}")
        at, kind, part = match.end(), str(match.lastgroup), match.group()
        if kind == "code":
            if in_code:
                raise ValueError("an executable comment in another one")
            in_code, gate = True, _gate_of(match)
        elif kind == "end" and in_code:
            in_code, gate = False, None
        elif kind == "end":  # of nothing: a comment may begin with its second character
            at -= 1
            yield Token(Kind.SYMBOL, "*"), gate
        else:
            _require_sure(kind, part, in_code)
            yield from ((token, gate) for token in _tokens(kind, part, modes))
    if in_code:
        raise ValueError("a comment without its end")


def _gate_of(match: re.Match[str]) -> _Gate | None:
    version = int(match["version"] or 0)
    if not match["maria"] and version < _RUN_EVERYWHERE:
        return None
    return match["maria"], version


def _require_sure(kind: str, part: str, in_code: bool) -> None:
    """Refuse what servers end at different places."""
    if in_code and "*/" in part.removesuffix("*/" if kind == "comment" else ""):
        raise ValueError("a server that skips the comment ends it elsewhere")
    if kind == "line" and "\0" in part:
        raise ValueError("some servers end a line there")
    if kind in ("name", "double") and UNDECODED in part:
        raise ValueError("a name that could not be decoded")


def _tokens(kind: str, part: str, modes: Modes) -> Iterator[Token]:
    if kind == "word":
        yield Token(Kind.WORD, part)
    elif kind == "name" or (kind == "double" and modes.ansi_quotes):
        yield Token(Kind.NAME, part[1:-1].replace(part[0] * 2, part[0]))
    elif kind in ("text", "double"):
        yield Token(Kind.TEXT, part)
    elif kind == "symbol":
        yield Token(Kind.SYMBOL, part)
