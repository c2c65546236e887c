"""The way to a window operator: key by, window, then what is optional, then what is computed.

>>> from watermark.reference.records import Record
>>> operator = (
...     Stream().key_by(lambda row: row[0]).window(TumblingWindows(100))
...     .allowed_lateness(10).reduce(lambda a, b: (a[0], a[1] + b[1]))
... )
>>> operator.process_record(Record(("Mike", 1), 5), now_ms=0)
()
>>> operator.process_watermark(Watermark(99), now_ms=0)[0]
Record(value=('Mike', 1), timestamp_ms=99)
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from watermark.checks import checked
from watermark.model import Watermark
from watermark.reference.records import OutputTag, Value
from watermark.reference.timers import TimeDomain
from watermark.reference.windows.assigners import (
    SlidingWindows,
    TumblingWindows,
    WindowAssigner,
)
from watermark.reference.windows.evictors import Evictor
from watermark.reference.windows.functions import (
    AggregatedContents,
    AggregateFunction,
    EvictedContents,
    ListedContents,
    ProcessWindowFunction,
    ReducedContents,
    ReduceFunction,
    aggregating,
    pass_through,
    reducing,
)
from watermark.reference.windows.operator import WindowOperator, WindowOperatorSpec
from watermark.reference.windows.triggers import Trigger

__all__ = ["KeyedStream", "Stream", "Watermark", "WindowedStream"]

KeyOf = Callable[[Value], Hashable]


def _one_key(value: Value) -> Hashable:
    return None


@checked
@dataclass(frozen=True, slots=True)
class WindowedStream:
    """Windows by key that wait for their function."""

    spec: WindowOperatorSpec
    key_of: KeyOf
    window_evictor: Evictor | None = None

    def trigger(self, trigger: Trigger) -> "WindowedStream":
        return replace(self, spec=replace(self.spec, trigger=trigger))

    def evictor(self, evictor: Evictor) -> "WindowedStream":
        return replace(self, window_evictor=evictor)

    def allowed_lateness(self, lateness_ms: int) -> "WindowedStream":
        """Take late records for so long after the window's end; 0 by default.

        Raises:
            InvalidParameterError: it is negative.
        """
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
        """All values of the window at each firing."""
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
        """Tumbling or sliding windows in the stream's time: the same program for both times.

        Raises:
            InvalidParameterError: see the assigners.
        """
        if slide_ms is None:
            return self.window(TumblingWindows(size_ms, offset_ms, time=self.time))
        return self.window(SlidingWindows(size_ms, slide_ms, offset_ms, time=self.time))


@checked
@dataclass(frozen=True, slots=True)
class Stream:
    """Where a windowed program starts.

    Attributes:
        time: the job's time characteristic, for `time_window`.
    """

    time: TimeDomain = TimeDomain.EVENT

    def key_by(self, key_of: KeyOf) -> KeyedStream:
        return KeyedStream(key_of, self.time)

    def window_all(self, assigner: WindowAssigner) -> WindowedStream:
        return KeyedStream(_one_key, self.time).window(assigner)
