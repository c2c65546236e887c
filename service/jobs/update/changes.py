"""The kinds of differences between two plans of a job, and which of them an update accepts."""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Self


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


class ChangeKind(StrEnum):
    """What differs between two plans, and whether an update may have it."""

    rule: Accepted | Refused

    def __new__(cls, value: str, rule: Accepted | Refused) -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.rule = value, rule
        return kind

    LABEL = "label", Accepted()
    BATCH_SIZE = "batch-size", Accepted()
    TRIGGER_INTERVAL = "trigger-interval", Accepted()
    CREDENTIALS = "credentials", Accepted()
    STREAM_OPTION = "stream-option", Accepted()
    DIMENSION_OPTION = "dimension-option", Accepted()
    SINK_OPTION = "sink-option", Accepted()
    PROJECTION = "projection", Accepted(RowEffect.VALUES)
    OUTPUT_ADDED = "output-column-added", Accepted(RowEffect.VALUES)
    TIME_ZONE = "time-zone", Accepted(RowEffect.VALUES)
    COMPUTED_COLUMN = "computed-column", Accepted(RowEffect.ROWS)
    STREAM_COLUMNS = "stream-columns", Accepted(RowEffect.ROWS)
    FILTER = "filter", Accepted(RowEffect.ROWS)
    UNNEST = "unnest", Accepted(RowEffect.ROWS)
    JOIN_TYPE = "join-type", Accepted(RowEffect.ROWS)
    JOIN_KEYS = "join-keys", Accepted(RowEffect.ROWS)
    JOIN_CONDITION = "join-condition", Accepted(RowEffect.ROWS)
    JOIN_ADDED = "join-added", Accepted(RowEffect.ROWS)
    JOIN_REMOVED = "join-removed", Accepted(RowEffect.ROWS)
    JOIN_ORDER = "join-order", Accepted(RowEffect.ROWS)
    DIMENSION_ADDED = "dimension-added", Accepted(RowEffect.ROWS)
    DIMENSION_REMOVED = "dimension-removed", Accepted(RowEffect.ROWS)
    OUTPUT_REMOVED = (
        "output-column-removed",
        Refused(
            "readers of the output expect the column",
            "Keep the column in INSERT INTO; SELECT may give it CAST(NULL AS its type).",
        ),
    )
    OUTPUT_TYPE = (
        "output-column-type",
        Refused("rows of older batches have the column in the old type", _NEW_COLUMN),
    )
    OUTPUT_NULLABILITY = (
        "output-column-nullability",
        Refused("the output was made with the column's NOT NULL, or without it", _NEW_COLUMN),
    )
    OUTPUT_ORDER = (
        "output-column-order",
        Refused(
            "the output has its columns in the old order",
            "Keep the order of the columns that are there; new ones may be anywhere.",
        ),
    )
    STREAM_IDENTITY = (
        "stream-identity",
        Refused("the job's offsets belong to the topics that it reads", _NEW_JOB),
    )
    STREAM_START = (
        "stream-start",
        Refused(
            "the job has started, and goes on behind its newest batch",
            "Keep the options scan.startup.* as they are; for another start submit another job.",
        ),
    )
    STREAM_BOUNDS = (
        "stream-bounds",
        Refused(
            "the end of the stream was resolved to offsets at submission",
            "Keep the options scan.bounded.* and execution.runtime-mode as they are.",
        ),
    )
    STREAM_FORMAT = (
        "stream-format",
        Refused(
            "records of the topic are read by the format that the job began with",
            "Keep the format and its options; for another format submit another job.",
        ),
    )
    KAFKA_PROPERTY = (
        "kafka-property",
        Refused(
            "the property may change which records are read, or what they are",
            "Keep this property as it is.",
        ),
    )
    DIMENSION_SOURCE = (
        "dimension-source",
        Refused("the copy of the table, and its position, belong to the source", _NEW_TABLE),
    )
    DIMENSION_COLUMNS = (
        "dimension-columns",
        Refused("the copy of the table has the columns and the key that it began with", _NEW_TABLE),
    )
    DIMENSION_COPY = (
        "dimension-copy",
        Refused(
            "the option changes how the table is copied or stored",
            "Keep the option as it is, or declare the table once more under another name.",
        ),
    )
    DIMENSION_NAME = (
        "dimension-name",
        Refused(
            "an older plan of the job used the name, and files of that copy have it",
            "Give the table a name that the job has never used.",
        ),
    )
    SHARED_DIMENSION = (
        "shared-dimension",
        Refused("a job is attached to shared tables at its submission only", _NEW_JOB),
    )
    SINK_IDENTITY = (
        "sink-identity",
        Refused("the commits of the job's batches are in its output", _NEW_JOB),
    )
    SINK_FORMAT = (
        "sink-format",
        Refused("readers of the topic expect the format that is there", _NEW_JOB),
    )
    SINK_KEY = "sink-key", Refused("rows of older batches are stored by the old key", _NEW_JOB)
    SINK_COLUMNS = (
        "sink-columns",
        Refused("the output was made with these columns and partitions", _NEW_JOB),
    )
    SINK_GUARANTEE = (
        "sink-guarantee",
        Refused(
            "the job's progress is stored beside the records in another form",
            "Keep 'sink.delivery-guarantee' and 'sink.transactional-id-prefix' as they are.",
        ),
    )
    EVENT_TIME = (
        "event-time",
        Refused(
            "the job's waiting rows and windows are stored as the old plan made them", _NEW_JOB
        ),
    )
    LATE_RECORDS = (
        "late-records",
        Refused("late records of older batches are in the table that the job began with", _NEW_JOB),
    )
    INSERTS = (
        "inserts",
        Refused(
            "each INSERT counts its batches from the first one on",
            "Keep the INSERTs and their order; submit a new one as another job.",
        ),
    )
    SHARED_TABLE = (
        "shared-table",
        Refused(
            "other jobs read the table",
            "Create another shared table, and move the jobs that read this one.",
        ),
    )
    SETTING = (
        "setting",
        Refused("the setting is none that may change while a job runs", "Keep SET as it is."),
    )
    NAME = "name", Refused("a job keeps its name", "Leave the name as it is.")
    UNKNOWN = (
        "unknown",
        Refused(
            "an update does not know this part of a plan",
            "Keep it as it is, or submit another job.",
        ),
    )


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
    if isinstance(kind.rule, Refused):
        return PlanChange(kind, of, kind.rule.reason, kind.rule.hint)
    return PlanChange(kind, of)


def effect_of(kind: ChangeKind) -> RowEffect:
    return kind.rule.effect if isinstance(kind.rule, Accepted) else RowEffect.NONE
