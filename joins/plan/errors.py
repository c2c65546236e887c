"""Errors of the data path; docs/reference/errors.md lists all of them."""

import difflib
from collections.abc import Iterable
from typing import ClassVar, Self

from watermark.errors import SluiceError


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold()[:200], by_folded, n=1, cutoff=cutoff)
    return by_folded[close[0]] if close else None


class NameHint(str):
    """The hint that another name was meant."""

    __slots__ = ("meant",)
    meant: str

    def __new__(cls, meant: str) -> Self:
        hint = super().__new__(cls, f'Did you mean "{meant}"?')
        hint.meant = meant
        return hint

    def __getnewargs__(self) -> tuple[str]:
        return (self.meant,)


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    close = nearest(name, known)
    return otherwise if close is None else NameHint(close)


def of_columns(missing: str, columns: Iterable[str]) -> str:
    names = list(columns)
    listed = ", ".join(f'"{name}"' for name in names)
    return suggestion(missing, names, f"Declare columns that it has: {listed}.")


class JoinError(SluiceError, fault="join"):
    """A fault of the data path; also a query that ended, or Spark that did not start."""


class SourceError(JoinError, fault="source"):
    """A source cannot be used as it is; waiting does not help."""


class SourceUnavailableError(SourceError, fault="source-unavailable"):
    """A source cannot be reached now; the job waits and goes on when it is back."""


class StoreUnavailableError(SourceUnavailableError, OSError, fault="store-unavailable"):
    """An object store cannot be reached now; whatever needs it waits, as for a file system."""


class StoreRefusedError(SourceError, OSError, fault="store-refused"):
    """An object store does not let us, or does not keep what a table of ours needs."""


class SharedTableError(SourceError, fault="shared-table"):
    """A shared table stands still: its own job is stalled, paused, stopped or silent."""


class DefinitionError(SourceError, fault="definition"):
    """A table is not what its declaration says; the declaration of a job stays as it is."""

    # the hint where a job has the declaration already
    OF_A_JOB: ClassVar[str] = (
        "Change the table back (ADD COLUMN with its old name and type, where one was dropped) and "
        "it is copied again by itself; or remove the job and submit it with the new definition."
    )


class UnreadableSchemaError(SourceError, fault="unreadable-schema"):
    """A schema of a registry is none of Avro, or refers to others."""


class SnapshotNeededError(SourceError, fault="snapshot-needed"):
    """Binlog or Delta log cannot be followed on: the table must be copied again."""


class ServerChangedError(SourceError, fault="server-changed"):
    """Another database server answers: the source goes on there, or copies the table again."""


