"""Reports of a reader of a foreign topic: runs of records, and notifications of the connector.

A foreign topic is one that Sluice only reads: a connector such as Debezium writes it. Notifications
come late, twice, not at all and in any order. An attempt is one try of the connector to take a
snapshot; it lasts from one STARTED to the next.
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
    STREAMED = "streamed"  # a change, which comes after the snapshot
    TRUNCATE = "truncate"  # SQL's TRUNCATE has emptied the table


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
    # hash of the position in the database's log where rows of a snapshot were read; 0 if unknown.
    # Rows read at one position are the same in every snapshot.
    log_position: int = 0
    # hash of the partition of the database's table, of `FIRST` rows; 0 unless records name several
    table_partition: int = 0
    # Kafka partition and offset of the last record of `TRUNCATE`, which order those of one time
    place: tuple[int, int] = (-1, -1)


@checked
@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A later snapshot has begun, or all rows are gone."""

    at_ms: int  # changes from this time on come after its beginning
    rows_after_ms: int  # snapshot rows after this time belong to it
    must_read_again: bool  # records of that time and later were taken as the older snapshot's
    # place of the TRUNCATE that emptied the table, of which there is no snapshot then
    truncated_at: tuple[int, int] | None = None
    log_position: int = 0  # where the row was read that began it; 0 if it began otherwise


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
    # of `SCANNED`: rows of the table that were scanned, None if unknown
    scanned_rows: int | None = None

    @property
    def order(self) -> tuple[int, int]:
        return self.at_ms, -1 if self.scanned_rows is None else self.scanned_rows


@checked
@dataclass(slots=True)
class Notices:
    """The notifications so far, by attempt; the first attempt is 1, before its STARTED is 0."""

    notices: set[Notice] = field(default_factory=set)
    _starts_ms: list[int] = field(default_factory=list)

    def add(self, notices: Iterable[Notice]) -> None:
        self.notices.update(notices)
        self._starts_ms = sorted({n.at_ms for n in self.notices if n.kind is NoticeKind.STARTED})

    def attempt_at(self, at_ms: int) -> int:
        return bisect_right(self._starts_ms, at_ms)

    def newest_attempt(self) -> int:
        return len(self._starts_ms)

    def began_ms(self, attempt: int) -> int | None:
        return self._starts_ms[attempt - 1] if 0 < attempt <= len(self._starts_ms) else None

    def starts_between(self, after_ms: int, upto_ms: int) -> list[int]:
        return [at for at in self._starts_ms if after_ms < at <= upto_ms]

    def newest_of(self, attempt: int, kind: NoticeKind) -> Notice | None:
        own = (n for n in self.notices if n.kind is kind and self.attempt_at(n.at_ms) == attempt)
        return max(own, key=lambda n: n.order, default=None)

    def newest(self, kind: NoticeKind) -> Notice | None:
        return max((n for n in self.notices if n.kind is kind), key=lambda n: n.order, default=None)
