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


def test_a_record_tells_how_long_it_waited_and_for_what(past):
    at_once, later, never, waiting = (
        journey(past, *place) for place in ((0, 0), (0, 1), (0, 2), (1, 0))
    )
    assert (at_once.pin.batch, at_once.waited.waited_ms) == (1, 0)
    assert (later.pin.batch, later.waited.text) == (2, "waited 0.3 s for users")
    assert later.as_json()["late_rows"]["until_ms"] == T + 300
    assert (waiting.waits, waiting.released) == (True, None)
    assert waiting.waited.text == "waits for users, 1 s at most"
    if past.plan.joins[0].join_type is JoinType.LEFT:
        assert (never.late, never.pin.batch) == (None, 3)
    else:
        assert (never.late["reason"], never.released) == ("unmatched", None)
    assert never.waited.waited_ms == WAIT_MS
