"""When a table in somebody else's topic is complete: marks, notifications, counts, offsets, time.

A connector copies a table and then streams its changes into a topic of several partitions. Whoever
reads the topic tells `ForeignSnapshot` what it met, in the order of the records' times, and is told
whether the table is complete, and if not what it waits for. The table is complete when

1. there is evidence that the connector has read all of it (`Evidence`),
2. nothing of that can still be on its way into the topic (`Quiet`), and
3. everything up to the ends that the partitions had *after* that is applied.

A later snapshot begins a new generation: its rows, and all that comes behind its beginning. What it
does not have again is gone once it is complete; before that nothing is.
"""
# reads better long: one rule, whose parts name each other.

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from watermark.checks import checked
from watermark.errors import InvalidTransitionError, reading_state
from watermark.model import Evidence, Quiet
from watermark.notifications import Notice, NoticeKind, SnapshotRuns


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


class FeedPhase(StrEnum):
    """How far the copy of a topic is, as its journal says."""

    NEW = "new"
    COPYING = "copying"
    WHOLE = "whole"
    ABANDONED = "abandoned"


class FeedStep(StrEnum):
    """What one durable write of a journal makes true.

    `BEGIN` reads the topic from its beginning, in a new generation. `ADVANCE` moves offsets up.
    `SUPERSEDE` begins the generation of a later snapshot, and moves offsets back where records of
    it were read already. `PROVE` says that the generation is complete. `ABANDON` says that the
    topic cannot be followed.
    """

    BEGIN = "begin"
    ADVANCE = "advance"
    SUPERSEDE = "supersede"
    PROVE = "prove"
    ABANDON = "abandon"


FEED_STEPS: Mapping[tuple[FeedPhase, FeedStep], FeedPhase] = {
    (FeedPhase.NEW, FeedStep.BEGIN): FeedPhase.COPYING,
    (FeedPhase.COPYING, FeedStep.ADVANCE): FeedPhase.COPYING,
    (FeedPhase.COPYING, FeedStep.SUPERSEDE): FeedPhase.COPYING,
    (FeedPhase.COPYING, FeedStep.PROVE): FeedPhase.WHOLE,
    (FeedPhase.COPYING, FeedStep.ABANDON): FeedPhase.ABANDONED,
    (FeedPhase.WHOLE, FeedStep.ADVANCE): FeedPhase.WHOLE,
    (FeedPhase.WHOLE, FeedStep.SUPERSEDE): FeedPhase.COPYING,
    (FeedPhase.WHOLE, FeedStep.ABANDON): FeedPhase.ABANDONED,
    (FeedPhase.ABANDONED, FeedStep.ABANDON): FeedPhase.ABANDONED,
    (FeedPhase.ABANDONED, FeedStep.BEGIN): FeedPhase.COPYING,
}


@checked
@dataclass(frozen=True, slots=True)
class FeedPosition:
    """What the rules of a journal are about; the rest of an entry belongs to it.

    >>> new = FeedPosition()
    >>> begun = new.after(FeedStep.BEGIN, topic_id="a", generation=1, offsets={0: 5})
    >>> begun.phase.value, begun.after(FeedStep.ADVANCE, offsets={0: 7}).offsets
    ('copying', {0: 7})

    Attributes:
        topic_id: of the topic that the offsets belong to.
        offsets: partition → next offset; everything below is sent and acknowledged.
    """

    phase: FeedPhase = FeedPhase.NEW
    topic_id: str = ""
    generation: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)

    def after(
        self,
        step: FeedStep,
        *,
        topic_id: str | None = None,
        generation: int | None = None,
        offsets: Mapping[int, int] | None = None,
    ) -> "FeedPosition":
        """The position after `step`; what is not given stays.

        Raises:
            InvalidTransitionError: `FEED_STEPS` has no such step, or it changes what only another
                step may change.
        """
        phase = FEED_STEPS.get((self.phase, step))
        if phase is None:
            raise _illegal(f'phase "{self.phase}" has no step "{step}"')
        after = FeedPosition(
            phase,
            self.topic_id if topic_id is None else topic_id,
            self.generation if generation is None else generation,
            dict(self.offsets if offsets is None else offsets),
        )
        begins = step in (FeedStep.BEGIN, FeedStep.SUPERSEDE)
        if after.generation != self.generation + begins:
            raise _illegal(
                f'step "{step}" leads from generation {self.generation} to {after.generation}'
            )
        if step is not FeedStep.BEGIN and after.topic_id != self.topic_id:
            raise _illegal(f'step "{step}" leads to topic {after.topic_id} from {self.topic_id}')
        back = {p for p, offset in self.offsets.items() if after.offsets.get(p, -1) < offset}
        if back and not begins:
            raise _illegal(f'step "{step}" moves partition {min(back)} back')
        if step is FeedStep.ABANDON and after.offsets != self.offsets:
            raise _illegal(f'step "{step}" moves offsets')
        return after


