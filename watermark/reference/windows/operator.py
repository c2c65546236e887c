"""The window operator: records into windows, windows into results.

A record skips each of its windows that is late: event time, and max timestamp + allowed lateness <=
watermark. If it skips all of them, and the record itself is that late, it goes to the side output,
or is counted and dropped. Otherwise it is added, and the trigger decides. Results carry the
window's max timestamp, at every firing.
"""

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from watermark.checks import checked, refused, require_not_negative, unchecked
from watermark.errors import InvalidParameterError, MissingTimestampError
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from watermark.reference.operator import Operator
from watermark.reference.timers import (
    Namespace,
    OutputTag,
    Record,
    SideRecord,
    Slot,
    TimeDomain,
    Timer,
    TimerQueue,
    Value,
)
from watermark.reference.windows.assigners import (
    SlidingWindows,
    TumblingWindows,
    WindowAssigner,
)
from watermark.reference.windows.functions import (
    EMPTY,
    AggregatedContents,
    AggregateFunction,
    EvictedContents,
    Evictor,
    ListedContents,
    ProcessWindowFunction,
    ReducedContents,
    ReduceFunction,
    WindowContents,
    WindowContext,
    aggregating,
    pass_through,
    reducing,
)
from watermark.reference.windows.triggers import (
    GLOBAL_WINDOW,
    EventTimeTrigger,
    TimeWindow,
    Trigger,
    TriggerResult,
)


@checked
@dataclass(frozen=True, slots=True)
class WindowOperatorSpec:
    """A window operator without its function."""

    assigner: WindowAssigner
    # None for the assigner's default; must be able to merge with sessions
    trigger: Trigger | None = None
    # how long after its end a window takes late records; no effect on windows that follow the clock
    allowed_lateness_ms: int = 0
    # destination of too late records, None to drop and count them
    late_tag: OutputTag | None = None
    uid: str = "window"  # stable id of the operator

    def __post_init__(self) -> None:
        require_not_negative(
            f'window operator "{self.uid}"', "allowed lateness", self.allowed_lateness_ms
        )
        if self.assigner.merges and self.trigger is not None and not self.trigger.can_merge:
            raise InvalidParameterError(
                f'window operator "{self.uid}" has a trigger that cannot merge',
                hint="Use another trigger with session windows.",
            )


class _Context:
    """The trigger's context: one object, set to a window before each use."""

    __slots__ = ("_operator", "_states", "merged", "slot")

    def __init__(self, operator: "WindowOperator", states: dict[Slot, int]) -> None:
        self._operator = operator
        self._states = states
        self.slot: Slot = (None, None)
        self.merged: list[Slot] = []

    @property
    def state(self) -> int | None:
        return self._states.get(self.slot)

    @state.setter
    def state(self, state: int | None) -> None:
        if state is None:
            self._states.pop(self.slot, None)
        else:
            self._states[self.slot] = state

    @property
    def current_watermark_ms(self) -> int:
        return self._operator.timers.current_watermark_ms

    @property
    def now_ms(self) -> int:
        return self._operator.timers.now_ms

    def register(self, domain: TimeDomain, timestamp_ms: int) -> None:
        if type(timestamp_ms) is not int:
            raise refused(f'trigger of "{self._operator.uid}"', "timestamp_ms", timestamp_ms, "int")
        timers = self._operator.timers
        queue = timers.event if domain is TimeDomain.EVENT else timers.processing
        queue.add(timestamp_ms, self.slot)

    def delete(self, domain: TimeDomain, timestamp_ms: int) -> None:
        timers = self._operator.timers
        queue = timers.event if domain is TimeDomain.EVENT else timers.processing
        queue.discard(timestamp_ms, self.slot)

    def merge_states(self, combine: Callable[[list[int]], int]) -> None:
        slots = dict.fromkeys((self.slot, *self.merged))
        states = [self._states[slot] for slot in slots if slot in self._states]
        if states:
            self.state = combine(states)


