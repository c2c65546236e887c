"""Decides when a table in a foreign topic is complete: marks, notifications, counts, offsets, time.

A foreign topic is one that Sluice only reads: a connector such as Debezium copies a table into its
partitions, and then streams the changes. The process of the topic (`joins.adapters.topic.feed`)
reports records to `ForeignSnapshot`, in the order of their times, and asks whether the table is
complete. It is complete when

1. there is evidence that the connector has read all of it (`Evidence`),
2. nothing of that can still be on its way into the topic (`Quiet`), and
3. all records up to the end offsets, read *after* 1 and 2 held, are applied.

A later snapshot begins a new generation, which has its rows and all changes since its beginning.
Rows that it does not have are deleted only once it is complete.

There are three clocks: source times are the database's, times of notifications the connector's, and
all other times those of Kafka's records. `_CLOCKS_MS` counts where a notification and a record may
be sent right after each other. Notifications that are older than the source time of a row are
ignored: a database whose clock is ahead only delays the evidence.
"""

import math
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
from watermark.foreign_records import Mark, NewSnapshot, Notice, NoticeKind, Notices, RecordRun
from watermark.model import Evidence, Quiet

_CLOCKS_MS = 500  # most that clocks of connector and brokers differ; a restart takes longer
_WITHOUT_SNAPSHOT = (  # no snapshot has rows that could be on their way
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
        self._attempts = Notices()
        self._attempts.add(journal.notices)
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
            return self._new_snapshot(started)
        if rows and self._is_later(run):
            if self._rules.replaces:
                new = self._new_snapshot(self._began_ms(run))
                return replace(new, log_position=run.log_position)
            facts = facts.without_ends(run)
        oldest_ms = self.journal.oldest_ms
        if unseen := run.partitions - oldest_ms.keys():
            oldest_ms = {**oldest_ms, **dict.fromkeys(unseen, run.first_ms)}
        self.journal = replace(self.journal, facts=facts.with_run(run), oldest_ms=oldest_ms)
        return None

    def take_unmarked(self, at_ms: int) -> None:
        """Take the newest time of records without a mark, such as those that were skipped."""
        self._note(newest_other_ms=greatest(self._facts.newest_other_ms, at_ms))

    def _note(self, **facts: Any) -> None:  # noqa: ANN401
        self.journal = replace(self.journal, facts=replace(self._facts, **facts))

    def _truncate(self, run: RecordRun) -> NewSnapshot | None:
        """The empty table, unless it is known.

        In one partition offsets order what has one time; between partitions nothing does.
        """
        known, is_same_time = self._facts.truncated_at, run.first_ms == self.journal.changes_from_ms
        if known == run.place or (known and known[0] != run.place[0] and is_same_time):
            return None
        return replace(self._new_snapshot(run.first_ms), truncated_at=run.place)

    def _began_ms(self, run: RecordRun) -> int:
        """When the snapshot of `run` began: when a row of its position was first seen, if any."""
        facts = self._facts
        at_ms = facts.log_positions.get(run.log_position, 0) if run.log_position else 0
        is_own = at_ms > (facts.row_times.oldest_ms if facts.row_times else 0)  # not of this one
        return min(at_ms, run.first_ms) if is_own else run.first_ms

    def _started_within(self, run: RecordRun) -> int | None:
        """When the connector began a later snapshot that records of the run belong to."""
        times = self._facts.row_times
        if not self._rules.replaces or times is None:
            return None
        starts = self._attempts.starts_between(times.oldest_ms, run.last_ms)
        return starts[-1] if starts else None

    def _is_later(self, run: RecordRun) -> bool:
        """True if the rows belong to a later snapshot; rows that are sent twice do not.

        A first row beside a known one is of a later snapshot if it is another row: read at another
        position and not older, or newer where positions are unknown. Other rows are if they were
        read at no position of this snapshot, are newer than all its rows in source time, and come
        after a change or the last row. (With parallel chunks the first row may come after others,
        and a snapshot in the midst of a stream may have several positions.)
        """
        facts = self._facts
        first = facts.firsts.get(run.table_partition) if run.mark is Mark.FIRST else None
        if first is not None:
            if run.log_position and first.log_position:  # two snapshots may have one time
                is_other = run.log_position != first.log_position
                return is_other and run.source_ms >= first.source_ms
            return run.source_ms > first.source_ms
        if run.log_position and run.log_position in facts.log_positions:
            return False
        if facts.row_source_times is not None and run.source_ms <= facts.row_source_times.newest_ms:
            return False
        changed_ms = None if facts.change_times is None else facts.change_times.oldest_ms
        if any(at is not None and run.first_ms > at for at in (changed_ms, facts.last_ms)):
            return True
        return self.is_complete and (run.mark is Mark.FIRST or facts.row_times is None)

    def _new_snapshot(self, began_ms: int) -> NewSnapshot:
        """A snapshot that began at `began_ms`; rows up to the sign of this one's end are not its.

        Without a sign, rows before `began_ms` are not; without rows here, all are.
        """
        facts = self._facts
        changes = facts.change_times or (None, None)
        signs = (facts.last_ms, *changes, facts.empty_attempt_ms)
        without_sign = -1 if facts.row_times is None else began_ms - 1
        before = (at for at in signs if at is not None and at < began_ms)
        newest_row_ms = None if facts.row_times is None else facts.row_times.newest_ms
        taken = (newest_row_ms, changes[1], facts.newest_other_ms)
        return NewSnapshot(
            began_ms,
            rows_after_ms=max(before, default=without_sign),
            must_read_again=any(at is not None and at >= began_ms for at in taken),
        )

    def begin_generation(self, new: NewSnapshot) -> None:
        self.journal = self.journal.superseded(new)

    def notify(self, notices: Iterable[Notice]) -> NewSnapshot | None:
        """Take notifications, in any order; returns as `take` where a later snapshot begins."""
        known = self.journal.notices.union(notices)
        if len(known) > len(self.journal.notices):
            self._attempts.add(known)
            self.journal = replace(self.journal, notices=known)
        times = self._facts.row_times
        if not self._rules.replaces:
            return None
        if times is not None:
            starts = self._attempts.starts_between(times.oldest_ms, times.newest_ms)
            if starts:
                return self._new_snapshot(starts[-1])
        return self._snapshot_without_records()

    def forget_notices(self) -> None:
        """Forget all notifications; the caller, who learns the connector's name, passes its own."""
        self._attempts = Notices()
        self.journal = replace(self.journal, notices=frozenset())

    def _snapshot_without_records(self) -> NewSnapshot | None:
        """A later snapshot that only its scan shows: it found no rows, or they are compacted."""
        facts, scan = self._facts, self._attempts.newest(NoticeKind.SCANNED)
        if scan is None:
            return None
        attempt = self._attempts.attempt_at(scan.at_ms)
        began_ms, changes = self._attempts.began_ms(attempt), facts.change_times
        if changes is not None and scan.at_ms > changes.oldest_ms + _CLOCKS_MS:
            if began_ms is None or began_ms <= changes.oldest_ms:  # a STARTED of this generation
                began_ms = scan.at_ms
            return self._new_snapshot(began_ms)
        if began_ms is None:
            return None
        if facts.row_times is not None:
            is_later = attempt > self._attempt()
        else:
            is_later = facts.empty_attempt_ms is not None and began_ms > facts.empty_attempt_ms
        return self._new_snapshot(began_ms) if is_later else None

    def take_row_count(self, rows: int) -> None:
        """Take the number of distinct keys among the rows of this snapshot."""
        self._note(row_count=rows)

    def take_commit(self, source_ms: int) -> None:
        """Take the source time of an offset that the connector committed outside of a snapshot.

        It commits only what the brokers have acknowledged. An offset that is older than the
        snapshot's rows is no evidence about them.
        """
        self._note(committed_ms=greatest(self._facts.committed_ms, source_ms))

    def take_ends(self, offsets: Mapping[int, int]) -> None:
        """Take the partitions' ends; InvalidTransitionError if `ask` does not wait for them."""
        self.journal = self.journal.after(CopyEvent.ENDS, ends=dict(offsets))

    def override(self, reason: str) -> None:
        """Take the operator's reason to declare the table complete; only the first one counts."""
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
            self.journal = self.journal.after(CopyEvent.NO_EVIDENCE)
            return evidence
        self.journal = self.journal.after(CopyEvent.EVIDENCE, at_ms=now_ms)  # the first time counts
        quiet = self._quiet(evidence, now_ms)
        if isinstance(quiet, Waiting):
            self.journal = self.journal.after(CopyEvent.IN_FLIGHT)
            return quiet
        if self.journal.state is CopyState.PROVEN and self._rules.ends:
            self.take_ends(dict(self._rules.ends))
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
        if facts.row_times is None:
            began_ms = self._attempts.began_ms(self._attempts.newest_attempt())
            facts = replace(facts, empty_attempt_ms=began_ms)
        self.journal = self.journal.after(CopyEvent.APPLIED, complete=complete, facts=facts)
        return complete

    def _attempt(self) -> int:
        times, attempts = self._facts.row_times, self._attempts
        return attempts.newest_attempt() if times is None else attempts.attempt_at(times.oldest_ms)

    def _scan(self) -> Notice | None:
        return self._own(NoticeKind.SCANNED)

    def _own(self, kind: NoticeKind) -> Notice | None:
        """The newest notification of a kind about the snapshot of this generation.

        The connector reads a row before it reports that it has read all. A notification that is
        older than a row is about an earlier snapshot, even if only its STARTED arrived.
        """
        facts, notice = self._facts, self._attempts.newest_of(self._attempt(), kind)
        rows, changes = facts.row_source_times, facts.change_times
        if notice is None or (rows is not None and notice.at_ms < rows.newest_ms):
            return None
        if changes is not None and notice.at_ms > changes.oldest_ms + _CLOCKS_MS:
            return None  # of a later snapshot: changes come after the notifications of theirs
        return notice

    def _evidence(self) -> Evidence | Waiting:
        facts = self._facts
        if facts.override is not None:
            return Evidence.OPERATOR_OVERRIDE
        if facts.truncated_at is not None and facts.row_times is None:
            return Evidence.TABLE_TRUNCATED
        if self._own(NoticeKind.ABORTED) is not None:
            return Waiting(Missing.ABORTED, "the connector has given up its snapshot")
        if self._is_cut_short():
            text = "the connector was started again and has skipped the rest of its snapshot"
            return Waiting(Missing.ABORTED, text)
        later = self._snapshot_without_records() if self._rules.replaces else None
        evidence = self._proof() if later is None else None
        if evidence is None:
            return self._no_evidence()
        scan = self._scan()
        total = None if scan is None or self._rules.ends is not None else scan.scanned_rows
        is_counted = total is not None and self._rules.counts and not self._rules.is_compacted
        if is_counted and facts.row_count != total:
            return Waiting(Missing.ROWS, f"{self._rows_text()} are here", evidence)
        has_all_rows = is_counted or total == 0  # then no removed record was a row
        if facts.lost_partitions and not has_all_rows:
            which = ", ".join(str(partition) for partition in sorted(facts.lost_partitions))
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
            facts.row_times is not None or scan.scanned_rows == 0 or self._rules.is_compacted
        ):
            return Evidence.TABLE_SCAN_COMPLETED
        if facts.row_times is None:
            is_accepted = self._rules.opens_when_skipped and self._is_skipped()
            return Evidence.SNAPSHOT_SKIPPED if is_accepted else None
        if self._own(NoticeKind.COMPLETED) is not None:
            return Evidence.TABLE_SCAN_COMPLETED
        if self._has_every_partition_ended():
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
        if self._snapshot_without_records() is not None:
            return Waiting(Missing.EVIDENCE, "a later snapshot was read, of which no row is here")
        if self._facts.row_times is None:
            return Waiting(Missing.EVIDENCE, "no snapshot row of the table is here")
        return Waiting(Missing.EVIDENCE, f"{self._rows_text()}, and no sign of its end")

    def _is_skipped(self) -> bool:
        """True if the connector reports, or its records show, that nothing was copied."""
        if self._facts.row_times is not None or self._scan() is not None:
            return False
        skipped = self._attempts.newest(NoticeKind.SKIPPED)
        return skipped is not None or self._facts.change_times is not None

    def _is_cut_short(self) -> bool:
        """True if a snapshot began, and a restart skipped it before any sign of its end.

        Debezium 3.5 does so when a snapshot in chunks is killed: it commits an offset of no
        snapshot while the chunks are read, and streams changes after the restart.
        """
        attempt = self._attempt()
        has_end = (
            self._facts.last_ms is not None
            or self._scan() is not None
            or self._attempts.newest_of(attempt, NoticeKind.COMPLETED) is not None
        )
        is_begun = self._attempts.began_ms(attempt) is not None
        return is_begun and not has_end and self._own(NoticeKind.SKIPPED) is not None

    def _has_every_partition_ended(self) -> bool:
        """True if each partition has a record that only comes after all rows of the snapshot.

        In a compacted topic the first change may belong to a later snapshot of which no row is
        left: then it proves nothing about this one.
        """
        facts = self._facts
        is_hidden = self._rules.is_compacted and facts.row_times is not None
        changes = facts.change_times if is_hidden else None
        is_own = changes is None or self._attempts.attempt_at(changes.oldest_ms) == self._attempt()
        return is_own and facts.ended_partitions >= self._partitions

    def _is_committed(self) -> bool:
        """True if the connector's offset is after the snapshot, in seconds, as some offsets are."""
        committed_ms, rows = self._facts.committed_ms, self._facts.row_source_times
        if committed_ms is None or rows is None:
            return False
        return committed_ms // 1000 >= rows.newest_ms // 1000

    def _quiet(self, evidence: Evidence, now_ms: int) -> Quiet | Waiting:
        """Why nothing is on its way.

        A count is no proof without the last row, nor if rows are not of one read: some may be of an
        aborted snapshot, with the first row of the next one on its way.
        """
        facts, scan = self._facts, self._scan()
        if evidence is Evidence.OPERATOR_OVERRIDE:
            return Quiet.OPERATOR_OVERRIDE
        is_one = self._rules.counts and facts.last_ms is not None and facts.is_one_read
        total = None if scan is None else scan.scanned_rows
        proofs = {
            Quiet.NO_SNAPSHOT: evidence in _WITHOUT_SNAPSHOT,
            Quiet.ROWS_COUNTED: total == 0 or (is_one and total == facts.row_count),
            Quiet.PARTITIONS_ENDED: self._has_every_partition_ended(),
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
            f"rows may still be on their way into the topic; {math.ceil(left_ms / 1000)} s of the "
            "settle time are left"
        )
        return Waiting(Missing.QUIET, text, evidence)

    def _rows_text(self) -> str:
        count, total = self.row_counts
        if total is not None:
            return f"{count:,} of {total:,} snapshot rows"
        return f"{count:,} snapshot rows" if self._rules.counts else "snapshot rows"

    @property
    def is_complete(self) -> bool:
        return self.journal.complete is not None

    @property
    def row_counts(self) -> tuple[int, int | None]:
        """Snapshot rows that are here, and how many the connector has scanned; None if unknown."""
        scan = self._scan()
        return self._facts.row_count, None if scan is None else scan.scanned_rows
