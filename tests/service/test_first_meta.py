"""The durable beginning of a job: its stream is the one that was submitted."""

from dataclasses import replace

import pytest

from joins.adapters.kafka.cluster import KafkaCluster
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions, KafkaSource, StartupMode
from service.wiring.meta import _read
from tests.support.probe import PLAN
from tests.support.topics import create_topic, delete_topics, produce
from tests.support.wait import wait_until


@pytest.mark.parametrize("records", [1, 2, 3], ids=["fewer", "as_many", "more"])
def test_a_stream_that_was_created_again_before_the_first_start_is_refused(kafka, records):
    servers = kafka.bootstrap_servers
    options = KafkaOptions(servers, create_topic(servers))
    produce(servers, options.topic, [{"n": n} for n in range(2)])
    cluster = KafkaCluster(options)
    source = KafkaSource(
        options,
        startup_mode=StartupMode.SPECIFIC,
        startup_offsets=((0, 2),),
        topic_ids=(cluster.require(options.topic).topic_id,),
    )
    plan = replace(PLAN, probe=replace(PLAN.probe, source=source))
    read = _read(plan, source).topics.topics
    assert tuple(topic.topic_id for topic in read) == source.topic_ids
    delete_topics(servers, options.topic)
    wait_until(lambda: cluster.describe(options.topic) is None, what="the topic is gone")
    create_topic(servers, options.topic)
    produce(servers, options.topic, [{"n": n} for n in range(records)])
    with pytest.raises(SourceError, match="deleted and created again since") as caught:
        _read(plan, source)
    assert "it has joined nothing yet" in caught.value.hint
