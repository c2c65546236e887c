import pytest

from tests.watermark.acceptance import covers
from watermark.errors import InvalidParameterError, MissingTimestampError, StateFormatError
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import OutputTag, Record, TimeDomain
from watermark.reference.windows import (
    GLOBAL_WINDOW,
    CountTrigger,
    CumulativeWindows,
    EndOfStreamTrigger,
    GlobalWindows,
    KeyedStream,
    PurgingTrigger,
    SessionWindows,
    SlidingWindows,
    Stream,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingWindows,
    WindowAssigner,
    WindowOperatorSpec,
)

LATE = OutputTag("late")
CLOCK = TimeDomain.PROCESSING


def key(row):
    return row[0]


def add(first, second):
    return first[0], first[1] + second[1]


def summing(assigner, *, lateness_ms=0, trigger=None, side=True):
    windowed = Stream().key_by(key).window(assigner).allowed_lateness(lateness_ms)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    if side:
        windowed = windowed.side_output_late_data(LATE)
    return OperatorHarness(lambda: windowed.reduce(add))


def values(elements):
    return [each.value for each in elements if isinstance(each, Record)]


ASSIGNED = {
    "tumbling": (TumblingWindows(100), 5, [(0, 100)]),
    "tumbling_at_its_start": (TumblingWindows(100), 100, [(100, 200)]),
    "tumbling_at_its_last_instant": (TumblingWindows(100), 99, [(0, 100)]),
    "tumbling_before_1970": (TumblingWindows(100), -1, [(-100, 0)]),
    "tumbling_at_a_negative_boundary": (TumblingWindows(100), -100, [(-100, 0)]),
    "tumbling_with_offset": (TumblingWindows(100, 30), 29, [(-70, 30)]),
    "tumbling_with_negative_offset": (TumblingWindows(100, -30), 75, [(70, 170)]),
    "sliding": (SlidingWindows(10, 5), 12, [(10, 20), (5, 15)]),
    "sliding_before_1970": (SlidingWindows(10, 5), -1, [(-5, 5), (-10, 0)]),
    "sliding_with_offset": (SlidingWindows(10, 5, 2), 11, [(7, 17), (2, 12)]),
    "sliding_with_uneven_slide": (SlidingWindows(10, 4), 9, [(8, 18), (4, 14), (0, 10)]),
    "sliding_with_holes": (SlidingWindows(3, 5), 4, []),
    "cumulative": (CumulativeWindows(15, 5), 7, [(0, 15), (0, 10)]),
    "cumulative_at_its_start": (CumulativeWindows(10, 5), 10, [(10, 20), (10, 15)]),
    "cumulative_at_its_last_instant": (CumulativeWindows(10, 5), 9, [(0, 10)]),
    "cumulative_before_1970": (CumulativeWindows(10, 5), -1, [(-10, 0)]),
    "cumulative_with_offset": (CumulativeWindows(10, 5, 7), 8, [(7, 17), (7, 12)]),
    "session": (SessionWindows(30), 12, [(12, 42)]),
    "session_with_a_gap_of_its_own": (SessionWindows(lambda row: row[1]), 12, [(12, 19)]),
    "global": (GlobalWindows(), 12, [GLOBAL_WINDOW]),
}


@pytest.mark.parametrize(("assigner", "timestamp", "expected"), ASSIGNED.values(), ids=ASSIGNED)
@covers("C15", "C16", "C18")
def test_records_are_assigned_to_windows(assigner, timestamp, expected):
    assert list(assigner.assign(("a", 7), timestamp, 0)) == [TimeWindow(*each) for each in expected]


@covers("C15")
def test_boundaries_do_not_depend_on_the_first_record():
    for first in (0, 27, 99, 1_234):
        assigner = TumblingWindows(100)
        assigner.assign(None, first, 0)
        assert assigner.assign(None, 325, 0) == (TimeWindow(300, 400),)


@covers("C15")
def test_processing_time_windows_follow_the_clock_not_the_record():
    for assigner in (TumblingWindows(100, time=CLOCK), SlidingWindows(100, 100, time=CLOCK)):
        assert assigner.assign(None, 5, 250) == (TimeWindow(200, 300),)
    assert SessionWindows(10, time=CLOCK).assign(None, 5, 250) == (TimeWindow(250, 260),)


