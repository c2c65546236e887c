"""Wire models of the list of jobs."""

from typing import Annotated

from pydantic import Field

from service.schemas.document import Document
from service.schemas.jobs import BatchTime, JobSummary, RecordRate, SinkView


class ListedJob(JobSummary):
    """A job in a list, with what tells at a glance how it does; null where nobody knows."""

    sinks: Annotated[
        list[SinkView], Field(description="One for each INSERT, in the order of the script.")
    ] = []
    topic: Annotated[str | None, Field(description="Of the stream; of several the first.")] = None
    records_per_s: RecordRate = None
    batch_ms: BatchTime = None
    held_records: Annotated[
        int | None, Field(description="That wait for the gate, at most, as in a job's `probe`.")
    ] = None
    lag_records: Annotated[
        int | None, Field(description="That are not joined yet, at most, as in a job's `probe`.")
    ] = None
    freshness_ms: Annotated[
        int | None,
        Field(description="The greatest of all tables: age of its newest change in the last batch"),
    ] = None
    joined_records: int | None = None
    dead_letters: int | None = None
    recent: Annotated[
        list[float | None] | None,
        Field(description="Records a second in the last 30 minutes, the oldest first; if wanted."),
    ] = None


class JobPage(Document):
    """Jobs, the newest first."""

    items: list[ListedJob]
    next_cursor: str | None
