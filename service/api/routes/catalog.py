"""`/v1/tables`: tables and views that every later script may name, shared tables among them."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from service.api.http.access import OPERATOR, VIEWER
from service.api.routes.jobs import Injected, Services
from service.errors import JobNotFoundError
from service.schemas.tables import (
    AttachedJob,
    CatalogColumn,
    CatalogList,
    CatalogTable,
    CatalogTableDetail,
    TableCreation,
    TableScript,
)
from service.sql.answers.declarations import columns_of
from service.sql.grammar.type_rules import type_text
from service.sql.stored import CatalogEntry

router = APIRouter(prefix="/v1/tables", tags=["catalog"], dependencies=[VIEWER])
CatalogName = Annotated[str, Path(min_length=1, max_length=100, description="As it was created.")]


@router.post("", status_code=201, summary="Create tables", dependencies=[OPERATOR])
def create_tables(body: TableScript, services: Injected) -> TableCreation:
    """Keep the tables and views of a script for every later one; shared tables begin their copy."""
    creation = services.tables.create(body.sql)
    services.supervisor.wake()
    return TableCreation(
        created=list(creation.created),
        kept=list(creation.kept),
        warnings=list(creation.warnings),
    )


@router.get("", summary="List tables")
def list_tables(services: Injected) -> CatalogList:
    """All tables and views of the catalog, by name; of shared ones how far they are."""
    entries = sorted(services.store.catalog.entries(), key=lambda entry: entry.name)
    return CatalogList(items=[CatalogTable(**_shown(services, entry)) for entry in entries])


@router.get("/{name}", summary="Show a table")
def show_table(name: CatalogName, services: Injected) -> CatalogTableDetail:
    """Its statement and columns; of a shared one also how far it is, and who reads it."""
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
    """Forget a table or view; the job that keeps a shared table is removed with its copy.

    Jobs and views that use it are in the way of that; jobs that have named any other table of the
    catalog have taken over its declaration, and go on.
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
    """How far the job is that keeps a shared table."""
    attached = services.store.catalog.attached(job_id)
    try:
        job = services.detail(services.store.get(job_id))
    except JobNotFoundError:  # it is being dropped at this moment
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
