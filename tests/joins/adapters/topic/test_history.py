"""A topic with a history: its files first, then its records, each once, wherever it is killed."""

import os
import signal
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.process.process import SourceProcess
from joins.adapters.topic.feed import TopicFeedSession
from joins.adapters.topic.feed_state import TopicFeedConfig, abandon, read_journal
from joins.adapters.topic.history import copy_files
from joins.adapters.topic.start import find_start
from joins.durable.codec import as_json, from_json
from joins.plan.errors import SourceError
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import (
    Field,
    FileFormat,
    FileSource,
    KafkaOptions,
    StartupMode,
    TopicHistory,
    TopicSource,
)
from joins.plan.types import SqlType, TypeName
from tests.support.file_feeds import write_json_lines
from tests.support.foreign_topics import FIELDS, SETTLED, Connector, TopicFeed, envelope, row
from tests.support.topics import create_topic, delete_topics
from tests.support.wait import wait_until

AT = Field("at", SqlType(TypeName.TIMESTAMP_LTZ, 3))
BY_KEY = {"value": JSON_FORMAT, "key": RecordKey(("id",))}
DEBEZIUM = {"value": RecordFormat(KafkaFormat.DEBEZIUM_JSON), "evidence": SETTLED}
WHOLE = {n: f"file {n}" for n in range(1, 7)}
OF_FILES = TopicHistory(FileSource("users", FileFormat.JSON))
BY_TIME = replace(OF_FILES, startup_mode=StartupMode.TIMESTAMP, startup_column="at")


@pytest.fixture
def topic(kafka):
    made = Connector(kafka.bootstrap_servers, partitions=2)
    yield made
    made.close()


@pytest.fixture
def files(tmp_path):
    """Six rows in two files."""
    path = tmp_path / "users"
    path.mkdir()
    rows = [row(key, name) for key, name in WHOLE.items()]
    write_json_lines(path / "a.json", rows[:3])
    write_json_lines(path / "b.json", rows[3:])
    return path


def feed_of(topic, files, history=None, fields=FIELDS, **source):
    """The configuration as a submission makes it: with the start in offsets."""
    kafka = KafkaOptions(topic.servers, topic.topic)
    cluster = KafkaCluster(kafka)
    history = history or OF_FILES
    if history.startup_column is None:
        history = history.starting_at(find_start(cluster, topic.topic, history))
    made = TopicSource(
        kafka=kafka,
        changelog_partitions=topic.partitions,
        topic_id=cluster.require(topic.topic).topic_id,
        history=history,
        **(source or BY_KEY),
    )
    directory = files.parent
    config = TopicFeedConfig(
        source=made,
        fields=fields,
        primary_key=("id",),
        kafka=KafkaOptions(topic.servers, create_topic(topic.servers, partitions=topic.partitions)),
        state_file=directory / "source.json",
        decisions_file=directory / "decisions.json",
        history_path=files,
    )
    assert from_json(TopicFeedConfig, as_json(config)) == config
    return config


class Halves:
    """Runs the halves of a source in turn, as its process does."""

    def __init__(self, config):
        self.config = config
        self.feed = TopicFeed(config)

    def copy(self):
        return copy_files(self.config, self.feed.told, read_journal(self.config.state_file))

    def follow(self):
        """Everything that there is to do now; the state that the process reports."""
        kept = read_journal(self.config.state_file)
        copied = self.copy() if kept.begins else None
        session = TopicFeedSession(self.config, self.feed.told, copied)
        try:
            return self.feed.run(session)
        finally:
            session.close()

    @property
    def generation(self):
        return self.feed.copy().generation

    def rows(self):
        return self.feed.rows()


def test_records_replace_the_rows_of_their_keys(topic, files):
    halves = Halves(feed_of(topic, files))
    topic.send({"id": 2}, row(2, "changed"))
    topic.send({"id": 3}, None)
    topic.send({"id": 9}, row(9, "new"))
    state = halves.follow()
    assert (state["complete"], state["evidence"]) == (True, "end_offsets")
    expected = {**WHOLE, 2: "changed", 9: "new"}
    del expected[3]
    assert (halves.rows(), halves.generation) == (expected, 1)
    topic.send({"id": 9}, None)
    topic.send({"id": 3}, row(3, "back"))
    halves.follow()
    del expected[9]
    assert halves.rows() == {**expected, 3: "back"}


