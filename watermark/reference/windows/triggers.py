"""Triggers: when a window emits a result, and when its contents are cleared."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from watermark.checks import refused, require_positive
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, clamp
from watermark.reference.timers import TimeDomain, Value


class TimeWindow(NamedTuple):
    """[start, end) in epoch milliseconds; a named tuple, because each record hashes it.

    >>> TimeWindow(0, 100).max_timestamp_ms
    99
    """

    start_ms: int
    end_ms: int

    @property
    def max_timestamp_ms(self) -> int:
        return clamp(self.end_ms - 1)

    def touches(self, other: "TimeWindow") -> bool:
        """True if sessions merge: they overlap, or one ends where the other starts.

        >>> TimeWindow(0, 10).touches(TimeWindow(10, 20))
        True
        """
        return self.start_ms <= other.end_ms and self.end_ms >= other.start_ms

    def cover(self, other: "TimeWindow") -> "TimeWindow":
        return TimeWindow(min(self.start_ms, other.start_ms), max(self.end_ms, other.end_ms))


GLOBAL_WINDOW = TimeWindow(MIN_TIMESTAMP, MAX_TIMESTAMP + 1)
"""All of time; its last instant is `MAX_TIMESTAMP`."""


class TriggerResult(Enum):
    """What the window does now: it may emit, clear its contents, or both."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        return self.value[0]

    @property
    def purges(self) -> bool:
        return self.value[1]


class TriggerContext(Protocol):
    """A trigger's view of its window; `state` is a number for each window, None at first."""

    state: int | None

    @property
    def current_watermark_ms(self) -> int:
        """The operator's event time."""

    @property
    def now_ms(self) -> int:
        """The clock value last passed."""

    def register(self, domain: TimeDomain, timestamp_ms: int) -> None:
        """Call the trigger at that time."""

    def delete(self, domain: TimeDomain, timestamp_ms: int) -> None:
        """Take a timer back."""

    def merge_states(self, combine: Callable[[list[int]], int]) -> None:
        """Set `state` from the states of the merged windows, if there are any."""


class Trigger(ABC):
    """Decides for one window at a time; its state is in the context, so one serves all windows.

    `can_merge` if session windows can use it.
    """

    can_merge: bool = True

    @abstractmethod
    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """A record with this value and event time was added."""

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """An event timer of the window is due, not necessarily one of this trigger."""
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """A processing timer of the window is due, not necessarily one of this trigger."""
        return TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """`window` is the result of a merge; the merged windows are cleared after this."""
        return

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """The window is gone; take back timers."""
        return


class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, then at once for each late record."""

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        end_ms = window.max_timestamp_ms
        if end_ms <= context.current_watermark_ms:
            return TriggerResult.FIRE
        context.register(TimeDomain.EVENT, end_ms)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time_ms == window.max_timestamp_ms else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        if window.max_timestamp_ms > context.current_watermark_ms:
            context.register(TimeDomain.EVENT, window.max_timestamp_ms)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        context.delete(TimeDomain.EVENT, window.max_timestamp_ms)


class ProcessingTimeTrigger(Trigger):
    """Fires when the clock passes the window's end."""

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        context.register(TimeDomain.PROCESSING, window.max_timestamp_ms)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        if window.max_timestamp_ms > context.now_ms:
            context.register(TimeDomain.PROCESSING, window.max_timestamp_ms)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        context.delete(TimeDomain.PROCESSING, window.max_timestamp_ms)


class CountTrigger(Trigger):
    """Fires at every `count` records, independent of time.

    A merge adds the counts, so the record that bridges two sessions can fire above the limit.
    """

    def __init__(self, count: int) -> None:
        require_positive("count trigger", "count", count, unit="")
        self.count = count

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        count = (context.state or 0) + 1
        if count < self.count:
            context.state = count
            return TriggerResult.CONTINUE
        context.state = None
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        context.merge_states(sum)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        context.state = None


class ContinuousEventTimeTrigger(Trigger):
    """Fires early, at every `interval_ms` of event time, and at the window's end."""

    def __init__(self, interval_ms: int) -> None:
        require_positive("continuous trigger", "interval", interval_ms)
        self.interval_ms = interval_ms

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp_ms <= context.current_watermark_ms:
            return TriggerResult.FIRE
        context.register(TimeDomain.EVENT, window.max_timestamp_ms)
        if context.state is None:
            self._plan(timestamp_ms - timestamp_ms % self.interval_ms, window, context)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        if time_ms == context.state:
            self._plan(time_ms, window, context)
            return TriggerResult.FIRE
        return TriggerResult.FIRE if time_ms == window.max_timestamp_ms else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        context.merge_states(min)
        if context.state is not None:
            self._register(context.state, window, context)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        context.delete(TimeDomain.EVENT, window.max_timestamp_ms)
        if context.state is not None:
            context.delete(TimeDomain.EVENT, context.state)
            context.state = None

    def _plan(self, from_ms: int, window: TimeWindow, context: TriggerContext) -> None:
        context.state = from_ms + self.interval_ms
        self._register(context.state, window, context)

    def _register(self, planned_ms: int, window: TimeWindow, context: TriggerContext) -> None:
        if planned_ms <= window.max_timestamp_ms:
            context.register(TimeDomain.EVENT, planned_ms)


class ContinuousProcessingTimeTrigger(Trigger):
    """Fires at every `interval_ms` of the clock after the first record, and at the window's end."""

    def __init__(self, interval_ms: int) -> None:
        require_positive("continuous trigger", "interval", interval_ms)
        self.interval_ms = interval_ms

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        if context.state is None:
            self._plan(context.now_ms - context.now_ms % self.interval_ms, window, context)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        if context.state is None or time_ms != _until_end(context.state, window):
            return TriggerResult.CONTINUE
        self._plan(time_ms, window, context)
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        context.merge_states(min)
        if context.state is not None:
            context.register(TimeDomain.PROCESSING, _until_end(context.state, window))

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        if context.state is not None:
            context.delete(TimeDomain.PROCESSING, _until_end(context.state, window))
            context.state = None

    def _plan(self, from_ms: int, window: TimeWindow, context: TriggerContext) -> None:
        if from_ms == window.max_timestamp_ms:
            context.state = None
            return
        context.state = from_ms + self.interval_ms
        context.register(TimeDomain.PROCESSING, _until_end(context.state, window))


class PurgingTrigger(Trigger):
    """Fires as another trigger does, and clears the contents each time."""

    def __init__(self, inner: Trigger) -> None:
        if not isinstance(inner, Trigger):
            raise refused("PurgingTrigger", "inner", inner, "Trigger")
        self.inner = inner
        self.can_merge = inner.can_merge

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return _purged(self.inner.on_element(value, timestamp_ms, window, context))

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return _purged(self.inner.on_event_time(time_ms, window, context))

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return _purged(self.inner.on_processing_time(time_ms, window, context))

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        self.inner.on_merge(window, context)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        self.inner.clear(window, context)


class NeverTrigger(Trigger):
    """Never fires."""

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return TriggerResult.CONTINUE


class EndOfStreamTrigger(Trigger):
    """Fires once, when the input has ended; for global windows."""

    def on_element(
        self, value: Value, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        context.register(TimeDomain.EVENT, MAX_TIMESTAMP)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        return TriggerResult.FIRE if time_ms == MAX_TIMESTAMP else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        context.register(TimeDomain.EVENT, MAX_TIMESTAMP)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        context.delete(TimeDomain.EVENT, MAX_TIMESTAMP)


def _purged(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


def _until_end(planned_ms: int, window: TimeWindow) -> int:
    return min(planned_ms, window.max_timestamp_ms)
