"""Instants as local times and back: as Python's own zones have them, gaps and overlaps too."""

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.calendar.zones import instants_of, known_zone, local_times
from tests.support.laws import examples

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ZONES = ("Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe", "UTC")
TIMES = st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2035, 1, 1))  # noqa: DTZ001 - local


def micros(moment):
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


@given(st.lists(TIMES, max_size=10), st.sampled_from(ZONES))
@settings(max_examples=examples(200))
def test_an_instant_is_shown_by_the_clocks_of_a_zone(times, zone):
    instants = [time.replace(tzinfo=dt.UTC) for time in times]
    column = pa.array(instants, pa.timestamp("us", "UTC"))
    expected = [time.astimezone(ZoneInfo(zone)).replace(tzinfo=dt.UTC) for time in instants]
    assert local_times(column, zone).cast(pa.int64()).to_pylist() == list(map(micros, expected))


@given(st.lists(TIMES, max_size=10), st.sampled_from(ZONES))
@settings(max_examples=examples(200))
def test_a_local_time_is_an_instant_with_the_offset_before_a_change(times, zone):
    column = pa.array(times, pa.timestamp("us"))
    expected = [time.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(dt.UTC) for time in times]
    assert instants_of(column, zone).cast(pa.int64()).to_pylist() == list(map(micros, expected))


KNOWN = {
    "UTC": "UTC", "GMT": "UTC", "Z": "UTC", "+02:00": 120, "GMT-8": -480, "UTC+05:30": 330,
    "PST": "America/Los_Angeles", "Europe/Berlin": "Europe/Berlin", "Mars": None, "+19:00": None,
    "../etc/passwd": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize(("name", "place"), KNOWN.items())
def test_a_zone_is_known_by_the_names_of_java(name, place):
    assert known_zone(name) == place
