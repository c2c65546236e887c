"""T never goes back, never beyond a committed P; quiet tables advance like busy ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watermark.freshness import (
    Arrivals,
    Freshness,
    GateState,
    LookUp,
    PassedOnTimes,
    Proof,
    ProofKind,
    gate_state,
    joinable_until,
    last_effective,
    until,
)
from watermark.model import MAX_TIMESTAMP, PROCESSING_TIME, START_OF_TIME, Watermark

CHANNELS = (0, 1, 2)
JOINABLE = {
    "without_bounds_every_record_passes": ({}, {"a": None}, MAX_TIMESTAMP),
    "a_record_may_be_newer_by_the_bound": ({"a": 5_000}, {"a": 10_000}, 15_000),
    "the_table_that_is_furthest_behind_decides": (
        {"a": 5_000, "b": 1_000},
        {"a": 10_000, "b": 12_000},
        13_000,
    ),
    "a_table_without_a_bound_does_not_count": ({"a": 5_000}, {"a": 10_000, "b": None}, 15_000),
    "a_table_without_time_lets_nothing_pass": ({"a": 5_000, "b": 1}, {"a": 10_000, "b": None}, -1),
    "a_table_that_is_not_known_lets_nothing_pass": ({"a": 5_000}, {}, -1),
    "a_bound_of_zero_lets_records_up_to_its_time_pass": ({"a": 0}, {"a": 10_000}, 10_000),
}


@pytest.mark.parametrize("case", JOINABLE)
def test_joinable(case):
    bounds_ms, times_ms, expected = JOINABLE[case]

    assert joinable_until(bounds_ms, times_ms) == expected


def fed(*proofs):
    table = Freshness()
    for time_ms, *ends in proofs:
        table.add(Proof(time_ms, {"at": time_ms}, dict(enumerate(ends))))
    return table


AT = {
    "nothing_is_proven_without_a_pair": ([], (9, 9), None),
    "a_pair_counts_once_every_channel_has_its_end": ([(10, 5, 3)], (5, 3), 10),
    "one_channel_behind_its_end_keeps_it_back": ([(10, 5, 3)], (5, 2), None),
    "the_newest_pair_that_is_committed_counts": ([(10, 5, 3), (20, 7, 3), (30, 9, 9)], (8, 4), 20),
    "a_quiet_table_advances_without_a_commit": ([(10, 5, 3), (20, 5, 3), (30, 5, 3)], (5, 3), 30),
    "a_table_without_records_advances": ([(10, 0, 0), (20, 0, 0)], (0, 0), 20),
    "a_time_that_goes_back_is_ignored": ([(20, 5, 3), (10, 5, 3)], (5, 3), 20),
    "an_end_that_goes_back_is_not_believed": ([(10, 5, 3), (20, 4, 4)], (4, 4), None),
    "one_time_with_two_ends_keeps_the_lower_end": ([(10, 5, 3), (10, 6, 3)], (5, 3), 10),
}


@pytest.mark.parametrize("case", AT)
def test_committed_pairs(case):
    proofs, committed, expected = AT[case]

    found = fed(*proofs).at(dict(enumerate(committed)))

    assert (None if found is None else found.time_ms) == expected


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "ask", "ask", "commit", "forget"]),
        st.integers(0, 3),
        st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), CHANNELS]),
        st.integers(-2, 3),
    ),
    max_size=40,
)
"""A source's log, what a table commits of it, and questions: kind, passed time, channels, slip."""


@given(STEPS)
def test_laws_of_time(steps):
    table, now_ms = Freshness(), 0
    written = dict.fromkeys(CHANNELS, 0)
    committed = dict.fromkeys(CHANNELS, 0)
    written_at = {channel: [] for channel in CHANNELS}  # by offset
    last_ms = None
    for kind, passes_ms, channels, slip in steps:
        now_ms += passes_ms
        if kind == "write":
            for channel in channels:
                written[channel] += 1
                written_at[channel].append(now_ms)
            now_ms += 1  # a write is over before the next question
        elif kind == "ask":  # an answer with a clock that slips backwards must do no harm
            table.add(Proof(now_ms + min(0, slip), {}, dict(written)))
        elif kind == "commit":
            committed |= {channel: written[channel] for channel in channels}
        else:
            table.forget_before(dict(committed))
        found = table.at(dict(committed))
        time_ms = None if found is None else found.time_ms
        if last_ms is not None:
            assert time_ms is not None
            assert time_ms >= last_ms, "T went back"
        if time_ms is not None:
            for channel in CHANNELS:
                missing = written_at[channel][committed[channel] :]
                assert all(at_ms >= time_ms for at_ms in missing), "T is beyond a committed P"
            channel_times = [table.channel(c, committed[c]) for c in CHANNELS]
            assert min(each.timestamp_ms for each in channel_times) >= time_ms
            assert all(each.use_processing_time for each in channel_times)
        last_ms = time_ms


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_quiet_and_busy_tables_have_the_same_time(passes):
    quiet, busy, now_ms = Freshness(), Freshness(), 0
    for count, passes_ms in enumerate(passes, 1):
        now_ms += passes_ms
        quiet.add(Proof(now_ms, {}, {0: 4}))
        busy.add(Proof(now_ms, {}, {0: count}))
        times = [table.at({0: max(4, count)}).time_ms for table in (quiet, busy)]
        assert times == [now_ms, now_ms]