def _illegal(what: str) -> InvalidTransitionError:
    return InvalidTransitionError(
        f"journal of a topic: {what}",
        hint="Report this as a defect with the job's event log.",
    )


class Missing(StrEnum):
    """What a table waits for; `ABORTED` to `TRUNCATED` do not come by waiting."""

    EVIDENCE = "evidence"
    ROWS = "rows"
    QUIET = "quiet"
    ENDS = "ends"
    APPLIED = "applied"
    ABORTED = "aborted"
    SKIPPED = "skipped"
    TRUNCATED = "truncated"

    @property
    def needs_a_word(self) -> bool:
        return self in (Missing.ABORTED, Missing.SKIPPED, Missing.TRUNCATED)


@checked
@dataclass(frozen=True, slots=True)
class Waiting:
    """The table is not complete.

    Attributes:
        text: what is missing, a fragment such as "12 of 1,000,000 snapshot rows are here".
        evidence: what is known already.
    """

    missing: Missing
    text: str
    evidence: Evidence | None = None


@checked
@dataclass(frozen=True, slots=True)
class Complete:
    """The table is complete, on this evidence."""

    evidence: Evidence
    quiet: Quiet
    text: str


@checked
@dataclass(frozen=True, slots=True)
class SnapshotRules:
    """What is asked of the evidence.

    Attributes:
        settle_ms: without better proof: how long a record may be on its way into the topic.
        is_compacted: Kafka removes records that later ones of their key replace: rows are counted,
            but some may be missing.
        opens_when_skipped: a connector that copies nothing first is taken for one that has.
        replaces: a later snapshot is a new generation; else its rows are changes like others.
        counts: rows can be told apart by their keys.
        ends: of a topic that is no connector's: it is complete there. Else None.
        has_end: there is no record of the table behind the `ends`.
    """

    settle_ms: int = 120_000
    is_compacted: bool = False
    opens_when_skipped: bool = False
    replaces: bool = True
    counts: bool = True
    ends: tuple[tuple[int, int], ...] | None = None
    has_end: bool = False


