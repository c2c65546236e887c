"""Combined progress: of the channels of one input (the valve), and of an operator's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from watermark.checks import checked, unchecked
from watermark.combine import Combination
from watermark.model import Progress, Watermark, WatermarkStatus


@dataclass(frozen=True, slots=True)
class ChannelState:
    """State of one channel of the valve."""

    channel: str
    status: WatermarkStatus  # ACTIVE also for a channel that said IDLE but is in processing time
    watermark: Watermark  # the newest that was not discarded
    # it counts for the valve's output: it is in processing time, or active in event time and not
    # behind the output, as long as the valve has not switched to processing time
    aligned: bool


@checked
class StatusWatermarkValve:
    """Combines the channels of one input, by the rule of `watermark.combine`.

    A channel that returns from idleness behind the last output is unaligned: it neither holds back
    nor advances the output until it has caught up. An event-time watermark on an idle
    channel is discarded. When the last channel goes idle, the valve emits the highest watermark of
    its channels, then IDLE. A valve without channels never emits. Unknown channels raise
    UnknownChannelError, names in use InvalidParameterError.

    >>> valve = StatusWatermarkValve(["items/0", "items/1"])
    >>> valve.input_watermark("items/0", Watermark(-(2**63), True), now_ms=1000)
    ()
    >>> # items/0 is in processing time: it does not hold back event time
    >>> valve.input_watermark("items/1", Watermark(700), now_ms=1000)
    (Watermark(timestamp_ms=700, use_processing_time=False),)

    Source: FLIP-326, "StatusWatermarkValve".
    """

    _laggards_hold_back: ClassVar[bool] = False

    def __init__(self, channels: Sequence[str]) -> None:
        hold_back = self._laggards_hold_back
        self._combination = Combination(channels, laggards_hold_back=hold_back)

    @property
    def last_output(self) -> Watermark:
        return self._combination.last

    @property
    def status(self) -> WatermarkStatus:
        return self._combination.status

    @unchecked
    def input_watermark(
        self, channel: str, watermark: Watermark, *, now_ms: int
    ) -> tuple[Progress, ...]:
        """Apply the newest watermark of a channel; returns the output downstream, in order.

        Raises:
            WatermarkRegressionError: the channel went back, or left processing time.
            FutureWatermarkError: `(T, true)` while T, or the channel's watermark before, is after
                `now_ms`.
        """
        return self._combination.input_watermark(channel, watermark, now_ms)

    def input_status(self, channel: str, status: WatermarkStatus) -> tuple[Progress, ...]:
        """Apply the newest status of a channel; returns the output downstream, in order.

        This is a watermark that the status set free, and the valve's status if it changed.
        """
        return self._combination.input_status(channel, status)

    def add_channel(self, channel: str) -> None:
        """Add an active channel; one that starts behind the last output is unaligned."""
        self._combination.add(channel)

    def remove_channel(self, channel: str) -> None:
        """Remove a channel; the output moves with the next input at the earliest."""
        self._combination.remove(channel)

    def watermark_of(self, channel: str) -> Watermark:
        """The newest watermark that was not discarded."""
        return self._combination.channel(channel).watermark

    def channels(self) -> tuple[ChannelState, ...]:
        switched = self._combination.last.use_processing_time
        return tuple(
            ChannelState(
                channel=each.name,
                status=WatermarkStatus.IDLE
                if each.idle and not each.processing
                else WatermarkStatus.ACTIVE,
                watermark=each.watermark,
                aligned=each.processing if switched or each.processing else each.aligned,
            )
            for each in self._combination.channels.values()
        )

    def snapshot(self) -> dict[str, object]:
        return self._combination.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `snapshot`; raises StateFormatError."""
        hold_back = self._laggards_hold_back
        self._combination = Combination.restored(state, laggards_hold_back=hold_back)


@checked
class CombinedWatermarkStatus(StatusWatermarkValve):
    """The watermark and status of an operator with several inputs, or a stream with several splits.

    One rule differs from the valve's, by FLIP-326: an input that returns from idleness behind the
    operator's watermark takes part in the minimum at once, and holds it until it has caught up.

    >>> combined = CombinedWatermarkStatus(["probe", "build"])
    >>> combined.input_watermark("probe", Watermark(5), now_ms=100)
    ()
    >>> combined.input_watermark("build", Watermark(3), now_ms=100)
    (Watermark(timestamp_ms=3, use_processing_time=False),)

    Source: FLIP-326, "IndexedCombinedWatermarkStatus".
    """

    # reads better long: what Flink's class has, and what a checkpoint needs.

    _laggards_hold_back = True

    @property
    def lowest_ms(self) -> int | None:
        """Minimum over the active inputs in event time, None without any.

        Unlike the watermark, this goes back when a slow input joins.
        """
        return self._combination.lowest_ms()

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self._combination.channels)

    @unchecked
    def stage(self, name: str, progress: Progress, *, now_ms: int) -> None:
        """Apply a watermark or status without output until `emit`; raises as `input_watermark`."""
        channel = self._combination.channel(name)
        if isinstance(progress, Watermark):
            self._combination.advance(channel, progress, now_ms)
        else:
            self._combination.set_status(channel, progress)

    def emit(self) -> tuple[Progress, ...]:
        return self._combination.emit()
