"""Timers by key and namespace, in event time and in processing time.

>>> timers = TimerService()
>>> timers.register(TimeDomain.EVENT, 10, "Mike", "window")
>>> [timer.timestamp_ms for timer in timers.advance_watermark(Watermark(10), now_ms=0)]
[10]

After a watermark in processing time, event timers follow the clock value that the caller passes:

>>> timers.register(TimeDomain.EVENT, 500, "Mike", "window")
>>> list(timers.advance_watermark(Watermark(10, use_processing_time=True), now_ms=499))
[]
>>> [timer.timestamp_ms for timer in timers.advance_clock(500)]
[500]
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from watermark.checks import checked, refused
from watermark.errors import InvalidParameterError, reading_state
from watermark.model import MIN_TIMESTAMP, START_OF_TIME, Progress, Watermark, WatermarkStatus

Value: TypeAlias = Any
"""User data in records; opaque here."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value with its event time."""

    value: Value
    # None without event time. `MIN_TIMESTAMP`, which an assigner gives to records without one, is
    # late from the start.
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if self.timestamp_ms is not None and type(self.timestamp_ms) is not int:
            raise refused("Record", "timestamp_ms", self.timestamp_ms, "int or None")


@checked
@dataclass(frozen=True, slots=True)
class OutputTag:
    """Names a side output; the name must not be empty."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidParameterError(
                'output tag "" has no name', hint="Name the side output, for example late-data."
            )


@checked
@dataclass(frozen=True, slots=True)
class SideRecord:
    """A record that leaves through the side output `tag`."""

    tag: OutputTag
    record: Record


Element = Record | SideRecord | Progress


def stored_elements(elements: Iterable[Element]) -> list[tuple[object, ...]]:
    """Elements of a source as plain values, for its snapshot.

    >>> elements_of(stored_elements([Record("a", 5), WatermarkStatus.IDLE]))
    [Record(value='a', timestamp_ms=5), <WatermarkStatus.IDLE: 'idle'>]
    """
    return [_stored(each) for each in elements]


def elements_of(stored: Iterable[Sequence[Any]]) -> list[Any]:
    """The inverse of `stored_elements`.

    Raises:
        KeyError, TypeError, ValueError, InvalidParameterError: it is no such list.
    """
    return [_KINDS[kind](*fields) for kind, *fields in stored]


_KINDS: dict[str, Callable[..., Element]] = {
    "record": Record,
    "watermark": Watermark,
    "status": WatermarkStatus,
}


def _stored(element: Element) -> tuple[object, ...]:
    if isinstance(element, Watermark):
        return ("watermark", element.timestamp_ms, element.use_processing_time)
    if isinstance(element, WatermarkStatus):
        return ("status", element.value)
    assert isinstance(element, Record), "sources have no side outputs"
    return ("record", deepcopy(element.value), element.timestamp_ms)


Namespace: TypeAlias = Any
"""Any hashable value, chosen by the code that registers a timer."""

Slot = tuple[Hashable, Namespace]


class TimeDomain(Enum):
    """Event time, or the clock."""

    EVENT = "event"
    PROCESSING = "processing"


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that is due; `namespace`, such as a window, distinguishes timers of one key."""

    domain: TimeDomain
    timestamp_ms: int
    key: Hashable
    namespace: Namespace


