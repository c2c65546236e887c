"""Documents of jobs and of their list. None has a field for a secret."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.jobs.store.job import DesiredState, JobState
from service.schemas.document import Body, Document, OrNewer, default
from service.schemas.inspection import AcknowledgementView, FaultPlaceName, StallView, WarningView
from service.schemas.verification import FreshnessView, HoldingView, RepairedView, VerifiedView

SQL_LIMIT_BYTES = 64 * 1024
RecordRate = Annotated[
    float | None, Field(description="That batches have read in about the last ten seconds.")
]
BatchTime = Annotated[
    int | None, Field(description="From the pin of the newest batch to its commit.")
]
OpenLetters = Annotated[
    int | None,
    Field(description="Dead letters that were neither replayed nor discarded; null if unknown."),
]


class Submission(Body):
    """A job to run."""

    sql: str = Field(description="The script, at most 64 KiB of UTF-8.")
    name: Annotated[
        str | None,
        Field(
            default=None,
            max_length=100,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
            description="Unique among jobs that can run; the sink's name when left out.",
        ),
    ]
    append: bool = default(False, "Write to an output to which another job writes, too.")


class ErrorView(Document):
    """Why a job is STALLED or FAILED, or why it cannot be removed."""

    place: FaultPlaceName = None
    type: str
    message: str
    hint: str
    detail: str = default("", "The text of a library or server behind it; often empty.")


class RemovalView(Document):
    """A job that is gone while some of its output is not."""

    left: tuple[str, ...] = Field(
        description="What is left and why: others have made it, or written to it."
    )


class PositionView(Document):
    """A place in a binlog or, as `file`, a Delta version; compared as numbers left to right."""

    epoch: int
    file: int
    pos: int
    row: int


class SnapshotView(Document):
    """How far the copy of a table is."""

    rows_done: int = Field(description="Committed rows; of a topic of plain rows its records.")
    rows_total: int | None = Field(description="Null while it is unknown.")
    rows_total_is_estimate: bool
    chunks_done: int
    chunks_total: int | None
    is_copied: bool = default(False, "Every part of the copy is read.")


class WatermarkView(Document):
    """A promise; with `use_processing_time` the wall clock is the time from here on."""

    timestamp_ms: int = Field(
        description="Event time; in processing time T, the last effective time that the "
        "source proves, and -2^63 before its first proof."
    )
    use_processing_time: bool


class ChangelogChannelView(Document):
    """One partition of a changelog topic."""

    channel: str
    status: str
    watermark: WatermarkView
    aligned: bool | None = default(None, "It counts for the combined watermark.")


class EmittedView(Document):
    """The watermark that a source has written last into its changelog topic."""

    watermark: WatermarkView
    generation: int
    offsets: dict[str, int] = Field(description="Of its record, by partition.")


class DimensionView(Document):
    """A table that is being copied and followed."""

    name: str
    source: str | None = None
    source_version: int | None = default(
        None, "Of a Delta table: newest version whose changes are sent."
    )
    snapshot: SnapshotView
    generation: int
    copied_because: str | None = default(
        None, "Why the newest copy was begun; null of the first one."
    )
    low: PositionView | None = None
    high: PositionView | None = None
    position: PositionView | None = None
    changelog_version: int | None = None
    fold_version: int | None = None
    index_version: int | None = None
    lag_records: int | None = None
    streamed_records: int | None = None
    binlog_delay_ms: int | None = None
    evidence: str | None = default(None, "On what the copy counts as complete; null before.")
    waits_for: str | None = default(
        None, "What shows that somebody else's copy is complete, and is not there."
    )
    emitted: EmittedView | None = default(None, "Null before, and while a source is started again.")
    channels: list[ChangelogChannelView] = []
    freshness: FreshnessView | None = None
    verified: VerifiedView | None = default(None, "Null before the first `sluice verify`.")
    repaired: RepairedView | None = default(None, "The newest repair since the runner has started.")


class OpenTransactionView(Document):
    """A transaction of the stream's topic that has been open for more than five seconds."""

    topic: str | None = default(None, "Of a stream of several topics.")
    partition: int
    offset: int = Field(description="Of its first record: nothing behind it is read.")
    producer_id: int | None = default(None, "Null if the brokers do not tell.")
    transactional_id: str | None = default(
        None, "Null if the brokers do not tell, or do not know it any more."
    )
    behind: int = Field(description="Offsets of the partition that wait for its end.")
    since_ms: int = Field(
        description="When it began; when it was noticed, if the brokers do not tell."
    )
    age_ms: int
    text: str
    hint: str


