"""Decides when a table in a foreign topic is complete: marks, notifications, counts, offsets, time.

Not we but a connector copies the table, and then streams its changes, into a topic of several
partitions. The reader of the topic reports records to `ForeignSnapshot`, in the order of their
times, and asks whether the table is complete. It is complete when

1. there is evidence that the connector has read all of it (`Evidence`),
2. nothing of that can still be on its way into the topic (`Quiet`), and
3. all records up to the end offsets, read *after* 1 and 2 held, are applied.

A later snapshot begins a new generation, which has its rows and all changes since its beginning.
Rows that it does not have are deleted only once it is complete.

There are three clocks: source times are the database's, times of notifications the connector's, and
all other times those of Kafka's records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from watermark.checks import checked
from watermark.foreign_journal import (
    Complete,
    CopyEvent,
    CopyState,
    SnapshotFacts,
    SnapshotJournal,
    greatest,
)
from watermark.foreign_records import Mark, NewSnapshot, Notice, NoticeKind, RecordRun, SnapshotRuns
from watermark.model import Evidence, Quiet

_CLOCKS_MS = 500  # most that clocks of connector and brokers differ; a restart takes longer
_WITHOUT_ROWS = (
    Evidence.SNAPSHOT_SKIPPED,
    Evidence.TABLE_TRUNCATED,
    Evidence.END_OFFSETS,
    Evidence.BOUNDED_INPUT_ENDED,
)


class Missing(StrEnum):
    """What a table waits for; `needs_override` where only an operator or a new snapshot helps."""

    EVIDENCE = "evidence"
    ROWS = "rows"
    QUIET = "quiet"
    ENDS = "ends"
    APPLIED = "applied"
    ABORTED = "aborted"
    SKIPPED = "skipped"
    TRUNCATED = "truncated"

    @property
    def needs_override(self) -> bool:
        return self in (Missing.ABORTED, Missing.SKIPPED, Missing.TRUNCATED)


@checked
@dataclass(frozen=True, slots=True)
class Waiting:
    """The table is not complete; `text` is a fragment that says what is missing."""

    missing: Missing
    text: str
    evidence: Evidence | None = None


@checked
@dataclass(frozen=True, slots=True)
class SnapshotRules:
    """Rules of evidence for one table."""

    # without better proof: how long a record may be on its way into the topic
    settle_ms: int = 120_000
    # Kafka removes records that later ones of their key replace: the count of rows may be low
    is_compacted: bool = False
    # a connector without a snapshot counts as one that has copied the table
    opens_when_skipped: bool = False
    # a later snapshot is a new generation; else its rows are ordinary changes
    replaces: bool = True
    counts: bool = True  # rows have keys, by which they are counted
    # where a topic of no connector is complete; None for a connector's
    ends: tuple[tuple[int, int], ...] | None = None
    has_end: bool = False  # the table has no record after the `ends`


@checked
class ForeignSnapshot:
    """Decides whether one table of a topic is complete; the session that reads the topic owns it.

    `COPY_STEPS` has its states. Once the table is complete, a record can only begin a new
    generation. `journal` is the durable part, a value that each step replaces.
    """

    # reads better long: each kind of evidence has its method.

    def __init__(
        self, partitions: Iterable[int], rules: SnapshotRules, journal: SnapshotJournal
    ) -> None:
        self._partitions = frozenset(partitions)
        self._rules = rules
        self._runs = SnapshotRuns()
        self._runs.add(journal.notices)
        self.journal = journal

    @property
    def generation(self) -> int:
        return self.journal.generation

    @property
    def _facts(self) -> SnapshotFacts:
        return self.journal.facts

    # Reports
    # -----------------------------------------------------------------------------------------

    def take(self, run: RecordRun) -> NewSnapshot | None:
        """Take records of one mark.

        Returns:
            The later snapshot that they belong to, if any. Then they are not taken; after
            `begin_generation` the caller passes them again, from its beginning on.
        """
        if run.mark is Mark.TRUNCATE:
            return self._truncate(run)
        rows, facts = run.mark is not Mark.STREAMED, self._facts
        started = self._started_within(run) if rows else None
        if started is not None:
            return self._new(started)
        if rows and self._is_later(run):
            if self._rules.replaces:
                return replace(self._new(self._began_ms(run)), position=run.position)
            facts = facts.without_ends(run)
        oldest_ms = self.journal.oldest_ms
        if new := run.partitions - oldest_ms.keys():
            oldest_ms = {**oldest_ms, **dict.fromkeys(new, run.first_ms)}
        self.journal = replace(self.journal, facts=facts.with_run(run), oldest_ms=oldest_ms)
        return None

    def passed(self, at_ms: int) -> None:
        """Take the newest time of records without a mark, such as those that were skipped."""
        self._note(newest_other_ms=greatest(self._facts.newest_other_ms, at_ms))

    def _note(self, **facts: Any) -> None:  # noqa: ANN401
        self.journal = replace(self.journal, facts=replace(self._facts, **facts))

    def _truncate(self, run: RecordRun) -> NewSnapshot | None:
        if self._facts.was_truncated and self.journal.changes_from_ms == run.first_ms:
            return None
        return replace(self._new(run.first_ms), is_empty=True)

    def _began_ms(self, run: RecordRun) -> int:
        """When the snapshot of `run` began: where a row of its position was first seen, if any."""
        at_ms = self._facts.positions.get(run.position, 0) if run.position else 0
        rows = self._facts.rows
        is_own = at_ms > (rows.oldest_ms if rows else 0)  # not of the previous snapshot
        return min(at_ms, run.first_ms) if is_own else run.first_ms

    def _started_within(self, run: RecordRun) -> int | None:
        """When the connector began a later snapshot that records of the run belong to."""
        rows = self._facts.rows
        if not self._rules.replaces or rows is None:
            return None
        starts = self._runs.starts_between(rows.oldest_ms, run.last_ms)
        return starts[-1] if starts else None

    def _is_later(self, run: RecordRun) -> bool:
        """True if the rows belong to a later snapshot; rows that are sent twice do not.

        They come after a record that only comes after the current snapshot, and their source time
        is newer; or they begin with another first row. Rows that were read at a position of this
        snapshot belong to it. (With parallel chunks the first row may come after others, and a
        snapshot in the midst of a stream may have several positions.)
        """
        facts = self._facts
        first = facts.firsts.get(run.table) if run.mark is Mark.FIRST else None
        if first is not None:
            if run.position and first.position:
                return run.source_ms >= first.source_ms and run.position != first.position
            return run.source_ms > first.source_ms
        if run.position and run.position in facts.positions:
            return False
        if facts.sources is not None and run.source_ms <= facts.sources.newest_ms:
            return False
        changed_ms = None if facts.changes is None else facts.changes.oldest_ms
        if any(at is not None and run.first_ms > at for at in (changed_ms, facts.last_ms)):
            return True
        return self.is_complete and (run.mark is Mark.FIRST or facts.rows is None)

    def _new(self, at_ms: int) -> NewSnapshot:
        facts = self._facts
        changes = facts.changes or (None, None)
        rows_ms = None if facts.rows is None else facts.rows.newest_ms
        taken = (rows_ms, changes[1], facts.newest_other_ms)
        before = (facts.last_ms, *changes, facts.empty_ms)
        least = -1 if facts.rows is None else at_ms - 1
        rows_after_ms = max((at for at in before if at is not None and at < at_ms), default=least)
        is_taken = any(at is not None and at >= at_ms for at in taken)
        return NewSnapshot(at_ms, rows_after_ms, must_read_again=is_taken)

    def begin_generation(self, new: NewSnapshot) -> None:
        self.journal = self.journal.superseded(new)

    def notify(self, notices: Iterable[Notice]) -> NewSnapshot | None:
        """Take notifications, in any order; returns as `take` where a later snapshot begins."""
        known = self.journal.notices.union(notices)
        if len(known) > len(self.journal.notices):
            self._runs.add(known)
            self.journal = replace(self.journal, notices=known)
        rows = self._facts.rows
        if not self._rules.replaces:
            return None
        if rows is not None:
            starts = self._runs.starts_between(rows.oldest_ms, rows.newest_ms)
            if starts:
                return self._new(starts[-1])
        return self._announced()

    def forget_notices(self) -> None:
        """Forget notifications that were matched before the connector's name was known."""
        self._runs = SnapshotRuns()
        self.journal = replace(self.journal, notices=frozenset())

    def _announced(self) -> NewSnapshot | None:
        """A later snapshot without any record here: it found no rows, or they are compacted."""
        facts, scan = self._facts, self._runs.newest(NoticeKind.SCANNED)
        if scan is None:
            return None
        began = self._runs.began_at_ms(self._runs.run_at(scan.at_ms))
        behind = facts.changes
        if behind is not None and scan.at_ms > behind.oldest_ms + _CLOCKS_MS:
            # the scan came after changes; a STARTED before them is of the snapshot before
            return self._new(scan.at_ms if began is None or began <= behind.oldest_ms else began)
        if began is None:
            return None
        if facts.rows is not None:
            is_later = self._runs.run_at(scan.at_ms) > self._run()
        else:
            is_later = facts.empty_ms is not None and began > facts.empty_ms
        return self._new(began) if is_later else None

    def counted(self, rows: int) -> None:
        """Take the number of distinct keys among the rows of this snapshot."""
        self._note(counted=rows)

    def committed(self, source_ms: int) -> None:
        """Take the source time of an offset that the connector committed outside of a snapshot.

        It commits only what the brokers have acknowledged. An offset that is older than the
        snapshot's rows is no evidence about them.
        """
        self._note(committed_ms=greatest(self._facts.committed_ms, source_ms))

    def ended(self, offsets: Mapping[int, int]) -> None:
        """Take the ends that `ask` waits for, else raise InvalidTransitionError."""
        self.journal = self.journal.after(CopyEvent.ENDS, ends=dict(offsets))

    def override(self, reason: str) -> None:
        if self._facts.override is None:
            facts = replace(self._facts, override=reason)
            self.journal = self.journal.after(CopyEvent.OVERRIDE, facts=facts)

    # Answers
    # -----------------------------------------------------------------------------------------

    def ask(self, now_ms: int, applied: Mapping[int, int]) -> Complete | Waiting:
        """Complete or waiting, by the clock; final once complete.

        `applied` has the offset of each partition; it is lower than before if one is read again.
        """
        if self.journal.complete is not None:
            return self.journal.complete
        evidence = self._evidence()
        if isinstance(evidence, Waiting):
            self.journal = self.journal.after(CopyEvent.DOUBT)
            return evidence
        self.journal = self.journal.after(CopyEvent.PROOF, at_ms=now_ms)  # the first one counts
        quiet = self._quiet(evidence, now_ms)
        if isinstance(quiet, Waiting):
            self.journal = self.journal.after(CopyEvent.UNREST)
            return quiet
        if self.journal.state is CopyState.PROVEN and self._rules.ends:
            self.ended(dict(self._rules.ends))
        ends = self.journal.ends
        if ends is None:
            return Waiting(Missing.ENDS, "the ends of the partitions are to be read", evidence)
        behind = {p: end for p, end in ends.items() if applied.get(p, 0) < end}
        if behind:
            records = sum(end - applied.get(p, 0) for p, end in behind.items())
            text = f"{records:,} records up to the ends of the partitions are not applied"
            return Waiting(Missing.APPLIED, text, evidence)
        facts = self._facts
        complete = Complete(evidence, quiet, facts.override or self._rows_text())
        if facts.rows is None:
            facts = replace(facts, empty_ms=self._runs.began_at_ms(self._runs.newest_run()))
        self.journal = self.journal.after(CopyEvent.APPLIED, complete=complete, facts=facts)
        return complete

    def _run(self) -> int:
        rows = self._facts.rows
        return self._runs.newest_run() if rows is None else self._runs.run_at(rows.oldest_ms)

    def _scan(self) -> Notice | None:
        return self._own(NoticeKind.SCANNED)

    def _own(self, kind: NoticeKind) -> Notice | None:
        """The newest notification of a kind about the snapshot of this generation.

        The connector reads a row before it reports that it has read all. A notification that is
        older than a row is about an earlier snapshot, even if only its STARTED arrived.
        """
        notice, facts = self._runs.of(self._run(), kind), self._facts
        if notice is None:
            return None
        if facts.sources is not None and notice.at_ms < facts.sources.newest_ms:
            return None
        if facts.changes is not None and notice.at_ms > facts.changes.oldest_ms + _CLOCKS_MS:
            return None  # of a later snapshot: changes come after the notifications of theirs
        return notice

    def _evidence(self) -> Evidence | Waiting:
        facts = self._facts
        if facts.override is not None:
            return Evidence.OPERATOR_OVERRIDE
        if facts.was_truncated and facts.rows is None:
            return Evidence.TABLE_TRUNCATED
        if self._own(NoticeKind.ABORTED) is not None:
            return Waiting(Missing.ABORTED, "the connector has given up its snapshot")
        if self._is_cut_short():
            text = "the connector was started again and has skipped the rest of its snapshot"
            return Waiting(Missing.ABORTED, text)
        evidence = None if self._rules.replaces and self._announced() else self._proof()
        if evidence is None:
            return self._no_evidence()
        scan = self._scan()
        total = None if scan is None or self._rules.ends is not None else scan.rows
        is_counted = self._rules.counts and not self._rules.is_compacted
        if total is not None and is_counted and facts.counted != total:
            return Waiting(Missing.ROWS, f"{self._rows_text()} are here", evidence)
        if facts.truncated and not (total is not None and is_counted) and total != 0:
            which = ", ".join(str(partition) for partition in sorted(facts.truncated))
            text = f"the oldest records of partition {which} were removed before they were read"
            return Waiting(Missing.TRUNCATED, text, evidence)
        return evidence

    def _proof(self) -> Evidence | None:
        facts, scan = self._facts, self._scan()
        if self._rules.ends is not None:
            has_end = self._rules.has_end
            return Evidence.BOUNDED_INPUT_ENDED if has_end else Evidence.END_OFFSETS
        if facts.last_ms is not None:
            return Evidence.LAST_SNAPSHOT_ROW
        if scan is not None and (
            facts.rows is not None or scan.rows == 0 or self._rules.is_compacted
        ):
            return Evidence.TABLE_SCAN_COMPLETED
        if facts.rows is None:
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
        if self._facts.rows is None:
            return Waiting(Missing.EVIDENCE, "no snapshot row of the table is here")
        return Waiting(Missing.EVIDENCE, f"{self._rows_text()}, and no sign of its end")

    def _is_skipped(self) -> bool:
        """True if the connector reports, or its records show, that nothing was copied."""
        if self._facts.rows is not None or self._scan() is not None:
            return False
        skipped = self._runs.newest(NoticeKind.SKIPPED)
        return skipped is not None or self._facts.changes is not None

    def _is_cut_short(self) -> bool:
        """True if a snapshot began, and a restart skipped it before any sign of its end.

        Debezium 3.5 does so when a snapshot in chunks is killed: it commits an offset of no
        snapshot while the chunks are read, and streams changes after the restart.
        """
        run = self._run()
        has_end = (
            self._facts.last_ms is not None
            or self._scan() is not None
            or self._runs.of(run, NoticeKind.COMPLETED) is not None
        )
        is_begun = self._runs.began_at_ms(run) is not None
        return is_begun and not has_end and self._own(NoticeKind.SKIPPED) is not None

    def _has_ended(self) -> bool:
        """True if each partition has a record that only comes after all rows of the snapshot.

        In a compacted topic the first change may belong to a later snapshot of which no row is
        left: then it proves nothing about this one.
        """
        facts = self._facts
        is_hidden = self._rules.is_compacted and facts.rows is not None
        changes = facts.changes if is_hidden else None
        is_own = changes is None or self._runs.run_at(changes.oldest_ms) == self._run()
        return is_own and facts.ended >= self._partitions

    def _is_skipped_for_good(self) -> bool:
        return self._rules.opens_when_skipped and self._is_skipped()

    def _is_committed(self) -> bool:
        """True if the connector's offset is after the snapshot; some have only seconds."""
        committed, sources = self._facts.committed_ms, self._facts.sources
        if committed is None or sources is None:
            return False
        return committed // 1000 >= sources.newest_ms // 1000

    def _quiet(self, evidence: Evidence, now_ms: int) -> Quiet | Waiting:
        """Why nothing is on its way.

        A count is no proof without the last row, nor if rows were read at several positions (if
        positions are unknown: at several times): some may be of an aborted snapshot, with the first
        row of the next one on its way.
        """
        facts = self._facts
        if evidence is Evidence.OPERATOR_OVERRIDE:
            return Quiet.OPERATOR_OVERRIDE
        total = self.rows[1]
        is_same = facts.position != 0 or facts.sources is None or len({*facts.sources}) == 1
        is_one = facts.last_ms is not None and is_same
        proofs = {
            Quiet.NO_SNAPSHOT: evidence in _WITHOUT_ROWS,
            Quiet.ROWS_COUNTED: total is not None
            and (total == 0 or (self._rules.counts and is_one and total == facts.counted)),
            Quiet.PARTITIONS_ENDED: self._has_ended(),
            Quiet.CONNECTOR_OFFSETS: self._is_committed(),
        }
        proof = next((quiet for quiet, is_proven in proofs.items() if is_proven), None)
        if proof is not None:
            return proof
        assert self.journal.proven_at_ms is not None
        left_ms = self.journal.proven_at_ms + self._rules.settle_ms - now_ms
        if left_ms <= 0:
            return Quiet.SETTLE_TIME
        text = (
            f"rows may still be on their way into the topic; {-(-left_ms // 1000)} s of the "
            "settle time are left"
        )
        return Waiting(Missing.QUIET, text, evidence)

    def _rows_text(self) -> str:
        scan, facts = self._scan(), self._facts
        if scan is not None and scan.rows is not None:
            return f"{facts.counted:,} of {scan.rows:,} snapshot rows"
        return f"{facts.counted:,} snapshot rows" if self._rules.counts else "snapshot rows"

    @property
    def is_complete(self) -> bool:
        return self.journal.complete is not None

    @property
    def rows(self) -> tuple[int, int | None]:
        scan = self._scan()
        return self._facts.counted, None if scan is None else scan.rows
