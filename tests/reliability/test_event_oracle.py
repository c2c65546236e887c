"""The oracle of event time is judged itself: by evidence that was changed as a bug would."""

from dataclasses import replace

import pytest

from tests.reliability.oracle_event_time import (
    MIN,
    Batch,
    Change,
    CountedRow,
    Event,
    JoinedRow,
    Stream,
    Words,
    audit_join,
    audit_joined_windows,
    audit_windows,
    version_at,
)

pytestmark = pytest.mark.matrix

# Watermark 10 ms behind: batch 0 sees nothing, batch 1 sees 40, batch 2 the end of the stream.
EVENTS = [
    Event((0, 0), 100, 1, 20),
    Event((0, 1), 101, 1, 50),
    Event((0, 2), 102, 1, None),
    Event((0, 3), 103, 1, 45),
    Event((0, 4), 104, 1, 15),
]
BATCHES = (
    Batch(0, {0: 0}, {0: 2}, MIN),
    Batch(1, {0: 2}, {0: 5}, 40),
    Batch(2, {0: 5}, {0: 5}, 40),
)
CHANGES = [Change(1, 0, "a"), Change(1, 45, "b"), Change(1, 50, "c"), Change(1, 50, None)]
ROWS = (
    JoinedRow((0, 0), 0, 100, "a"),
    JoinedRow((0, 1), 2, 101, None),
    JoinedRow((0, 3), 2, 103, "b"),
)
JOIN = Words(BATCHES, late=[(0, 4)], dead=[(0, 2)])
WINDOWS = Words(BATCHES, late=[(0, 4)], dead=[(0, 2)])
COUNTS = (CountedRow(1, 20, 1, "100"), CountedRow(1, 40, 2, "101,103"))
JOINED_COUNTS = (CountedRow(1, 20, 1, "100:a"), CountedRow(1, 40, 2, "101:?,103:b"))

AT = {"before_the_first": (-1, None), "inclusive": (45, "b"), "of_one_time_the_last": (50, None)}


@pytest.mark.parametrize(("at_ms", "name"), AT.values(), ids=AT)
def test_a_version_begins_at_its_own_time(at_ms, name):
    assert version_at(CHANGES, at_ms) == name


def test_a_late_change_does_not_hide_a_newer_one():
    assert version_at([Change(1, 10, "new"), Change(1, 5, "late")], 20) == "new"


def join(rows=ROWS, words=JOIN):
    return audit_join(Stream(EVENTS, words, 10), CHANGES, list(rows)).faults()


def windows(rows=COUNTS, words=WINDOWS):
    verdict = audit_windows(Stream(EVENTS, words, 10), list(rows), size_ms=20, lateness_ms=1)
    return verdict.faults()


def joined_windows(rows=JOINED_COUNTS, words=JOIN):
    stream = Stream(EVENTS, words, 10)
    return audit_joined_windows(stream, CHANGES, list(rows), size_ms=20).faults()


def test_what_is_right_has_no_faults():
    assert join() == {}
    assert windows() == {}
    assert joined_windows() == {}


JOINS = {
    "row_is_missing": ({"rows": ROWS[1:]}, "lost"),
    "row_is_there_twice": ({"rows": [*ROWS, ROWS[0]]}, "duplicate"),
    "late_record_has_a_row": ({"rows": [*ROWS, JoinedRow((0, 4), 1, 104, "a")]}, "phantom"),
    "version_of_another_time": ({"rows": [replace(ROWS[0], name="b"), *ROWS[1:]]}, "wrong_version"),
    "values_of_another_record": ({"rows": [replace(ROWS[0], id=7), *ROWS[1:]]}, "wrong_value"),
    "row_left_too_early": ({"rows": [*ROWS[:2], replace(ROWS[2], batch=1)]}, "early"),
    "row_was_forgotten_for_a_batch": ({"rows": [replace(ROWS[0], batch=1), *ROWS[1:]]}, "torn"),
    "late_record_is_nowhere": ({"words": replace(JOIN, late=[])}, "lost"),
    "late_record_is_there_twice": ({"words": replace(JOIN, late=[(0, 4)] * 2)}, "duplicate"),
    "dead_letter_is_missing": ({"words": replace(JOIN, dead=[])}, "dead_letter_mismatch"),
    "batch_is_missing": ({"words": replace(JOIN, batches=BATCHES[1:])}, "lost"),
    "pins_leave_a_gap": (
        {"words": replace(JOIN, batches=(BATCHES[0], replace(BATCHES[1], start={0: 3})))},
        "pin_regression",
    ),
    "watermark_is_ahead_of_the_records": (
        {"words": replace(JOIN, batches=(BATCHES[0], replace(BATCHES[1], watermark_ms=44)))},
        "early",
    ),
}


