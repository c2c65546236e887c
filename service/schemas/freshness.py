"""Documents about the freshness of tables: waiting for a position."""

from typing import Annotated, Any

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
