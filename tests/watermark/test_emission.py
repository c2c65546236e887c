import pytest

from tests.watermark.acceptance import covers
from watermark.errors import (
    FutureWatermarkError,
    InvalidParameterError,
    UnknownChannelError,
    WatermarkRegressionError,
)
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    START_OF_TIME,
    Watermark,
    WatermarkStatus,
)
from watermark.reference.emission import (
    Emission,
    SourceContext,
    SourceOperator,
    TimestampsAndWatermarksOperator,
)
from watermark.reference.generators import (
    PunctuatedWatermarks,
    WatermarkAlignment,
    WatermarkStrategy,
)
from watermark.reference.outputs import MonotonicOutput, WatermarkMultiplexer
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import Record
from watermark.reference.windows import Stream, TumblingWindows

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
ASCENDING = WatermarkStrategy.for_monotonous_timestamps()
PER_RECORD = WatermarkStrategy.for_generator(
    lambda: PunctuatedWatermarks(lambda row, time: Watermark(time))
)
SENT = {
    "only_what_moves_forward": ([5, 5, 4, 6], [Watermark(5), Watermark(6)]),
    "the_flag_always": (
        [5, PROCESSING_TIME, Watermark(7, True), PROCESSING_TIME],
        [Watermark(5), PROCESSING_TIME, Watermark(7, True), PROCESSING_TIME],
    ),
    "the_start_of_time_is_no_progress": ([MIN_TIMESTAMP], []),
}


@pytest.mark.parametrize(("given", "expected"), SENT.values(), ids=SENT)
@covers("B39", "B42", "B43", "B54")
def test_a_source_sends_what_moves_forward(given, expected):
    output = MonotonicOutput()
    for each in given:
        watermark = Watermark(each) if isinstance(each, int) else each
        output.emit_watermark(watermark, now_ms=1_000)
    assert list(output.drain()) == expected
    assert output.drain() == ()


REFUSED = {
    "true_while_the_clock_is_behind_what_was_sent": (
        [Watermark(200), PROCESSING_TIME],
        199,
        FutureWatermarkError,
    ),
    "true_in_the_future": ([Watermark(200, True)], 199, FutureWatermarkError),
    "false_after_true": ([PROCESSING_TIME, Watermark(5)], 199, WatermarkRegressionError),
    "the_end_of_time_after_true": ([PROCESSING_TIME, END_OF_TIME], 199, WatermarkRegressionError),
}


@pytest.mark.parametrize(("watermarks", "now_ms", "error"), REFUSED.values(), ids=REFUSED)
@covers("B17", "B22", "B40", "B41", "B49")
def test_a_source_cannot_break_the_invariants(watermarks, now_ms, error):
    output = MonotonicOutput()
    *before, bad = watermarks
    for watermark in before:
        output.emit_watermark(watermark, now_ms=now_ms)
    with pytest.raises(error, match="source output") as raised:
        output.emit_watermark(bad, now_ms=now_ms)
    assert raised.value.hint.endswith(".")


@covers("B17", "B40")
def test_now_is_early_enough_and_a_clock_that_steps_back_is_no_fault():
    output = MonotonicOutput()
    output.emit_watermark(Watermark(200), now_ms=0)
    output.emit_watermark(Watermark(200, True), now_ms=200)
    output.emit_watermark(Watermark(200, True), now_ms=150)
    assert len(output.drain()) == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [(5, [Watermark(5)]), (4, []), (3, [])],
    ids=["a_higher_one", "an_equal_one", "a_lower_one"],
)
@covers("E24")
def test_a_watermark_ends_idleness(given, expected):
    output = MonotonicOutput()
    output.emit_watermark(Watermark(4), now_ms=0)
    output.drain()
    output.mark_idle()
    output.mark_idle()
    output.emit_watermark(Watermark(given), now_ms=0)
    assert output.drain() == [IDLE, ACTIVE, *expected]


def test_a_split_that_speaks_again_at_its_old_time_holds_the_source():
    multiplexer = WatermarkMultiplexer()
    for split in ("rests", "goes on"):
        multiplexer.register(split)
        multiplexer.output(split).emit_watermark(Watermark(5), now_ms=0)
    multiplexer.output("rests").mark_idle()
    assert multiplexer.flush(now_ms=0) == (Watermark(5),)
    multiplexer.output("rests").emit_watermark(Watermark(5), now_ms=0)
    multiplexer.output("goes on").emit_watermark(Watermark(9), now_ms=0)
    assert multiplexer.flush(now_ms=0) == ()


