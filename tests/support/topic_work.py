"""Records of a topic as the tasks of a batch get them."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from joins.adapters.kafka.records import OF_THE_PROBE
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from joins.worker.topic_reader import TopicReader, range_item
from joins.worker.work import Work
from tests.support.topics import end_offsets


def topic_work(
    spark: SparkSession, servers: str, topic: str, ends: Mapping[int, int] | None = None
) -> Work:
    """All that is in the topic, up to `ends` if they are there; a task each partition."""
    reader = TopicReader(KafkaOptions(servers, topic), StreamTopics.one(topic), OF_THE_PROBE)
    upto = end_offsets(servers, topic) if ends is None else ends
    items = [range_item({partition: (0, end)}) for partition, end in sorted(upto.items())]
    return Work.of(spark, items, reader)