@checked
class WindowOperator(Operator):
    """Groups the records of each key by window.

    `late_records_dropped` (`numLateRecordsDropped`): too late, and no side output.
    """

    def __init__(
        self,
        spec: WindowOperatorSpec,
        contents: WindowContents,
        key_of: Callable[[Value], Hashable],
    ) -> None:
        super().__init__(uid=spec.uid)
        self.spec = spec
        self.late_records_dropped = 0
        self._assigner = spec.assigner
        self._trigger = spec.trigger or spec.assigner.default_trigger()
        self._contents = contents
        self._key_of = key_of
        self._windows: dict[Slot, Any] = {}
        self._sessions: dict[Hashable, list[TimeWindow]] = {}
        self._trigger_states: dict[Slot, int] = {}
        self._context = _Context(self, self._trigger_states)
        self._event = spec.assigner.is_event_time
        # With the default trigger and no lateness, firing and clean-up are one timer, which exists.
        self._cleanup_is_trigger = (
            type(self._trigger) is EventTimeTrigger and not spec.allowed_lateness_ms
        )

    @property
    def open_windows(self) -> int:
        return len(self._windows)

    @unchecked
    def cleanup_ms(self, window: TimeWindow) -> int:
        """Max timestamp plus the lateness, clamped to 64 bits; without lateness by the clock."""
        if not self._event:
            return window.max_timestamp_ms
        return min(window.end_ms - 1 + self.spec.allowed_lateness_ms, MAX_TIMESTAMP)

    @unchecked
    def is_window_late(self, window: TimeWindow) -> bool:
        return self._event and self.cleanup_ms(window) <= self.timers.current_watermark_ms

    @unchecked
    def is_record_late(self, timestamp_ms: int) -> bool:
        """True if the record itself is older than lateness allows; equality is late."""
        if not self._event:
            return False
        limit_ms = min(timestamp_ms + self.spec.allowed_lateness_ms, MAX_TIMESTAMP)
        return limit_ms <= self.timers.current_watermark_ms or timestamp_ms == MIN_TIMESTAMP

    def _on_record(self, record: Record, source: str) -> None:
        timestamp_ms = record.timestamp_ms
        if timestamp_ms is None:
            if self._event:
                raise _no_timestamp(self.uid, record)
            timestamp_ms = MIN_TIMESTAMP
        skipped = True
        # A record at the start of time is late from the start, whatever its window.
        if timestamp_ms != MIN_TIMESTAMP or not self._event:
            key = self._key_of(record.value)
            for window in self._assigner.assign(record.value, timestamp_ms, self.timers.now_ms):
                if self._assigner.merges:
                    skipped &= not self._add_to_session(key, window, record, timestamp_ms)
                elif not self.is_window_late(window):
                    skipped = False
                    self._add((key, window), record, timestamp_ms)
        if skipped and self.is_record_late(timestamp_ms):
            self._put_late(record)

    def _put_late(self, record: Record) -> None:
        if self.spec.late_tag is None:
            self.late_records_dropped += 1
        else:
            self._out.append(SideRecord(self.spec.late_tag, record))

    def _add(self, slot: Slot, record: Record, timestamp_ms: int) -> None:
        windows = self._windows
        held = windows.get(slot, EMPTY)
        if held is EMPTY:
            windows[slot] = self._contents.first(record)
        else:
            windows[slot] = self._contents.add(held, record)
        context = self._context
        context.slot = slot
        window: TimeWindow = slot[1]
        result = self._trigger.on_element(record.value, timestamp_ms, window, context)
        if result is not TriggerResult.CONTINUE:
            self._apply(result, slot)
        if not self._cleanup_is_trigger or result is not TriggerResult.CONTINUE:
            self._register_cleanup(slot)

    def _add_to_session(
        self, key: Hashable, window: TimeWindow, record: Record, timestamp_ms: int
    ) -> bool:
        """True if the record was added; lateness is that of the merged session."""
        sessions = self._sessions.get(key, ())
        merged = [each for each in sessions if each.touches(window)]
        for each in merged:
            window = window.cover(each)
        if self.is_window_late(window):
            return False
        if merged != [window]:
            self._sessions[key] = [each for each in sessions if each not in merged]
            self._sessions[key].append(window)
            if merged:
                self._merge(key, merged, window)
        self._add((key, window), record, timestamp_ms)
        return True

    def _merge(self, key: Hashable, merged: list[TimeWindow], into: TimeWindow) -> None:
        context, target = self._context, (key, into)
        slots: list[Slot] = [(key, each) for each in merged]
        context.slot, context.merged = target, slots
        self._trigger.on_merge(into, context)
        held = EMPTY
        for slot, window in zip(slots, merged, strict=True):
            contents = self._windows.pop(slot, EMPTY)
            if contents is not EMPTY:
                held = contents if held is EMPTY else self._contents.merge(held, contents)
            if window != into:
                context.slot = slot
                self._trigger.clear(window, context)
                self._cleanup_queue().discard(self.cleanup_ms(window), slot)
        if held is not EMPTY:
            self._windows[target] = held

    def _on_timer(self, timer: Timer) -> None:
        slot: Slot = (timer.key, timer.namespace)
        window: TimeWindow = timer.namespace
        if self._assigner.merges and window not in self._sessions.get(timer.key, ()):
            return
        context = self._context
        context.slot = slot
        event = timer.domain is TimeDomain.EVENT
        on_time = self._trigger.on_event_time if event else self._trigger.on_processing_time
        self._apply(on_time(timer.timestamp_ms, window, context), slot)
        if event is self._event and timer.timestamp_ms == self.cleanup_ms(window):
            self._clear(slot, window)

    def _apply(self, result: TriggerResult, slot: Slot) -> None:
        if result.fires:
            self._emit(slot)
        if result.purges:
            self._windows.pop(slot, None)

    def _emit(self, slot: Slot) -> None:
        contents = self._windows.get(slot, EMPTY)
        if contents is EMPTY:
            return
        key, window = slot
        out, timestamp_ms = self._out, window.max_timestamp_ms

        def output(tag: OutputTag, value: Value) -> None:
            out.append(SideRecord(tag, Record(value, timestamp_ms)))

        timers = self.timers
        context = WindowContext(
            key,
            window,
            timers.current_watermark_ms,
            timers.now_ms,
            output,
        )
        results, left = self._contents.fire(contents, context)
        out.extend([Record(value, timestamp_ms) for value in results])
        if left is EMPTY:
            del self._windows[slot]
        else:
            self._windows[slot] = left

    def _clear(self, slot: Slot, window: TimeWindow) -> None:
        self._windows.pop(slot, None)
        self._context.slot = slot
        self._trigger.clear(window, self._context)
        sessions = self._sessions.get(slot[0])
        if sessions is not None:
            sessions.remove(window)
            if not sessions:
                del self._sessions[slot[0]]

    def _cleanup_queue(self) -> TimerQueue:
        return self.timers.event if self._event else self.timers.processing

    def _register_cleanup(self, slot: Slot) -> None:
        if slot[1] != GLOBAL_WINDOW:
            window: TimeWindow = slot[1]
            self._cleanup_queue().add(self.cleanup_ms(window), slot)

    def _namespace_of(self, stored: Namespace) -> Namespace:
        return TimeWindow(*stored)

    def _own_state(self) -> dict[str, object]:
        return {
            "late_records_dropped": self.late_records_dropped,
            "windows": [
                (key, tuple(window), deepcopy(held))
                for (key, window), held in self._windows.items()
            ],
            "sessions": [
                (key, [tuple(each) for each in windows]) for key, windows in self._sessions.items()
            ],
            "triggers": [
                (key, tuple(window), state) for (key, window), state in self._trigger_states.items()
            ],
        }

    def _restore_own(self, own: Mapping[str, Any]) -> None:
        self.late_records_dropped = own["late_records_dropped"]
        self._windows = {
            (key, TimeWindow(*window)): deepcopy(held) for key, window, held in own["windows"]
        }
        self._sessions = {
            key: [TimeWindow(*each) for each in windows] for key, windows in own["sessions"]
        }
        self._trigger_states.clear()
        for key, window, state in own["triggers"]:
            self._trigger_states[key, TimeWindow(*window)] = state


