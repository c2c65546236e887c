from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.watermark.acceptance import covers
from watermark.errors import StateFormatError, UnknownChannelError
from watermark.model import MAX_TIMESTAMP, PROCESSING_TIME, Watermark, WatermarkStatus
from watermark.reference.operator import ProcessFunction, ProcessOperator
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import (
    OutputTag,
    Record,
    SideRecord,
    TimeDomain,
    TimerQueue,
    TimerService,
)

EVENT, CLOCK = TimeDomain.EVENT, TimeDomain.PROCESSING
LATE = OutputTag("late")


def times(due):
    return [timer.timestamp_ms for timer in due]


@covers("B16", "B24", "E19")
def test_event_timers_fire_up_to_the_watermark_and_equality_is_due():
    timers = TimerService()
    for time in (12, 10, 11):
        timers.register(EVENT, time, "a")
    assert times(timers.advance_watermark(Watermark(9), now_ms=10_000)) == []
    assert times(timers.advance_watermark(Watermark(11), now_ms=10_000)) == [10, 11]
    assert timers.current_watermark_ms == 11


@covers("B17", "B23", "B25")
def test_in_processing_time_event_timers_follow_the_clock():
    timers = TimerService()
    for time in (50, 100, 150):
        timers.register(EVENT, time, "a")
    assert times(timers.advance_watermark(PROCESSING_TIME, now_ms=100)) == [50, 100]
    assert timers.follows_clock
    assert times(timers.advance_clock(149)) == []
    assert times(timers.advance_clock(150)) == [150]


@covers("B18", "B48")
def test_event_time_never_goes_back():
    timers = TimerService()
    list(timers.advance_watermark(Watermark(200), now_ms=0))
    list(timers.advance_watermark(Watermark(100), now_ms=0))
    assert timers.current_watermark_ms == 200
    list(timers.advance_watermark(Watermark(200, True), now_ms=250))
    list(timers.advance_clock(10))
    assert timers.current_watermark_ms == 250
    timers.register(EVENT, 240, "a")
    assert times(timers.advance_clock(10)) == [240]


@covers("B16")
def test_the_clock_alone_does_not_move_event_time():
    timers = TimerService()
    timers.register(EVENT, 10, "a")
    timers.register(CLOCK, 10, "a")
    assert [each.domain for each in timers.advance_clock(1_000)] == [CLOCK]


def test_processing_timers_are_due_at_their_time():
    timers = TimerService()
    timers.register(CLOCK, 10, "a")
    assert times(timers.advance_clock(9)) == []
    assert timers.has_due() is False
    assert times(timers.advance_clock(10)) == [10]


def test_timers_exist_once_and_by_key_and_namespace():
    timers = TimerService()
    for key, namespace in (("a", 1), ("a", 1), ("a", 2), ("b", 1)):
        timers.register(EVENT, 10, key, namespace)
    due = list(timers.advance_watermark(Watermark(10), now_ms=0))
    assert [(each.key, each.namespace) for each in due] == [("a", 1), ("a", 2), ("b", 1)]


def test_deleted_timers_do_not_fire():
    timers = TimerService()
    timers.register(EVENT, 10, "a")
    timers.register(EVENT, 10, "b")
    timers.delete(EVENT, 10, "a")
    timers.delete(EVENT, 10, "c")
    timers.delete(EVENT, 11, "a")
    assert [each.key for each in timers.advance_watermark(Watermark(10), now_ms=0)] == ["b"]
    assert len(timers.event) == 0


def test_a_timer_may_register_and_delete_timers_that_are_due_too():
    timers = TimerService()
    timers.register(EVENT, 5, "a")
    timers.register(EVENT, 8, "b")
    fired = []
    for timer in timers.advance_watermark(Watermark(10), now_ms=0):
        fired.append((timer.timestamp_ms, timer.key))
        if timer.key == "a":
            timers.register(EVENT, 6, "c")
            timers.register(EVENT, 5, "d")
            timers.delete(EVENT, 8, "b")
    assert fired == [(5, "a"), (5, "d"), (6, "c")]


