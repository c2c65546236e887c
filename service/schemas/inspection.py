"""Documents about a job's data: dead letters, batches, rows, checks, acknowledgements.

Keys, values and columns come from streams and tables. A terminal or browser must escape them.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.schemas.document import Body, Document, OrNewer, default

Value = dict[str, Any]
_TEXT = r"^[^\x00-\x1f\x7f]*$"
By = Annotated[
    str,
    Field(max_length=100, pattern=_TEXT, description="Who asks; kept as it is, not checked."),
]


FaultPlaceName = Annotated[
    Literal["table", "changelog", "stream", "batches", "output"] | None,
    OrNewer,
    Field(description="Where in the job the fault is; null if that is not known."),
]


# Warnings and acknowledgements
# --------------------------------------------------------------------------------------------------


class WarningView(Document):
    """What does not stop the job, yet."""

    type: str
    message: str
    hint: str


class StallView(Document):
    """What keeps a part of the job from going on."""

    part: str = Field(
        description="source …, build …, probe, stream, kafka, changelog, topics, opening"
    )
    place: FaultPlaceName = None
    type: str
    message: str
    hint: str
    detail: str = default("", "The text of a library or server behind it; often empty.")
    choices: list[str] = default([], "Of an acknowledgement; empty if it needs none.")


class GapView(Document):
    """Offsets of a partition that the job will never join."""

    topic: str | None = default(None, "Of a stream of several topics.")
    partition: int
    first: Annotated[int, Field(alias="from", description="First offset of the gap.")]
    end: Annotated[int, Field(alias="to", description="Offset behind the gap.")]


class AcknowledgementView(Document):
    """What an operator has decided about a cause that the job must not decide itself."""

    id: str
    at_ms: int
    by: str
    cause: str
    choice: str
    reason: str = Field(description="The operator's words.")
    message: str = default("", "What the job said of the cause.")
    gaps: list[GapView] = []
    life: str | None = default(None, "Directory of the Spark checkpoint that began with it.")


class AcknowledgementPage(Document):
    """Acknowledgements, the oldest first."""

    items: list[AcknowledgementView]
    next_cursor: int | None


class Acknowledge(Body):
    """A decision."""

    cause: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,63}$", description="The error's type.")]
    choice: Annotated[
        str | None,
        Field(pattern=r"^[a-z]{1,32}$", description="The cause's first choice when left out."),
    ] = None
    reason: Annotated[
        str, Field(min_length=1, max_length=500, pattern=_TEXT, description="Why; it is kept.")
    ]
    by: By = "unknown"
    for_s: Annotated[
        int | None,
        Field(ge=1, le=86_400, description="Of cause `stale`: for how long records pass."),
    ] = None


class JobOrder(Body):
    """Who asks for a job to be paused or stopped; a token's name counts before it."""

    by: By | None = None


class RefusalView(Document):
    """Why a runner has refused a request."""

    type: str
    message: str
    hint: str


class RequestView(Document):
    """A request to a runner; it is durable, and carried out after a restart, too."""

    id: str
    status: Annotated[Literal["waiting", "done", "refused"], OrNewer]
    result: Value | None = None
    error: RefusalView | None = None


# Dead letters
# --------------------------------------------------------------------------------------------------


class DeadLetterView(Document):
    """A record of the stream that has no rows."""

    batch: int
    topic: str
    partition: int
    offset: int
    place: str | None = default(
        None, "partition/offset, of a stream of several topics with the topic first."
    )
    reason: str
    timestamp_ms: int | None = default(None, "When the record was written to its topic.")
    replayed_by: int | None = default(None, "Number of the replay that has added its last rows.")
    replayed_inserts: list[int] = default(
        [], "The INSERTs, from 1, that replays have given its rows."
    )
    discarded_by: str | None = default(None, "Who has discarded it; null if it was not discarded.")
    discarded_because: str | None = default(None, "The reason that was given.")
    bytes: int | None = default(None, "Length of the whole value.")
    truncated: bool = default(False, "Only the beginning is shown.")
    value: str | None = default(None, "The value, if it is UTF-8.")
    value_base64: str | None = default(None, "The value, if it is not.")


class LeftOutRowView(Document):
    """A row of a dimension that no message of its changelog topic can hold."""

    table: str
    key: str = Field(description="The columns of the primary key, as a JSON object.")
    bytes: int = Field(description="Of the declared columns.")
    reason: str


class DeadLetterPage(Document):
    """Dead letters in the order of batch, partition and offset."""

    items: list[DeadLetterView]
    rows: list[LeftOutRowView] = default(
        [], "On the first page: the rows that dimensions lack, the newest 1,000."
    )
    next_cursor: str | None


class LetterName(Body):
    """Which dead letter is meant."""

    topic: Annotated[
        str | None,
        Field(max_length=257, description="Needed where the stream has several topics."),
    ] = None
    partition: Annotated[int, Field(ge=0, lt=2**31)]
    offset: Annotated[int, Field(ge=0, lt=2**63)]
    batch: Annotated[
        int | None, Field(ge=0, lt=2**63, description="Where an offset has several letters.")
    ] = None


class Correction(LetterName):
    """A dead letter to be joined again, with its own bytes or with others."""

    value: str | None = default(None, "The corrected value; its own if null.")
    value_base64: str | None = default(None, "The same, for what is no text.")