def _no_timestamp(uid: str, record: Record) -> MissingTimestampError:
    return MissingTimestampError(
        f'window operator "{uid}" got a record without a timestamp, expected event time',
        hint="Give the source a timestamp assigner, or use windows that follow the clock.",
    )


__all__ = ["KeyedStream", "Stream", "Watermark", "WindowedStream"]

KeyOf = Callable[[Value], Hashable]


def _one_key(value: Value) -> Hashable:
    return None


@checked
@dataclass(frozen=True, slots=True)
class WindowedStream:
    """Windows by key before their function is set."""

    spec: WindowOperatorSpec
    key_of: KeyOf
    window_evictor: Evictor | None = None

    def trigger(self, trigger: Trigger) -> "WindowedStream":
        return replace(self, spec=replace(self.spec, trigger=trigger))

    def evictor(self, evictor: Evictor) -> "WindowedStream":
        return replace(self, window_evictor=evictor)

    def allowed_lateness(self, lateness_ms: int) -> "WindowedStream":
        return replace(self, spec=replace(self.spec, allowed_lateness_ms=lateness_ms))

    def side_output_late_data(self, tag: OutputTag) -> "WindowedStream":
        return replace(self, spec=replace(self.spec, late_tag=tag))

    def uid(self, uid: str) -> "WindowedStream":
        return replace(self, spec=replace(self.spec, uid=uid))

    def reduce(
        self, reduce: ReduceFunction, process: ProcessWindowFunction = pass_through
    ) -> WindowOperator:
        if self.window_evictor is not None:
            return self.process(reducing(reduce, process))
        return WindowOperator(self.spec, ReducedContents(reduce, process), self.key_of)

    def aggregate(
        self, function: AggregateFunction, process: ProcessWindowFunction = pass_through
    ) -> WindowOperator:
        if self.window_evictor is not None:
            return self.process(aggregating(function, process))
        return WindowOperator(self.spec, AggregatedContents(function, process), self.key_of)

    def process(self, process: ProcessWindowFunction) -> WindowOperator:
        """Receives all values of the window at each firing."""
        if self.window_evictor is None:
            return WindowOperator(self.spec, ListedContents(process), self.key_of)
        contents = EvictedContents(process, self.window_evictor)
        return WindowOperator(self.spec, contents, self.key_of)


