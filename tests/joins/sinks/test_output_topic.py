"""Topics of outputs: an operator accepts the change that was shown, and no other."""

import pytest

from joins.plan.errors import OutputTopicChangedError
from joins.sinks import kafka
from joins.sinks.kafka import OutputTopic


def test_of_two_topics_that_have_changed_the_one_is_accepted_whose_fault_was_shown(
    tmp_path, monkeypatch
):
    ids = {"a": "1", "b": "1"}
    monkeypatch.setattr(kafka, "topic_id_of", lambda _, name: ids[name])
    topics = [OutputTopic(name, None, tmp_path / f"{name}.json") for name in ids]
    for topic in topics:
        topic.take({0: (0, 5)})
        topic.write({"batch": 0, "topic_id": topic.checked_id()})
    ids |= {"a": "2", "b": "2"}
    first, second = topics
    with pytest.raises(OutputTopicChangedError, match='output topic "a" has id 2'):
        first.checked_id()
    for topic in topics:
        topic.accept()
    assert first.checked_id() == "2"
    with pytest.raises(OutputTopicChangedError, match='output topic "b" has id 2'):
        second.checked_id()
    second.accept()
    assert OutputTopic("b", None, tmp_path / "b.json").checked_id() == "2"


def test_lost_rows_of_one_topic_are_not_accepted_with_those_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka, "topic_id_of", lambda *_: "1")
    first, second = (OutputTopic(name, None, tmp_path / f"{name}.json") for name in "ab")
    for topic in (first, second):
        topic.take({0: (0, 5)})
    for topic, is_shown in ((first, True), (second, False)):
        if is_shown:
            with pytest.raises(OutputTopicChangedError, match="ended at offset 3, expected 5"):
                topic.take({0: (3, 4)})
        topic.accept()
    first.take({0: (3, 4)})
    with pytest.raises(OutputTopicChangedError, match='partition 0 of output topic "b"'):
        second.take({0: (3, 4)})
