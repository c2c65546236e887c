"""The oracle of streams that switch to processing time: when they may, and what windows hold.

It imports nothing of the product. The stream is in event time up to the end of its backlog; the
records there and the clocks in the pins say which batch is the last one in event time. Behind it
nothing waits, windows fire by the clock, and none of this is ever taken back. Records are joined
with the table as it is in their batch: as many of its changes as the pinned version holds.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.reliability.oracle import Verdict
from tests.reliability.oracle_event_time import MAX, MIN, NOBODY, Event, Where, check_once


@dataclass(frozen=True)
class Renaming:
    """A user's name from here on; in the order of the changes, which begin with the first rows."""

    user_id: int
    name: str


@dataclass(frozen=True)
class SwitchPin:
    """What a pin says: of time, how it was before the batch.

    Attributes:
        watermark_ms: that its records see, in event time.
        processing_time: whether the clock is the time.
        fired_ms: windows up to here have fired.
        clock_ms: of the batch.
        changes: how many of the table's changes the pinned version holds.
    """

    number: int
    start: Mapping[int, int]
    end: Mapping[int, int]
    watermark_ms: int
    processing_time: bool
    fired_ms: int
    clock_ms: int
    changes: int


@dataclass(frozen=True)
class FiredWindow:
    """A row of the windows."""

    batch: int
    user_id: int
    start_ms: int
    count: int
    ids: str


@dataclass(frozen=True)
class Story:
    """All that was given to a job and all that it has written.

    Attributes:
        events: each at the place that it has in the topic.
        backlog: partition → where it ended at submission.
        delay_ms: of a partition's watermark behind its greatest time.
        size_ms: of a window.
    """

    events: Sequence[Event]
    backlog: Mapping[int, int]
    delay_ms: int
    size_ms: int
    changes: Sequence[Renaming]
    pins: Sequence[SwitchPin]
    late: Sequence[Where]
    dead: Sequence[Where]
    windows: Sequence[FiredWindow]


@dataclass(frozen=True)
class Known:
    """How the time is between two batches; `watermark_ms` is `MAX` in processing time."""

    watermark_ms: int = MIN
    fired_ms: int = MIN

    @property
    def has_switched(self) -> bool:
        return self.watermark_ms == MAX


def known(story: Story) -> list[Known]:
    """How the time is before each batch, and behind the last one."""
    arriving = _by_batch(story)
    channels = dict.fromkeys(story.backlog, MIN)
    following, told, found = set[int](), MIN, [Known()]
    for place, pin in enumerate(story.pins):
        for event in arriving[place]:
            partition, offset = event.where
            if event.at_ms is not None and offset < story.backlog[partition]:
                channels[partition] = max(channels[partition], event.at_ms - story.delay_ms)
        told = max(told, _slowest(channels, following))
        for partition in sorted(set(channels) - following):
            read = pin.end.get(partition, 0) >= story.backlog[partition]
            if read and max(channels[partition], told) <= pin.clock_ms:
                following.add(partition)
                told = max(told, _slowest(channels, following))
        switched = following == set(channels)
        fired = max(found[-1].fired_ms, pin.clock_ms if switched else told)
        found.append(Known(MAX if switched else told, fired))
    return found


def _slowest(channels: Mapping[int, int], following: set[int]) -> int:
    return min((told for p, told in channels.items() if p not in following), default=MIN)


def _by_batch(story: Story) -> list[list[Event]]:
    at = {event.where: event for event in story.events}
    return [
        [at[p, offset] for p, offset in _places(pin) if (p, offset) in at] for pin in story.pins
    ]


def _places(pin: SwitchPin) -> Iterator[Where]:
    for partition, end in sorted(pin.end.items()):
        for offset in range(pin.start.get(partition, 0), end):
            yield partition, offset


def switched_in(story: Story) -> int | None:
    times = known(story)
    behind = (pin.number for pin, time in zip(story.pins, times[1:], strict=True))
    return next((n for n, time in zip(behind, times[1:], strict=True) if time.has_switched), None)


def audit_switch(story: Story) -> Verdict:
    """The stream switches once, where it may, and every record is in its window, or late, once."""
    verdict = Verdict(len(story.events), len(story.windows), len(story.dead))
    read = Counter(where for pin in story.pins for where in _places(pin))
    check_once([event.where for event in story.events], read.elements(), "the batches", verdict)
    for before, pin in itertools.pairwise(story.pins):
        if pin.number != before.number + 1 or {**before.end, **pin.start} != before.end:
            verdict.note("pin_regression", 1, f"{pin} follows {before}")
    if not verdict.ok:
        return verdict
    _check_times(story, verdict)
    _Windows(story).check(verdict)
    return verdict


