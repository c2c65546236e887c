"""Documents about the comparison of tables with their sources."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.schemas.document import Body, Document, OrNewer
from service.schemas.inspection import By

VerifiedState = Annotated[Literal["equal", "different", "not-compared"], OrNewer]


class VerifyTables(Body):
    """What to compare; by default all rows of all tables."""

    table: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="Its name in the script; default: all."),
    ] = None
    sample: Annotated[
        float, Field(gt=0, le=1, description="Share of the chunks of each table, at least one.")
    ] = 1.0
    rows_per_s: Annotated[
        int | None, Field(ge=1, le=10_000_000, description="Pace of reading the source.")
    ] = None
    shown: Annotated[int, Field(ge=0, le=1_000, description="Differences shown with rows.")] = 100
    repair: Annotated[
        bool,
        Field(
            description="Send differing rows again, at most 10,000 of each table, then compare "
            "again; the gate stays open."
        ),
    ] = False
    by: By = "unknown"


class RowDifference(Document):
    """A key whose row differs between source and copy, both as of the position."""

    key: dict[str, Any]
    kind: Annotated[
        str,
        Field(description="`missing` in the copy, `extra` in the copy, or `changed`."),
    ]
    ours: Annotated[dict[str, Any] | None, Field(description="The row of the copy.")]
    theirs: Annotated[dict[str, Any] | None, Field(description="The row of the source.")]
    since_version: Annotated[
        int | None,
        Field(description="Oldest kept version with the copy's newest record; null: no record."),
    ]
    our_position: Annotated[
        dict[str, int] | None, Field(description="Position of the copy's newest record.")
    ]


class RepairedView(Document):
    """Rows of a table that were sent again, as the source had them at a position."""

    at_ms: int
    written: Annotated[int, Field(description="Rows that the source has.")]
    deleted: Annotated[int, Field(description="Rows that only the copy had.")]
    position: dict[str, int]


class TableVerification(Document):
    """One table compared with its source, or why it was not."""

    table: str
    source: str
    state: VerifiedState
    started_at_ms: int
    ended_at_ms: int
    reason: Annotated[str | None, Field(description="Why it was not compared.")] = None
    hint: str | None = None
    position: Annotated[
        dict[str, Any], Field(description="P: both sides are compared as of this position.")
    ] = {}
    version: Annotated[int | None, Field(description="Of the changelog, with all up to P.")] = None
    generation: int | None = None
    sample: float = 1.0
    chunks: int = 0
    chunks_total: int = 0
    rows: Annotated[int, Field(description="Rows of the source that were compared.")] = 0
    changing: Annotated[
        int, Field(description="Keys with several states while the source was read; any is right.")
    ] = 0
    left_out: Annotated[
        int, Field(description="Rows that are too large for the changelog topic.")
    ] = 0
    finds_extra: Annotated[
        bool,
        Field(description="False: of a sample with such keys, extra rows of the copy are not."),
    ] = True
    differences: int = 0
    repaired: Annotated[
        RepairedView | None, Field(description="What was sent again before this comparison.")
    ] = None
    not_repaired: Annotated[
        str | None, Field(description="Why differing rows were not sent again.")
    ] = None
    items: Annotated[list[RowDifference], Field(description="The first differences.")] = []


class VerificationReport(Document):
    """What a comparison has found; `ok` if every table was compared and is equal."""

    job_id: str
    ok: bool
    tables: list[TableVerification]


class VerifiedView(Document):
    """The newest comparison of a table with its source."""

    at_ms: Annotated[int, Field(description="When it ended.")]
    rows: Annotated[int, Field(description="Rows of the source that were compared.")]
    differences: int
    sample: Annotated[float, Field(description="Share of the chunks that were compared.")]
    position: Annotated[dict[str, Any], Field(description="Both sides were compared as of it.")]
