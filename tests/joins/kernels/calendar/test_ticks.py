"""Milliseconds of a rowtime, whatever the unit of its column is."""

import pyarrow as pa
import pytest

from joins.kernels.calendar.ticks import millis

NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", NANOS)
def test_each_unit_gives_the_same_milliseconds(unit, zone):
    nanos = [0, 1_500_000_000 * 10**9, -2 * 10**9, None]
    ticks = [None if n is None else n // NANOS[unit] for n in nanos]
    column = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))
    assert millis(column).tolist() == [0, 1_500_000_000_000, -2_000, 0]


def test_a_fraction_of_a_millisecond_is_cut_off_towards_the_past():
    for unit, ticks in (("us", [1_999, -1]), ("ns", [1_999_999, -1])):
        assert millis(pa.array(ticks, pa.timestamp(unit))).tolist() == [1, -1]