def test_nothing_is_complete_before_the_topic_is_applied_up_to_its_ends(topic, files):
    halves = Halves(feed_of(topic, files))
    topic.send({"id": 2}, row(2, "while the files are read"))
    assert halves.copy().generation == 1
    assert halves.generation == 0, "no watermark is written behind the files"
    topic.send({"id": 4}, row(4, "behind the files"))
    assert halves.follow()["complete"]
    kept = read_journal(halves.config.state_file)
    ends = KafkaCluster(halves.config.source.kafka).end_offsets(topic.topic)
    assert dict(kept.ends) == ends
    assert halves.generation == 1


def test_changes_of_a_connector_follow_its_files(topic, files):
    halves = Halves(feed_of(topic, files, **DEBEZIUM))
    topic.change(1, "changed")
    topic.change(2, None)
    topic.send({"id": 8}, envelope("r", None, row(8, "read"), "true", topic.tick()))
    state = halves.follow()
    assert (state["complete"], state["evidence"]) == (True, "end_offsets")
    expected = {**WHOLE, 1: "changed", 8: "read"}
    del expected[2]
    assert halves.rows() == expected


def test_a_truncated_table_has_no_row_of_its_files(topic, files):
    halves = Halves(feed_of(topic, files, **DEBEZIUM))
    halves.follow()
    topic.truncate()
    topic.change(7, "after")
    halves.follow()
    assert (halves.rows(), halves.generation) == ({7: "after"}, 2)


def test_a_topic_starts_at_the_newest_time_of_its_files(topic, files):
    times = [topic.at_ms + 10 * n for n in range(1, 5)]  # of the next records
    for n, key in enumerate((1, 3, 5, 7)):
        topic.send({"id": key}, {**row(key, f"topic {n}"), "at": instant(times[n])}, partition=1)
    stamped = [{**row(2, "file"), "at": instant(times[0])}, {**row(3, "f"), "at": None}]
    write_json_lines(files / "a.json", stamped)
    write_json_lines(files / "b.json", [{**row(4, "file"), "at": instant(times[2])}])
    halves = Halves(feed_of(topic, files, BY_TIME, fields=(*FIELDS, AT)))
    assert halves.copy().newest_ms == times[2]
    assert halves.follow()["complete"]
    expected = {2: "file", 3: "f", 4: "file", 5: "topic 2", 7: "topic 3"}
    assert halves.rows() == expected
    # the first partition has no record: it is read from its beginning
    assert read_journal(halves.config.state_file).position.offsets == {0: 0, 1: 4}


def instant(ms):
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def test_a_gap_stalls_until_newer_files_are_there(topic, files):
    """The column's maximum is older than the oldest record; the next export is newer."""
    for key in (1, 1, 3):
        topic.send({"id": key}, {**row(key, "topic"), "at": instant(topic.at_ms)}, partition=1)
    cluster = KafkaCluster(KafkaOptions(topic.servers, topic.topic))
    cluster.delete_records_before(topic.topic, {1: 2})
    write_json_lines(files / "a.json", [{**row(2, "old"), "at": instant(topic.at_ms - 60_000)}])
    (files / "b.json").unlink()
    halves = Halves(feed_of(topic, files, BY_TIME, fields=(*FIELDS, AT)))
    for _ in range(2):
        with pytest.raises(SourceError, match=r"^up to 2 records between the history") as caught:
            halves.follow()
        assert "again by itself" in caught.value.hint
    assert halves.generation == 0
    write_json_lines(files / "a.json", [{**row(2, "new"), "at": instant(topic.at_ms + 1)}])
    assert halves.follow()["complete"]
    assert (halves.rows(), halves.generation) == ({2: "new"}, 2)


