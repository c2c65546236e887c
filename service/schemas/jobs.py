"""Documents of jobs and of their list. None has a field for a secret."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.jobs.store.job import DesiredState, JobState
from service.schemas.document import Body, Document, OrNewer
from service.schemas.freshness import FreshnessView, HoldingView
from service.schemas.inspection import AcknowledgementView, FaultPlaceName, StallView, WarningView
from service.schemas.verification import RepairedView, VerifiedView

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

    sql: Annotated[str, Field(description="The script, at most 64 KiB of UTF-8.")]
    name: Annotated[
        str | None,
        Field(
            default=None,
            max_length=100,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$",
            description="Unique among jobs that can run; the sink's name when left out.",
        ),
    ]
    append: Annotated[
        bool, Field(description="Write to an output to which another job writes, too.")
    ] = False


class ErrorView(Document):
    """Why a job is STALLED or FAILED, or why it cannot be removed."""

    place: FaultPlaceName = None
    type: str
    message: str
    hint: str
    detail: Annotated[
        str, Field(description="The text of a library or server behind it; often empty.")
    ] = ""


class RemovalView(Document):
    """A job that is gone while some of its output is not."""

    left: Annotated[
        tuple[str, ...],
        Field(description="What is left and why: others have made it, or written to it."),
    ]


class PositionView(Document):
    """A place in a binlog or, as `file`, a Delta version; compared as numbers left to right."""

    epoch: int
    file: int
    pos: int
    row: int


class SnapshotView(Document):
    """How far the copy of a table is."""

    rows_done: int
    rows_total: int | None
    rows_total_is_estimate: bool
    chunks_done: int
    chunks_total: int | None
    is_copied: Annotated[bool, Field(description="Every part of the copy is read.")] = False


class WatermarkView(Document):
    """A promise; with `use_processing_time` the wall clock is the time from here on."""

    timestamp_ms: Annotated[
        int,
        Field(
            description="Event time; in processing time T, the last effective time that the "
            "source proves, and -2^63 before its first proof."
        ),
    ]
    use_processing_time: bool


class ChangelogChannelView(Document):
    """One partition of a changelog topic."""

    channel: str
    status: str
    watermark: WatermarkView
    aligned: Annotated[bool | None, Field(description="It counts for the combined watermark.")] = (
        None
    )


class EmittedView(Document):
    """The watermark that a source has written last into its changelog topic."""

    watermark: WatermarkView
    generation: int
    offsets: Annotated[dict[str, int], Field(description="Of its record, by partition.")]


class DimensionView(Document):
    """A table that is being copied and followed."""

    name: str
    source: str | None = None
    source_version: Annotated[
        int | None, Field(description="Of a Delta table: newest version whose changes are sent.")
    ] = None
    snapshot: SnapshotView
    generation: int
    copied_because: Annotated[
        str | None, Field(description="Why the newest copy was begun; null of the first one.")
    ] = None
    low: PositionView | None = None
    high: PositionView | None = None
    position: PositionView | None = None
    changelog_version: int | None = None
    fold_version: int | None = None
    index_version: int | None = None
    lag_records: int | None = None
    streamed_records: int | None = None
    binlog_delay_ms: int | None = None
    evidence: Annotated[
        str | None, Field(description="On what the copy counts as complete; null before.")
    ] = None
    waits_for: Annotated[
        str | None,
        Field(description="What shows that somebody else's copy is complete, and is not there."),
    ] = None
    emitted: Annotated[
        EmittedView | None, Field(description="Null before, and while a source is started again.")
    ] = None
    channels: list[ChangelogChannelView] = []
    freshness: FreshnessView | None = None
    verified: Annotated[
        VerifiedView | None, Field(description="Null before the first `sluice verify`.")
    ] = None
    repaired: Annotated[
        RepairedView | None, Field(description="The newest repair since the runner has started.")
    ] = None


class OpenTransactionView(Document):
    """A transaction of the stream's topic that has been open for more than five seconds."""

    topic: Annotated[str | None, Field(description="Of a stream of several topics.")] = None
    partition: int
    offset: Annotated[int, Field(description="Of its first record: nothing behind it is read.")]
    producer_id: Annotated[int | None, Field(description="Null if the brokers do not tell.")] = None
    transactional_id: Annotated[
        str | None,
        Field(description="Null if the brokers do not tell, or do not know it any more."),
    ] = None
    behind: Annotated[int, Field(description="Offsets of the partition that wait for its end.")]
    since_ms: Annotated[
        int, Field(description="When it began; when it was noticed, if the brokers do not tell.")
    ]
    age_ms: int
    text: str
    hint: str


