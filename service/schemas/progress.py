"""Documents of plans, updates, transitions, watermarks, and what a job waits for."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.jobs.store.job import JobState
from service.schemas.document import Body, Document, OrNewer, default
from service.schemas.inspection import BatchView, WarningView
from service.schemas.jobs import (
    ChangelogChannelView,
    EmittedView,
    EventTimeView,
    PositionView,
    Submission,
    WatermarkView,
)
from service.schemas.verification import HoldingView


class JobUpdate(Body):
    """Another plan for a job: of a script, or an older one of the job."""

    sql: str | None = default(None, "The changed script; leave it out to return to an older plan.")
    to_plan: Annotated[
        int | None,
        Field(ge=1, description="Number of the older plan; the one before, if `sql` is left out."),
    ] = None
    preview: bool = default(False, "Show what changes, and change nothing.")
    batches: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="With `preview`: how many of the newest batches are joined again under the "
            "new plan, to show which rows change.",
        ),
    ] = 100
    of_plan: Annotated[
        int | None,
        Field(ge=1, description="Refuse unless this is the job's plan, such as that of a preview."),
    ] = None


class ChangeView(Document):
    """One difference between two plans of a job."""

    kind: str = Field(description="In kebab case, such as `filter`.")
    of: str = Field(description="What differs, such as the name of a column.")
    accepted: bool
    reason: str | None = default(None, "Why it is refused.")
    hint: str | None = None


class RowExample(Document):
    """A row of a past batch that another plan changes."""

    place: str = Field(description="Of its record: topic, partition and offset.")
    before: dict[str, Any] | None = Field(description="The row now; null if the new plan adds it.")
    after: dict[str, Any] | None = Field(description="The row then; null if the new plan drops it.")


class RowsPreview(Document):
    """The newest batches of one INSERT, joined under the plan of each and under the new one."""

    sink_table: str
    batches: int = default(0, "How many batches were joined again.")
    oldest_batch: int | None = None
    newest_batch: int | None = None
    records: int = 0
    records_gone: int = default(0, "Records that Kafka does not have now.")
    rows_before: int = 0
    rows_after: int = 0
    rows_changed: int = default(0, "Rows with another value in a column.")
    rows_added: int = 0
    rows_removed: int = 0
    dead_letters_before: int = 0
    dead_letters_after: int = 0
    changed_values: dict[str, int] = default({}, "Changed rows by column.")
    new_columns: list[str] = []
    examples: list[RowExample] = default([], "The first rows that differ.")
    reason: str | None = default(None, "Why batches are left out.")


class UpdateView(Document):
    """What an update changes, or has changed."""

    job_id: str
    plan: int = Field(description="Number of the job's plan now.")
    new_plan: int | None = default(None, "Number that the update gives; null if nothing differs.")
    applied: bool = Field(description="The job has the plan; its runner takes it after its batch.")
    accepted: bool = Field(description="False if a change is refused.")
    changes: list[ChangeView]
    warnings: list[str] = []
    rows: list[RowsPreview] = default(
        [], "With `preview`, for each INSERT: what changes in rows of past batches."
    )


# Scripts that are not submitted
# --------------------------------------------------------------------------------------------------


class ScriptCheck(Submission):
    """A script to be checked."""

    outside: bool = default(True, "Also check the database, Kafka and the output, as a submission.")


class Migratable(Body):
    """A script to be changed so that it is accepted."""

    sql: str = Field(description="The script, at most 64 KiB of UTF-8.")


class Validation(Document):
    """A script that can be submitted; one that cannot is answered with its problem.

    The problem has all faults of the script in `findings`.
    """

    valid: Literal[True]
    name: str
    outside: bool
    warnings: list[WarningView]


class FindingView(Document):
    """A fault of a script, also in `findings` of the problem of a script that is refused."""

    line: int
    column: int
    message: str
    hint: str
    excerpt: str = Field(description="The line, and a caret below it.")
    replacement: str | None = Field(
        description="The WITH clause, or the part of the line, as it would be accepted."
    )
    sure: bool = Field(description="Whether a migration makes the change.")
    outside: bool = Field(description="Whether no change of words avoids the fault.")


class MigrationView(Document):
    """A script as it would be accepted; a comment in it names each change."""

    accepted: bool
    sql: str
    changes: list[str] = Field(description="A sentence for each change.")
    left: list[FindingView] = Field(description="What cannot be changed, by its place.")
    warnings: list[WarningView]


class PlanView(Document):
    """What a script would do."""

    name: str
    lines: list[str] = Field(description="Stream, joins, filter, output, sink.")
    text: str = Field(description="The lines in one piece.")
    tree: str = default("", "The plan as a tree of Flink's operators, the sink first.")
    warnings: list[WarningView]
    plan: dict[str, Any] = Field(description="As `plan.json`; secrets are references.")


class AnswerView(Document):
    """What one statement is answered."""

    statement: str = Field(description="Its first words, such as SHOW TABLES.")
    line: int = Field(description="Of the script, from 1.")
    columns: list[str]
    rows: list[list[str | None]]


class AnswerList(Document):
    """The answers, in the order of the statements."""

    answers: list[AnswerView]


# Transitions
# --------------------------------------------------------------------------------------------------


class Transition(Document):
    """One transition and its cause."""

    sequence: int = Field(description="Grows over all jobs; also the id of the event.")
    job_id: str
    at_ms: int
    origin: Annotated[JobState | None, OrNewer, Field(alias="from")]
    target: Annotated[JobState, OrNewer, Field(alias="to")]
    word: str = default("", "The state `to` in its word.")
    word_before: str = default("", "The state `from` in its word; empty for the first one.")
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
    holding: HoldingView | None = default(
        None, "Records that wait for a table after the opening; null if none does."
    )


class DimensionEmission(Document):
    """What a source has written; it is a channel's watermark once its commit is made."""

    dimension: str
    source: str | None
    generation: int
    position: PositionView | None
    emitted: EmittedView | None


