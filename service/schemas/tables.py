"""Documents of the catalog and of a job's tables: dimensions, rows, changes, output.

Values are exact (see the table of types in `joins.kernels.json.exact`). Names and values are
untrusted.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.jobs.store.job import JobState
from service.schemas.document import Body, Document, OrNewer, default
from service.schemas.jobs import SQL_LIMIT_BYTES, PositionView


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

    created: list[str] = Field(description="In the order of the script.")
    kept: list[str] = default([], "There already, behind IF NOT EXISTS.")
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
    job_id: str | None = default(None, "Of the job that keeps a shared table, one like others.")
    state: Annotated[JobState | None, OrNewer] = None
    phase: Annotated[Literal["LOAD", "JOIN"] | None, OrNewer] = default(
        None, "LOAD until the copy is complete and committed."
    )
    reason: str | None = default(None, "Why it is where it is.")
    version: int | None = default(None, "Newest committed version.")
    generation: int | None = default(None, "Number of the copy, from 1.")
    snapshot_rows: int | None = default(None, "Of the copy, committed.")
    lag_records: int | None = default(None, "Changes that are captured and not committed yet.")
    attached: list[AttachedJob] = default([], "Jobs that read it.")


class CatalogColumn(Document):
    """A physical column."""

    name: str
    type: str
    nullable: bool


class CatalogTableDetail(CatalogTable):
    """One table or view with its declaration."""

    sql: str = Field(description="Its statement; secrets are references.")
    columns: list[CatalogColumn] = Field(description="Physical ones; none of a view.")
    primary_key: list[str]


class CatalogList(Document):
    """All tables and views, by name."""

    items: list[CatalogTable]


Value = dict[str, Any]
_CURSOR = Field(description="Of the next page; null after the last one.")
Absence = Annotated[
    Literal["deleted", "not-copied-again", "no-record"],
    OrNewer,
    Field(description="`no-record`: never seen, or deleted so long ago that nothing tells."),
]
_COMPLETE = Field(description="Every channel of the table had completed its newest copy.")


class ColumnView(Document):
    """A column and its SQL type."""

    name: str
    type: str
    nullable: bool


class TableView(Document):
    """A dimension as the script declares it."""

    table: str
    source: str = Field(description="Connector that it is copied with.")
    primary_key: list[str]
    columns: list[ColumnView]


class DimensionVersions(TableView):
    """A dimension and the versions that can be read."""

    version: int | None = Field(description="Newest one; null before the first.")
    oldest_version: int | None = Field(description="That is still kept.")
    pinned_version: int | None = Field(
        description="That the newest batch was joined with; null before it."
    )
    complete: Annotated[bool, _COMPLETE]


class DimensionList(Document):
    """The dimensions of a job."""

    items: list[DimensionVersions]


class DimensionRow(Document):
    """A row and the change that brought it."""

    key: Value
    values: Value
    position: PositionView
    source_ts_ms: int | None = Field(
        description="When the source made the change, by its clock; null for a row of a copy."
    )


class AbsentKey(Document):
    """A key that was asked for and has no row."""

    key: Value
    reason: Absence
    position: PositionView | None
    source_ts_ms: int | None


class DimensionRows(TableView):
    """Rows of one version, in the order of the primary key."""

    version: int
    newest_version: int
    complete: Annotated[bool, _COMPLETE]
    items: list[DimensionRow]
    absent: list[AbsentKey] = Field(description="Of the keys that were asked for.")
    next_cursor: Annotated[str | None, _CURSOR]


class RowChange(Document):
    """What became of one key between two versions."""

    change: Annotated[Literal["insert", "update", "delete"], OrNewer]
    key: Value
    before: Value | None = Field(description="Null for an insert.")
    after: Value | None = Field(description="Null for a delete.")
    position: PositionView | None = Field(description="Of the later row.")
    source_ts_ms: int | None


class DimensionChanges(TableView):
    """Keys whose rows differ between two versions, in the order of the primary key."""

    from_version: int
    to_version: int
    complete: bool = Field(description="Both versions were complete.")
    items: list[RowChange]
    next_cursor: str | None = Field(
        description="Of the next page; a page may be empty and not the last."
    )


class VersionOfKey(Document):
    """A version that has changed the row of a key."""

    version: int
    committed_at_ms: int | None = Field(description="By the runner's clock.")
    change: Annotated[Literal["insert", "update", "delete"], OrNewer]
    reason: Absence | None = Field(description="Why there is no row; null if there is.")
    records: int = Field(
        description="Of the key in this version; the last one counts. None if a copy of the "
        "table was completed that has not brought the key again."
    )
    before: Value | None = Field(description="Null for an insert.")
    after: Value | None = Field(description="Null for a delete.")
    position: PositionView | None = Field(description="Of the record that counts.")
    source_ts_ms: int | None = Field(
        description="When the source made the change, by its clock; null for a row of a copy."
    )


class OldestOfKey(Document):
    """What the oldest version that is kept has of a key."""

    version: int
    values: Value | None = Field(description="Null if it has no row.")
    reason: Absence | None = Field(description="Why there is no row; null if there is.")
    position: PositionView | None
    source_ts_ms: int | None = Field(description="When the source made that change.")


class DimensionHistory(TableView):
    """Versions that have changed the row of a key, the newest first."""

    key: Value
    version: int = Field(description="The newest one when the first page was asked for.")
    oldest_version: int = Field(
        description="Where the history begins: what was before is not kept."
    )
    items: list[VersionOfKey]
    beginning: OldestOfKey | None = Field(description="With the last page only; null before it.")
    next_cursor: str | None = Field(
        description="Of the next page; a page may be empty and not the last."
    )


class OutputView(Document):
    """The table that one INSERT writes, as its plan has it."""

    insert: int = Field(description="Its number in the script, from 1.")
    table: str = Field(description="As in the script.")
    columns: list[ColumnView]


class OutputList(Document):
    """The outputs of a job, in the order of its script."""

    items: list[OutputView]


class PreviewBatch(Document):
    """A commit of the output: a batch with its pin, or a replay of dead letters."""

    batch: int | None = Field(description="Null for a replay of dead letters.")
    replay: int | None = Field(description="Its number; null for a batch.")
    output_version: int
    committed_at_ms: int | None
    rows: int = Field(description="That the output has of it now.")
    pin: Value | None = Field(description="Offsets, versions and time of the batch.")
    counts: Value | None


class PreviewRow(Document):
    """A row of the output."""

    batch: int | None
    output_version: int
    values: Value


class Preview(Document):
    """The newest rows of a Delta output: newest batch first, each in the order of the stream."""

    table: str
    columns: list[ColumnView]
    batches: list[PreviewBatch]
    items: list[PreviewRow]
    truncated: bool = Field(description="An answer has 4 MiB of rows at the most.")
