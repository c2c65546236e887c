"""The oracle of streams that switch is judged itself: by evidence changed as a bug would."""

from dataclasses import replace

import pytest

from tests.reliability.oracle_event_time import MIN, Event
from tests.reliability.oracle_switch import (
    FiredWindow,
    Known,
    Renaming,
    Story,
    SwitchPin,
    audit_switch,
    known,
    switched_in,
    waited,
)

pytestmark = pytest.mark.matrix

# Watermarks 10 ms behind, windows of 20 ms; the backlog is what batches 0 and 1 read.
EVENTS = (
    Event((0, 0), 1, 1, 30),
    Event((1, 0), 2, 1, 45),
    Event((0, 1), 3, 2, 20),
    Event((1, 1), 4, 1, None),
    Event((0, 2), 5, 1, 1_005),
    Event((1, 2), 6, 1, 30),
    Event((0, 3), 7, 2, 1_018),
)
PINS = (
    SwitchPin(0, {}, {0: 1, 1: 1}, MIN, False, MIN, 500, 2),
    SwitchPin(1, {0: 1, 1: 1}, {0: 2, 1: 2}, 20, False, 20, 900, 2),
    SwitchPin(2, {0: 2, 1: 2}, {0: 3, 1: 3}, MIN, True, 900, 1_000, 3),
    SwitchPin(3, {0: 3, 1: 3}, {0: 3, 1: 3}, MIN, True, 1_000, 1_019, 4),
    SwitchPin(4, {0: 3, 1: 3}, {0: 4, 1: 3}, MIN, True, 1_019, 1_030, 4),
)
WINDOWS = (
    FiredWindow(1, 1, 20, 1, "1:a"),
    FiredWindow(1, 1, 40, 1, "2:a"),
    FiredWindow(3, 1, 1_000, 1, "5:b"),
)
STORY = Story(
    events=EVENTS,
    backlog={0: 2, 1: 2},
    delay_ms=10,
    size_ms=20,
    changes=[Renaming(1, "a"), Renaming(2, "x"), Renaming(1, "b"), Renaming(1, "c")],
    pins=PINS,
    late=[(0, 1), (1, 2), (0, 3)],
    dead=[(1, 1)],
    windows=WINDOWS,
)


def with_pin(number, **changed):
    pins = [*PINS[:number], replace(PINS[number], **changed), *PINS[number + 1 :]]
    return replace(STORY, pins=pins)


def test_what_is_right_has_no_faults():
    assert audit_switch(STORY).faults() == {}
    assert switched_in(STORY) == 1
    assert waited(STORY) == 3


def test_a_stream_whose_last_watermark_is_ahead_of_the_clock_switches_when_the_clock_is_there():
    ahead = (*EVENTS[:3], Event((1, 1), 4, 1, 1_005), *EVENTS[4:])
    times = known(replace(STORY, events=ahead))
    assert times[2:4] == [Known(995, 995), Known(2**63 - 1, 1_000)]
    assert switched_in(replace(STORY, events=ahead)) == 2


CHANGED = {
    "switch_comes_a_batch_too_early": (
        with_pin(1, watermark_ms=MIN, processing_time=True, fired_ms=500),
        "early",
    ),
    "switch_comes_a_batch_too_late": (
        with_pin(2, watermark_ms=20, processing_time=False, fired_ms=20),
        "pin_regression",
    ),
    "switch_is_undone": (
        with_pin(3, watermark_ms=35, processing_time=False),
        "pin_regression",
    ),
    "windows_fire_ahead_of_the_clock": (with_pin(2, fired_ms=999), "early"),
    "windows_forget_what_has_fired": (with_pin(3, fired_ms=20), "pin_regression"),
    "batch_reads_across_the_end_of_the_backlog": (
        replace(
            STORY,
            pins=[
                PINS[0],
                replace(PINS[1], end={0: 3, 1: 3}),
                replace(PINS[2], start={0: 3, 1: 3}),
                *PINS[3:],
            ],
        ),
        "early",
    ),
    "batch_is_read_twice": (with_pin(2, start={0: 1, 1: 2}), "duplicate"),
    "batch_is_missing": (replace(STORY, pins=[*PINS[:3], *PINS[4:]]), "pin_regression"),
    "record_is_in_no_batch": (with_pin(4, end={0: 3, 1: 3}), "lost"),
    "window_is_missing": (replace(STORY, windows=WINDOWS[1:]), "lost"),
    "window_is_there_twice": (replace(STORY, windows=[*WINDOWS, WINDOWS[0]]), "duplicate"),
    "window_of_a_late_record": (
        replace(STORY, windows=[*WINDOWS, FiredWindow(2, 1, 1_020, 1, "6:b")]),
        "phantom",
    ),
    "record_is_counted_twice": (
        replace(STORY, windows=[FiredWindow(1, 1, 20, 2, "1:a,1:a"), *WINDOWS[1:]]),
        "wrong_value",
    ),
    "name_is_that_of_a_later_version": (
        replace(STORY, windows=[*WINDOWS[:2], FiredWindow(3, 1, 1_000, 1, "5:c")]),
        "wrong_version",
    ),
    "window_has_fired_before_the_clock": (
        replace(STORY, windows=[*WINDOWS[:2], replace(WINDOWS[2], batch=2)]),
        "early",
    ),
    "window_has_fired_a_batch_too_late": (
        replace(STORY, windows=[replace(WINDOWS[0], batch=2), *WINDOWS[1:]]),
        "torn",
    ),
    "late_record_is_nowhere": (replace(STORY, late=STORY.late[1:]), "lost"),
    "late_record_is_there_twice": (replace(STORY, late=[*STORY.late, (0, 1)]), "duplicate"),
    "dead_letter_is_missing": (replace(STORY, dead=[]), "dead_letter_mismatch"),
}


@pytest.mark.parametrize(("story", "fault"), CHANGED.values(), ids=CHANGED)
def test_what_a_bug_of_the_switch_would_leave_is_caught(story, fault):
    assert fault in audit_switch(story).faults()