MOST_MATCHED = 500  # characters
Matching = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=MOST_MATCHED,
        description="With `all`: only letters whose reason contains this text.",
    ),
]


class ReplayDeadLetters(Body):
    """Which dead letters are to be joined again; either `records` or `all`."""

    records: Annotated[list[Correction] | None, Field(min_length=1, max_length=10_000)] = None
    all: bool = False
    matching: Matching = None
    by: By = "unknown"


class DiscardDeadLetters(Body):
    """Which dead letters are to have no rows, and why; either `records` or `all`."""

    records: Annotated[list[LetterName] | None, Field(min_length=1, max_length=10_000)] = None
    all: bool = False
    matching: Matching = None
    reason: Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"\S")]
    by: By = "unknown"


class StillBad(Document):
    """A dead letter that stays one."""

    topic: str | None = default(None, "Of a stream of several topics.")
    partition: int
    offset: int
    reason: str
    batch: int | None = None
    inserts: list[int] = default([1], "The INSERTs, from 1, that have no rows of it.")


class DeadLetterReplayed(Document):
    """What a replay of dead letters has done; it adds each record's rows once."""

    replay: int | None
    records: int
    rows: int
    still_bad: list[StillBad] = []
    already_replayed: int = 0
    remaining: int = default(
        0,
        "Of those that were asked for: still bad, or left for another replay "
        "because one has a limit.",
    )


class DeadLettersDiscarded(Document):
    """What a discard has done; the letters stay where they are and are no longer pending."""

    discard: int | None = Field(description="Its number; null if nothing was to do.")
    records: int
    already_settled: int = default(0, "Had all rows, or were discarded before.")
    remaining: int = default(0, "Left for another discard: one has a limit.")


# Batches, rows, checks
# --------------------------------------------------------------------------------------------------


class _Open(BaseModel):
    """A model of what an inspection says; it may say more."""

    model_config = ConfigDict(frozen=True, extra="allow")


class BatchOutput(_Open):
    """What one INSERT of a statement set has of a batch."""

    insert: int = Field(description="Number in the script, from 1.")
    sink_table: str | None = None
    connector: str | None = None
    committed: bool
    committed_at_ms: int | None = None
    counts: Value | None = None
    output_version: int | None = None


class BatchView(_Open):
    """One batch: its pin and what it has committed."""

    batch: int
    pin: Value
    records: int | None = None
    committed: bool | None = None
    committed_at_ms: int | None = None
    counts: Value | None = None
    freshness_ms: dict[str, int | None] = default(
        {}, "Age of each table's newest change; null if unknown or none yet."
    )
    output_version: int | None = None
    dead_letters_version: int | None = None
    life: Value | None = None
    outputs: list[BatchOutput] = default(
        [], "Of a statement set of several INSERTs; above is what the first has."
    )


class DifferenceView(_Open):
    """A row that a repetition makes otherwise than the batch did."""

    kind: str = Field(description="missing, extra or changed.")
    table: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    expected: Any = None
    actual: Annotated[Any, Field(alias="found")] = None


class BatchReplay(_Open):
    """A batch, joined again under its pin and compared with what it had committed."""

    batch: int
    insert: int | None = default(None, "Of a statement set, which INSERT.")
    sink_table: str | None = None
    verdict: str | None = default(
        None, "identical, different, records-missing or nothing-to-compare."
    )
    identical: bool = Field(description="Whether the verdict is identical.")
    rows: int
    expected_rows: int
    pin: Value | None = None
    digest: str | None = None
    committed_digest: str | None = None
    difference_count: int | None = None
    differences: list[DifferenceView] = default([], "At most 100.")
    records_missing: list[GapView] = default([], "Offsets that Kafka does not keep any more.")


class DimensionLookup(_Open):
    """Which rows of a table a record has met."""

    name: str
    alias: str | None = None
    version: int | None = None
    as_of_ms: int | None = default(
        None, "T of the version, as the source proved it; null if unknown."
    )
    key: Any = None
    rows: list[Value] = default([], "At most 1,000.")
    rows_left_out: int = 0
    current_version: int | None = default(
        None, "Of current: its newest one up to the pinned version."
    )
    current_equal: bool | None = default(
        None, "Whether it has the very rows of the pinned version."
    )


class RowExplanation(_Open):
    """What became of one record of the stream, and why."""

    coordinates: Value
    insert: int | None = default(None, "Of a statement set, which INSERT.")
    sink_table: str | None = None
    state: str | None = default(
        None, "joined, filtered, waiting, late, in-windows, dead-letter, held, …"
    )
    reason: str | None = None
    batch: int | None = None
    pin: Value | None = None
    committed_at_ms: int | None = None
    record: str | None = None
    record_base64: str | None = None
    output_rows: list[Value] = default([], "At most 1,000.")
    output_rows_left_out: int = 0
    rows_from: str | None = None
    dimensions: list[DimensionLookup] = []
    dead_letter: Value | None = None
    event_time: Value | None = default(
        None, "Of a job with event time or windows: what it waited for, its windows."
    )


class CheckView(Document):
    """One thing that was looked at."""

    name: str
    ok: bool | None = Field(description="null: it could not be looked at.")
    detail: str
    hint: str | None = None


class CheckReport(Document):
    """What a doctor's visit has found; `ok` unless a check has failed."""

    ok: bool
    checks: list[CheckView]
