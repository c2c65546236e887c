"""Catalogs and databases of a script: names in front of its tables, and nothing behind them."""

from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import Namespace
from service.sql.text.errors import SqlError, suggestion
from service.sql.text.script import Script

Home = tuple[str, str]
DEFAULT_HOME: Home = ("default_catalog", "default_database")
_IN_MEMORY = "generic_in_memory"


class Namespaces:
    """The catalogs and databases that a script has made, each with nothing in it at first."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._catalogs: dict[str, set[str]] = {DEFAULT_HOME[0]: {DEFAULT_HOME[1]}}
        self._current = DEFAULT_HOME

    def home_of(self, name: Name) -> Home:
        """The catalog and database that a table's name means.

        Raises:
            SqlError: there is none of that name.
        """
        catalog, database = self._current
        if name.qualifier:
            *catalogs, database = name.qualifier
            catalog = catalogs[0] if catalogs else catalog
        self._check(catalog, database, name.at)
        return catalog, database

    def apply(self, node: Namespace, *, is_empty: bool) -> None:
        """Carry out USE, CREATE or DROP; only a database that `is_empty` may be dropped.

        Raises:
            SqlError: it is unknown, is there already, or needs what is not here.
        """
        if node.verb == "USE":
            self._use(node)
        elif node.verb == "CREATE":
            self._create(node)
        else:
            self._drop(node, is_empty=is_empty)

    def database(self, node: Namespace) -> Home:
        catalog = node.name.qualifier[0] if node.name.qualifier else self._current[0]
        return catalog, node.name.text

    def _use(self, node: Namespace) -> None:
        if node.what == "CATALOG":
            databases = self._catalogs.get(node.name.text)
            if databases is None:
                raise self._unknown("catalog", node.name.text, node.name.at, self._catalogs)
            default = DEFAULT_HOME[1]
            self._current = node.name.text, min(databases | {default}, key=default.__ne__)
            return
        catalog, database = self.database(node)
        self._check(catalog, database, node.name.at)
        self._current = catalog, database

    def _create(self, node: Namespace) -> None:
        name = node.name.text
        if node.what == "CATALOG":
            self._check_kind(node)
            if self._is_new(node, self._catalogs):
                self._catalogs[name] = {DEFAULT_HOME[1]}
            return
        catalog, _ = self.database(node)
        databases = self._catalogs.get(catalog)
        if databases is None:
            raise self._unknown("catalog", catalog, node.name.at, self._catalogs)
        if self._is_new(node, databases):
            databases.add(name)

    def _is_new(self, node: Namespace, known: dict[str, set[str]] | set[str]) -> bool:
        if node.name.text not in known:
            return True
        if node.if_exists:
            return False
        what = node.what.lower()
        raise self._script.error(
            node.name.at,
            f'{what} "{node.name.text}" is there already',
            hint=f"Write CREATE {node.what} IF NOT EXISTS.",
        )

    def _check_kind(self, node: Namespace) -> None:
        kind = next((option.value for option in node.options if option.key == "type"), None)
        if kind != _IN_MEMORY:
            raise self._script.error(
                node.name.at,
                f'catalog "{node.name.text}" has tables that are declared elsewhere',
                hint="Declare each table by CREATE TABLE in the script; a catalog may only have "
                f"'type' = '{_IN_MEMORY}'.",
            )

    def _drop(self, node: Namespace, *, is_empty: bool) -> None:
        if node.what == "CATALOG":
            known, is_known = "catalog", node.name.text in self._catalogs
        else:
            catalog, database = self.database(node)
            known, is_known = "database", database in self._catalogs.get(catalog, ())
        if not is_known:
            if node.if_exists:
                return
            raise self._unknown(known, node.name.text, node.name.at, self._catalogs)
        if node.what == "CATALOG" or not is_empty or self.database(node) == self._current:
            raise self._script.error(
                node.at,
                f'DROP {node.what} of "{node.name.text}", which the script uses',
                hint="Leave it out: what a script declares is forgotten at its end.",
            )
        self._catalogs[catalog].remove(database)

    def _check(self, catalog: str, database: str, at: int) -> None:
        databases = self._catalogs.get(catalog)
        if databases is None:
            raise self._unknown("catalog", catalog, at, self._catalogs)
        if database not in databases:
            raise self._unknown("database", database, at, databases)

    def _unknown(
        self, what: str, name: str, at: int, known: dict[str, set[str]] | set[str]
    ) -> SqlError:
        otherwise = f"Write CREATE {what.upper()} {name} in front, or leave the name out."
        hint = suggestion(name, sorted(known), otherwise)
        return self._script.error(at, f'unknown {what} "{name}"', hint=hint)