def test_channels_carry_their_time():
    table = fed((10, 5, 3), (20, 7, 3))

    assert table.channel(0, 6) == Watermark(10, use_processing_time=True)
    assert table.channel(1, 3) == Watermark(20, use_processing_time=True)
    assert table.channel(0, 4) is None


PROVEN = {
    "the_least_of_all_channels": (PROCESSING_TIME, (7, 5, 9), Watermark(5, True)),
    "one_channel": (PROCESSING_TIME, (7,), Watermark(7, True)),
    "a_channel_without_a_proof": (PROCESSING_TIME, (7, None), PROCESSING_TIME),
    "no_channel": (PROCESSING_TIME, (), PROCESSING_TIME),
    "a_table_that_is_copied": (START_OF_TIME, (7,), START_OF_TIME),
    "event_time": (Watermark(3), (7,), Watermark(3)),
}


@pytest.mark.parametrize(("promise", "times", "shown"), PROVEN.values(), ids=PROVEN)
def test_a_promise_in_processing_time_carries_the_last_effective_time(promise, times, shown):
    proven = [None if each is None else Watermark(each, True) for each in times]

    assert last_effective(promise, proven) == shown


def test_many_pairs_that_nothing_commits_stay_few():
    table = fed(*((time_ms, time_ms) for time_ms in range(1, 20_001)))

    assert len(table) <= 4_096
    assert table.at({0: 20_000}).time_ms == 20_000
    assert table.at({0: 15_000}).time_ms > 14_000


def test_a_pair_that_was_used_stays_true_when_pairs_are_thinned_out():
    table = fed((2, 2), (3, 3))
    assert table.at({0: 3}).time_ms == 3

    for time_ms in range(4, 20_001):
        table.add(Proof(time_ms, {}, {0: time_ms}))

    assert table.at({0: 3}).time_ms == 3


@given(STEPS, st.integers(2, 6))
def test_laws_of_channels_that_keep_few_pairs(steps, most):
    """As of a table: T of a channel neither goes back nor is beyond what it has committed."""
    table, now_ms, written, committed = Freshness(most), 0, 0, 0
    written_at, last_ms = [], -1
    for kind, passes_ms, _, _ in steps:
        now_ms += passes_ms
        if kind == "write":
            written, now_ms = written + 1, now_ms + 1
            written_at.append(now_ms - 1)
        elif kind == "ask":
            table.add(Proof(now_ms, {}, {0: written}))
        elif kind == "commit":
            committed = written
        else:
            committed = max(committed, written - 1)
        shown = table.channel(0, committed)
        time_ms = -1 if shown is None else shown.timestamp_ms
        assert time_ms >= last_ms, "T went back"
        assert all(at_ms >= time_ms for at_ms in written_at[committed:]), "T is beyond a commit"
        assert len(table) <= most
        last_ms = time_ms


def test_the_time_of_a_channel_stays_when_its_pair_is_thinned_out():
    table = fed((2, 2), (3, 3))
    assert table.channel(0, 3) == Watermark(3, True)

    for time_ms in range(4, 20_001):
        table.add(Proof(time_ms, {}, {0: time_ms}))

    assert table.channel(0, 3) == Watermark(3, True)
    assert table.channel(0, 1) is None, "what it has not committed is not proven by it"


def test_a_channel_proves_nothing_of_what_was_lost():
    table = fed((10, 5), (20, 9))
    assert table.channel(0, 9) == Watermark(20, True)

    table.void_after({0: 7})

    assert table.channel(0, 1_000) == Watermark(10, True)


def test_news_are_each_told_once_and_their_time_grows():
    table = Freshness()
    assert table.news({0: 9}) is None
    for time_ms, end in ((10, 1), (20, 2), (30, 3)):
        table.add(Proof(time_ms, {}, {0: end}))
    assert table.news({0: 0}) is None
    assert table.news({0: 2}).time_ms == 20
    assert table.news({0: 2}) is None
    assert len(table) == 2, "what came before is forgotten"
    table.add(Proof(40, {}, {0: 3}))
    assert table.news({0: 5}).time_ms == 40
    assert table.news({0: 5}) is None


def test_what_was_lost_before_its_commit_is_never_proven():
    table = fed((10, 5), (20, 9))

    table.void_after({0: 7})

    assert table.at({0: 1_000}).time_ms == 10


