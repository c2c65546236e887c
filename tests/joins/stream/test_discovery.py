"""New topics of a pattern on a real broker: when they are looked for, and what a failure costs."""

import pytest

from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import MOST_TOPICS, NO_TOPICS, StreamTopic, StreamTopics
from joins.stream.watches import TopicDiscovery
from service.embedded.process import free_port
from tests.support.topics import create_topic, unique_name


@pytest.fixture
def prefix():
    return unique_name("found")


@pytest.fixture
def discovery(kafka, prefix):
    made = TopicDiscovery(KafkaOptions(kafka.bootstrap_servers, ""), f"{prefix}-.*", 3_600.0)
    yield made
    made.close()


def test_topics_are_looked_for_at_once_and_until_they_are_known(kafka, prefix, discovery):
    servers, known = kafka.bootstrap_servers, StreamTopics.one("other", "id")
    for name in ("z", "b", "a"):
        create_topic(servers, f"{prefix}-{name}")
    new = discovery.look(known)
    assert new.names == ("other", *(f"{prefix}-{name}" for name in "abz"))
    assert all(topic.topic_id for topic in new.topics)
    assert discovery.look(known) == new, "nobody has taken them yet"
    assert discovery.look(new) == new
    create_topic(servers, f"{prefix}-c")
    assert discovery.look(new) == new, "it is not the time to look again"


def test_a_failure_is_told_and_not_asked_again_at_once():
    nobody = TopicDiscovery(KafkaOptions(f"127.0.0.1:{free_port()}", ""), ".*", 3_600.0)
    known = StreamTopics.one("a")
    with pytest.raises(SourceError):
        nobody.look(known)
    assert nobody.look(known) == known
    nobody.close()


def test_more_topics_than_a_stream_can_have_are_told(kafka, prefix, discovery):
    create_topic(kafka.bootstrap_servers, f"{prefix}-a")
    most = NO_TOPICS.with_more(StreamTopic(f"t{n}") for n in range(MOST_TOPICS))
    with pytest.raises(
        SourceError, match=f"{MOST_TOPICS + 1} topics, expected at most {MOST_TOPICS}"
    ):
        discovery.look(most)