class SnapshotReader:
    """A reader with phases: it says nothing while it copies."""

    def delegate_watermark_periodic_emit(self, on_watermark_emit):
        self.on_watermark_emit = on_watermark_emit
        return True


@covers("B29", "B30", "B33")
def test_a_reader_may_take_over_periodic_emission():
    reader = SnapshotReader()
    source = SourceOperator(WatermarkStrategy.no_watermarks(), reader=reader)
    assert source.emission is Emission.DELEGATED
    rows = [source.process_record(row, now_ms=row) for row in range(3)]
    assert rows == [[Record(row, MIN_TIMESTAMP)] for row in range(3)]
    assert source.advance_clock(100_000) == []
    # The snapshot is complete: the binlog phase starts.
    reader.on_watermark_emit(100_000)
    assert source.drain() == [PROCESSING_TIME]
    assert source.process_record(3, now_ms=100_001) == [Record(3, MIN_TIMESTAMP)]


class PlainReader:
    def delegate_watermark_periodic_emit(self, on_watermark_emit):
        return False


@covers("B31")
def test_without_progressive_watermarks_emission_is_once_before_the_first_record():
    source = SourceOperator(
        WatermarkStrategy.no_watermarks(), reader=PlainReader(), emit_progressive_watermarks=False
    )
    assert source.emission is Emission.ONCE
    assert source.advance_clock(100_000) == []
    assert source.process_record("a", 5, now_ms=0) == [PROCESSING_TIME, Record("a", 5)]
    assert source.process_record("b", 6, now_ms=0) == [Record("b", 6)]


@covers("B13", "B32", "E07")
def test_emission_is_periodic_otherwise():
    source = SourceOperator(ASCENDING)
    assert source.emission is Emission.PERIODIC
    assert source.advance_clock(1_000) == []
    assert source.process_record("a", 5, now_ms=1_000) == [Record("a", 5)]
    assert source.advance_clock(1_199) == []
    assert source.advance_clock(1_200) == [Watermark(4)]
    assert source.advance_clock(1_400) == []
    source.process_record("a", 9, now_ms=1_500)
    assert source.advance_clock(1_599) == []
    assert source.advance_clock(1_600) == [Watermark(8)]


@covers("B13", "E06", "E07")
def test_the_interval_is_a_setting():
    slow = SourceOperator(ASCENDING, interval_ms=10_000)
    never = SourceOperator(ASCENDING, interval_ms=0)
    for source in (slow, never):
        source.advance_clock(0)
        source.process_record("a", 5, now_ms=0)
        assert source.advance_clock(9_999) == []
    assert slow.advance_clock(10_000) == [Watermark(4)]
    assert never.advance_clock(10_000_000) == []
    with pytest.raises(InvalidParameterError, match="-1 ms"):
        SourceOperator(ASCENDING, interval_ms=-1)


@covers("B13", "E11")
def test_without_a_call_of_its_generator_a_source_says_nothing():
    source = SourceOperator(ASCENDING, interval_ms=0)
    elements = [each for t in range(50) for each in source.process_record("row", t, now_ms=t)]
    assert all(isinstance(each, Record) for each in elements)
    assert source.last_output == START_OF_TIME


@covers("B20", "D07", "A15")
def test_the_end_of_the_input_is_the_end_of_time():
    source = SourceOperator(ASCENDING, splits=("0", "1"))
    source.process_record("a", 5, now_ms=0, split="0")
    assert source.end_of_input(now_ms=0) == [END_OF_TIME]


def test_an_idle_source_can_end():
    source = SourceOperator(ASCENDING.with_idleness(10), interval_ms=1)
    for now_ms in range(20):
        source.advance_clock(now_ms)
    assert source.end_of_input(now_ms=20) == [ACTIVE, END_OF_TIME]


@covers("B22")
def test_a_source_in_processing_time_ends_without_a_word():
    source = SourceOperator(WatermarkStrategy.no_watermarks(), emit_progressive_watermarks=False)
    source.process_record("a", now_ms=0)
    assert source.end_of_input(now_ms=5) == []


