"""What a reader of a foreign topic reports: runs of records, and notifications of the connector.

Notifications come late, twice, not at all and in any order; a run of the snapshot reaches from the
time of one STARTED to that of the next.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from watermark.checks import checked


class Mark(StrEnum):
    """What a record says of the snapshot; rows of incremental ones say nothing."""

    FIRST = "first"
    ROW = "row"
    LAST = "last"
    STREAMED = "streamed"
    TRUNCATE = "truncate"


@checked
@dataclass(frozen=True, slots=True)
class RecordRun:
    """Records of one mark, next to each other in the order of their times, in any partitions.

    Attributes:
        first_ms: time of the oldest one in Kafka, `last_ms` of the newest.
        source_ms: newest time that their source blocks give, else that in Kafka.
        oldest_source_ms: the oldest one.
        position: a number of where in the database's log rows of a snapshot were read; 0 where
            nobody tells. What was read at one position is the same, whichever snapshot it is of.
    """

    mark: Mark
    partitions: frozenset[int]
    first_ms: int
    last_ms: int
    source_ms: int
    oldest_source_ms: int
    position: int = 0


@checked
@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A later snapshot has begun, or all rows are gone.

    Attributes:
        at_ms: changes from this time on are behind its beginning.
        rows_after_ms: rows of snapshots behind this time are its own.
        must_read_again: records of that time and later were taken for the older one's.
        is_empty: it is none, the table was truncated.
        position: where the row was read that has begun it; 0 if it began otherwise.
    """

    at_ms: int
    rows_after_ms: int
    must_read_again: bool
    is_empty: bool = False
    position: int = 0


class NoticeKind(StrEnum):
    """What a notification about a snapshot of the connector, or of our table, says."""

    STARTED = "started"
    SCANNED = "scanned"
    SCAN_FAILED = "scan_failed"
    COMPLETED = "completed"
    ABORTED = "aborted"
    SKIPPED = "skipped"


@checked
@dataclass(frozen=True, slots=True)
class Notice:
    """A notification; those of other tables are left out before.

    Attributes:
        at_ms: when the connector made it, by its clock.
        rows: of `SCANNED`: rows of the table that were scanned, None if it does not say.
    """

    kind: NoticeKind
    at_ms: int
    rows: int | None = None


@checked
@dataclass(slots=True)
class SnapshotRuns:
    """The notifications so far; asked for what belongs to a time."""

    notices: set[Notice] = field(default_factory=set)
    _starts_ms: list[int] = field(default_factory=list)

    def add(self, notices: Iterable[Notice]) -> None:
        self.notices.update(notices)
        self._starts_ms = sorted({n.at_ms for n in self.notices if n.kind is NoticeKind.STARTED})

    def run_at(self, at_ms: int) -> int:
        return bisect_right(self._starts_ms, at_ms)

    def newest_run(self) -> int:
        return len(self._starts_ms)

    def began_at_ms(self, run: int) -> int | None:
        return self._starts_ms[run - 1] if 0 < run <= len(self._starts_ms) else None

    def starts_between(self, after_ms: int, upto_ms: int) -> list[int]:
        return [at for at in self._starts_ms if after_ms < at <= upto_ms]

    def of(self, run: int, kind: NoticeKind) -> Notice | None:
        own = [n for n in self.notices if n.kind is kind and self.run_at(n.at_ms) == run]
        return max(own, key=lambda n: (n.at_ms, n.rows if n.rows is not None else -1), default=None)

    def newest(self, kind: NoticeKind) -> Notice | None:
        return max((n for n in self.notices if n.kind is kind), key=lambda n: n.at_ms, default=None)
