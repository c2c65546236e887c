"""The oracle reads a connector's topic: rows, snapshots that begin again, what is whole."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.reliability.oracle_changelog import Cut, read_cuts
from tests.reliability.oracle_history import OracleRefusalError
from tests.reliability.oracle_topic import TopicHistory, read_record
from tests.reliability.test_oracle import entry

pytestmark = pytest.mark.matrix

FIRST, ROW, LAST, STREAMED = "first", "true", "last_in_data_collection", "false"


class Topic:
    """Records of two partitions; a key lies where its number says."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self._ends = [0, 0]

    def add(self, key: int, name: str | None, mark: str, position: int = 0) -> None:
        op = "d" if name is None else "r" if mark != STREAMED else "u"
        row = None if name is None else {"id": key, "name": name}
        source = {"snapshot": mark, "file": "binlog.000001", "pos": position}
        before = {"id": key, "name": "?"} if row is None else None
        value = {"before": before, "after": row, "op": op, "source": source}
        self.put(key, json.dumps(value).encode())

    def put(self, key: int, value: bytes | None) -> None:
        partition = key % 2
        made = {
            "partition": partition,
            "offset": self._ends[partition],
            "timestamp": 1_000 + len(self.records),
            "key": json.dumps({"id": key}).encode(),
            "value": value,
        }
        self._ends[partition] += 1
        self.records.append(SimpleNamespace(**made))

    def history(self) -> TopicHistory:
        told = [one for record in self.records if (one := read_record(record, "id"))]
        return TopicHistory(told, "id", ("name",))


def row_at(history: TopicHistory, key: int, offset: int, level: int) -> str | None:
    codes = history.codes([key], np.array([level]))
    at = history.before(history.place(key % 2, (0, offset, 0)))
    change = int(history.at(codes, np.array([at]))[0])
    return None if change < 0 else history.columns["name"][change]


def given_up_and_begun_again() -> Topic:
    """A snapshot of three rows ends after two; the second one has two rows, then changes."""
    topic = Topic()
    topic.add(1, "a", FIRST, 7)  # partition 1, offset 0
    topic.add(2, "b", ROW, 7)  # partition 0, offset 0
    topic.add(1, "A", FIRST, 9)  # partition 1, offset 1
    topic.add(4, "d", LAST, 9)  # partition 0, offset 1
    topic.add(1, None, STREAMED, 11)  # partition 1, offset 2
    topic.put(1, None)  # partition 1, offset 3: its tombstone
    topic.add(3, "c", STREAMED, 12)  # partition 1, offset 4
    return topic


def test_rows_of_the_same_millisecond_are_of_one_snapshot_whatever_their_partitions() -> None:
    topic = Topic()
    for key, mark in ((1, FIRST), (2, ROW), (3, ROW), (4, LAST)):
        topic.add(key, f"user {key}", mark, 7)
    for record in topic.records:
        record.timestamp = 1_000
    history = topic.history()
    assert len(history.attempts) == 1
    assert row_at(history, 2, 0, 0) == "user 2"
    assert history.is_whole({0: (0, 1, 0), 1: (0, 1, 0)})


STATES = {
    "before_anything": (1, -1, 0, None),
    "a_row_of_the_first_one": (2, 0, 0, "b"),
    "the_second_one_has_it_anew": (1, 1, 1, "A"),
    "what_the_second_one_has_not_is_gone": (2, 1, 1, None),
    "but_it_is_there_as_long_as_the_second_one_is_not_whole": (2, 1, 0, "b"),
    "a_deleted_row": (1, 3, 1, None),
    "a_change_behind_it": (3, 4, 1, "c"),
    "before_that_change": (3, 3, 1, None),
    "a_key_that_never_was": (9, 4, 1, None),
}


@pytest.mark.parametrize(("key", "offset", "level", "name"), STATES.values(), ids=STATES)
def test_a_topic_tells_the_row_at_each_offset(key, offset, level, name):
    assert row_at(given_up_and_begun_again().history(), key, offset, level) == name


WHOLE = {
    "nothing_is_held": ({}, 0, False),
    "a_snapshot_that_was_given_up_never_is": ({0: 0, 1: 0}, 0, False),
    "the_second_one_has_begun": ({0: 0, 1: 1}, 1, False),
    "all_of_it_is_held": ({0: 1, 1: 1}, 1, True),
    "all_of_it_and_more": ({0: 1, 1: 4}, 1, True),
}


@pytest.mark.parametrize(("ends", "level", "whole"), WHOLE.values(), ids=WHOLE)
def test_a_copy_is_whole_with_all_rows_of_the_newest_snapshot_that_has_begun(ends, level, whole):
    history = given_up_and_begun_again().history()
    places = {partition: (0, offset, 0) for partition, offset in ends.items()}

    assert history.level(places) == level
    assert history.is_whole(places) is whole


def test_a_snapshot_that_begins_again_without_a_change_between_is_another_one():
    topic = Topic()
    for _ in range(2):
        topic.add(1, "a", FIRST, 7)
        topic.add(2, "b", ROW, 7)

    assert len(topic.history().attempts) == 2


def test_without_a_mark_of_its_end_changes_behind_it_show_it():
    topic = Topic()
    topic.add(1, "a", FIRST, 7)
    held = {1: (0, 0, 0)}
    assert not topic.history().is_whole(held)
    topic.add(3, "c", STREAMED, 8)
    assert topic.history().is_whole(held)


REFUSED = {
    "truncate": {"op": "t", "source": {}},
    "another_key": {"op": "c", "after": {"id": 2}, "before": None, "source": {}},
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_judged_is_refused(value):
    topic = Topic()
    topic.put(1, json.dumps(value).encode())
    with pytest.raises(OracleRefusalError):
        topic.history()


def test_a_version_of_a_topics_changelog_has_its_offsets_also_while_it_is_copied(tmp_path):
    root = tmp_path / "t"
    root.mkdir()
    entry(root, 0, add={"r": [("r", 0, 0, 0, 0, 1), ("r", 0, 0, 0, 1, 1)]})
    entry(root, 1, add={"w": [("w", 0, 0, -1, 0, 1), ("w", 0, 0, -1, 1, 1)]})
    entry(root, 2, add={"u": [("r", 0, 1, 0, 1, 2)]})

    cuts = read_cuts(root, [0, 1, 2], partitions=2, by_offset=True)

    copied, later = {0: (0, 0, 0), 1: (0, 0, 0)}, {0: (0, 0, 0), 1: (0, 1, 0)}
    assert cuts[0] == Cut(0, copied, copied, complete=False)
    assert cuts[1] == Cut(1, copied, copied, complete=True, whole=copied)
    assert cuts[2] == Cut(2, later, later, complete=False, whole=copied)