@pytest.mark.parametrize(("given", "fault"), JOINS.values(), ids=JOINS)
def test_what_a_bug_of_the_join_would_leave_is_caught(given, fault):
    assert fault in join(**given)


COUNTED = {
    "record_is_not_counted": ({"rows": [COUNTS[0], CountedRow(1, 40, 1, "101")]}, "wrong_value"),
    "record_is_counted_twice": (
        {"rows": [COUNTS[0], CountedRow(1, 40, 3, "101,101,103")]},
        "wrong_value",
    ),
    "order_of_arrival_is_lost": (
        {"rows": [COUNTS[0], CountedRow(1, 40, 2, "103,101")]},
        "wrong_value",
    ),
    "window_is_missing": ({"rows": COUNTS[1:]}, "lost"),
    "update_was_appended": ({"rows": [*COUNTS, COUNTS[1]]}, "duplicate"),
    "window_of_a_late_record": ({"rows": [*COUNTS, CountedRow(1, 0, 1, "104")]}, "phantom"),
    "watermark_lags_behind_the_records": (
        {"words": replace(WINDOWS, batches=(BATCHES[0], replace(BATCHES[1], watermark_ms=39)))},
        "early",
    ),
}


@pytest.mark.parametrize(("given", "fault"), COUNTED.values(), ids=COUNTED)
def test_what_a_bug_of_the_windows_would_leave_is_caught(given, fault):
    assert fault in windows(**given)


OVER_THE_JOIN = {
    "version_of_another_time": (
        {"rows": [JOINED_COUNTS[0], CountedRow(1, 40, 2, "101:c,103:b")]},
        "wrong_value",
    ),
    "record_is_counted_twice": (
        {"rows": [JOINED_COUNTS[0], CountedRow(1, 40, 3, "101:?,101:?,103:b")]},
        "wrong_value",
    ),
    "record_left_the_join_and_is_in_no_window": ({"rows": JOINED_COUNTS[1:]}, "lost"),
    "update_was_appended": ({"rows": [*JOINED_COUNTS, JOINED_COUNTS[1]]}, "duplicate"),
    "window_of_a_late_record": (
        {"rows": [*JOINED_COUNTS, CountedRow(1, 0, 1, "104:a")]},
        "phantom",
    ),
    "late_record_is_nowhere": ({"words": replace(JOIN, late=[])}, "lost"),
    "dead_letter_is_missing": ({"words": replace(JOIN, dead=[])}, "dead_letter_mismatch"),
}


@pytest.mark.parametrize(("given", "fault"), OVER_THE_JOIN.values(), ids=OVER_THE_JOIN)
def test_what_a_bug_of_windows_over_the_join_would_leave_is_caught(given, fault):
    assert fault in joined_windows(**given)


def test_rows_are_in_a_window_in_the_order_in_which_they_leave_the_join():
    """The first record waits longer than the second, which is in the same window."""
    events = [Event((0, 0), 1, 1, 55), Event((0, 1), 2, 1, 42), Event((0, 2), 3, 1, 60)]
    batches = (
        Batch(0, {0: 0}, {0: 3}, MIN),
        Batch(1, {0: 3}, {0: 3}, 50),
        Batch(2, {0: 3}, {0: 3}, 50),
    )
    stream = Stream(events, Words(batches, late=[], dead=[]), 10)
    rows = [CountedRow(1, 40, 2, "2:a,1:a"), CountedRow(1, 60, 1, "3:a")]
    assert audit_joined_windows(stream, CHANGES[:1], rows, size_ms=20).faults() == {}
