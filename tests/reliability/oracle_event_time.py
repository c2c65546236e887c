"""The oracle of event time: recomputes as-of joins and windows record by record, and compares.

It imports nothing of the product. A record's fate follows from the records before it: they give
the watermarks of the partitions, and the pins say where batches begin and end. What a table's row
was at a record's time follows from the changes that were made, in their order.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.reliability.oracle import Verdict

MIN, MAX = -(2**63), 2**63 - 1
NOBODY = "?"
Where = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """A record of the stream; one without a time cannot be read."""

    where: Where
    id: int
    user_id: int
    at_ms: int | None


@dataclass(frozen=True)
class Change:
    """A row of the table from `at_ms` on, None when it was deleted; in the order of the changes."""

    user_id: int
    at_ms: int
    name: str | None


@dataclass(frozen=True)
class Batch:
    """What a pin says: offsets by partition, and the watermark that its records see."""

    number: int
    start: Mapping[int, int]
    end: Mapping[int, int]
    watermark_ms: int


@dataclass(frozen=True)
class Words:
    """What the job has written.

    Attributes:
        batches: by their pins, in order.
        late: coordinates in the side output.
        dead: coordinates of the dead letters.
    """

    batches: Sequence[Batch]
    late: Sequence[Where]
    dead: Sequence[Where]


@dataclass(frozen=True)
class JoinedRow:
    """A row of the as-of join."""

    where: Where
    batch: int
    id: int
    name: str | None


@dataclass(frozen=True)
class CountedRow:
    """A row of the windows."""

    user_id: int
    start_ms: int
    count: int
    ids: str


@dataclass
class Stream:
    """The records with the batch of each.

    Attributes:
        delay_ms: of the stream's watermark behind the greatest time.
        batch_of: coordinates → place in `words.batches`.
    """

    events: Sequence[Event]
    words: Words
    delay_ms: int
    batch_of: dict[Where, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, batch in enumerate(self.words.batches):
            for partition, end in batch.end.items():
                for offset in range(batch.start.get(partition, 0), end):
                    self.batch_of[partition, offset] = place

    def before(self, event: Event) -> int:
        return self.words.batches[self.batch_of[event.where]].watermark_ms

    def after(self, place: int) -> int:
        batches = self.words.batches
        return batches[place + 1].watermark_ms if place + 1 < len(batches) else MAX

    def promised(self) -> list[int]:
        """What the records alone let the watermark be, at the start of each batch."""
        channels = dict.fromkeys({event.where[0] for event in self.events}, MIN)
        arriving: dict[int, list[Event]] = defaultdict(list)
        for event in self.events:
            arriving[self.batch_of[event.where]].append(event)
        found = []
        for place in range(len(self.words.batches)):
            found.append(min(channels.values(), default=MIN))
            for event in arriving[place]:
                if event.at_ms is not None:
                    partition = event.where[0]
                    channels[partition] = max(channels[partition], event.at_ms - self.delay_ms)
        return found


def check_batches(stream: Stream, verdict: Verdict, *, alone: bool) -> bool:
    """Pins follow each other, hold every record, and their watermarks are those of the records.

    Args:
        alone: nothing but the stream gives watermarks, so they must be equal; else they may be
            less. At the end of the stream they may be whatever comes behind its last record.

    Returns:
        Whether the rest can be judged.
    """
    batches, counted = stream.words.batches, len(verdict.examples)
    for before, batch in itertools.pairwise(batches):
        _check_succession(before, batch, verdict)
    for event in stream.events:
        if event.where not in stream.batch_of:
            verdict.note("lost", 1, f"{event} is in no batch")
    if len(verdict.examples) > counted:
        return False
    last = max(stream.batch_of.values(), default=-1)
    for batch, promised in zip(batches[: last + 1], stream.promised(), strict=False):
        told = batch.watermark_ms
        if told > promised or (alone and told != promised):
            verdict.note("early", 1, f"{batch}, the records promise {promised}")
    return True


def _check_succession(before: Batch, batch: Batch, verdict: Verdict) -> None:
    if batch.number != before.number + 1 or {**before.end, **batch.start} != before.end:
        verdict.note("pin_regression", 1, f"{batch} follows {before}")
    if batch.watermark_ms < before.watermark_ms:
        verdict.note("pin_regression", 1, f"the watermark of {batch} goes back")


def check_once(
    expected: Iterable[Where], found: Iterable[Where], what: str, verdict: Verdict
) -> None:
    """The same coordinates, each once."""
    wanted, there = Counter(list(expected)), Counter(list(found))
    for where in wanted - there:
        verdict.note("lost", 1, f"{where} is not among {what}")
    for where, times in (there - wanted).items():
        fault = "duplicate" if where in wanted else "phantom"
        verdict.note(fault, times, f"{where} is {there[where]} times among {what}")


# The as-of join
# --------------------------------------------------------------------------------------------------


def version_at(changes: Sequence[Change], at_ms: int) -> str | None:
    """What a key's row was; of equal times the later change counts."""
    name, newest = None, MIN
    for change in changes:
        if newest <= change.at_ms <= at_ms:
            name, newest = change.name, change.at_ms
    return name