class ProbeView(Document):
    """The stream whose records wait for the dimensions."""

    topic: Annotated[str, Field(description="Of several topics the first names.")]
    topics: Annotated[
        list[str],
        Field(description="All of them. Of several, offsets are by topic/partition."),
    ] = []
    start_offsets: dict[str, int] = {}
    next_offsets: dict[str, int] = {}
    end_offsets: dict[str, int] = {}
    ends_at_ms: Annotated[
        int | None, Field(description="When the ends of the topic were read; null if unknown now.")
    ] = None
    bounded_offsets: Annotated[
        dict[str, int] | None,
        Field(description="Where the stream ends for this job; null if it does not."),
    ] = None
    held_records: Annotated[
        int | None, Field(description="At most; see held_is_upper_bound. Null while unknown.")
    ] = None
    held_bytes: int | None = None
    lag_records: Annotated[
        int | None, Field(description="At most; see held_is_upper_bound. Null while unknown.")
    ] = None
    held_is_upper_bound: Annotated[
        bool,
        Field(
            description="held_records, held_at_open and lag_records count offsets: those of "
            "transaction markers, aborted and compacted records have no record."
        ),
    ] = True
    open_transactions: Annotated[
        list[OpenTransactionView],
        Field(description="What keeps partitions from being read further."),
    ] = []
    batch: int | None = None
    records_per_s: RecordRate = None
    batch_ms: BatchTime = None
    batch_stages_ms: Annotated[
        dict[str, int],
        Field(description="How long index, join and commit of the newest batch took."),
    ] = {}
    joined_records: int = 0
    matched: Annotated[int | None, Field(description="Null without a table to meet.")] = None
    unmatched: Annotated[int | None, Field(description="As `matched`.")] = None
    dead_letters: Annotated[int, Field(description="Of all batches; each INSERT counts.")] = 0
    open_dead_letters: OpenLetters = None
    replayed_dead_letters: Annotated[int, Field(description="A replay added the rows.")] = 0
    discarded_dead_letters: Annotated[int, Field(description="With a recorded reason.")] = 0
    freshness_ms: Annotated[
        dict[str, int | None],
        Field(description="Age of each table's newest change as the newest batch saw it."),
    ] = {}


class EventInputView(Document):
    """One input of the join in event time: the stream, or a table with a watermark."""

    input: Annotated[str, Field(description="probe, or the table's name.")]
    watermark_ms: int | None
    use_processing_time: bool = False
    status: Annotated[str, Field(description="ACTIVE or IDLE.")]


class GeneratorView(Document):
    """The watermark generator of one partition, and whether it counts."""

    channel: Annotated[str, Field(description="Input and partition, such as probe/0.")]
    input: str
    topic: Annotated[str | None, Field(description="Of a stream of several topics.")] = None
    partition: int
    watermark_ms: Annotated[int | None, Field(description="Null before its first one.")]
    use_processing_time: Annotated[
        bool, Field(description="It has switched: the clock is the time, for good.")
    ] = False
    backlog_end: Annotated[
        int | None, Field(description="The offset from which on it is in processing time.")
    ] = None
    status: Annotated[str, Field(description="ACTIVE or IDLE.")]
    aligned: Annotated[bool, Field(description="It counts for its input's watermark.")] = True
    active_at_ms: Annotated[
        int | None, Field(description="When a batch saw its newest records, or its beginning.")
    ] = None
    idle_timeout_ms: Annotated[int | None, Field(description="Null: it never becomes idle.")] = None


class WaitsForView(Document):
    """What records in event time wait for."""

    channel: str | None = None
    input: str | None = None
    topic: Annotated[str | None, Field(description="Of a stream of several topics.")] = None
    partition: int | None = None
    watermark_ms: int | None = None
    behind_ms: Annotated[int | None, Field(description="Behind the stream, or what waits.")] = None
    text: str


class EventTimeView(Document):
    """Watermarks of a job in event time, and what waits for them."""

    watermark_ms: Annotated[int | None, Field(description="The combined one of all inputs.")]
    use_processing_time: bool = False
    window_watermark_ms: Annotated[
        int | None, Field(description="What the windows have seen; null without windows.")
    ] = None
    emit: Annotated[str | None, Field(description="on-periodic or on-event.")] = None
    inputs: list[EventInputView] = []
    channels: list[GeneratorView] = []
    waiting_rows: int = 0
    waiting_bytes: int = 0
    oldest_waiting_ms: int | None = None
    next_window_ms: Annotated[int | None, Field(description="When the next window is due.")] = None
    window_rows: Annotated[int, Field(description="Rows of the state of open windows.")] = 0
    late_records: int = 0
    fired_rows: Annotated[int, Field(description="Rows that came out of windows.")] = 0
    state_files: dict[str, int] = {}
    waits_for: WaitsForView | None = None


