"""Laws of the combine rule on random inputs."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.laws import examples
from tests.watermark.acceptance import covers
from tests.watermark.combine_model import CombineModel, ModelChannel
from tests.watermark.inputs import BOTH
from watermark.errors import FutureWatermarkError, WatermarkRegressionError
from watermark.model import (
    END_OF_TIME,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    Watermark,
    WatermarkStatus,
)
from watermark.valve import CombinedWatermarkStatus

IDLE, ACTIVE = WatermarkStatus.IDLE, WatermarkStatus.ACTIVE
NOW = 1_000_000
NAMES = ["a", "b", "c", "d"]
STEP = st.tuples(
    st.sampled_from(NAMES),
    st.one_of(
        st.integers(0, 5),
        st.sampled_from([IDLE, ACTIVE, PROCESSING_TIME, END_OF_TIME, "remove", "add"]),
    ),
)


@BOTH
@settings(max_examples=examples(300))
@given(steps=st.lists(STEP, max_size=40))
@covers("B44", "B45", "B46", "B47", "B48", "B51", "E24")
def test_any_input_gives_what_the_rule_from_scratch_gives(make, steps):
    valve, model = (
        make(NAMES),
        CombineModel(NAMES, laggards_hold_back=make is CombinedWatermarkStatus),
    )
    seen = []
    for name, what in steps:
        if what in ("add", "remove"):
            _change_members(valve, model, name, what)
        elif name in model.channels:
            answer, expected = _input_both(valve, model, name, what)
            assert list(answer) == expected
            seen += answer
    _never_goes_back(seen)


@BOTH
@settings(max_examples=examples(300))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.one_of(st.integers(0, 5), st.sampled_from([IDLE, ACTIVE])),
        ),
        max_size=30,
    ),
    end_at=st.integers(0, 30),
)
def test_a_channel_that_has_ended_is_as_one_that_is_not_there(make, steps, end_at):
    """From the end of a channel on the others add up to what they add up to alone."""
    beside, alone = make(["ended", "a", "b", "c"]), make(["ended", "a", "b", "c"])
    times = dict.fromkeys(("a", "b", "c"), 0)
    for at, (name, what) in enumerate(steps):
        if at == end_at:
            beside.input_watermark("ended", END_OF_TIME, now_ms=NOW)
            alone.input_status("ended", IDLE)
        for each in (beside, alone):
            if isinstance(what, WatermarkStatus):
                each.input_status(name, what)
            else:
                each.input_watermark(name, Watermark(times[name] + what), now_ms=NOW)
        times[name] += what if isinstance(what, int) else 0
        assert beside.last_output == alone.last_output


def _change_members(valve, model, name, what):
    if what == "add" and name not in model.channels:
        valve.add_channel(name)
        model.channels[name] = ModelChannel()
    elif what == "remove" and name in model.channels:
        valve.remove_channel(name)
        del model.channels[name]


def _input_both(valve, model, name, what):
    if isinstance(what, WatermarkStatus):
        return valve.input_status(name, what), model.set_status(name, what)
    channel = model.channels[name]
    watermark = Watermark(max(channel.timestamp_ms, 0) + what) if isinstance(what, int) else what
    if channel.processing:
        watermark = PROCESSING_TIME
    answer = valve.input_watermark(name, watermark, now_ms=MAX_TIMESTAMP)
    return answer, model.watermark(name, watermark)


def _never_goes_back(elements):
    watermarks = [each for each in elements if isinstance(each, Watermark)]
    switched = False
    last_ms = MIN_TIMESTAMP
    for each in watermarks:
        assert not switched, "nothing follows processing time"
        switched = each.use_processing_time
        if not switched:
            assert each.timestamp_ms > last_ms
            last_ms = each.timestamp_ms


@BOTH
@settings(max_examples=examples(200))
@given(
    finals=st.lists(
        st.one_of(st.integers(-10, 10).map(Watermark), st.just(PROCESSING_TIME)),
        min_size=1,
        max_size=6,
    ),
    seed=st.integers(0, 10_000),
)
@covers("B47", "B48")
def test_the_order_of_channels_is_irrelevant_to_the_final_value(make, finals, seed):
    names = [str(each) for each in range(len(finals))]
    outcomes = set()
    for attempt in range(4):
        valve = make(names)
        order = list(zip(names, finals, strict=True))
        random.Random(seed + attempt).shuffle(order)
        for name, watermark in order:
            valve.input_watermark(name, watermark, now_ms=NOW)
        outcomes.add(valve.last_output)
    assert len(outcomes) == 1


@BOTH
@settings(max_examples=examples(200))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.one_of(
                st.integers(0, 60),
                st.sampled_from([IDLE, ACTIVE, PROCESSING_TIME, "remove", "add"]),
            ),
            st.integers(0, 1),
        ),
        min_size=12,
        max_size=30,
    )
)
def test_what_goes_out_is_never_refused_by_the_next_one(make, steps):
    """Also when channels come and go, and promise times that the clock has not reached."""
    valve, following = make(["a", "b"]), make(["input"])
    now_ms, names = 0, {"a", "b"}
    for name, what, passing in steps:
        now_ms += passing
        for each in _taken(valve, names, name, what, now_ms):
            if isinstance(each, WatermarkStatus):
                following.input_status("input", each)
            else:
                following.input_watermark("input", each, now_ms=now_ms)
    assert following.last_output == valve.last_output


def _taken(valve, names, name, what, now_ms):
    """What goes out; nothing for an input that the valve itself refuses."""
    if what in ("add", "remove"):
        if (name in names) is (what == "remove"):
            (valve.remove_channel if what == "remove" else valve.add_channel)(name)
            names ^= {name}
        return ()
    if name not in names:
        return ()
    if isinstance(what, WatermarkStatus):
        return valve.input_status(name, what)
    try:
        watermark = Watermark(what) if isinstance(what, int) else what
        return valve.input_watermark(name, watermark, now_ms=now_ms)
    except (FutureWatermarkError, WatermarkRegressionError):
        return ()
