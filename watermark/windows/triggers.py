"""Triggers: when a window gives a result, and when its contents are cleared."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from watermark.errors import InvalidParameterError
from watermark.model import MAX_TIMESTAMP
from watermark.timers import TimeDomain
from watermark.windows.window import TimeWindow


class TriggerResult(Enum):
    """What happens to the window now. Firing and purging are separate."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    PURGE = (False, True)
    FIRE_AND_PURGE = (True, True)

    @property
    def fires(self) -> bool:
        """A result is emitted."""
        return self.value[0]

    @property
    def purges(self) -> bool:
        """The contents are cleared; the window itself stays until it is cleaned up."""
        return self.value[1]


class TriggerContext(Protocol):
    """What a trigger sees of its window, and one number of its own for each window.

    Attributes:
        state: the number, None at first.
    """

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
        """Set `state` from what the merged windows had, if any had a number."""


class Trigger(ABC):
    """Decides for one window at a time; it remembers in the context, so one serves all windows.

    Attributes:
        can_merge: it can be used with session windows.
    """

    can_merge: bool = True

    @abstractmethod
    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """A record was added."""

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
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at once if the watermark is there."""
        end_ms = window.max_timestamp_ms
        if end_ms <= context.current_watermark_ms:
            return TriggerResult.FIRE
        context.register(TimeDomain.EVENT, end_ms)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at the end, not at the clean-up."""
        return TriggerResult.FIRE if time_ms == window.max_timestamp_ms else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """Wait for the new end, unless it has passed: then the merging record fires."""
        if window.max_timestamp_ms > context.current_watermark_ms:
            context.register(TimeDomain.EVENT, window.max_timestamp_ms)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        context.delete(TimeDomain.EVENT, window.max_timestamp_ms)


class ProcessingTimeTrigger(Trigger):
    """Fires when the clock passes the window's end."""

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Wait for the end."""
        context.register(TimeDomain.PROCESSING, window.max_timestamp_ms)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire."""
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """Wait for the new end."""
        if window.max_timestamp_ms > context.now_ms:
            context.register(TimeDomain.PROCESSING, window.max_timestamp_ms)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        context.delete(TimeDomain.PROCESSING, window.max_timestamp_ms)


class CountTrigger(Trigger):
    """Fires at every `count` records, by count and never by time.

    At a merge the counts add up, so the record that bridges two sessions can fire above the limit.

    Raises:
        InvalidParameterError: the count is not positive.
    """

    def __init__(self, count: int) -> None:
        if count <= 0:
            raise InvalidParameterError(
                f"count trigger has a count of {count}, expected more than 0",
                hint="Give the number of records after which the window fires.",
            )
        self.count = count

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Count."""
        count = (context.state or 0) + 1
        if count < self.count:
            context.state = count
            return TriggerResult.CONTINUE
        context.state = None
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """Add the counts up."""
        context.merge_states(sum)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Forget the count."""
        context.state = None


class ContinuousEventTimeTrigger(Trigger):
    """Fires early, at every `interval_ms` of event time, and at the window's end.

    Raises:
        InvalidParameterError: the interval is not positive.
    """

    def __init__(self, interval_ms: int) -> None:
        self.interval_ms = _checked_interval(interval_ms)

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Plan the next early result."""
        if window.max_timestamp_ms <= context.current_watermark_ms:
            return TriggerResult.FIRE
        context.register(TimeDomain.EVENT, window.max_timestamp_ms)
        if context.state is None:
            self._plan(timestamp_ms - timestamp_ms % self.interval_ms, window, context)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at the end and at the planned time."""
        if time_ms == window.max_timestamp_ms:
            return TriggerResult.FIRE
        if time_ms != context.state:
            return TriggerResult.CONTINUE
        self._plan(time_ms, window, context)
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """The earliest plan holds."""
        context.merge_states(min)
        if context.state is not None:
            context.register(TimeDomain.EVENT, context.state)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timers back."""
        context.delete(TimeDomain.EVENT, window.max_timestamp_ms)
        if context.state is not None:
            context.delete(TimeDomain.EVENT, context.state)
            context.state = None

    def _plan(self, from_ms: int, window: TimeWindow, context: TriggerContext) -> None:
        context.state = min(from_ms + self.interval_ms, window.max_timestamp_ms)
        context.register(TimeDomain.EVENT, context.state)


class ContinuousProcessingTimeTrigger(Trigger):
    """Fires at every `interval_ms` of the clock after the first record, and at the window's end.

    Raises:
        InvalidParameterError: the interval is not positive.
    """

    def __init__(self, interval_ms: int) -> None:
        self.interval_ms = _checked_interval(interval_ms)

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Plan the next result."""
        if context.state is None:
            self._plan(context.now_ms - context.now_ms % self.interval_ms, window, context)
        return TriggerResult.CONTINUE

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at the planned time."""
        if time_ms != context.state:
            return TriggerResult.CONTINUE
        self._plan(time_ms, window, context)
        return TriggerResult.FIRE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """The earliest plan holds."""
        context.merge_states(min)
        if context.state is not None:
            context.register(TimeDomain.PROCESSING, context.state)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        if context.state is not None:
            context.delete(TimeDomain.PROCESSING, context.state)
            context.state = None

    def _plan(self, from_ms: int, window: TimeWindow, context: TriggerContext) -> None:
        next_ms = min(from_ms + self.interval_ms, window.max_timestamp_ms)
        if next_ms == from_ms:
            context.state = None
            return
        context.state = next_ms
        context.register(TimeDomain.PROCESSING, next_ms)


class PurgingTrigger(Trigger):
    """Fires as another trigger does, and clears the contents each time."""

    def __init__(self, inner: Trigger) -> None:
        self.inner = inner
        self.can_merge = inner.can_merge

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """As the inner trigger."""
        return _purged(self.inner.on_element(timestamp_ms, window, context))

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """As the inner trigger."""
        return _purged(self.inner.on_event_time(time_ms, window, context))

    def on_processing_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """As the inner trigger."""
        return _purged(self.inner.on_processing_time(time_ms, window, context))

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """As the inner trigger."""
        self.inner.on_merge(window, context)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """As the inner trigger."""
        self.inner.clear(window, context)


class NeverTrigger(Trigger):
    """Never fires."""

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE


class EndOfStreamTrigger(Trigger):
    """Fires once, when the input has ended; for global windows."""

    def on_element(
        self, timestamp_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Wait for the end of time."""
        context.register(TimeDomain.EVENT, MAX_TIMESTAMP)
        return TriggerResult.CONTINUE

    def on_event_time(
        self, time_ms: int, window: TimeWindow, context: TriggerContext
    ) -> TriggerResult:
        """Fire at the end of time."""
        return TriggerResult.FIRE if time_ms == MAX_TIMESTAMP else TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, context: TriggerContext) -> None:
        """Wait for the end of time."""
        context.register(TimeDomain.EVENT, MAX_TIMESTAMP)

    def clear(self, window: TimeWindow, context: TriggerContext) -> None:
        """Take the timer back."""
        context.delete(TimeDomain.EVENT, MAX_TIMESTAMP)


def _purged(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result is TriggerResult.FIRE else result


def _checked_interval(interval_ms: int) -> int:
    if interval_ms <= 0:
        raise InvalidParameterError(
            f"continuous trigger has an interval of {interval_ms} ms, expected more than 0",
            hint="Give the interval in milliseconds, 1 or more.",
        )
    return interval_ms