class JobProgress(Document):
    """How far a job is, as its runner tells it."""

    stalls: Annotated[list[StallView], Field(description="All of them; `error` is the first.")] = []
    epoch: int | None = None
    opened_at_ms: int | None = None
    held_at_open: Annotated[
        int | None, Field(description="Records that were held when the gate opened; at most.")
    ] = None
    dimensions: list[DimensionView] = []
    combined_watermark: WatermarkView | None = None
    holding: Annotated[
        HoldingView | None,
        Field(description="Records that wait for a table after the opening; null if none does."),
    ] = None
    probe: ProbeView | None = None
    event_time: Annotated[
        EventTimeView | None, Field(description="Null unless records wait for watermarks.")
    ] = None
    writer: Annotated[
        str | None, Field(description="Of a delta output: `columnar` or `spark`.")
    ] = None
    writer_reason: Annotated[
        str | None, Field(description="What asks for Spark's own Delta writer.")
    ] = None
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
    adopted: Annotated[bool, Field(description="Started by an earlier control plane.")]
    started_at_ms: int | None
    status_age_ms: Annotated[int | None, Field(description="Time since its last report.")]
    crashes: Annotated[int, Field(description="In a row; a healthy minute resets it.")]
    restarts: int
    restart_at_ms: Annotated[
        int | None, Field(description="When a runner that has ended is started again.")
    ] = None


class ReportView(Document):
    """The runner's report that the numbers of a job are from."""

    pid: int
    at_ms: Annotated[int, Field(description="When it was written.")]
    is_live: Annotated[
        bool,
        Field(
            description="By the runner that lives now; what is only true of a moment is null "
            "otherwise."
        ),
    ]


class StatusView(Document):
    """A job's state for people: the words that list, page and commands show."""

    word: Annotated[
        str,
        Field(
            description="Starting, Copying (89 %), Catching up, Running, Waiting for …, "
            "Holding (stale), Stalled, Stopping, Stopped, Paused, Finished, Failed or Removing."
        ),
    ]
    tone: Annotated[
        Literal["bad", "warn", "busy", "good", "rest"],
        OrNewer,
        Field(description="How urgent it is: an error, a trouble, on its way, well, at rest."),
    ]
    since_ms: Annotated[int, Field(description="When this state began.")]
    sentence: Annotated[str, Field(description="Why the job is in this state.")]
    remedy: Annotated[
        str | None, Field(description="What the operator can do; null if nothing is needed.")
    ]
    action: Annotated[
        Literal["start", "resume", "decide", "dead-letters"] | None,
        OrNewer,
        Field(description="What a button beside the remedy does; null without one."),
    ]


class JobSummary(Document):
    """A job in a list."""

    id: str
    name: str
    status: Annotated[
        StatusView | None, Field(description="The state in words; null of an older program.")
    ] = None
    state: Annotated[JobState, OrNewer]
    desired_state: Annotated[DesiredState, OrNewer]
    phase: Annotated[Literal["LOAD", "JOIN"] | None, OrNewer]
    reason: Annotated[str, Field(description="Why the job is where it is, in one sentence.")]
    error: ErrorView | None
    created_at_ms: int
    updated_at_ms: int
    shared_table: Annotated[
        str | None, Field(description="The table of the catalog that the job keeps for others.")
    ] = None


class SinkView(Document):
    """Where the rows of one INSERT go."""

    insert: Annotated[int, Field(description="Its number in the script, from 1.")]
    table: Annotated[str, Field(description="As in the script.")]
    connector: str
    place: Annotated[str | None, Field(description="Path of a Delta table, topic of Kafka.")]


class JobDetail(JobProgress, JobSummary):
    """Everything about one job; `dimensions` and `probe` are as its runner last reported them."""

    sql: Annotated[str, Field(description="The script; secrets are references.")]
    sinks: Annotated[
        list[SinkView], Field(description="One for each INSERT, in the order of the script.")
    ] = []
    warnings: Annotated[
        list[WarningView], Field(description="Of the submission and of the runner.")
    ]
    acknowledgements: Annotated[
        list[AcknowledgementView], Field(description="The newest twenty.")
    ] = []
    runner: RunnerState
    report: Annotated[ReportView | None, Field(description="Null before the first.")] = None


class Problem(BaseModel):
    """An error (RFC 9457) with what to do about it."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(description="urn:sluice:problem:<kind>")]
    title: str
    status: int
    detail: str
    instance: str | None = None
    hint: Annotated[str, Field(description="What the caller can do, in one sentence.")]
    cause: Annotated[
        str | None, Field(description="The text of a library or server behind it.")
    ] = None
    line: Annotated[int | None, Field(description="Of the script, from 1.")] = None
    column: Annotated[int | None, Field(description="Of the script, from 1.")] = None


class ListedJob(JobSummary):
    """A job in a list, with what tells at a glance how it does; null where unknown."""

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
    as_of_ms: Annotated[
        int | None, Field(description="The oldest T of all tables; null if one has none.")
    ] = None
    joined_records: int | None = None
    dead_letters: int | None = None
    open_dead_letters: OpenLetters = None
    recent: Annotated[
        list[float | None] | None,
        Field(description="Records a second in the last 30 minutes, the oldest first; if wanted."),
    ] = None


class JobPage(Document):
    """Jobs, the newest first."""

    items: list[ListedJob]
    next_cursor: str | None