@covers("E12", "E20")
def test_splits_have_generators_of_their_own_and_the_source_goes_with_the_slowest():
    source = SourceOperator(PER_RECORD, splits=("0", "1"))
    assert source.process_record("a", 100, now_ms=0, split="0") == [Record("a", 100)]
    assert source.process_record("b", 7, now_ms=0, split="1") == [Record("b", 7), Watermark(7)]
    assert source.process_record("b", 9, now_ms=0, split="1") == [Record("b", 9), Watermark(9)]
    assert source.last_generated == {"0": Watermark(100), "1": Watermark(9)}


@covers("E12", "E15")
def test_one_generator_over_mixed_partitions_makes_the_slow_one_late():
    rows = [("fast", 1_000), ("slow", 5), ("fast", 1_100), ("slow", 50)]
    lost = []
    for splits in (("fast", "slow"), ("main",)):
        source = SourceOperator(PER_RECORD, splits=splits)
        operator = Stream().window_all(TumblingWindows(100)).reduce(lambda a, b: a)
        harness = OperatorHarness(lambda each=operator: each)
        for partition, time in rows:
            split = partition if len(splits) == 2 else "main"
            harness.feed(source.process_record(partition, time, now_ms=0, split=split))
        lost.append(operator.late_records_dropped)
    assert lost == [0, 2]


@covers("E24", "E25")
def test_a_source_without_splits_is_idle_and_never_at_the_end_of_time():
    source = SourceOperator(ASCENDING, splits=())
    source.advance_clock(0)
    assert source.advance_clock(200) == [IDLE]
    assert source.last_output == START_OF_TIME
    source.add_split("shard-0")
    caused = source.process_record("a", 5, now_ms=300, split="shard-0")
    assert caused == [ACTIVE, Record("a", 5)]
    assert source.advance_clock(400) == [Watermark(4)]
    # All shards have ended.
    source.finish_split("shard-0")
    assert source.last_output == Watermark(4)
    assert source.advance_clock(600) == [IDLE]


def test_a_split_that_goes_moves_nothing_at_once_and_one_that_comes_holds_back():
    multiplexer = WatermarkMultiplexer()
    for split in ("0", "1"):
        multiplexer.register(split)
    multiplexer.output("0").emit_watermark(Watermark(9), now_ms=0)
    multiplexer.output("1").emit_watermark(Watermark(3), now_ms=0)
    assert multiplexer.flush(now_ms=0) == (Watermark(3),)
    multiplexer.unregister("1")
    assert multiplexer.last == Watermark(3)
    assert multiplexer.flush(now_ms=0) == (Watermark(9),)
    multiplexer.register("2")
    multiplexer.output("0").emit_watermark(Watermark(20), now_ms=0)
    assert multiplexer.flush(now_ms=0) == ()
    multiplexer.output("2").mark_idle()
    assert multiplexer.flush(now_ms=0) == (Watermark(20),)
    assert multiplexer.splits == ("0", "2")


def test_all_splits_idle_is_an_idle_source():
    multiplexer = WatermarkMultiplexer()
    for split in ("0", "1"):
        multiplexer.register(split)
        multiplexer.output(split).emit_watermark(Watermark(5), now_ms=0)
    multiplexer.flush(now_ms=0)
    multiplexer.output("0").mark_idle()
    assert multiplexer.flush_split("0", now_ms=0) == ()
    multiplexer.output("1").mark_idle()
    assert multiplexer.flush_split("1", now_ms=0) == (IDLE,)
    assert multiplexer.flush_split("1", now_ms=0) == ()


def test_periodic_emission_of_many_splits_is_one_watermark():
    source = SourceOperator(ASCENDING, splits=("0", "1", "2"))
    source.advance_clock(0)
    for split in ("0", "1", "2"):
        source.process_record("row", 10 + int(split), now_ms=0, split=split)
    assert source.advance_clock(200) == [Watermark(9)]


def test_a_split_is_known_before_its_records():
    source = SourceOperator(ASCENDING)
    with pytest.raises(UnknownChannelError, match='split "7"'):
        source.process_record("row", 5, now_ms=0, split="7")
    with pytest.raises(UnknownChannelError):
        source.finish_split("7")
    with pytest.raises(InvalidParameterError):
        source.add_split("main")


@covers("E13")
def test_a_custom_source_stamps_and_speaks_itself():
    context = SourceContext()
    context.collect_with_timestamp("a", 5)
    context.emit_watermark(Watermark(5), now_ms=0)
    context.emit_watermark(Watermark(4), now_ms=0)
    context.mark_as_temporarily_idle()
    context.collect_with_timestamp("b", 9)
    assert context.drain() == [Record("a", 5), Watermark(5), IDLE, ACTIVE, Record("b", 9)]


