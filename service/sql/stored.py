"""The catalog of the service: entries that scripts use without declaring them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from joins.plan.plan import SharedSource
from service.sql.grammar.parser import parse
from service.sql.grammar.syntax import CreateTable, CreateTableAs, CreateView, Statement
from service.sql.text.dialect import SqlTokenKind, tokenize
from service.sql.text.script import Script


class EntryKind(StrEnum):
    """What an entry of the catalog is."""

    TABLE = "table"
    VIEW = "view"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A table or view that was declared outside of a job.

    `sql` is its statement without a semicolon and without secrets. `job_id` is the job of a shared
    table, `partitions` belong to its changelog topic.
    """

    name: str
    kind: EntryKind
    sql: str
    job_id: str | None = None
    partitions: int | None = None
    created_at_ms: int = 0

    @property
    def source(self) -> SharedSource | None:
        if self.job_id is None:
            return None
        return SharedSource(self.job_id, self.name, self.partitions)


_NAMES = (SqlTokenKind.WORD, SqlTokenKind.QUOTED_NAME)
_BEHIND = "\n;\n-- of the catalog:\n"


@dataclass(frozen=True, slots=True)
class StoredNode:
    """An entry of the catalog that a script uses; `source` is where a shared table is stored."""

    name: str
    node: CreateTable | CreateView
    source: SharedSource | None


@dataclass(frozen=True, slots=True)
class WholeScript:
    """A script's statements, and the catalog entries that it uses, in the order of creation."""

    script: Script
    statements: tuple[Statement, ...]
    used: tuple[StoredNode, ...]
    warnings: tuple[str, ...]


def whole_script(text: str, entries: Sequence[CatalogEntry]) -> WholeScript:
    """Read a script; its declarations override catalog entries, with a warning.

    `entries` are in the order of their creation. Raises SqlError if the script cannot be read.
    """
    statements = parse(Script(text))
    whole = with_catalog(text, entries, own_names(statements))
    return replace(whole, statements=statements)


def own_names(statements: Iterable[Statement]) -> set[str]:
    return {name for statement in statements if (name := _name(statement)) is not None}


def with_catalog(text: str, entries: Sequence[CatalogEntry], own: Collection[str]) -> WholeScript:
    """A script and the catalog's statements that it may use behind it, without its statements."""
    script = Script(text)
    used = _used(text, [entry for entry in entries if entry.name not in own])
    nodes: list[StoredNode] = []
    if used:
        more = _BEHIND + "".join(f"{entry.sql};\n" for entry in used)
        script = Script(text + more, catalog=more)
        behind = parse(
            Script("".join(char if char == "\n" else " " for char in text) + more, catalog=more)
        )
        for entry, node in zip(used, behind, strict=True):
            assert isinstance(node, CreateTable | CreateView), "nothing else is kept"
            nodes.append(StoredNode(entry.name, node, entry.source))
    warnings = tuple(_shadows(entry) for entry in entries if entry.name in own)
    return WholeScript(script, (), tuple(nodes), warnings)


def names_in(text: str) -> frozenset[str]:
    """Every identifier in a text. Raises SqlError if the text cannot be read."""
    return frozenset(token.text for token in tokenize(Script(text)) if token.kind in _NAMES)


def _used(text: str, entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """The entries that a text may name, directly or through others, in the order of `entries`."""
    known = {entry.name: entry for entry in entries}
    used: dict[str, CatalogEntry] = {}
    texts = [text] if known else []  # to read a script takes as long as to parse it
    while texts:
        for name in names_in(texts.pop()) & known.keys():
            if name not in used:
                used[name] = known[name]
                texts.append(known[name].sql)
    return [entry for entry in entries if entry.name in used]


def _name(statement: Statement) -> str | None:
    if isinstance(statement, CreateTable | CreateView):
        return statement.name.text
    return statement.table.name.text if isinstance(statement, CreateTableAs) else None


def _shadows(entry: CatalogEntry) -> str:
    what = {"shared": "shared table"}.get(entry.kind, entry.kind)
    return (
        f'"{entry.name}" is what the script declares, not the {what} of the catalog that has this '
        "name."
    )
