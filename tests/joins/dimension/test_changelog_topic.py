"""The changelog topic: whatever happens to it, its table is copied before another one is read."""

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.dimension.changelog_topic import ChangelogTopic, first_before
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from tests.support.topics import (
    changelog_topic,
    consume,
    create_topic,
    delete_topics,
    produce,
    unique_name,
)
from tests.support.wait import wait_until

RECORDS = 3
CHANGES = {"deleted": None, "fewer": RECORDS - 1, "as_many": RECORDS, "more": RECORDS + 1}
DEATHS = ("before_it_is_kept", "behind_the_deletion", "behind_the_creation")
LOSSES = {name: (records, "none") for name, records in CHANGES.items()}
LOSSES |= {f"more_{death}": (CHANGES["more"], death) for death in DEATHS}


class KilledError(Exception):
    pass


def killed(*_):
    raise KilledError


def make_and_die(cluster, name):
    cluster.create(name, 2, 1, {})
    raise KilledError


@pytest.fixture
def known(kafka, tmp_path):
    """A topic with records that was found, and how far it was committed."""
    kafka_options = KafkaOptions(
        kafka.bootstrap_servers, create_topic(kafka.bootstrap_servers, unique_name(), partitions=2)
    )
    produce(
        kafka.bootstrap_servers,
        kafka_options.topic,
        [{"n": n} for n in range(RECORDS)],
        partition=0,
    )
    topic = changelog_topic(kafka_options, 2, tmp_path / "topic.json")
    topic.ensure(killed)
    return kafka_options, topic, tmp_path / "topic.json"


def change(kafka, cluster, records):
    delete_topics(kafka.bootstrap_servers, kafka.topic)
    wait_until(lambda: cluster.describe(kafka.topic) is None, what="the topic is gone")
    if records is not None:
        create_topic(kafka.bootstrap_servers, kafka.topic, partitions=2)
        junk = [{"junk": n} for n in range(records)]
        produce(kafka.bootstrap_servers, kafka.topic, junk, partition=0)


@pytest.mark.parametrize(("records", "death"), LOSSES.values(), ids=LOSSES)
def test_a_topic_that_is_another_one_is_made_again_behind_a_word(known, records, death):
    kafka, topic, file = known
    cluster = KafkaCluster(kafka, keep_open=True)
    assert topic.look(cluster) == {0: RECORDS, 1: 0}
    change(kafka, cluster, records)
    wait_until(lambda: topic.look(cluster) is None and topic.lost, what="the loss is seen")
    before = topic.now
    if death != "none":
        makes = {
            "behind_the_deletion": killed,
            "behind_the_creation": lambda own: make_and_die(own, kafka.topic),
        }
        dies = ChangelogTopic(kafka, kafka.topic, 2, makes.get(death, killed), file)
        kept = []
        with pytest.raises(KilledError):
            dies.ensure(killed if death == "before_it_is_kept" else kept.append)
        assert len(kept) == (death != "before_it_is_kept")
        topic = changelog_topic(kafka, 2, file)
    words = []
    topic.ensure(words.append)
    assert len(words) == 1, "the table is copied again"
    assert f'changelog topic "{kafka.topic}"' in words[0]
    assert topic.now.topic_id == cluster.require(kafka.topic).topic_id != before.topic_id
    assert consume(kafka.bootstrap_servers, kafka.topic) == []
    first = topic.now.first
    assert first_before(first + 5) == first > RECORDS
    assert topic.look(cluster) == {0: first, 1: first}
    again = changelog_topic(kafka, 2, file)
    again.ensure(killed)
    assert again.now == topic.now
    cluster.close()


@pytest.mark.parametrize("was_seen", [False, True], ids=["committed", "seen"])
def test_ends_that_go_back_are_a_loss(known, was_seen):
    kafka, topic, _ = known
    cluster = KafkaCluster(kafka, keep_open=True)
    if was_seen:
        topic._ends = {0: RECORDS + 1}  # a broker that has lost a record shows fewer
    else:
        topic.reached = lambda: {0: RECORDS + 1}
    assert topic.look(cluster) is None
    assert "ends at offset 3, expected 4 or more" in topic.lost
    words = []
    topic.ensure(words.append)
    assert words == [
        f'partition 0 of changelog topic "{kafka.topic}" ends at offset 3, expected 4 or more'
    ]
    cluster.close()


def test_a_refusal_that_lasts_is_shown(known):
    """One of a moment may be a deletion that the next look sees."""
    kafka, topic, _ = known
    asked = []

    class RefusedCluster(KafkaCluster):
        def end_offsets(self, topic):
            asked.append(topic)
            raise SourceError("topic is not allowed", hint="")

    cluster = RefusedCluster(kafka, keep_open=True)
    with pytest.raises(SourceError, match="not allowed"):
        wait_until(lambda: topic.look(cluster) is not None, what="the refusal is raised")
    assert len(asked) > 1
    assert topic.look(KafkaCluster(kafka)) == {0: RECORDS, 1: 0}
    cluster.close()


def test_a_table_that_has_all_its_rows_is_not_copied_again(known):
    kafka, topic, _ = known
    cluster = KafkaCluster(kafka, keep_open=True)
    change(kafka, cluster, None)
    topic.has_all = lambda: True
    topic.ensure(killed)
    assert topic.now.number == 1
    cluster.close()


def test_a_topic_that_was_never_there_is_made(kafka, tmp_path):
    options = KafkaOptions(kafka.bootstrap_servers, unique_name())
    topic, words = changelog_topic(options, 2, tmp_path / "topic.json"), []
    topic.ensure(words.append)
    assert len(words) == 1
    assert KafkaCluster(options).require(options.topic).partitions == (0, 1)


def test_internal_topics_are_never_suggested(known):
    kafka, _, _ = known
    internal = f"sluice.{kafka.topic}.users"
    create_topic(kafka.bootstrap_servers, internal)
    cluster = KafkaCluster(kafka)
    with pytest.raises(SourceError) as caught:
        cluster.require(f"{internal}x")
    assert "sluice." not in caught.value.hint
    delete_topics(kafka.bootstrap_servers, internal)
