"""The frozen plan of a script's one job."""

from collections.abc import Iterable
from dataclasses import dataclass

from joins.plan.plan import JoinPlan
from service.sql.catalog.option_values import InlineSecret
from service.sql.catalog.settings import without_effect
from service.sql.grammar.syntax import (
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    Explain,
    Insert,
    JobStatement,
    Namespace,
    Question,
    Select,
    SetOption,
    Statement,
    StatementSet,
    StopJob,
    WithoutEffect,
)
from service.sql.planner.insert_planner import JobPlanner
from service.sql.planner.session import OpenScript, ScriptSession, open_script
from service.sql.stored import CatalogEntry
from service.sql.text.script import OUTSIDE, Script, SqlError, not_too_deep

_BEHIND_A_JOB = (CreateTable, CreateView, WithoutEffect, Question, StopJob)
"""Statements that leave alone what a job before them means, like a setting without effect."""
_SHOWN_BY = "sent alone it is a preview"
_ONE_JOB = (
    "The {} INSERTs are one job, which reads the stream once for all of them, as in EXECUTE "
    "STATEMENT SET; submit a script for each of them where they should be separate jobs."
)


@dataclass(frozen=True, slots=True)
class PlannedScript:
    """A plan with references in place of inline secrets, those secrets, and warnings."""

    plan: JoinPlan
    inline_secrets: tuple[InlineSecret, ...]
    warnings: tuple[str, ...]


def plan(script: str, *, name: str | None = None, catalog: Iterable[CatalogEntry] = ()) -> JoinPlan:
    """Plan a script; inline secrets stay in the plan's options, but not in its `sql`.

    `name` overrides SET 'pipeline.name'; the script may name entries of the `catalog`.
    """
    return _guarded(script, name, catalog, keep_secrets=True).plan


def plan_script(
    script: str, *, name: str | None = None, catalog: Iterable[CatalogEntry] = ()
) -> PlannedScript:
    """Plan a script for the job store: inline secrets become references."""
    return _guarded(script, name, catalog, keep_secrets=False)


def _guarded(
    text: str, name: str | None, catalog: Iterable[CatalogEntry], *, keep_secrets: bool
) -> PlannedScript:
    with not_too_deep():
        return _plan(open_script(text, catalog, keep_secrets=keep_secrets), name)


def _plan(opened: OpenScript, name: str | None) -> PlannedScript:
    session = opened.session
    statement, ignored = _job_statement(session, opened.statements)
    job = JobPlanner(session).plan(statement, name)
    secrets = {secret.name: secret for table in job.tables for secret in table.inline_secrets}
    warnings = (
        f'The inline secret of table option "{secret.node.key}" is kept as {secret.reference}; '
        "write such a reference yourself."
        for secret in secrets.values()
    )
    texts = (*warnings, *session.warnings, *job.warnings, *ignored)
    return PlannedScript(job.plan, tuple(secrets.values()), texts)


def _job_statement(
    session: ScriptSession, statements: tuple[Statement, ...]
) -> tuple[JobStatement, tuple[str, ...]]:
    """Apply the declarations; returns the job's statement and warnings about ignored statements."""
    jobs: list[JobStatement] = []
    ignored: list[str] = []
    fills = fills_a_table(statements)
    for statement in statements:
        if fills and isinstance(statement, Select):
            line, _ = session.script.line_and_column(statement.at)
            ignored.append(f"Line {line} shows rows, which is no part of the job: {_SHOWN_BY}.")
            continue
        leaves_alone = isinstance(statement, _BEHIND_A_JOB) or (
            isinstance(statement, SetOption)
            and without_effect(session.script, statement) is not None
        )
        are_inserts = bool(jobs) and isinstance(jobs[0], Insert) and isinstance(statement, Insert)
        if jobs and not (leaves_alone or are_inserts):
            if isinstance(jobs[0], Select):
                raise behind_a_query(session.script, statement)
            raise behind_a_job(session.script, statement)
        if isinstance(statement, JobStatement):
            jobs.append(statement)
        elif isinstance(statement, Question | StopJob):
            ignored.append(_unanswered(session, statement))
        else:
            session.apply(statement)
    if not jobs:
        raise _no_job(session.script, statements)
    if len(jobs) == 1:
        return jobs[0], tuple(ignored)
    inserts = tuple(job for job in jobs if isinstance(job, Insert))
    return StatementSet(inserts, inserts[0].at), (*ignored, _ONE_JOB.format(len(jobs)))


def drops(statement: Statement) -> bool:
    return isinstance(statement, Drop) or (
        isinstance(statement, Namespace) and statement.verb == "DROP"
    )


def behind_a_job(script: Script, statement: Statement) -> SqlError:
    hint = "Move it before the INSERT INTO."
    if drops(statement):
        hint = "Leave it out: what a script declares is forgotten at its end."
    elif isinstance(statement, JobStatement):
        hint = (
            "Put all INSERTs into one EXECUTE STATEMENT SET BEGIN … END; write a CREATE TABLE … AS "
            "as CREATE TABLE, and its query into the set."
        )
    return script.error(statement.at, "a statement follows the INSERT INTO", hint=hint)


def behind_a_query(script: Script, statement: Statement) -> SqlError:
    return script.error(
        statement.at, "a statement follows the query", hint="Send the query by itself."
    )


def fills_a_table(statements: Iterable[Statement]) -> bool:
    """True for a script whose job is no preview; its bare queries are only for a client."""
    return any(isinstance(each, Insert | StatementSet | CreateTableAs) for each in statements)


def _unanswered(session: ScriptSession, statement: Question | StopJob) -> str:
    """Warning about a question in the script of a job; its table is still checked."""
    script = session.script
    if isinstance(statement, StopJob):
        raise script.error(
            statement.at,
            "STOP JOB is not allowed in the script of a job",
            hint=f"{OUTSIDE} Send it to POST /v1/statements, or use `sluice jobs stop`.",
        )
    if isinstance(statement, Explain):
        JobPlanner(session).plan(statement.statement)
    line, _ = script.line_and_column(statement.at)
    return (
        f"Line {line} asks something, which is no part of the job: POST /v1/statements answers it."
    )


def _no_job(script: Script, statements: tuple[Statement, ...]) -> SqlError:
    if not statements:
        return script.error(
            0,
            "the script is empty",
            hint="Write a CREATE TABLE for each table and an INSERT INTO that joins them; "
            "docs/how-to/own-kafka-and-database.md has a whole script.",
        )
    return script.error(
        max(len(script.text.rstrip()) - 1, 0),
        "the script has no INSERT INTO",
        hint="End it with INSERT INTO sink SELECT … FROM stream JOIN dimension …; "
        "questions such as EXPLAIN and SHOW TABLES are for sluice sql, or POST /v1/statements; "
        "tables for all later scripts are kept by sluice tables create -f FILE.",
    )