class TimerQueue:
    """Timers of one domain, by time and then by order of registration; each exists once.

    Timers of one instant share a bucket, so that windows of many keys cost one heap entry.
    """

    __slots__ = ("_buckets", "_heap")

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._buckets: dict[int, dict[Slot, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def add(self, timestamp_ms: int, slot: Slot) -> None:
        bucket = self._buckets.get(timestamp_ms)
        if bucket is None:
            self._buckets[timestamp_ms] = {slot: None}
            heappush(self._heap, timestamp_ms)
        else:
            bucket[slot] = None

    def discard(self, timestamp_ms: int, slot: Slot) -> None:
        bucket = self._buckets.get(timestamp_ms)
        if bucket is not None:
            bucket.pop(slot, None)
            if not bucket:
                # The heap keeps the bare time until it is due, or until most entries are bare.
                del self._buckets[timestamp_ms]
                self._compact()

    def pop_due(self, now_ms: int) -> tuple[int, Slot] | None:
        """Remove and return the first timer at or before `now_ms`."""
        heap, buckets = self._heap, self._buckets
        while heap and heap[0] <= now_ms:
            bucket = buckets.get(heap[0])
            if bucket:
                slot = next(iter(bucket))
                del bucket[slot]
                return heap[0], slot
            buckets.pop(heappop(heap), None)
        return None

    def is_due(self, now_ms: int) -> bool:
        return bool(self._heap) and self._heap[0] <= now_ms

    def next_ms(self) -> int | None:
        return min((each for each, bucket in self._buckets.items() if bucket), default=None)

    def snapshot(self) -> list[tuple[int, Hashable, Namespace]]:
        return [
            (timestamp_ms, *slot)
            for timestamp_ms in sorted(self._buckets)
            for slot in self._buckets[timestamp_ms]
        ]

    def _compact(self) -> None:
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._buckets):
            self._heap = list(self._buckets)
            heapify(self._heap)


@checked
class TimerService:
    """The time of one operator and its timers.

    Event time is the newest watermark; after one in processing time it is the last clock value, and
    never less than before. Both times only go forward.
    """

    def __init__(self) -> None:
        self.event = TimerQueue()
        self.processing = TimerQueue()
        self.watermark = START_OF_TIME
        self.current_watermark_ms = MIN_TIMESTAMP
        self.now_ms = MIN_TIMESTAMP

    @property
    def follows_clock(self) -> bool:
        return self.watermark.use_processing_time

    def register(
        self, domain: TimeDomain, timestamp_ms: int, key: Hashable, namespace: Namespace = None
    ) -> None:
        self._queue(domain).add(timestamp_ms, (key, namespace))

    def delete(
        self, domain: TimeDomain, timestamp_ms: int, key: Hashable, namespace: Namespace = None
    ) -> None:
        self._queue(domain).discard(timestamp_ms, (key, namespace))

    def advance_watermark(self, watermark: Watermark, *, now_ms: int) -> Iterator[Timer]:
        """Move event time, then yield the due timers one by one; they may register more.

        A watermark behind the current one changes nothing. The caller must exhaust the iterator.
        """
        if watermark.use_processing_time:
            self.watermark = watermark
        elif not self.follows_clock and watermark.timestamp_ms > self.current_watermark_ms:
            self.watermark = watermark
            self.current_watermark_ms = watermark.timestamp_ms
        return self.advance_clock(now_ms)

    def advance_clock(self, now_ms: int) -> Iterator[Timer]:
        """Pass the clock, then yield the due timers of both domains, event timers first."""
        if now_ms > self.now_ms:
            self.now_ms = now_ms
        if self.watermark.use_processing_time and self.now_ms > self.current_watermark_ms:
            self.current_watermark_ms = self.now_ms
        return self._due()

    def has_due(self) -> bool:
        return self.event.is_due(self.current_watermark_ms) or self.processing.is_due(self.now_ms)

    def snapshot(self) -> dict[str, object]:
        return {
            "watermark": (self.watermark.timestamp_ms, self.watermark.use_processing_time),
            "current_watermark_ms": self.current_watermark_ms,
            "now_ms": self.now_ms,
            "event": self.event.snapshot(),
            "processing": self.processing.snapshot(),
        }

    def restore(
        self,
        state: Mapping[str, Any],
        *,
        namespace_of: Callable[[Namespace], Namespace] = lambda stored: stored,
    ) -> None:
        """Continue from a `snapshot`; `namespace_of` gives stored namespaces their type."""
        self.event, self.processing = TimerQueue(), TimerQueue()
        with reading_state("timers"):
            self.watermark = Watermark(*state["watermark"])
            self.current_watermark_ms = state["current_watermark_ms"]
            self.now_ms = state["now_ms"]
            for queue, timers in (
                (self.event, state["event"]),
                (self.processing, state["processing"]),
            ):
                for timestamp_ms, key, namespace in timers:
                    queue.add(timestamp_ms, (key, namespace_of(namespace)))

    def _queue(self, domain: TimeDomain) -> TimerQueue:
        return self.event if domain is TimeDomain.EVENT else self.processing

    def _due(self) -> Iterator[Timer]:
        while (due := self.event.pop_due(self.current_watermark_ms)) is not None:
            yield Timer(TimeDomain.EVENT, due[0], *due[1])
        while (due := self.processing.pop_due(self.now_ms)) is not None:
            yield Timer(TimeDomain.PROCESSING, due[0], *due[1])
            while (due := self.event.pop_due(self.current_watermark_ms)) is not None:
                yield Timer(TimeDomain.EVENT, due[0], *due[1])
