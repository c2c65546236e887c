"""Documents about tables and their sources: how fresh a copy is, and whether it is equal."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.schemas.document import Body, Document, OrNewer, default
from service.schemas.inspection import By


class PositionWait(Body):
    """A position of a table's source to wait for."""

    table: Annotated[
        str, Field(min_length=1, max_length=200, description="Its name in the script.")
    ]
    position: Annotated[
        str,
        Field(
            min_length=1,
            max_length=8_000,
            description="`now`, a GTID or a set of GTIDs, `file:pos` of a binlog, "
            "`partition:offset` of a topic, a version of a Delta table, or `at:` and milliseconds.",
        ),
    ]
    timeout_s: Annotated[
        float, Field(ge=0, le=10, description="How long this request waits; ask again after it.")
    ] = 10.0


class PositionReached(Document):
    """The first batch whose pin has the position, or how far the newest one is."""

    job_id: str
    table: str
    token: str = Field(description="The position to ask again for; `now` is resolved.")
    batch: int | None = Field(description="Null if no committed batch has it yet.")
    newest_batch: int | None = Field(description="The newest committed batch.")
    as_of_ms: int | None = Field(description="T of `batch`, or of the newest batch.")
    position: dict[str, Any] = Field(description="P that belongs to this T.")
    text: str


class FreshnessView(Document):
    """How far a table is, as its source proves it: everything until `as_of_ms` is committed."""

    as_of_ms: int | None = default(None, "T of the version that the next batch meets; null before.")
    age_ms: int | None = default(None, "From T to the report.")
    position: dict[str, Any] = default(
        {}, "P: where the source's log was at T; a source's own form."
    )
    ends: dict[str, int] = default({}, "Of the changelog: what must be committed for T.")
    kind: str | None = default(None, "`position` of its log, times of a `connector`, or `ended`.")
    source_ms: int | None = default(None, "The source's clock at its answer.")
    offset_ms: int | None = default(
        None, "That clock ahead of the runner's; right within `within_ms`."
    )
    within_ms: int | None = None
    answered_at_ms: int | None = default(None, "When the source's newest answer arrived.")
    max_staleness_ms: int | None = default(
        None, "The option `join.max-staleness`; null without it."
    )
    waits_for: str | None = default(None, "Why T may stand still.")


class HeldTableView(Document):
    """A table whose T is too old for records that wait."""

    table: str
    bound_ms: int
    time_ms: int | None


class HoldingView(Document):
    """What the gate holds for `join.max-staleness` after the opening."""

    state: Literal["HOLDING", "RELEASED"] = Field(description="Released by an operator.")
    since_ms: int
    tables: list[HeldTableView]
    released_until_ms: int | None = None
    text: str


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
    repair: bool = default(
        False,
        "Send differing rows again, at most 10,000 of each table, then compare "
        "again; the gate stays open.",
    )
    by: By = "unknown"


class RowDifference(Document):
    """A key whose row differs between source and copy, both as of the position."""

    key: dict[str, Any]
    kind: str = Field(description="`missing` in the copy, `extra` in the copy, or `changed`.")
    ours: dict[str, Any] | None = Field(description="The row of the copy.")
    theirs: dict[str, Any] | None = Field(description="The row of the source.")
    since_version: int | None = Field(
        description="The copy's newest record is there at least since this version, the oldest "
        "kept one that has it; null: no record."
    )
    our_position: dict[str, int] | None = Field(description="Position of the copy's newest record.")


class RepairedView(Document):
    """Rows of a table that were sent again, as the source had them at a position."""

    at_ms: int
    written: int = Field(description="Rows that the source has.")
    deleted: int = Field(description="Rows that only the copy had.")
    position: dict[str, int]


class TableVerification(Document):
    """One table compared with its source, or why it was not."""

    table: str
    source: str
    state: VerifiedState
    started_at_ms: int
    ended_at_ms: int
    reason: str | None = default(None, "Why it was not compared.")
    hint: str | None = None
    position: dict[str, Any] = default({}, "P: both sides are compared as of this position.")
    version: int | None = default(None, "Of the changelog, with all up to P.")
    generation: int | None = None
    sample: float = 1.0
    chunks: int = 0
    chunks_total: int = 0
    rows: int = default(0, "Rows of the source that were compared.")
    changing: int = default(0, "Keys with several states while the source was read; any is right.")
    left_out: int = default(0, "Rows that are too large for the changelog topic.")
    finds_extra: bool = default(
        True, "False: of a sample with such keys, extra rows of the copy are not."
    )
    differences: int = 0
    repaired: RepairedView | None = default(None, "What was sent again before this comparison.")
    not_repaired: str | None = default(None, "Why differing rows were not sent again.")
    items: list[RowDifference] = default([], "The first differences.")


class VerificationReport(Document):
    """What a comparison has found; `ok` if every table was compared and is equal."""

    job_id: str
    ok: bool
    tables: list[TableVerification]


class VerifiedView(Document):
    """The newest comparison of a table with its source."""

    at_ms: int = Field(description="When it ended.")
    rows: int = Field(description="Rows of the source that were compared.")
    differences: int
    sample: float = Field(description="Share of the chunks that were compared.")
    position: dict[str, Any] = Field(description="Both sides were compared as of it.")
