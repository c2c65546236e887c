"""The valve and the combined status behind one set of methods, so that one table serves both."""

import pytest

from watermark.valve import CombinedWatermarkStatus, StatusWatermarkValve


class AsInput:
    """The combined status behind the valve's methods."""

    def __init__(self, channels):
        self.combined = CombinedWatermarkStatus(channels)

    def input_watermark(self, channel, watermark, *, now_ms):
        return self.combined.update_watermark(channel, watermark, now_ms=now_ms)

    def input_status(self, channel, status):
        return self.combined.update_status(channel, status)

    def add_channel(self, channel):
        self.combined.add_input(channel)

    def remove_channel(self, channel):
        self.combined.remove_input(channel)

    @property
    def last_output(self):
        return self.combined.watermark


BOTH = pytest.mark.parametrize("make", [StatusWatermarkValve, AsInput], ids=["valve", "combined"])
