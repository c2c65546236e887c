"""Generators: the watermarks of a stream, from its records or from the clock.

A generator receives each record and, if its caller emits periodically, periodic calls; it answers
through an output. Punctuated generators emit only at records, periodic ones only at periodic calls.
A periodic generator that only looks at records stands still when the stream does: `WithIdleness`
and `BoundedWait` are for quiet streams.

>>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(5_000).with_idleness(60_000)
>>> strategy.timestamp_of("row", 17)
17
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from watermark.checks import checked, refused, require_not_negative, require_positive, unchecked
from watermark.model import (
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    Watermark,
    WatermarkStatus,
    add_clamped,
    clamp,
)
from watermark.reference.timers import Value
from watermark.valve import CombinedWatermarkStatus


@checked
class WatermarkAlignment:
    """The slowest watermark of a group of splits or sources, and which are too far ahead of it.

    >>> alignment = WatermarkAlignment(max_drift_ms=10)
    >>> alignment.max_allowed_ms is None
    True
    >>> alignment.report("fast", Watermark(100), now_ms=0)
    >>> alignment.report("slow", Watermark(5), now_ms=0)
    >>> alignment.max_allowed_ms, alignment.paused()
    (15, ('fast',))

    A split counts from its first report on. Without any split there is no limit.
    """

    def __init__(self, max_drift_ms: int) -> None:
        require_not_negative("watermark alignment", "drift", max_drift_ms)
        self._max_drift_ms = max_drift_ms
        self._combined = CombinedWatermarkStatus(())

    @property
    def max_allowed_ms(self) -> int | None:
        lowest_ms = self._combined.lowest_ms
        return None if lowest_ms is None else add_clamped(lowest_ms, self._max_drift_ms)

    def report(self, split: str, watermark: Watermark, *, now_ms: int) -> None:
        """An active split is at `watermark`; raises as the combined status."""
        if split not in self._combined.inputs:
            self._combined.add_channel(split)
        self._combined.input_status(split, WatermarkStatus.ACTIVE)
        self._combined.input_watermark(split, watermark, now_ms=now_ms)

    def report_idle(self, split: str) -> None:
        """A split has nothing to read, and holds no other back; raises UnknownChannelError."""
        self._combined.input_status(split, WatermarkStatus.IDLE)

    def remove(self, split: str) -> None:
        """Remove a split; raises UnknownChannelError."""
        self._combined.remove_channel(split)

    def paused(self) -> tuple[str, ...]:
        """In the order of their first report."""
        limit_ms = self.max_allowed_ms
        if limit_ms is None:
            return ()
        return tuple(
            split
            for split in self._combined.inputs
            if self._combined.watermark_of(split).timestamp_ms > limit_ms
        )


_METHODS = ("on_event", "on_periodic_emit", "snapshot", "restore")
TimestampAssigner = Callable[[Value, int], int]
"""From a value and its record timestamp (`MIN_TIMESTAMP` if it has none) to its event time."""


class WatermarkOutput(Protocol):
    """Output of a generator."""

    def emit_watermark(self, watermark: Watermark, *, now_ms: int) -> None:
        """Send how far event time is; also ends idleness."""

    def mark_idle(self) -> None:
        """No records are expected for now."""

    def mark_active(self) -> None:
        """Records come again."""


class WatermarkGenerator(Protocol):
    """Makes watermarks. One instance serves one split of one parallel instance.

    The operator stores its `snapshot`. This is also the base class of generators without state.
    """

    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        """A record has passed."""

    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        """A periodic call."""

    def snapshot(self) -> dict[str, object]:
        """The state as plain values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`; a damaged state may raise any Python error."""


@checked
class BoundedOutOfOrderness:
    """Bounded lateness: the watermark is the greatest time so far, less the bound, less 1 ms.

    The millisecond is there because a watermark t promises that no record *at* t is still to come,
    and another record with the greatest time may come. Before any record: `MIN_TIMESTAMP`.
    """

    def __init__(self, bound_ms: int) -> None:
        require_not_negative("out-of-orderness", "bound", bound_ms)
        self.delay_ms = bound_ms + 1
        self._max_ms = MIN_TIMESTAMP

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        if timestamp_ms > self._max_ms:
            self._max_ms = timestamp_ms

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        output.emit_watermark(Watermark(clamp(self._max_ms - self.delay_ms)), now_ms=now_ms)

    def snapshot(self) -> dict[str, object]:
        return {"max_ms": self._max_ms}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._max_ms = state["max_ms"]


class AscendingTimestamps(BoundedOutOfOrderness):
    """Times never decrease: the greatest so far, less 1 ms. Also called monotonous."""

    def __init__(self) -> None:
        super().__init__(0)


@checked
class BoundedOutOfOrdernessTimestampExtractor(BoundedOutOfOrderness):
    """The older rule of that name: greatest time so far less the bound, no millisecond.

    A later record of the same greatest time is late. For programs that expect its numbers.
    """

    def __init__(self, bound_ms: int) -> None:
        super().__init__(bound_ms)
        self.delay_ms = bound_ms


@checked
class PunctuatedWatermarks(WatermarkGenerator):
    """Calls a function for each record, which returns a watermark or None."""

    def __init__(self, watermark_of: Callable[[Value, int], Watermark | None]) -> None:
        self._watermark_of = watermark_of

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        watermark = self._watermark_of(value, timestamp_ms)
        if watermark is not None:
            output.emit_watermark(watermark, now_ms=now_ms)

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        """Nothing: a stream without records stands still."""


@checked
class DelayedProcessingTime(WatermarkGenerator):
    """The clock less a delay; for event times that are close to the clock."""

    def __init__(self, delay_ms: int) -> None:
        require_not_negative("delayed processing time", "delay", delay_ms)
        self.delay_ms = delay_ms

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        """Nothing: records do not matter."""

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        output.emit_watermark(Watermark(clamp(now_ms - self.delay_ms)), now_ms=now_ms)


@checked
class BoundedWait:
    """Bounded out-of-orderness that follows the clock once the stream is quiet for too long.

    Only for event times that are related to the clock. Which records are late then depends on their
    arrival, so results are not deterministic.
    """

    def __init__(self, bound_ms: int, max_wait_ms: int) -> None:
        self._records = BoundedOutOfOrderness(bound_ms)
        require_positive("bounded wait", "wait", max_wait_ms)
        self.max_wait_ms = max_wait_ms
        self._heard_at_ms: int | None = None

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        self._heard_at_ms = now_ms
        self._records.on_event(value, timestamp_ms, output, now_ms=now_ms)

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        if self._heard_at_ms is None:
            self._heard_at_ms = now_ms
        self._records.on_periodic_emit(output, now_ms=now_ms)
        if now_ms - self._heard_at_ms > self.max_wait_ms:
            behind_ms = self.max_wait_ms + self._records.delay_ms
            output.emit_watermark(Watermark(clamp(now_ms - behind_ms)), now_ms=now_ms)

    def snapshot(self) -> dict[str, object]:
        return {"records": self._records.snapshot(), "heard_at_ms": self._heard_at_ms}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._records.restore(state["records"])
        self._heard_at_ms = state["heard_at_ms"]


class NoWatermarks(WatermarkGenerator):
    """For streams without event time: a periodic call emits processing time.

    Operators in processing time ignore watermarks, so nothing changes for them.
    """

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        """Nothing."""

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        output.emit_watermark(PROCESSING_TIME, now_ms=now_ms)


@checked
class WithIdleness:
    """Another generator, and idleness once it has been quiet for longer than a timeout.

    The timeout starts at the first check that finds the stream quiet, not at the last record.
    """

    def __init__(self, generator: WatermarkGenerator, timeout_ms: int) -> None:
        require_positive("idleness", "timeout", timeout_ms)
        self._generator = generator
        self._timeout_ms = timeout_ms
        self._heard = False
        self._quiet_since_ms: int | None = None
        self._idle = False

    @unchecked
    def on_event(
        self, value: Value, timestamp_ms: int, output: WatermarkOutput, *, now_ms: int
    ) -> None:
        self._heard = True
        if self._idle:
            self._idle = False
            output.mark_active()
        self._generator.on_event(value, timestamp_ms, output, now_ms=now_ms)

    @unchecked
    def on_periodic_emit(self, output: WatermarkOutput, *, now_ms: int) -> None:
        if not self._is_quiet_for_long(now_ms):
            self._generator.on_periodic_emit(output, now_ms=now_ms)
        elif not self._idle:
            self._idle = True
            output.mark_idle()

    def snapshot(self) -> dict[str, object]:
        return {
            "generator": self._generator.snapshot(),
            "heard": self._heard,
            "quiet_since_ms": self._quiet_since_ms,
            "idle": self._idle,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._generator.restore(state["generator"])
        self._heard, self._idle = state["heard"], state["idle"]
        self._quiet_since_ms = state["quiet_since_ms"]

    def _is_quiet_for_long(self, now_ms: int) -> bool:
        if self._heard:
            self._heard = False
            self._quiet_since_ms = None
            return False
        if self._quiet_since_ms is None:
            self._quiet_since_ms = now_ms
            return False
        return now_ms - self._quiet_since_ms > self._timeout_ms


@checked
@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """How records of a source get their time, and its splits their watermarks."""

    # called for each split of each parallel instance; generators share nothing
    new_generator: Callable[[], WatermarkGenerator]
    timestamp_assigner: TimestampAssigner | None = None  # None keeps the timestamp of the source
    idle_timeout_ms: int | None = None  # None for no idleness

    @classmethod
    def for_monotonous_timestamps(cls) -> "WatermarkStrategy":
        return cls(AscendingTimestamps)

    @classmethod
    def for_bounded_out_of_orderness(cls, bound_ms: int) -> "WatermarkStrategy":
        require_not_negative("out-of-orderness", "bound", bound_ms)
        return cls(lambda: BoundedOutOfOrderness(bound_ms))

    @classmethod
    def for_generator(cls, new_generator: Callable[[], WatermarkGenerator]) -> "WatermarkStrategy":
        return cls(new_generator)

    @classmethod
    def no_watermarks(cls) -> "WatermarkStrategy":
        return cls(NoWatermarks)

    def with_timestamp_assigner(self, assigner: TimestampAssigner) -> "WatermarkStrategy":
        return replace(self, timestamp_assigner=assigner)

    def with_idleness(self, timeout_ms: int) -> "WatermarkStrategy":
        require_positive("idleness", "timeout", timeout_ms)
        return replace(self, idle_timeout_ms=timeout_ms)

    def create_generator(self) -> WatermarkGenerator:
        """A new generator for one split; InvalidParameterError if it is of another type."""
        generator = self.new_generator()
        if not all(hasattr(generator, name) for name in _METHODS):
            raise refused("watermark strategy", "generator", generator, "WatermarkGenerator")
        if self.idle_timeout_ms is None:
            return generator
        return WithIdleness(generator, self.idle_timeout_ms)

    @unchecked
    def timestamp_of(self, value: Value, native_ms: int | None) -> int:
        """Event time of a record: from the assigner, else the source's, else `MIN_TIMESTAMP`.

        InvalidParameterError if the source or the assigner gave something that is no int.
        """
        timestamp_ms = MIN_TIMESTAMP if native_ms is None else native_ms
        if type(timestamp_ms) is not int:
            raise refused("source", "timestamp", timestamp_ms, "int or None")
        if self.timestamp_assigner is None:
            return timestamp_ms
        timestamp_ms = self.timestamp_assigner(value, timestamp_ms)
        if type(timestamp_ms) is not int:
            raise refused("timestamp assigner's record", "timestamp", timestamp_ms, "int")
        return timestamp_ms
