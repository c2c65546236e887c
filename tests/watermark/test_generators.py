import pytest

from tests.watermark.acceptance import covers
from watermark.errors import InvalidParameterError
from watermark.model import MIN_TIMESTAMP, PROCESSING_TIME, Watermark, WatermarkStatus
from watermark.reference.emission import SourceOperator
from watermark.reference.generators import (
    AscendingTimestamps,
    BoundedOutOfOrderness,
    BoundedOutOfOrdernessTimestampExtractor,
    BoundedWait,
    DelayedProcessingTime,
    NoWatermarks,
    PunctuatedWatermarks,
    WatermarkGenerator,
    WatermarkStrategy,
    WithIdleness,
)
from watermark.reference.outputs import MonotonicOutput
from watermark.reference.timers import Record

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE


class Heard:
    """Every word of a generator, without the monotonic output's judgement."""

    def __init__(self):
        self.words = []

    def emit_watermark(self, watermark, *, now_ms):
        self.words.append(watermark)

    def mark_idle(self):
        self.words.append(IDLE)

    def mark_active(self):
        self.words.append(ACTIVE)

    def take(self):
        words, self.words = self.words, []
        return words


def after(generator, *times, now_ms=0):
    """What a periodic check gives after events at these times."""
    heard = Heard()
    for time in times:
        generator.on_event("row", time, heard, now_ms=now_ms)
    assert heard.take() == []
    generator.on_periodic_emit(heard, now_ms=now_ms)
    return heard.take()


PERIODIC = {
    "ascending": (AscendingTimestamps, [5, 7], 6),
    "ascending_is_not_lowered_by_an_old_record": (AscendingTimestamps, [7, 5], 6),
    "bounded": (lambda: BoundedOutOfOrderness(10), [100], 89),
    "bounded_by_zero_is_ascending": (lambda: BoundedOutOfOrderness(0), [100], 99),
    "seed_003s_log": (lambda: BoundedOutOfOrderness(5_000), [1662303786891], 1662303781890),
    "older_rule_has_no_millisecond": (
        lambda: BoundedOutOfOrdernessTimestampExtractor(10),
        [100],
        90,
    ),
    "before_any_record": (lambda: BoundedOutOfOrderness(10), [], MIN_TIMESTAMP),
    "no_underflow": (lambda: BoundedOutOfOrderness(10), [MIN_TIMESTAMP + 3], MIN_TIMESTAMP),
    "times_before_1970": (lambda: BoundedOutOfOrderness(10), [-100], -111),
}


@pytest.mark.parametrize(("make", "times", "expected"), PERIODIC.values(), ids=PERIODIC)
@covers("B10", "C04", "C05", "C07", "E07", "E26")
def test_periodic_generators_speak_when_asked(make, times, expected):
    assert after(make(), *times) == [Watermark(expected)]


@covers("B10", "B27", "B28")
def test_no_watermarks_says_processing_time():
    assert after(NoWatermarks(), 5) == [PROCESSING_TIME]


@covers("B28")
def test_processing_time_does_not_disturb_windows_that_follow_the_clock():
    from watermark.reference.testing import OperatorHarness
    from watermark.reference.timers import TimeDomain
    from watermark.reference.windows import Stream, TumblingWindows

    windowed = Stream().window_all(TumblingWindows(100, time=TimeDomain.PROCESSING))
    outcomes = []
    for says_processing_time in (False, True):
        harness = OperatorHarness(lambda: windowed.reduce(lambda a, b: a + b))
        if says_processing_time:
            harness.processing_time()
        harness.row(1)
        harness.row(2)
        harness.clock(99)
        outcomes.append(harness.records())
    assert outcomes == [[Record(3, 99)]] * 2


@covers("E07", "E21")
def test_punctuated_generators_speak_for_records_only():
    heard = Heard()
    generator = PunctuatedWatermarks(lambda row, time: Watermark(time) if row == "mark" else None)
    generator.on_event("row", 5, heard, now_ms=0)
    assert heard.take() == []
    generator.on_event("mark", 7, heard, now_ms=0)
    assert heard.take() == [Watermark(7)]
    generator.on_periodic_emit(heard, now_ms=10_000)
    assert heard.take() == []


@covers("E21")
def test_a_generator_that_looks_at_records_only_stands_still_with_them():
    generator = AscendingTimestamps()
    assert after(generator, 7) == [Watermark(6)]
    assert after(generator, now_ms=1_000_000) == [Watermark(6)]


@covers("E26")
def test_a_generator_may_follow_the_clock_with_a_delay():
    generator = DelayedProcessingTime(50)
    assert after(generator, 5, now_ms=100) == [Watermark(50)]
    assert after(generator, now_ms=300) == [Watermark(250)]


@covers("E22")
def test_a_bounded_wait_goes_on_with_the_clock_when_the_stream_is_quiet():
    generator = BoundedWait(10, 100)
    assert after(generator, 1_000, now_ms=1_000) == [Watermark(989)]
    assert after(generator, now_ms=1_100) == [Watermark(989)]
    assert after(generator, now_ms=1_101) == [Watermark(989), Watermark(990)]
    assert after(generator, now_ms=1_300)[-1] == Watermark(1_189)


@covers("E22")
def test_a_bounded_wait_that_never_hears_a_record_starts_with_the_first_check():
    generator = BoundedWait(0, 100)
    assert after(generator, now_ms=5_000) == [Watermark(MIN_TIMESTAMP)]
    assert after(generator, now_ms=5_101)[-1] == Watermark(5_000)


