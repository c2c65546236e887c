"""Flink's lexical rules as a sqlglot dialect: tokens, statements, limits of a script.

Only the tokenizer is sqlglot's: its parser accepts many dialects and rewrites what it reads.
`service.sql.grammar.parser` refuses what it does not know.
"""

import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as RawToken
from sqlglot.tokenizer_core import TokenType

from joins.plan.errors import SinkError, SourceError
from service.sql.text.script import Edit, Script, SqlError

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
    """A token and its half-open range of the script; `text` is without quotes, escapes resolved."""

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
    _check_size(script)
    result = _with_hints(script, _tokens(script, script.text, 0))
    if len(result) > MAX_TOKENS:
        at = result[MAX_TOKENS].start
        raise script.error(
            at,
            f"the script has {len(result):,} tokens, more than {MAX_TOKENS:,}",
            hint="Submit one job per script, and shorten its lists.",
        )
    result.append(SqlToken(SqlTokenKind.END, "", len(script.text), len(script.text)))
    return result


def _check_size(script: Script) -> None:
    size = len(script.text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise SqlError(
            f"the script has {size:,} bytes, more than {MAX_BYTES:,}",
            hint="Submit one job per script, and shorten it.",
        )
    bad = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", script.text)
    if bad is not None:
        raise script.error(
            bad.start(),
            f"character U+{ord(bad[0]):04X} is not allowed",
            hint="Remove the control character; a script is plain UTF-8 text.",
        )


def _tokens(script: Script, text: str, start: int) -> list[SqlToken]:
    try:
        raw_tokens = Flink().tokenize(text)
    except TokenError as exc:
        raise script.error(
            start + _unterminated(text),
            "a string, quoted name, binary literal or comment is not closed, or is malformed",
            hint="Close it: 'text' ('' for a quote inside), `name`, x'0A', /* comment */.",
        ) from exc
    result: list[SqlToken] = []
    pending = list(reversed(raw_tokens))
    while pending:
        raw = pending.pop()
        at = result[-1].start if result else 0
        is_unicode = result and _UNICODE.match(script.text, at) is not None
        if is_unicode and raw.text == "&" and start + raw.start == at + 1:
            continue
        if is_unicode and raw.token_type is TokenType.STRING and start + raw.start == at + 2:
            escape, end = "\\", start + raw.end + 1
            follows = [token.text.upper() for token in pending[-1:]]
            if follows == ["UESCAPE"] and pending[-2:][0].token_type is TokenType.STRING:
                pending.pop()
                escape, end = pending[-1].text, start + pending.pop().end + 1
            text = _unescaped(script, raw.text, escape, at)
            result[-1] = SqlToken(SqlTokenKind.STRING, text, at, end)
        else:
            result.append(_token(script, raw, start))
    return result


_UNICODE = re.compile(r"[uU]&'")
"""What a text with escapes of Unicode begins with."""


def _unescaped(script: Script, text: str, escape: str, at: int) -> str:
    """The text with its characters by number; `escape` is in front of each."""
    if len(escape) != 1 or re.match(r"[0-9a-fA-F+'\"\s]", escape):
        raise script.error(
            at,
            "UESCAPE is no single character that may be one",
            hint="Write one character that is no digit, no letter from A to F, no + and no blank.",
        )
    mark = re.escape(escape)

    def char(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        if digits is None and len(match[0]) == 2:
            return escape
        if digits is None or int(digits, 16) > sys.maxunicode or 0xD800 <= int(digits, 16) < 0xE000:
            raise script.error(
                at,
                "a text U&'…' has an escape that is no character",
                hint="Write \\ and four hexadecimal digits, \\+ and six, or \\\\ for one \\.",
            )
        return chr(int(digits, 16))

    return re.sub(rf"{mark}(?:{mark}|([0-9a-fA-F]{{4}})|\+([0-9a-fA-F]{{6}})|)", char, text)


_CLOSED = re.compile(
    r"'(?:[^']|'')*'|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'`/\-]+|/(?!\*)|-(?!-)", re.DOTALL
)


def _unterminated(text: str) -> int:
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
            "double quotes are not supported",
            hint="Use single quotes for text and backticks for names.",
            edit=_requoted(script, token.start),
        )
    if raw.text.startswith("#") and not script.text[: token.start].rpartition("\n")[2].strip():
        raise script.error(
            token.start,
            'a comment begins with "--", not "#"',
            hint='Write "--" in front of it.',
            edit=Edit(token.start, token.start, "-- "),
        )
    if kind is SqlTokenKind.SYMBOL and raw.text not in _SYMBOLS:
        raise script.error(
            token.start,
            f'unexpected "{raw.text}"',
            hint="Put names with other characters in backticks, and strings in single quotes.",
        )
    if kind is SqlTokenKind.WORD and _WORD.match(raw.text) is None:
        raise script.error(
            token.start,
            f'unexpected "{raw.text}"',
            hint="A name starts with a letter; put other names between backticks.",
        )
    return token


def _requoted(script: Script, at: int) -> Edit | None:
    """The text between double quotes as a text of SQL; a name is not told from it."""
    end = script.text.find(_DOUBLE_QUOTE, at + 1)
    inside = script.text[at + 1 : end]
    if end < 0 or "\n" in inside:
        return None
    quoted = "'" + inside.replace("'", "''") + "'"
    return Edit(at, end + 1, quoted, sure=False)


def _with_hints(script: Script, tokens: list[SqlToken]) -> list[SqlToken]:
    """The tokens with those of hints `/*+ … */`, which the tokenizer skips as comments."""
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


@contextmanager
def told_where(sql: str, *tables: str) -> Iterator[None]:
    """Add line, column and excerpt to a SourceError or SinkError raised within.

    `tables` are names in CREATE TABLE; the first is the position of an error that quotes none.
    """
    try:
        yield
    except (SourceError, SinkError) as error:
        script = Script(sql)
        at = _place(script, tables, error.message)
        if at is not None:
            line, column = script.line_and_column(at)
            error.message = f"line {line}, column {column}: {error.message}"
            error.args = (error.message,)
            vars(error).update(line=line, column=column, excerpt=script.excerpt(at))
        raise


def _place(script: Script, tables: Sequence[str], message: str) -> int | None:
    try:
        tokens = tokenize(script)
    except SqlError:
        return None
    declared = [own for own in (_declaration(tokens, table) for table in tables) if own]
    places = [place for own in declared if (place := _quoted_in(own, message)) is not None]
    return min(places, default=(0, declared[0][0].start) if declared else (0, None))[1]


def _quoted_in(tokens: Sequence[SqlToken], message: str) -> tuple[int, int] | None:
    """(position in the message, offset in the script) of the first quoted token."""
    values = [token for token in tokens if token.kind is SqlTokenKind.STRING]
    names = [
        token for token in tokens[1:] if token.kind in (SqlTokenKind.WORD, SqlTokenKind.QUOTED_NAME)
    ]
    places = [
        (place, token)
        for token in (*values, *names)
        if (place := _quoted(token, message)) is not None
    ]
    first = min(places, key=lambda pair: pair[0], default=None)
    return None if first is None else (first[0], first[1].start)


def _declaration(tokens: Sequence[SqlToken], table: str) -> Sequence[SqlToken]:
    """The tokens from the table's name to the end of its last CREATE TABLE; empty without one."""
    texts = [token.text.upper() for token in tokens]
    for at in range(len(tokens) - 1, 0, -1):
        before = texts[max(0, at - 6) : at]
        if tokens[at].text == table and before[-1] in ("TABLE", "EXISTS") and "CREATE" in before:
            end = texts.index(";", at) if ";" in texts[at:] else len(tokens)
            return tokens[at:end]
    return ()


def _quoted(token: SqlToken, message: str) -> int | None:
    ends = (message.find(f'{start}{token.text}"') for start in ('"', ".", "/") if token.text)
    return min((at for at in ends if at >= 0), default=None)


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
    """One statement of a script; `word` is its first word, in capitals.

    `end` is behind its last character. `closed_at` is the semicolon; None at an open script's end.
    """

    use: Use
    word: str
    start: int
    end: int
    closed_at: int | None


def pieces(text: str) -> tuple[Piece, ...]:
    """The statements of `text`; a statement set is one piece.

    Raises SqlError if the text is too large or contains something that is no token.
    """
    return tuple(_piece(tokens, closed_at) for tokens, closed_at in groups(Script(text)))


def only(text: str, kept: Collection[Piece]) -> str:
    """`text` with all statements but `kept` blanked out; line numbers do not change."""
    chars = [char if char == "\n" else " " for char in text]
    for piece in kept:
        stop = piece.end if piece.closed_at is None else piece.closed_at + 1
        chars[piece.start : stop] = text[piece.start : stop]
    return "".join(chars).rstrip()


def groups(script: Script) -> Iterator[tuple[list[SqlToken], int | None]]:
    """The tokens of each statement, and where its semicolon stands."""
    group: list[SqlToken] = []
    depth = 0
    for token in tokenize(script):
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
    words, depth = set[str](), 0
    for token in tokens:
        if token.kind is SqlTokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        elif token.kind is SqlTokenKind.WORD and depth == 0:
            words.add(token.text.upper())
    return {"TABLE", "AS"} <= words and "VIEW" not in words