BAD_PARAMETERS = {
    "tumbling_size_zero": (lambda: TumblingWindows(0), "size of 0 ms"),
    "tumbling_size_negative": (lambda: TumblingWindows(-5), "size of -5 ms"),
    "tumbling_offset_is_size": (lambda: TumblingWindows(10, 10), "offset of 10 ms"),
    "tumbling_offset_below_minus_size": (lambda: TumblingWindows(10, -10), "offset of -10 ms"),
    "sliding_size_negative": (lambda: SlidingWindows(-1, 5), "size of -1 ms"),
    "sliding_slide_zero": (lambda: SlidingWindows(10, 0), "slide of 0 ms"),
    "sliding_offset_is_slide": (lambda: SlidingWindows(10, 5, 5), "offset of 5 ms"),
    "cumulative_step_zero": (lambda: CumulativeWindows(10, 0), "step of 0 ms"),
    "cumulative_size_of_no_steps": (lambda: CumulativeWindows(10, 4), "a size of 10 ms"),
    "cumulative_offset_is_size": (lambda: CumulativeWindows(10, 5, 10), "offset of 10 ms"),
    "session_gap_zero": (lambda: SessionWindows(0), "gap of 0 ms"),
    "session_gap_of_a_record_zero": (
        lambda: SessionWindows(lambda row: 0).assign("row", 5, 0),
        "gap of 0 ms",
    ),
    "lateness_negative": (
        lambda: WindowOperatorSpec(TumblingWindows(5), allowed_lateness_ms=-1),
        "lateness of -1 ms",
    ),
    "side_output_without_name": (lambda: OutputTag(""), "no name"),
}


