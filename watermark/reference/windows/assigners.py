"""Assigners: which windows a record belongs to.

Windows are aligned to the Unix epoch (plus an offset), never to the first record, and exist only
with a record in them.

>>> TumblingWindows(300).assign(None, 1_505, 0)
(TimeWindow(start_ms=1500, end_ms=1800),)
>>> TumblingWindows(300, offset_ms=100).assign(None, -1, 0)
(TimeWindow(start_ms=-200, end_ms=100),)
>>> SlidingWindows(10, 5).assign(None, 12, 0)
(TimeWindow(start_ms=10, end_ms=20), TimeWindow(start_ms=5, end_ms=15))
>>> CumulativeWindows(10, 5).assign(None, 12, 0)
(TimeWindow(start_ms=10, end_ms=20), TimeWindow(start_ms=10, end_ms=15))
>>> SessionWindows(30).assign(None, 12, 0)
(TimeWindow(start_ms=12, end_ms=42),)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from watermark.checks import checked, require_positive, unchecked
from watermark.errors import InvalidParameterError
from watermark.reference.timers import TimeDomain, Value
from watermark.reference.windows.triggers import (
    GLOBAL_WINDOW,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    TimeWindow,
    Trigger,
)

Windows = tuple[TimeWindow, ...]


class WindowAssigner(ABC):
    """Assigns windows by event time, or by the clock; `merges` if windows that touch become one."""

    time: TimeDomain = TimeDomain.EVENT
    merges: bool = False

    @property
    def is_event_time(self) -> bool:
        """Windows end by event time, so records can be late."""
        return self.time is TimeDomain.EVENT

    @abstractmethod
    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        """The windows of a record."""

    def default_trigger(self) -> Trigger:
        return EventTimeTrigger() if self.is_event_time else ProcessingTimeTrigger()


@checked
class TumblingWindows(WindowAssigner):
    """Adjacent windows of one size; the offset is smaller than the size."""

    def __init__(
        self, size_ms: int, offset_ms: int = 0, *, time: TimeDomain = TimeDomain.EVENT
    ) -> None:
        require_positive("tumbling window", "size", size_ms)
        _require_offset("tumbling window", offset_ms, size_ms)
        self.size_ms = size_ms
        self.offset_ms = offset_ms
        self.time = time
        self._event = time is TimeDomain.EVENT
        self._newest: Windows = (TimeWindow(0, 0),)

    @unchecked
    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        instant_ms = timestamp_ms if self._event else now_ms
        newest = self._newest
        start_ms, end_ms = newest[0]
        if start_ms <= instant_ms < end_ms:
            return newest
        start_ms = window_start(instant_ms, self.offset_ms, self.size_ms)
        self._newest = (TimeWindow(start_ms, start_ms + self.size_ms),)
        return self._newest


@checked
class SlidingWindows(WindowAssigner):
    """Windows of one size that start every slide; a slide above the size leaves gaps.

    The offset is smaller than the slide.
    """

    def __init__(
        self,
        size_ms: int,
        slide_ms: int,
        offset_ms: int = 0,
        *,
        time: TimeDomain = TimeDomain.EVENT,
    ) -> None:
        require_positive("sliding window", "size", size_ms)
        require_positive("sliding window", "slide", slide_ms)
        _require_offset("sliding window", offset_ms, slide_ms)
        self.size_ms = size_ms
        self.slide_ms = slide_ms
        self.offset_ms = offset_ms
        self.time = time

    @unchecked
    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        instant_ms = timestamp_ms if self.is_event_time else now_ms
        latest_ms = window_start(instant_ms, self.offset_ms, self.slide_ms)
        return tuple(
            TimeWindow(start_ms, start_ms + self.size_ms)
            for start_ms in range(latest_ms, instant_ms - self.size_ms, -self.slide_ms)
        )


@checked
class CumulativeWindows(WindowAssigner):
    """Windows of one start that grow by a step up to a size; then the next ones start.

    The size is a multiple of the step, and the offset is smaller than the size.
    """

    def __init__(
        self,
        size_ms: int,
        step_ms: int,
        offset_ms: int = 0,
        *,
        time: TimeDomain = TimeDomain.EVENT,
    ) -> None:
        require_positive("cumulative window", "size", size_ms)
        require_positive("cumulative window", "step", step_ms)
        if size_ms % step_ms:
            raise InvalidParameterError(
                f"cumulative window has a size of {size_ms} ms, expected steps of {step_ms} ms",
                hint="Give a size that the step divides.",
            )
        _require_offset("cumulative window", offset_ms, size_ms)
        self.size_ms = size_ms
        self.step_ms = step_ms
        self.offset_ms = offset_ms
        self.time = time

    @unchecked
    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        instant_ms = timestamp_ms if self.is_event_time else now_ms
        start_ms = window_start(instant_ms, self.offset_ms, self.size_ms)
        return tuple(
            TimeWindow(start_ms, end_ms)
            for end_ms in range(start_ms + self.size_ms, instant_ms, -self.step_ms)
        )


@checked
class SessionWindows(WindowAssigner):
    """Windows that grow while records come within a gap of each other.

    The gap is a number, or a function of a record's value; InvalidParameterError if not positive.
    """

    merges = True

    def __init__(
        self, gap_ms: int | Callable[[Value], int], *, time: TimeDomain = TimeDomain.EVENT
    ) -> None:
        if isinstance(gap_ms, int):
            require_positive("session window", "gap", gap_ms)
        self.gap_ms = gap_ms
        self.time = time

    @unchecked
    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        """The session that this record alone would have."""
        instant_ms = timestamp_ms if self.is_event_time else now_ms
        gap_ms = self.gap_ms
        if not isinstance(gap_ms, int):
            gap_ms = gap_ms(value)
            require_positive("session window", "gap", gap_ms)
        return (TimeWindow(instant_ms, instant_ms + gap_ms),)


class GlobalWindows(WindowAssigner):
    """One window for all of time, never late and without end; by default it never fires."""

    time = TimeDomain.PROCESSING

    def assign(self, value: Value, timestamp_ms: int, now_ms: int) -> Windows:
        return (GLOBAL_WINDOW,)

    def default_trigger(self) -> Trigger:
        return NeverTrigger()


def window_start(instant_ms: int, offset_ms: int, size_ms: int) -> int:
    """Start of the window that contains the instant; also correct before 1970.

    >>> window_start(-1, 0, 100), window_start(0, 0, 100), window_start(7, 5, 100)
    (-100, 0, 5)
    """
    return instant_ms - (instant_ms - offset_ms) % size_ms


def _require_offset(what: str, offset_ms: int, below_ms: int) -> None:
    if abs(offset_ms) >= below_ms:
        raise InvalidParameterError(
            f"{what} has an offset of {offset_ms} ms, expected less than {below_ms} ms",
            hint="Give an offset smaller than the window's size (sliding: than its slide).",
        )
