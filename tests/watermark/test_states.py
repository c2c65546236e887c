"""State machines as tables: every edge that a table lacks is an error, whatever came before."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.source.chunk_reader import SOURCE_STEPS, SourcePhase, SourceStep
from tests.support.laws import examples
from watermark.errors import InvalidTransitionError
from watermark.foreign import ForeignSnapshot, SnapshotRules, Waiting
from watermark.foreign_journal import (
    COPY_STEPS,
    FEED_STEPS,
    Complete,
    CopyEvent,
    CopyState,
    FeedPhase,
    FeedStep,
    SnapshotJournal,
)
from watermark.foreign_records import Mark, Notice, NoticeKind, RecordRun
from watermark.gate import TRANSITIONS, Phase, PhaseEvent
from watermark.model import Evidence, Quiet
from watermark.transitions import next_state

TABLES = {
    "phase": (TRANSITIONS, Phase, PhaseEvent),
    "journal": (FEED_STEPS, FeedPhase, FeedStep),
    "copy": (COPY_STEPS, CopyState, CopyEvent),
    "source": (SOURCE_STEPS, SourcePhase, SourceStep),
}
WHOLE = Complete(Evidence.LAST_SNAPSHOT_ROW, Quiet.SETTLE_TIME, "all")
OF_STATE = {
    CopyState.READING: SnapshotJournal(generation=1),
    CopyState.PROVEN: SnapshotJournal(CopyState.PROVEN, 1, proven_at_ms=5),
    CopyState.BOUNDED: SnapshotJournal(CopyState.BOUNDED, 1, proven_at_ms=5, ends={0: 7}),
    CopyState.COMPLETE: SnapshotJournal(
        CopyState.COMPLETE, 1, proven_at_ms=5, ends={0: 7}, complete=WHOLE
    ),
}
GIVEN = {
    CopyEvent.EVIDENCE: {"at_ms": 9},
    CopyEvent.ENDS: {"ends": {0: 8}},
    CopyEvent.APPLIED: {"complete": WHOLE},
}


@pytest.mark.parametrize("machine", TABLES)
def test_edges_that_a_table_lacks_are_errors(machine):
    table, states, events = TABLES[machine]
    for state, event in product(states, events):
        if (state, event) in table:
            assert next_state(machine, table, state, event) is table[state, event]
        else:
            with pytest.raises(InvalidTransitionError, match=f'{machine}: state "{state}"'):
                next_state(machine, table, state, event)


@pytest.mark.parametrize(("state", "event"), product(CopyState, CopyEvent))
def test_a_journal_has_what_its_state_has(state, event):
    before = OF_STATE[state]
    if (state, event) not in COPY_STEPS:
        with pytest.raises(InvalidTransitionError):
            before.after(event, **GIVEN.get(event, {}))
        return
    after = before.after(event, **GIVEN.get(event, {}))
    assert after.state is COPY_STEPS[state, event]
    assert (after.proven_at_ms is None) == (after.state is CopyState.READING)
    assert (after.ends is None) == (after.state in (CopyState.READING, CopyState.PROVEN))
    assert (after.complete is None) == (after.state is not CopyState.COMPLETE)
    assert before.proven_at_ms in (None, after.proven_at_ms) or after.proven_at_ms is None
    assert SnapshotJournal.of_json(after.as_json()) == after


TIMES = st.integers(0, 40)
RUNS = st.builds(
    lambda mark, partitions, first, length, source, position, place: RecordRun(
        mark, frozenset(partitions), first, first + length, source, source, position, 0, place
    ),
    st.sampled_from([*Mark]),
    st.sets(st.integers(0, 1), min_size=1),
    TIMES,
    st.integers(0, 3),
    TIMES,
    st.sampled_from([0, 7, 8]),
    st.tuples(st.integers(0, 1), st.integers(0, 9)),
)
NOTICES = st.builds(Notice, st.sampled_from([*NoticeKind]), TIMES, st.sampled_from([None, 0, 2]))
INPUTS = st.one_of(
    st.tuples(st.just("take"), RUNS),
    st.tuples(st.just("notify"), st.lists(NOTICES, max_size=2)),
    st.tuples(st.just("take_unmarked"), TIMES),
    st.tuples(st.just("take_row_count"), st.integers(0, 2)),
    st.tuples(st.just("take_commit"), TIMES),
    st.tuples(st.just("override"), st.just("it is all there")),
    st.tuples(st.just("ask"), st.dictionaries(st.integers(0, 1), st.integers(0, 9))),
)
RULES = st.builds(
    SnapshotRules,
    settle_ms=st.sampled_from([0, 5]),
    is_compacted=st.booleans(),
    opens_when_skipped=st.booleans(),
    replaces=st.booleans(),
    counts=st.booleans(),
)


def given_to(snapshot, name, value, now_ms):
    """Hand one input over as the session does; the answer to a question."""
    if name != "ask":
        new = getattr(snapshot, name)(value)
        if new is not None:
            snapshot.begin_generation(new)
        return None
    answer = snapshot.ask(now_ms, value)
    if isinstance(answer, Waiting) and answer.missing == "ends":
        snapshot.take_ends({0: 3, 1: 4})
        answer = snapshot.ask(now_ms, value)
    return answer


@settings(max_examples=examples(20_000))
@given(RULES, st.lists(INPUTS, max_size=25), st.sets(st.integers(0, 24)))
def test_a_restart_at_any_step_of_any_history_changes_no_answer(rules, history, restarts):
    first = SnapshotJournal.first(1, {0: 0, 1: 2})
    snapshot, restarted = (ForeignSnapshot([0, 1], rules, first) for _ in range(2))
    for now_ms, (name, value) in enumerate(history):
        before = snapshot.journal
        answer = given_to(snapshot, name, value, now_ms)
        assert given_to(restarted, name, value, now_ms) == answer
        after = snapshot.journal
        assert restarted.journal == after
        is_complete = after.state is CopyState.COMPLETE
        assert is_complete == isinstance(answer, Complete) or name != "ask"
        assert after.generation - before.generation in (0, 1)
        if before.state is CopyState.COMPLETE and after.generation == before.generation:
            assert after.complete == before.complete
        if now_ms in restarts:
            kept = SnapshotJournal.of_json(after.as_json())
            restarted = ForeignSnapshot([0, 1], rules, kept)
