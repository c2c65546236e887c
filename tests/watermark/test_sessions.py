import pytest

from tests.watermark.acceptance import covers
from watermark.model import Watermark
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import OutputTag, Record, TimeDomain
from watermark.reference.windows import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EndOfStreamTrigger,
    PurgingTrigger,
    SessionWindows,
    Stream,
    TimeWindow,
)

LATE = OutputTag("late")


def listing(context, values):
    return [(context.key, tuple(context.window), [each[1] for each in values])]


def sessions(*, gap_ms=10, lateness_ms=0, trigger=None, time=TimeDomain.EVENT):
    windowed = Stream().key_by(lambda row: row[0]).window(SessionWindows(gap_ms, time=time))
    windowed = windowed.allowed_lateness(lateness_ms).side_output_late_data(LATE)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    return OperatorHarness(lambda: windowed.process(listing))


def values(elements):
    return [each.value for each in elements if isinstance(each, Record)]


MERGES = {
    "within_the_gap": ([0, 9], [((0, 19), [0, 9])]),
    "touching_merges": ([0, 10], [((0, 20), [0, 10])]),
    "one_beyond_the_gap_does_not": ([0, 11], [((0, 10), [0]), ((11, 21), [11])]),
    "out_of_order": ([9, 0], [((0, 19), [9, 0])]),
    "a_bridge_joins_two": ([0, 16, 8], [((0, 26), [0, 16, 8])]),
    "contained": ([0, 8, 4], [((0, 18), [0, 8, 4])]),
    "before_1970": ([-20, -12], [((-20, -2), [-20, -12])]),
}


@pytest.mark.parametrize(("times", "expected"), MERGES.values(), ids=MERGES)
@covers("C18", "D09", "E29")
def test_sessions_merge_when_they_touch(times, expected):
    harness = sessions()
    for time in times:
        harness.row(("a", time), time)
    harness.end_of_input()
    assert harness.values() == [("a", window, rows) for window, rows in expected]
    assert harness.operator.open_windows == 0
    assert len(harness.operator.timers.event) == 0


@covers("C18")
def test_keys_have_sessions_of_their_own():
    harness = sessions()
    harness.row(("a", 0), 0)
    harness.row(("b", 5), 5)
    harness.end_of_input()
    assert harness.values() == [("a", (0, 10), [0]), ("b", (5, 15), [5])]


@covers("C18")
def test_a_gap_may_depend_on_the_record():
    harness = sessions(gap_ms=lambda row: row[1])
    harness.row(("a", 3), 0)
    harness.row(("a", 50), 10)
    harness.end_of_input()
    assert [window for _, window, _ in harness.values()] == [(0, 3), (10, 60)]


@covers("D09", "E29")
def test_lateness_is_judged_on_the_merged_session():
    """Alone [12, 22) would be late at 21, but it extends [15, 25), which is not."""
    harness = sessions()
    harness.row(("a", 15), 15)
    harness.watermark(21)
    harness.row(("a", 12), 12)
    assert harness.side(LATE) == []
    assert values(harness.watermark(24)) == [("a", (12, 25), [15, 12])]


@covers("D09", "E29")
def test_a_late_session_that_merges_with_nothing_is_late():
    harness = sessions()
    harness.row(("a", 40), 40)
    harness.watermark(21)
    harness.row(("a", 12), 12)
    assert [each.value for each in harness.side(LATE)] == [("a", 12)]
    harness.end_of_input()
    assert harness.values() == [("a", (40, 50), [40])]


@covers("E28", "E29")
def test_a_late_record_revives_and_joins_fired_sessions():
    harness = sessions(lateness_ms=100)
    harness.row(("a", 0), 0)
    harness.row(("a", 16), 16)
    harness.watermark(30)
    assert len(harness.values()) == 2
    caused = harness.row(("a", 8), 8)
    assert values(caused) == [("a", (0, 26), [0, 16, 8])]
    assert harness.operator.open_windows == 1
    harness.watermark(125)
    assert harness.operator.open_windows == 0


@covers("D09")
def test_the_timer_of_a_merged_session_is_gone():
    harness = sessions()
    harness.row(("a", 0), 0)
    harness.row(("a", 5), 5)
    assert values(harness.watermark(9)) == []
    assert values(harness.watermark(14)) == [("a", (0, 15), [0, 5])]


