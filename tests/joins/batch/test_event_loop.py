"""Where a batch takes the time; runs are in tests/e2e."""

from dataclasses import replace

from joins.batch.event_channels import BatchInput, EventInput, Heard
from joins.batch.event_state import EventSpec, EventState, EventView, advance, batch_input
from joins.durable.pins import EventPin
from joins.plan.plan import Windowing, WindowKind
from joins.plan.stream_topics import FILES
from joins.plan.types import Column, SqlType, TypeName
from tests.support.probe import PLAN, USERS
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP

TIME = SqlType(TypeName.TIMESTAMP, 3)
STREAM = EventInput("probe", idle_timeout_ms=1_000)
RATES = EventInput("rates")


def window(time):
    return Windowing(WindowKind.TUMBLE, 1_000, time, TIME, (), ())


def spec(*inputs, **given):
    return EventSpec(**{"inputs": inputs, "waits": True, "window": None, "on_event": False} | given)


def test_windows_of_processing_time_follow_the_clock_a_millisecond_behind():
    clocked = spec(EventInput("probe", has_watermarks=False), waits=False, window=window(None))
    first = advance(clocked, EventState(), BatchInput(5_000, (0,))).after
    assert (first.window_watermark, first.processing_time) == (4_999, True)
    again = advance(clocked, first, BatchInput(4_000, (0,))).after
    assert (again.window_watermark, again.clock_ms) == (4_999, 5_000), "it never goes back"


def test_windows_of_event_time_have_the_operators_watermark():
    timed = spec(STREAM, waits=False, window=window(Column("c", "ts", TIME)))
    heard = {0: Heard(700, 1)}
    after = advance(timed, EventState(), BatchInput(5_000, (0,), heard)).after
    assert (after.watermark, after.window_watermark) == (700, 700)


def test_in_processing_time_everything_that_waits_may_go():
    both = spec(
        EventInput("probe", has_watermarks=False), EventInput("items", has_watermarks=False)
    )
    after = advance(both, EventState(), BatchInput(5_000, (0,))).after
    assert (after.release_ms, after.watermark) == (MAX_TIMESTAMP, MIN_TIMESTAMP)


def test_behind_the_backlog_nothing_waits_and_windows_of_event_time_follow_the_clock():
    timed = spec(STREAM, window=window(Column("c", "ts", TIME)))
    told = EventPin(clock_ms=5_000, at_end=[], dimensions={})
    backlog = {"read": [0], "read_before": []}
    first = advance(timed, EventState(), batch_input(told, (0,), None, {0: Heard(700, 1)})).after
    assert (first.release_ms, first.window_watermark, first.has_ended) == (700, 700, False)
    again = batch_input(replace(told, backlog=backlog), (0,), None, {0: Heard(900, 2)})
    after = advance(timed, first, again).after
    assert (after.release_ms, after.watermark) == (MAX_TIMESTAMP, MIN_TIMESTAMP)
    assert (after.window_watermark, after.processing_time, after.has_ended) == (5_000, True, True)
    later = EventPin(clock_ms=6_000, at_end=[], dimensions={}, backlog=backlog)
    assert advance(timed, after, batch_input(later, (0,), None)).after.window_watermark == 6_000


def test_a_state_is_the_same_after_json():
    state = advance(spec(STREAM, RATES), EventState(), BatchInput(5, (0,), {0: Heard(7, 1)})).after
    counted = state.counted({"waited": 5, "released": 2, "late": 1, "fired": 4})
    assert EventState.of({**counted.as_json(), "at_end": []}) == counted
    assert (counted.waiting, counted.late, counted.fired) == (3, 1, 4)


def test_a_partition_that_comes_while_windows_wait_follows_the_clock_from_a_batch_on():
    """Behind the files of a history the partitions of a quiet topic appear, without records."""
    stream = spec(
        EventInput("probe", max_wait_ms=1_000), waits=False, window=window(Column("c", "ts", TIME))
    )
    state = advance(stream, EventState(), BatchInput(5_000, (FILES,), {FILES: Heard(700, 1)})).after
    batches = 0
    for now_ms in (5_100, 6_000, 6_200):
        move = advance(stream, state, BatchInput(now_ms, (FILES, 0, 1)))
        assert not move.is_due(None, None), "nothing waits"
        if move.is_due(None, 1_000):
            state, batches = move.after, batches + 1
    assert (batches, state.window_watermark) == (2, 5_200)


