import pytest

from tests.watermark.acceptance import covers
from watermark.errors import InvalidParameterError
from watermark.model import MAX_TIMESTAMP
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import OutputTag, Record, TimeDomain
from watermark.reference.windows import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    EventTimeTrigger,
    GlobalWindows,
    PurgingTrigger,
    SessionWindows,
    Stream,
    TimeEvictor,
    Trigger,
    TriggerResult,
    TumblingWindows,
)

EARLY = OutputTag("early")


def harness_of(assigner, *, trigger=None, evictor=None, lateness_ms=0):
    windowed = Stream().window_all(assigner).allowed_lateness(lateness_ms)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    if evictor is not None:
        windowed = windowed.evictor(evictor)
    return OperatorHarness(lambda: windowed.process(lambda context, values: [list(values)]))


def values(elements):
    return [each.value for each in elements if isinstance(each, Record)]


@covers("C08", "D08")
def test_a_count_trigger_fires_by_count_and_never_by_time():
    harness = harness_of(TumblingWindows(100), trigger=CountTrigger(2))
    assert values(harness.row(1, 5)) == []
    assert values(harness.row(2, 5)) == [[1, 2]]
    assert values(harness.row(3, 5)) == []
    assert values(harness.row(4, 5)) == [[1, 2, 3, 4]]
    harness.row(5, 5)
    assert values(harness.watermark(99)) == []
    assert harness.operator.open_windows == 0
    assert harness.operator.snapshot()["own"]["triggers"] == []


@covers("C08")
def test_a_trigger_sees_the_value_of_the_record():
    class OnMark(Trigger):
        def on_element(self, value, timestamp_ms, window, context):
            return TriggerResult.FIRE if value == "end" else TriggerResult.CONTINUE

    harness = harness_of(GlobalWindows(), trigger=PurgingTrigger(OnMark()))
    assert values(harness.row("a", 5)) == []
    assert values(harness.row("end", 5)) == [["a", "end"]]


@covers("C08", "D03", "D08")
def test_a_purging_trigger_clears_at_each_firing():
    harness = harness_of(GlobalWindows(), trigger=PurgingTrigger(CountTrigger(2)))
    for value in (1, 2, 3, 4, 5):
        harness.row(value, 5)
    assert harness.values() == [[1, 2], [3, 4]]
    assert harness.operator.open_windows == 1


@covers("D03", "D08")
def test_under_a_purging_trigger_a_late_record_fires_alone():
    trigger = PurgingTrigger(EventTimeTrigger())
    harness = harness_of(TumblingWindows(100), trigger=trigger, lateness_ms=50)
    harness.row(1, 5)
    assert values(harness.watermark(99)) == [[1]]
    assert values(harness.row(2, 5)) == [[2]]


@covers("D08")
def test_a_window_without_contents_gives_nothing():
    """Purged by its count, then its end comes: there is nothing to emit."""

    class CountThenEnd(CountTrigger):
        def on_element(self, value, timestamp_ms, window, context):
            context.register(TimeDomain.EVENT, window.max_timestamp_ms)
            return super().on_element(value, timestamp_ms, window, context)

        def on_event_time(self, time_ms, window, context):
            return EventTimeTrigger().on_event_time(time_ms, window, context)

    harness = harness_of(TumblingWindows(100), trigger=PurgingTrigger(CountThenEnd(1)))
    assert values(harness.row(1, 5)) == [[1]]
    assert values(harness.watermark(99)) == []


@covers("C08", "E26")
def test_continuous_event_time_gives_early_results_and_the_last_one():
    harness = harness_of(TumblingWindows(100), trigger=ContinuousEventTimeTrigger(30))
    harness.row(1, 5)
    assert values(harness.watermark(29)) == []
    assert values(harness.watermark(30)) == [[1]]
    harness.row(2, 40)
    assert values(harness.watermark(95)) == [[1, 2], [1, 2]]
    assert values(harness.watermark(99)) == [[1, 2]]
    assert len(harness.operator.timers.event) == 0


@covers("C08", "E28")
def test_continuous_event_time_fires_at_once_for_late_records():
    harness = harness_of(
        TumblingWindows(100), trigger=ContinuousEventTimeTrigger(30), lateness_ms=50
    )
    harness.row(1, 5)
    harness.watermark(120)
    assert values(harness.row(2, 6)) == [[1, 2]]


@covers("C08", "E26")
def test_continuous_processing_time_gives_results_by_the_clock():
    harness = harness_of(TumblingWindows(100), trigger=ContinuousProcessingTimeTrigger(30))
    harness.clock(35)
    harness.row(1, 5)
    assert values(harness.clock(59)) == []
    assert values(harness.clock(60)) == [[1]]
    assert values(harness.clock(90)) == [[1]]
    # The last planned time is the window's end; event time ends the window.
    assert values(harness.clock(99)) == [[1]]
    assert values(harness.watermark(99)) == []
    assert harness.operator.open_windows == 0


