"""What the typed client answers: frozen models that let newer control planes say more."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Document = Mapping[str, Any]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Watermark(_Model):
    """A promise; with `use_processing_time` the wall clock is the time from here on."""

    timestamp_ms: int
    use_processing_time: bool


class ChannelWatermark(_Model):
    """What one partition of a table's changelog topic has promised."""

    dimension: str
    channel: str
    status: str
    watermark: Watermark


class InputWatermark(_Model):
    """What an input has promised in event time: `probe`, or a table with a watermark."""

    input: str
    watermark_ms: int | None = None
    use_processing_time: bool = False
    status: str = "ACTIVE"


class Generator(_Model):
    """The watermark generator of one partition; no watermark before its first one."""

    channel: str
    input: str
    partition: int
    watermark_ms: int | None = None
    use_processing_time: bool = False
    backlog_end: int | None = None
    status: str = "ACTIVE"
    aligned: bool = True
    active_at_ms: int | None = None
    idle_timeout_ms: int | None = None


class WaitsFor(_Model):
    """The channel that holds the combined watermark back, while records or windows wait for it."""

    channel: str | None = None
    behind_ms: int | None = None
    text: str


class EventTime(_Model):
    """Watermarks of a job in event time, and what waits for them."""

    watermark_ms: int | None = None
    use_processing_time: bool = False
    window_watermark_ms: int | None = None
    inputs: tuple[InputWatermark, ...] = ()
    channels: tuple[Generator, ...] = ()
    waiting_rows: int = 0
    oldest_waiting_ms: int | None = None
    next_window_ms: int | None = None
    window_rows: int = 0
    fired_rows: int = 0
    late_records: int = 0
    waits_for: WaitsFor | None = None


class Watermarks(_Model):
    """Each channel's watermark, and what the valve makes of them.

    Attributes:
        event_time: None unless the job's records wait for watermarks.
    """

    job_id: str
    phase: Literal["LOAD", "JOIN"] | None = None
    combined: Watermark | None = None
    channels: tuple[ChannelWatermark, ...] = ()
    event_time: EventTime | None = None


class JobFault(_Model):
    """Why a job is STALLED or FAILED."""

    type: str
    message: str
    hint: str


class JobStatus(_Model):
    """Where a job stands; members that are not named here are there, too."""

    id: str
    name: str
    state: str
    desired_state: str
    phase: Literal["LOAD", "JOIN"] | None = None
    reason: str = ""
    sql: str = ""
    error: JobFault | None = None
    versions: Mapping[str, int] = {}
    created_at_ms: int = 0
    updated_at_ms: int = 0


class Condition(_Model):
    """One thing that must be so before rows come out; `met` is None while it is not known."""

    name: str
    met: bool | None
    evidence: str = ""
    about: str | None = None
    hint: str | None = None


class WaitExplanation(_Model):
    """What a job waits for, in one sentence, and each condition with its evidence."""

    job_id: str
    state: str
    waiting: bool
    sentence: str
    hint: str | None = None
    conditions: tuple[Condition, ...] = ()


class Batch(_Model):
    """One batch: its pin and what it has committed."""

    batch: int
    pin: Document
    records: int | None = None
    committed: bool | None = None
    committed_at_ms: int | None = None
    counts: Document | None = None
    output_version: int | None = None


class DeadLetter(_Model):
    """A record of the stream that has no rows."""

    batch: int
    topic: str
    partition: int
    offset: int
    reason: str
    replayed_by: int | None = None
    replayed_inserts: tuple[int, ...] = ()
    value: str | None = None
    value_base64: str | None = None


class Transition(_Model):
    """A stored step of a job from one state to another."""

    sequence: int
    at_ms: int
    origin: Annotated[str | None, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    cause: str
    job_id: str | None = None


class StatusChanged(_Model):
    """What a job has just become, between transitions."""

    status: JobStatus


class Removed(_Model):
    """A job is gone: the last event of its stream."""

    job_id: str


Event = Transition | StatusChanged | Removed


class Column(_Model):
    """A column and its SQL type."""

    name: str
    type: str
    nullable: bool


class DimensionInfo(_Model):
    """A table that a job joins with, and the versions that can be read."""

    table: str
    source: str
    primary_key: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int | None
    oldest_version: int | None
    pinned_version: int | None
    complete: bool


class Row(_Model):
    """A row of a dimension and the change of its source that brought it."""

    key: Document
    values: Document
    position: Document
    source_ts_ms: int | None


class AbsentKey(_Model):
    """A key without a row, and why."""

    key: Document
    reason: str
    position: Document | None = None
    source_ts_ms: int | None = None


class Change(_Model):
    """What became of one key between two versions."""

    change: Literal["insert", "update", "delete"]
    key: Document
    before: Document | None
    after: Document | None


class OutputRow(_Model):
    """A row of the output and the batch that wrote it."""

    batch: int | None
    output_version: int
    values: Document


class OutputBatch(_Model):
    """A commit of the output, with the pin of its batch."""

    batch: int | None
    output_version: int
    rows: int
    pin: Document | None = None
    counts: Document | None = None


class OutputPreview(_Model):
    """The newest rows of an output."""

    table: str
    columns: tuple[Column, ...]
    batches: tuple[OutputBatch, ...]
    items: tuple[OutputRow, ...]
    truncated: bool = False
