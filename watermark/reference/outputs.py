"""Outputs: what a source may emit, and how the outputs of its splits become one."""

from collections.abc import Mapping, Sequence
from typing import Any

from watermark.checks import checked, refused, require_time, unchecked
from watermark.errors import (
    FutureWatermarkError,
    UnknownChannelError,
    WatermarkRegressionError,
    reading_state,
)
from watermark.model import (
    MIN_TIMESTAMP,
    START_OF_TIME,
    Progress,
    Watermark,
    WatermarkStatus,
)
from watermark.reference.timers import elements_of, stored_elements
from watermark.valve import CombinedWatermarkStatus


@checked
class MonotonicOutput:
    """A source's output, which only moves forward.

    It drops a false watermark that is not above the last one, without an error, because generators
    may repeat themselves; the watermark still ends idleness. The flag always goes downstream.

    Source: FLIP-326, "WatermarkToDataOutput".
    """

    def __init__(self) -> None:
        self.last = START_OF_TIME
        self.status = WatermarkStatus.ACTIVE
        self._highest_ms = MIN_TIMESTAMP
        self._clock_ms = MIN_TIMESTAMP
        self._out: list[Progress] = []

    @unchecked
    def emit_watermark(self, watermark: Watermark, *, now_ms: int) -> None:
        """Mark active, and send `watermark` if it moves forward.

        Raises:
            InvalidParameterError: it is no watermark.
            WatermarkRegressionError: a false watermark after a true one.
            FutureWatermarkError: a true one whose time, or an earlier one's, is after `now_ms`.
        """
        if not isinstance(watermark, Watermark):
            raise refused("source output", "watermark", watermark, "Watermark")
        if type(now_ms) is not int:
            raise refused("source output", "now_ms", now_ms, "int")
        if watermark.use_processing_time:
            self._check_clock(watermark, now_ms)
        elif self.last.use_processing_time:
            raise WatermarkRegressionError(
                f"source output left processing time at {watermark.timestamp_ms} ms",
                hint="Send only watermarks in processing time after the first of them.",
            )
        self.mark_active()
        if watermark.use_processing_time or watermark.timestamp_ms > self.last.timestamp_ms:
            self._highest_ms = max(self._highest_ms, watermark.timestamp_ms)
            self.last = watermark
            self._out.append(watermark)

    def mark_idle(self) -> None:
        self._say(WatermarkStatus.IDLE)

    def mark_active(self) -> None:
        self._say(WatermarkStatus.ACTIVE)

    def drain(self) -> Sequence[Progress]:
        if not self._out:
            return ()
        out, self._out = self._out, []
        return out

    def snapshot(self) -> dict[str, object]:
        return {
            "last": (self.last.timestamp_ms, self.last.use_processing_time),
            "idle": self.status is WatermarkStatus.IDLE,
            "highest_ms": self._highest_ms,
            "clock_ms": self._clock_ms,
            "out": stored_elements(self._out),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`; raises StateFormatError."""
        with reading_state("source output"):
            self.last = Watermark(*state["last"])
            self.status = WatermarkStatus.IDLE if state["idle"] else WatermarkStatus.ACTIVE
            self._highest_ms, self._clock_ms = state["highest_ms"], state["clock_ms"]
            self._out = elements_of(state["out"])

    def _say(self, status: WatermarkStatus) -> None:
        if self.status is not status:
            self.status = status
            self._out.append(status)

    def _check_clock(self, watermark: Watermark, now_ms: int) -> None:
        self._clock_ms = max(self._clock_ms, now_ms)
        promised_ms = max(watermark.timestamp_ms, self._highest_ms)
        if promised_ms > self._clock_ms:
            raise FutureWatermarkError(
                f"source output claims processing time with {promised_ms} ms promised, which is "
                f"after now ({self._clock_ms} ms)",
                hint="Compare the clocks of source and runner, and check the unit: milliseconds.",
            )


@checked
class WatermarkMultiplexer:
    """One output from the outputs of many splits, which come, go and idle.

    The result is the minimum over the active splits. Removing a split moves nothing at once;
    without splits the source is idle, and never at the end of time.
    """

    def __init__(self) -> None:
        self._combined = CombinedWatermarkStatus(())
        self._outputs: dict[str, MonotonicOutput] = {}

    @property
    def last(self) -> Watermark:
        return self._combined.last_output

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._outputs)

    def register(self, split: str) -> None:
        """Add a split, which holds the watermark until it has caught up."""
        self._combined.add_channel(split)
        self._outputs[split] = MonotonicOutput()

    def unregister(self, split: str) -> None:
        self._combined.remove_channel(split)
        del self._outputs[split]

    @unchecked
    def output(self, split: str) -> MonotonicOutput:
        """The output for a split's generator; UnknownChannelError if it is not registered."""
        if type(split) is not str:
            raise refused("source output", "split", split, "str")
        output = self._outputs.get(split)
        if output is None:
            raise UnknownChannelError(
                f'split "{split}" is not registered',
                hint="Add the split before its first record.",
            )
        return output

    def flush(self, *, now_ms: int) -> Sequence[Progress]:
        """Combine the outputs of all splits since the last call into one result."""
        for split, output in self._outputs.items():
            for progress in output.drain():
                self._combined.stage(split, progress, now_ms=now_ms)
        return self._combined.emit()

    @unchecked
    def flush_split(self, split: str, *, now_ms: int) -> Sequence[Progress]:
        require_time("source output", "now_ms", now_ms)
        drained = self.output(split).drain()
        if not drained and self._combined.status is WatermarkStatus.ACTIVE:
            return ()
        for progress in drained:
            self._combined.stage(split, progress, now_ms=now_ms)
        return self._combined.emit()

    def snapshot(self) -> dict[str, object]:
        outputs = [(split, output.snapshot()) for split, output in self._outputs.items()]
        return {"combined": self._combined.snapshot(), "outputs": outputs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`, with its splits; raises StateFormatError."""
        with reading_state("outputs of splits"):
            self._combined.restore(state["combined"])
            self._outputs = {}
            for split, stored in state["outputs"]:
                self._outputs[split] = MonotonicOutput()
                self._outputs[split].restore(stored)
