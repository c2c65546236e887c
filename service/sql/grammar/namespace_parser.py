"""Catalogs and databases: USE, CREATE and DROP."""

from service.sql.grammar.cursor import TokenCursor
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import Namespace, OptionNode

_KINDS = ("CATALOG", "DATABASE")
_USE_FORM = "Write USE database, or USE CATALOG catalog."


class NamespaceParser:
    """Reads such a statement from a cursor."""

    def __init__(self, cursor: TokenCursor) -> None:
        self._cursor = cursor

    def is_named(self) -> bool:
        return any(map(self._cursor.at_words, _KINDS))

    def use(self) -> Namespace:
        """Read USE [CATALOG] name."""
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.at_words("MODULES"):
            raise cursor.script.error(
                cursor.at,
                "USE MODULES is not supported",
                hint="Leave it out.",
            )
        what = "CATALOG" if cursor.accept_words("CATALOG") else "DATABASE"
        return Namespace("USE", what, self._name(what, _USE_FORM), False, (), at)

    def create(self, at: int) -> Namespace:
        """Read CATALOG or DATABASE and what follows."""
        cursor = self._cursor
        what = cursor.advance().text.upper()
        form = f"Write CREATE {what} name."
        if_exists = cursor.accept_words("IF", "NOT", "EXISTS")
        name = self._name(what, form)
        if cursor.accept_words("COMMENT"):
            cursor.string("a comment in single quotes", hint="Write COMMENT 'text'.")
        options: tuple[OptionNode, ...] = ()
        if cursor.accept_words("WITH"):
            options = cursor.options(f"Write CREATE {what} name WITH ('key' = 'value').")
        return Namespace("CREATE", what, name, if_exists, options, at)

    def drop(self, at: int) -> Namespace:
        """Read CATALOG or DATABASE and what follows."""
        cursor = self._cursor
        what = cursor.advance().text.upper()
        if_exists = cursor.accept_words("IF", "EXISTS")
        name = self._name(what, f"Write DROP {what} [IF EXISTS] name.")
        if not cursor.accept_words("CASCADE"):
            cursor.accept_words("RESTRICT")
        return Namespace("DROP", what, name, if_exists, (), at)

    def _name(self, what: str, form: str) -> Name:
        """A catalog has one part, a database may have its catalog in front."""
        cursor = self._cursor
        word = f"the name of a {what.lower()}"
        if what == "CATALOG":
            return cursor.name(word, hint=form)
        name = cursor.table_name(word, hint=form)
        if len(name.qualifier) > 1:
            raise cursor.script.error(name.at, f"{word} has more than two parts", hint=form)
        return name
