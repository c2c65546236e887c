"""Watermarks of a job: from what batches say to the operator's, the same at every repetition."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.batch.event_channels import BatchInput, EventChannels, EventInput, Heard
from joins.plan.stream_topics import FILES
from watermark.errors import StateFormatError
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    Watermark,
    WatermarkStatus,
)

STREAM = EventInput("probe", idle_timeout_ms=1_000)
RATES = EventInput("rates", idle_timeout_ms=1_000)
NO_TIME = EventInput("items", has_watermarks=False)


def heard(**partitions):
    return {int(name[1:]): Heard(*found) for name, found in partitions.items()}


def batch(now_ms=0, partitions=(0, 1), **rest):
    return BatchInput(now_ms, partitions, **rest)


def test_the_slowest_partition_is_the_streams_watermark():
    channels = EventChannels([STREAM])
    assert channels.take(batch(heard=heard(p0=(500, 1)))).after == Watermark(MIN_TIMESTAMP)
    merged = channels.take(batch(heard=heard(p1=(300, 1))))
    assert (merged.before.timestamp_ms, merged.after.timestamp_ms) == (MIN_TIMESTAMP, 300)


def test_the_slowest_input_is_the_operators_watermark():
    channels = EventChannels([STREAM, RATES])
    told = {"rates": {0: Heard(200, 7), 1: Heard(900, 8)}}
    merged = channels.take(batch(heard=heard(p0=(500, 1), p1=(400, 1)), dimensions=told))
    assert merged.after.timestamp_ms == 200
    assert channels.watermark_of("probe").timestamp_ms == 400


def test_a_quiet_partition_is_idle_after_its_timeout_and_not_before():
    channels = EventChannels([STREAM])
    channels.take(batch(now_ms=0, heard=heard(p0=(500, 1), p1=(100, 1))))
    assert channels.take(batch(now_ms=1_000, heard=heard(p0=(600, 2)))).after == Watermark(100)
    assert channels.take(batch(now_ms=1_001, heard=heard(p0=(700, 3)))).after == Watermark(700)
    states = [view.state.status for view in channels.channels()]
    assert states == [WatermarkStatus.ACTIVE, WatermarkStatus.IDLE]


def test_a_partition_whose_records_wait_is_not_idle():
    channels = EventChannels([STREAM])
    channels.take(batch(now_ms=0, heard=heard(p0=(500, 1), p1=(100, 1))))
    waits = replace(batch(now_ms=5_000, heard=heard(p0=(700, 2))), unread=[1])
    assert channels.take(waits).after == Watermark(100)
    states = [view.state.status for view in channels.channels()]
    assert states == [WatermarkStatus.ACTIVE, WatermarkStatus.ACTIVE]


def test_an_idle_partition_is_active_before_its_watermark_counts():
    channels = EventChannels([STREAM])
    channels.take(batch(heard=heard(p0=(500, 1), p1=(100, 1))))
    channels.take(batch(now_ms=2_000, heard=heard(p0=(600, 2))))
    merged = channels.take(batch(now_ms=2_001, heard=heard(p0=(900, 3), p1=(650, 2))))
    assert merged.after == Watermark(650), "both are there, so the slower one counts"


def test_a_partition_that_returns_behind_holds_nothing_back():
    channels = EventChannels([STREAM])
    channels.take(batch(heard=heard(p0=(500, 1), p1=(100, 1))))
    channels.take(batch(now_ms=2_000, heard=heard(p0=(600, 2))))
    merged = channels.take(batch(now_ms=2_001, heard=heard(p0=(900, 3), p1=(200, 2))))
    assert merged.after == Watermark(900)
    assert [view.state.aligned for view in channels.channels()] == [True, False]


def test_a_stream_that_is_read_to_its_end_ends_event_time():
    channels = EventChannels([STREAM])
    channels.take(batch(heard=heard(p0=(500, 1), p1=(100, 1))))
    assert channels.take(batch(ended=[1])).after == Watermark(500)
    assert not channels.has_ended()
    channels.take(batch(now_ms=5_000, ended=[1], heard=heard(p0=(600, 2))))
    assert channels.take(batch(now_ms=9_000, ended=[0, 1])).after == Watermark(MAX_TIMESTAMP)
    assert channels.has_ended()


def test_an_empty_partition_that_ends_holds_nothing_back():
    channels = EventChannels([STREAM])
    merged = channels.take(batch(now_ms=5_000, ended=[1], heard=heard(p0=(600, 2))))
    assert merged.after == Watermark(600)


def test_a_stream_that_ends_waits_for_the_dimension():
    channels = EventChannels([STREAM, RATES])
    told = {"rates": {0: Heard(200, 7)}}
    assert channels.take(batch(ended=[0, 1], dimensions=told)).after == Watermark(200)
    assert channels.take(batch(now_ms=1_001, ended=[0, 1], dimensions=told)).after == END_OF_TIME
    channels = EventChannels([STREAM, RATES], json.loads(json.dumps(channels.snapshot())))
    news = {"rates": {0: Heard(300, 8)}}
    assert channels.watermark_of("rates") == Watermark(200)
    assert channels.take(batch(now_ms=1_002, ended=[0, 1], dimensions=news)).after == END_OF_TIME


def test_an_idle_partition_beside_an_ended_one_finds_its_records_on_time():
    """As in a job with an end beyond what is there: its later records are not late."""
    channels = EventChannels([STREAM, NO_TIME])
    channels.take(batch(heard=heard(p0=(500, 1), p1=(100, 1))))
    merged = channels.take(batch(now_ms=2_000, ended=[0]))
    assert merged.after == Watermark(100)
    assert channels.status_of("probe") is WatermarkStatus.IDLE
    merged = channels.take(batch(now_ms=2_001, ended=[0], heard=heard(p1=(110, 2))))
    assert merged.after == Watermark(110)
    merged = channels.take(batch(now_ms=2_002, ended=[0, 1], heard=heard(p1=(120, 3))))
    assert (merged.before, merged.after) == (Watermark(110), END_OF_TIME)


def test_a_dimension_with_news_is_active_again():
    channels = EventChannels([STREAM, RATES])
    quiet, news = {"rates": {0: Heard(200, 7)}}, {"rates": {0: Heard(300, 8)}}
    channels.take(batch(heard=heard(p0=(500, 1), p1=(500, 1)), dimensions=quiet))
    told = heard(p0=(550, 2), p1=(550, 2))
    merged = channels.take(batch(now_ms=1_001, heard=told, dimensions=quiet))
    assert merged.after == Watermark(550)
    channels.take(batch(now_ms=1_002, dimensions=news))
    assert channels.status_of("rates") is WatermarkStatus.ACTIVE
    merged = channels.take(
        batch(now_ms=1_003, heard=heard(p0=(900, 3), p1=(900, 3)), dimensions=news)
    )
    assert merged.after == Watermark(550), "an input that returns behind holds the operator"


def test_a_restart_that_knows_nothing_of_new_records_wakes_nobody():
    channels = EventChannels([STREAM, RATES])
    told = {"rates": {0: Heard(200, 7)}}
    for now_ms in (0, 1_001):
        channels.take(batch(now_ms=now_ms, heard=heard(p0=(500, now_ms)), dimensions=told))
    assert channels.status_of("rates") is WatermarkStatus.IDLE
    channels.take(batch(now_ms=1_002, dimensions={"rates": {0: Heard(200, None)}}))
    assert channels.status_of("rates") is WatermarkStatus.IDLE


def test_a_look_that_no_batch_follows_delays_no_idleness():
    """Only a batch keeps what was heard: until then each look hears it for the first time."""
    channels = EventChannels([STREAM, RATES])
    channels.take(batch(1_000, heard=heard(p0=(500, 1), p1=(500, 1)), dimensions=rates(200, 900)))
    kept = json.loads(json.dumps(channels.snapshot()))
    for now_ms, watermark_ms in ((2_800, 300), (2_801, 500), (90_000, 500)):
        look = EventChannels([STREAM, RATES], kept)
        there = batch(now_ms, dimensions=rates(300, 1_800), unread=(0, 1))
        assert look.take(there).after == Watermark(watermark_ms)


def test_a_clock_that_was_set_back_makes_no_news_old():
    channels = EventChannels([STREAM, RATES])
    channels.take(batch(9_000, heard=heard(p0=(500, 1), p1=(500, 1)), dimensions=rates(200, 8_900)))
    again = batch(9_001, heard=heard(p0=(600, 2), p1=(600, 2)), dimensions=rates(300, 5_000))
    assert channels.take(again).after == Watermark(300)


def rates(watermark_ms, committed_ms):
    return {"rates": {0: Heard(watermark_ms, committed_ms)}}


def test_a_dimension_without_watermarks_takes_no_part():
    channels = EventChannels([STREAM, NO_TIME])
    assert channels.take(batch(heard=heard(p0=(500, 1), p1=(400, 1)))).after == Watermark(400)


def test_a_dimension_without_watermarks_takes_no_part_from_the_first_record_on():
    channels = EventChannels([STREAM, NO_TIME])
    merged = channels.take(
        batch(partitions=(0,), heard=heard(p0=(300, 1)), steps={0: [(3, 100), (5, 300)]})
    )
    assert merged.by_partition[0] == ((0, MIN_TIMESTAMP), (4, 100), (6, 300))


def test_without_watermarks_on_both_sides_the_clock_is_the_time():
    channels = EventChannels([EventInput("probe", has_watermarks=False), NO_TIME])
    assert channels.take(batch(now_ms=77)).after.use_processing_time
    assert channels.has_ended()


def test_with_watermarks_for_each_record_they_come_in_the_order_of_arrival():
    channels = EventChannels([STREAM])
    steps = {0: [(10, 100), (12, 300)], 1: [(5, 200), (6, 900)]}
    merged = channels.take(batch(heard=heard(p0=(300, 13), p1=(900, 7)), steps=steps))
    assert merged.by_partition[0] == ((0, MIN_TIMESTAMP),), "the other one has said nothing yet"
    assert merged.by_partition[1] == ((0, MIN_TIMESTAMP), (6, 200), (7, 300))
    assert (merged.steps, merged.after) == (((1, 5, 200), (1, 6, 300)), Watermark(300))


def test_a_partition_that_is_gone_is_forgotten_and_a_new_one_holds_nothing_back():
    channels = EventChannels([STREAM])
    channels.take(batch(heard=heard(p0=(500, 1), p1=(100, 1))))
    merged = channels.take(batch(partitions=(0, 2), heard=heard(p0=(600, 2))))
    assert merged.after == Watermark(600)
    assert [view.partition for view in channels.channels()] == [0, 2]


# Backlogs
# ----------------------------------------------------------------------------------------------


def read(*partitions, before=()):
    return {"backlog_read": partitions, "backlog_read_before": before}


def test_a_partition_that_is_read_to_its_backlogs_end_holds_nothing_back_any_more():
    channels = EventChannels([STREAM, NO_TIME])
    merged = channels.take(batch(5_000, heard=heard(p0=(500, 1), p1=(300, 1)), **read(1)))
    assert merged.after == Watermark(500)
    (slow, _), watermarks = (
        [view.state.status for view in channels.channels()],
        [view.state.watermark for view in channels.channels()],
    )
    assert (slow, watermarks) == (WatermarkStatus.ACTIVE, [Watermark(500), PROCESSING_TIME])


def test_the_stream_is_in_processing_time_when_all_backlogs_are_read_and_for_good():
    channels = EventChannels([STREAM, NO_TIME])
    channels.take(batch(5_000, heard=heard(p0=(500, 1)), **read(1)))
    assert not channels.has_ended()
    assert channels.take(
        batch(5_001, heard=heard(p0=(600, 2)), **read(0, 1, before=(1,)))
    ).after == (PROCESSING_TIME)
    assert channels.has_ended()
    later = heard(p0=(9_000, 3), p1=(100, 3))
    merged = channels.take(batch(9_000, (0, 1, 2), heard=later, **read(0, 1, 2, before=(0, 1))))
    assert (merged.before, merged.after) == (PROCESSING_TIME, PROCESSING_TIME)


def test_what_is_said_behind_a_backlog_moves_nothing():
    channels = EventChannels([STREAM])
    channels.take(batch(400, heard=heard(p0=(500, 1), p1=(300, 1)), **read(0)))
    merged = channels.take(
        batch(401, heard=heard(p0=(900, 2), p1=(700, 2)), **read(0, before=(0,)))
    )
    assert merged.after == Watermark(500), "the clock has not come to 500 yet"
    assert channels.channels()[0].state.watermark == Watermark(500)
    channels.take(batch(500, heard=heard(p0=(950, 3)), **read(0, before=(0,))))
    assert channels.channels()[0].state.watermark == PROCESSING_TIME
    assert channels.watermark == Watermark(700)


def test_an_idle_partition_switches_too():
    channels = EventChannels([STREAM])
    channels.take(batch(0, heard=heard(p0=(500, 1), p1=(100, 1))))
    channels.take(batch(2_000, heard=heard(p0=(600, 2))))
    assert channels.take(batch(2_001, **read(0, 1))).after == PROCESSING_TIME
    assert channels.status_of("probe") is WatermarkStatus.ACTIVE
    channels.take(batch(90_000, **read(0, 1, before=(0, 1))))
    assert [view.state.status for view in channels.channels()] == [WatermarkStatus.ACTIVE] * 2


def test_a_dimension_in_event_time_keeps_the_operator_there():
    channels = EventChannels([STREAM, RATES])
    told = {"rates": {0: Heard(200, 7)}}
    merged = channels.take(
        batch(5_000, heard=heard(p0=(500, 1), p1=(900, 1)), dimensions=told, **read(0, 1))
    )
    assert merged.after == Watermark(200)
    assert channels.watermark_of("probe") == PROCESSING_TIME


def test_on_event_the_records_of_a_backlog_move_the_watermark_before_it_switches():
    channels = EventChannels([STREAM])
    steps = {0: [(10, 100), (12, 300)], 1: [(5, 200)]}
    found = batch(5_000, heard=heard(p0=(300, 1), p1=(200, 1)), steps=steps, **read(0, 1))
    merged = channels.take(found)
    assert (merged.steps, merged.after) == (((1, 5, 200),), PROCESSING_TIME)
    again = batch(
        5_001, heard=heard(p0=(400, 2)), steps={0: [(20, 400)]}, **read(0, 1, before=(0, 1))
    )
    merged = channels.take(again)
    assert (merged.steps, merged.by_partition) == ((), {}), "all have seen what was before"


def test_state_of_other_inputs_is_refused():
    state = EventChannels([STREAM]).snapshot()
    with pytest.raises(StateFormatError):
        EventChannels([STREAM, RATES], state)


MILLIS = st.integers(0, 50).map(lambda each: each * 100)


@st.composite
def news_of_rates(draw, now_ms):
    return {p: Heard(draw(st.none() | MILLIS), draw(st.integers(0, now_ms))) for p in (0, 1)}


@st.composite
def histories(draw):
    """Batches with a clock and offsets that do not go back; watermarks may."""
    now_ms, found, done = 0, [], set()
    for offset in range(1, draw(st.integers(2, 9))):
        now_ms += draw(st.integers(0, 900))
        partitions = draw(st.sets(st.integers(0, 2), max_size=3))
        told = {p: Heard(draw(st.none() | MILLIS), offset) for p in partitions}
        steps = None
        if draw(st.booleans()):
            rising = {p: sorted(draw(st.sets(MILLIS, max_size=3))) for p in partitions}
            steps = {p: list(enumerate(values)) for p, values in rising.items()}
        rates = draw(news_of_rates(now_ms))
        ended = draw(st.sets(st.integers(0, 2), max_size=1)) - partitions
        before = frozenset(done)
        done |= draw(st.sets(st.integers(0, 2), max_size=1))
        backlog = read(*done, before=before) if draw(st.booleans()) or before else {}
        found.append(BatchInput(now_ms, (0, 1, 2), told, ended, {"rates": rates}, steps, **backlog))
    return found


@given(histories(), st.integers(0, 7))
def test_a_cut_and_a_repetition_anywhere_change_nothing(batches, cut):
    whole = EventChannels([STREAM, RATES])
    merged = [whole.take(each) for each in batches]
    channels, again = EventChannels([STREAM, RATES]), []
    for at, each in enumerate(batches):
        if at == cut:
            state = json.loads(json.dumps(channels.snapshot()))
            EventChannels([STREAM, RATES], state).take(each)  # fails before its commit
            channels = EventChannels([STREAM, RATES], state)
        again.append(channels.take(each))
    assert again == merged
    assert channels.snapshot() == whole.snapshot()


@given(histories(), st.booleans())
def test_processing_time_is_when_every_backlog_is_read_and_final(batches, has_rates):
    channels = EventChannels([STREAM, RATES] if has_rates else [STREAM])
    for each in batches:
        before = {view.state.channel for view in switched(channels)}
        merged = channels.take(each)
        now = {view.state.channel for view in switched(channels)}
        assert before <= now
        assert now <= {f"probe/{partition}" for partition in each.backlog_read}
        late = {view.state.watermark.timestamp_ms for view in channels.channels()}
        if (
            max(late) <= each.now_ms
            and not set(each.ended)
            and not merged.before.use_processing_time
        ):
            assert len(now) == len(set(each.backlog_read))
        assert merged.after.use_processing_time is (not has_rates and len(now) == 3)


def switched(channels):
    return [view for view in channels.channels() if view.state.watermark.use_processing_time]


def reached(watermark):
    return watermark.use_processing_time, watermark.timestamp_ms


@given(histories())
def test_the_watermark_never_goes_back_and_never_passes_an_active_partition(batches):
    channels = EventChannels([STREAM, RATES])
    for each in batches:
        merged = channels.take(each)
        assert reached(merged.after) >= reached(merged.before)
        risen = [watermark for _, _, watermark in merged.steps]
        assert risen == sorted(set(risen))
        for merged_steps in merged.by_partition.values():
            assert list(merged_steps) == sorted(merged_steps)
        for view in channels.channels():
            is_waited_for = view.state.status is WatermarkStatus.ACTIVE and view.state.aligned
            if is_waited_for and not view.state.watermark.use_processing_time:
                assert channels.watermark_of(view.input.name).timestamp_ms <= max(
                    view.state.watermark.timestamp_ms, MIN_TIMESTAMP
                )


@given(histories(), st.data())
def test_a_dimension_is_idle_a_timeout_after_its_newest_commit(batches, data):
    channels = EventChannels([STREAM, RATES])
    for each in batches:
        channels.take(each)
    news = data.draw(news_of_rates(batches[-1].now_ms))
    now_ms = batches[-1].now_ms + RATES.idle_timeout_ms + 1
    channels.take(BatchInput(now_ms, (0, 1, 2), dimensions={"rates": news}))
    assert channels.status_of("rates") is WatermarkStatus.IDLE


def test_partitions_of_the_topic_begin_with_the_watermark_of_the_files():
    """One without records holds that of the others back, and none makes others late."""
    channels = EventChannels([STREAM])
    merged = channels.take(batch(partitions=[FILES], heard={FILES: Heard(900, 1)}))
    assert merged.after == Watermark(900)
    behind = batch(partitions=[FILES, 0, 1], heard=heard(p0=(1_500, 2)))
    assert channels.take(behind).after == Watermark(900)
    assert [view.partition for view in channels.channels()] == [0, 1]
    again = EventChannels([STREAM], json.loads(json.dumps(channels.snapshot())))
    merged = again.take(batch(partitions=[FILES, 0, 1], heard=heard(p1=(1_200, 3))))
    assert merged.after == Watermark(1_200)


def test_a_partition_that_appears_among_others_holds_nothing_back():
    channels = EventChannels([STREAM])
    channels.take(batch(partitions=[0], heard=heard(p0=(900, 1))))
    merged = channels.take(batch(partitions=[0, 1], heard=heard(p0=(1_500, 2))))
    assert merged.after == Watermark(1_500)


def test_the_clock_takes_over_behind_the_topics_backlog_not_in_the_files():
    channels = EventChannels([STREAM])
    channels.take(batch(now_ms=2_000, partitions=[FILES], heard={FILES: Heard(900, 1)}))
    merged = channels.take(batch(now_ms=2_500, partitions=[FILES, 0], heard=heard(p0=(950, 2))))
    assert not merged.after.use_processing_time
    read = batch(now_ms=3_000, partitions=[FILES, 0], backlog_read=[0])
    assert channels.take(read).after.use_processing_time
