"""Every kind of topic that a job reads or writes is known by its id.

Each case uses a topic with three records, which is then deleted and created again with fewer, as
many or more. It must be noticed with a reason, and nothing may go on as if it were the same topic.
A shared table has its own job's changelog; a topic of `datagen` is a stream like any other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.topic.decoding import NoticeTopic
from joins.durable.failpoints import Failpoints
from joins.lookback.explain_row import Coordinates
from joins.plan.errors import OutputTopicChangedError, RecordsExpiredError, SnapshotNeededError
from joins.plan.plan import KafkaOptions, KafkaSink
from joins.sinks.kafka import KafkaLetterWriter, KafkaSinkWriter, TransactionalSinkWriter
from service.jobs.inspect.past import open_explainer, open_replayer
from tests.joins.batch.test_probe_control import Job
from tests.support.changelog import record
from tests.support.foreign_topics import Connector, topic_feed
from tests.support.lanes import some_of
from tests.support.past_job import open_gate, past_job
from tests.support.probe import PIN, probe_task
from tests.support.topic_work import topic_work
from tests.support.topics import (
    changelog_topic,
    create_topic,
    delete_topics,
    produce,
    unique_name,
)
from tests.support.wait import wait_until

RECORDS = 3
AFTER = {"fewer": 0, "as_many": RECORDS, "more": 4 * RECORDS}
RECREATED = "created again"


@dataclass(frozen=True)
class Place:
    """A broker and a directory for durable files."""

    kafka: Any
    directory: Path
    spark: SparkSession

    @property
    def servers(self) -> str:
        return str(self.kafka.bootstrap_servers)

    def options(self, topic: str) -> KafkaOptions:
        return KafkaOptions(self.servers, topic)

    def filled(self) -> str:
        topic = create_topic(self.servers)
        produce(self.servers, topic, [{"n": n} for n in range(RECORDS)], partition=0)
        return topic

    def recreate(self, topic: str, records: int) -> None:
        cluster = KafkaCluster(self.options(topic))
        delete_topics(self.servers, topic)
        wait_until(lambda: cluster.describe(topic) is None, what="the topic is gone")
        create_topic(self.servers, topic)
        produce(self.servers, topic, [{"other": n} for n in range(records)], partition=0)


Steps = Iterator[str]
"""First the topic, then, once it was created again, the reason that is shown."""


def stream(place: Place) -> Steps:
    job = Job(place.directory, place.kafka)
    control = job.control()
    control.open()
    assert job.look(control) is None
    yield job.topic
    wait_until(lambda: job.look(control) == "topic-identity-changed", what="it is noticed")
    assert not control.may_run()
    stalled = job.stalls.first()
    control.close()
    assert stalled is not None
    yield stalled[1].message


def past_stream(place: Place) -> Steps:
    """A replay of a batch, and a question about a record that no batch has."""
    job = past_job(place.directory, place.servers)
    open_gate(job)
    job.change("users", record("r", 1, 5, 0))
    job.batch({"user_id": 1}, {"user_id": 2}, {"user_id": 3})
    job.produce({"user_id": 1})
    yield job.topic
    with open_replayer(job.directory) as replayer, pytest.raises(RecordsExpiredError) as replayed:
        replayer.replay(0, diff=True)
    with (
        open_explainer(job.directory, None, job.topic) as explainer,
        pytest.raises(RecordsExpiredError) as explained,
    ):
        explainer.explain(Coordinates(job.topic, 0, RECORDS))
    assert "expected" in replayed.value.message
    yield explained.value.message


def changelog(place: Place) -> Steps:
    topic = changelog_topic(place.options(place.filled()), 1, place.directory / "topic.json")
    topic.ensure(pytest.fail)
    yield topic.name
    cluster = KafkaCluster(place.options(topic.name), keep_open=True)
    wait_until(lambda: topic.look(cluster) is None and topic.lost, what="it is noticed")
    cluster.close()
    reasons: list[str] = []
    topic.ensure(reasons.append)
    assert reasons == [topic.lost or reasons[0]], "the table is copied again"
    yield reasons[0]


def foreign(evidence: bool) -> Callable[[Place], Steps]:
    def steps(place: Place) -> Steps:
        connector = Connector(place.servers)
        connector.snapshot({1: "a", 2: "b", 3: "c"})
        source = topic_feed(connector, place.directory, **({} if evidence else {"evidence": None}))
        assert source.run()["complete"]
        yield connector.topic
        with pytest.raises(SnapshotNeededError) as caught:
            source.run()
        connector.close()
        yield caught.value.message

    return steps


def notifications(place: Place) -> Steps:
    """All of the other topic is read; what the first one said is not repeated."""
    connector = Connector(place.servers)
    kafka = place.options(connector.notices)
    for _ in range(RECORDS):
        connector.notify("STARTED")
    first = NoticeTopic(kafka, connector.topic, ("", ()))
    assert len(first.read(None)) == RECORDS
    yield connector.notices
    connector.notify("COMPLETED")
    later = NoticeTopic(kafka, connector.topic, first.read_to)
    notices = later.read(None)
    assert [notice.kind.value for notice in notices] == ["completed"]
    assert later.read_to[0] != first.read_to[0]
    for each in (first, later):
        each.close()
    connector.close()
    yield RECREATED


class Batches:
    """Batches of three clicks, as a runner sends them."""

    def __init__(self, place: Place, sink: KafkaSink) -> None:
        clicks = create_topic(place.servers)
        produce(place.servers, clicks, [{"user_id": n} for n in range(RECORDS)], partition=0)
        self._work = topic_work(place.spark, place.servers, clicks)
        self._task = probe_task(place.directory, sink)

    def send(self, writer: KafkaSinkWriter, batch: int) -> None:
        pin = replace(PIN, batch=batch)
        writer.commit(writer.run(self._work, self._task, pin), pin, 2)


def output(*, transactional: bool) -> Callable[[Place], Steps]:
    def steps(place: Place) -> Steps:
        sink, name = KafkaSink(place.options(place.filled())), unique_name("transactions")
        progress, send = place.directory / "sink.json", Batches(place, sink).send

        def writer() -> KafkaSinkWriter:
            if transactional:
                return TransactionalSinkWriter(sink, progress, name, Failpoints(""))
            return KafkaSinkWriter(sink, progress)

        living = writer()
        send(living, 7)
        send(living, 8)
        yield sink.kafka.topic
        messages = set()
        for own in (living, writer()):  # a restart knows it, too
            with pytest.raises(OutputTopicChangedError) as caught:
                send(own, 9)
            messages.add(caught.value.message)
            assert own.committed_counts(replace(PIN, batch=9)) is None
        own.accept()
        living = writer()
        send(living, 9)
        counts = living.committed_counts(replace(PIN, batch=9))
        assert counts is not None
        assert counts["joined"] == RECORDS
        send(writer(), 10)
        (message,) = messages
        yield message

    return steps


def letters(place: Place) -> Steps:
    """Rows of replayed dead letters go where the batches went."""
    sink, progress = KafkaSink(place.options(place.filled())), place.directory / "sink.json"
    Batches(place, sink).send(KafkaSinkWriter(sink, progress), 7)
    yield sink.kafka.topic
    with pytest.raises(OutputTopicChangedError) as caught:
        KafkaLetterWriter(sink, (), progress).write((), 1, 2, dict)
    yield caught.value.message


KINDS: dict[str, Callable[[Place], Steps]] = {
    "stream": stream,
    "stream_that_is_looked_back_at": past_stream,
    "changelog": changelog,
    "upsert_kafka_dimension": foreign(evidence=False),
    "debezium_topic": foreign(evidence=True),
    "notifications": notifications,
    "output_at_least_once": output(transactional=False),
    "output_exactly_once": output(transactional=True),
    "output_of_replayed_dead_letters": letters,
}


@pytest.mark.parametrize("records", some_of(AFTER, "more"))
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_topic_that_was_created_again_is_noticed(kind, records, kafka, tmp_path, spark):
    place = Place(kafka, tmp_path, spark)
    steps = kind(place)
    topic = next(steps)
    place.recreate(topic, records)
    reason = next(steps)
    assert RECREATED in reason or "expected" in reason
