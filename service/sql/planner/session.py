"""Declarations of a script, in order: tables, views, settings, the current database."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from joins.kernels.calendar.zones import UTC
from service.sql.catalog.catalog import Table, build_table
from service.sql.catalog.create_text import merged, with_hint
from service.sql.catalog.option_values import InlineSecrets
from service.sql.catalog.settings import (
    LOCAL_TIME_ZONE,
    check_setting_name,
    read_setting,
    without_effect,
)
from service.sql.expressions.expression_text import NAMES
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.expression_parser import AGGREGATES
from service.sql.grammar.syntax import (
    CreateTable,
    CreateView,
    Declaration,
    Drop,
    Like,
    Namespace,
    OptionNode,
    Reset,
    SetOption,
    Statement,
    WithoutEffect,
)
from service.sql.planner.query_planner import QueryPlanner
from service.sql.planner.relations import MAX_VIEW_COLUMNS
from service.sql.stored import CatalogEntry, StoredNode, whole_script
from service.sql.text.script import OUTSIDE, Script, SqlError, may_be_credential, suggestion

Home = tuple[str, str]
DEFAULT_HOME: Home = ("default_catalog", "default_database")
_IN_MEMORY = "generic_in_memory"


_STAND_IN = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "b:1",
    "format": "json",
    "scan.startup.mode": "earliest-offset",
}
"""Options of a table that takes every role."""


class Namespaces:
    """The catalogs and databases of a script: names of the tables that it declares.

    One that the script does not create is made by its first use, with a warning.
    """

    def __init__(self, script: Script, warnings: list[str]) -> None:
        self._script = script
        self._warnings = warnings
        self._catalogs: dict[str, set[str]] = {DEFAULT_HOME[0]: {DEFAULT_HOME[1]}}
        self._current = DEFAULT_HOME

    def home_of(self, name: Name) -> Home:
        catalog, database = self._current
        if name.qualifier:
            *catalogs, database = name.qualifier
            catalog = catalogs[0] if catalogs else catalog
        return catalog, database

    def declare(self, name: Name) -> Home:
        """The home of a table that is declared, which exists from now on."""
        home = self.home_of(name)
        self._make(*home)
        return home

    def apply(self, node: Namespace, *, is_empty: bool) -> None:
        """Apply USE, CREATE or DROP; only a database that `is_empty` may be dropped."""
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
            self._make(node.name.text, None)
            default, databases = DEFAULT_HOME[1], self._catalogs[node.name.text]
            self._current = node.name.text, min(databases | {default}, key=default.__ne__)
            return
        home = self.database(node)
        self._make(*home)
        self._current = home

    def _make(self, catalog: str, database: str | None) -> None:
        if catalog not in self._catalogs:
            self._catalogs[catalog] = {DEFAULT_HOME[1]}
            self._warn(f'catalog "{catalog}"')
            self._catalogs[catalog].update({database} if database else ())
        elif database is not None and database not in self._catalogs[catalog]:
            self._catalogs[catalog].add(database)
            self._warn(f'database "{database}"')

    def _warn(self, what: str) -> None:
        self._warnings.append(
            f"The {what} has no tables but those that this script declares in it."
        )

    def _create(self, node: Namespace) -> None:
        name = node.name.text
        if node.what == "CATALOG":
            kind = next((option.value for option in node.options if option.key == "type"), None)
            if self._is_new(node, self._catalogs):
                self._catalogs[name] = {DEFAULT_HOME[1]}
                if kind != _IN_MEMORY:
                    self._warn(f'catalog "{name}"')
            return
        catalog, _ = self.database(node)
        self._make(catalog, None)
        if self._is_new(node, self._catalogs[catalog]):
            self._catalogs[catalog].add(name)

    def _is_new(self, node: Namespace, known: dict[str, set[str]] | set[str]) -> bool:
        if node.name.text not in known:
            return True
        if node.if_exists:
            return False
        what = node.what.lower()
        raise self._script.error(
            node.name.at,
            f'{what} "{node.name.text}" already exists',
            hint=f"Write CREATE {node.what} IF NOT EXISTS.",
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
            hint = suggestion(
                node.name.text, sorted(self._catalogs), f"Write DROP {node.what} IF EXISTS."
            )
            raise self._script.error(node.name.at, f'unknown {known} "{node.name.text}"', hint=hint)
        if node.what == "CATALOG" or not is_empty or self.database(node) == self._current:
            raise self._script.error(
                node.at,
                f'DROP {node.what} of "{node.name.text}", which the script uses',
                hint="Leave it out: what a script declares is forgotten at its end.",
            )
        self._catalogs[catalog].remove(database)


class ScriptSession:
    """The names that the next statement of a script can use; entries `of_catalog` on demand.

    Attributes:
        broken: names whose declaration has a fault, while faults are collected.
        stood_in: table that stands in for one with a fault → where that is declared.
    """

    def __init__(
        self, script: Script, *, keep_secrets: bool, stored: Sequence[StoredNode] = ()
    ) -> None:
        self.script = script
        self.of_catalog: frozenset[str] = frozenset(each.name for each in stored)
        self._stored = tuple(stored)
        self.relations: dict[str, Table | CreateView] = {}
        self.settings: dict[str, str] = {}
        self.broken: set[str] = set()
        self.stood_in: dict[str, int] = {}
        self.warnings: list[str] = []
        self.secrets = InlineSecrets(keep_values=keep_secrets)
        self._view_columns = 0
        self._namespaces = Namespaces(script, self.warnings)
        self._homes: dict[str, Home] = {}

    def apply(self, statement: Declaration) -> None:
        if isinstance(statement, CreateTable):
            self.create_table(statement)
        elif isinstance(statement, CreateView):
            QueryPlanner(self).view(statement)
            if self._is_free(statement.name, if_not_exists=statement.if_not_exists):
                self.relations[statement.name.text] = statement
                self._homes[statement.name.text] = self._namespaces.declare(statement.name)
        elif isinstance(statement, Drop):
            self._drop(statement)
        elif isinstance(statement, SetOption):
            self._set(statement)
        elif isinstance(statement, WithoutEffect):
            self._leave_out(statement)
        elif isinstance(statement, Namespace):
            home = self._namespaces.database(statement)
            self._namespaces.apply(statement, is_empty=home not in self._homes.values())
            for option in statement.options:
                if may_be_credential(option.key, option.value):
                    self.secrets.hide(option)
        else:
            self._reset(statement)

    def _leave_out(self, node: WithoutEffect) -> None:
        if node.function is not None:
            name = node.function.text.upper()
            if name in NAMES or name in AGGREGATES:
                raise self.script.error(
                    node.function.at,
                    f"CREATE FUNCTION {name}: a function that is built in has this name",
                    hint=f"{OUTSIDE} Code cannot be added to a job; call the built-in function.",
                )
            functions = self.script.coded_functions | {name}
            self.script = replace(self.script, coded_functions=functions)
        self.warnings.append(f"{node.name} has no effect: {node.why}.")

    def find(self, name: Name, what: str = "table") -> Table | CreateView:
        self._declare_stored()
        if name.text in self.broken and name.text not in self.relations:
            fault = self.script.error(
                name.at,
                f'the declaration of "{name.text}" has a fault',
                hint="Correct its declaration first.",
            )
            fault.follows = True
            raise fault
        home = self._namespaces.home_of(name)
        relation = self.relations.get(name.text)
        if relation is not None and self._homes[name.text] == home:
            return relation
        if relation is not None:
            database = ".".join(self._homes[name.text])
            raise self.script.error(
                name.at,
                f'{what} "{name.text}" is not in "{".".join(home)}"',
                hint=f"Write {database}.{name.text}, where it was declared.",
            )
        declared = ", ".join(self.relations)
        known = f"Declare it by CREATE TABLE; declared tables are {declared}."
        if not self.relations:
            known = "Declare it by CREATE TABLE."
        raise self.script.error(
            name.at,
            f'unknown {what} "{name.text}"',
            hint=suggestion(name.text, self.relations, known),
        )

    def hinted(self, table: Table, options: tuple[OptionNode, ...]) -> Table:
        if not options:
            return table
        of_copy = [each for each in options if not each.key.startswith("join.")]
        if table.shared is not None and of_copy:
            raise self.script.error(
                of_copy[0].at,
                f'option "{of_copy[0].key}" of shared table "{table.name}": a job that reads the '
                "table cannot change it",
                hint="Remove the hint, or declare the table in this script to copy it again.",
            )
        node = with_hint(self.script, table.node, options)
        hinted = replace(build_table(self.script, node, self.secrets), shared=table.shared)
        self.warnings += (note for note in hinted.notes if note not in self.warnings)
        return hinted

    def _declare_stored(self) -> None:
        stored, self._stored = self._stored, ()
        for each in stored:
            node, name = each.node, each.name
            if isinstance(node, CreateTable):
                table = build_table(self.script, node, self.secrets)
                self.relations[name] = replace(table, shared=each.source)
            else:
                self.relations[name] = node
            self._homes[name] = DEFAULT_HOME

    def count_view_columns(self, count: int, at: int) -> None:
        """Limit the columns that views expand to, so that planning stays fast."""
        self._view_columns += count
        if self._view_columns > MAX_VIEW_COLUMNS:
            raise self.script.error(
                at,
                f"views are expanded to more than {MAX_VIEW_COLUMNS:,} columns",
                hint="Select fewer columns in the views, or use fewer views.",
            )

    def _set(self, node: SetOption) -> None:
        warning = without_effect(self.script, node)
        if warning is None:
            key, value = read_setting(self.script, node)
            if key == LOCAL_TIME_ZONE:
                if self.relations and value != self.script.zone:
                    raise self.script.error(
                        node.option.at,
                        f'"{LOCAL_TIME_ZONE}" is set after a table whose columns may depend on it',
                        hint="Move this SET before the first CREATE.",
                    )
                self.script = replace(self.script, zone=value)
            self.settings[key] = value
        elif warning not in self.warnings:
            self.warnings.append(warning)
        if warning is not None and may_be_credential(node.option.key, node.option.value):
            self.secrets.hide(node.option)

    def create_table(self, node: CreateTable) -> None:
        if node.shared:
            raise self.script.error(
                node.at,
                f'CREATE SHARED TABLE "{node.name.text}" is not allowed in the script of a job',
                hint="Send it by itself, once: sluice tables create -f FILE, or POST /v1/tables. "
                "Every later script then joins the table by its name.",
            )
        if node.like is not None:
            base = self.find(node.like.table)
            if isinstance(base, CreateView):
                raise self.script.error(
                    node.like.table.at,
                    f'"{base.name.text}" is a view, which has no options to copy',
                    hint="Write LIKE and the name of a table.",
                )
            table = self._like(node, node.like, base)
        else:
            table = build_table(self.script, node, self.secrets)
        self.warnings += (note for note in table.notes if note not in self.warnings)
        if node.bare_key:
            self.warnings.append(
                f'Table "{table.name}" has a PRIMARY KEY without NOT ENFORCED: it is not enforced '
                "here, the rows of the table have to keep it."
            )
        if self._is_free(node.name, if_not_exists=node.if_not_exists):
            self.relations[table.name] = table
            self._homes[table.name] = self._namespaces.declare(node.name)

    def _like(self, node: CreateTable, like: Like, base: Table) -> Table:
        """A table LIKE another one, which has no fault by the options that are taken from it."""
        try:
            return build_table(
                self.script, merged(self.script, node, like, base.node), self.secrets
            )
        except SqlError as fault:
            if all(fault.at not in (each.at, each.value_at) for each in base.node.options):
                raise
            raise self.script.error(
                like.table.at,
                f'table "{node.name.text}" takes over the options of "{base.name}", and '
                + fault.bare_message,
                hint="Write LIKE … (EXCLUDING OPTIONS), and all options of "
                f'"{node.name.text}" into WITH.',
            ) from fault

    def stand_in(self, node: CreateTable) -> None:
        """Declare a table with another connector, so that the queries over it can be checked."""
        at = node.name.at
        options = tuple(OptionNode(key, value, at, at, at) for key, value in _STAND_IN.items())
        table = build_table(self.script, replace(node, options=options, like=None), self.secrets)
        self.relations[table.name] = table
        self._homes[table.name] = self._namespaces.declare(node.name)
        self.stood_in[table.name] = table.at

    def _is_free(self, name: Name, *, if_not_exists: bool) -> bool:
        home = self._namespaces.home_of(name)
        earlier = self.relations.get(name.text)
        if earlier is None:
            return True
        if if_not_exists and self._homes[name.text] == home:
            return False
        what = "view" if isinstance(earlier, CreateView) else "table"
        raise self.script.error(
            name.at,
            f'{what} "{name.text}" is declared twice',
            hint="Rename one of the two.",
        )

    def _drop(self, node: Drop) -> None:
        self._declare_stored()
        home = self._homes.get(node.name.text)
        if node.if_exists and home != self._namespaces.home_of(node.name):
            return
        relation = self.find(node.name, node.what.lower())
        if node.name.text in self.of_catalog:
            raise self.script.error(
                node.at,
                f'"{node.name.text}" belongs to the catalog, which the script of a job cannot '
                f"change",
                hint=f"Run sluice tables rm {node.name.text}, or send DROP {node.what} by itself "
                "through sluice sql.",
            )
        what = "VIEW" if isinstance(relation, CreateView) else "TABLE"
        if what != node.what:
            raise self.script.error(
                node.name.at,
                f'"{node.name.text}" is a {what.lower()}',
                hint=f"Write DROP {what} {node.name.text}.",
            )
        del self.relations[node.name.text]
        del self._homes[node.name.text]

    def _reset(self, node: Reset) -> None:
        if node.key is None:
            self.settings.clear()
            self.script = replace(self.script, zone=UTC)
            return
        check_setting_name(self.script, node.key, node.at)
        self.settings.pop(node.key, None)
        if node.key == LOCAL_TIME_ZONE:
            self.script = replace(self.script, zone=UTC)


@dataclass(frozen=True, slots=True)
class OpenScript:
    """A parsed script with its session; `catalog` entries are in the order of creation."""

    session: ScriptSession
    statements: tuple[Statement, ...]
    catalog: tuple[CatalogEntry, ...] = ()


def open_script(
    text: str, catalog: Iterable[CatalogEntry] = (), *, keep_secrets: bool
) -> OpenScript:
    entries = tuple(catalog)
    whole = whole_script(text, entries)
    session = ScriptSession(whole.script, keep_secrets=keep_secrets, stored=whole.used)
    session.warnings += whole.warnings
    return OpenScript(session, whole.statements, entries)