class VertexView(Document):
    """A part of the job with a stable id, for the addresses of Flink."""

    id: str = Field(description="build-<table>, probe, join or windows.")
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
    event_time: EventTimeView | None = default(
        None, "Each partition's generator; null unless records wait for watermarks."
    )
    vertices: list[VertexView]
    status_age_ms: int | None


class FlinkMetric(Document):
    """A metric in the form of Flink's REST API."""

    id: str


class FlinkMetricValue(FlinkMetric):
    """A metric with its value."""

    value: str


# History
# --------------------------------------------------------------------------------------------------

Numbers = list[float | None]


class HistorySeries(Document):
    """Numbers of a job over time; each list has a number a point, null where it was not known."""

    records_per_s: Numbers = Field(description="Of the stream, as offsets.")
    rows_per_s: Numbers = Field(description="Out of the join.")
    dead_letters_per_s: Numbers
    copied_rows_per_s: Numbers = Field(description="Of the tables' copies.")
    changes_per_s: Numbers = Field(description="Of the tables, once they are followed.")
    held_records: Numbers = Field(description="That wait for the gate, at most.")
    lag_records: Numbers = Field(description="Of the stream, not joined yet, at most.")
    table_lag_records: Numbers = Field(description="Of all changelog topics.")
    freshness_ms: Numbers = Field(
        description="Age of the newest change as the newest batch saw it; oldest."
    )
    source_delay_ms: Numbers = Field(
        description="From a change at its source to its commit; the longest."
    )
    watermark_age_ms: Numbers = Field(
        description="From the combined watermark to the clock, with event time."
    )
    index_ms: Numbers = Field(description="Of the newest batch: bring the indexes.")
    join_ms: Numbers = Field(description="Of the newest batch: read, join, stage.")
    commit_ms: Numbers = Field(description="Of the newest batch: commit.")
    as_of_age_ms: Numbers = Field(
        description="Clock minus the oldest T that a table's source proves."
    )
    latency_ms: Numbers = Field(
        description="From a record's arrival to the commit of its row, at most."
    )


class JobHistory(Document):
    """The last day of a job, as far as it was asked for."""

    job_id: str
    step_s: int
    at_ms: list[int] = Field(description="When each step began; missing ones are gaps.")
    series: HistorySeries
    transitions: list[Transition] = Field(description="Of that time; the newest 500.")


# Waiting
# --------------------------------------------------------------------------------------------------


class ConditionView(Document):
    """One thing that must be so before rows come out."""

    name: str
    about: str | None = Field(description="Table, channel, topic or part.")
    met: bool | None = Field(description="null: it is not known yet.")
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
    next_cursor: int | None = Field(description="Go on with the batches before this one.")
