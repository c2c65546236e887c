"""The opening: every channel, once, durable, and the same after a restart."""

import itertools

import pytest

from joins.durable.checkpoint import Checkpoint
from joins.job.opening import Opening, channel_name
from tests.support.beside import at_once
from watermark.errors import SluiceError
from watermark.gate import Phase
from watermark.model import MIN_TIMESTAMP, Evidence, Watermark

DONE = Watermark(MIN_TIMESTAMP, use_processing_time=True)
CHANNELS = ("users/0", "users/1", "items/0")
STAYS_SHUT = {
    "nothing_was_received": [],
    "one_channel_is_missing": [("users/0", DONE), ("users/1", DONE)],
    "one_channel_said_it_twice": [("users/0", DONE), ("users/0", DONE), ("items/0", DONE)],
    "event_time_is_not_enough": [(c, Watermark(1_000)) for c in CHANNELS],
    "one_channel_has_event_time_only": [
        ("users/0", DONE),
        ("users/1", DONE),
        ("items/0", Watermark(5)),
    ],
}


class Job:
    """An opening as a runner has it, and how often it was asked to open."""

    def __init__(self, directory, channels=CHANNELS):
        self.opened = 0
        self.opening = Opening(Checkpoint(directory), channels, self.open)

    def open(self):
        self.opened += 1

    def receive(self, *received):
        for channel, watermark in received:
            self.opening.receive(channel, watermark, now_ms=10_000)

    def settle(self):
        self.opening.settle(versions={"users": 4}, held_records=7, at_ms=12_345)


@pytest.mark.parametrize("received", STAYS_SHUT.values(), ids=STAYS_SHUT)
def test_it_stays_shut_until_every_channel_is_in_processing_time(tmp_path, received):
    job = Job(tmp_path)
    job.receive(*received)
    assert (job.opened, job.opening.is_open) == (0, False)
    assert job.opening.view().evidence is None


def test_a_channel_that_is_copied_anew_has_promised_nothing(tmp_path):
    job = Job(tmp_path)
    job.receive(("users/0", DONE), ("items/0", DONE))
    for channel in ("users/0", "users/1"):
        job.opening.restart(channel)
    job.receive(("users/1", DONE))
    assert job.opened == 0
    job.receive(("users/0", DONE))
    assert job.opened == 1


def test_a_copy_that_starts_over_does_not_close_an_open_gate(tmp_path):
    job = Job(tmp_path)
    job.receive(*((channel, DONE) for channel in CHANNELS))
    job.settle()
    job.opening.restart("users/0")
    assert job.opening.is_open
    assert all(c.watermark == DONE for c in job.opening.view().channels)


def reopened(directory, *tables):
    channels = [channel for channel in (*CHANNELS, "rates/0") if channel.split("/")[0] in tables]
    opening = Opening(Checkpoint(directory), channels, lambda: None, tables)
    for channel in channels:
        if channel != "rates/0":
            opening.receive(channel, DONE, now_ms=10_000)
    return opening


def test_a_table_that_was_added_closes_the_gate_until_it_is_complete(tmp_path):
    job = Job(tmp_path)
    job.opening.settle(versions={"users": 4, "items": 2}, held_records=7, at_ms=12_345)
    added = reopened(tmp_path, "users", "items", "rates")
    assert not added.is_open
    assert added.view().phase is Phase.LOAD
    assert added.view().versions_at_open == {}
    assert not reopened(tmp_path, "users", "items", "rates").is_open  # also after a crash
    added.receive("rates/0", DONE, now_ms=10_000)
    added.settle(versions={"users": 9, "items": 3, "rates": 1}, held_records=5, at_ms=23_456)
    again = reopened(tmp_path, "users", "items", "rates")
    assert again.is_open
    assert again.view().versions_at_open == {"users": 9, "items": 3, "rates": 1}


@pytest.mark.parametrize("tables", [("users",), ("users", "items"), ()])
def test_a_table_that_was_removed_leaves_the_gate_open(tmp_path, tables):
    Job(tmp_path).opening.settle(versions={"users": 4, "items": 2}, held_records=7, at_ms=12_345)
    assert reopened(tmp_path, *tables).is_open


@pytest.mark.parametrize("order", list(itertools.permutations(CHANNELS)), ids="-".join)
def test_it_asks_to_open_once_whatever_the_order(tmp_path, order):
    job = Job(tmp_path)
    job.receive(*((channel, DONE) for channel in order))
    job.receive(*((channel, DONE) for channel in order))
    assert job.opened == 1


def test_a_job_without_channels_never_opens(tmp_path):
    job = Job(tmp_path, channels=())
    assert (job.opened, job.opening.is_open) == (0, False)


def test_it_is_in_join_only_when_that_is_durable(tmp_path):
    job = Job(tmp_path)
    job.receive(*((channel, DONE) for channel in CHANNELS))
    assert job.opening.view().phase is Phase.LOAD
    assert Checkpoint(tmp_path).read_phase() is None
    job.settle()
    assert job.opening.is_open
    kept = Checkpoint(tmp_path).read_phase()
    assert (kept["phase"], kept["versions"], kept["held_records"]) == ("JOIN", {"users": 4}, 7)


def test_a_restart_before_the_opening_was_durable_opens_again(tmp_path):
    Job(tmp_path).receive(*((channel, DONE) for channel in CHANNELS))
    again = Job(tmp_path)
    assert not again.opening.is_open
    again.receive(*((channel, DONE) for channel in CHANNELS))
    assert again.opened == 1


def test_a_restart_after_the_opening_stays_in_join_and_asks_for_nothing(tmp_path):
    Job(tmp_path).settle()
    again = Job(tmp_path)
    assert again.opening.is_open
    again.receive(*((channel, DONE) for channel in CHANNELS))
    assert again.opened == 0
    view = again.opening.view()
    assert (view.opened_at_ms, view.held_at_open, view.versions_at_open) == (
        12_345,
        7,
        {"users": 4},
    )
    assert view.evidence is Evidence.IN_BAND_WATERMARK


def test_it_cannot_be_settled_twice(tmp_path):
    job = Job(tmp_path)
    job.settle()
    with pytest.raises(SluiceError):
        job.settle()
    assert job.opening.view().opened_at_ms == 12_345


def test_a_failed_write_leaves_it_in_load(tmp_path):
    job = Job(tmp_path)
    (tmp_path / "phase.json").mkdir()
    with pytest.raises(OSError, match=r"phase\.json"):
        job.settle()
    assert not job.opening.is_open


def test_threads_that_complete_different_dimensions_open_once(tmp_path):
    names = [channel_name(dimension, p) for dimension in ("a", "b", "c", "d") for p in range(8)]
    job = Job(tmp_path, channels=names)

    def complete(dimension):
        job.receive(*((channel_name(dimension, p), DONE) for p in range(8)))

    at_once(complete, "abcd")
    assert job.opened == 1