def _check_times(story: Story, verdict: Verdict) -> None:
    """What the pins say of time is what follows from the records and clocks before them."""
    for pin, time in zip(story.pins, known(story), strict=False):
        told = Known(MAX if pin.processing_time else pin.watermark_ms, pin.fired_ms)
        if told != time:
            ahead = told.watermark_ms > time.watermark_ms or told.fired_ms > time.fired_ms
            fault = "early" if ahead else "pin_regression"
            verdict.note(fault, 1, f"{pin}, expected {time}")
        for partition, end in pin.end.items():
            if pin.start.get(partition, 0) < story.backlog[partition] < end:
                verdict.note("early", 1, f"{pin} reads across the end of the backlog")


class _Windows:
    """What each window holds, and in which batch it must have fired."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._times = known(story)
        self._names = _names(story)
        self._late: list[Where] = []
        self._held: dict[tuple[int, int], list[str]] = defaultdict(list)
        self._last: dict[tuple[int, int], int] = {}
        self._collect()

    def _collect(self) -> None:
        leaving: dict[int, list[Event]] = defaultdict(list)
        for place, events in enumerate(_by_batch(self._story)):
            for event in events:
                if event.at_ms is not None:
                    if self._is_late(event.at_ms, place):
                        self._late.append(event.where)
                    else:
                        leaving[self._due(event.at_ms, place)].append(event)
        for place in sorted(leaving):
            for event in sorted(leaving[place], key=lambda each: each.where):
                self._count(event, place)

    def _is_late(self, at_ms: int, place: int) -> bool:
        """For the join in event time, behind it for the window."""
        time = self._times[place]
        if time.has_switched:
            return self._end(at_ms) <= time.fired_ms
        return at_ms <= time.watermark_ms

    def _due(self, at_ms: int, place: int) -> int:
        behind = self._times[place + 1 :]
        passed = (at for at, time in enumerate(behind, place) if time.watermark_ms >= at_ms)
        return next(passed, len(self._story.pins))

    def _end(self, at_ms: int) -> int:
        size_ms = self._story.size_ms
        return at_ms // size_ms * size_ms + size_ms - 1

    def _count(self, event: Event, place: int) -> None:
        if place == len(self._story.pins):
            return  # it waits
        assert event.at_ms is not None
        window = event.user_id, event.at_ms // self._story.size_ms * self._story.size_ms
        name = self._names[self._story.pins[place].changes].get(event.user_id, NOBODY)
        self._held[window].append(f"{event.id}:{name}")
        self._last[window] = place

    def _fires(self, window: tuple[int, int]) -> int | None:
        """In which batch; None if the time has not passed it."""
        end = self._end(window[1])
        behind = self._times[self._last[window] + 1 :]
        places = (at for at, t in enumerate(behind, self._last[window]) if t.fired_ms >= end)
        place = next(places, None)
        return None if place is None else self._story.pins[place].number

    def check(self, verdict: Verdict) -> None:
        """Late records, dead letters and the rows of windows."""
        story = self._story
        check_once(self._late, story.late, "the late records", verdict)
        dead = [event.where for event in story.events if event.at_ms is None]
        if Counter(dead) != Counter(story.dead):
            verdict.note("dead_letter_mismatch", 1, f"{dead} and {story.dead}")
        fires = {window: self._fires(window) for window in self._held}
        due = [window for window, batch in fires.items() if batch is not None]
        rows = [(row.user_id, row.start_ms) for row in story.windows]
        check_once(due, rows, "the windows", verdict)
        for row in story.windows:
            window = row.user_id, row.start_ms
            held = self._held.get(window, [])
            if (row.count, row.ids) != (len(held), ",".join(held)):
                fault = "wrong_version" if _ids(row.ids) == _ids(",".join(held)) else "wrong_value"
                verdict.note(fault, 1, f"{row}, expected {len(held)} of {held}")
            expected = fires.get(window)
            if expected is not None and row.batch != expected:
                fault = "early" if row.batch < expected else "torn"
                verdict.note(fault, 1, f"{row} fired in batch {row.batch}, expected {expected}")


def _ids(members: str) -> list[str]:
    return [member.partition(":")[0] for member in members.split(",")]


def _names(story: Story) -> dict[int, dict[int, str]]:
    """How many changes → the names of all users then."""
    wanted = {pin.changes for pin in story.pins}
    names: dict[int, str] = {}
    found = {0: {}} if 0 in wanted else {}
    for number, change in enumerate(story.changes, start=1):
        names[change.user_id] = change.name
        if number in wanted:
            found[number] = dict(names)
    return found


def waited(story: Story) -> int:
    batch_of = {where: pin.number for pin in story.pins for where in _places(pin)}
    where = {str(event.id): event.where for event in story.events}
    return sum(
        batch_of[where[member]] != row.batch for row in story.windows for member in _ids(row.ids)
    )
