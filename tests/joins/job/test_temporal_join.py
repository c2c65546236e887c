"""What a job says in the pin of a batch, without Spark."""

from types import SimpleNamespace

import pytest

from joins.batch.batches import FinishedBatch
from joins.dimension.dimension import CommittedStates
from joins.durable.pins import Pin
from joins.job.session import check_driver
from joins.job.temporal_join import TemporalJoin
from joins.kernels.changelog.digest import ChangelogState
from joins.plan.errors import SourceUnavailableError
from watermark.freshness import Proof


def join_of(states):
    users = SimpleNamespace(
        dimension=SimpleNamespace(name="users"),
        states=states,
        proof=lambda _: Proof(1_000, {"file": "binlog.000001", "pos": 900}),
    )
    join = TemporalJoin.__new__(TemporalJoin)
    join.parts = SimpleNamespace(dimensions=(users,))
    join.progress = SimpleNamespace(begins=lambda _: None, record=lambda _: None)
    join._limit = SimpleNamespace(record=lambda _: None)
    join._last_versions = {}
    return join


def pin_of(batch, version):
    return Pin(batch, "clicks", {}, {}, {"users": version}, 0, 1)


def added(join, version):
    return join._proofs({"users": version})["users"].position.get("added", "unknown")


def commit(states, *versions):
    for version in versions:
        states.add(version, ChangelogState(), (1, 1, 100 * version, 0))


def test_a_pin_says_what_was_added_since_the_last_batch():
    """By the oldest added change a token finds the first batch that has a position."""
    states = CommittedStates()
    join = join_of(states)
    commit(states, 1, 2)
    assert added(join, 2) == "unknown"
    join._finished(FinishedBatch(pin_of(0, 2), {}))
    assert added(join, 2) is None
    commit(states, 3, 4)
    assert added(join, 4) == [1, 300]
    # The pin with version 4 could not be written; its batch is planned again.
    commit(states, 5)
    assert added(join, 5) == [1, 300]


def test_after_a_start_a_pin_does_not_say_that_less_was_added_than_is_known():
    """The batch of an earlier runner runs again; the versions behind it were committed by it."""
    states = CommittedStates()
    states.read_back(6, ChangelogState())
    join = join_of(states)
    join._finished(FinishedBatch(pin_of(3, 4), {}))
    commit(states, 7)
    assert added(join, 7) == "unknown"
    join._finished(FinishedBatch(pin_of(4, 6), {}))
    assert added(join, 7) == [1, 700]


def test_what_was_added_is_unknown_so_many_versions_later():
    states = CommittedStates()
    commit(states, *range(1, 2_000))
    join = join_of(states)
    join._finished(FinishedBatch(pin_of(0, 10), {}))
    assert added(join, 1_999) == "unknown"
    join._finished(FinishedBatch(pin_of(1, 1_500), {}))
    assert added(join, 1_999) == [1, 150_100]


def test_a_job_whose_jvm_has_ended_ends_and_is_started_again():
    """No loop of it would run again: each would fail for ever."""
    ended = SimpleNamespace(poll=lambda: 52)
    join = join_of(CommittedStates())
    context = SimpleNamespace(_gateway=SimpleNamespace(proc=ended))
    join.parts.spark = SimpleNamespace(sparkContext=context)
    with pytest.raises(SourceUnavailableError, match="ended with code 52") as caught:
        join._tick()
    assert "started again by itself" in caught.value.hint


@pytest.mark.parametrize("process", [None, SimpleNamespace(poll=lambda: None)])
def test_a_jvm_that_lives_or_is_shared_ends_no_job(process):
    context = SimpleNamespace(_gateway=SimpleNamespace(proc=process))
    check_driver(SimpleNamespace(sparkContext=context))