@covers("D09")
def test_a_count_trigger_adds_up_at_a_merge_and_may_fire_above_its_limit():
    harness = sessions(trigger=CountTrigger(4))
    for time in (0, 1, 2, 20, 21, 22):
        assert harness.row(("a", time), time) == []
    (fired,) = harness.row(("a", 11), 11)
    assert len(fired.value[2]) == 7


@covers("D09")
def test_the_counts_of_merged_sessions_add_up():
    harness = sessions(trigger=CountTrigger(4))
    for time in (0, 1, 16):
        assert harness.row(("a", time), time) == []
    (fired,) = harness.row(("a", 8), 8)
    assert fired.value == ("a", (0, 26), [0, 1, 16, 8])


@covers("D03")
def test_purging_keeps_the_session_but_not_its_records():
    harness = sessions(trigger=PurgingTrigger(CountTrigger(2)))
    harness.row(("a", 0), 0)
    assert values(harness.row(("a", 5), 5)) == [("a", (0, 15), [0, 5])]
    harness.row(("a", 9), 9)
    assert values(harness.row(("a", 10), 10)) == [("a", (0, 20), [9, 10])]


@covers("D09")
def test_early_results_of_sessions_follow_the_merged_session():
    harness = sessions(gap_ms=100, trigger=ContinuousEventTimeTrigger(10))
    harness.row(("a", 3), 3)
    harness.row(("a", 60), 60)
    assert [rows for _, _, rows in values(harness.watermark(10))] == [[3, 60]]
    harness.watermark(19)
    assert [rows for _, _, rows in values(harness.watermark(20))] == [[3, 60]]
    fired = values(harness.watermark(200))
    assert fired[-1] == ("a", (3, 160), [3, 60])
    assert len(harness.operator.timers.event) == 0


@pytest.mark.parametrize("interval_ms", [4, 5, 7, 10, 100])
@covers("D09")
def test_early_results_come_at_intervals_and_not_at_an_end_that_a_merge_has_moved(interval_ms):
    harness = sessions(trigger=ContinuousEventTimeTrigger(interval_ms))
    harness.row(("a", 0), 0)
    harness.row(("a", 6), 6)
    fired = [time for time in range(20) if values(harness.watermark(time))]
    assert fired == sorted({*range(interval_ms, 16, interval_ms), 15})


@pytest.mark.parametrize("interval_ms", [4, 5, 7, 10, 100])
def test_results_by_the_clock_come_at_intervals_and_not_at_an_end_that_has_moved(interval_ms):
    trigger = ContinuousProcessingTimeTrigger(interval_ms)
    harness = sessions(trigger=trigger, time=TimeDomain.PROCESSING)
    harness.row(("a", 0))
    harness.clock(6)
    harness.row(("a", 6))
    early = range(interval_ms, 16, interval_ms)
    fired = [time for time in range(7, 20) if values(harness.clock(time))]
    assert fired == sorted({*(each for each in early if each > 6), 15})


def test_sessions_by_the_clock():
    harness = sessions(time=TimeDomain.PROCESSING)
    harness.row(("a", 1))
    harness.clock(8)
    harness.row(("a", 2))
    assert values(harness.clock(16)) == []
    assert values(harness.clock(17)) == [("a", (0, 18), [1, 2])]
    assert harness.operator.open_windows == 0


def test_repeated_results_by_the_clock_follow_the_merged_session():
    harness = sessions(
        gap_ms=100, trigger=ContinuousProcessingTimeTrigger(10), time=TimeDomain.PROCESSING
    )
    harness.row(("a", 1))
    harness.clock(5)
    harness.row(("a", 2))
    assert [rows for _, _, rows in values(harness.clock(10))] == [[1, 2]]


def test_sessions_that_wait_for_the_end_of_the_input():
    harness = sessions(trigger=EndOfStreamTrigger(), lateness_ms=2**63)
    harness.row(("a", 0), 0)
    harness.row(("a", 5), 5)
    assert values(harness.watermark(1_000)) == []
    assert harness.end_of_input()[0].value == ("a", (0, 15), [0, 5])


def test_windows_cover_each_other():
    assert TimeWindow(0, 5).cover(TimeWindow(3, 9)) == TimeWindow(0, 9)
    assert not TimeWindow(0, 5).touches(TimeWindow(6, 9))
    assert Watermark(5).timestamp_ms in range(*TimeWindow(0, 9))
