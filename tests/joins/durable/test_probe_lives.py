"""Lives of the probe: kept whole, numbers that only grow, acknowledgements with them."""

import json
from dataclasses import replace

import pytest

from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.durable.probe_lives import Gap, Life, ProbeLives, known_topics, life_of, read_lives
from joins.plan.errors import CheckpointError
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics

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


CUT = ["", '{"id":"r0"}\n', '{"id":"r0"}\n{"id":"r', f'{{"id":"{RECORD["id"]}","at']


@pytest.mark.parametrize("text", CUT)
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


def test_topics_are_read_from_the_next_life_of_the_file_on_and_never_go(checkpoint):
    lives = ProbeLives(checkpoint, META)
    assert "topics" not in lives.current.as_json(), "a stream of one topic is told as ever"
    visits = StreamTopic("visits", "id-7")
    lives.add_topics(lives.current.topics.with_more([visits]))
    again = ProbeLives(checkpoint, META).current
    assert again.topics == StreamTopics((StreamTopic("clicks", "id-1"), visits))
    assert (again.directory, again.start_offsets) == ("probe", {0: 5, 1: 0})
    assert read_lives(checkpoint) == (again,)
    assert known_topics(checkpoint).names == ("clicks", "visits")
    lives.begin(replace(SECOND, topics=again.topics.identified(["id-8", "id-7"])))
    assert known_topics(checkpoint).topics == (StreamTopic("clicks", "id-8"), visits)
    assert ProbeLives(checkpoint, META).all[0] == again


def test_a_life_of_several_topics_is_shown_by_their_names(checkpoint):
    topics = StreamTopics((StreamTopic("clicks"), StreamTopic("visits")))
    life = Life("probe", 0, topics, {0: 5, SPAN: 1}, end_offsets={SPAN: 9})
    shown = life.shown()
    assert (shown["start_offsets"], shown["end_offsets"]) == (
        {"clicks/0": 5, "visits/0": 1},
        {"visits/0": 9},
    )
    assert shown["backlog_offsets"] is None


def test_a_job_of_several_topics_begins_with_those_of_its_submission(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    topics = StreamTopics((StreamTopic("clicks", "id-1"), StreamTopic("visits", "id-2")))
    meta = replace(META, probe_topics=topics)
    checkpoint.write_meta(meta)
    assert checkpoint.read_meta() == meta
    assert known_topics(checkpoint) == topics
    checkpoint.write_meta(META)
    assert "probe_topics" not in (checkpoint.directory / "meta.json").read_text()
    assert known_topics(checkpoint) == StreamTopics.one("clicks", "id-1")
