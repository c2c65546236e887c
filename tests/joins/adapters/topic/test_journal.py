"""The journal of a topic's feed: its steps, and what a kill between any two of them leaves."""

import random
from dataclasses import replace
from itertools import product

import pytest

from joins.adapters.topic.feed_state import FeedJournal, abandon, read_journal, write_journal
from joins.durable.failpoints import FailpointError
from tests.support.foreign_topics import Connector, envelope, heard, row, topic_feed
from watermark.errors import InvalidTransitionError
from watermark.foreign_journal import (
    FEED_STEPS,
    Complete,
    CopyState,
    FeedPhase,
    FeedPosition,
    FeedStep,
    SnapshotJournal,
)
from watermark.model import Evidence, Quiet

WHOLE = Complete(Evidence.LAST_SNAPSHOT_ROW, Quiet.SETTLE_TIME, "all")


def snapshot_of(generation, complete=None):
    state = CopyState.READING if complete is None else CopyState.COMPLETE
    return SnapshotJournal(state, generation, complete=complete)


def changes_of(step, generation):
    begins = step in (FeedStep.BEGIN, FeedStep.SUPERSEDE)
    complete = WHOLE if step is FeedStep.PROVE else None
    return snapshot_of(generation + begins, complete)


@pytest.mark.parametrize("seed", range(200))
def test_a_journal_takes_the_steps_of_its_table_and_no_others(seed, tmp_path):
    rng, journal = random.Random(seed), FeedJournal()
    for _ in range(30):
        step, phase = rng.choice(list(FeedStep)), journal.position.phase
        offsets = {p: rng.randrange(9) for p in range(2)}
        snapshot = changes_of(step, journal.generation)
        if step is FeedStep.ADVANCE and journal.is_whole:
            snapshot = snapshot_of(journal.generation, WHOLE)
        goes_back = any(o < journal.position.offsets.get(p, 0) for p, o in offsets.items())
        begins = step in (FeedStep.BEGIN, FeedStep.SUPERSEDE)
        is_legal = (phase, step) in FEED_STEPS and (begins or not goes_back)
        given = {"offsets": offsets, "snapshot": snapshot}
        if step is FeedStep.ABANDON:
            is_legal, given = (phase, step) in FEED_STEPS, {"needed": "it is gone"}
        if step is FeedStep.BEGIN:
            given["topic_id"] = f"id-{rng.randrange(3)}"
        if not is_legal:
            with pytest.raises(InvalidTransitionError):
                journal.after(step, **given)
            continue
        after = journal.after(step, **given)
        assert after.position.phase is FEED_STEPS[phase, step]
        assert after.generation == journal.generation + begins
        journal = after
    write_journal(tmp_path / "journal.json", journal)
    if journal.position.phase is not FeedPhase.NEW:
        assert read_journal(tmp_path / "journal.json") == journal


def test_no_step_but_the_first_leads_to_another_topic_or_generation():
    begun = FeedPosition().after(FeedStep.BEGIN, topic_id="a", generation=1, offsets={0: 5})
    for step, change in product(
        (FeedStep.ADVANCE, FeedStep.PROVE, FeedStep.ABANDON), ({"topic_id": "b"}, {"generation": 2})
    ):
        with pytest.raises(InvalidTransitionError):
            begun.after(step, **change)
    with pytest.raises(InvalidTransitionError):
        begun.after(FeedStep.SUPERSEDE, topic_id="b", generation=2)
    with pytest.raises(InvalidTransitionError):
        begun.after(FeedStep.SUPERSEDE, offsets={0: 1})
    assert begun.after(FeedStep.SUPERSEDE, generation=2, offsets={0: 1}).offsets == {0: 1}


def test_only_the_first_step_skips_generations():
    begun = FeedPosition().after(FeedStep.BEGIN, topic_id="a", generation=3, offsets={0: 5})
    assert begun.generation == 3
    with pytest.raises(InvalidTransitionError):
        begun.after(FeedStep.SUPERSEDE, generation=5)
    abandoned = begun.after(FeedStep.ABANDON)
    for generation in (2, 3):
        with pytest.raises(InvalidTransitionError):
            abandoned.after(FeedStep.BEGIN, topic_id="a", generation=generation, offsets={0: 0})