PASSED_ON = {
    "nothing_heard_is_no_time": ([], 100, None),
    "a_time_counts_once_it_has_settled": ([(10, 50)], 50, 10),
    "before_it_does_not": ([(10, 50)], 49, None),
    "the_newest_settled_one_counts": ([(10, 50), (20, 60), (30, 70)], 65, 20),
    "a_time_ahead_of_the_clock_counts_as_when_it_was_heard": ([(900, 50)], 100, 50),
    "what_a_clock_was_ahead_is_taken_off_later_times_too": ([(900, 50), (910, 60)], 100, 50),
    "a_time_that_goes_back_is_ignored": ([(20, 50), (10, 60)], 100, 20),
    "an_older_time_that_settles_first_counts_until_then": ([(20, 200), (10, 50)], 100, 10),
}


@pytest.mark.parametrize("case", PASSED_ON)
def test_times_that_a_connector_passes_on(case):
    heard, now_ms, expected = PASSED_ON[case]
    times = PassedOnTimes()
    for each in heard:
        times.hear(*each, now_ms=50)

    assert times.at(now_ms) == expected


def test_a_time_that_has_settled_stays():
    times = PassedOnTimes()
    times.hear(10, 50, 50)
    assert times.at(50) == 10

    times.hear(20, 500, 50)

    assert (times.at(100), times.at(500)) == (10, 20)


@given(
    st.integers(-50, 50),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20),
)
def test_a_time_is_never_beyond_what_was_heard_whatever_the_connectors_clock(ahead_ms, steps):
    """Each change is heard some time after it was made; the connector then falls silent."""
    times, now_ms, heard_ms = PassedOnTimes(most=4), 100, 0
    for passes_ms, late_ms in steps:
        now_ms += passes_ms
        heard_ms = now_ms
        times.hear(now_ms - late_ms + ahead_ms, now_ms, now_ms)
    silent = [times.at(now_ms + after_ms) for after_ms in (0, 1, 1_000_000)]

    assert all(time_ms <= heard_ms for time_ms in silent)
    assert len(set(silent)) == 1, "T advances by evidence only"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=40),
    st.integers(0, 60),
    st.integers(2, 6),
)
def test_no_record_that_came_after_a_time_is_before_its_ends(steps, limit_ms, most):
    stream, now_ms, came_at = Arrivals(most), 0, []
    for passes_ms, records in steps:
        now_ms += passes_ms
        stream.add(
            LookUp(now_ms, {0: len(came_at)})
        )  # a look-up takes a while: records come meanwhile
        came_at += [now_ms + 1] * records
        now_ms += 1
        assert len(stream) <= most
    before = stream.before(limit_ms)
    if before is None:
        assert not steps
        return
    assert all(at_ms <= limit_ms for at_ms in came_at[: before[0]])
    stream.forget_before(limit_ms)
    assert stream.before(limit_ms) == before, "what is forgotten is not needed"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=40),
    st.integers(0, 60),
    st.integers(2, 6),
)
def test_runners_that_follow_one_another_let_no_record_pass_that_came_later(steps, limit_ms, most):
    stream, now_ms, came_at = Arrivals(most), 0, []
    stream.add(LookUp(0, {0: 0}))
    for passes_ms, records, is_restarted in steps:
        now_ms += passes_ms
        if is_restarted:  # it has a pin, whose limit was this or an earlier one
            stream.forget_before(min(limit_ms, now_ms))
            pinned, stream = stream.oldest, Arrivals(most)
            stream.add(pinned)
        else:
            stream.add(LookUp(now_ms, {0: len(came_at)}))
        came_at += [now_ms + 1] * records
        now_ms += 1
    before = stream.before(limit_ms)
    assert all(at_ms <= limit_ms for at_ms in came_at[: before[0]])


def test_a_proof_survives_json():
    proof = Proof(1, {"pos": 2}, {0: 3, 1: 4}, ProofKind.CONNECTOR, 5, 6, 7)

    assert Proof.from_json(proof.as_json()) == proof


GATE = {
    "tables_as_new_as_the_clock_let_all_records_pass": ((100, 100, 0), GateState.OPEN),
    "tables_that_are_behind_hold": ((99, 100, 0), GateState.HOLDING),
    "an_operator_releases_for_a_time": ((99, 100, 101), GateState.RELEASED),
    "a_release_ends": ((99, 100, 100), GateState.HOLDING),
    "a_release_changes_nothing_for_tables_that_are_near": ((100, 100, 900), GateState.OPEN),
}


@pytest.mark.parametrize("case", GATE)
def test_gate(case):
    numbers, expected = GATE[case]

    assert gate_state(*numbers) is expected


def test_a_limit_of_one_table():
    assert [until(5_000, 10_000), until(5_000, None)] == [15_000, -1]
