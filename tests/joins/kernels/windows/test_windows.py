"""Window kernels: what the reference operator gives, whatever the cut into batches."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.windows.firing import fire
from joins.kernels.windows.partials import partials
from joins.kernels.windows.state import WatermarkAdvance
from joins.plan.plan import WindowKind
from tests.support.laws import examples
from tests.support.windows import (
    COUNTED,
    ENDLESS,
    KernelWindows,
    OperatorWindows,
    by_key,
    input_rows,
    window_spec,
)
from tests.watermark.seed import VECTORS, clock, elements, millis
from watermark.model import Watermark

START = -40
STARTS = st.sampled_from([START, START, -62_135_500_000_000, 253_402_200_000_000])
"""What is before the first watermark; in the years 1 and 9999, too."""


def steps(keys, near, far):
    return st.lists(
        st.one_of(
            *[st.tuples(st.just("row"), st.sampled_from(keys), st.integers(-near, far))] * 5,
            *[st.tuples(st.just("watermark"), st.integers(0, near // 2))] * 2,
            st.tuples(st.just("batch"), st.integers(1, 3)),
            st.tuples(st.just("compact")),
        ),
        min_size=20,
        max_size=60,
    )


LATENESS = st.sampled_from([0, 0, 3, 15, 15, 2**62, 2**63 - 1])
FIXED = st.one_of(
    st.builds(
        lambda size, offset, lateness: window_spec(
            WindowKind.TUMBLE, size, offset_ms=offset % size, lateness_ms=lateness
        ),
        st.integers(1, 25),
        st.integers(0, 24),
        LATENESS,
    ),
    st.builds(
        lambda size, slide, offset, lateness: window_spec(
            WindowKind.HOP, size, slide_ms=slide, offset_ms=offset % slide, lateness_ms=lateness
        ),
        st.integers(1, 20),
        st.integers(1, 25),
        st.integers(0, 24),
        LATENESS,
    ),
    st.builds(
        lambda steps, step, offset, lateness: window_spec(
            WindowKind.CUMULATE,
            steps * step,
            slide_ms=step,
            offset_ms=offset % (steps * step),
            lateness_ms=lateness,
        ),
        st.integers(1, 6),
        st.integers(1, 5),
        st.integers(0, 24),
        LATENESS,
    ),
)


def play(spec, steps, *, per_batch, start_ms=START, on_fired=lambda each: None):
    """The steps in both; with emission per batch each watermark ends a batch."""
    kernels, operator = KernelWindows(spec, on_fired=on_fired), OperatorWindows(spec)
    for number, (step, *arguments) in enumerate(steps):
        if step == "row":
            key, delta = arguments
            time = max(operator.watermark_ms, start_ms) + delta
            arguments = (number, str(number)) if spec.lists_rows else (number,)
            kernels.row((key,), arguments, time)
            operator.row(key, number, time)
        elif step == "watermark":
            watermark_ms = max(operator.watermark_ms, start_ms) + arguments[0]
            kernels.watermark(watermark_ms)
            operator.watermark(watermark_ms)
            if per_batch:
                kernels.end_batch()
        elif step == "batch":
            kernels.end_batch(*arguments)
        else:
            kernels.compact()
    kernels.watermark(ENDLESS)
    operator.watermark(ENDLESS)
    kernels.end_batch()
    return kernels, operator


@settings(max_examples=examples(40))
@given(
    spec=FIXED,
    steps=st.one_of(steps(["a", "b", None], 25, 30), steps(["a", None], 8, 3)),  # mostly late
    per_batch=st.booleans(),
    buckets=st.integers(1, 3),
    start_ms=STARTS,
    aggregates=st.sampled_from([COUNTED, COUNTED[:2]]),
)
def test_fixed_windows_give_what_the_operator_gives(
    spec, steps, per_batch, buckets, start_ms, aggregates
):
    spec = replace(spec, buckets=buckets, aggregates=aggregates)
    kernels, operator = play(spec, steps, per_batch=per_batch, start_ms=start_ms)
    assert by_key(kernels.changes()) == by_key(operator.changed)
    assert kernels.late == operator.late
    assert not any(kernels.state.values())


@pytest.mark.parametrize("buckets", [1, 2])
def test_a_sliding_window_lists_its_rows_in_the_order_of_arrival(buckets):
    """They are of two slices of the window, and come in turns."""
    spec = window_spec(WindowKind.HOP, 2, slide_ms=1, buckets=buckets)
    kernels, operator = play(spec, [("row", "a", at) for at in (0, 1, 0, 1, 0)], per_batch=False)
    lists = [change[-2] for change in kernels.changes()]
    assert lists == ["0,2,4", "0,1,2,3,4", "1,3"]
    assert by_key(kernels.changes()) == by_key(operator.changed)


SESSIONS = st.builds(
    lambda gap, lateness: window_spec(WindowKind.SESSION, gap, lateness_ms=lateness),
    st.integers(1, 6),
    st.sampled_from([0, 2, 4, 8, 2**63 - 1]),
)


@settings(max_examples=examples(60))
@given(
    spec=SESSIONS,
    steps=st.one_of(steps(["a", "a", None], 10, 12), steps(["a"], 8, 2)),
    per_batch=st.booleans(),
    buckets=st.integers(1, 2),
    start_ms=STARTS,
)
def test_sessions_give_what_the_operator_gives(spec, steps, per_batch, buckets, start_ms):
    spec = replace(spec, buckets=buckets)
    kernels, operator = play(spec, steps, per_batch=per_batch, start_ms=start_ms)
    assert by_key(map(unlisted, kernels.changes())) == by_key(map(unlisted, operator.changed))
    assert sorted(kernels.late) == operator.late  # each bucket tells its own
    assert not any(kernels.state.values())


def unlisted(change):
    *head, listed, watermark_ms = change
    return (*head, sorted(listed.split(",")), watermark_ms)


CUTS = pytest.mark.parametrize("per_batch", [False, True], ids=["on_event", "on_periodic"])
SESSIONS_OF_TEN = {
    "spans_that_touch_are_one": ([0, 10], [], [("+I", 0, 20, 2)]),
    "spans_with_a_gap_are_two": ([0, 11], [], [("+I", 0, 10, 1), ("+I", 11, 21, 1)]),
    "a_row_between_two_merges_them": ([0, 20, 10], [], [("+I", 0, 30, 3)]),
    "a_late_row_inside_fires_again": (
        [0, 4], [(15, 2)], [("+I", 0, 14, 2), ("-U", 0, 14, 2), ("+U", 0, 14, 3)],
    ),
    "a_fired_session_that_grows_is_taken_back": (
        [0], [(15, 5)], [("+I", 0, 10, 1), ("-D", 0, 10, 1), ("+I", 0, 15, 2)],
    ),
    "a_session_fires_before_a_row_that_comes_at_its_end": (
        [0], [(9, 10)], [("+I", 0, 10, 1), ("-D", 0, 10, 1), ("+I", 0, 20, 2)],
    ),
    "one_that_grows_beyond_the_watermark_waits_again": (
        [0], [(15, 10)], [("+I", 0, 10, 1), ("-D", 0, 10, 1), ("+I", 0, 20, 2)],
    ),
    "a_late_row_that_bridges_two_takes_both_back": (
        [0, 14],
        [(25, 8)],
        [
            ("+I", 0, 10, 1), ("+I", 14, 24, 1),
            ("-D", 0, 10, 1), ("-D", 14, 24, 1), ("+I", 0, 24, 3),
        ],
    ),
    "a_row_too_late_for_itself_is_taken_by_an_open_session": (
        [4, 14], [(24, -6)], [("+I", 4, 24, 2), ("-D", 4, 24, 2), ("+I", -6, 24, 3)],
    ),
    "a_row_too_late_for_its_session_is_late": ([0], [(29, 0)], [("+I", 0, 10, 1)]),
}  # fmt: skip


@CUTS
@pytest.mark.parametrize(
    ("rows", "then", "expected"), SESSIONS_OF_TEN.values(), ids=SESSIONS_OF_TEN
)
def test_sessions_grow_merge_and_are_taken_back(rows, then, expected, per_batch):
    windows = KernelWindows(window_spec(WindowKind.SESSION, 10, lateness_ms=20))
    for number, time in enumerate(rows):
        windows.row(("a",), (1, str(number)), time)
    for watermark_ms, time in then:
        windows.watermark(watermark_ms)
        if per_batch:
            windows.end_batch()
        windows.row(("a",), (1, "late"), time)
    windows.watermark(ENDLESS)
    windows.end_batch()
    assert [change[:1] + change[2:5] for change in windows.changes()] == expected
    assert windows.late == [1] * (then == [(29, 0)])


def test_a_part_of_a_batch_may_come_in_any_order():
    spec = window_spec(WindowKind.TUMBLE, 1_000)
    early = [(("a",), (1, "x"), 5, -1, 0, 7), (("a",), (1, "y"), 5, -1, 0, 8)]
    later = [(("a",), (1, "z"), 5, -1, 1, 2)]
    parts = [partials(spec, input_rows(spec, rows)).table for rows in (later, early)]
    (row,) = fire(spec, [], parts, WatermarkAdvance.of(-1, ENDLESS)).rows.to_pylist()
    assert row["a2"] == "x,y,z"


# The numeric examples of the sources
# --------------------------------------------------------------------------------------------------

MINUTE = 60_000


def tumbling(size_ms, lateness_ms=0):
    spec = window_spec(WindowKind.TUMBLE, size_ms, lateness_ms=lateness_ms, retracts=False)
    return KernelWindows(spec)


@CUTS
@pytest.mark.parametrize("lateness_ms", [0, 10])
def test_seed_000_tumbling_windows_with_lateness(lateness_ms, per_batch):
    vector = VECTORS[f"seed000/tumbling-100ms-lateness-{lateness_ms}"]
    windows = tumbling(vector["window"]["size_ms"], lateness_ms)
    for element in elements(vector):
        if isinstance(element, Watermark):
            windows.watermark(element.timestamp_ms)
            if per_batch:
                windows.end_batch()
        else:
            key, value = element.value
            windows.row((key,), (value, str(value)), element.timestamp_ms)
    windows.watermark(ENDLESS)
    windows.end_batch()
    assert [
        (key, total, end - 1, seen) for _, key, _, end, _, total, _, seen in windows.changes()
    ] == [
        (each["key"], each["sum"], millis(each["timestamp"]), millis(each["logged_watermark"]))
        for each in vector["expected"]
    ]
    dropped = [at for at, each in enumerate(vector["verdicts"]) if each["verdict"] == "dropped"]
    assert windows.late == dropped


SEED_002 = {
    "no_delay": ("seed002/moo-0", 0, 0, ["8:01", "8:03", "8:06"], [2]),
    "delay": ("seed002/moo-2m", 2, 0, ["8:01", "8:06", "8:03", "8:08"], [2]),
    "lateness": ("seed002/allowed-lateness-2m", 0, 2, ["8:01", "8:06", "8:02", "8:08"], [1, 2]),
}


@CUTS
@pytest.mark.parametrize("case", SEED_002.values(), ids=SEED_002)
def test_seed_002_delay_and_lateness(case, per_batch):
    name, delay, lateness, times, counts = case
    windows = tumbling(5 * MINUTE, lateness * MINUTE)
    for number, time in enumerate([*times, "8:03"]):
        windows.row(("Paris",), (1, str(number)), clock(time))
        windows.watermark(max(map(clock, times[: number + 1])) - delay * MINUTE)
        if per_batch:
            windows.end_batch()
    windows.end_batch()
    fired = [change for change in windows.changes() if change[3] == clock("8:05")]
    assert [count for _, _, _, _, count, *_ in fired] == counts
    facts = [each["emits"]["elements"] for each in VECTORS[name]["facts"] if each.get("emits")]
    assert facts == counts
    assert windows.late == [len(times)]


@CUTS
@pytest.mark.parametrize("lateness_ms", [1_892, 10_918])
def test_seed_003_the_log_with_side_output(lateness_ms, per_batch):
    vector = VECTORS["seed003/tumbling-1m-lateness-and-side-output"]
    events = [each["event"] for each in vector["timeline"] if "event" in each]
    windows = tumbling(MINUTE, lateness_ms)
    newest_ms = 0
    for event in events:
        windows.row((event["word"],), (1, str(event["id"])), event["event_time"])
        newest_ms = max(newest_ms, event["event_time"])
        windows.watermark(newest_ms - 5_001)
        if per_batch:
            windows.end_batch()
    windows.watermark(ENDLESS)
    windows.end_batch()
    fires = [each["fires"] for each in vector["timeline"] if "fires" in each]
    assert [(key, count, listed) for _, key, _, _, count, _, listed, _ in windows.changes()] == [
        (each["word"], each["count"], ",".join(map(str, each["ids"]))) for each in fires
    ]
    sides = [each["side_output"][0] for each in vector["timeline"] if "side_output" in each]
    assert [events[at]["id"] for at in windows.late] == sides


# Cumulative windows
# --------------------------------------------------------------------------------------------------

DAY = 86_400_000


@pytest.mark.parametrize("per_batch", [True, False])
def test_a_cumulative_window_of_many_steps_has_a_row_of_state_for_each_key(per_batch):
    """1,440 windows of a day; each is emitted, and a row is kept for the next one alone."""
    spec = window_spec(WindowKind.CUMULATE, DAY, slide_ms=MINUTE, aggregates=COUNTED[:2])
    windows = KernelWindows(spec)
    for at, key in enumerate("abab"):
        windows.row((key,), (1,), at * MINUTE)
    windows.watermark(6 * MINUTE - 1)
    windows.end_batch()
    assert [table.num_rows for table in windows.state[0]] == [2]
    assert [(*change[1:5], change[5]) for change in windows.changes()[-2:]] == [
        ("a", 0, 6 * MINUTE, 2, 2),
        ("b", 0, 6 * MINUTE, 2, 2),
    ]
    for hour in range(1, 25):
        windows.watermark(hour * 3_600_000)
        if per_batch:
            windows.end_batch()
            assert sum(table.num_rows for table in windows.state[0]) <= 2
    windows.end_batch()
    assert windows.state[0] == []
    ends = [change[3] for change in windows.changes() if change[1] == "a"]
    assert ends == list(range(MINUTE, DAY + 1, MINUTE))
    assert {change[5] for change in windows.changes()[8:]} == {2}


# State
# --------------------------------------------------------------------------------------------------


def test_a_batch_in_which_nothing_fires_and_nothing_is_late_reads_no_state():
    windows = tumbling(MINUTE, lateness_ms=MINUTE)
    for batch in range(5):
        windows.row(("a",), (1, "x"), batch * 1_000)
        windows.watermark(batch * 1_000)
        windows.end_batch()
    assert windows.read_tables == 0
    assert windows.fired == []
    windows.watermark(MINUTE)
    windows.end_batch()
    assert windows.read_tables == 5
    assert [row["a0"] for _, row, _ in windows.fired] == [5]


def test_state_is_kept_through_the_lateness_and_then_forgotten():
    windows = tumbling(MINUTE, lateness_ms=MINUTE)
    windows.row(("a",), (1, "x"), 0)
    for watermark_ms, tables in ((MINUTE, 1), (2 * MINUTE - 2, 1), (2 * MINUTE - 1, 0)):
        windows.watermark(watermark_ms)
        windows.end_batch()
        assert len(windows.state[0]) == tables


@pytest.mark.parametrize("kind", WindowKind)
def test_nothing_is_kept_of_a_window_once_its_lateness_is_over(kind):
    spec = window_spec(kind, 1_000, lateness_ms=500)
    rows = [(("a",), (1, "x"), 0, -1, 0, 0)]
    for watermark_ms, kept in ((1_498, 1), (1_499, 0)):
        parts = [partials(spec, input_rows(spec, rows)).table]
        assert fire(spec, [], parts, WatermarkAdvance.of(-1, watermark_ms)).state.num_rows == kept


def test_windows_by_the_clock_fire_when_it_has_passed_their_end():
    windows = tumbling(MINUTE)
    fired = []
    for clock_ms in (10_000, 59_999, 60_000, 61_000, 200_000):
        windows.watermark(clock_ms - 1)
        windows.row(("a",), (1, "x"), clock_ms)
        windows.end_batch()
        fired.append([row["a0"] for _, row, _ in windows.fired])
        windows.fired.clear()
    assert fired == [[], [], [2], [], [2]]
