import pytest

from tests.watermark.acceptance import covers
from tests.watermark.inputs import BOTH
from tests.watermark.seed import VECTORS
from watermark.errors import (
    FutureWatermarkError,
    InvalidParameterError,
    StateFormatError,
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
from watermark.valve import ChannelState, CombinedWatermarkStatus, StatusWatermarkValve

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
NOW = 1_000_000


def feed(valve, script, now_ms=NOW):
    """Inputs `(channel, time | watermark | status)`; what each of them puts out."""
    answers = []
    for channel, what in script:
        if isinstance(what, WatermarkStatus):
            answers.append(valve.input_status(channel, what))
        else:
            watermark = Watermark(what) if isinstance(what, int) else what
            answers.append(valve.input_watermark(channel, watermark, now_ms=now_ms))
    return [
        [
            each.timestamp_ms if type(each) is Watermark and not each.use_processing_time else each
            for each in answer
        ]
        for answer in answers
    ]


@BOTH
@pytest.mark.parametrize("case", VECTORS["seed001/two-channel-combination"]["cases"])
@pytest.mark.parametrize(("t1", "t2"), [(3, 5), (5, 3), (4, 4)])
@covers("B47", "B49", "B50", "B51")
def test_two_channels_combine_as_in_the_table(make, case, t1, t2):
    times = {"t1": t1, "t2": t2, "MIN(t1, t2)": min(t1, t2), "Long.MIN_VALUE": MIN_TIMESTAMP}
    valve = make(["1", "2"])
    for name in ("1", "2"):
        given = case[f"channel{name}"]
        watermark = Watermark(times[given["timestamp"]], given["useProcessingTime"])
        valve.input_watermark(name, watermark, now_ms=NOW)
    effective = case["effective"]
    expected = Watermark(times[effective["timestamp"]], effective["useProcessingTime"])
    assert valve.last_output == expected


SCRIPTS = {
    "minimum_of_all_channels": (
        [("a", 5), ("b", 3), ("b", 9)],
        [[], [3], [5]],
    ),
    "equal_watermarks_are_said_once": (
        [("a", 5), ("b", 5), ("a", 5), ("b", 5)],
        [[], [5], [], []],
    ),
    "an_idle_channel_does_not_hold_back": (
        [("a", 5), ("b", IDLE), ("a", 7)],
        [[], [5], [7]],
    ),
    "all_idle_gives_the_maximum_and_then_idle": (
        [("a", 5), ("b", 3), ("b", IDLE), ("a", IDLE)],
        [[], [3], [5], [IDLE]],
    ),
    "all_idle_gives_the_maximum_even_when_the_slowest_idles_last": (
        [("a", 9), ("a", IDLE), ("b", 3), ("b", IDLE)],
        [[], [], [3], [9, IDLE]],
    ),
    "active_goes_out_before_what_it_frees": (
        [("a", IDLE), ("b", IDLE), ("a", ACTIVE), ("a", 4)],
        [[], [IDLE], [ACTIVE], [4]],
    ),
    "a_watermark_on_an_idle_channel_is_thrown_away": (
        [("a", 2), ("b", 2), ("a", IDLE), ("a", 50), ("a", ACTIVE), ("b", 60), ("a", 55)],
        [[], [2], [], [], [], [], [55]],
    ),
    "a_true_watermark_makes_an_idle_channel_active": (
        [("a", IDLE), ("b", IDLE), ("a", PROCESSING_TIME), ("b", PROCESSING_TIME)],
        [[], [IDLE], [ACTIVE], [PROCESSING_TIME]],
    ),
    "a_channel_in_processing_time_cannot_idle": (
        [("a", PROCESSING_TIME), ("a", IDLE), ("b", 5), ("b", IDLE)],
        [[], [], [5], []],
    ),
    "an_idle_channel_in_event_time_keeps_the_input_there": (
        [("b", IDLE), ("a", PROCESSING_TIME), ("b", ACTIVE), ("b", PROCESSING_TIME)],
        [[], [], [], [PROCESSING_TIME]],
    ),
    "the_slowest_channel_frees_the_others_when_it_switches": (
        [("a", 5), ("b", 9), ("a", PROCESSING_TIME), ("b", 11)],
        [[], [5], [9], [11]],
    ),
    "processing_time_is_said_once_and_may_be_repeated": (
        [("a", PROCESSING_TIME), ("b", Watermark(7, True)), ("a", PROCESSING_TIME)],
        [[], [PROCESSING_TIME], []],
    ),
    "the_end_of_time_needs_every_channel": (
        [("a", END_OF_TIME), ("b", 4), ("b", END_OF_TIME)],
        [[], [4], [MAX_TIMESTAMP]],
    ),
    "an_idle_channel_has_not_ended": (
        [("b", IDLE), ("a", END_OF_TIME), ("b", ACTIVE), ("b", END_OF_TIME)],
        [[], [IDLE], [ACTIVE], [MAX_TIMESTAMP]],
    ),
    "an_idle_channel_beside_an_ended_one_returns_on_time": (
        [("b", 5), ("a", END_OF_TIME), ("b", IDLE), ("b", ACTIVE), ("b", 6)],
        [[], [5], [IDLE], [ACTIVE], [6]],
    ),
    "a_channel_that_ends_beside_an_idle_one_flushes_it": (
        [("a", 3), ("b", 5), ("b", IDLE), ("a", END_OF_TIME), ("b", ACTIVE), ("b", 6)],
        [[], [3], [], [5, IDLE], [ACTIVE], [6]],
    ),
    "an_ended_channel_does_not_idle": (
        [("a", END_OF_TIME), ("a", IDLE), ("b", 5), ("b", IDLE), ("b", ACTIVE), ("b", END_OF_TIME)],
        [[], [], [5], [IDLE], [ACTIVE], [MAX_TIMESTAMP]],
    ),
    "ended_beside_processing_time_is_the_end": (
        [("a", PROCESSING_TIME), ("b", END_OF_TIME)],
        [[], [MAX_TIMESTAMP]],
    ),
    "times_before_1970": (
        [("a", -5), ("b", -7)],
        [[], [-7]],
    ),
}


@BOTH
@pytest.mark.parametrize(("script", "expected"), SCRIPTS.values(), ids=SCRIPTS)
@covers("B43", "B44", "B45", "B47", "B48", "B51", "B54", "E20", "E24")
def test_channels_combine(make, script, expected):
    assert feed(make(["a", "b"]), script) == expected


@covers("B44", "B46")
def test_a_returning_channel_is_unaligned_until_it_has_caught_up():
    valve = StatusWatermarkValve(["a", "b"])
    assert feed(valve, [("a", 5), ("b", IDLE), ("a", 20), ("b", ACTIVE)]) == [[], [5], [20], []]
    assert valve.channels()[1] == ChannelState("b", ACTIVE, Watermark(MIN_TIMESTAMP), False)
    # Neither holds back nor advances.
    assert feed(valve, [("b", 10), ("a", 30)]) == [[], [30]]
    # Caught up: it counts from here on.
    assert feed(valve, [("b", 31), ("a", 40), ("b", 39)]) == [[], [31], [39]]
    assert valve.channels()[1].aligned


@covers("B44")
def test_one_active_unaligned_channel_alone_says_nothing():
    valve = StatusWatermarkValve(["a", "b"])
    feed(valve, [("a", 20), ("b", IDLE), ("b", ACTIVE)])
    assert feed(valve, [("a", IDLE), ("b", 7)]) == [[], []]
    assert feed(valve, [("b", IDLE)]) == [[IDLE]]


@covers("B51")
def test_a_returning_input_of_an_operator_holds_back_until_it_has_caught_up():
    combined = CombinedWatermarkStatus(["a", "b"])
    feed(combined, [("a", 5), ("b", IDLE), ("a", 20), ("b", ACTIVE)])
    assert feed(combined, [("b", 10), ("a", 30), ("b", 25)]) == [[], [], [25]]


@covers("B46")
def test_after_processing_time_a_channel_is_aligned_if_it_is_there_too():
    valve = StatusWatermarkValve(["a"])
    feed(valve, [("a", PROCESSING_TIME)])
    valve.add_channel("b")
    assert feed(valve, [("b", 5)]) == [[]]
    assert [each.aligned for each in valve.channels()] == [True, False]
    assert feed(valve, [("b", PROCESSING_TIME)]) == [[]]
    assert [each.aligned for each in valve.channels()] == [True, True]
    assert valve.last_output == PROCESSING_TIME


@BOTH
@covers("B44")
def test_no_channels_say_nothing(make):
    valve = make([])
    assert valve.last_output == START_OF_TIME
    valve.add_channel("a")
    valve.remove_channel("a")
    assert valve.last_output == START_OF_TIME


@BOTH
def test_removing_a_channel_moves_nothing_before_the_next_input(make):
    valve = make(["a", "b"])
    feed(valve, [("a", 9), ("b", 3)])
    valve.remove_channel("b")
    assert valve.last_output == Watermark(3)
    assert feed(valve, [("a", 9)]) == [[9]]


@BOTH
def test_removing_the_last_channel_in_event_time_needs_another_word_to_open(make):
    valve = make(["a", "b"])
    feed(valve, [("a", PROCESSING_TIME)])
    valve.remove_channel("b")
    assert valve.last_output == START_OF_TIME
    assert feed(valve, [("a", PROCESSING_TIME)]) == [[PROCESSING_TIME]]


BAD_INPUTS = {
    "unknown_channel": (UnknownChannelError, '"x"', NOW, [("x", 1)]),
    "unknown_channel_of_a_status": (UnknownChannelError, '"x"', NOW, [("x", IDLE)]),
    "watermark_goes_back": (
        WatermarkRegressionError,
        "from 5 ms to 4 ms",
        NOW,
        [("a", 5), ("a", 4)],
    ),
    "false_after_true": (
        WatermarkRegressionError,
        "left processing time at 5 ms",
        NOW,
        [("a", PROCESSING_TIME), ("a", 5)],
    ),
    "true_in_the_future": (FutureWatermarkError, "11 ms", 10, [("a", Watermark(11, True))]),
    "true_before_the_promised_time": (
        FutureWatermarkError,
        "12 ms",
        10,
        [("a", 12), ("a", PROCESSING_TIME)],
    ),
}


@pytest.mark.parametrize("make", [StatusWatermarkValve, CombinedWatermarkStatus])
@pytest.mark.parametrize("case", BAD_INPUTS.values(), ids=BAD_INPUTS)
@covers("B17", "B22", "B40", "B43")
def test_bad_input_names_the_channel_the_value_and_the_remedy(make, case):
    error, text, now_ms, script = case
    valve = make(["a", "b"])
    feed(valve, script[:-1], now_ms)
    with pytest.raises(error, match="channel") as raised:
        feed(valve, script[-1:], now_ms)
    assert text in raised.value.message
    assert raised.value.hint.endswith(".")


@BOTH
@covers("B17", "B49")
def test_processing_time_may_start_now(make):
    valve = make(["a"])
    assert feed(valve, [("a", Watermark(10, True))], now_ms=10) == [[PROCESSING_TIME]]


@BOTH
@covers("B48")
def test_a_clock_that_steps_back_does_not_make_a_repeated_watermark_one_of_the_future(make):
    valve = make(["a", "b"])
    feed(valve, [("a", Watermark(100, True))], now_ms=100)
    assert feed(valve, [("a", Watermark(100, True))], now_ms=90) == [[]]


def test_a_channel_has_one_name():
    with pytest.raises(InvalidParameterError, match='channel "a" was declared twice'):
        StatusWatermarkValve(["a", "a"])
    with pytest.raises(UnknownChannelError):
        StatusWatermarkValve(["a"]).remove_channel("b")


@covers("E20")
def test_each_channel_can_be_looked_at():
    valve = StatusWatermarkValve(["a", "b", "c"])
    feed(valve, [("a", 5), ("b", PROCESSING_TIME), ("c", IDLE)])
    assert valve.channels() == (
        ChannelState("a", ACTIVE, Watermark(5), True),
        ChannelState("b", ACTIVE, PROCESSING_TIME, True),
        ChannelState("c", IDLE, START_OF_TIME, False),
    )
    assert (valve.last_output, valve.status) == (Watermark(5), ACTIVE)


def test_an_input_that_does_not_move_the_minimum_looks_at_no_other_channel():
    names = [str(each) for each in range(1_000)]
    valve = StatusWatermarkValve(names)
    comparisons = 0

    class Counted(int):
        def __lt__(self, other):
            nonlocal comparisons
            comparisons += 1
            return int.__lt__(self, other)

    combination = valve._combination
    combination._heap[:] = [(Counted(t), n, c) for t, n, c in combination._heap]
    for round_ in range(5):
        for name in names[1:]:
            valve.input_watermark(name, Watermark(round_), now_ms=NOW)
    assert comparisons == 0


def test_combined_state_survives_being_stored():
    combined = CombinedWatermarkStatus(["a", "b", "c"])
    combined.input_watermark("a", Watermark(5), now_ms=NOW)
    combined.input_watermark("b", PROCESSING_TIME, now_ms=NOW)
    combined.input_status("c", IDLE)
    restored = CombinedWatermarkStatus([])
    restored.restore(combined.snapshot())
    assert restored.last_output == combined.last_output == Watermark(5)
    assert restored.inputs == ("a", "b", "c")
    assert restored.watermark_of("b") == PROCESSING_TIME
    assert restored.input_status("c", ACTIVE) == ()
    assert restored.input_watermark("a", Watermark(7), now_ms=NOW) == ()
    assert restored.input_watermark("c", Watermark(6), now_ms=NOW) == (Watermark(6),)
    with pytest.raises(StateFormatError):
        restored.restore({"last": 1})


@BOTH
def test_processing_time_waits_for_the_clock_when_a_removed_channel_had_promised_more(make):
    """Else `(MIN, true)` follows 900 at 500, which the next operator refuses as of the future."""
    valve, following = make(["goes", "stays"]), make(["input"])
    valve.input_watermark("goes", Watermark(900), now_ms=500)
    (sent,) = valve.input_watermark("stays", PROCESSING_TIME, now_ms=500)
    following.input_watermark("input", sent, now_ms=500)
    valve.remove_channel("goes")
    assert valve.input_watermark("stays", PROCESSING_TIME, now_ms=500) == ()
    assert valve.input_watermark("stays", PROCESSING_TIME, now_ms=899) == ()
    (switch,) = valve.input_watermark("stays", PROCESSING_TIME, now_ms=900)
    assert switch == PROCESSING_TIME
    following.input_watermark("input", switch, now_ms=900)
    assert following.last_output == PROCESSING_TIME
