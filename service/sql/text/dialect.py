"""Flink's lexical rules as a sqlglot dialect, and the limits of a script.

Only the tokenizer is sqlglot's. Its parser accepts the union of many dialects and rewrites what it
reads, so the grammar is ours (`service.sql.grammar.parser`): what is not there is refused.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as RawToken
from sqlglot.tokenizer_core import TokenType

from service.sql.text.errors import SqlError
from service.sql.text.script import Script

MAX_BYTES = 64 * 1024
MAX_TOKENS = 10_000
MAX_DEPTH = 200


class Flink(Dialect):
    """Flink SQL: backtick identifiers, single-quoted strings, plain words."""

    class Tokenizer(tokens.Tokenizer):
        """Leaves every word a plain word; multi-word keywords would hide positions."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'"]
        IDENTIFIER_ESCAPES: ClassVar[list[str]] = ["`"]
        COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", ("/*", "*/")]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        BIT_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        BYTE_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        NESTED_COMMENTS = False
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind
            for word, kind in tokens.Tokenizer.KEYWORDS.items()
            if not word[0].isalpha() and not word.startswith(("{", "/"))
        }


class SqlTokenKind(Enum):
    """What a token is for the grammar."""

    WORD = auto()
    QUOTED_NAME = auto()
    STRING = auto()
    HEX = auto()
    NUMBER = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class SqlToken:
    """A token and the half-open range of the script that it came from.

    Attributes:
        text: its value: without quotes, escapes resolved.
    """

    kind: SqlTokenKind
    text: str
    start: int
    end: int


_KINDS = {
    TokenType.VAR: SqlTokenKind.WORD,
    TokenType.IDENTIFIER: SqlTokenKind.QUOTED_NAME,
    TokenType.STRING: SqlTokenKind.STRING,
    TokenType.HEX_STRING: SqlTokenKind.HEX,
    TokenType.NUMBER: SqlTokenKind.NUMBER,
}
_WORD = re.compile(r"[^\W\d]\w*\Z")
_BETWEEN_TOKENS = re.compile(r"\s+|--[^\n]*|/\*(?P<hint>\+)?.*?\*/", re.DOTALL)
_SYMBOLS = frozenset(
    [
        *["(", ")", ",", ".", ";", "=", "<>", "!=", "<", "<=", ">", ">=", "=>"],
        *["+", "-", "*", "/", "%", "||", "[", "]"],
    ]
)
_DOUBLE_QUOTE = '"'
HINT_START, HINT_END = "/*+", "*/"


def tokenize(script: Script) -> list[SqlToken]:
    """The tokens of a script, closed by an END token.

    Raises:
        SqlError: the script is too large, or has a character, string or comment that is not SQL.
    """
    _check_size(script)
    result = _with_hints(script, _tokens(script, script.text, 0))
    if len(result) > MAX_TOKENS:
        at = result[MAX_TOKENS].start
        raise script.error(
            at,
            f"the script has {len(result):,} tokens, more than {MAX_TOKENS:,}",
            hint="Submit one job a script and shorten its lists.",
        )
    result.append(SqlToken(SqlTokenKind.END, "", len(script.text), len(script.text)))
    return result


def _check_size(script: Script) -> None:
    size = len(script.text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise SqlError(
            f"the script has {size:,} bytes, more than {MAX_BYTES:,}",
            hint="Submit one job a script and shorten it.",
        )
    bad = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", script.text)
    if bad is not None:
        raise script.error(
            bad.start(),
            f"character U+{ord(bad[0]):04X} is not allowed",
            hint="Remove the control character; a script is plain UTF-8 text.",
        )


def _tokens(script: Script, text: str, start: int) -> list[SqlToken]:
    """The tokens of a part of the script that starts at `start`."""
    try:
        raw_tokens = Flink().tokenize(text)
    except TokenError as exc:
        raise script.error(
            start + _unterminated(text),
            "a string, quoted name, binary literal or comment does not end, or has no valid form",
            hint="Close it: 'text' ('' for a quote inside), `name`, x'0A', /* comment */.",
        ) from exc
    return [_token(script, raw, start) for raw in raw_tokens]


_CLOSED = re.compile(
    r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'`/\-]+|/(?!\*)|-(?!-)", re.DOTALL
)


def _unterminated(text: str) -> int:
    """Where the first quote or comment without an end starts."""
    at = 0
    while (match := _CLOSED.match(text, at)) is not None and match.end() > at:
        at = match.end()
    return min(at, max(len(text) - 1, 0))


def _token(script: Script, raw: RawToken, start: int) -> SqlToken:
    kind = _KINDS.get(raw.token_type, SqlTokenKind.SYMBOL)
    token = SqlToken(kind, raw.text, start + raw.start, start + raw.end + 1)
    if kind is SqlTokenKind.SYMBOL and raw.text == _DOUBLE_QUOTE:
        raise script.error(
            token.start,
            "double quotes are not part of the language",
            hint="A text goes between single quotes, a name between backticks.",
        )
    if kind is SqlTokenKind.SYMBOL and raw.text not in _SYMBOLS:
        raise script.error(
            token.start,
            f'unexpected "{raw.text}"',
            hint="Names with other characters go between backticks, strings between single quotes.",
        )
    if kind is SqlTokenKind.WORD and _WORD.match(raw.text) is None:
        raise script.error(
            token.start,
            f'unexpected "{raw.text}"',
            hint="A name starts with a letter; put other names between backticks.",
        )
    return token


def _with_hints(script: Script, tokens: list[SqlToken]) -> list[SqlToken]:
    """The tokens with those of the hints `/*+ … */`, which the tokenizer takes for comments."""
    result: list[SqlToken] = []
    at = 0
    for token in [*tokens, SqlToken(SqlTokenKind.END, "", len(script.text), len(script.text))]:
        while at < token.start:
            match = _BETWEEN_TOKENS.match(script.text, at)
            if match is None:
                break
            if match["hint"]:
                result += _hint(script, at, match.end())
            at = match.end()
        at = token.end
        result.append(token)
    return result[:-1]


def _hint(script: Script, start: int, end: int) -> list[SqlToken]:
    inside = slice(start + len(HINT_START), end - len(HINT_END))
    tokens = _tokens(script, script.text[inside], inside.start)
    opening = SqlToken(SqlTokenKind.SYMBOL, HINT_START, start, inside.start)
    return [opening, *tokens, SqlToken(SqlTokenKind.SYMBOL, HINT_END, inside.stop, end)]