def test_a_start_that_goes_while_the_files_are_read_stalls(topic, files):
    topic.send({"id": 1}, row(1, "first"), partition=1)
    topic.send({"id": 1}, row(1, "second"), partition=1)
    halves = Halves(feed_of(topic, files))
    halves.copy()
    cluster = KafkaCluster(halves.config.source.kafka)
    cluster.delete_records_before(topic.topic, {1: 1})
    with pytest.raises(SourceError, match=r"^1 records between the history"):
        halves.follow()
    assert halves.generation == 0


def test_a_topic_that_was_created_again_stalls(topic, files):
    halves = Halves(feed_of(topic, files))
    delete_topics(topic.servers, topic.topic)
    create_topic(topic.servers, topic.topic, partitions=2)
    with pytest.raises(SourceError, match="was deleted and created again"):
        halves.follow()


def test_files_that_change_before_the_topic_begins_are_read_anew(topic, files):
    halves = Halves(feed_of(topic, files))
    halves.copy()
    write_json_lines(files / "b.json", [row(4, "of the second export")])
    halves.follow()
    assert halves.rows() == {1: "file 1", 2: "file 2", 3: "file 3", 4: "of the second export"}
    assert (halves.generation, read_journal(halves.config.state_file).generation) == (2, 2)


def test_once_the_topic_has_begun_the_files_are_not_needed(topic, files):
    halves = Halves(feed_of(topic, files))
    halves.follow()
    for file in files.iterdir():
        file.unlink()
    topic.send({"id": 2}, row(2, "changed"))
    halves.follow()
    assert halves.rows() == {**WHOLE, 2: "changed"}


def test_a_topic_that_is_abandoned_is_copied_again_with_its_files(topic, files):
    halves = Halves(feed_of(topic, files))
    halves.follow()
    abandon(halves.config.state_file, "the changelog is lost")
    topic.send({"id": 2}, row(2, "changed"))
    write_json_lines(files / "a.json", [row(1, "second export")])
    halves.follow()
    expected = {n: name for n, name in WHOLE.items() if n > 3}
    assert (halves.rows(), halves.generation) == ({1: "second export", 2: "changed", **expected}, 2)


FIVE_MINUTES = {"cleanup.policy": "compact", "delete.retention.ms": "300000"}


@pytest.mark.parametrize("age_ms", [600_000, 100_000], ids=["older", "younger"])
def test_deletions_that_compaction_may_have_removed_are_a_gap(kafka, files, age_ms):
    """Records behind the files are older than tombstones are kept, or younger."""
    at_ms = int(time.time() * 1000) - age_ms
    made = Connector(kafka.bootstrap_servers, config=FIVE_MINUTES, at_ms=at_ms)
    made.send({"id": 2}, row(2, "changed"))
    made.send({"id": 3}, None)
    try:
        if age_ms == 600_000:
            with pytest.raises(SourceError, match="deletions of rows of the history") as caught:
                feed_of(made, files)
            assert "up to offset 2 are older" in caught.value.message
        else:
            halves = Halves(feed_of(made, files))
            halves.follow()
            assert set(halves.rows()) == set(WHOLE) - {3}
    finally:
        made.close()


# events at which the process is killed
MOMENTS = {
    "before_its_files_are_read": lambda event: event["event"] == "streaming",
    "before_its_topic_is_applied": lambda event: "complete" in event.get("state", {}),
    "behind_its_watermark": lambda event: event["event"] == "watermark",
}


def test_the_process_goes_on_where_it_was_killed(topic, files):
    config = feed_of(topic, files)
    topic.send({"id": 2}, row(2, "changed"))
    topic.send({"id": 3}, None)
    expected = {**WHOLE, 2: "changed"}
    del expected[3]
    for number, is_now in enumerate(MOMENTS.values(), start=10):
        events = []
        process = SourceProcess("joins.adapters.topic.history", config, events.append)
        wait_until(lambda events=events, is_now=is_now: any(map(is_now, list(events))))
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda process=process: not process.running)
        process.stop()
        topic.send({"id": number}, row(number, "later"))
        expected[number] = "later"
    halves = Halves(config)
    halves.follow()
    assert (halves.rows(), halves.generation) == (expected, 1)
