"""Emission: who calls a generator and when, and which of its answers go downstream.

Records go out before the watermarks that they cause. A source combines the watermarks of its splits
(partitions, shards). Each split has a generator, so that a fast split does not make a slow one
late.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from watermark.checks import checked, require_not_negative, require_time, unchecked
from watermark.errors import reading_state
from watermark.model import END_OF_TIME, Watermark, WatermarkStatus
from watermark.reference.generators import WatermarkGenerator, WatermarkStrategy
from watermark.reference.operator import SINGLE_INPUT, Operator
from watermark.reference.outputs import MonotonicOutput, WatermarkMultiplexer
from watermark.reference.timers import Element, Record, Timer, Value, elements_of, stored_elements

AUTO_WATERMARK_INTERVAL_MS = 200
"""Default of `pipeline.auto-watermark-interval`; 0 turns periodic emission off."""

ONE_SPLIT = ("main",)


class Emission(Enum):
    """Caller of `on_periodic_emit`."""

    DELEGATED = "delegated"
    ONCE = "once"
    PERIODIC = "periodic"


class SourceReader(Protocol):
    """The part of a source's reader that concerns watermarks."""

    def delegate_watermark_periodic_emit(self, on_watermark_emit: Callable[[int], None]) -> bool:
        """True if the reader calls `on_watermark_emit(now_ms)` itself; usually False.

        A source with phases returns True and calls it, for instance, when its snapshot is complete.
        """


class UndelegatedReader:
    """The default: periodic emission stays with the source operator."""

    def delegate_watermark_periodic_emit(self, on_watermark_emit: Callable[[int], None]) -> bool:
        return False


@checked
class SourceOperator:
    """A source: gives records their time and emits the watermarks of its splits.

    - A reader that takes the responsibility is the only caller of the generators.
    - Otherwise, without progressive watermarks, they are called once, before the first record.
    - Otherwise they are called every `interval_ms` of the clock that is passed.

    Source: FLIP-326, "SourceOperator".

    `last_generated` has, by split, the newest watermark that its generator emitted.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        *,
        reader: SourceReader | None = None,
        emit_progressive_watermarks: bool = True,
        interval_ms: int = AUTO_WATERMARK_INTERVAL_MS,
        splits: Sequence[str] = ONE_SPLIT,
    ) -> None:
        require_not_negative("auto watermark emission", "interval", interval_ms)
        self._strategy = strategy
        self._interval_ms = interval_ms
        self._multiplexer = WatermarkMultiplexer()
        self._generators: dict[str, WatermarkGenerator] = {}
        self._pending: list[Element] = []
        self._next_ms: int | None = None
        self._seen_record = False
        self._ended = False
        for split in splits:
            self.add_split(split)
        self.emission = Emission.PERIODIC if emit_progressive_watermarks else Emission.ONCE
        delegate = (reader or UndelegatedReader()).delegate_watermark_periodic_emit
        if delegate(self._emit_now):
            self.emission = Emission.DELEGATED

    @property
    def last_generated(self) -> dict[str, Watermark]:
        return {each: self._multiplexer.output(each).last for each in self._multiplexer.splits}

    @property
    def last_output(self) -> Watermark:
        return self._multiplexer.last

    def add_split(self, split: str) -> None:
        """Assign a partition or shard; raises InvalidParameterError if it is already assigned."""
        self._multiplexer.register(split)
        self._generators[split] = self._strategy.create_generator()

    def finish_split(self, split: str) -> None:
        """Remove a partition or an ended shard; raises UnknownChannelError."""
        self._multiplexer.unregister(split)
        del self._generators[split]

    @unchecked
    def process_record(
        self, value: Value, native_ms: int | None = None, *, now_ms: int, split: str = ONE_SPLIT[0]
    ) -> Sequence[Element]:
        """Take a record with the timestamp of its system, `native_ms`.

        That is CreateTime or LogAppendTime for Kafka, the approximate time of arrival for Kinesis.
        Returns the record with its event time, then the watermark that it causes.
        """
        require_time("source", "now_ms", now_ms)
        output = self._multiplexer.output(split)
        if not self._seen_record:
            self._seen_record = True
            if self.emission is Emission.ONCE:
                self._emit_now(now_ms)
        timestamp_ms = self._strategy.timestamp_of(value, native_ms)
        self._generators[split].on_event(value, timestamp_ms, output, now_ms=now_ms)
        progress = self._multiplexer.flush_split(split, now_ms=now_ms)
        # The end of idleness goes before the record that ends it, a watermark after its record.
        ahead = 1 if progress and progress[0] is WatermarkStatus.ACTIVE else 0
        self._pending += (*progress[:ahead], Record(value, timestamp_ms), *progress[ahead:])
        return self.drain()

    def advance_clock(self, now_ms: int) -> Sequence[Element]:
        """Pass the clock; with periodic emission, call the generators when the interval is over."""
        if self.emission is Emission.PERIODIC and self._interval_ms:
            if self._next_ms is None:
                self._next_ms = now_ms + self._interval_ms
            elif now_ms >= self._next_ms:
                self._next_ms = now_ms + self._interval_ms
                self._emit_now(now_ms)
        return self.drain()

    def end_of_input(self, *, now_ms: int) -> Sequence[Element]:
        """End a bounded input: emit the end of time, unless the source is in processing time."""
        self._ended = True
        if not self._multiplexer.last.use_processing_time:
            for split in self._multiplexer.splits:
                output = self._multiplexer.output(split)
                if not output.last.use_processing_time:
                    output.mark_active()
                    output.emit_watermark(END_OF_TIME, now_ms=now_ms)
            self._pending.extend(self._multiplexer.flush(now_ms=now_ms))
        return self.drain()

    def drain(self) -> Sequence[Element]:
        pending, self._pending = self._pending, []
        return pending

    def snapshot(self) -> dict[str, object]:
        return {
            "outputs": self._multiplexer.snapshot(),
            "generators": [(split, each.snapshot()) for split, each in self._generators.items()],
            "pending": stored_elements(self._pending),
            "next_ms": self._next_ms,
            "seen_record": self._seen_record,
            "ended": self._ended,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`, with its splits; raises StateFormatError."""
        with reading_state("source"):
            self._multiplexer.restore(state["outputs"])
            self._generators = {}
            for split, stored in state["generators"]:
                self._generators[split] = self._strategy.create_generator()
                self._generators[split].restore(stored)
            self._pending = elements_of(state["pending"])
            self._next_ms, self._ended = state["next_ms"], state["ended"]
            self._seen_record = state["seen_record"]

    def _emit_now(self, now_ms: int) -> None:
        require_time("source", "now_ms", now_ms)
        if self._ended:
            return
        for split, generator in self._generators.items():
            generator.on_periodic_emit(self._multiplexer.output(split), now_ms=now_ms)
        self._pending.extend(self._multiplexer.flush(now_ms=now_ms))