@dataclass(slots=True)
class _Generation:
    """What is known of the snapshot that is read now; times are those of Kafka if not said."""

    began_ms: int | None = None
    newest_row_ms: int | None = None
    newest_source_ms: int | None = None
    oldest_source_ms: int | None = None
    oldest_change_ms: int | None = None
    newest_change_ms: int | None = None
    newest_other_ms: int | None = None
    last_ms: int | None = None
    first_source_ms: int | None = None
    first_position: int = 0
    positions: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    truncated: set[int] = field(default_factory=set)
    rows: int = 0
    committed_ms: int | None = None
    empty_ms: int | None = None
    evident_at_ms: int | None = None
    ends: dict[int, int] | None = None
    word: str | None = None
    was_truncated: bool = False
    complete: Complete | None = None

    @property
    def has_rows(self) -> bool:
        return self.began_ms is not None

    @property
    def position(self) -> int:
        return next(iter(self.positions)) if len(self.positions) == 1 else 0

    def take(self, run: RecordRun) -> None:
        """Records of this snapshot, or changes behind it."""
        if run.mark is Mark.STREAMED:
            self.oldest_change_ms = _least(self.oldest_change_ms, run.first_ms)
            self.newest_change_ms = _greatest(self.newest_change_ms, run.last_ms)
        else:
            self.began_ms = _least(self.began_ms, run.first_ms)
            self.newest_row_ms = _greatest(self.newest_row_ms, run.last_ms)
            self.newest_source_ms = _greatest(self.newest_source_ms, run.source_ms)
            self.oldest_source_ms = _least(self.oldest_source_ms, run.oldest_source_ms)
            at_ms = self.positions.get(run.position, run.first_ms)
            self.positions[run.position] = min(at_ms, run.first_ms)
        if run.mark is Mark.FIRST:
            self.first_source_ms = _greatest(self.first_source_ms, run.source_ms)
            self.first_position = run.position
        if run.mark is Mark.LAST:
            self.last_ms = _greatest(self.last_ms, run.last_ms)
        if run.mark in (Mark.LAST, Mark.STREAMED):
            self.ended |= run.partitions


_CLOCKS_MS = 500  # a connector restarts more slowly than its clock differs from its brokers'
_WITHOUT_ROWS = (
    Evidence.SNAPSHOT_SKIPPED,
    Evidence.TABLE_TRUNCATED,
    Evidence.END_OFFSETS,
    Evidence.BOUNDED_INPUT_ENDED,
)


