"""Wire models of the catalog: tables and views that every later script may name."""

from typing import Annotated, Literal

from pydantic import Field

from service.jobs.store.job import JobState
from service.schemas.document import Body, Document, OrNewer
from service.schemas.jobs import SQL_LIMIT_BYTES


class TableScript(Body):
    """Statements whose tables and views are to last."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_LIMIT_BYTES,
            description="CREATE TABLE, CREATE VIEW and CREATE SHARED TABLE; all are kept, or none.",
        ),
    ]


class TableCreation(Document):
    """What a script has brought into the catalog."""

    created: Annotated[list[str], Field(description="In the order of the script.")]
    kept: Annotated[list[str], Field(description="There already, behind IF NOT EXISTS.")] = []
    warnings: list[str] = []


class AttachedJob(Document):
    """A job that reads a shared table."""

    id: str
    name: str


class CatalogTable(Document):
    """A table or view of the catalog; what follows `job_id` is of a shared table alone."""

    name: str
    kind: Annotated[Literal["table", "view", "shared"], OrNewer]
    created_at_ms: int
    job_id: Annotated[
        str | None,
        Field(description="Of the job that keeps a shared table, one like others."),
    ] = None
    state: Annotated[JobState | None, OrNewer] = None
    phase: Annotated[
        Literal["LOAD", "JOIN"] | None,
        OrNewer,
        Field(description="LOAD until the copy is complete and committed."),
    ] = None
    reason: Annotated[str | None, Field(description="Why it is where it is.")] = None
    version: Annotated[int | None, Field(description="Newest committed version.")] = None
    generation: Annotated[int | None, Field(description="Number of the copy, from 1.")] = None
    snapshot_rows: Annotated[int | None, Field(description="Of the copy, committed.")] = None
    lag_records: Annotated[
        int | None, Field(description="Changes that are captured and not committed yet.")
    ] = None
    attached: Annotated[list[AttachedJob], Field(description="Jobs that read it.")] = []


class CatalogColumn(Document):
    """A physical column."""

    name: str
    type: str
    nullable: bool


class CatalogTableDetail(CatalogTable):
    """One table or view with its declaration."""

    sql: Annotated[str, Field(description="Its statement; secrets are references.")]
    columns: Annotated[list[CatalogColumn], Field(description="Physical ones; none of a view.")]
    primary_key: list[str]


class CatalogList(Document):
    """All tables and views, by name."""

    items: list[CatalogTable]
