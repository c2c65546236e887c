"""Alignment: which splits must wait so that none runs too far ahead of the slowest.

>>> alignment = WatermarkAlignment(max_drift_ms=10)
>>> alignment.max_allowed_ms is None
True
>>> alignment.report("fast", Watermark(100), now_ms=0)
>>> alignment.report("slow", Watermark(5), now_ms=0)
>>> alignment.max_allowed_ms, alignment.paused()
(15, ('fast',))
"""

from watermark.checks import checked, require_not_negative
from watermark.combined import CombinedWatermarkStatus
from watermark.model import Watermark, WatermarkStatus, add_clamped


@checked
class WatermarkAlignment:
    """The slowest watermark of a group of splits or sources, and who is too far ahead of it.

    A split counts from its first report on. Without any there is no limit to give: not the end of
    time.

    Raises:
        InvalidParameterError: the drift is negative.
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
        """A split is at `watermark`, and active.

        Raises:
            WatermarkRegressionError, FutureWatermarkError: see the combined status.
        """
        if split not in self._combined.inputs:
            self._combined.add_input(split)
        self._combined.update_status(split, WatermarkStatus.ACTIVE)
        self._combined.update_watermark(split, watermark, now_ms=now_ms)

    def report_idle(self, split: str) -> None:
        """A split has nothing to read; it holds nobody back.

        Raises:
            UnknownChannelError: it has never reported.
        """
        self._combined.update_status(split, WatermarkStatus.IDLE)

    def remove(self, split: str) -> None:
        """A split was taken away.

        Raises:
            UnknownChannelError: it has never reported.
        """
        self._combined.remove_input(split)

    def paused(self) -> tuple[str, ...]:
        """The splits that are ahead of the limit, in the order of their first report."""
        limit_ms = self.max_allowed_ms
        if limit_ms is None:
            return ()
        return tuple(
            split
            for split in self._combined.inputs
            if self._combined.watermark_of(split).timestamp_ms > limit_ms
        )
