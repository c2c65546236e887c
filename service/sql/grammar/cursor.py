"""A position in the tokens of a script, and the nodes of operators and calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.sql.grammar.expression_nodes import FunctionCall, Literal, LiteralKind, Name, Node
from service.sql.grammar.syntax import OptionNode
from service.sql.text.dialect import HINT_END, HINT_START, MAX_DEPTH, SqlToken, SqlTokenKind
from service.sql.text.script import Edit, Script, SqlError

MAX_NAME_LENGTH = 256
RESERVED = frozenset(
    [
        "ALL",
        "AND",
        "ANY",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CREATE",
        "CROSS",
        "DISTINCT",
        "DROP",
        "ELSE",
        "END",
        "ESCAPE",
        "EXCEPT",
        "EXISTS",
        "FALSE",
        "FOR",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "IN",
        "INNER",
        "INSERT",
        "INTERSECT",
        "INTO",
        "IS",
        "JOIN",
        "LATERAL",
        "LEFT",
        "LIKE",
        "LIMIT",
        "NATURAL",
        "NOT",
        "NULL",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "RIGHT",
        "SELECT",
        "SET",
        "TABLE",
        "TABLESAMPLE",
        "THEN",
        "TRUE",
        "TRY_CAST",
        "UNION",
        "UNNEST",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
    ]
)


_BEGINNINGS = (
    *(("CREATE", what) for what in ("TABLE", "VIEW", "TEMPORARY", "CATALOG", "DATABASE")),
    *(("INSERT", "INTO"), ("EXECUTE", "STATEMENT"), ("DROP", "TABLE"), ("DROP", "VIEW")),
)
"""Words in front of which a missing ";" is put, because only a statement begins with them."""


class TokenCursor:
    """Reads tokens from left to right; every error names what was expected."""

    # reads better long: the small steps of one grammar, all of which move one position.

    def __init__(self, script: Script, tokens: list[SqlToken]) -> None:
        self.script = script
        self._tokens = tokens
        self._index = 0

    @property
    def token(self) -> SqlToken:
        return self._tokens[self._index]

    @property
    def at(self) -> int:
        return self.token.start

    @property
    def end_of_last(self) -> int:
        return self._tokens[self._index - 1].end if self._index else 0

    def ahead(self, count: int) -> SqlToken:
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def advance(self) -> SqlToken:
        token = self.token
        if token.kind is not SqlTokenKind.END:
            self._index += 1
        return token

    def at_words(self, *words: str) -> bool:
        return all(
            self.ahead(i).kind is SqlTokenKind.WORD and self.ahead(i).text.upper() == word
            for i, word in enumerate(words)
        )

    def at_end(self) -> bool:
        return self.token.kind is SqlTokenKind.END

    def at_symbol(self, symbol: str) -> bool:
        return self.token.kind is SqlTokenKind.SYMBOL and self.token.text == symbol

    def accept_words(self, *words: str) -> bool:
        if not self.at_words(*words):
            return False
        self._index += len(words)
        return True

    def accept_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self._index += 1
        return True

    def expect_words(self, *words: str, hint: str) -> None:
        if not self.accept_words(*words):
            raise self.unexpected(" ".join(words), hint=hint)

    def expect_symbol(self, symbol: str, *, hint: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.unexpected(f'"{symbol}"', hint=hint)

    def at_name(self) -> bool:
        token = self.token
        return token.kind is SqlTokenKind.QUOTED_NAME or (
            token.kind is SqlTokenKind.WORD and token.text.upper() not in RESERVED
        )

    def name(self, what: str, *, hint: str = "Put a reserved word between backticks.") -> Name:
        if not self.at_name():
            raise self.unexpected(what, hint=hint)
        token = self.advance()
        if not token.text or len(token.text) > MAX_NAME_LENGTH or not token.text.isprintable():
            raise self.script.error(
                token.start,
                f"{what} must have 1 to {MAX_NAME_LENGTH} printable characters",
                hint="Choose another name.",
            )
        return Name(token.text, token.start)

    def unexpected(self, expected: str, *, hint: str) -> SqlError:
        token = self.token
        if token.text == HINT_START and token.kind is SqlTokenKind.SYMBOL:
            hint = "An OPTIONS hint stands behind the name of a table in FROM, JOIN or INSERT INTO."
        actual = "the end of the script" if token.kind is SqlTokenKind.END else f'"{_shown(token)}"'
        message, edit = f"expected {expected}, found {actual}", None
        if self._index and any(self.at_words(*words) for words in _BEGINNINGS):
            edit = Edit(self.end_of_last, self.end_of_last, ";")
            hint = 'Separate statements by ";".'
        return self.script.error(token.start, message, hint=hint, edit=edit)


def _shown(token: SqlToken) -> str:
    if token.kind is SqlTokenKind.STRING:
        return "'…'"
    return token.text if len(token.text) <= 40 else token.text[:40] + "…"


def read_table(
    cursor: TokenCursor, what: str, *, hint: str = "Put a reserved word between backticks."
) -> Name:
    """Take the name of a table or view, `[[catalog.]database.]name`."""
    first = name = cursor.name(what, hint=hint)
    qualifier: list[str] = []
    while cursor.at_symbol("."):
        cursor.advance()
        qualifier.append(name.text)
        name = cursor.name(what, hint=hint)
    if len(qualifier) > 2:
        raise cursor.script.error(
            first.at,
            "a table name has more than three parts",
            hint="Write catalog.database.table, or the table's name alone.",
        )
    return Name(name.text, first.at, tuple(qualifier))


def read_names(cursor: TokenCursor, what: str) -> tuple[Name, ...]:
    """Take `(a, b, …)`, the column names of `what`."""
    cursor.expect_symbol("(", hint=f"Write {what} (a, b).")
    names = [cursor.name("a column name")]
    while cursor.accept_symbol(","):
        names.append(cursor.name("a column name"))
    cursor.expect_symbol(")", hint=f"Write {what} (a, b).")
    return tuple(names)


def read_options(cursor: TokenCursor, form: str) -> tuple[OptionNode, ...]:
    """Take `('key' = 'value', …)`."""
    cursor.expect_symbol("(", hint=form)
    options = [_read_option(cursor, form)]
    while cursor.at_symbol(","):
        comma = cursor.advance()
        if cursor.at_symbol(")"):
            fault = cursor.unexpected("a key in single quotes", hint=form)
            fault.edit = Edit(comma.start, comma.end, "")
            raise fault
        options.append(_read_option(cursor, form))
    if cursor.token.kind is SqlTokenKind.STRING:
        fault = cursor.unexpected('")"', hint="Separate options by commas and close the list.")
        fault.edit = Edit(cursor.end_of_last, cursor.end_of_last, ",")
        raise fault
    cursor.expect_symbol(")", hint="Separate options by commas and close the list.")
    return tuple(options)


def read_string(cursor: TokenCursor, what: str, *, hint: str) -> SqlToken:
    if cursor.token.kind is not SqlTokenKind.STRING:
        raise cursor.unexpected(what, hint=hint)
    return cursor.advance()


def _read_option(cursor: TokenCursor, form: str) -> OptionNode:
    key = read_string(cursor, "a key in single quotes", hint=form)
    cursor.expect_symbol("=", hint=form)
    bare = cursor.token
    if bare.kind is SqlTokenKind.NUMBER or cursor.at_words("TRUE") or cursor.at_words("FALSE"):
        fault = cursor.unexpected("a value in single quotes", hint=form)
        fault.edit = Edit(bare.start, bare.end, f"'{bare.text}'")
        raise fault
    value = read_string(cursor, "a value in single quotes", hint=form)
    return OptionNode(key.text, value.text, key.start, value.start, value.end)


def read_setting(cursor: TokenCursor, form: str) -> OptionNode:
    """Take `'key' = 'value'`; each may also stand without quotes."""
    key_at, key = _quoted_or_plain(cursor, "a key", form)
    cursor.expect_symbol("=", hint=form)
    value_at, value = _quoted_or_plain(cursor, "a value", form)
    return OptionNode(key, value, key_at, value_at, cursor.end_of_last)


def _quoted_or_plain(cursor: TokenCursor, what: str, form: str) -> tuple[int, str]:
    at = cursor.at
    if cursor.token.kind is SqlTokenKind.STRING:
        return at, cursor.advance().text
    while not (cursor.at_end() or cursor.at_symbol("=") or cursor.at_symbol(";")):
        cursor.advance()
    if cursor.end_of_last <= at:
        raise cursor.unexpected(what, hint=form)
    return at, cursor.script.text[at : cursor.end_of_last]


def read_hint(cursor: TokenCursor) -> tuple[OptionNode, ...]:
    """Take `/*+ OPTIONS('key' = 'value', …) */` if it is next."""
    if not cursor.accept_symbol(HINT_START):
        return ()
    form = "Write /*+ OPTIONS('key' = 'value') */."
    cursor.expect_words("OPTIONS", hint=form)
    options = read_options(cursor, form)
    cursor.expect_symbol(HINT_END, hint=form)
    return options


def read_whole_number(cursor: TokenCursor, what: str, lowest: int, highest: int) -> int:
    token = cursor.token
    if token.kind is not SqlTokenKind.NUMBER or not token.text.isdecimal() or len(token.text) > 10:
        raise cursor.unexpected(what, hint=f"Give a whole number from {lowest} to {highest}.")
    value = int(token.text)
    if not lowest <= value <= highest:
        raise cursor.script.error(
            token.start,
            f"{what} is {value}, not from {lowest} to {highest}",
            hint=f"Give a whole number from {lowest} to {highest}.",
        )
    cursor.advance()
    return value


@dataclass(frozen=True, slots=True)
class FormReader:
    """Reads functions with words between their arguments, from behind the first word.

    `operand` reads an expression without comparisons and logic.
    """

    cursor: TokenCursor
    parse: Callable[[], Node]
    operand: Callable[[], Node]


def named(word: str, at: int) -> Literal:
    return Literal(LiteralKind.STRING, word, at)


def read_arguments(
    cursor: TokenCursor, parse: Callable[[], Node], closing: str = ")"
) -> tuple[Node, ...]:
    """The rest of `(a, b, …)` after its opening parenthesis."""
    arguments = [parse()]
    while cursor.accept_symbol(","):
        arguments.append(parse())
    cursor.expect_symbol(closing, hint="Separate arguments by commas and close the list.")
    return tuple(arguments)


def operation(cursor: TokenCursor, name: str, arguments: Sequence[Node], at: int) -> FunctionCall:
    return FunctionCall(name, tuple(arguments), at, depth_over(cursor, arguments, at))


def depth_over(cursor: TokenCursor, parts: Sequence[Node], at: int) -> int:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise too_deep(cursor, at)
    return depth


def too_deep(cursor: TokenCursor, at: int) -> SqlError:
    return cursor.script.error(
        at,
        f"the expression is nested more than {MAX_DEPTH} levels deep",
        hint="Split it or move a part into a computed column.",
    )
