"""Lives of the probe: kept whole, numbers that only grow, acknowledgements with them."""

import json
from dataclasses import replace

import pytest

from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.probe_lives import Gap, Life, ProbeLives, life_of, read_lives
from joins.plan.errors import CheckpointError
from joins.plan.stream_topics import StreamTopics

META = JobMeta(
    incarnation="i",
    epoch=1,
    probe_topic="clicks",
    probe_topic_id="id-1",
    probe_start_offsets={0: 5, 1: 0},
    changelog_topics={},
)
RECORD = {
    "id": "r1",
    "cause": "records-lost",
    "reason": "it was old",
    "gaps": [Gap(0, 5, 9).as_json(StreamTopics.one("clicks"))],
    "life": "probe-2",
}
SECOND = Life(
    "probe-2",
    7,
    StreamTopics.one("clicks", "id-2"),
    {0: 9, 1: 3},
    {"users": 4},
    "records-lost",
    RECORD,
    (6,),
    backlog_offsets={0: 12, 1: 0},
)


@pytest.fixture
def checkpoint(tmp_path):
    found = Checkpoint(tmp_path / "checkpoint")
    found.write_meta(META)
    return found


def test_a_job_without_the_file_has_one_life_from_its_submission(checkpoint):
    lives = ProbeLives(checkpoint, META)
    assert lives.all == (Life("probe", 0, StreamTopics.one("clicks", "id-1"), {0: 5, 1: 0}),)
    assert read_lives(checkpoint) == lives.all
    assert lives.acknowledgements() == []
    assert not (checkpoint.directory / "acknowledgements.jsonl").exists()


def test_the_first_life_has_the_backlog_of_the_submission(checkpoint):
    checkpoint.write_meta(replace(META, probe_backlog_offsets={0: 7, 1: 0}))
    (life,) = read_lives(checkpoint)
    assert life.backlog_offsets == {0: 7, 1: 0}


def test_a_directory_without_a_job_has_no_lives(tmp_path):
    assert read_lives(Checkpoint(tmp_path)) == ()


def test_a_new_life_is_read_back_as_it_was_written(checkpoint):
    lives = ProbeLives(checkpoint, META)
    assert lives.next_directory() == "probe-2"
    lives.begin(SECOND)
    again = ProbeLives(checkpoint, META)
    assert again.current == SECOND
    assert again.all == lives.all == read_lives(checkpoint)
    assert again.next_directory() == "probe-3"
    assert again.current.directory == "probe-2"
    assert again.acknowledgement("r1") == RECORD
    assert again.acknowledgement("r2") is None


def test_each_number_belongs_to_one_life(checkpoint):
    lives = ProbeLives(checkpoint, META)
    lives.begin(SECOND)
    lives.begin(Life("probe-3", 7, StreamTopics.one("clicks", "id-3"), {0: 0}))
    names = [life_of(lives.all, batch).directory for batch in (0, 6, 7, 100)]
    assert names == ["probe", "probe", "probe-3", "probe-3"]
    assert life_of((), 3) is None


def acknowledged(checkpoint):
    text = (checkpoint.directory / "acknowledgements.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_acknowledgements_are_listed_once(checkpoint):
    ProbeLives(checkpoint, META).begin(SECOND)
    ProbeLives(checkpoint, META)
    assert acknowledged(checkpoint) == [RECORD]


@pytest.mark.parametrize("text", ["", '{"id":"r0"}\n', '{"id":"r0"}\n{"id":"r'])
def test_a_list_that_a_crash_has_cut_is_completed(checkpoint, text):
    ProbeLives(checkpoint, META).begin(SECOND)
    listed = checkpoint.directory / "acknowledgements.jsonl"
    listed.write_text(text)
    ProbeLives(checkpoint, META)
    assert json.loads(listed.read_text().splitlines()[-1]) == RECORD


def test_a_damaged_file_is_refused(checkpoint):
    (checkpoint.directory / "probe.json").write_text("{")
    with pytest.raises(CheckpointError):
        ProbeLives(checkpoint, META)
