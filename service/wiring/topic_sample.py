"""A sample of somebody's topic, and what it looks like; nothing of it is kept."""

from collections.abc import Mapping

import pyarrow as pa

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.registry import SchemaRegistry
from joins.kernels.debezium.inspect import TopicReport, inspect_topic
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.connections import RegistryOptions
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics

_COLUMNS = ("key", "value", "partition", "offset")


def inspected(kafka: KafkaOptions, registry: RegistryOptions | None, records: int) -> TopicReport:
    """What the oldest and the newest records of each partition look like.

    Args:
        kafka: the topic.
        registry: of a topic in Avro, None if it is of JSON.
        records: how many of each partition, at most.

    Raises:
        SourceError: the topic or the registry cannot be read.
    """
    sample = _sample(kafka, records)
    if registry is None:
        return inspect_topic(sample)
    with SchemaRegistry(registry) as schemas:
        memory = AvroMemory(schemas.avro_schema), AvroMemory(schemas.avro_schema)
        return inspect_topic(sample, memory)


def _sample(kafka: KafkaOptions, records: int) -> pa.RecordBatch:
    cluster = KafkaCluster(kafka)
    description = cluster.require(kafka.topic)
    name = StreamTopics.one(kafka.topic, description.topic_id)
    oldest, ends = cluster.beginning_offsets(description), cluster.end_offsets(description)
    half = max(1, records // 2)
    first = {at: (oldest[at], min(end, oldest[at] + half)) for at, end in ends.items()}
    newest = {at: (max(first[at][1], end - half), end) for at, end in ends.items()}
    batches: list[pa.RecordBatch] = []
    with KafkaRecords(kafka) as reader:
        for ranges in (_filled(first), _filled(newest)):
            batches += reader.batches(name, ranges, _COLUMNS) if ranges else ()
    if not batches:
        kinds = (pa.binary(), pa.binary(), pa.int32(), pa.int64())
        return pa.RecordBatch.from_arrays([pa.nulls(0, k) for k in kinds], names=list(_COLUMNS))
    whole = pa.Table.from_batches(batches).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    return whole.combine_chunks().to_batches()[0]


def _filled(ranges: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    return {at: (first, end) for at, (first, end) in ranges.items() if first < end}
