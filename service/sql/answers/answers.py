"""Answers to EXPLAIN, DESCRIBE, SHOW, SET and STOP JOB, and the catalog entries of a script."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from joins.plan.plan import Dimension, Field, JoinPlan, shared_table_plan
from service.sql.answers.explain import tree
from service.sql.catalog.catalog import Table, relation_of
from service.sql.catalog.create_text import column_extras, table_text, view_text, watermark_text
from service.sql.catalog.settings import SETTINGS
from service.sql.expressions.expression_text import NAMES
from service.sql.expressions.scope import ScopeColumn, TimeAttribute
from service.sql.grammar.expression_nodes import Name
from service.sql.grammar.syntax import (
    CreateTable,
    CreateView,
    Describe,
    Explain,
    JobStatement,
    Question,
    Show,
    ShowSettings,
    Statement,
    StopJob,
)
from service.sql.grammar.type_parser import type_text
from service.sql.planner.dimension_planner import plan_dimension
from service.sql.planner.insert_planner import JobPlanner
from service.sql.planner.query_planner import QueryPlanner
from service.sql.planner.session import OpenScript, ScriptSession, open_script
from service.sql.stored import CatalogEntry, EntryKind, names_in
from service.sql.text.dialect import pieces
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
        declared.append(_declare(session, node, ends[node.at]))
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


def _declare(session: ScriptSession, node: CreateTable | CreateView, end: int) -> Declared:
    """The entry of a declaration; `end` is where that ends."""
    name, secrets = node.name.text, session.secrets
    if isinstance(node, CreateView):
        session.apply(node)
        sql = secrets.redacted(session.script, node.at, end)
        return Declared(CatalogEntry(name, EntryKind.VIEW, sql), node.if_not_exists, (), ())
    session.create_table(replace(node, shared=False))
    table = session.relations[name]
    assert isinstance(table, Table), "it was declared just now"
    if node.like is None:
        sql = secrets.redacted(session.script, node.at, end)
    else:
        merged = replace(table.node, shared=node.shared)
        sql = table_text(session.script, replace(table, node=merged), secrets)
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
            hint="Share a mysql-cdc, jdbc, delta, filesystem, kafka or upsert-kafka table; store a "
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


Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one statement, a table of text; `statement` is its first words."""

    statement: str
    line: int
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job in SHOW JOBS and STOP JOB."""

    id: str
    name: str
    status: str
    started_at: str

    @property
    def row(self) -> Row:
        return (self.id, self.name, self.status, self.started_at)


class Jobs(Protocol):
    """The jobs of the control plane."""

    def all(self) -> Sequence[JobRow]: ...

    def find(self, job_id: str) -> JobRow:
        """The job; raises a SluiceError if there is none."""

    def stop(self, job_id: str) -> JobRow:
        """Ask the job to stop and show it; raises a SluiceError if it cannot."""


JOB_COLUMNS = ("job id", "job name", "status", "start time")
_DESCRIBE_COLUMNS = ("name", "type", "null", "key", "extras", "watermark")


def answers(text: str, jobs: Jobs, catalog: Iterable[CatalogEntry] = ()) -> tuple[Answer, ...]:
    """The answers to all questions of a script, in order; raises SqlError, and errors of `jobs`.

    STOP JOB takes effect only after the whole script was read without a fault.
    """
    with not_too_deep():
        opened = open_script(text, catalog, keep_secrets=False)
        prepared = [_prepared(opened, statement, jobs) for statement in opened.statements]
    if not any(prepared):
        raise opened.session.script.error(
            0,
            "the script has no statement to answer",
            hint="Add EXPLAIN, DESCRIBE, SHOW, SET or STOP JOB; an INSERT INTO is submitted as a "
            "job with POST /v1/jobs, tables are kept for later scripts with POST /v1/tables.",
        )
    return tuple(answer() for answer in prepared if answer is not None)


def _prepared(opened: OpenScript, statement: Statement, jobs: Jobs) -> Callable[[], Answer] | None:
    """The answer, called after all statements are read; None for a declaration."""
    session = opened.session
    script = session.script
    line, _ = script.line_and_column(statement.at)
    if isinstance(statement, JobStatement):
        raise script.error(
            statement.at,
            "a job cannot be started here",
            hint="Submit it with POST /v1/jobs or `sluice submit`, or put EXPLAIN in front.",
        )
    if isinstance(statement, StopJob):
        job = jobs.find(statement.job_id)
        return lambda: Answer("STOP JOB", line, JOB_COLUMNS, (jobs.stop(job.id).row,))
    if isinstance(statement, Show) and statement.what == "JOBS":
        return lambda: Answer("SHOW JOBS", line, JOB_COLUMNS, tuple(j.row for j in jobs.all()))
    if isinstance(statement, Question):
        answer = _answer(opened, statement, line)
        return lambda: answer
    session.apply(statement)
    return None


def _answer(opened: OpenScript, question: Question, line: int) -> Answer:
    session = opened.session
    if isinstance(question, Explain):
        job = JobPlanner(session).plan(question.statement)
        notes = (f"NOTE {text}" for text in (*session.warnings, *job.warnings))
        return Answer("EXPLAIN", line, ("result",), _column([*tree(job.plan), *notes]))
    if isinstance(question, Describe):
        rows = tuple(_described(session, question))
        return Answer("DESCRIBE", line, _DESCRIBE_COLUMNS, rows)
    if isinstance(question, ShowSettings):
        settings = [(key, session.settings.get(key, SETTINGS[key].default)) for key in SETTINGS]
        return Answer("SET", line, ("key", "value"), tuple(settings))
    if question.name is not None:
        title = f"SHOW CREATE {question.what}"
        return Answer(title, line, ("result",), _column([_create(session, question.name)]))
    views = _names(opened)
    names = {
        "TABLES": sorted(views),
        "VIEWS": sorted(name for name, is_view in views.items() if is_view),
        "FUNCTIONS": list(NAMES),
    }
    title = f"SHOW {question.what}"
    column = f"{question.what.lower().removesuffix('s')} name"
    return Answer(title, line, (column,), _column(names[question.what]))


def _names(opened: OpenScript) -> dict[str, bool]:
    stored = {entry.name: entry.kind is EntryKind.VIEW for entry in opened.catalog}
    relations = opened.session.relations.items()
    return stored | {name: isinstance(relation, CreateView) for name, relation in relations}


def _column(values: Sequence[str]) -> tuple[Row, ...]:
    return tuple((value,) for value in values)


def _described(session: ScriptSession, question: Describe) -> Iterator[Row]:
    declared = session.find(question.name)
    if isinstance(declared, CreateView):
        for column in QueryPlanner(session).view(declared):
            yield _row(column)
        return
    relation = relation_of(session.script, declared, declared.name, declared.name)
    key = f"PRI({', '.join(declared.primary_key)})"
    for node, column in zip(declared.columns, relation.columns, strict=True):
        is_key = column.name in declared.primary_key
        yield _row(
            column,
            key if is_key else "",
            column_extras(session.script, node),
            watermark_text(session.script, declared) if column.time is TimeAttribute.EVENT else "",
        )


def _row(column: ScopeColumn, key: str = "", extras: str = "", watermark: str = "") -> Row:
    return (
        column.name,
        type_text(column.type),
        "TRUE" if column.nullable else "FALSE",
        key or None,
        extras or None,
        watermark or None,
    )


def _create(session: ScriptSession, name: Name) -> str:
    declared = session.find(name)
    if isinstance(declared, CreateView):
        return view_text(session.script, declared, session.secrets)
    return table_text(session.script, declared, session.secrets)
