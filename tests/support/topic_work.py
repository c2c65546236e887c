"""Records of a topic, or records at hand, as the tasks of a batch get them."""

from base64 import b64decode, b64encode
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from joins.adapters.kafka.records import OF_THE_PROBE
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from joins.worker.topic_reader import TopicReader, range_item
from joins.worker.work import Work
from tests.support.topics import end_offsets


def topic_work(spark: SparkSession, servers: str, topic: str) -> Work:
    """All that is in the topic; a task each partition."""
    reader = TopicReader(KafkaOptions(servers, topic), StreamTopics.one(topic), OF_THE_PROBE)
    ends = sorted(end_offsets(servers, topic).items())
    items = [range_item({partition: (0, end)}) for partition, end in ends]
    return Work(spark, items, reader)


def work_of(spark: SparkSession, *tasks: pa.RecordBatch) -> Work:
    """Records at hand, a task each."""
    return Work(spark, [_item(records) for records in tasks], _records)


def _item(records: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    return b64encode(sink.getvalue()).decode()


def _records(items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for item in (text for batch in items for text in batch.column(0).to_pylist()):
        yield from pa.ipc.open_stream(b64decode(item))
