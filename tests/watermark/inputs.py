"""The valve and the combined status have one set of methods, so that one table serves both."""

import pytest

from watermark.valve import CombinedWatermarkStatus, StatusWatermarkValve

BOTH = pytest.mark.parametrize(
    "make", [StatusWatermarkValve, CombinedWatermarkStatus], ids=["valve", "combined"]
)