class ForeignRecordError(SourceError, fault="foreign-record"):
    """A record of a foreign topic is not understood, or cannot follow those before it."""

    choices: ClassVar[tuple[str, ...]] = ("skip",)

    def __init__(
        self, message: str, *, hint: str, detail: str = "", place: tuple[int, int] = (-1, -1)
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.place = place  # its partition and offset


class SnapshotUnprovenError(SourceError, fault="snapshot-unproven"):
    """A table in a foreign topic may never be shown to be complete; the rest goes on."""

    choices: ClassVar[tuple[str, ...]] = ("complete",)


class StaleTableError(SourceError, fault="stale"):
    """Records are too new for a table's time and wait; the job goes on when it has caught up."""

    choices: ClassVar[tuple[str, ...]] = ("release",)


class GuardError(SourceError, fault="guard"):
    """Going on would lose or mix up records: the probe waits for an operator's acknowledgement."""

    # what an acknowledgement may choose; the first is the default
    choices: ClassVar[tuple[str, ...]] = ("continue",)


class TopicIdentityChangedError(GuardError, fault="topic-identity-changed"):
    """The stream's topic was deleted and another one has its name."""


class TopicMissingError(GuardError, fault="topic-missing"):
    """A topic of the stream is gone."""

    def __init__(self, message: str, *, hint: str, topics: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.topics = topics  # the names of all that are


class PartitionsMissingError(GuardError, fault="partitions-missing"):
    """A partition that was there is not there any more."""


class OffsetsWentBackError(GuardError, fault="offsets-went-back"):
    """A partition ends before an offset that was seen or committed."""


class RecordsLostError(GuardError, fault="records-lost"):
    """Retention or a deletion has removed records that were not joined yet."""


class OutputTopicChangedError(GuardError, fault="output-topic-changed"):
    """An output's topic was created again, or ends before rows that were sent."""


class LogsDisagreeError(GuardError, fault="logs-disagree"):
    """The pins lack batches that are committed."""


class PinnedVersionExpiredError(JoinError, fault="pinned-version-expired"):
    """A version that a pin names cannot be read any more."""

    choices: ClassVar[tuple[str, ...]] = ("repin",)


class RequestError(JoinError, fault="request"):
    """A request of the control plane cannot be carried out."""


class NothingToAcknowledgeError(RequestError, fault="nothing-to-acknowledge"):
    """The fault that was acknowledged is not there."""


class SinkError(JoinError, fault="sink"):
    """An output is missing, refused us or does not fit."""


class ConstraintViolatedError(SinkError, fault="constraint-violated"):
    """A row violates a constraint of the output: its whole batch waits."""


class DiskFullError(JoinError, fault="disk-full"):
    """A disk is full, or a quota used up; the job retries, and continues once there is room."""

    # what helps
    HINT: ClassVar[str] = (
        "Free space on that disk, or move the directory to a larger one; jobs go on by themselves "
        "and nothing is lost."
    )


class PermissionDeniedError(JoinError, fault="permission-denied"):
    """The user of Sluice may not read or write a file; the runner tries the work again."""


class OutOfMemoryError(JoinError, fault="out-of-memory"):
    """A process of the job has no memory left; the runner tries the work again."""


class NetworkError(JoinError, fault="network"):
    """A task cannot reach a server; the runner tries the work again."""


class FileSystemError(JoinError, fault="file-system"):
    """The system refuses an operation on a file; the runner tries the work again."""


class CheckpointError(JoinError, fault="checkpoint"):
    """A job's files are damaged or of another format."""


class CheckpointInUseError(CheckpointError, fault="checkpoint-in-use"):
    """Another runner of the same job is alive."""


class FencedError(JoinError, fault="fenced"):
    """A newer runner has taken over; this one ends."""


class StoppingError(JoinError, fault="stopping"):
    """The job is being stopped; the batch is run after the next start."""


class IndexBuildError(JoinError, fault="index-build"):
    """The lookup index of a dimension version cannot be built or read."""


class IndexDirectoryError(JoinError, fault="index-directory"):
    """The directory of the lookup indexes cannot be written on a node."""

    HINT: ClassVar[str] = "Make room on that node, or name another directory in SLUICE_INDEX_DIR."


class IndexDiskFullError(IndexDirectoryError, fault="index-disk-full"):
    """There is no room for a lookup index; the runner builds it once there is."""

    def __init__(self, message: str, *, hint: str, needed_bytes: int | None = None) -> None:
        super().__init__(message, hint=hint)
        # room that the index needs beyond what it has, None if it is not known
        self.needed_bytes = needed_bytes


class IndexLockedError(IndexDirectoryError, fault="index-locked"):
    """Another process of the node has the lock of an index directory for too long: it may hang."""

    HINT: ClassVar[str] = (
        "See on that node what the process does; if it hangs, end it, and the index is made by "
        "whoever needs it."
    )


class ExpressionError(JoinError, fault="expression"):
    """An expression cannot be compiled or evaluated."""


class RecordsExpiredError(JoinError, fault="records-expired"):
    """Records of the stream are not in Kafka any more."""


class UnknownBatchError(JoinError, fault="unknown-batch"):
    """The job has no batch of that number, or its pin was pruned."""


class BatchNotCommittedError(JoinError, fault="batch-not-committed"):
    """The batch is running, or was abandoned: there is no output to look at."""


class NotReplayableError(JoinError, fault="not-replayable"):
    """Nothing tells what the batch has written, or its letters must be sent again."""


class UnknownTopicError(JoinError, fault="unknown-topic"):
    """The job does not read that topic or partition."""


class UnknownLetterError(JoinError, fault="unknown-letter"):
    """The job has no such dead letter."""


class UnknownDimensionError(JoinError, fault="unknown-dimension"):
    """The job does not join a table of that name."""


class UnknownVersionError(JoinError, fault="unknown-version"):
    """The dimension has no such version yet."""


class VersionExpiredError(JoinError, fault="version-expired"):
    """A version of a table is not kept any more; `sluice dim ls` names the oldest."""


class QuestionError(JoinError, fault="question"):
    """What was given cannot be a key, a cursor or a pair of versions of the table."""


class VerificationError(JoinError, fault="verification"):
    """A table cannot be compared with its source now, or at all."""


class RepairError(JoinError, fault="repair"):
    """Rows of a table cannot be sent again."""


class NotReadableError(JoinError, fault="not-readable"):
    """The sink keeps no rows that could be shown; only a delta sink does."""
