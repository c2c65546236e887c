"""Statements of MySQL and MariaDB: from the binlog's bytes to tokens, and a parser over tokens.

Executable comments (``/*!50700 … */``, ``/*M!100100 … */``) are code where the server is new
enough, so a statement may have several readings. An ambiguous statement has none.
"""

import contextlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any, Self

from pymysqlreplication import constants, event
from pymysqlreplication.exceptions import StatusVariableMismatch
from pymysqlreplication.packet import BinLogPacketWrapper

from joins.plan.table_patterns import TablePattern

_ANSI_QUOTES = 1 << 2
_NO_BACKSLASH_ESCAPES = 1 << 20
_STRICT = 3 << 21  # STRICT_TRANS_TABLES and STRICT_ALL_TABLES
_RUN_EVERYWHERE = 50_700  # MariaDB skips MySQL's versions from 5.7 on
_MOST_GATES = 4
_MOST_CHARACTERS = 1 << 20  # a longer statement is a write in statement format
UNDECODED = "\ufffd"

_ESCAPED = r"'(?:[^'\\]++|\\.|'')*+'", r'"(?:[^"\\]++|\\.|"")*+"'
_DOUBLED = r"'(?:[^']++|'')*+'", r'"(?:[^"]++|"")*+"'
# Invalid input, such as a quote without its end, matches nothing. Unquoted U+0080 to U+00A0 are
# spaces or parts of a word, depending on the session's character set.
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
    """The parts of `sql_mode` that decide how a statement is read and what it may do.

    `strict` refuses values that do not fit; with `ansi_quotes` double quotes enclose names; with
    `escapes` a backslash in a text is an escape character.
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
    """Kind of a token."""

    WORD = "a keyword, an unquoted name or a number"
    NAME = "a quoted name"
    TEXT = "a text"
    SYMBOL = "any other character"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `text` is as written, without the quotes of a name."""

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
    """Every way in which a server may read the statement `text`; empty if undecidable.

    Readings without a token are left out: servers do not log what they have not executed. U+FFFD in
    `text` stands for undecodable bytes.
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
    """Each token with the executable comment that it depends on; ValueError if undecidable."""
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
        elif kind == "end":  # of no comment: one may begin with its second character
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
    """Refuse comments and literals that servers end at different positions."""
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


_Foreign = Any  # objects of python-mysql-replication, which have no types
STATEMENT_BYTES = 13  # of a statement's event before the status variables
# Sessions have no others. Only words and names of a statement are read; `rows` of a table that it
# changes are read by the server's tables.
_CODECS = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "euc_kr",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
}
_CHARACTER_SET_COLLATIONS = 131  # of MariaDB: a count, and four bytes each


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement logged as text: DDL, or a change that was not logged as rows.

    `schema` is the default database, empty for none. In `text` U+FFFD stands for undecodable bytes,
    and comes first if nothing is certain.
    """

    schema: str
    text: str
    modes: Modes


class QueryEvent(event.QueryEvent):  # type: ignore[misc] # has no types
    """A statement; `is_whole` is false if a status variable is unknown."""

    is_whole = True
    _end: int | None = None

    def _read_status_vars_value_for_key(self, key: int) -> None:
        if self._end is None:
            self._end = self.packet.read_bytes - 1 + self.status_vars_length
        if key == _CHARACTER_SET_COLLATIONS:
            self.packet.advance(4 * self.packet.read_uint8())
            return
        try:
            super()._read_status_vars_value_for_key(key)
        except StatusVariableMismatch:  # only the server knows the length of its value
            self.is_whole = False
            self.packet.advance(self._end - self.packet.read_bytes)


# The library creates each event by this mapping; it has no other hook.
BinLogPacketWrapper._BinLogPacketWrapper__event_map[constants.QUERY_EVENT] = QueryEvent


def query_statement(query_event: _Foreign, charsets: Mapping[int, str]) -> Statement:
    """`charsets` are by collation number."""
    fixed: int = query_event._declared_post_header_len(STATEMENT_BYTES)
    length = (
        query_event.event_size
        - fixed
        - query_event.status_vars_length
        - query_event.schema_length
        - 1
    )
    packet = query_event.packet.packet  # the text was read last
    text = bytes(packet._data[packet._position - length : packet._position])
    number = getattr(query_event, "character_set_client", None)
    charset = "utf8mb4" if number is None else charsets.get(int(number), "")
    sql = decoded(text, charset)
    # its modes and character set may be others
    mark = "" if query_event.is_whole else f"{UNDECODED} "
    modes = Modes.of(getattr(query_event, "sql_mode", 0))
    return Statement(query_event.schema.decode("utf-8", "replace"), mark + sql.strip(), modes)


def load_statement(load_event: _Foreign) -> Statement:
    """The statement of a LOAD DATA that was not logged as rows."""
    rest = load_event.packet.read(load_event.event_size - load_event.packet.read_bytes)
    rest = rest[load_event.status_vars_length :]
    schema, text = rest[: load_event.schema_length], rest[load_event.schema_length + 1 :]
    return Statement(schema.decode("utf-8", "replace"), decoded(text, "utf8mb4"), Modes())


