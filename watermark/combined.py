"""The combined status: the inputs of an operator become the operator's own watermark and status.

It stands on the same rule as the valve, with one difference that FLIP-326 makes: an input that
returns from idleness behind the operator's watermark takes part in the minimum at once, and so
holds it until it has caught up.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from watermark.checks import checked, unchecked
from watermark.combine import Combination
from watermark.model import Progress, Watermark, WatermarkStatus


@checked
class CombinedWatermarkStatus:
    """The watermark and status of an operator with several inputs, a stream's splits included.

    >>> combined = CombinedWatermarkStatus(["probe", "build"])
    >>> combined.update_watermark("probe", Watermark(5), now_ms=100)
    ()
    >>> combined.update_watermark("build", Watermark(3), now_ms=100)
    (Watermark(timestamp_ms=3, use_processing_time=False),)

    Source: FLIP-326, "IndexedCombinedWatermarkStatus".
    """

    # reads better long: what Flink's class of this name has, and what a checkpoint needs.

    def __init__(self, inputs: Sequence[str]) -> None:
        self._combination = Combination(inputs, laggards_hold_back=True)

    @property
    def watermark(self) -> Watermark:
        return self._combination.last

    @property
    def lowest_ms(self) -> int | None:
        """Where the slowest active input in event time is now, None if there is none.

        Unlike the watermark, this goes back when a slow input joins.
        """
        return self._combination.lowest_ms()

    @property
    def status(self) -> WatermarkStatus:
        return self._combination.status

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self._combination.channels)

    def watermark_of(self, name: str) -> Watermark:
        """The newest watermark of one input.

        Raises:
            UnknownChannelError: there is no such input.
        """
        return self._combination.channel(name).watermark

    @unchecked
    def update_watermark(
        self, name: str, watermark: Watermark, *, now_ms: int
    ) -> tuple[Progress, ...]:
        """Take the newest watermark of an input.

        Returns:
            What the operator says downstream, in order.

        Raises:
            UnknownChannelError: there is no such input.
            WatermarkRegressionError: the input went back, or left processing time.
            FutureWatermarkError: `(T, true)` with T, or an earlier promise, after `now_ms`.
        """
        return self._combination.input_watermark(name, watermark, now_ms)

    def update_status(self, name: str, status: WatermarkStatus) -> tuple[Progress, ...]:
        """Take the newest status of an input.

        Returns:
            What the operator says downstream, in order.

        Raises:
            UnknownChannelError: there is no such input.
        """
        return self._combination.input_status(name, status)

    @unchecked
    def stage(self, name: str, progress: Progress, *, now_ms: int) -> None:
        """Take a watermark or status without an answer, until `emit` is asked for one.

        Raises:
            UnknownChannelError, WatermarkRegressionError, FutureWatermarkError: as
                `update_watermark`.
        """
        channel = self._combination.channel(name)
        if isinstance(progress, Watermark):
            self._combination.advance(channel, progress, now_ms)
        else:
            self._combination.set_status(channel, progress)

    def emit(self) -> tuple[Progress, ...]:
        return self._combination.emit()

    def add_input(self, name: str) -> None:
        """Add an active input at the start of time; it holds the watermark until it has caught up.

        Raises:
            InvalidParameterError: the name is taken.
        """
        self._combination.add(name)

    def remove_input(self, name: str) -> None:
        """Forget an input; nothing moves before the next update, and nothing at all without inputs.

        Raises:
            UnknownChannelError: there is no such input.
        """
        self._combination.remove(name)

    def snapshot(self) -> dict[str, object]:
        return self._combination.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `snapshot` was taken.

        Raises:
            StateFormatError: `state` is no such snapshot.
        """
        self._combination = Combination.restored(state, laggards_hold_back=True)
