"""What the status says of a topic with a history: first its files, then its topic."""

from pathlib import Path

import pytest

from joins.adapters.files.listing import FileFeedState, FileStamp
from joins.adapters.topic.feed_state import TopicFeedConfig, history_state
from joins.durable.checkpoint import read_document, write_document
from joins.durable.requests import Request, Stalls
from joins.plan.errors import NothingToAcknowledgeError
from joins.plan.formats import JSON_FORMAT
from joins.plan.plan import FileFormat, FileSource, KafkaOptions, TopicHistory, TopicSource
from joins.source.feed_coordinator import HistoryCoordinator
from tests.support.foreign_topics import FIELDS

KAFKA = KafkaOptions("nowhere:9092", "users")
TOPIC = {
    "generation": 1,
    "complete": False,
    "evidence": "end_offsets",
    "quiet": None,
    "missing": "applied",
    "text": "5 records up to the ends of the partitions are not applied",
    "rows": 0,
    "rows_total": None,
}


def coordinator_of(directory: Path) -> HistoryCoordinator:
    history = TopicHistory(FileSource("users", FileFormat.JSON))
    config = TopicFeedConfig(
        source=TopicSource(KAFKA, JSON_FORMAT, changelog_partitions=1, history=history),
        fields=FIELDS,
        primary_key=("id",),
        kafka=KAFKA,
        state_file=directory / "users.json",
        decisions_file=directory / "users.decisions.json",
        history_path=directory / "users",
    )
    return HistoryCoordinator("users", config, Stalls(), directory / "acknowledgements.jsonl")


def files(done: int) -> dict[str, int]:
    return {"generation": 1, "rows": 100 * done, "files_done": done, "files_total": 3}


def test_nothing_is_said_before_anything_is_read(tmp_path: Path) -> None:
    assert coordinator_of(tmp_path).view() is None


def test_files_and_the_topic_are_parts_of_the_copy(tmp_path: Path) -> None:
    coordinator = coordinator_of(tmp_path)
    parts = []
    for state in (files(1), files(3), TOPIC, {**TOPIC, "complete": True}):
        coordinator._on_event({"event": "progress", "state": state})
        view = coordinator.view()
        assert view is not None
        parts.append((view.chunks_done, view.chunks_total, view.rows_total, view.is_copied))
    assert parts == [(1, 4, 100, False), (3, 4, 300, False), (3, 4, 300, False), (4, 4, 300, True)]


def test_the_status_says_what_the_copy_waits_for(tmp_path: Path) -> None:
    coordinator = coordinator_of(tmp_path)
    waits = []
    for state in (files(1), TOPIC, {**TOPIC, "complete": True}):
        coordinator._on_event({"event": "progress", "state": state})
        view = coordinator.view()
        assert view is not None
        waits.append((view.waits_for, view.evidence))
    assert waits == [
        ("1 of 3 files of the history are read", None),
        (TOPIC["text"], None),
        (None, "end_offsets"),
    ]


def test_a_restart_knows_the_files_that_were_read(tmp_path: Path) -> None:
    coordinator = coordinator_of(tmp_path)
    stamps = tuple(FileStamp(name, 1, 1) for name in "abc")
    state = FileFeedState(1, stamps, files_done=3, rows=300)
    write_document(history_state(tmp_path / "users.json"), state)
    coordinator._on_event({"event": "progress", "state": TOPIC})
    view = coordinator.view()
    assert view is not None
    assert (view.chunks_done, view.chunks_total, view.rows_total) == (3, 4, 300)


def test_a_lost_changelog_is_copied_again_with_its_files(tmp_path: Path) -> None:
    coordinator = coordinator_of(tmp_path)
    file = history_state(tmp_path / "users.json")
    write_document(file, FileFeedState(1, (FileStamp("a", 1, 1),), files_done=1))
    coordinator._abandon("the changelog topic is gone")
    kept = read_document(file, FileFeedState)
    assert kept is not None
    assert (kept.needed, kept.is_copied) == ("the changelog topic is gone", False)


def test_nothing_is_acknowledged_while_files_are_read(tmp_path: Path) -> None:
    coordinator = coordinator_of(tmp_path)
    coordinator._on_event({"event": "progress", "state": files(1)})
    request = Request("id-1", "acknowledge", {"cause": "snapshot-unproven", "reason": "x"}, 1, "me")
    with pytest.raises(NothingToAcknowledgeError):
        coordinator.acknowledge(request)
