"""What a query is planned from: the tables and views that its script has declared."""

from dataclasses import dataclass
from typing import Protocol

from service.sql.catalog.catalog import Table
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import CreateView, OptionNode
from service.sql.text.script import Script

MAX_DIMENSIONS = 32
MAX_VIEW_DEPTH = 32
MAX_VIEW_COLUMNS = 100_000


class Relations(Protocol):
    """The tables and views that a query may name."""

    script: Script
    settings: dict[str, str]

    def find(self, name: Name, what: str = "table") -> Table | CreateView:
        """The table or view of this name."""
        ...

    def hinted(self, table: Table, options: tuple[OptionNode, ...]) -> Table:
        """The table with the options of a hint."""
        ...

    def count_view_columns(self, count: int, at: int) -> None:
        """Limit how many columns views are expanded to."""
        ...


@dataclass(slots=True)
class Base:
    """The first table of a query, below all views."""

    table: Table
    alias: str
    at: int