@covers("E14")
def test_assigning_in_the_stream_overwrites_times_and_stops_upstream_watermarks():
    strategy = PER_RECORD.with_timestamp_assigner(lambda row, previous: row["ts"])
    harness = OperatorHarness(lambda: TimestampsAndWatermarksOperator(strategy))
    assert harness.row({"ts": 5}, 99) == [Record({"ts": 5}, 5), Watermark(5)]
    assert harness.watermark(80) == []
    assert harness.status(IDLE) == []
    assert harness.row({"ts": 7}, 98)[1] == Watermark(7)
    assert harness.end_of_input() == [END_OF_TIME]


@covers("E14", "E02")
def test_assigning_in_the_stream_can_be_periodic():
    harness = OperatorHarness(lambda: TimestampsAndWatermarksOperator(ASCENDING))
    harness.clock(0)
    harness.row("a", 50)
    assert harness.clock(200) == [Watermark(49)]


@covers("E06")
def test_without_watermarks_nothing_comes_out():
    operator = Stream().window_all(TumblingWindows(100)).reduce(lambda a, b: a + b)
    harness = OperatorHarness(lambda: operator)
    for time in range(0, 100_000, 100):
        harness.row(1, time)
    assert harness.output == []
    assert operator.open_windows == 1_000


def test_alignment_pauses_who_is_too_far_ahead():
    alignment = WatermarkAlignment(10)
    alignment.report("fast", Watermark(100), now_ms=0)
    assert alignment.paused() == ()
    alignment.report("slow", Watermark(50), now_ms=0)
    assert (alignment.max_allowed_ms, alignment.paused()) == (60, ("fast",))
    alignment.report("slow", Watermark(90), now_ms=0)
    assert alignment.paused() == ()
    alignment.report("slow", Watermark(95), now_ms=0)
    alignment.report("fast", Watermark(107), now_ms=0)
    assert alignment.paused() == ("fast",)
    alignment.report_idle("slow")
    assert (alignment.max_allowed_ms, alignment.paused()) == (117, ())
    alignment.report("slow", Watermark(96), now_ms=0)
    assert alignment.paused() == ("fast",)
    alignment.remove("slow")
    assert alignment.paused() == ()


def test_alignment_of_nobody_gives_no_limit_and_not_the_end_of_time():
    alignment = WatermarkAlignment(10)
    assert alignment.max_allowed_ms is None
    alignment.report("a", Watermark(5), now_ms=0)
    alignment.remove("a")
    assert (alignment.max_allowed_ms, alignment.paused()) == (None, ())
    alignment.report("b", PROCESSING_TIME, now_ms=0)
    assert alignment.max_allowed_ms is None
    ended = WatermarkAlignment(10)
    ended.report("c", Watermark(MAX_TIMESTAMP), now_ms=0)
    assert ended.max_allowed_ms == MAX_TIMESTAMP
    with pytest.raises(InvalidParameterError, match="drift of -1 ms"):
        WatermarkAlignment(-1)
    with pytest.raises(UnknownChannelError):
        alignment.report_idle("x")


def test_a_source_that_was_restored_does_not_go_back():
    harness = OperatorHarness(lambda: TimestampsAndWatermarksOperator(ASCENDING, interval_ms=10))
    harness.clock(0)
    harness.row("a", 1_000)
    assert harness.clock(10) == [Watermark(999)]
    harness.restart()
    harness.row("b", 5)
    assert harness.clock(20) + harness.clock(30) == []


def test_a_source_context_that_was_restored_does_not_go_back():
    before, after_restart = SourceContext(), SourceContext()
    before.emit_watermark(Watermark(9), now_ms=0)
    after_restart.restore(before.snapshot())
    after_restart.drain()
    after_restart.emit_watermark(Watermark(5), now_ms=0)
    assert after_restart.drain() == []


def test_a_source_that_has_ended_says_nothing_more_by_the_clock():
    source = SourceOperator(WatermarkStrategy.no_watermarks(), interval_ms=1)
    source.advance_clock(0)
    assert source.end_of_input(now_ms=0) == [END_OF_TIME]
    assert source.advance_clock(5) == []
