"""Wire models of a job in a line of a list: where its rows go, and a few numbers."""

from typing import Annotated

from pydantic import Field

from service.schemas.document import Document


class SinkView(Document):
    """Where the rows of one INSERT go."""

    insert: Annotated[int, Field(description="Its number in the script, from 1.")]
    table: Annotated[str, Field(description="As in the script.")]
    connector: str
    place: Annotated[str | None, Field(description="Path of a Delta table, topic of Kafka.")]


class PulseView(Document):
    """A job in a few numbers, as the control plane has seen them in the last half minute."""

    records_per_s: Annotated[float | None, Field(description="Of the stream, as offsets.")]
    rows_per_s: Annotated[float | None, Field(description="Out of the join.")]
    copied_rows_per_s: Annotated[float | None, Field(description="Of the tables' copies.")]
    held_records: float | None
    lag_records: float | None
    recent: Annotated[
        list[float | None],
        Field(description="Of the last 30 minutes `records_per_s`, the oldest first."),
    ]
    sinks: list[SinkView] = []
