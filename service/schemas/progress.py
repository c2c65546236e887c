"""Wire models of plans, transitions, watermarks and of what a job waits for."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.jobs.store.job import JobState
from service.schemas.document import Document, OrNewer
from service.schemas.inspection import BatchView, WarningView
from service.schemas.jobs import (
    ChangelogChannelView,
    EmittedView,
    EventTimeView,
    PositionView,
    Submission,
    WatermarkView,
)

# Scripts that are not submitted
# --------------------------------------------------------------------------------------------------


class ScriptCheck(Submission):
    """A script to be checked."""

    outside: Annotated[
        bool, Field(description="Also check the database, Kafka and the output, as a submission.")
    ] = True


class Validation(Document):
    """A script that can be submitted; one that cannot is answered with its problem."""

    valid: Literal[True]
    name: str
    outside: bool
    warnings: list[WarningView]


class PlanView(Document):
    """What a script would do."""

    name: str
    lines: Annotated[list[str], Field(description="Stream, joins, lookups, filter, output, sink.")]
    text: Annotated[str, Field(description="The lines in one piece.")]
    warnings: list[WarningView]
    plan: Annotated[dict[str, Any], Field(description="As `plan.json`; secrets are references.")]


class AnswerView(Document):
    """What one statement is answered."""

    statement: Annotated[str, Field(description="Its first words, such as SHOW TABLES.")]
    line: Annotated[int, Field(description="Of the script, from 1.")]
    columns: list[str]
    rows: list[list[str | None]]


class AnswerList(Document):
    """The answers, in the order of the statements."""

    answers: list[AnswerView]


# Transitions
# --------------------------------------------------------------------------------------------------


class Transition(Document):
    """One transition and its cause."""

    sequence: Annotated[int, Field(description="Grows over all jobs; also the id of the event.")]
    job_id: str
    at_ms: int
    origin: Annotated[JobState | None, OrNewer, Field(alias="from")]
    target: Annotated[JobState, OrNewer, Field(alias="to")]
    cause: str


class EventPage(Document):
    """Transitions, the oldest first."""

    items: list[Transition]
    next_cursor: int | None


# Watermarks
# --------------------------------------------------------------------------------------------------


class DimensionChannel(ChangelogChannelView):
    """A channel with the dimension that it belongs to."""

    dimension: str


class GateView(Document):
    """What the combined watermark is fed to."""

    open: bool
    opened_at_ms: int | None
    held_at_open: int | None


class DimensionEmission(Document):
    """What a source has written; it is a channel's watermark once its commit is made."""

    dimension: str
    source: str | None
    generation: int
    position: PositionView | None
    emitted: EmittedView | None


class VertexView(Document):
    """A part of the job with a stable id, for the addresses of Flink."""

    id: Annotated[str, Field(description="build-<table>, probe, join or windows.")]
    kind: Annotated[Literal["build", "probe", "join", "windows"], OrNewer]
    parallelism: int
    dimension: str | None = None


class WatermarkReport(Document):
    """Each channel's watermark, what sources have emitted, and what the valve makes of it."""

    job_id: str
    phase: Annotated[Literal["LOAD", "JOIN"] | None, OrNewer]
    combined: WatermarkView | None
    gate: GateView
    channels: list[DimensionChannel]
    emitted: list[DimensionEmission]
    event_time: Annotated[
        EventTimeView | None,
        Field(description="Each partition's generator; null unless records wait for watermarks."),
    ] = None
    vertices: list[VertexView]
    status_age_ms: int | None


class FlinkMetric(Document):
    """A metric in the form of Flink's REST API."""

    id: str


class FlinkMetricValue(FlinkMetric):
    """A metric with its value."""

    value: str


# Waiting
# --------------------------------------------------------------------------------------------------


class ConditionView(Document):
    """One thing that must be so before rows come out."""

    name: str
    about: Annotated[str | None, Field(description="Table, channel, topic or part.")]
    met: Annotated[bool | None, Field(description="null: it is not known yet.")]
    evidence: str
    hint: str | None


class WaitReport(Document):
    """Why nothing comes out: the conditions in the order in which they must come true."""

    job_id: str
    state: Annotated[JobState, OrNewer]
    waiting: bool
    sentence: str
    hint: str | None
    conditions: list[ConditionView]
    status_age_ms: int | None


# Batches
# --------------------------------------------------------------------------------------------------


class BatchPage(Document):
    """Batches, the newest first."""

    items: list[BatchView]
    next_cursor: Annotated[int | None, Field(description="Go on with the batches before this one.")]
