"""What a script has declared so far, statement by statement: tables, views and settings."""

from service.sql.catalog.catalog import Table, build_table
from service.sql.catalog.inline_secrets import InlineSecrets
from service.sql.catalog.like import merged, with_hint
from service.sql.catalog.settings import check_setting_name, read_setting
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import (
    CreateTable,
    CreateView,
    Declaration,
    Drop,
    OptionNode,
    Reset,
    SetOption,
)
from service.sql.planner.query_planner import MAX_VIEW_COLUMNS, QueryPlanner
from service.sql.text.errors import suggestion
from service.sql.text.script import Script


class ScriptSession:
    """The names that the next statement of a script can use.

    Attributes:
        relations: tables and views by name, in the order of their declaration.
        settings: as SET has left them.
    """

    def __init__(self, script: Script, *, keep_secrets: bool) -> None:
        self.script = script
        self.relations: dict[str, Table | CreateView] = {}
        self.settings: dict[str, str] = {}
        self.secrets = InlineSecrets(keep_values=keep_secrets)
        self._view_columns = 0

    def apply(self, statement: Declaration) -> None:
        """Carry out what a statement declares.

        Raises:
            SqlError: it is not usable, or its name is taken or unknown.
        """
        if isinstance(statement, CreateTable):
            self._create_table(statement)
        elif isinstance(statement, CreateView):
            self._create_view(statement)
        elif isinstance(statement, Drop):
            self._drop(statement)
        elif isinstance(statement, SetOption):
            key, value = read_setting(self.script, statement)
            self.settings[key] = value
        else:
            self._reset(statement)

    def find(self, name: Name, what: str = "table") -> Table | CreateView:
        """The table or view of this name.

        Raises:
            SqlError: there is none.
        """
        relation = self.relations.get(name.text)
        if relation is not None:
            return relation
        known = f"Declared tables are {', '.join(self.relations)}."
        if not self.relations:
            known = "Declare it by CREATE TABLE."
        raise self.script.error(
            name.at,
            f'unknown {what} "{name.text}"',
            hint=suggestion(name.text, self.relations, known),
        )

    def hinted(self, table: Table, options: tuple[OptionNode, ...]) -> Table:
        """The table with the options of a hint.

        Raises:
            SqlError: the options are not usable.
        """
        if not options:
            return table
        return build_table(self.script, with_hint(self.script, table.node, options), self.secrets)

    def count_view_columns(self, count: int, at: int) -> None:
        """Limit how many columns views are expanded to, so that planning stays fast.

        Raises:
            SqlError: they are too many.
        """
        self._view_columns += count
        if self._view_columns > MAX_VIEW_COLUMNS:
            raise self.script.error(
                at,
                f"views are expanded to more than {MAX_VIEW_COLUMNS:,} columns",
                hint="Select fewer columns in the views, or use fewer views.",
            )

    def _create_table(self, node: CreateTable) -> None:
        if node.like is not None:
            base = self.find(node.like.table)
            if isinstance(base, CreateView):
                raise self.script.error(
                    node.like.table.at,
                    f'"{base.name.text}" is a view, which has no options to take over',
                    hint="Write LIKE and the name of a table.",
                )
            node = merged(self.script, node, node.like, base.node)
        table = build_table(self.script, node, self.secrets)
        if self._is_free(node.name, if_not_exists=node.if_not_exists):
            self.relations[table.name] = table

    def _create_view(self, node: CreateView) -> None:
        QueryPlanner(self).view(node)
        if self._is_free(node.name, if_not_exists=node.if_not_exists):
            self.relations[node.name.text] = node

    def _is_free(self, name: Name, *, if_not_exists: bool) -> bool:
        earlier = self.relations.get(name.text)
        if earlier is None:
            return True
        if if_not_exists:
            return False
        what = "view" if isinstance(earlier, CreateView) else "table"
        raise self.script.error(
            name.at,
            f'{what} "{name.text}" is declared twice',
            hint="Rename one of the two.",
        )

    def _drop(self, node: Drop) -> None:
        if node.if_exists and node.name.text not in self.relations:
            return
        relation = self.find(node.name, node.what.lower())
        what = "VIEW" if isinstance(relation, CreateView) else "TABLE"
        if what != node.what:
            raise self.script.error(
                node.name.at,
                f'"{node.name.text}" is a {what.lower()}',
                hint=f"Write DROP {what} {node.name.text}.",
            )
        del self.relations[node.name.text]

    def _reset(self, node: Reset) -> None:
        if node.key is None:
            self.settings.clear()
            return
        check_setting_name(self.script, node.key, node.at)
        self.settings.pop(node.key, None)
