"""A quiet partition follows the pinned clock, as the reference defines it (acceptance E22)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from joins.batch.event_channels import BatchInput, EventChannels, EventInput, Heard
from joins.batch.event_state import EventSpec, EventState, advance, batch_input
from joins.durable.pins import EventPin
from watermark.model import END_OF_TIME, MIN_TIMESTAMP, Watermark, WatermarkStatus
from watermark.reference.generators import BoundedWait

WAIT_MS, BOUND_MS = 50, 7
STREAM = EventInput("probe", max_wait_ms=WAIT_MS, bound_ms=BOUND_MS)


def at(now_ms, heard=None, **rest):
    news = {p: Heard(ms, now_ms) for p, ms in (heard or {}).items()}
    return BatchInput(now_ms, (0, 1), news, **rest)


def test_a_stream_that_goes_quiet_stands_still_for_the_wait_and_then_follows_the_clock():
    channels = EventChannels([STREAM])
    channels.take(at(1_000, {0: 990, 1: 980}))
    assert channels.take(at(1_050)).after == Watermark(980)
    assert channels.take(at(1_051)).after == Watermark(1_051 - WAIT_MS - BOUND_MS)
    assert channels.take(at(9_000)).after == Watermark(9_000 - WAIT_MS - BOUND_MS)


def test_a_partition_that_never_has_a_record_holds_windows_for_the_wait_alone():
    channels = EventChannels([STREAM])
    channels.take(at(1_000, {0: 990}))
    assert channels.take(at(1_040, {0: 1_030})).after == Watermark(MIN_TIMESTAMP)
    assert channels.take(at(1_051, {0: 1_041})).after == Watermark(1_051 - WAIT_MS - BOUND_MS)


def test_a_partition_with_unread_records_is_not_quiet():
    channels = EventChannels([STREAM])
    channels.take(at(1_000, {0: 990, 1: 980}))
    assert channels.take(at(9_000, unread=(1,))).after == Watermark(980)
    assert channels.take(at(9_001)).after == Watermark(9_001 - WAIT_MS - BOUND_MS)


def test_records_from_the_future_hold_their_watermark_until_the_clock_has_passed_it():
    channels = EventChannels([STREAM])
    channels.take(at(1_000, {0: 5_000, 1: 5_000}))
    assert channels.take(at(4_000)).after == Watermark(5_000)
    assert channels.take(at(5_100)).after == Watermark(5_100 - WAIT_MS - BOUND_MS)


def test_a_partition_at_the_streams_end_keeps_the_end_of_time():
    channels = EventChannels([STREAM])
    channels.take(at(1_000, {0: 990, 1: 980}))
    assert channels.take(at(9_000, ended=(0, 1))).after == END_OF_TIME
    assert channels.take(at(9_999, ended=(0, 1))).after == END_OF_TIME


def test_a_partition_that_follows_the_clock_is_active():
    channels = EventChannels([STREAM])
    channels.take(at(1_000))
    channels.take(at(9_000))
    states = {view.state.status for view in channels.channels()}
    assert states == {WatermarkStatus.ACTIVE}


def test_a_pin_without_unread_partitions_is_read_as_none():
    clock = EventState().as_json() | {"clock_ms": 9_000}
    pin = EventPin(**clock, at_end=[], dimensions={})
    assert batch_input(EventPin.of(json.loads(json.dumps(pin.as_json()))), (0,), None).unread == ()


def test_a_pin_keeps_which_partitions_are_unread():
    clock = EventState().as_json() | {"clock_ms": 9_000}
    pin = EventPin(**clock, at_end=[], dimensions={}, unread=[1])
    kept = EventPin.of(json.loads(json.dumps(pin.as_json())))
    assert batch_input(kept, (0, 1), None).unread == [1]


class _Output:
    def __init__(self):
        self.greatest = Watermark(MIN_TIMESTAMP)

    def emit_watermark(self, watermark, *, now_ms):
        if watermark.timestamp_ms > self.greatest.timestamp_ms:
            self.greatest = watermark


# batches: how long after the previous one, and the times of the records of each partition
BATCHES = st.lists(
    st.tuples(
        st.integers(0, 90),
        st.dictionaries(st.integers(0, 1), st.lists(st.integers(-60, 40), min_size=1), max_size=2),
    ),
    min_size=1,
    max_size=12,
)


def schedule(batches):
    now_ms = 10_000
    for later_ms, records in batches:
        now_ms += later_ms
        yield now_ms, {p: [now_ms + each for each in times] for p, times in records.items()}


@given(BATCHES)
def test_each_partition_has_the_watermark_of_the_references_bounded_wait(batches):
    channels = EventChannels([STREAM])
    # SQL subtracts no millisecond, the reference one
    expected = {p: (BoundedWait(BOUND_MS - 1, WAIT_MS), _Output()) for p in (0, 1)}
    for now_ms, records in schedule(batches):
        channels.take(at(now_ms, {p: max(times) - BOUND_MS for p, times in records.items()}))
        for partition, (generator, output) in expected.items():
            for time_ms in records.get(partition, ()):
                generator.on_event("row", time_ms, output, now_ms=now_ms)
            generator.on_periodic_emit(output, now_ms=now_ms)
        reached = {view.partition: view.state.watermark for view in channels.channels()}
        assert reached == {p: output.greatest for p, (_, output) in expected.items()}


SPEC = EventSpec((STREAM,), waits=True, window=None, on_event=False)


@given(BATCHES, st.integers(0, 11))
def test_a_restart_and_a_repetition_anywhere_change_nothing(batches, cut):
    inputs = [
        at(now_ms, {p: max(times) - BOUND_MS for p, times in records.items()})
        for now_ms, records in schedule(batches)
    ]
    state = restarted = EventState()
    for number, each in enumerate(inputs):
        if number == cut:
            restarted = EventState.of(json.loads(json.dumps(restarted.as_json())))
            advance(SPEC, restarted, each)  # a batch that failed
        state, restarted = advance(SPEC, state, each).after, advance(SPEC, restarted, each).after
        assert restarted == state


@given(BATCHES, st.integers(0, 1_000))
def test_every_time_is_passed_a_bounded_wait_after_the_last_record(batches, ahead_ms):
    channels = EventChannels([STREAM])
    for now_ms, records in schedule(batches):
        channels.take(at(now_ms, {p: max(times) - BOUND_MS for p, times in records.items()}))
    due_ms = now_ms + ahead_ms
    channels.take(at(due_ms + WAIT_MS + BOUND_MS + 1))
    assert channels.watermark.timestamp_ms > due_ms
