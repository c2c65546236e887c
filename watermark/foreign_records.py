"""Reports of a reader of a foreign topic: runs of records, and notifications of the connector.

Notifications come late, twice, not at all and in any order. A run of the connector's snapshot spans
from one STARTED to the next.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from watermark.checks import checked


class Mark(StrEnum):
    """A record's mark for its snapshot; rows of incremental snapshots have none."""

    FIRST = "first"
    ROW = "row"
    LAST = "last"
    STREAMED = "streamed"
    TRUNCATE = "truncate"


@checked
@dataclass(frozen=True, slots=True)
class RecordRun:
    """Records of one mark, adjacent in the order of their times, in any partitions."""

    mark: Mark
    partitions: frozenset[int]
    first_ms: int  # time of the oldest one in Kafka, `last_ms` of the newest
    last_ms: int
    # newest time in their source blocks, else that in Kafka; `oldest_source_ms` is the oldest
    source_ms: int
    oldest_source_ms: int
    # number of the position in the database's log where rows of a snapshot were read; 0 if unknown.
    # Rows read at one position are the same in every snapshot.
    position: int = 0
    # number of the partition of the table, of `FIRST` rows; 0 unless records name several
    table: int = 0


@checked
@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A later snapshot has begun, or all rows are gone."""

    at_ms: int  # changes from this time on come after its beginning
    rows_after_ms: int  # snapshot rows after this time belong to it
    must_read_again: bool  # records of that time and later were taken as the older snapshot's
    is_empty: bool = False  # the table was truncated; there is no snapshot
    position: int = 0  # where the row was read that began it; 0 if it began otherwise


class NoticeKind(StrEnum):
    """Kind of a notification about a snapshot of the connector, or about the table."""

    STARTED = "started"
    SCANNED = "scanned"
    SCAN_FAILED = "scan_failed"
    COMPLETED = "completed"
    ABORTED = "aborted"
    SKIPPED = "skipped"


@checked
@dataclass(frozen=True, slots=True)
class Notice:
    """A notification that is not about another table."""

    kind: NoticeKind
    at_ms: int  # by the connector's clock
    rows: int | None = None  # of `SCANNED`: rows of the table that were scanned, None if unknown


@checked
@dataclass(slots=True)
class SnapshotRuns:
    """The notifications so far, by run of the connector's snapshot."""

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
