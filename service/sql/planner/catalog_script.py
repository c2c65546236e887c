"""A script together with what it names of the catalog, whose statements stand behind it.

They stand behind, so that every place in the script stays where its author sees it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.sql.catalog.entries import CatalogEntry
from service.sql.grammar.parser import parse
from service.sql.grammar.syntax import CreateTable, CreateTableAs, CreateView, Statement
from service.sql.planner.session import ScriptSession
from service.sql.text.dialect import SqlTokenKind, tokenize
from service.sql.text.script import Script

_NAMES = (SqlTokenKind.WORD, SqlTokenKind.QUOTED_NAME)
_BEHIND = "\n;\n-- of the catalog:\n"


@dataclass(frozen=True, slots=True)
class OpenScript:
    """A script whose statements can be carried out.

    Attributes:
        statements: its own.
        catalog: names of all that the catalog has, each with its kind.
    """

    session: ScriptSession
    statements: tuple[Statement, ...]
    catalog: tuple[CatalogEntry, ...] = ()


def open_script(
    text: str, catalog: Iterable[CatalogEntry] = (), *, keep_secrets: bool
) -> OpenScript:
    """Read a script; what it declares itself wins over the catalog, which is a warning.

    Args:
        text: of the script.
        catalog: all entries, in the order of their creation.
        keep_secrets: inline secrets stay in the options.

    Raises:
        SqlError: the script cannot be read.
    """
    entries = tuple(catalog)
    script = Script(text)
    statements = parse(script)
    own = {_name(statement) for statement in statements}
    used = _used(text, [entry for entry in entries if entry.name not in own])
    if not used:
        session = ScriptSession(script, keep_secrets=keep_secrets)
    else:
        more = _BEHIND + "".join(f"{entry.sql};\n" for entry in used)
        whole = Script(text + more, behind=more)
        behind = [node for node in parse(whole) if node.at >= len(text)]
        stored = [
            (entry.name, node, entry.source)
            for entry, node in zip(used, behind, strict=True)
            if isinstance(node, CreateTable | CreateView)
        ]
        session = ScriptSession(whole, keep_secrets=keep_secrets, stored=stored)
    session.warnings += [_shadows(entry) for entry in entries if entry.name in own]
    return OpenScript(session, statements, entries)


def names_in(text: str) -> frozenset[str]:
    """Every name in a text, of whatever it is.

    Raises:
        SqlError: the text cannot be read.
    """
    return frozenset(token.text for token in tokenize(Script(text)) if token.kind in _NAMES)


def _used(text: str, entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """The entries that a text may name, and those that they name, in the order of `entries`."""
    known = {entry.name: entry for entry in entries}
    used: dict[str, CatalogEntry] = {}
    texts = [text]
    while texts:
        for name in names_in(texts.pop()) & known.keys():
            if name not in used:
                used[name] = known[name]
                texts.append(known[name].sql)
    return [entry for entry in entries if entry.name in used]


def _name(statement: Statement) -> str | None:
    """What a statement declares."""
    if isinstance(statement, CreateTable | CreateView):
        return statement.name.text
    return statement.table.name.text if isinstance(statement, CreateTableAs) else None


def _shadows(entry: CatalogEntry) -> str:
    what = {"shared": "shared table"}.get(entry.kind, entry.kind)
    return (
        f'"{entry.name}" is what the script declares, not the {what} of the catalog that has this '
        "name."
    )
