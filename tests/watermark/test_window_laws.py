"""Laws of the window operator on random streams."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.watermark.acceptance import covers
from tests.watermark.window_model import WindowModel
from watermark.model import MAX_TIMESTAMP, Watermark, WatermarkStatus
from watermark.reference.operator import ProcessFunction, ProcessOperator
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import OutputTag, Record, TimeDomain
from watermark.reference.windows import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    PurgingTrigger,
    SessionWindows,
    SlidingWindows,
    Stream,
    TumblingWindows,
)

LATE = OutputTag("late")
CLOCK = TimeDomain.PROCESSING
AROUND = st.integers(-25, 30)
FORWARD = st.integers(0, 12)
START = -60
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("row"), st.sampled_from("ab"), AROUND)] * 4,
        *[st.tuples(st.just("watermark"), FORWARD)] * 2,
        st.tuples(st.just("clock"), FORWARD),
        st.tuples(st.just("processing time")),
    ),
    min_size=12,
    max_size=60,
)
MODELS = st.one_of(
    st.builds(
        lambda size, offset, lateness: (
            TumblingWindows(size, offset % size),
            WindowModel(lateness, size=size, slide=size, offset=offset % size),
        ),
        st.integers(1, 25),
        st.integers(0, 24),
        st.integers(0, 15),
    ),
    st.builds(
        lambda size, slide, lateness: (
            SlidingWindows(size, slide),
            WindowModel(lateness, size=size, slide=slide),
        ),
        st.integers(1, 20),
        st.integers(1, 25),
        st.integers(0, 15),
    ),
    st.builds(
        lambda gap, lateness: (SessionWindows(gap), WindowModel(lateness, gap=gap)),
        st.integers(1, 20),
        st.integers(0, 15),
    ),
)


def describe(context, values):
    window = context.window
    return [(context.key, window.start_ms, window.end_ms, tuple(sorted(v[1] for v in values)))]


def fired(elements):
    return sorted(each.value for each in elements if isinstance(each, Record))


def now_in(harness):
    return max(harness.operator.current_watermark_ms, START)


def step_both(harness, model, number, step):
    """One step in the operator and in the model; what each of them fires."""
    if step[0] == "row":
        key, time = step[1], max(model.watermark, START) + step[2]
        # Distinct values tell records apart.
        return harness.row((key, number), time), model.row(key, number, time)
    if step[0] == "watermark":
        if harness.operator.timers.follows_clock:
            return [], []
        watermark = max(model.watermark, START) + step[1]
        return harness.watermark(watermark), model.advance(watermark)
    if step[0] == "clock":
        now_ms = harness.now_ms + step[1]
        follows = harness.operator.timers.follows_clock
        return harness.clock(now_ms), model.advance(now_ms) if follows else []
    now_ms = max(harness.now_ms, model.watermark)
    if harness.operator.timers.follows_clock:
        return [], []
    expected = model.advance(now_ms)
    caused = harness.clock(now_ms)
    return caused + harness.processing_time(), expected


@settings(max_examples=examples(250))
@given(models=MODELS, steps=STEPS)
@covers("A17", "A18", "B24", "B25", "C06", "C18", "D02", "D08", "D09", "D10", "D12", "E28", "E29")
def test_the_operator_gives_what_the_definition_of_windows_gives(models, steps):
    assigner, model = models
    windowed = Stream().key_by(lambda row: row[0]).window(assigner)
    windowed = windowed.allowed_lateness(model.lateness).side_output_late_data(LATE)
    harness = OperatorHarness(lambda: windowed.process(describe), now_ms=START)
    for number, step in enumerate(steps):
        caused, expected = step_both(harness, model, number, step)
        assert fired(caused) == sorted(expected)
        assert [each.value[1] for each in harness.side(LATE)] == model.late


@settings(max_examples=examples(100))
@given(models=MODELS, steps=STEPS)
@covers("E17", "E19")
def test_results_that_a_watermark_fires_are_not_late_downstream(models, steps):
    assigner, _ = models
    windowed = Stream().key_by(lambda row: row[0]).window(assigner)
    harness = OperatorHarness(lambda: windowed.process(describe))
    highest = START
    for number, step in enumerate(steps):
        if step[0] == "row":
            harness.row((step[1], number), now_in(harness) + step[2])
        elif step[0] == "watermark":
            highest += step[1]
            harness.watermark(highest)
    harness.end_of_input()
    assert all(each.timestamp_ms > each.watermark_ms for each in harness.logged())
    assert harness.operator.open_windows == 0
    assert len(harness.operator.timers.event) == 0


@settings(max_examples=examples(60))
@given(
    interval_ms=st.integers(1, 20),
    gap_ms=st.integers(1, 9),
    rows=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=8),
)
@covers("D09")
def test_early_results_come_at_an_interval_or_at_the_end_of_their_session(
    interval_ms, gap_ms, rows
):
    windowed = Stream().window_all(SessionWindows(gap_ms))
    trigger = ContinuousEventTimeTrigger(interval_ms)
    harness = OperatorHarness(lambda: windowed.trigger(trigger).process(ends))
    for now_ms in range(60):
        for end_ms in (each.value for each in harness.watermark(now_ms)[:-1]):
            assert now_ms % interval_ms == 0 or now_ms == end_ms - 1
        for at_ms, ahead_ms in rows:
            if at_ms == now_ms:
                harness.row("row", now_ms + ahead_ms)


def ends(context, values):
    return [context.window.end_ms]


class Sum:
    def create(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def result(self, accumulator):
        return accumulator

    def merge(self, first, second):
        return first + second


class Seen(ProcessFunction):
    def process(self, value, context):
        seen = context.state.setdefault("seen", [])
        seen.append(value[1])
        context.emit((value, list(seen)))
        context.register_timer(context.timestamp_ms + 7)
        context.register_timer(context.now_ms + 5, CLOCK)

    def on_timer(self, timer, context):
        context.emit((timer.domain.value, list(context.state.get("seen", []))))
        if timer.domain is CLOCK:
            context.state.clear()


def windowed(assigner, lateness_ms=0):
    keyed = Stream().key_by(lambda row: row[0]).window(assigner)
    return keyed.allowed_lateness(lateness_ms).side_output_late_data(LATE)


OPERATORS = {
    "tumbling": lambda: windowed(TumblingWindows(20)).aggregate(Sum()),
    "sliding_with_lateness": lambda: windowed(SlidingWindows(20, 7), 10).process(describe),
    "sessions": lambda: windowed(SessionWindows(9), 10).process(describe),
    "sessions_by_count": lambda: (
        windowed(SessionWindows(9)).trigger(CountTrigger(3)).process(describe)
    ),
    "early_results": lambda: (
        windowed(SessionWindows(15), 5).trigger(ContinuousEventTimeTrigger(4)).aggregate(Sum())
    ),
    "purging": lambda: (
        windowed(TumblingWindows(30)).trigger(PurgingTrigger(CountTrigger(2))).aggregate(Sum())
    ),
    "evicting": lambda: windowed(TumblingWindows(30), 9).evictor(CountEvictor(2)).process(describe),
    "by_the_clock": lambda: windowed(TumblingWindows(15, time=CLOCK)).aggregate(Sum()),
    "repeated_by_the_clock": lambda: (
        windowed(SessionWindows(15, time=CLOCK))
        .trigger(ContinuousProcessingTimeTrigger(4))
        .process(describe)
    ),
    "process_function": lambda: ProcessOperator(Seen(), key_of=lambda row: row[0]),
}


def play(harness, steps, cut=None):
    highest = START
    for number, step in enumerate(steps):
        if number == cut:
            harness.restart()
        if step[0] == "row":
            harness.row((step[1], number), now_in(harness) + step[2])
        elif step[0] == "watermark" and not harness.operator.timers.follows_clock:
            highest += step[1]
            harness.watermark(highest)
        elif step[0] == "clock":
            harness.clock(harness.now_ms + step[1])
        elif step[0] == "processing time":
            harness.clock(max(harness.now_ms, highest))
            harness.processing_time()
    harness.clock(10_000)
    if not harness.operator.timers.follows_clock:
        harness.watermark(Watermark(MAX_TIMESTAMP))
    harness.status(WatermarkStatus.IDLE)
    return harness.output


@settings(max_examples=examples(200))
@given(
    make=st.sampled_from(sorted(OPERATORS)).map(OPERATORS.__getitem__),
    steps=STEPS,
    cut=st.integers(0, 60),
)
@covers("C21", "E01")
def test_a_run_that_is_cut_and_restored_anywhere_emits_the_same(make, steps, cut):
    whole = play(OperatorHarness(make, now_ms=START), steps)
    resumed = play(OperatorHarness(make, now_ms=START), steps, min(cut, max(0, len(steps) - 1)))
    assert resumed == whole


@pytest.mark.parametrize("name", OPERATORS)
@covers("C21")
def test_the_state_is_a_plain_value_that_even_json_keeps(name):
    running = OperatorHarness(OPERATORS[name], now_ms=START)
    for number in range(25):
        running.row(("ab"[number % 2], number), number % 13 - 6)
    resumed = OperatorHarness(OPERATORS[name], now_ms=START)
    resumed.operator.restore(json.loads(json.dumps(running.operator.snapshot())))
    caused = [
        [each.clock(50), each.watermark(40), each.end_of_input()] for each in (running, resumed)
    ]
    assert caused[0] == caused[1]
    assert any(caused[0])