def test_many_deleted_times_do_not_stay_in_memory():
    queue = TimerQueue()
    for time in range(10_000):
        queue.add(time, ("a", None))
        queue.discard(time, ("a", None))
    assert len(queue._heap) < 100
    assert queue.next_ms() is None
    queue.add(5, ("a", None))
    assert queue.next_ms() == 5


@settings(max_examples=examples(200))
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "discard", "pop"]), st.integers(0, 9), st.integers(0, 2)),
        max_size=60,
    )
)
def test_a_queue_is_a_sorted_set(steps):
    queue, model, order = TimerQueue(), {}, count()
    for what, time, key in steps:
        if what == "add":
            queue.add(time, (key, None))
            model.setdefault((time, key), next(order))
        elif what == "discard":
            queue.discard(time, (key, None))
            model.pop((time, key), None)
        else:
            due = sorted((t, since, k) for (t, k), since in model.items() if t <= time)
            popped = queue.pop_due(time)
            assert popped == ((due[0][0], (due[0][2], None)) if due else None)
            if due:
                del model[due[0][0], due[0][2]]
    assert len(queue) == len(model)


def test_timers_survive_being_stored():
    timers = TimerService()
    list(timers.advance_watermark(Watermark(3), now_ms=4))
    for time, key in ((9, "b"), (9, "a"), (7, "c")):
        timers.register(EVENT, time, key, ("w", 1))
    timers.register(CLOCK, 50, "p")
    restored = TimerService()
    restored.restore(timers.snapshot())
    assert (restored.current_watermark_ms, restored.now_ms) == (3, 4)
    due = list(restored.advance_watermark(Watermark(9), now_ms=50))
    assert [each.key for each in due] == ["c", "b", "a", "p"]
    with pytest.raises(StateFormatError):
        restored.restore({"event": []})


class Repeat(ProcessFunction):
    """Emits the value as often as it says, and again by timers."""

    def process(self, value, context):
        for _ in range(value[1]):
            context.emit((context.source, value[0]))
        if context.timestamp_ms is not None:
            context.register_timer(context.timestamp_ms + 100)
        context.register_timer(context.now_ms + 100, CLOCK)
        context.state["seen"] = context.state.get("seen", 0) + 1

    def on_timer(self, timer, context):
        context.emit((timer.domain.value, context.key, context.state["seen"]))


def repeat(**options):
    return OperatorHarness(lambda: ProcessOperator(Repeat(), key_of=lambda v: v[0], **options))


@covers("E16")
def test_results_of_a_record_carry_its_timestamp_all_of_them():
    harness = repeat()
    caused = harness.row(("a", 3), 17)
    assert [each.timestamp_ms for each in caused] == [17, 17, 17]


@covers("E16", "B26")
def test_results_of_two_inputs_carry_the_timestamp_of_the_record_that_is_processed():
    harness = repeat(inputs=("left", "right"))
    harness.row(("a", 1), 17, source="left")
    harness.row(("a", 1), 5, source="right")
    assert harness.records() == [Record(("left", "a"), 17), Record(("right", "a"), 5)]


@covers("E16")
def test_results_of_an_event_timer_carry_its_time_and_those_of_a_processing_timer_none():
    harness = repeat()
    harness.row(("a", 0), 17)
    assert harness.watermark(117)[0] == Record(("event", "a", 1), 117)
    assert harness.clock(100) == [Record(("processing", "a", 1), None)]


@covers("B26", "E20", "B51")
def test_an_operator_with_two_inputs_goes_with_the_slower_one():
    harness = repeat(inputs=("left", "right"))
    harness.row(("a", 0), 0, source="left")
    assert harness.watermark(500, source="left") == []
    assert harness.watermark(100, source="right") == [
        Record(("event", "a", 1), 100),
        Watermark(100),
    ]
    assert harness.operator.current_watermark_ms == 100