@checked
class SourceContext:
    """For sources that assign timestamps and emit watermarks themselves.

    >>> context = SourceContext()
    >>> context.collect_with_timestamp("row", 5)
    >>> context.emit_watermark(Watermark(5), now_ms=0)
    >>> context.mark_as_temporarily_idle()
    >>> [type(each).__name__ for each in context.drain()]
    ['Record', 'Watermark', 'WatermarkStatus']
    """

    def __init__(self) -> None:
        self._output = MonotonicOutput()
        self._out: list[Element] = []

    def collect_with_timestamp(self, value: Value, timestamp_ms: int) -> None:
        self._output.mark_active()
        self._out.extend(self._output.drain())
        self._out.append(Record(value, timestamp_ms))

    def emit_watermark(self, watermark: Watermark, *, now_ms: int) -> None:
        """Raises as `MonotonicOutput.emit_watermark`."""
        self._output.emit_watermark(watermark, now_ms=now_ms)
        self._out.extend(self._output.drain())

    def mark_as_temporarily_idle(self) -> None:
        self._output.mark_idle()
        self._out.extend(self._output.drain())

    def drain(self) -> Sequence[Element]:
        out, self._out = self._out, []
        return out

    def snapshot(self) -> dict[str, object]:
        return {"output": self._output.snapshot(), "out": stored_elements(self._out)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`; raises StateFormatError."""
        with reading_state("source context"):
            self._output.restore(state["output"])
            self._out = elements_of(state["out"])


@checked
class TimestampsAndWatermarksOperator(Operator):
    """Assigns times and watermarks in the middle of a stream.

    It overwrites earlier timestamps and drops upstream watermarks except the end of time. After a
    shuffle, records of different partitions are mixed: a generator there may advance too eagerly
    and make the records of a slow partition late. Assign at the source if you can.
    """

    def __init__(
        self,
        strategy: WatermarkStrategy,
        *,
        interval_ms: int = AUTO_WATERMARK_INTERVAL_MS,
        uid: str = "timestamps",
    ) -> None:
        super().__init__(uid=uid)
        self._source = SourceOperator(strategy, interval_ms=interval_ms)

    def process_watermark(
        self, watermark: Watermark, *, now_ms: int, source: str = SINGLE_INPUT
    ) -> Sequence[Element]:
        if watermark != END_OF_TIME:
            return ()
        return self._source.end_of_input(now_ms=now_ms)

    def process_status(
        self, status: WatermarkStatus, *, now_ms: int, source: str = SINGLE_INPUT
    ) -> Sequence[Element]:
        return ()

    def advance_clock(self, now_ms: int) -> Sequence[Element]:
        self.timers.now_ms = max(self.timers.now_ms, now_ms)
        return self._source.advance_clock(now_ms)

    def _on_record(self, record: Record, source: str) -> None:
        now_ms = self.timers.now_ms
        self._out.extend(
            self._source.process_record(record.value, record.timestamp_ms, now_ms=now_ms)
        )

    def _on_timer(self, timer: Timer) -> None:
        """It sets no timers."""

    def _own_state(self) -> dict[str, object]:
        return {"source": self._source.snapshot()}

    def _restore_own(self, own: Mapping[str, Any]) -> None:
        self._source.restore(own["source"])