def decoded(text: bytes, charset: str) -> str:
    """A statement in `charset`; in UTF-8 an invalid byte hides no other character."""
    with contextlib.suppress(UnicodeDecodeError):
        return text.decode(_CODECS.get(charset, "ascii"))
    is_utf8 = _CODECS.get(charset) == "utf-8"
    return text.decode("utf-8", "replace") if is_utf8 else f"{UNDECODED} {text.decode('latin1')}"


END = Token(Kind.SYMBOL, "")
_RAW_NAME = "#mysql50#"  # followed by the name of a file, in which characters are encoded


class Effect(Enum):
    """What a statement does to the captured table, weakest first."""

    NONE = "nothing"
    ALTERED = "its definition was changed"
    CONVERTED = "the definition of captured columns was changed"
    UNLOGGED = "its rows were, or may have been, changed without row events"
    REPLACED = "it was emptied, removed or replaced"
    UNKNOWN = "it may have been changed"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table in a statement; `database` is empty if neither named nor defaulted."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class Target:
    """The followed table; its column names are the server's."""

    database: str
    table: str
    columns: tuple[str, ...]
    computed_from: tuple[str, ...] = ()

    def is_database(self, name: str) -> bool:
        return not name or _same(name, self.database)

    def is_named(self, name: TableName) -> bool:
        return self.is_database(name.database) and _same(name.table, self.table)


@dataclass(frozen=True, slots=True)
class Matching(Target):
    """Every table that matches the names of the followed one, but those of `known`."""

    known: frozenset[tuple[str, str]] = frozenset()

    def is_database(self, name: str) -> bool:
        is_any = not name or name.startswith(_RAW_NAME)
        return is_any or any(map(self._pattern.has_database, (name, folded(name))))

    def is_named(self, name: TableName) -> bool:
        if name.table.startswith(_RAW_NAME):
            return self.is_database(name.database)
        is_like = any(map(self._pattern.has_table, (name.table, folded(name.table))))
        if not (is_like and self.is_database(name.database)):
            return False
        return not any(
            folded(name.table) == table and (not name.database or folded(name.database) == database)
            for database, table in self.known
        )

    @property
    def _pattern(self) -> TablePattern:
        return TablePattern(self.database, self.table)


def _same(name: str, ours: str) -> bool:
    return name.startswith(_RAW_NAME) or folded(name) == folded(ours)


def require(is_so: bool) -> None:
    if not is_so:
        raise ValueError("a statement of a form that is not known")


class Parser:
    """A cursor over tokens; unexpected input is a ValueError."""

    # reads better long: a grammar has a method a rule.

    def __init__(self, tokens: Reading, schema: str = "") -> None:
        self._tokens, self._at, self._end = tokens, 0, len(tokens)
        while self._end and tokens[self._end - 1].is_symbol(";"):
            self._end -= 1
        self._schema = schema

    @property
    def rest(self) -> Reading:
        return self._tokens[self._at : self._end]

    @property
    def ahead(self) -> Token:
        return END if self.has_ended else self._tokens[self._at]

    @property
    def has_ended(self) -> bool:
        return self._at == self._end

    def next(self) -> Token:
        if self.has_ended:
            raise ValueError("the statement ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def accept(self, *words: str) -> bool:
        behind = self._at + len(words)
        ahead = self._tokens[self._at : min(behind, self._end)]
        if tuple(token.word for token in ahead) != words:
            return False
        self._at = behind
        return True

    def accept_any(self, *words: str) -> str:
        return self.next().word if self.ahead.word in words else ""

    def symbol(self, character: str) -> bool:
        is_next = self.ahead.is_symbol(character)
        self._at += is_next
        return is_next

    def name(self) -> str:
        token = self.next()
        if not token.is_name:
            raise ValueError(f'"{token.text}" is no name')
        return token.text

    def table(self) -> TableName:
        first = "" if self.symbol(".") else self.name()
        if not first:
            return TableName(self._schema, self.name())
        if self.symbol("."):
            return TableName(first, self.name())
        return TableName(self._schema, first)

    def tables(self) -> list[TableName]:
        names = [self.table()]
        while self.symbol(","):
            names.append(self.table())
        return names

    def account(self) -> None:
        self.next()
        if self.symbol("@"):
            self.next()
        elif self.symbol("("):
            require(self.symbol(")"))

    def wait(self) -> None:
        if not self.accept("NOWAIT") and self.accept("WAIT"):
            self.next()

    def end(self) -> None:
        require(self.has_ended)

    def require_single(self) -> None:
        require(not any(token.is_symbol(";") for token in self.rest))

    def parts(self) -> list[Reading]:
        """The rest, split at the commas outside of parentheses."""
        depth, start, parts, rest = 0, 0, [], self.rest
        for at, token in enumerate(rest):
            if token.kind is Kind.SYMBOL and token.text in "()":
                depth += 1 if token.text == "(" else -1
            elif token.is_symbol(",") and depth == 0:
                parts.append(rest[start:at])
                start = at + 1
        parts.append(rest[start:])
        self._at = self._end
        return parts
