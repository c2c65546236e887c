"""The way of one record: when it came, what let it go, and the windows that count it."""

from dataclasses import replace

import pytest

from joins.lookback.event_replay import EventJourneys
from joins.plan.plan import WindowKind
from tests.joins.worker.test_event_task import COUNTS, PLAN, click
from tests.support.past_event_job import PastEventJob
from watermark import MIN_TIMESTAMP

ARRIVED = [
    {0: [click(1, 30), click(2, 10, 5)], 1: [click(3, 7, 5)]},
    {0: [click(1, 20, 20)], 1: [click(2, 22, 20), click(3, 5)]},
    {0: [click(2, 45, 41)], 1: [click(1, 44, 42)]},
    {0: [click(2, 9, 41), click(1, 60)], 1: []},
]


@pytest.fixture(params=[PLAN, COUNTS], ids=["join", "windows"])
def past(request, tmp_path):
    made = PastEventJob(request.param, tmp_path)
    for arrived in ARRIVED:
        made.run(arrived)
    return made


def journey(past, partition, offset):
    """The way of a record, and what it is joined to."""
    history = past.history()
    arrived = history.covering(partition, offset)
    frames = next(frames for pin, frames, _ in past.done if pin.batch == arrived.batch)
    (record,) = (f for f in frames if f.num_rows and f.column("partition")[0].as_py() == partition)
    record = record.slice(offset - arrived.start_offsets[partition], 1)
    journeys = EventJourneys(history, past.event)
    found = journeys.of(record, (partition, offset), arrived)
    joined = journeys.joined(found, past.indexes)
    return found, joined, [] if joined is None else journeys.windows(found, joined)


JOINED = {
    "released_by_the_next_batch": ((0, 1), 10, (1, 2), (5, 20)),
    "by_a_later_one": ((0, 0), 30, (1, 3), (20, 41)),
    "by_its_own": ((0, 2), 20, (2, 2), (5, 20)),
}


@pytest.mark.parametrize(("place", "time", "batches", "moved"), JOINED.values(), ids=JOINED)
@pytest.mark.parametrize("past", [PLAN], ids=["join"], indirect=True)
def test_the_batch_is_found_whose_watermark_has_passed_the_record(
    past, place, time, batches, moved
):
    found, joined, _ = journey(past, *place)
    told = found.as_json()
    assert (told["rowtime_ms"], found.waits, told["late"]) == (time, False, None)
    assert (told["arrived_in_batch"], told["released_in_batch"]) == batches
    before = found.released.pin.event.watermark
    assert (before, told["released_by_watermark_ms"]) == moved
    (outcome,) = (o for pin, _, o in past.done if pin.batch == batches[1])
    assert [tuple(row.values()) for row in joined.rows.to_pylist()] == [
        row for row in outcome.rows if row[:2] == place
    ]


@pytest.mark.parametrize("past", [PLAN], ids=["join"], indirect=True)
def test_a_record_beyond_the_watermark_waits_and_one_behind_it_is_late(past):
    waiting, joined, _ = journey(past, 0, 5)
    assert (waiting.waits, waiting.released, joined) == (True, None, None)
    assert waiting.as_json()["watermark_at_arrival_ms"] == 41
    late, joined, _ = journey(past, 0, 4)
    assert (late.waits, joined) == (False, None)
    assert late.late == {"reason": "join", "watermark_ms": 41}
    first, _, _ = journey(past, 0, 0)
    assert first.arrived.event.watermark == MIN_TIMESTAMP
    assert first.as_json()["watermark_at_arrival_ms"] is None


@pytest.mark.parametrize("past", [COUNTS], ids=["windows"], indirect=True)
def test_the_windows_of_a_record_tell_who_has_fired_them(past):
    _, _, windows = journey(past, 0, 1)
    assert windows == [{"start_ms": 10, "end_ms": 20, "merges": False, "fired_in_batch": 2}]
    _, _, windows = journey(past, 0, 5)
    assert windows == [{"start_ms": 60, "end_ms": 70, "merges": False, "fired_in_batch": None}]
    late, _, windows = journey(past, 0, 4)
    assert (late.late, windows) == ({"reason": "window", "watermark_ms": 41}, [])


def test_windows_that_hop_are_told_each(tmp_path):
    hops = replace(COUNTS, window=replace(COUNTS.window, kind=WindowKind.HOP, slide_ms=5))
    made = PastEventJob(hops, tmp_path)
    made.run({0: [click(1, 12, 1)], 1: [click(1, 30, 15)]})
    made.run({0: [click(1, 40, 15)], 1: []})
    _, _, windows = journey(made, 0, 0)
    assert [(w["start_ms"], w["end_ms"], w["fired_in_batch"]) for w in windows] == [
        (5, 15, 2),
        (10, 20, None),
    ]
