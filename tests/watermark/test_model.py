import dataclasses
import pickle

import pytest

from tests.watermark.acceptance import covers
from watermark.errors import InvalidParameterError, SluiceError, WatermarkError
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    START_OF_TIME,
    Watermark,
    add_clamped,
    clamp,
)

CLAMPS = {
    "inside_stays": (5, 5),
    "lowest_stays": (MIN_TIMESTAMP, MIN_TIMESTAMP),
    "highest_stays": (MAX_TIMESTAMP, MAX_TIMESTAMP),
    "above_is_the_end_of_time": (MAX_TIMESTAMP + 1, MAX_TIMESTAMP),
    "below_is_the_start_of_time": (MIN_TIMESTAMP - 1, MIN_TIMESTAMP),
}


@covers("B15", "B54")
def test_a_watermark_is_in_event_time_unless_it_says_otherwise():
    assert Watermark(7) == Watermark(7, use_processing_time=False)
    assert Watermark(7) != Watermark(7, use_processing_time=True)


@covers("B14", "B15", "B23")
def test_a_watermark_is_an_immutable_value_that_can_be_stored():
    watermark = Watermark(7, use_processing_time=True)
    assert pickle.loads(pickle.dumps(watermark)) == watermark
    assert len({watermark, Watermark(7, True), Watermark(7)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        watermark.timestamp_ms = 8


@covers("A05", "B20", "B21")
def test_streams_start_and_end_at_the_ends_of_64_bits():
    assert (MIN_TIMESTAMP, MAX_TIMESTAMP) == (-(2**63), 2**63 - 1)
    assert Watermark(MIN_TIMESTAMP) == START_OF_TIME
    assert Watermark(MAX_TIMESTAMP) == END_OF_TIME
    assert Watermark(MIN_TIMESTAMP, True) == PROCESSING_TIME


@pytest.mark.parametrize(("given", "expected"), CLAMPS.values(), ids=CLAMPS)
def test_times_are_clamped_to_64_bits(given, expected):
    assert clamp(given) == expected
    assert Watermark(given).timestamp_ms == expected


@covers("A19")
def test_sums_of_times_do_not_wrap_around():
    assert add_clamped(MAX_TIMESTAMP, 1) == MAX_TIMESTAMP
    assert add_clamped(MIN_TIMESTAMP, -1) == MIN_TIMESTAMP


@pytest.mark.parametrize("timestamp", ["5", 5.0, None, True])
def test_a_watermark_needs_whole_milliseconds(timestamp):
    with pytest.raises(InvalidParameterError, match="watermark timestamp") as raised:
        Watermark(timestamp)
    assert raised.value.hint.endswith(".")
    assert isinstance(raised.value, WatermarkError)
    assert isinstance(raised.value, SluiceError)
