"""The way of a record that waits for a row of a table: when it left, and what for."""

from dataclasses import replace

import pytest

from joins.lookback.event_replay import EventJourneys
from joins.plan.plan import JoinType
from tests.support.late_batches import WAIT_MS, WAITING_PLAN, LateJob

T = 1_000_000


@pytest.fixture(params=[JoinType.LEFT, JoinType.INNER])
def past(request, tmp_path):
    """User 1 is there, 2 comes after 300 ms, 3 never, 4 only after its record's bound."""
    join = replace(WAITING_PLAN.joins[0], join_type=request.param)
    job = LateJob(tmp_path, replace(WAITING_PLAN, joins=(join,)))
    job.change({1: "ann"})
    job.run({0: [{"user_id": n} for n in (1, 2, 3)]}, T)
    job.change({1: "ann", 2: "bob"})
    job.run({1: [{"user_id": 4}]}, T + 300)
    job.run({}, T + WAIT_MS)
    return job


def journey(past, partition, offset):
    history = past.history()
    arrived = history.covering(partition, offset)
    frames = next(frames for pin, frames, _ in past.done if pin.batch == arrived.batch)
    (record,) = (f for f in frames if f.column("partition")[0].as_py() == partition)
    record = record.slice(offset - arrived.start_offsets[partition], 1)
    return EventJourneys(history, past.event).of(record, (partition, offset), arrived)


@pytest.fixture
def corrected(tmp_path):
    """All go out with NULL; user 1 comes then, 2 is never there, 3 comes too late."""
    tables = (replace(each, late_correct_ms=2 * WAIT_MS) for each in WAITING_PLAN.dimensions)
    job = LateJob(tmp_path, replace(WAITING_PLAN, dimensions=tuple(tables)))
    job.run({0: [{"user_id": n} for n in (1, 2, 3)]}, T)
    job.run({}, T + WAIT_MS)
    job.change({1: "ann"})
    job.run({}, T + WAIT_MS + 700)
    return job


def test_a_record_tells_when_it_was_corrected(corrected):
    first, second = (journey(corrected, 0, offset) for offset in (0, 1))
    assert (first.pin.batch, second.pin.batch) == (3, 2)
    assert first.waited.text == (
        "waited 1 s for users, went out with NULL, and was corrected 1.7 s after it came"
    )
    assert first.as_json()["late_rows"]["corrected_ms"] == T + WAIT_MS + 700
    assert (second.waited.text, second.waits) == ("waited 1 s for users", False)
    corrected.run({}, T + 3 * WAIT_MS)
    corrected.change({1: "ann", 3: "eve"})
    corrected.run({}, T + 4 * WAIT_MS)
    corrected.run({1: [{"user_id": 1}]}, T + 4 * WAIT_MS)
    again = [journey(corrected, 0, offset) for offset in (0, 1, 2)]
    assert [each.pin.batch for each in again] == [3, 2, 2]
    assert [each.waited.corrected_ms for each in again] == [T + WAIT_MS + 700, None, None]


def test_a_record_tells_how_long_it_waited_and_for_what(past):
    at_once, later, never, waiting = (
        journey(past, *place) for place in ((0, 0), (0, 1), (0, 2), (1, 0))
    )
    assert (at_once.pin.batch, at_once.waited.waited_ms) == (1, 0)
    assert (later.pin.batch, later.waited.text) == (2, "waited 300 ms for users")
    assert later.as_json()["late_rows"]["until_ms"] == T + 300
    assert (waiting.waits, waiting.released) == (True, None)
    assert waiting.waited.text == "waits for users, 1 s at most"
    if past.plan.joins[0].join_type is JoinType.LEFT:
        assert (never.late, never.pin.batch) == (None, 3)
    else:
        assert (never.late["reason"], never.released) == ("unmatched", None)
    assert never.waited.waited_ms == WAIT_MS