@checked
class ForeignSnapshot:
    """Whether one table of a topic is complete; it is fed, and asked with the clock.

    Before it is complete every input counts; afterwards a record can only begin a new generation,
    which is incomplete again.

    Attributes:
        generation: number of the snapshot that is read now, from 1 on.
        changes_from_ms: changes that are older are of before it, None for the first one.
        rows_after_ms: rows that are not newer are of an earlier snapshot.
        position: where the row was read that has begun the snapshot; 0 if it began otherwise.
    """

    # reads better long: what can be told of a snapshot is many things, and the answer is one.

    def __init__(self, partitions: Iterable[int], rules: SnapshotRules) -> None:
        self._partitions = frozenset(partitions)
        self._rules = rules
        self._runs = SnapshotRuns()
        self._oldest_ms: dict[int, int] = {}
        self._removed: set[int] = set()
        self._now = _Generation()
        self.generation = 1
        self.changes_from_ms: int | None = None
        self.rows_after_ms: int | None = None
        self.position = 0

    # What is met
    # -----------------------------------------------------------------------------------------

    def begins(self, offsets: Mapping[int, int]) -> None:
        self._removed = {partition for partition, offset in offsets.items() if offset > 0}
        self._now.truncated = set(self._removed)

    def take(self, run: RecordRun) -> NewSnapshot | None:
        """Records of one mark.

        Returns:
            Where the snapshot begins that they belong to, if it is a later one: they are not taken.
            After `begin_generation` they are given again, from there on.
        """
        if run.mark is Mark.TRUNCATE:
            return self._truncate(run)
        now, rows = self._now, run.mark is not Mark.STREAMED
        started = self._started_within(run) if rows else None
        if started is not None:
            return self._new(started)
        if rows and self._is_later(run):
            if self._rules.replaces:
                return replace(self._new(self._began_ms(run)), position=run.position)
            self._forget_ends()
        for partition in run.partitions:
            self._oldest_ms.setdefault(partition, run.first_ms)
        now.take(run)
        return None

    def passed(self, at_ms: int) -> None:
        self._now.newest_other_ms = _greatest(self._now.newest_other_ms, at_ms)

    def _truncate(self, run: RecordRun) -> NewSnapshot | None:
        if self._now.was_truncated and self.changes_from_ms == run.first_ms:
            return None
        return replace(self._new(run.first_ms), is_empty=True)

    def _forget_ends(self) -> None:
        """The rows of a later snapshot are changes like others, but it must end before they are."""
        now = self._now
        now.ended, now.last_ms, now.began_ms = set(), None, None
        now.oldest_change_ms = now.newest_change_ms = None
        now.first_source_ms = None
        now.positions, now.first_position = {}, 0

    def _began_ms(self, run: RecordRun) -> int:
        at_ms = self._now.positions.get(run.position, 0) if run.position else 0
        is_own = at_ms > (self._now.began_ms or 0)  # not of the snapshot before
        return min(at_ms, run.first_ms) if is_own else run.first_ms

    def _started_within(self, run: RecordRun) -> int | None:
        """When the connector began a later snapshot that records of the run belong to."""
        began = self._now.began_ms
        if not self._rules.replaces or began is None:
            return None
        starts = self._runs.starts_between(began, run.last_ms)
        return starts[-1] if starts else None

    def _is_later(self, run: RecordRun) -> bool:
        """Whether the rows are none of the snapshot that is read: what is sent twice is no news.

        They come behind what only comes behind that snapshot, and the database is older there; or
        they begin with another first row. What was read at a position that rows of this snapshot
        have is no news either. (In chunks that threads read side by side the first row may come
        behind others, and a snapshot in the midst of a stream may have several positions.)
        """
        now = self._now
        if run.mark is Mark.FIRST and now.first_source_ms is not None:
            if run.position and now.first_position:
                is_newer = run.source_ms >= now.first_source_ms
                return is_newer and run.position != now.first_position
            return run.source_ms > now.first_source_ms
        if run.position and run.position in now.positions:
            return False
        if now.newest_source_ms is not None and run.source_ms <= now.newest_source_ms:
            return False
        if any(at is not None and run.first_ms > at for at in (now.oldest_change_ms, now.last_ms)):
            return True
        return now.complete is not None and (run.mark is Mark.FIRST or not now.has_rows)

    def _new(self, at_ms: int) -> NewSnapshot:
        now = self._now
        taken = (now.newest_row_ms, now.newest_change_ms, now.newest_other_ms)
        before = (now.last_ms, now.oldest_change_ms, now.newest_change_ms, now.empty_ms)
        least = at_ms - 1 if now.has_rows else -1
        return NewSnapshot(
            at_ms,
            max((at for at in before if at is not None and at < at_ms), default=least),
            any(at is not None and at >= at_ms for at in taken),
        )

    def begin_generation(self, new: NewSnapshot) -> None:
        """A later snapshot is read from now on."""
        seen_before = {p for p, oldest in self._oldest_ms.items() if oldest < new.at_ms}
        self._now = _Generation(
            truncated=set() if new.is_empty else self._removed - seen_before,
            was_truncated=new.is_empty,
            positions={new.position: new.at_ms} if new.position else {},
        )
        self.generation += 1
        self.changes_from_ms, self.rows_after_ms = new.at_ms, new.rows_after_ms
        self.position = new.position

    def is_older(self, mark: Mark, at_ms: int, position: int = 0) -> bool:
        """Whether a record that came late is of before the snapshot that is read now.

        It is not to be taken. A row is none of before where it was read at the same position as the
        one that has begun the snapshot: its partition was slower.
        """
        if mark is Mark.STREAMED:
            return self.changes_from_ms is not None and at_ms < self.changes_from_ms
        if position and position == self.position:
            return False
        return self.rows_after_ms is not None and at_ms <= self.rows_after_ms

    def notify(self, notices: Iterable[Notice]) -> NewSnapshot | None:
        """Notifications, in any order; as `take`, if they tell of a later snapshot."""
        self._runs.add(notices)
        now = self._now
        if not self._rules.replaces:
            return None
        if now.began_ms is not None and now.newest_row_ms is not None:
            starts = self._runs.starts_between(now.began_ms, now.newest_row_ms)
            if starts:
                return self._new(starts[-1])
        return self._announced()

    def forget_notices(self) -> None:
        self._runs = SnapshotRuns()

    def _announced(self) -> NewSnapshot | None:
        """A later snapshot of which no record tells: it found no rows, or they are compacted."""
        now, scan = self._now, self._runs.newest(NoticeKind.SCANNED)
        if scan is None:
            return None
        began = self._runs.began_at_ms(self._runs.run_at(scan.at_ms))
        behind = now.oldest_change_ms
        if behind is not None and scan.at_ms > behind + _CLOCKS_MS:
            return self._new(scan.at_ms if began is None or began <= behind else began)
        if began is None:
            return None
        if now.has_rows:
            is_later = self._runs.run_at(scan.at_ms) > self._run()
        else:
            is_later = began > (began if now.empty_ms is None else now.empty_ms)
        return self._new(began) if is_later else None

    def counted(self, rows: int) -> None:
        self._now.rows = rows

    def committed(self, source_ms: int) -> None:
        """The connector has committed an offset outside of a snapshot, of this source time.

        It commits only what the brokers have acknowledged. An offset that is older than the rows
        of the snapshot says nothing of them.
        """
        self._now.committed_ms = _greatest(self._now.committed_ms, source_ms)

    def ended(self, offsets: Mapping[int, int]) -> None:
        if self._now.ends is None:
            self._now.ends = dict(offsets)

    def word(self, reason: str) -> None:
        if self._now.word is None:
            self._now.word = reason
            self._now.ends = None

    # What is answered
    # -----------------------------------------------------------------------------------------

    def ask(self, now_ms: int, applied: Mapping[int, int]) -> Complete | Waiting:
        """Whether the table is complete, else what it waits for; once complete it stays so.

        Args:
            now_ms: the clock.
            applied: partition → offset up to which it is applied now. A partition that is read
                again has a lower one than before.
        """
        now = self._now
        if now.complete is not None:
            return now.complete
        evidence = self._evidence()
        if isinstance(evidence, Waiting):
            now.evident_at_ms = now.ends = None
            return evidence
        if now.evident_at_ms is None:
            now.evident_at_ms = now_ms
        quiet = self._quiet(evidence, now_ms)
        if isinstance(quiet, Waiting):
            now.ends = None
            return quiet
        now.ends = now.ends or (dict(self._rules.ends) if self._rules.ends else None)
        if now.ends is None:
            return Waiting(Missing.ENDS, "the ends of the partitions are to be read", evidence)
        behind = {p: end for p, end in now.ends.items() if applied.get(p, 0) < end}
        if behind:
            records = sum(end - applied.get(p, 0) for p, end in behind.items())
            text = f"{records:,} records up to the ends of the partitions are not applied"
            return Waiting(Missing.APPLIED, text, evidence)
        now.complete = Complete(evidence, quiet, now.word or self._rows_text())
        if not now.has_rows:
            now.empty_ms = self._runs.began_at_ms(self._runs.newest_run())
        return now.complete

    def _run(self) -> int:
        """The run of the connector's snapshot that this generation is of."""
        began = self._now.began_ms
        if began is None:
            return self._runs.newest_run()
        return self._runs.run_at(began)

    def _scan(self) -> Notice | None:
        return self._own(NoticeKind.SCANNED)

    def _own(self, kind: NoticeKind) -> Notice | None:
        """The newest notification of a kind about the snapshot of this generation.

        The connector reads a row before it says that it has read all: what is older than a row is
        of an earlier snapshot, whose STARTED may be all that was heard of so far.
        """
        notice, now = self._runs.of(self._run(), kind), self._now
        if notice is None:
            return None
        if now.newest_source_ms is not None and notice.at_ms < now.newest_source_ms:
            return None
        behind = now.oldest_change_ms
        if behind is not None and notice.at_ms > behind + _CLOCKS_MS:
            return None  # of a later one: changes come behind what is told of a snapshot
        return notice

    def _evidence(self) -> Evidence | Waiting:
        now = self._now
        if now.word is not None:
            return Evidence.OPERATOR_OVERRIDE
        if now.was_truncated and not now.has_rows:
            return Evidence.TABLE_TRUNCATED
        if self._own(NoticeKind.ABORTED) is not None:
            return Waiting(Missing.ABORTED, "the connector has given up its snapshot")
        evidence = None if self._rules.replaces and self._announced() else self._proof()
        if evidence is None:
            return self._no_evidence()
        scan = self._scan()
        total = None if scan is None or self._rules.ends is not None else scan.rows
        is_counted = self._rules.counts and not self._rules.is_compacted
        if total is not None and is_counted and now.rows != total:
            return Waiting(Missing.ROWS, f"{self._rows_text()} are here", evidence)
        if now.truncated and not (total is not None and is_counted) and total != 0:
            which = ", ".join(str(partition) for partition in sorted(now.truncated))
            text = f"the oldest records of partition {which} were removed before they were read"
            return Waiting(Missing.TRUNCATED, text, evidence)
        return evidence

    def _proof(self) -> Evidence | None:
        now, scan = self._now, self._scan()
        if self._rules.ends is not None:
            has_end = self._rules.has_end
            return Evidence.BOUNDED_INPUT_ENDED if has_end else Evidence.END_OFFSETS
        if now.last_ms is not None:
            return Evidence.LAST_SNAPSHOT_ROW
        if scan is not None and (now.has_rows or scan.rows == 0 or self._rules.is_compacted):
            return Evidence.TABLE_SCAN_COMPLETED
        if not now.has_rows:
            return Evidence.SNAPSHOT_SKIPPED if self._is_skipped_for_good() else None
        if self._own(NoticeKind.COMPLETED) is not None:
            return Evidence.TABLE_SCAN_COMPLETED
        if self._has_ended():
            return Evidence.FIRST_STREAMED_CHANGE
        return Evidence.CONNECTOR_OFFSETS if self._is_committed() else None

    def _no_evidence(self) -> Waiting:
        if self._is_skipped():
            text = "the connector has copied no rows of the table, it only streams changes"
            return Waiting(Missing.SKIPPED, text)
        if self._own(NoticeKind.SCAN_FAILED) is not None:
            return Waiting(Missing.ABORTED, "the connector could not read the table")
        scan = self._scan()
        if scan is not None:
            return Waiting(Missing.ROWS, f"{self._rows_text()} are here")
        if self._announced():
            return Waiting(Missing.EVIDENCE, "a later snapshot was read, of which no row is here")
        if not self._now.has_rows:
            return Waiting(Missing.EVIDENCE, "no snapshot row of the table is here")
        return Waiting(Missing.EVIDENCE, f"{self._rows_text()}, and no sign of its end")

    def _is_skipped(self) -> bool:
        """Whether the connector says, or its records show, that nothing was copied."""
        if self._now.has_rows or self._scan() is not None:
            return False
        skipped = self._runs.newest(NoticeKind.SKIPPED)
        return skipped is not None or self._now.oldest_change_ms is not None

    def _has_ended(self) -> bool:
        """Whether each partition has what only comes behind all rows of the snapshot.

        Changes may be behind a later snapshot, of which compaction has left no row.
        """
        now = self._now
        change = now.oldest_change_ms if self._rules.is_compacted and now.has_rows else None
        is_own = change is None or self._runs.run_at(change) == self._run()
        return is_own and now.ended >= self._partitions

    def _is_skipped_for_good(self) -> bool:
        return self._rules.opens_when_skipped and self._is_skipped()

    def _is_committed(self) -> bool:
        """Whether the connector's offset is behind the snapshot; some tell seconds only."""
        committed, source = self._now.committed_ms, self._now.newest_source_ms
        if committed is None or source is None:
            return False
        return committed // 1000 >= source // 1000

    def _quiet(self, evidence: Evidence, now_ms: int) -> Quiet | Waiting:
        """Why nothing is on its way.

        A count is no proof without the last row, nor where rows were read at several times, or
        positions if they are told: some may be of a snapshot that was aborted, with the first row
        of the next one on its way.
        """
        now = self._now
        if evidence is Evidence.OPERATOR_OVERRIDE:
            return Quiet.OPERATOR_OVERRIDE
        total = self.rows[1]
        is_same = now.position != 0 or now.oldest_source_ms == now.newest_source_ms
        is_one = now.last_ms is not None and is_same
        proofs = {
            Quiet.NO_SNAPSHOT: evidence in _WITHOUT_ROWS,
            Quiet.ROWS_COUNTED: total is not None
            and (total == 0 or (self._rules.counts and is_one and total == now.rows)),
            Quiet.PARTITIONS_ENDED: self._has_ended(),
            Quiet.CONNECTOR_OFFSETS: self._is_committed(),
        }
        proof = next((quiet for quiet, is_proven in proofs.items() if is_proven), None)
        if proof is not None:
            return proof
        assert now.evident_at_ms is not None
        left_ms = now.evident_at_ms + self._rules.settle_ms - now_ms
        if left_ms <= 0:
            return Quiet.SETTLE_TIME
        text = (
            f"rows may still be on their way into the topic; {-(-left_ms // 1000)} s of the "
            "settle time are left"
        )
        return Waiting(Missing.QUIET, text, evidence)

    def _rows_text(self) -> str:
        scan, now = self._scan(), self._now
        if scan is not None and scan.rows is not None:
            return f"{now.rows:,} of {scan.rows:,} snapshot rows"
        return f"{now.rows:,} snapshot rows" if self._rules.counts else "snapshot rows"

    @property
    def is_complete(self) -> bool:
        return self._now.complete is not None

    @property
    def rows(self) -> tuple[int, int | None]:
        scan = self._scan()
        return self._now.rows, None if scan is None else scan.rows

    # What is kept
    # -----------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        now = self._now
        values = asdict(replace(now, complete=None))
        return {
            **values,
            "ended": sorted(now.ended),
            "positions": sorted(now.positions.items()),
            "truncated": sorted(now.truncated),
            "ends": None if now.ends is None else sorted(now.ends.items()),
            "complete": None if now.complete is None else asdict(now.complete),
            "generation": self.generation,
            "changes_from_ms": self.changes_from_ms,
            "rows_after_ms": self.rows_after_ms,
            "position": self.position,
            "oldest_ms": sorted(self._oldest_ms.items()),
            "removed": sorted(self._removed),
            "notices": sorted([n.kind, n.at_ms, n.rows] for n in self._runs.notices),
        }

    @classmethod
    def restore(
        cls, value: Mapping[str, Any], partitions: Iterable[int], rules: SnapshotRules
    ) -> Self:
        """What `as_json` described.

        Raises:
            StateFormatError: it is damaged.
        """
        made = cls(partitions, rules)
        with reading_state("a foreign snapshot"):
            kept = dict(value)
            made.generation = int(kept.pop("generation"))
            made.changes_from_ms = kept.pop("changes_from_ms")
            made.rows_after_ms = kept.pop("rows_after_ms")
            made.position = int(kept.pop("position"))
            kept.pop("applied", None)  # of a journal that counted it apart from the offsets
            made._oldest_ms = {int(p): int(at) for p, at in kept.pop("oldest_ms")}
            made._removed = set(kept.pop("removed"))
            made._runs.add(Notice(NoticeKind(k), at, rows) for k, at, rows in kept.pop("notices"))
            done = kept.pop("complete")
            kept["ended"], kept["truncated"] = set(kept["ended"]), set(kept["truncated"])
            kept["positions"] = {int(p): int(at) for p, at in kept["positions"]}
            if kept["ends"] is not None:
                kept["ends"] = {int(p): int(offset) for p, offset in kept["ends"]}
            made._now = _Generation(**kept)
            if done is not None:
                made._now.complete = Complete(
                    Evidence(done["evidence"]), Quiet(done["quiet"]), done["text"]
                )
        return made


def _least(known: int | None, new: int) -> int:
    return new if known is None else min(known, new)


def _greatest(known: int | None, new: int) -> int:
    return new if known is None else max(known, new)
