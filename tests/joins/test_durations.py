"""Durations of scripts as numbers, and as text again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.plan.durations import duration_ms, duration_text


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_700, "1.7 s"),
        (90_000, "90 s"),
        (300_000, "5 min"),
        (3_600_000, "1 h"),
        (86_400_000, "1 d"),
        (100_000_500, "100000.5 s"),
    ],
)
def test_a_duration_is_shown_by_the_greatest_unit_that_fits(value_ms, text):
    assert duration_text(value_ms) == text


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "min", "h", "d"]))
def test_the_text_of_whole_units_is_read_as_the_same_duration(number, unit):
    value_ms = duration_ms(f"{number} {unit}")
    text = duration_text(value_ms)
    assert duration_ms(text) == value_ms or ("." in text and unit == "ms")