class StreamHistoryView(Document):
    """The files that a stream reads before its topic."""

    place: str = Field(description="The partition of their rows, as offsets name it.")
    rows: int
    rows_read: int = Field(description="Whose batches are committed.")
    seconds_left: int | None = default(
        None, "Until the topic follows, at the present pace; null if unknown or read."
    )


class ProbeView(Document):
    """The stream whose records wait for the dimensions."""

    topic: str = Field(description="Of several topics the first names.")
    topics: list[str] = default([], "All of them. Of several, offsets are by topic/partition.")
    generated: str | None = default(
        None, "Table of the script whose records the job generates; its topic is internal."
    )
    history: StreamHistoryView | None = default(
        None, "Files that are read before the topic; null without them."
    )
    start_offsets: dict[str, int] = {}
    next_offsets: dict[str, int] = {}
    end_offsets: dict[str, int] = {}
    ends_at_ms: int | None = default(
        None, "When the ends of the topic were read; null if unknown now."
    )
    bounded_offsets: dict[str, int] | None = default(
        None, "Where the stream ends for this job; null if it does not."
    )
    held_records: int | None = default(
        None, "At most; see held_is_upper_bound. Null while unknown."
    )
    held_bytes: int | None = None
    lag_records: int | None = default(None, "At most; see held_is_upper_bound. Null while unknown.")
    held_is_upper_bound: bool = default(
        True,
        "held_records, held_at_open and lag_records count offsets: those of "
        "transaction markers, aborted and compacted records have no record.",
    )
    open_transactions: list[OpenTransactionView] = default(
        [], "What keeps partitions from being read further."
    )
    batch: int | None = None
    records_per_s: RecordRate = None
    rows_per_s: float | None = default(None, "Rows written a second, as `records_per_s`.")
    batch_ms: BatchTime = None
    latency_ms: int | None = default(
        None, "From a record's arrival to the commit of its row, at most; of the newest batch."
    )
    batch_stages_ms: dict[str, int] = default(
        {}, "How long index, join and commit of the newest batch took."
    )
    joined_records: int = 0
    matched: int | None = default(
        None, "Records with a row of each table, before WHERE; null without a table."
    )
    unmatched: int | None = default(
        None, "The other records: NULL with LEFT JOIN, no row with INNER JOIN."
    )
    dead_letters: int = default(0, "Of all batches; each INSERT counts.")
    open_dead_letters: OpenLetters = None

    @property
    def letters_to_settle(self) -> int:
        """Dead letters that need an operator; an older runner reports only all of them."""
        return self.dead_letters if self.open_dead_letters is None else self.open_dead_letters

    replayed_dead_letters: int = default(0, "A replay added the rows.")
    discarded_dead_letters: int = default(0, "With a recorded reason.")
    freshness_ms: dict[str, int | None] = default(
        {}, "Age of each table's newest change as the newest batch saw it."
    )


class EventInputView(Document):
    """One input of the join in event time: the stream, or a table with a watermark."""

    input: str = Field(description="probe, or the table's name.")
    watermark_ms: int | None
    use_processing_time: bool = False
    status: str = Field(description="ACTIVE or IDLE.")


class GeneratorView(Document):
    """The watermark generator of one partition, and whether it counts."""

    channel: str = Field(description="Input and partition, such as probe/0.")
    input: str
    topic: str | None = default(None, "Of a stream of several topics.")
    partition: int
    watermark_ms: int | None = Field(description="Null before its first one.")
    use_processing_time: bool = default(False, "It has switched: the clock is the time, for good.")
    backlog_end: int | None = default(None, "The offset from which on it is in processing time.")
    status: str = Field(description="ACTIVE, IDLE, or ENDED at the end of a bounded stream.")
    aligned: bool = default(True, "It counts for its input's watermark.")
    active_at_ms: int | None = default(
        None, "When its newest records came, or a batch first saw it."
    )
    idle_timeout_ms: int | None = default(None, "Null: it never becomes idle.")
    max_wait_ms: int | None = default(None, "Null: it never follows the clock.")


