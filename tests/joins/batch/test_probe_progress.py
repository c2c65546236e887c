"""What other threads see of the probe while its loop counts a batch: all of it, or nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.batch.batches import FinishedBatch
from joins.batch.probe_progress import Pace, ProbeProgress
from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.pins import Pin
from joins.durable.probe_lives import Life, ProbeLives
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from tests.support.laws import examples
from tests.support.readers import seen_while

META = JobMeta("one", 1, "orders", "id", {0: 0}, {})


def batch(number: int, end: int) -> FinishedBatch:
    pin = Pin(number, "orders", {0: 0}, {0: end}, {}, 1, 1)
    return FinishedBatch(pin, {"joined": end, "records": end}, stages_ms={"join": number})


@pytest.fixture
def progress(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    found = ProbeProgress(
        checkpoint, ProbeLives(checkpoint, META), KafkaOptions("127.0.0.1:1", "orders")
    )
    yield found
    found.close()


def test_a_reader_sees_a_batch_as_a_whole_or_not_at_all(progress):
    first, second = batch(0, 10), batch(1, 25)
    progress.begins(first.pin)
    progress.record(first)
    progress.begins(second.pin)

    def read():
        there, reach = progress.committed, progress.reach(running=True)
        counts = there.counts
        return (
            (counts.batch, counts.joined, dict(counts.next_offsets)),
            (there.newest, dict(there.stages_ms)),
            (reach.committed, reach.reading),
        )

    seen = seen_while(lambda: progress.record(second), read)
    assert [each[0] for each in seen] == [(0, 10, {0: 10}), (1, 35, {0: 25})]
    assert [each[1] for each in seen] == [
        (first.pin, {"join": 0}),
        (second.pin, {"join": 1}),
    ]
    assert [each[2] for each in seen] == [({0: 10}, {0: 25}), ({0: 25}, {0: 25})]


def test_a_new_life_never_has_the_offsets_of_the_one_before(progress):
    """Its topic is another one: offsets of the old one would be taken for ends that went back."""
    progress.record(batch(3, 1_000))
    life = Life("probe-1", 4, StreamTopics.one("orders", "other"), {0: 0})
    progress._lives.begin(life)
    seen = seen_while(
        lambda: progress.record(batch(4, 7)),
        lambda: dict(progress.reach(running=True).committed),
    )
    assert seen == [{0: 0}, {0: 7}]


@settings(max_examples=examples(50))
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 100)), max_size=12))
def test_a_reader_of_the_pace_sees_the_step_before_or_after(steps):
    pace, now_s = Pace(), 0.0
    for begins, records in steps:
        now_s += 1.0

        def write(begins=begins, records=records, now_s=now_s):
            pace.begin(now_s) if begins else pace.end(now_s, records)

        seen = seen_while(write, lambda now_s=now_s: (pace.batch_ms, pace.records_per_s(now_s)))
        assert len(seen) <= 2


def test_counting_a_batch_again_changes_no_sum(progress):
    progress.record(batch(0, 10))
    progress.record(batch(0, 10))
    assert (progress.counts.batch, progress.counts.joined) == (0, 10)
