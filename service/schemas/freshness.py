"""Documents about the freshness of tables: how far one is, and waiting for a position."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.schemas.document import Body, Document


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
    token: Annotated[str, Field(description="The position to ask again for; `now` is resolved.")]
    batch: Annotated[int | None, Field(description="Null if no committed batch has it yet.")]
    newest_batch: Annotated[int | None, Field(description="The newest committed batch.")]
    as_of_ms: Annotated[int | None, Field(description="T of `batch`, or of the newest batch.")]
    position: Annotated[dict[str, Any], Field(description="P that belongs to this T.")]
    text: str


class FreshnessView(Document):
    """How far a table is, as its source proves it: everything until `as_of_ms` is committed."""

    as_of_ms: Annotated[
        int | None, Field(description="T of the version that the next batch meets; null before.")
    ] = None
    age_ms: Annotated[int | None, Field(description="From T to the report.")] = None
    position: Annotated[
        dict[str, Any],
        Field(description="P: where the source's log was at T; a source's own form."),
    ] = {}
    ends: Annotated[
        dict[str, int], Field(description="Of the changelog: what must be committed for T.")
    ] = {}
    kind: Annotated[
        str | None,
        Field(description="`position` of its log, times of a `connector`, or `ended`."),
    ] = None
    source_ms: Annotated[int | None, Field(description="The source's clock at its answer.")] = None
    offset_ms: Annotated[
        int | None, Field(description="That clock ahead of the runner's; right within `within_ms`.")
    ] = None
    within_ms: int | None = None
    answered_at_ms: Annotated[
        int | None, Field(description="When the source's newest answer arrived.")
    ] = None
    max_staleness_ms: Annotated[
        int | None, Field(description="The option `join.max-staleness`; null without it.")
    ] = None
    waits_for: Annotated[str | None, Field(description="Why T may stand still.")] = None


class HeldTableView(Document):
    """A table whose T is too old for records that wait."""

    table: str
    bound_ms: int
    time_ms: int | None


class HoldingView(Document):
    """What the gate holds for `join.max-staleness` after the opening."""

    state: Annotated[Literal["HOLDING", "RELEASED"], Field(description="Released by an operator.")]
    since_ms: int
    tables: list[HeldTableView]
    released_until_ms: int | None = None
    text: str