class WaitsForView(Document):
    """What records in event time wait for."""

    channel: str | None = None
    input: str | None = None
    topic: str | None = default(None, "Of a stream of several topics.")
    partition: int | None = None
    watermark_ms: int | None = None
    behind_ms: int | None = default(None, "Behind the stream, or what waits.")
    text: str


class LateRowsView(Document):
    """Records of a job with `join.late-rows.wait` that lack a match; `waiting_rows` counts them."""

    wait_ms: int = Field(description="How long a record waits, by the clock of its batches.")
    tables: list[str] = Field(description="The tables whose rows they wait for.")
    matched: int = Field(description="Records that waited and left with a match.")
    expired: int = Field(description="Records that waited to the end and left without one.")
    correct_ms: int | None = default(None, "How long a row still corrects the output after that.")
    corrected: int = default(0, "Records whose output such a row has corrected.")


class EventTimeView(Document):
    """Watermarks of a job in event time, and what waits for them."""

    watermark_ms: int | None = Field(description="The combined one of all inputs.")
    use_processing_time: bool = False
    window_watermark_ms: int | None = default(
        None, "What the windows have seen; null without windows."
    )
    emit: str | None = default(None, "on-periodic or on-event.")
    inputs: list[EventInputView] = []
    channels: list[GeneratorView] = []
    waiting_rows: int = 0
    waiting_bytes: int = 0
    oldest_waiting_ms: int | None = None
    next_window_ms: int | None = default(None, "When the next window is due.")
    window_rows: int = default(0, "Rows of the state of open windows.")
    late_records: int = 0
    fired_rows: int = default(0, "Rows that came out of windows.")
    state_files: dict[str, int] = {}
    waits_for: WaitsForView | None = None
    late_rows: LateRowsView | None = default(
        None, "Of a job with `join.late-rows.wait`; null for others."
    )


class JobProgress(Document):
    """How far a job is, as its runner tells it."""

    stalls: list[StallView] = default([], "All of them; `error` is the first.")
    epoch: int | None = None
    plan: Annotated[
        int | None,
        Field(description="Number of the plan that the runner has; an update gives the next one."),
    ] = None
    opened_at_ms: int | None = None
    held_at_open: int | None = default(
        None, "Records that were held when the gate opened; at most."
    )
    dimensions: list[DimensionView] = []
    combined_watermark: WatermarkView | None = None
    holding: HoldingView | None = default(
        None, "Records that wait for a table after the opening; null if none does."
    )
    probe: ProbeView | None = None
    event_time: EventTimeView | None = default(None, "Null unless records wait for watermarks.")
    writer: str | None = default(None, "Of a delta output: `columnar` or `spark`.")
    writer_reason: str | None = default(None, "What asks for Spark's own Delta writer.")
    versions_at_open: dict[str, int] = {}
    versions: dict[str, int] = {}


class RunnerReport(JobProgress):
    """What a runner writes into its job's directory about twice a second."""

    job_id: str
    pid: int
    state: str
    phase: Literal["LOAD", "JOIN"]
    reason: str
    error: ErrorView | None
    updated_at_ms: int
    started_at_ms: int
    warnings: list[WarningView]
    acknowledgements: list[AcknowledgementView]


class RunnerState(Document):
    """The job's runner process."""

    pid: int | None
    alive: bool
    adopted: bool = Field(description="Started by an earlier control plane.")
    started_at_ms: int | None
    status_age_ms: int | None = Field(description="Time since its last report.")
    crashes: int = Field(description="In a row; a healthy minute resets it.")
    restarts: int
    restart_at_ms: int | None = default(None, "When a runner that has ended is started again.")


class ReportView(Document):
    """The runner's report that the numbers of a job are from."""

    pid: int
    at_ms: int = Field(description="When it was written.")
    is_live: bool = Field(
        description="By the runner that lives now; what is only true of a moment is null otherwise."
    )


