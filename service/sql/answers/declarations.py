"""CREATE statements outside of a job, as catalog entries and the jobs behind them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from joins.plan.plan import Dimension, Field, JoinPlan, shared_table_plan
from service.sql.catalog.catalog import Table
from service.sql.catalog.create_text import table_text
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import CreateTable, CreateView, Statement
from service.sql.planner.dimension_planner import plan_dimension
from service.sql.planner.session import ScriptSession, open_script
from service.sql.stored import CatalogEntry, EntryKind, names_in
from service.sql.text.dialect import pieces
from service.sql.text.masking import masked_comments
from service.sql.text.script import Script, not_too_deep

_ALONE = (
    "Send CREATE TABLE, CREATE VIEW and CREATE SHARED TABLE only; what an INSERT needs besides, "
    "such as SET, belongs in its own script."
)


@dataclass(frozen=True, slots=True)
class Declared:
    """One CREATE of a script for the catalog.

    Attributes:
        entry: a shared table has no job yet.
        if_not_exists: keep an existing entry that has these columns and key.
        plan: of the job that maintains a shared table; None otherwise.
    """

    entry: CatalogEntry
    if_not_exists: bool
    fields: tuple[Field, ...]
    primary_key: tuple[str, ...]
    plan: JoinPlan | None = None


def plan_declarations(
    text: str, catalog: Iterable[CatalogEntry]
) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    """The catalog entries that a script declares, and warnings."""
    with not_too_deep():
        return _declarations(text, tuple(catalog))


def _declarations(
    text: str, catalog: tuple[CatalogEntry, ...]
) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    opened = open_script(text, catalog, keep_secrets=False)
    session = opened.session
    session.warnings.clear()  # existing names are refused when they are stored
    ends = {piece.start: piece.end for piece in pieces(text)}
    declared: list[Declared] = []
    for statement in opened.statements:
        node = _declaration(session.script, statement)
        written = masked_comments(text[node.at : ends[node.at]], ())
        declared.append(_declare(session, node, written))
        _check_secrets(session)
    if not declared:
        raise session.script.error(0, "the script declares nothing", hint=_ALONE)
    return tuple(declared), tuple(session.warnings)


def _declaration(script: Script, statement: Statement) -> CreateTable | CreateView:
    if not isinstance(statement, CreateTable | CreateView):
        raise script.error(statement.at, "a statement that is no declaration", hint=_ALONE)
    name = statement.name
    if name.qualifier:
        raise script.error(
            name.at,
            f'"{".".join((*name.qualifier, name.text))}" has a qualifier, but the catalog '
            "has one database",
            hint=f"Write the name alone: {name.text}.",
        )
    if statement.temporary:
        raise script.error(
            statement.at,
            f'"{name.text}" is TEMPORARY, and the catalog stores no temporary tables',
            hint="Leave TEMPORARY out, or declare it in the script that uses it.",
        )
    return statement


def _declare(session: ScriptSession, node: CreateTable | CreateView, written: str) -> Declared:
    name = node.name.text
    if isinstance(node, CreateView):
        session.apply(node)
        return Declared(CatalogEntry(name, EntryKind.VIEW, written), node.if_not_exists, (), ())
    session.create_table(replace(node, shared=False))
    table = session.relations[name]
    assert isinstance(table, Table), "it was declared just now"
    sql = written
    if node.like is not None:
        merged = replace(table.node, shared=node.shared)
        sql = table_text(session.script, replace(table, node=merged))
    if not node.shared:
        entry = CatalogEntry(name, EntryKind.TABLE, sql)
        return Declared(entry, node.if_not_exists, table.fields, table.primary_key)
    plan = shared_table_plan(_shared(session, table, node.name), sql)
    entry = CatalogEntry(name, EntryKind.SHARED, sql)
    return Declared(entry, node.if_not_exists, table.fields, table.primary_key, plan)


def _shared(session: ScriptSession, table: Table, name: Name) -> Dimension:
    script = session.script
    if table.endpoints.dimension is None:
        raise script.error(
            name.at,
            f'table "{name.text}" is {table.connector.name}, which cannot be shared',
            hint="Share a mysql-cdc, delta, filesystem, kafka or upsert-kafka table; store a "
            "stream or a sink with CREATE TABLE.",
        )
    if table.watermark is not None:
        raise script.error(
            table.watermark.node.at,
            f'shared table "{name.text}" has WATERMARK FOR, but keeps no versions of a row',
            hint="Remove it and join by PROCTIME(), or declare the table in the script of the job.",
        )
    return plan_dimension(session, table, name, is_versioned=False)


def _check_secrets(session: ScriptSession) -> None:
    secret = session.secrets.first
    if secret is not None:
        name = secret.node.key.rpartition(".")[2]
        raise session.script.error(
            secret.node.value_at,
            f'option "{secret.node.key}" contains the secret itself, and the catalog stores no '
            f"secrets",
            hint=f"Write '${{secret:{name}}}' in its place, and store the value once: "
            f"sluice secrets set {name}.",
        )


def columns_of(entry: CatalogEntry) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Physical columns and key of an entry; empty for a view."""
    if entry.kind is EntryKind.VIEW:
        return (), ()
    opened = open_script(f"DESCRIBE `{entry.name}`", (entry,), keep_secrets=False)
    table = opened.session.find(Name(entry.name, 0))
    assert isinstance(table, Table), "its kind says so"
    return table.fields, table.primary_key


def used_by(name: str, catalog: Iterable[CatalogEntry]) -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in catalog
        if entry.kind is EntryKind.VIEW and entry.name != name and name in names_in(entry.sql)
    )