def test_continuous_processing_time_on_windows_of_the_clock():
    assigner = TumblingWindows(100, time=TimeDomain.PROCESSING)
    harness = harness_of(assigner, trigger=ContinuousProcessingTimeTrigger(30))
    harness.row(1)
    assert values(harness.clock(200)) == [[1]] * 4
    assert len(harness.operator.timers.processing) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountTrigger(0),
        lambda: ContinuousEventTimeTrigger(0),
        lambda: ContinuousProcessingTimeTrigger(-1),
        lambda: CountEvictor(-1),
        lambda: TimeEvictor(-1),
    ],
)
def test_meaningless_parameters_are_refused(make):
    with pytest.raises(InvalidParameterError) as raised:
        make()
    assert "expected" in raised.value.message
    assert raised.value.hint.endswith(".")


EVICTED = {
    "count": (CountEvictor(2), [[2, 3], [2, 3]]),
    "count_of_none": (CountEvictor(0), [[], []]),
    "count_after": (CountEvictor(1, evict_after=True), [[1, 2, 3], [3]]),
    "time": (TimeEvictor(10), [[3], [3]]),
    "time_after": (TimeEvictor(30, evict_after=True), [[1, 2, 3], [2, 3]]),
    "delta": (DeltaEvictor(2, lambda a, b: abs(a - b)), [[2, 3], [2, 3]]),
    "delta_after": (DeltaEvictor(1, lambda a, b: abs(a - b), evict_after=True), [[1, 2, 3], [3]]),
}


@pytest.mark.parametrize(("evictor", "expected"), EVICTED.values(), ids=EVICTED)
@covers("C08")
def test_evictors_choose_what_the_function_sees(evictor, expected):
    harness = harness_of(GlobalWindows(), trigger=CountTrigger(3), evictor=evictor)
    for value, time in ((1, 0), (2, 25), (3, 40)):
        harness.row(value, time)
    assert harness.values() == expected[:1]
    operator = harness.operator
    kept = [row for _, _, rows in operator.snapshot()["own"]["windows"] for row, _ in rows]
    assert kept == expected[1]


def test_the_time_evictor_keeps_records_without_time():
    rows = [Record(1), Record(2)]
    assert TimeEvictor(5).before(rows) == rows


def test_reduce_and_aggregate_see_what_the_evictor_leaves():
    class Total:
        def create(self):
            return 0

        def add(self, value, accumulator):
            return accumulator + value

        def result(self, accumulator):
            return accumulator

        def merge(self, first, second):
            return first + second

    windowed = Stream().window_all(GlobalWindows()).trigger(CountTrigger(3))
    for operator in (
        windowed.evictor(CountEvictor(2)).reduce(lambda a, b: a + b),
        windowed.evictor(CountEvictor(2)).aggregate(Total()),
    ):
        harness = OperatorHarness(lambda each=operator: each)
        for value in (1, 2, 3):
            harness.row(value, 0)
        assert harness.values() == [5]
    empty = windowed.evictor(CountEvictor(0)).reduce(lambda a, b: a + b)
    harness = OperatorHarness(lambda: empty)
    for value in (1, 2, 3):
        harness.row(value, 0)
    assert harness.values() == []


@covers("C10", "D05")
def test_process_functions_see_window_key_and_time_and_have_side_outputs():
    def report(context, values):
        context.output(EARLY, len(values))
        yield (context.key, context.window.start_ms, context.current_watermark_ms, context.now_ms)

    windowed = Stream().key_by(lambda row: row % 2).window(TumblingWindows(100))
    harness = OperatorHarness(lambda: windowed.process(report), now_ms=7)
    for value in (1, 3, 4):
        harness.row(value, 105)
    harness.watermark(250)
    assert harness.values() == [(1, 100, 250, 7), (0, 100, 250, 7)]
    assert harness.side(EARLY) == [Record(2, 199), Record(1, 199)]


@covers("C10")
def test_aggregates_merge_with_their_sessions_and_pass_through_a_process_function():
    class Mean:
        def create(self):
            return (0, 0)

        def add(self, value, accumulator):
            return accumulator[0] + value, accumulator[1] + 1

        def result(self, accumulator):
            return accumulator[0] / accumulator[1]

        def merge(self, first, second):
            return first[0] + second[0], first[1] + second[1]

    windowed = Stream().window_all(SessionWindows(10))
    harness = OperatorHarness(
        lambda: windowed.aggregate(Mean(), lambda context, values: [("mean", *values)])
    )
    for value, time in ((1, 0), (2, 16), (6, 8)):
        harness.row(value, time)
    harness.watermark(MAX_TIMESTAMP)
    assert harness.values() == [("mean", 3.0)]


def test_reduce_merges_with_its_sessions():
    windowed = Stream().window_all(SessionWindows(10))
    harness = OperatorHarness(lambda: windowed.reduce(lambda a, b: a + b))
    for value, time in ((1, 0), (2, 16), (6, 8)):
        harness.row(value, time)
    harness.end_of_input()
    assert harness.values() == [9]
