"""The durable part of a foreign topic's copy: two state machines and what they store.

A foreign topic is one that Sluice only reads: a connector such as Debezium writes it. Its journal
is one file, which each step of `FEED_STEPS` replaces (`FeedJournal` in `joins.adapters.topic`).
`COPY_STEPS` has the proof that one generation, the rows of a snapshot and the changes after it, is
complete; `ForeignSnapshot` raises its events. `FeedStep.PROVE` stores a proof that has come to
`CopyState.COMPLETE`; the phase is then `FeedPhase.WHOLE`. In the file fields have older names.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

from watermark.checks import checked
from watermark.errors import reading_state
from watermark.foreign_records import Mark, NewSnapshot, Notice, NoticeKind, RecordRun
from watermark.model import Evidence, Quiet
from watermark.transitions import illegal_step, next_state

_JOURNAL = "journal of a topic"


class FeedPhase(StrEnum):
    """How far the copy of a topic is, as its journal says.

    Attributes:
        NEW: nothing is read.
        COPYING: the current generation is not proven complete.
        WHOLE: the current generation is proven complete, and the proof is stored.
        ABANDONED: the topic cannot be followed; it is read again from its beginning.
    """

    NEW = "new"
    COPYING = "copying"
    WHOLE = "whole"
    ABANDONED = "abandoned"


class FeedStep(StrEnum):
    """One durable write of a journal.

    Attributes:
        BEGIN: reads the topic from its beginning, or behind its history, in a new generation.
        ADVANCE: moves offsets up.
        SUPERSEDE: begins the generation of a later snapshot; offsets move back where its records
            were read already.
        PROVE: stores the proof that the generation is complete.
        ABANDON: the topic cannot be followed.
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
    """The part of a journal that `FEED_STEPS` governs; positions are Kafka's offsets.

    >>> new = FeedPosition()
    >>> begun = new.after(FeedStep.BEGIN, topic_id="a", generation=1, offsets={0: 5})
    >>> begun.phase.value, begun.after(FeedStep.ADVANCE, offsets={0: 7}).offsets
    ('copying', {0: 7})

    `offsets` are the next ones by partition; everything below is sent and acknowledged.
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
        """The position after `step`; None keeps a value.

        InvalidTransitionError: `FEED_STEPS` has no such step, or another step must change the
        value.
        """
        after = FeedPosition(
            next_state(_JOURNAL, FEED_STEPS, self.phase, step),
            self.topic_id if topic_id is None else topic_id,
            self.generation if generation is None else generation,
            dict(self.offsets if offsets is None else offsets),
        )
        begins = step in (FeedStep.BEGIN, FeedStep.SUPERSEDE)
        grown = after.generation - self.generation
        # a history of files has its own generations before the topic's first one
        has_skipped = step is FeedStep.BEGIN and grown > 1
        if grown != (1 if begins else 0) and not has_skipped:
            raise illegal_step(
                _JOURNAL,
                f'step "{step}" leads from generation {self.generation} to {after.generation}',
            )
        if step is not FeedStep.BEGIN and after.topic_id != self.topic_id:
            raise illegal_step(
                _JOURNAL, f'step "{step}" leads to topic {after.topic_id} from {self.topic_id}'
            )
        back = {p for p, offset in self.offsets.items() if after.offsets.get(p, -1) < offset}
        if back and not begins:
            raise illegal_step(_JOURNAL, f'step "{step}" moves partition {min(back)} back')
        if step is FeedStep.ABANDON and after.offsets != self.offsets:
            raise illegal_step(_JOURNAL, f'step "{step}" moves offsets')
        return after


class CopyState(StrEnum):
    """State of the proof that one generation is complete.

    Attributes:
        READING: nothing shows that the connector has read the whole table.
        PROVEN: there is evidence of it; rows may still be on their way into the topic.
        BOUNDED: nothing is on its way, and the ends of the partitions were read after that.
        COMPLETE: everything up to the ends is applied; final until a later snapshot begins.
    """

    READING = "reading"
    PROVEN = "proven"
    BOUNDED = "bounded"
    COMPLETE = "complete"


class CopyEvent(StrEnum):
    """What changes the proof of a generation; `ForeignSnapshot.ask` raises what is not reported.

    Attributes:
        EVIDENCE: `ask` finds evidence.
        NO_EVIDENCE: `ask` finds no evidence, or it does not hold any more.
        IN_FLIGHT: `ask` finds that rows may be on their way.
        ENDS: the reader reports the ends of the partitions, which `ask` has requested.
        OVERRIDE: an operator declares the table complete. Ends that were read before are dropped:
            they may lack records that the operator has seen.
        APPLIED: `ask` finds that everything up to the ends is applied.
        SUPERSEDE: a later snapshot begins a new generation.
    """

    EVIDENCE = "evidence"
    NO_EVIDENCE = "no-evidence"
    IN_FLIGHT = "in-flight"
    ENDS = "ends"
    OVERRIDE = "override"
    APPLIED = "applied"
    SUPERSEDE = "supersede"


COPY_STEPS: Mapping[tuple[CopyState, CopyEvent], CopyState] = {
    (CopyState.READING, CopyEvent.EVIDENCE): CopyState.PROVEN,
    (CopyState.READING, CopyEvent.NO_EVIDENCE): CopyState.READING,
    (CopyState.READING, CopyEvent.OVERRIDE): CopyState.READING,
    (CopyState.READING, CopyEvent.SUPERSEDE): CopyState.READING,
    (CopyState.PROVEN, CopyEvent.EVIDENCE): CopyState.PROVEN,
    (CopyState.PROVEN, CopyEvent.NO_EVIDENCE): CopyState.READING,
    (CopyState.PROVEN, CopyEvent.IN_FLIGHT): CopyState.PROVEN,
    (CopyState.PROVEN, CopyEvent.ENDS): CopyState.BOUNDED,
    (CopyState.PROVEN, CopyEvent.OVERRIDE): CopyState.PROVEN,
    (CopyState.PROVEN, CopyEvent.SUPERSEDE): CopyState.READING,
    (CopyState.BOUNDED, CopyEvent.EVIDENCE): CopyState.BOUNDED,
    (CopyState.BOUNDED, CopyEvent.NO_EVIDENCE): CopyState.READING,
    (CopyState.BOUNDED, CopyEvent.IN_FLIGHT): CopyState.PROVEN,
    (CopyState.BOUNDED, CopyEvent.OVERRIDE): CopyState.PROVEN,
    (CopyState.BOUNDED, CopyEvent.APPLIED): CopyState.COMPLETE,
    (CopyState.BOUNDED, CopyEvent.SUPERSEDE): CopyState.READING,
    (CopyState.COMPLETE, CopyEvent.OVERRIDE): CopyState.COMPLETE,
    (CopyState.COMPLETE, CopyEvent.SUPERSEDE): CopyState.READING,
}


@checked
@dataclass(frozen=True, slots=True)
class Complete:
    """The table is complete, on this evidence."""

    evidence: Evidence
    quiet: Quiet
    text: str


class TimeSpan(NamedTuple):
    """The oldest and the newest of some times."""

    oldest_ms: int
    newest_ms: int


class FirstRow(NamedTuple):
    """The newest row that is marked as the first one of a snapshot."""

    source_ms: int
    log_position: int


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """Facts about one generation, from records, Connect and the operator."""

    row_times: TimeSpan | None = None  # times in Kafka of snapshot rows, None before the first one
    row_source_times: TimeSpan | None = None  # in the database; set together with `row_times`
    change_times: TimeSpan | None = None  # times in Kafka of changes
    firsts: Mapping[int, FirstRow] = field(default_factory=dict)  # by `RecordRun.table_partition`
    newest_other_ms: int | None = None  # time in Kafka of the newest record without a mark
    last_ms: int | None = None  # time in Kafka of the newest row that is marked as the last one
    # `RecordRun.log_position` → the oldest time in Kafka of a row that was read there
    log_positions: Mapping[int, int] = field(default_factory=dict)
    ended_partitions: frozenset[int] = frozenset()  # have a record that only comes after all rows
    # Kafka partitions whose retention removed records, which may be rows of this snapshot, unread
    lost_partitions: frozenset[int] = frozenset()
    row_count: int = 0  # rows of the snapshot, with distinct keys
    committed_ms: int | None = None  # time in the database of the newest offset in Connect
    # when the connector's newest attempt began, once the generation is complete without rows
    empty_attempt_ms: int | None = None
    override: str | None = None  # the operator's reason to declare the table complete
    # place of SQL's TRUNCATE that began the generation, None if a snapshot did
    truncated_at: tuple[int, int] | None = None

    @property
    def is_one_read(self) -> bool:
        """True if one snapshot has read all rows: at one log position, or else at one time."""
        if self.log_positions.keys() - {0}:
            return len(self.log_positions) == 1
        return self.row_source_times is None or len({*self.row_source_times}) == 1

    def with_run(self, run: RecordRun) -> Self:
        if run.mark is Mark.STREAMED:
            return replace(
                self,
                change_times=_widened(self.change_times, run.first_ms, run.last_ms),
                ended_partitions=self.ended_partitions | run.partitions,
            )
        position, positions = run.log_position, self.log_positions
        if position not in positions or run.first_ms < positions[position]:
            positions = {**positions, position: run.first_ms}
        firsts, is_last = self.firsts, run.mark is Mark.LAST
        if run.mark is Mark.FIRST:
            first = firsts.get(run.table_partition)
            newest_ms = greatest(first and first.source_ms, run.source_ms)
            firsts = {**firsts, run.table_partition: FirstRow(newest_ms, position)}
        ended = self.ended_partitions | (run.partitions if is_last else frozenset())
        return replace(
            self,
            row_times=_widened(self.row_times, run.first_ms, run.last_ms),
            row_source_times=_widened(self.row_source_times, run.oldest_source_ms, run.source_ms),
            firsts=firsts,
            last_ms=greatest(self.last_ms, run.last_ms) if is_last else self.last_ms,
            log_positions=positions,
            ended_partitions=ended,
        )

    def without_ends(self, run: RecordRun) -> Self:
        """The facts before `run`, rows of a later snapshot that count as changes until it ends."""
        return replace(
            self,
            row_times=self.row_times and TimeSpan(run.first_ms, self.row_times.newest_ms),
            change_times=None,
            firsts={},
            last_ms=None,
            log_positions={},
            ended_partitions=frozenset(),
        )


@dataclass(frozen=True, slots=True)
class SnapshotJournal:
    """The durable part of a `ForeignSnapshot`; a step makes another value of it."""

    state: CopyState = CopyState.READING
    generation: int = 0  # number of the current snapshot, from 1 on; 0 before the first one
    # older changes belong to an earlier generation; None for the first one
    changes_from_ms: int | None = None
    rows_after_ms: int | None = None  # rows that are not newer belong to an earlier snapshot
    log_position: int = 0  # as `NewSnapshot.log_position`
    facts: SnapshotFacts = field(default_factory=SnapshotFacts)
    proven_at_ms: int | None = None  # clock when the evidence appeared, None in `READING`
    ends: Mapping[int, int] | None = None  # partition → end, in `BOUNDED` and later
    complete: Complete | None = None  # the proof, in `COMPLETE`
    # Kafka partition → time of its oldest record
    oldest_ms: Mapping[int, int] = field(default_factory=dict)
    # Kafka partitions whose retention had removed records when the topic was first read
    lost_at_start: frozenset[int] = frozenset()
    notices: frozenset[Notice] = frozenset()

    @classmethod
    def first(cls, generation: int, begins: Mapping[int, int]) -> Self:
        """For a topic that is read from its beginning offsets `begins`."""
        lost = frozenset(partition for partition, offset in begins.items() if offset > 0)
        facts = SnapshotFacts(lost_partitions=lost)
        return cls(generation=generation, facts=facts, lost_at_start=lost)

    def after(
        self,
        event: CopyEvent,
        *,
        at_ms: int | None = None,
        ends: Mapping[int, int] | None = None,
        complete: Complete | None = None,
        **changes: Any,  # noqa: ANN401
    ) -> Self:
        """The value after `event`, without fields of other states; raises InvalidTransitionError.

        `at_ms` belongs to `EVIDENCE`, `ends` to `ENDS`, `complete` to `APPLIED`.
        """
        state = next_state("copy of a topic", COPY_STEPS, self.state, event)
        proven_at_ms = at_ms if self.proven_at_ms is None else self.proven_at_ms
        has_ends = state in (CopyState.BOUNDED, CopyState.COMPLETE)
        return replace(
            self,
            state=state,
            proven_at_ms=None if state is CopyState.READING else proven_at_ms,
            ends=(self.ends if ends is None else ends) if has_ends else None,
            complete=(complete or self.complete) if state is CopyState.COMPLETE else None,
            **changes,
        )

    def superseded(self, new: NewSnapshot) -> Self:
        seen_before = {p for p, oldest in self.oldest_ms.items() if oldest < new.at_ms}
        facts = SnapshotFacts(
            lost_partitions=self.lost_at_start - seen_before
            if new.truncated_at is None
            else frozenset(),
            truncated_at=new.truncated_at,
            log_positions={new.log_position: new.at_ms} if new.log_position else {},
        )
        return self.after(
            CopyEvent.SUPERSEDE,
            facts=facts,
            generation=self.generation + 1,
            changes_from_ms=new.at_ms,
            rows_after_ms=new.rows_after_ms,
            log_position=new.log_position,
        )

    def as_json(self) -> dict[str, Any]:
        facts = self.facts
        return {
            "generation": self.generation,
            "changes_from_ms": self.changes_from_ms,
            "rows_after_ms": self.rows_after_ms,
            "position": self.log_position,
            "began_ms": facts.row_times and facts.row_times.oldest_ms,
            "newest_row_ms": facts.row_times and facts.row_times.newest_ms,
            "oldest_source_ms": facts.row_source_times and facts.row_source_times.oldest_ms,
            "newest_source_ms": facts.row_source_times and facts.row_source_times.newest_ms,
            "oldest_change_ms": facts.change_times and facts.change_times.oldest_ms,
            "newest_change_ms": facts.change_times and facts.change_times.newest_ms,
            "newest_other_ms": facts.newest_other_ms,
            "firsts": sorted([partition, *first] for partition, first in facts.firsts.items()),
            "last_ms": facts.last_ms,
            "positions": sorted(facts.log_positions.items()),
            "ended": sorted(facts.ended_partitions),
            "truncated": sorted(facts.lost_partitions),
            "rows": facts.row_count,
            "committed_ms": facts.committed_ms,
            "empty_ms": facts.empty_attempt_ms,
            "word": facts.override,
            "was_truncated": facts.truncated_at,
            "evident_at_ms": self.proven_at_ms,
            "ends": None if self.ends is None else sorted(self.ends.items()),
            "complete": None if self.complete is None else asdict(self.complete),
            "oldest_ms": sorted(self.oldest_ms.items()),
            "removed": sorted(self.lost_at_start),
            "notices": [
                [notice.kind, notice.at_ms, notice.scanned_rows]
                for notice in sorted(self.notices, key=lambda each: (each.kind, *each.order))
            ],
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self:
        """Read `as_json`; the state follows from the fields. Raises StateFormatError."""
        with reading_state("a foreign snapshot"):
            done = value["complete"]
            facts = SnapshotFacts(
                row_times=_span(value["began_ms"], value["newest_row_ms"]),
                row_source_times=_span(value["oldest_source_ms"], value["newest_source_ms"]),
                change_times=_span(value["oldest_change_ms"], value["newest_change_ms"]),
                firsts=_firsts(value),
                newest_other_ms=value["newest_other_ms"],
                last_ms=value["last_ms"],
                log_positions=_numbers(value["positions"]),
                ended_partitions=frozenset(value["ended"]),
                lost_partitions=frozenset(value["truncated"]),
                row_count=value["rows"],
                committed_ms=value["committed_ms"],
                empty_attempt_ms=value["empty_ms"],
                override=value["word"],
                truncated_at=_place(value["was_truncated"]),
            )
            made = cls(
                generation=int(value["generation"]),
                changes_from_ms=value["changes_from_ms"],
                rows_after_ms=value["rows_after_ms"],
                log_position=int(value["position"]),
                facts=facts,
                proven_at_ms=value["evident_at_ms"],
                ends=None if value["ends"] is None else _numbers(value["ends"]),
                complete=done
                and Complete(Evidence(done["evidence"]), Quiet(done["quiet"]), done["text"]),
                oldest_ms=_numbers(value["oldest_ms"]),
                lost_at_start=frozenset(value["removed"]),
                notices=frozenset(
                    Notice(NoticeKind(kind), at_ms, rows) for kind, at_ms, rows in value["notices"]
                ),
            )
        state = CopyState.PROVEN if made.ends is None else CopyState.BOUNDED
        if made.proven_at_ms is None:
            state = CopyState.READING
        return replace(made, state=state if made.complete is None else CopyState.COMPLETE)


def _span(oldest_ms: int | None, newest_ms: int | None) -> TimeSpan | None:
    return None if oldest_ms is None or newest_ms is None else TimeSpan(oldest_ms, newest_ms)


def _place(value: Any) -> tuple[int, int] | None:  # noqa: ANN401
    """An older entry says only that there was a TRUNCATE."""
    if not value:
        return None
    return (-1, -1) if value is True else (int(value[0]), int(value[1]))


def _firsts(value: Mapping[str, Any]) -> dict[int, FirstRow]:
    if "firsts" in value:
        return {int(partition): FirstRow(*first) for partition, *first in value["firsts"]}
    source_ms = value["first_source_ms"]  # as written before a table had partitions
    return {} if source_ms is None else {0: FirstRow(source_ms, value["first_position"])}


def _numbers(pairs: Any) -> dict[int, int]:  # noqa: ANN401
    return {int(key): int(value) for key, value in pairs}


def _widened(span: TimeSpan | None, oldest_ms: int, newest_ms: int) -> TimeSpan:
    if span is None:
        return TimeSpan(oldest_ms, newest_ms)
    return TimeSpan(min(span.oldest_ms, oldest_ms), max(span.newest_ms, newest_ms))


def greatest(known: int | None, new: int) -> int:
    return new if known is None else max(known, new)