@covers("B10", "E24")
def test_a_generator_of_ones_own():
    class EverySecond(WatermarkGenerator):
        def __init__(self):
            self.count = 0

        def on_event(self, value, timestamp_ms, output, *, now_ms):
            self.count += 1
            if self.count % 2 == 0:
                output.emit_watermark(Watermark(timestamp_ms), now_ms=now_ms)

        def on_periodic_emit(self, output, *, now_ms):
            output.mark_idle()

    source = SourceOperator(WatermarkStrategy.for_generator(EverySecond), interval_ms=10)
    assert source.process_record("a", 5, now_ms=0) == [Record("a", 5)]
    assert source.process_record("b", 7, now_ms=0) == [Record("b", 7), Watermark(7)]
    source.advance_clock(0)
    assert source.advance_clock(10) == [IDLE]


def idle_checks(*steps):
    """Steps `(now, record?)`; the words of each check."""
    heard, generator = Heard(), WithIdleness(AscendingTimestamps(), 100)
    words = []
    for now_ms, has_record in steps:
        if has_record:
            generator.on_event("row", now_ms, heard, now_ms=now_ms)
        generator.on_periodic_emit(heard, now_ms=now_ms)
        words.append(heard.take())
    return words


IDLENESS = {
    "count_down_starts_at_the_first_quiet_check": (
        [(0, True), (50, False), (150, False), (151, False)],
        [[Watermark(-1)], [Watermark(-1)], [Watermark(-1)], [IDLE]],
    ),
    "idle_is_said_once": (
        [(0, False), (101, False), (202, False)],
        [[Watermark(MIN_TIMESTAMP)], [IDLE], []],
    ),
    "a_check_that_notices_a_record_does_not_start_it": (
        [(0, True), (200, True), (310, False), (410, False), (411, False)],
        [[Watermark(-1)], [Watermark(199)], [Watermark(199)], [Watermark(199)], [IDLE]],
    ),
    "a_record_ends_it": (
        [(0, False), (101, False), (120, True)],
        [[Watermark(MIN_TIMESTAMP)], [IDLE], [ACTIVE, Watermark(119)]],
    ),
}


@pytest.mark.parametrize(("steps", "expected"), IDLENESS.values(), ids=IDLENESS)
@covers("E24", "E25")
def test_idleness_is_noticed_by_checks(steps, expected):
    assert idle_checks(*steps) == expected


BAD_PARAMETERS = {
    "negative_bound": (lambda: BoundedOutOfOrderness(-1), "bound of -1 ms"),
    "negative_bound_of_a_strategy": (
        lambda: WatermarkStrategy.for_bounded_out_of_orderness(-1),
        "bound of -1 ms",
    ),
    "timeout_zero": (lambda: WithIdleness(NoWatermarks(), 0), "timeout of 0 ms"),
    "timeout_of_a_strategy_zero": (
        lambda: WatermarkStrategy.no_watermarks().with_idleness(0),
        "timeout of 0 ms",
    ),
    "wait_zero": (lambda: BoundedWait(0, 0), "wait of 0 ms"),
    "negative_delay": (lambda: DelayedProcessingTime(-1), "delay of -1 ms"),
}


@pytest.mark.parametrize(("make", "text"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_meaningless_parameters_are_refused(make, text):
    with pytest.raises(InvalidParameterError) as raised:
        make()
    assert text in raised.value.message
    assert raised.value.hint.endswith(".")


ASSIGNED = {
    "native_is_kept_without_an_assigner": (None, 17, 17),
    "neither_gives_the_start_of_time": (None, None, MIN_TIMESTAMP),
    "an_assigner_overrides": (lambda row, previous: row["ts"], 17, 5),
    "an_assigner_may_give_back_what_it_got": (lambda row, previous: previous, 17, 17),
    "an_assigner_gets_the_start_of_time_if_there_is_none": (
        lambda row, previous: previous,
        None,
        MIN_TIMESTAMP,
    ),
}


@pytest.mark.parametrize(("assigner", "native", "expected"), ASSIGNED.values(), ids=ASSIGNED)
@covers("B09", "B11", "B12", "E04", "E08", "E09", "E10")
def test_records_get_their_time(assigner, native, expected):
    """Native times: Kafka's CreateTime or LogAppendTime, Kinesis' approximate arrival."""
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    if assigner is not None:
        strategy = strategy.with_timestamp_assigner(assigner)
    (record,) = SourceOperator(strategy).process_record({"ts": 5}, native, now_ms=0)
    assert record.timestamp_ms == expected


@covers("E18")
def test_each_parallel_instance_has_generators_of_its_own():
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    first, second = SourceOperator(strategy), SourceOperator(strategy)
    first.process_record("row", 100, now_ms=0)
    for source in (first, second):
        source.advance_clock(0)
    assert first.advance_clock(200) == [Watermark(99)]
    assert second.advance_clock(200) == []


@covers("E24")
def test_a_strategy_with_idleness():
    source = SourceOperator(WatermarkStrategy.for_monotonous_timestamps().with_idleness(500))
    source.advance_clock(0)
    source.process_record("row", 5, now_ms=0)
    words = [word for now in range(200, 1_400, 200) for word in source.advance_clock(now)]
    assert words == [Watermark(4), IDLE]
    assert source.process_record("row", 9, now_ms=1_500) == [ACTIVE, Record("row", 9)]


def test_a_generator_can_speak_into_a_monotonic_output():
    output, generator = MonotonicOutput(), AscendingTimestamps()
    generator.on_event("row", 5, output, now_ms=0)
    generator.on_periodic_emit(output, now_ms=0)
    generator.on_periodic_emit(output, now_ms=0)
    assert output.drain() == [Watermark(4)]
