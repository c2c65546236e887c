"""MySQL's binary JSON: the text that the server shows, or no value."""

import json
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.mysql.image_json import double_text, json_text
from tests.joins.adapters.mysql.golden_json import GOLDEN
from tests.support.laws import examples


@pytest.mark.parametrize(("raw", "text"), GOLDEN, ids=[text[:30] for _, text in GOLDEN])
def test_a_value_has_the_servers_text(raw, text):
    assert json_text(bytes.fromhex(raw)) == text


def cpu_s_of_array(count, times):
    """What the texts of so many arrays of so many values take."""
    item = b"\x3c" + b"x" * 60
    first = 8 + 5 * count
    places = b"".join(struct.pack("<BI", 12, first + at * len(item)) for at in range(count))
    raw = b"\x03" + struct.pack("<II", count, first + count * len(item)) + places + item * count
    begin = time.process_time()
    texts = {json_text(raw) for _ in range(times)}
    taken = time.process_time() - begin
    assert texts == {json.dumps(["x" * 60] * count)}
    return taken


def test_a_large_document_costs_about_what_its_parts_cost():
    """Its values are not copied with all that is behind them: that would be some 300 x."""
    assert cpu_s_of_array(60_000, 1) < 30 * cpu_s_of_array(1_000, 60)


def test_a_value_without_bytes_is_null():
    assert json_text(b"") == "null"


@given(st.sampled_from(GOLDEN), st.integers(0, 200), st.binary(max_size=3))
@settings(max_examples=examples(500))
def test_damaged_bytes_are_no_value_or_a_text(golden, place, other):
    raw = bytes.fromhex(golden[0])
    data = raw[: place % len(raw)] + other
    try:
        assert isinstance(json_text(data), str)
    except (ValueError, LookupError, struct.error):
        return


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=examples(500))
def test_a_double_is_the_same_number_with_a_point_or_an_exponent(value):
    text = double_text(value)
    assert float(text) == value
    assert json.loads(text) == value
    assert "." in text or "e" in text
    assert "+" not in text