class StatusView(Document):
    """A job's state for people: the words that list, page and commands show."""

    word: str = Field(
        description="Starting, Copying (89 %), Catching up, Running, Waiting for …, "
        "Holding (stale), Stalled, Stopping, Stopped, Paused, Finished, Failed or Removing."
    )
    tone: Annotated[Literal["bad", "warn", "busy", "good", "rest"], OrNewer] = Field(
        description="How urgent it is: an error, a trouble, on its way, well, at rest."
    )
    since_ms: int = Field(description="When this state began.")
    sentence: str = Field(description="Why the job is in this state.")
    remedy: str | None = Field(description="What the operator can do; null if nothing is needed.")
    action: Annotated[Literal["start", "resume", "decide", "dead-letters"] | None, OrNewer] = Field(
        description="What a button beside the remedy does; null without one."
    )


class JobSummary(Document):
    """A job in a list."""

    id: str
    name: str
    status: StatusView | None = default(None, "The state in words; null of an older program.")
    state: Annotated[JobState, OrNewer]
    desired_state: Annotated[DesiredState, OrNewer]
    desired_by: str | None = default(None, "Who asked for it; null if that is not known.")
    phase: Annotated[Literal["LOAD", "JOIN"] | None, OrNewer]
    reason: str = Field(description="Why the job is where it is, in one sentence.")
    error: ErrorView | None
    created_at_ms: int
    updated_at_ms: int
    shared_table: str | None = default(
        None, "The table of the catalog that the job keeps for others."
    )


class SinkView(Document):
    """Where the rows of one INSERT go."""

    insert: int = Field(description="Its number in the script, from 1.")
    table: str = Field(description="As in the script.")
    connector: str
    place: str | None = Field(description="Path of a Delta table, topic of Kafka.")


class InputView(Document):
    """What a job reads: its stream, or a table."""

    table: str = Field(description="As in the script.")
    connector: str
    place: str | None = Field(
        description="Topic, path, table of a database, or the job that keeps a shared table."
    )


class JobDetail(JobProgress, JobSummary):
    """Everything about one job; `dimensions` and `probe` are as its runner last reported them."""

    sql: str = Field(description="The script; secrets are references.")
    sinks: list[SinkView] = default([], "One for each INSERT, in the order of the script.")
    inputs: list[InputView] = default([], "Streams and tables, each once.")
    warnings: list[WarningView] = Field(description="Of the submission and of the runner.")
    acknowledgements: list[AcknowledgementView] = default([], "The newest twenty.")
    runner: RunnerState
    report: ReportView | None = default(None, "Null before the first.")


class Problem(BaseModel):
    """An error (RFC 9457) with what to do about it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="urn:sluice:problem:<kind>")
    title: str
    status: int
    detail: str
    instance: str | None = None
    hint: str = Field(description="What the caller can do, in one sentence.")
    cause: str | None = default(None, "The text of a library or server behind it.")
    line: int | None = default(None, "Of the script, from 1.")
    column: int | None = default(None, "Of the script, from 1.")


class ListedJob(JobSummary):
    """A job in a list, with what tells at a glance how it does; null where unknown."""

    sinks: list[SinkView] = default([], "One for each INSERT, in the order of the script.")
    inputs: list[InputView] = default([], "Streams and tables, each once.")
    topic: str | None = default(None, "Of the stream; of several the first.")
    records_per_s: RecordRate = None
    batch_ms: BatchTime = None
    held_records: int | None = default(
        None, "That wait for the gate, at most, as in a job's `probe`."
    )
    lag_records: int | None = default(
        None, "That are not joined yet, at most, as in a job's `probe`."
    )
    freshness_ms: int | None = default(
        None, "The greatest of all tables: age of its newest change in the last batch"
    )
    as_of_ms: int | None = default(None, "The oldest T of all tables; null if one has none.")
    joined_records: int | None = None
    dead_letters: int | None = None
    open_dead_letters: OpenLetters = None

    @property
    def letters_to_settle(self) -> int | None:
        """As of a job's `probe`."""
        return self.dead_letters if self.open_dead_letters is None else self.open_dead_letters

    @property
    def waiting_records(self) -> int | None:
        """Records that are not joined yet."""
        return self.held_records if self.lag_records is None else self.lag_records

    recent: list[float | None] | None = default(
        None, "Records a second in the last 30 minutes, the oldest first; if wanted."
    )


class JobPage(Document):
    """Jobs, the newest first."""

    items: list[ListedJob]
    next_cursor: str | None