def test_a_phase_and_the_snapshot_beside_it_agree():
    begun = FeedJournal().after(
        FeedStep.BEGIN, topic_id="a", offsets={0: 0}, snapshot=snapshot_of(1)
    )
    with pytest.raises(InvalidTransitionError, match="is complete"):
        begun.after(FeedStep.ADVANCE, snapshot=snapshot_of(1, WHOLE))
    with pytest.raises(InvalidTransitionError, match="is not complete"):
        begun.after(FeedStep.PROVE)


def test_what_was_never_read_is_not_abandoned(tmp_path):
    abandon(tmp_path / "journal.json", "it is gone")
    assert read_journal(tmp_path / "journal.json") == FeedJournal()


def run_over_kills(source):
    """All that there is to do now; after each planted kill another session goes on."""
    while True:
        try:
            return source.run()
        except FailpointError:
            continue


KILLS = [f"{point}=raise@{passage}" for passage, point in product(range(1, 7), ("F1", "F2"))]


def test_a_kill_between_any_two_steps_loses_no_row_of_a_snapshot_that_is_read_again(
    kafka, tmp_path
):
    """A row of the later snapshot is there before its first one: it was sent in the one before."""
    connector = Connector(kafka.bootstrap_servers, 2)
    connector.snapshot({1: "gone", 2: "old"}, is_whole=False)
    sources = []
    for number, kill in enumerate(KILLS):
        (tmp_path / str(number)).mkdir()
        made = topic_feed(connector, tmp_path / str(number))
        made.config = replace(made.config, failpoints=";".join((kill, KILLS[-1 - number])))
        sources.append(made)
    began = connector.tick(5_000)
    [run_over_kills(source) for source in sources]
    connector.at_ms = began + 20
    connector.send({"id": 3}, envelope("r", None, row(3, "three"), "true", began))
    assert [run_over_kills(source)["generation"] for source in sources] == [1] * len(KILLS)
    connector.at_ms = began
    first = envelope("r", None, row(2, "two"), "first_in_data_collection", began)
    connector.send({"id": 2}, first)
    [run_over_kills(source) for source in sources]
    connector.at_ms = began + 100
    last = envelope("r", None, row(4, "four"), "last_in_data_collection", began)
    connector.send({"id": 4}, last)
    expected = {2: "two", 3: "three", 4: "four"}
    for source in sources:
        state = run_over_kills(source)
        assert (state["generation"], state["complete"]) == (2, True), source.config.failpoints
        assert source.rows() == expected, source.config.failpoints
        assert source.copy().generation == 2
    connector.close()


def test_a_table_is_not_whole_before_what_is_read_again_is_applied(kafka, tmp_path):
    connector = Connector(kafka.bootstrap_servers, 2)
    connector.snapshot({1: "gone", 2: "old"}, is_whole=False)
    source = topic_feed(connector, tmp_path, heard(connector))
    began = connector.tick(5_000)
    with source.session() as session:
        source.run(session)
        connector.at_ms = began + 20
        connector.send({"id": 3}, envelope("r", None, row(3, "three"), "true", began))
        source.run(session)
        assert dict(session._journal.position.offsets) == {0: 1, 1: 2}
        connector.at_ms = began
        connector.send(
            {"id": 2}, envelope("r", None, row(2, "two"), "first_in_data_collection", began)
        )
        source.run(session)
        assert session._snapshot.generation == 2
        before = read_journal(source.config.state_file)
        session._done = {0: 1, 1: 1}  # as right behind the step back
        session._snapshot.override("all rows are there")
        session._snapshot.ask(0, session._done)
        session._snapshot.take_ends({0: 2, 1: 2})
        assert session._snapshot.ask(0, session._done).missing == "applied"
        assert before.generation == 2
    connector.close()