@covers("B25", "B26", "B51", "B55")
def test_an_operator_with_two_inputs_follows_the_clock_when_both_do():
    harness = repeat(inputs=("left", "right"))
    harness.row(("a", 0), 900, source="left")
    harness.now_ms = 950
    assert harness.processing_time(source="left") == []
    assert harness.processing_time(source="right")[-1] == PROCESSING_TIME
    assert Record(("event", "a", 1), 1_000) in harness.clock(1_000)


@covers("E24")
def test_statuses_go_downstream_when_all_inputs_agree():
    harness = repeat(inputs=("left", "right"))
    assert harness.status(WatermarkStatus.IDLE, source="left") == []
    assert harness.status(WatermarkStatus.IDLE, source="right") == [WatermarkStatus.IDLE]
    assert harness.status(WatermarkStatus.ACTIVE, source="left") == [WatermarkStatus.ACTIVE]


@covers("E23")
def test_an_operator_may_ignore_the_watermarks_of_one_input():
    harness = repeat(inputs=("data", "control"), ignored_inputs=("control",))
    assert harness.watermark(900, source="control") == []
    assert harness.status(WatermarkStatus.IDLE, source="control") == []
    assert harness.watermark(100, source="data") == [Watermark(100)]
    assert harness.row(("a", 1), 5, source="control")[0].value == ("control", "a")


@covers("E23")
def test_ignoring_an_input_makes_results_depend_on_how_inputs_interleave():
    """The control record is late or not according to when it comes, not to what was promised."""
    outcomes = []
    for data_first in (True, False):
        harness = repeat(inputs=("data", "control"), ignored_inputs=("control",))
        if data_first:
            harness.watermark(200, source="data")
        harness.row(("a", 0), 50, source="control")
        if not data_first:
            harness.watermark(200, source="data")
        outcomes.append(harness.logged())
    assert outcomes[0] != outcomes[1]


def test_unknown_inputs_are_refused():
    with pytest.raises(UnknownChannelError, match='no input "x"'):
        repeat(ignored_inputs=("x",))
    with pytest.raises(UnknownChannelError, match='no input "x"'):
        repeat().row(("a", 1), 1, source="x")
    with pytest.raises(UnknownChannelError):
        repeat().watermark(1, source="x")


class OwnLateness(ProcessFunction):
    """Handles lateness itself: up to 10 ms behind is corrected, the rest goes to a side output."""

    def process(self, value, context):
        behind_ms = context.current_watermark_ms - context.timestamp_ms
        if behind_ms < 0:
            context.emit(value)
        elif behind_ms <= 10:
            context.emit(("correction", value))
        else:
            context.output(LATE, value)


@covers("B19", "E30", "E31")
def test_a_process_function_can_handle_lateness_itself():
    harness = OperatorHarness(lambda: ProcessOperator(OwnLateness()))
    harness.watermark(100)
    assert harness.row("in time", 101) == [Record("in time", 101)]
    assert harness.row("late", 95) == [Record(("correction", "late"), 95)]
    assert harness.row("too late", 5) == [SideRecord(LATE, Record("too late", 5))]


class Timeout(ProcessFunction):
    """Keeps one timer a key, and moves it with each record."""

    def process(self, value, context):
        if "at" in context.state:
            context.delete_timer(context.state["at"])
        context.state["at"] = context.timestamp_ms + 10
        context.register_timer(context.state["at"])

    def on_timer(self, timer, context):
        context.emit(("quiet", context.key))
        context.state.clear()


@covers("E31")
def test_a_process_function_may_take_timers_back_and_forget_its_state():
    harness = OperatorHarness(lambda: ProcessOperator(Timeout(), key_of=str))
    harness.row("a", 0)
    harness.row("a", 5)
    assert harness.watermark(10) == [Watermark(10)]
    harness.restart()
    assert harness.watermark(15)[0] == Record(("quiet", "a"), 15)
    assert harness.operator.snapshot()["own"] == {"states": []}
    assert harness.watermark(MAX_TIMESTAMP) == [Watermark(MAX_TIMESTAMP)]