def audit_join(stream: Stream, changes: Sequence[Change], rows: Sequence[JoinedRow]) -> Verdict:
    """Every record in time has one row, of the version of its time, as soon as it may leave."""
    verdict = Verdict(records=len(stream.events), rows=len(rows), dead=len(stream.words.dead))
    if not check_batches(stream, verdict, alone=False):
        return verdict
    history, in_time = by_user(changes), _in_time(stream, verdict)
    check_once(in_time, [row.where for row in rows], "the rows", verdict)
    for row in rows:
        if row.where in in_time:
            _check_row(stream, in_time[row.where], row, history, verdict)
    return verdict


def by_user(changes: Iterable[Change]) -> Mapping[int, Sequence[Change]]:
    """The changes of each user, in their order."""
    history: dict[int, list[Change]] = defaultdict(list)
    for change in changes:
        history[change.user_id].append(change)
    return history


def _in_time(stream: Stream, verdict: Verdict) -> dict[Where, Event]:
    """The records that the join takes; those that it does not must be late or dead."""
    readable = [e for e in stream.events if e.at_ms is not None]
    late = [e.where for e in readable if e.at_ms <= stream.before(e)]
    _check_others(stream, late, verdict)
    return {e.where: e for e in readable if e.at_ms > stream.before(e)}


def _check_others(stream: Stream, late: Sequence[Where], verdict: Verdict) -> None:
    """Those that are `late` are in the side output, those without a time are dead letters."""
    check_once(late, stream.words.late, "the late records", verdict)
    dead = [event.where for event in stream.events if event.at_ms is None]
    if Counter(dead) != Counter(stream.words.dead):
        verdict.note("dead_letter_mismatch", 1, f"{dead} and {stream.words.dead}")


def _due(stream: Stream, event: Event) -> int:
    """The number of the batch by whose end the watermark has passed the record."""
    assert event.at_ms is not None
    batches = stream.words.batches
    places = range(stream.batch_of[event.where], len(batches))
    return batches[next(at for at in places if stream.after(at) >= event.at_ms)].number


def _check_row(
    stream: Stream,
    event: Event,
    row: JoinedRow,
    history: Mapping[int, Sequence[Change]],
    verdict: Verdict,
) -> None:
    assert event.at_ms is not None
    expected = version_at(history.get(event.user_id, ()), event.at_ms)
    if row.id != event.id:
        verdict.note("wrong_value", 1, f"{row} of {event}")
    elif row.name != expected:
        verdict.note("wrong_version", 1, f"{row} of {event}, expected {expected}")
    due = _due(stream, event)
    if row.batch != due:
        fault = "early" if row.batch < due else "torn"
        verdict.note(fault, 1, f"{row} left in batch {row.batch}, it was due in {due}")


# Windows
# --------------------------------------------------------------------------------------------------


Windows = dict[tuple[int, int], list[str]]


def audit_windows(
    stream: Stream, rows: Sequence[CountedRow], *, size_ms: int, lateness_ms: int
) -> Verdict:
    """Every record that came in time, or not too late, is in its window once, in order."""
    verdict = Verdict(records=len(stream.events), rows=len(rows), dead=len(stream.words.dead))
    if not check_batches(stream, verdict, alone=True):
        return verdict
    windows: Windows = defaultdict(list)
    late = []
    order = sorted(stream.events, key=lambda e: (stream.batch_of[e.where], e.where))
    for event in order:
        if event.at_ms is None:
            continue
        start = event.at_ms // size_ms * size_ms
        if start + size_ms - 1 + lateness_ms <= stream.before(event):
            late.append(event.where)
        else:
            windows[event.user_id, start].append(str(event.id))
    _check_others(stream, late, verdict)
    _check_windows(windows, rows, verdict)
    return verdict


def audit_joined_windows(
    stream: Stream, changes: Sequence[Change], rows: Sequence[CountedRow], *, size_ms: int
) -> Verdict:
    """Every record that the join takes is in its window once, with the version of its time.

    What leaves the join is never late behind it: the watermark passes when the rows have left. They
    leave batch by batch, in order of arrival by partition; without a row the name is `NOBODY`.
    """
    verdict = Verdict(records=len(stream.events), rows=len(rows), dead=len(stream.words.dead))
    if not check_batches(stream, verdict, alone=False):
        return verdict
    history = by_user(changes)
    windows: Windows = defaultdict(list)
    taken = _in_time(stream, verdict).values()
    for event in sorted(taken, key=lambda e: (_due(stream, e), e.where)):
        assert event.at_ms is not None
        name = version_at(history.get(event.user_id, ()), event.at_ms)
        start = event.at_ms // size_ms * size_ms
        windows[event.user_id, start].append(f"{event.id}:{NOBODY if name is None else name}")
    _check_windows(windows, rows, verdict)
    return verdict


def _check_windows(windows: Windows, rows: Sequence[CountedRow], verdict: Verdict) -> None:
    """Each window has one row, with all that is in it, in order."""
    check_once(windows, [(row.user_id, row.start_ms) for row in rows], "the windows", verdict)
    for row in rows:
        held = windows.get((row.user_id, row.start_ms), [])
        if (row.count, row.ids) != (len(held), ",".join(held)):
            verdict.note("wrong_value", 1, f"{row}, expected {len(held)} of {held}")


def as_batches(pins: Iterable[Mapping[str, Any]]) -> list[Batch]:
    found = [
        Batch(
            pin["batch"],
            {int(p): at for p, at in pin["start_offsets"].items()},
            {int(p): at for p, at in pin["end_offsets"].items()},
            pin["event"]["watermark"],
        )
        for pin in pins
    ]
    return sorted(found, key=lambda batch: batch.number)
