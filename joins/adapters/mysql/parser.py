"""What the tokens of a statement are read with: a cursor, names of tables, what may come of it."""

from dataclasses import dataclass
from enum import Enum

from joins.adapters.mysql.tokens import Kind, Reading, Token, folded

END = Token(Kind.SYMBOL, "")
_RAW_NAME = "#mysql50#"  # what follows is the name of a file, in which characters are encoded


class Effect(Enum):
    """What a statement does to the captured table, the least first."""

    NONE = "nothing"
    ALTERED = "its definition was changed"
    CONVERTED = "the definition of captured columns was changed"
    UNLOGGED = "its rows were, or may have been, changed without row events"
    REPLACED = "it was emptied, removed or replaced"
    UNKNOWN = "it may have been changed"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as a statement names it; `database` is empty where none is named or the default."""

    database: str
    table: str


@dataclass(frozen=True, slots=True)
class Target:
    """The table that we follow.

    Attributes:
        columns: the server's names of the captured ones.
        computed_from: the server's names of those that it computes some of them from.
    """

    database: str
    table: str
    columns: tuple[str, ...]
    computed_from: tuple[str, ...] = ()

    def is_database(self, name: str) -> bool:
        return not name or _same(name, self.database)

    def is_named(self, name: TableName) -> bool:
        return self.is_database(name.database) and _same(name.table, self.table)


def _same(name: str, ours: str) -> bool:
    return name.startswith(_RAW_NAME) or folded(name) == folded(ours)


class Parser:
    """A cursor over tokens; what is not as it must be is a ValueError."""

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
        """The next token, read."""
        if self.has_ended:
            raise ValueError("the statement ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def accept(self, *words: str) -> bool:
        """Read these words if they are the next ones."""
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
        """A name."""
        token = self.next()
        if not token.is_name:
            raise ValueError(f'"{token.text}" is no name')
        return token.text

    def table(self) -> TableName:
        """A table's name; without a database it is in the session's."""
        first = "" if self.symbol(".") else self.name()
        if not first:
            return TableName(self._schema, self.name())
        if self.symbol("."):
            return TableName(first, self.name())
        return TableName(self._schema, first)

    def tables(self) -> list[TableName]:
        """Names of tables with commas between them."""
        names = [self.table()]
        while self.symbol(","):
            names.append(self.table())
        return names

    def account(self) -> None:
        """A user's name, perhaps with a host."""
        self.next()
        if self.symbol("@"):
            self.next()
        elif self.symbol("("):
            self.require(self.symbol(")"))

    def wait(self) -> None:
        if not self.accept("NOWAIT") and self.accept("WAIT"):
            self.next()

    def end(self) -> None:
        self.require(self.has_ended)

    def require_single(self) -> None:
        self.require(not any(token.is_symbol(";") for token in self.rest))

    @staticmethod
    def require(is_so: bool) -> None:
        if not is_so:
            raise ValueError("a statement of a form that is not known")

    def parts(self) -> list[Reading]:
        """What is left, cut at the commas that are in no parentheses."""
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