@pytest.mark.parametrize(("make", "text"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_meaningless_parameters_are_refused(make, text):
    with pytest.raises(InvalidParameterError) as raised:
        make()
    assert text in raised.value.message
    assert raised.value.hint.endswith(".")


class UnmergeableTrigger(Trigger):
    can_merge = False

    def on_element(self, value, timestamp_ms, window, context):
        return TriggerResult.CONTINUE


def test_sessions_refuse_a_trigger_that_cannot_merge():
    with pytest.raises(InvalidParameterError, match="cannot merge"):
        WindowOperatorSpec(SessionWindows(5), trigger=PurgingTrigger(UnmergeableTrigger()))


@covers("A02")
def test_a_program_keys_then_windows_then_computes():
    keyed = Stream().key_by(key)
    assert isinstance(keyed, KeyedStream)
    operator = keyed.window(TumblingWindows(100)).reduce(add)
    assert operator.spec.allowed_lateness_ms == 0
    assert operator.spec.late_tag is None


@covers("A02")
def test_windows_without_a_key_take_all_records_together():
    windowed = Stream().window_all(TumblingWindows(100))
    harness = OperatorHarness(lambda: windowed.reduce(lambda a, b: a + b))
    harness.row(1, 5)
    harness.row(2, 50)
    assert values(harness.watermark(99)) == [3]


@covers("A02", "D04")
def test_keys_have_windows_of_their_own():
    harness = summing(TumblingWindows(100))
    for row in (("a", 1), ("b", 10), ("a", 2)):
        harness.row(row, 5)
    assert sorted(values(harness.watermark(99))) == [("a", 3), ("b", 10)]


LATENESS = {
    "accepted_one_before_the_end": (0, 98, 5, "accepted"),
    "equality_is_late": (0, 99, 5, "late"),
    "after_the_end_is_late": (0, 100, 5, "late"),
    "accepted_one_before_the_lateness_ends": (10, 108, 5, "fired"),
    "equality_with_lateness_is_late": (10, 109, 5, "late"),
    "fires_at_once_within_lateness": (10, 99, 99, "fired"),
    "another_window_is_not_concerned": (0, 99, 100, "accepted"),
}


@pytest.mark.parametrize(
    ("lateness_ms", "watermark", "timestamp", "verdict"), LATENESS.values(), ids=LATENESS
)
@covers("A08", "A10", "A11", "A18", "A19", "B08", "D10", "D11", "D12", "E27")
def test_a_record_is_late_when_its_window_has_ended(lateness_ms, watermark, timestamp, verdict):
    harness = summing(TumblingWindows(100), lateness_ms=lateness_ms)
    harness.watermark(watermark)
    caused = harness.row(("a", 1), timestamp)
    outcome = "accepted" if not caused else "fired" if isinstance(caused[0], Record) else "late"
    assert outcome == verdict


@covers("A17", "D08")
def test_a_record_that_is_late_for_some_of_its_windows_is_added_to_the_others():
    harness = summing(SlidingWindows(10, 5))
    harness.watermark(14)
    assert harness.row(("a", 1), 12) == []
    assert [(r.value, r.timestamp_ms) for r in harness.watermark(19)[:-1]] == [(("a", 1), 19)]


@covers("D05", "D12", "E30")
def test_side_output_needs_the_record_itself_to_be_late():
    """A slide above the size leaves holes: no window, but not late either."""
    harness = summing(SlidingWindows(3, 5), lateness_ms=0)
    harness.watermark(3)
    assert harness.row(("a", 1), 4) == []
    assert harness.operator.late_records_dropped == 0
    harness.watermark(4)
    harness.row(("a", 1), 4)
    assert [each.value for each in harness.side(LATE)] == [("a", 1)]


@covers("D05", "D01")
def test_without_side_output_late_records_are_counted_and_dropped():
    harness = summing(TumblingWindows(100), side=False)
    harness.watermark(99)
    assert harness.row(("a", 1), 5) == []
    assert harness.operator.late_records_dropped == 1


@covers("D05")
def test_side_output_gives_the_original_record():
    harness = summing(TumblingWindows(100))
    harness.watermark(99)
    row = ("a", 1)
    harness.row(row, 5)
    (late,) = harness.side(LATE)
    assert late == Record(row, 5)
    assert late.value is row


@covers("B12", "B21")
def test_records_at_the_start_of_time_are_late_from_the_start():
    harness = summing(TumblingWindows(100), lateness_ms=1_000)
    harness.row(("a", 1), MIN_TIMESTAMP)
    assert [each.value for each in harness.side(LATE)] == [("a", 1)]


def test_event_time_needs_a_timestamp():
    harness = summing(TumblingWindows(100))
    with pytest.raises(MissingTimestampError, match="without a timestamp") as raised:
        harness.row(("a", 1))
    assert "timestamp assigner" in raised.value.hint


@covers("A19", "D11")
def test_a_window_near_the_end_of_time_is_cleaned_at_the_end_and_not_before():
    harness = summing(TumblingWindows(100), lateness_ms=MAX_TIMESTAMP)
    near = MAX_TIMESTAMP - 150
    harness.row(("a", 1), near)
    (window,) = TumblingWindows(100).assign(None, near, 0)
    assert harness.operator.cleanup_ms(window) == MAX_TIMESTAMP
    assert values(harness.watermark(MAX_TIMESTAMP - 1)) == [("a", 1)]
    assert values(harness.row(("a", 2), near)) == [("a", 3)]
    assert harness.operator.open_windows == 1
    harness.end_of_input()
    assert harness.operator.open_windows == 0
    harness.row(("a", 4), near)
    assert [each.value for each in harness.side(LATE)] == [("a", 4)]


@covers("A19")
def test_the_last_window_of_all_fires_at_the_end_of_time():
    harness = summing(TumblingWindows(100))
    harness.row(("a", 1), MAX_TIMESTAMP - 3)
    assert values(harness.watermark(MAX_TIMESTAMP - 1)) == []
    harness.end_of_input()
    assert harness.values() == [("a", 1)]


@covers("A03", "D11")
def test_windows_that_follow_the_clock_have_no_lateness():
    harness = summing(TumblingWindows(100, time=CLOCK), lateness_ms=50)
    harness.row(("a", 1), 5)
    assert harness.operator.cleanup_ms(TimeWindow(0, 100)) == 99
    # Watermarks do not concern them.
    assert values(harness.watermark(10_000)) == []
    assert harness.row(("a", 2), 5) == []
    assert values(harness.clock(98)) == []
    assert values(harness.clock(99)) == [("a", 3)]
    assert harness.operator.open_windows == 0
    harness.clock(120)
    assert harness.row(("a", 4), 5) == []
    assert values(harness.clock(500)) == [("a", 4)]


@covers("A07", "A13", "E16")
def test_results_carry_the_windows_last_instant_at_each_firing():
    harness = summing(TumblingWindows(100), lateness_ms=50)
    harness.row(("a", 1), 5)
    harness.watermark(99)
    harness.row(("a", 2), 7)
    assert [each.timestamp_ms for each in harness.records()] == [99, 99]


@covers("E16")
def test_results_of_the_global_window_carry_the_end_of_time():
    harness = summing(GlobalWindows(), trigger=CountTrigger(2))
    harness.row(("a", 1), 5)
    (record,) = harness.row(("a", 2), 6)
    assert record == Record(("a", 3), MAX_TIMESTAMP)


@covers("D07", "E16")
def test_the_global_window_can_fire_at_the_end_of_the_input():
    harness = summing(GlobalWindows(), trigger=EndOfStreamTrigger())
    harness.row(("a", 1), 5)
    harness.row(("a", 2), 6)
    assert values(harness.watermark(MAX_TIMESTAMP - 1)) == []
    assert harness.end_of_input() == [Record(("a", 3), MAX_TIMESTAMP), Watermark(MAX_TIMESTAMP)]


def test_the_global_window_never_fires_by_itself():
    harness = summing(GlobalWindows())
    harness.row(("a", 1), 5)
    assert values(harness.end_of_input()) == []


@covers("A14", "E05", "E17", "E19")
def test_results_come_before_the_watermark_that_caused_them_and_are_not_late():
    harness = summing(TumblingWindows(100))
    harness.row(("a", 1), 5)
    harness.row(("a", 1), 105)
    result_1, result_2, watermark = harness.watermark(250)
    assert (result_1.timestamp_ms, result_2.timestamp_ms) == (99, 199)
    assert watermark == Watermark(250)
    assert all(each.timestamp_ms > each.watermark_ms for each in harness.logged())


@covers("C17")
def test_there_are_no_empty_windows():
    harness = summing(TumblingWindows(100))
    harness.row(("a", 1), 5)
    harness.row(("a", 1), 905)
    harness.end_of_input()
    assert [each.timestamp_ms for each in harness.records()] == [99, 999]


@covers("D02", "D03", "E28")
def test_state_is_kept_for_the_lateness_and_then_gone():
    harness = summing(TumblingWindows(100), lateness_ms=10)
    harness.row(("a", 1), 5)
    harness.watermark(99)
    assert harness.operator.open_windows == 1
    harness.watermark(109)
    assert harness.operator.open_windows == 0
    assert len(harness.operator.timers.event) == 0


@covers("D03")
def test_without_lateness_firing_and_purging_coincide():
    harness = summing(TumblingWindows(100))
    harness.row(("a", 1), 5)
    harness.watermark(99)
    assert harness.operator.open_windows == 0


@covers("B24", "B25", "B57")
def test_after_processing_time_event_windows_follow_the_clock():
    harness = summing(TumblingWindows(100))
    harness.now_ms = 120
    harness.row(("a", 1), 205)
    harness.processing_time()
    assert values(harness.clock(298)) == []
    assert values(harness.clock(299)) == [("a", 1)]
    harness.row(("a", 2), 310)
    harness.row(("a", 5), 290)
    assert [each.value for each in harness.side(LATE)] == [("a", 5)]
    assert values(harness.clock(400)) == [("a", 2)]


@pytest.mark.parametrize("time", list(TimeDomain))
@covers("B57", "E02", "E03")
def test_one_program_serves_both_times(time):
    windowed = Stream(time).key_by(key).time_window(100)
    harness = OperatorHarness(lambda: windowed.reduce(add))
    harness.row(("a", 1), 5)
    harness.row(("a", 2), 6)
    caused = harness.watermark(99) if time is TimeDomain.EVENT else harness.clock(99)
    assert values(caused) == [("a", 3)]


@covers("E03")
def test_sliding_windows_of_the_streams_time():
    windowed = Stream().key_by(key).time_window(10, 5, offset_ms=1)
    assert windowed.spec.assigner.assign(None, 12, 0) == (TimeWindow(11, 21), TimeWindow(6, 16))


@covers("E01")
def test_results_do_not_depend_on_the_speed_of_processing():
    rows = [(("a", number), number * 7) for number in range(100)]
    outcomes = []
    for step in (1, 50, 100_000):
        harness = summing(TumblingWindows(100))
        for number, (row, timestamp) in enumerate(rows):
            harness.clock(number * step)
            harness.row(row, timestamp)
            harness.watermark(timestamp - 20)
        harness.end_of_input()
        outcomes.append(harness.records())
    assert outcomes[0] == outcomes[1] == outcomes[2]


@covers("E01")
def test_results_do_not_depend_on_the_order_of_records_between_watermarks():
    rows = [(("a", number), number * 7) for number in range(100)]
    outcomes = []
    for order in (rows, rows[::-1], rows[50:] + rows[:50]):
        harness = summing(TumblingWindows(100))
        for row, timestamp in order:
            harness.row(row, timestamp)
        harness.end_of_input()
        outcomes.append(harness.records())
    assert outcomes[0] == outcomes[1] == outcomes[2]


class NoWindows(WindowAssigner):
    def assign(self, value, timestamp_ms, now_ms):
        return ()


def test_a_record_without_windows_is_late_only_if_it_is():
    harness = summing(NoWindows())
    assert harness.row(("a", 1), 5) == []
    harness.watermark(5)
    harness.row(("a", 1), 5)
    assert len(harness.side(LATE)) == 1


@covers("C21")
def test_state_goes_only_into_the_operator_of_the_same_uid():
    windowed = Stream().key_by(key).window(TumblingWindows(100))
    state = windowed.uid("agg").reduce(add).snapshot()
    windowed.uid("agg").reduce(add).restore(state)
    with pytest.raises(StateFormatError, match='"agg"') as raised:
        windowed.uid("other").reduce(add).restore(state)
    assert "uid" in raised.value.hint


def test_damaged_state_is_refused():
    windowed = Stream().key_by(key).window(TumblingWindows(100))
    state = windowed.reduce(add).snapshot()
    for damaged in ({}, {**state, "format": 99}, {**state, "own": {}}, {**state, "timers": 5}):
        with pytest.raises(StateFormatError):
            windowed.reduce(add).restore(damaged)
