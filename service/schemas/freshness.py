"""Documents about the freshness of tables: how far one is, and waiting for a position."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.schemas.document import Body, Document, default


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