def test_rows_windows_and_the_end_of_the_streams_time_are_due():
    stream = spec(STREAM, waits=False, window=window(Column("c", "ts", TIME)))
    state = advance(stream, EventState(), BatchInput(5_000, (0,), {0: Heard(700, 1)})).after
    quiet = advance(stream, state, BatchInput(5_001, (0,)))
    due = {(ms, None): ms <= 700 for ms in (700, 701)} | {
        (None, ms): ms <= 700 for ms in (700, 701)
    }
    assert {times: quiet.is_due(*times) for times in due} == due
    ended = advance(stream, state, BatchInput(5_001, (0,), ended=[0]))
    assert ended.is_due(None, None)
    assert not advance(stream, ended.after, BatchInput(5_002, (0,), ended=[0])).is_due(None, None)


def view(move, waiting_ms, state):
    return EventView(spec(STREAM, RATES), state, move.channels, waiting_ms, None, (), (), False)


def test_the_status_names_the_partition_that_records_wait_for():
    told = {"rates": {0: Heard(90_000, 1), 2: Heard(20_000, 1)}}
    heard = {0: Heard(60_000, 1)}
    move = advance(spec(STREAM, RATES), EventState(), BatchInput(0, (0,), heard, dimensions=told))
    waits = view(move, 55_000, move.after.counted({"waited": 12_000})).waits_for()
    assert waits["channel"] == "rates/2"
    assert waits["behind_ms"] == 40_000
    assert waits["text"] == (
        '12,000 records wait for the watermark of table "rates", partition 2, which is 40 s behind'
    )


def test_a_partition_that_has_said_nothing_is_named_as_such():
    move = advance(spec(STREAM), EventState(), BatchInput(0, (0, 1), {0: Heard(60_000, 1)}))
    waits = view(move, 55_000, move.after.counted({"waited": 1})).waits_for()
    assert waits["text"] == (
        "1 record waits for the watermark of the stream, partition 1, which has said nothing yet"
    )


def test_a_partition_that_is_read_to_its_end_is_told_as_ended():
    heard, rates = {0: Heard(60_000, 1), 1: Heard(70_000, 1)}, {"rates": {0: Heard(80_000, 1)}}
    batch = BatchInput(90_000, (0, 1), heard, dimensions=rates, ended=[0])
    move = advance(spec(STREAM, RATES), EventState(), batch)
    report = view(move, None, move.after).as_json()
    assert [each["status"] for each in report["channels"]] == ["ENDED", "ACTIVE", "ACTIVE"]


def test_beside_an_ended_partition_the_idle_one_is_waited_for():
    move = advance(spec(STREAM), EventState(), BatchInput(0, (0, 1), {1: Heard(60_000, 1)}))
    ended = advance(spec(STREAM), move.after, BatchInput(5_000, (0, 1), ended=[0]))
    assert view(ended, 90_000, ended.after).waits_for()["channel"] == "probe/1"


def test_nobody_waits_for_idle_partitions_or_for_nothing():
    move = advance(spec(STREAM), EventState(), BatchInput(0, (0, 1), {0: Heard(60_000, 1)}))
    assert view(move, None, move.after).waits_for() is None
    quiet = advance(spec(STREAM), move.after, BatchInput(5_000, (0, 1), {0: Heard(70_000, 2)}))
    assert view(quiet, 90_000, quiet.after).waits_for()["channel"] == "probe/0"


def test_late_rows_wait_for_the_clock_less_their_bound():
    late = EventSpec.of(replace(PLAN, dimensions=(replace(USERS, late_wait_ms=1_000),)))
    assert (late.waits, late.late_wait_ms, late.waited) == (True, 1_000, ("users",))
    first = advance(late, EventState(), BatchInput(5_000, (0,))).after
    assert (first.release_ms, first.processing_time) == (4_000, False)
    assert advance(late, first, BatchInput(4_500, (0,))).after.release_ms == 4_000
    state = replace(first, late_rows={"late_matched": 1, "late_expired": 0, "tried": {"users": 3}})
    assert (state.tried({"users": 3}), state.tried({"users": 4})) == (True, False)
    counted = state.counted({"waited": 3, "late_matched": 2, "late_expired": 1})
    assert (counted.waiting, counted.late_rows["late_matched"]) == (3, 3)
    assert EventState.of(counted.as_json()) == counted
    channels = advance(late, counted, BatchInput(5_000, (0,))).channels
    shown = EventView(late, counted, channels, 4_100, None, (), (), is_drained=False)
    assert shown.as_json()["late_rows"] == {
        "wait_ms": 1_000,
        "tables": ["users"],
        "matched": 3,
        "expired": 1,
        "correct_ms": None,
        "corrected": 0,
    }
