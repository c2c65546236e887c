"""`/v1/tables`: tables and views that every later script may name, shared tables among them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field

from service.api.http.access import OPERATOR, VIEWER
from service.api.services import Injected, Services
from service.errors import JobNotFoundError
from service.jobs.store.job import DesiredState, Job
from service.jobs.submit.submission import check_script
from service.schemas.document import Body
from service.schemas.jobs import SQL_LIMIT_BYTES
from service.schemas.progress import AnswerList, AnswerView
from service.schemas.tables import (
    AttachedJob,
    CatalogColumn,
    CatalogList,
    CatalogTable,
    CatalogTableDetail,
    TableCreation,
    TableScript,
)
from service.sql.answers.answers import JobRow, answers, columns_of
from service.sql.grammar.type_parser import type_text
from service.sql.stored import CatalogEntry

_SHOWN_JOBS = 500
statements_router = APIRouter(prefix="/v1/statements", tags=["statements"], dependencies=[OPERATOR])


class Statements(Body):
    """A script of questions."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_LIMIT_BYTES,
            description="EXPLAIN, DESCRIBE, SHOW, SET and STOP JOB, after what they refer to.",
        ),
    ]


@statements_router.post("", summary="Answer statements")
def answer_statements(body: Statements, services: Injected) -> AnswerList:
    """Answer EXPLAIN, DESCRIBE, SHOW and SET, and carry out STOP JOB; nothing is stored."""
    check_script(body.sql)
    views = [
        AnswerView(
            statement=answer.statement,
            line=answer.line,
            columns=list(answer.columns),
            rows=[list(row) for row in answer.rows],
        )
        for answer in answers(body.sql, _StoredJobs(services), services.store.catalog.entries())
    ]
    return AnswerList(answers=views)


@dataclass(frozen=True, slots=True)
class _StoredJobs:
    services: Services

    def all(self) -> Sequence[JobRow]:
        return [_row(job) for job in self.services.store.page(before=None, limit=_SHOWN_JOBS)]

    def find(self, job_id: str) -> JobRow:
        return _row(self._job(job_id))

    def stop(self, job_id: str) -> JobRow:
        self.services.want(job_id, DesiredState.STOPPED)
        return _row(self._job(job_id))

    def _job(self, job_id: str) -> Job:
        try:
            return self.services.store.get(job_id)
        except JobNotFoundError as exc:
            raise JobNotFoundError(
                f'job "{job_id[:100]}" does not exist', hint="SHOW JOBS lists the ids of all jobs."
            ) from exc


def _row(job: Job) -> JobRow:
    created = datetime.fromtimestamp(job.created_at_ms / 1000, UTC)
    return JobRow(job.id, job.name, job.state, created.isoformat(timespec="milliseconds"))


router = APIRouter(prefix="/v1/tables", tags=["catalog"], dependencies=[VIEWER])
CatalogName = Annotated[str, Path(min_length=1, max_length=100, description="As it was created.")]


@router.post("", status_code=201, summary="Create tables", dependencies=[OPERATOR])
def create_tables(body: TableScript, services: Injected) -> TableCreation:
    """Store the tables and views of a script in the catalog; shared tables start their copy."""
    creation = services.tables.create(body.sql)
    services.supervisor.wake()
    return TableCreation(
        created=list(creation.created),
        kept=list(creation.kept),
        warnings=list(creation.warnings),
    )


@router.get("", summary="List tables")
def list_tables(services: Injected) -> CatalogList:
    """All tables and views of the catalog by name; shared tables with their progress."""
    entries = sorted(services.store.catalog.entries(), key=lambda entry: entry.name)
    return CatalogList(items=[CatalogTable(**_shown(services, entry)) for entry in entries])


@router.get("/{name}", summary="Show a table")
def show_table(name: CatalogName, services: Injected) -> CatalogTableDetail:
    """The table's statement and columns; for a shared table also its progress and readers."""
    entry = services.store.catalog.get(name)
    fields, key = columns_of(entry)
    columns = [
        CatalogColumn(name=field.name, type=type_text(field.type), nullable=field.nullable)
        for field in fields
    ]
    return CatalogTableDetail(
        **_shown(services, entry), sql=entry.sql, columns=columns, primary_key=list(key)
    )


@router.delete("/{name}", status_code=204, summary="Drop a table", dependencies=[OPERATOR])
def drop_table(name: CatalogName, services: Injected) -> None:
    """Drop a table or view; a shared table is removed with its job and its copy.

    Fails while jobs read the shared table, or views use the table. Jobs that named any other table
    have copied its declaration and continue.
    """
    services.tables.drop(name)
    services.supervisor.wake()


def _shown(services: Services, entry: CatalogEntry) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": entry.name,
        "kind": entry.kind.value,
        "created_at_ms": entry.created_at_ms,
        "job_id": entry.job_id,
    }
    return facts if entry.job_id is None else facts | _of_job(services, entry.job_id)


def _of_job(services: Services, job_id: str) -> dict[str, Any]:
    attached = services.store.catalog.attached(job_id)
    try:
        job = services.detail(services.store.get(job_id))
    except JobNotFoundError:  # dropped concurrently
        return {}
    facts: dict[str, Any] = {
        "state": job.state,
        "phase": job.phase,
        "reason": job.reason,
        "attached": [AttachedJob(id=one, name=name) for one, name in attached],
    }
    for dimension in (job.dimensions or [])[:1]:
        facts |= {
            "version": dimension.changelog_version,
            "generation": dimension.generation,
            "snapshot_rows": dimension.snapshot.rows_done,
            "lag_records": dimension.lag_records,
        }
    return facts
