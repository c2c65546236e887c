"""The kinds of differences between two plans of a job, and which of them an update accepts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class ChangeKind(StrEnum):
    """What differs between two plans."""

    LABEL = "label"
    BATCH_SIZE = "batch-size"
    TRIGGER_INTERVAL = "trigger-interval"
    CREDENTIALS = "credentials"
    STREAM_OPTION = "stream-option"
    DIMENSION_OPTION = "dimension-option"
    SINK_OPTION = "sink-option"
    PROJECTION = "projection"
    OUTPUT_ADDED = "output-column-added"
    TIME_ZONE = "time-zone"
    COMPUTED_COLUMN = "computed-column"
    STREAM_COLUMNS = "stream-columns"
    FILTER = "filter"
    UNNEST = "unnest"
    JOIN_TYPE = "join-type"
    JOIN_KEYS = "join-keys"
    JOIN_CONDITION = "join-condition"
    JOIN_ADDED = "join-added"
    JOIN_REMOVED = "join-removed"
    JOIN_ORDER = "join-order"
    DIMENSION_ADDED = "dimension-added"
    DIMENSION_REMOVED = "dimension-removed"
    OUTPUT_REMOVED = "output-column-removed"
    OUTPUT_TYPE = "output-column-type"
    OUTPUT_NULLABILITY = "output-column-nullability"
    OUTPUT_ORDER = "output-column-order"
    STREAM_IDENTITY = "stream-identity"
    STREAM_START = "stream-start"
    STREAM_BOUNDS = "stream-bounds"
    STREAM_FORMAT = "stream-format"
    KAFKA_PROPERTY = "kafka-property"
    DIMENSION_SOURCE = "dimension-source"
    DIMENSION_COLUMNS = "dimension-columns"
    DIMENSION_COPY = "dimension-copy"
    DIMENSION_NAME = "dimension-name"
    SHARED_DIMENSION = "shared-dimension"
    SINK_IDENTITY = "sink-identity"
    SINK_FORMAT = "sink-format"
    SINK_KEY = "sink-key"
    SINK_COLUMNS = "sink-columns"
    SINK_GUARANTEE = "sink-guarantee"
    EVENT_TIME = "event-time"
    LATE_RECORDS = "late-records"
    INSERTS = "inserts"
    SHARED_TABLE = "shared-table"
    SETTING = "setting"
    NAME = "name"
    UNKNOWN = "unknown"


class RowEffect(Enum):
    """What an accepted change does to rows of later batches."""

    NONE = 0  # the same rows
    VALUES = 1  # other values in rows of the same records
    ROWS = 2  # other rows


@dataclass(frozen=True, slots=True)
class Accepted:
    """An update may have it."""

    effect: RowEffect = RowEffect.NONE


@dataclass(frozen=True, slots=True)
class Refused:
    """An update must not have it."""

    reason: str
    hint: str


_NEW_JOB = "Submit the script as another job, with another output."
_NEW_TABLE = (
    "Declare the table once more under another name, join that one, and leave this one out."
)
_NEW_COLUMN = "Leave the column as it is and add a nullable one of another name beside it."

RULES: Mapping[ChangeKind, Accepted | Refused] = {
    ChangeKind.LABEL: Accepted(),
    ChangeKind.BATCH_SIZE: Accepted(),
    ChangeKind.TRIGGER_INTERVAL: Accepted(),
    ChangeKind.CREDENTIALS: Accepted(),
    ChangeKind.STREAM_OPTION: Accepted(),
    ChangeKind.DIMENSION_OPTION: Accepted(),
    ChangeKind.SINK_OPTION: Accepted(),
    ChangeKind.PROJECTION: Accepted(RowEffect.VALUES),
    ChangeKind.OUTPUT_ADDED: Accepted(RowEffect.VALUES),
    ChangeKind.TIME_ZONE: Accepted(RowEffect.VALUES),
    ChangeKind.COMPUTED_COLUMN: Accepted(RowEffect.ROWS),
    ChangeKind.STREAM_COLUMNS: Accepted(RowEffect.ROWS),
    ChangeKind.FILTER: Accepted(RowEffect.ROWS),
    ChangeKind.UNNEST: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_TYPE: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_KEYS: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_CONDITION: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_ADDED: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_REMOVED: Accepted(RowEffect.ROWS),
    ChangeKind.JOIN_ORDER: Accepted(RowEffect.ROWS),
    ChangeKind.DIMENSION_ADDED: Accepted(RowEffect.ROWS),
    ChangeKind.DIMENSION_REMOVED: Accepted(RowEffect.ROWS),
    ChangeKind.OUTPUT_REMOVED: Refused(
        "readers of the output expect the column",
        "Keep the column in INSERT INTO; SELECT may give it CAST(NULL AS its type).",
    ),
    ChangeKind.OUTPUT_TYPE: Refused(
        "rows of older batches have the column in the old type", _NEW_COLUMN
    ),
    ChangeKind.OUTPUT_NULLABILITY: Refused(
        "the output was made with the column's NOT NULL, or without it", _NEW_COLUMN
    ),
    ChangeKind.OUTPUT_ORDER: Refused(
        "the output has its columns in the old order",
        "Keep the order of the columns that are there; new ones may be anywhere.",
    ),
    ChangeKind.STREAM_IDENTITY: Refused(
        "the job's offsets belong to the topics that it reads", _NEW_JOB
    ),
    ChangeKind.STREAM_START: Refused(
        "the job has started, and goes on behind its newest batch",
        "Keep the options scan.startup.* as they are; for another start submit another job.",
    ),
    ChangeKind.STREAM_BOUNDS: Refused(
        "the end of the stream was resolved to offsets at submission",
        "Keep the options scan.bounded.* and execution.runtime-mode as they are.",
    ),
    ChangeKind.STREAM_FORMAT: Refused(
        "records of the topic are read by the format that the job began with",
        "Keep the format and its options; for another format submit another job.",
    ),
    ChangeKind.KAFKA_PROPERTY: Refused(
        "the property may change which records are read, or what they are",
        "Keep this property as it is.",
    ),
    ChangeKind.DIMENSION_SOURCE: Refused(
        "the copy of the table, and its position, belong to the source", _NEW_TABLE
    ),
    ChangeKind.DIMENSION_COLUMNS: Refused(
        "the copy of the table has the columns and the key that it began with", _NEW_TABLE
    ),
    ChangeKind.DIMENSION_COPY: Refused(
        "the option changes how the table is copied or stored",
        "Keep the option as it is, or declare the table once more under another name.",
    ),
    ChangeKind.DIMENSION_NAME: Refused(
        "an older plan of the job used the name, and files of that copy have it",
        "Give the table a name that the job has never used.",
    ),
    ChangeKind.SHARED_DIMENSION: Refused(
        "a job is attached to shared tables at its submission only", _NEW_JOB
    ),
    ChangeKind.SINK_IDENTITY: Refused(
        "the commits of the job's batches are in its output", _NEW_JOB
    ),
    ChangeKind.SINK_FORMAT: Refused(
        "readers of the topic expect the format that is there", _NEW_JOB
    ),
    ChangeKind.SINK_KEY: Refused("rows of older batches are stored by the old key", _NEW_JOB),
    ChangeKind.SINK_COLUMNS: Refused(
        "the output was made with these columns and partitions", _NEW_JOB
    ),
    ChangeKind.SINK_GUARANTEE: Refused(
        "the job's progress is stored beside the records in another form",
        "Keep 'sink.delivery-guarantee' and 'sink.transactional-id-prefix' as they are.",
    ),
    ChangeKind.EVENT_TIME: Refused(
        "the job's waiting rows and windows are stored as the old plan made them", _NEW_JOB
    ),
    ChangeKind.LATE_RECORDS: Refused(
        "late records of older batches are in the table that the job began with", _NEW_JOB
    ),
    ChangeKind.INSERTS: Refused(
        "each INSERT counts its batches from the first one on",
        "Keep the INSERTs and their order; submit a new one as another job.",
    ),
    ChangeKind.SHARED_TABLE: Refused(
        "other jobs read the table",
        "Create another shared table, and move the jobs that read this one.",
    ),
    ChangeKind.SETTING: Refused(
        "the setting is none that may change while a job runs", "Keep SET as it is."
    ),
    ChangeKind.NAME: Refused("a job keeps its name", "Leave the name as it is."),
    ChangeKind.UNKNOWN: Refused(
        "an update does not know this part of a plan", "Keep it as it is, or submit another job."
    ),
}


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One difference; without a `reason` it is accepted."""

    kind: ChangeKind
    of: str  # what differs, such as `output column "amount"`
    reason: str | None = None
    hint: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.reason is None

    def refused(self, reason: str, hint: str) -> "PlanChange":
        return PlanChange(self.kind, self.of, reason, hint)


def judged(kind: ChangeKind, of: str) -> PlanChange:
    rule = RULES[kind]
    if isinstance(rule, Refused):
        return PlanChange(kind, of, rule.reason, rule.hint)
    return PlanChange(kind, of)


def effect_of(kind: ChangeKind) -> RowEffect:
    rule = RULES[kind]
    return rule.effect if isinstance(rule, Accepted) else RowEffect.NONE
