"""What a runner reports is followed from file to file, in order, each transition once."""

import pytest

from service.jobs.store import runner_files
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import append_event, read_changes


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(runner_files, "EVENTS_LIMIT_BYTES", 2_000)


def tell(job_dir, first, last):
    for number in range(first, last):
        to = "STALLED" if number % 2 else "JOINING"
        append_event(job_dir, {"at_ms": number, "from": "x", "to": to, "cause": "c\u2028"})


def follow(job_dir, offset):
    """The times of all transitions behind `offset`, and the offset behind them."""
    found = []
    while True:
        changes, after = read_changes(job_dir, offset)
        if after == offset:
            return found, after
        found += [change.at_ms for change in changes]
        offset = after


@pytest.mark.parametrize("step", [1, 7, 25], ids=["each", "a_few", "nearly_a_file"])
def test_whoever_follows_gets_each_transition_once_while_the_files_stay_small(tmp_path, step):
    found, offset = [], 0
    for first in range(0, 200, step):
        tell(tmp_path, first, first + step)
        told, offset = follow(tmp_path, offset)
        found += told
    assert found == list(range(len(found)))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000
    assert {path.name for path in tmp_path.iterdir()} == {"events.jsonl", "events.jsonl.1"}


def test_whoever_was_away_for_long_gets_the_newest_transitions(tmp_path):
    tell(tmp_path, 0, 5)
    assert follow(tmp_path, 0)[0] == list(range(5))
    offset = follow(tmp_path, 0)[1]
    tell(tmp_path, 5, 300)
    told, after = follow(tmp_path, offset)
    assert told == list(range(300 - len(told), 300))
    assert len(told) > 20
    assert follow(tmp_path, after) == ([], after)


def test_a_file_of_before_is_followed_on(tmp_path):
    tell(tmp_path, 0, 3)
    offset = follow(tmp_path, 0)[1]
    assert offset == JobLayout(tmp_path).events.stat().st_size
    tell(tmp_path, 3, 40)
    assert follow(tmp_path, offset)[0] == list(range(3, 40))


def test_a_line_that_was_cut_at_the_end_of_a_file_holds_up_nobody(tmp_path):
    tell(tmp_path, 0, 3)
    offset = follow(tmp_path, 0)[1]
    with JobLayout(tmp_path).events.open("ab") as events:
        events.write(b'{"cut":"' + b"x" * 2_000)
    assert follow(tmp_path, offset) == ([], offset)
    tell(tmp_path, 3, 6)
    assert follow(tmp_path, offset)[0] == [3, 4, 5]


def test_a_line_that_is_being_written_is_read_once_it_is_whole(tmp_path):
    tell(tmp_path, 0, 2)
    events = JobLayout(tmp_path).events
    content = events.read_bytes()
    events.write_bytes(content[:-9])
    told, offset = follow(tmp_path, 0)
    assert told == [0]
    events.write_bytes(content)
    assert follow(tmp_path, offset)[0] == [1]


def test_a_runner_that_ended_between_two_files_loses_nothing(tmp_path):
    """The new file was not in its place: the old one has both names."""
    tell(tmp_path, 0, 26)
    events = JobLayout(tmp_path).events
    (tmp_path / "events.jsonl.1").hardlink_to(events)
    (tmp_path / "events.jsonl.new").write_text("cut o")
    assert follow(tmp_path, 0)[0] == list(range(26))
    tell(tmp_path, 26, 30)
    assert follow(tmp_path, 0)[0] == list(range(30))