@checked
@dataclass(frozen=True, slots=True)
class KeyedStream:
    """Records by key."""

    key_of: KeyOf
    time: TimeDomain = TimeDomain.EVENT

    def window(self, assigner: WindowAssigner) -> WindowedStream:
        return WindowedStream(WindowOperatorSpec(assigner), self.key_of)

    def time_window(
        self, size_ms: int, slide_ms: int | None = None, *, offset_ms: int = 0
    ) -> WindowedStream:
        """Tumbling or sliding windows in the stream's time."""
        if slide_ms is None:
            return self.window(TumblingWindows(size_ms, offset_ms, time=self.time))
        return self.window(SlidingWindows(size_ms, slide_ms, offset_ms, time=self.time))


@checked
@dataclass(frozen=True, slots=True)
class Stream:
    """Start of a windowed program: key by, window, options, function.

    >>> from watermark.reference.timers import Record
    >>> operator = (
    ...     Stream().key_by(lambda row: row[0]).window(TumblingWindows(100))
    ...     .allowed_lateness(10).reduce(lambda a, b: (a[0], a[1] + b[1]))
    ... )
    >>> operator.process_record(Record(("Mike", 1), 5), now_ms=0)
    ()
    >>> operator.process_watermark(Watermark(99), now_ms=0)[0]
    Record(value=('Mike', 1), timestamp_ms=99)

    `time` is the job's time characteristic, for `time_window`.
    """

    time: TimeDomain = TimeDomain.EVENT

    def key_by(self, key_of: KeyOf) -> KeyedStream:
        return KeyedStream(key_of, self.time)

    def window_all(self, assigner: WindowAssigner) -> WindowedStream:
        return KeyedStream(_one_key, self.time).window(assigner)
