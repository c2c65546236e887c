"""Topic access for the command line: create, list, delete, write, read or inspect a sample."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.kafka.cluster import KafkaCluster, TopicDescription, without_internal
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.kafka.topic_writer import TopicWriter, Written
from joins.adapters.registry import SchemaRegistry
from joins.kernels.debezium.inspect import TopicReport, inspect_topic
from joins.kernels.expressions.casts import whole_batch
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics

_SAMPLED = ("key", "value", "partition", "offset")


def inspected(kafka: KafkaOptions, registry: RegistryOptions | None, records: int) -> TopicReport:
    """A report on the oldest and newest records, at most `records` per partition.

    `registry` is for a topic in Avro. Raises SourceError.
    """
    with _reached():
        sample = _sample(kafka, records)
    if registry is None:
        return inspect_topic(sample)
    with SchemaRegistry(registry) as schemas:
        memory = AvroMemory(schemas.avro_schema), AvroMemory(schemas.avro_schema)
        return inspect_topic(sample, memory)


def _sample(kafka: KafkaOptions, records: int) -> pa.RecordBatch:
    cluster = KafkaCluster(kafka)
    description = cluster.require(kafka.topic, _LIST)
    name = StreamTopics.one(kafka.topic, description.topic_id)
    oldest, ends = cluster.beginning_offsets(description), cluster.end_offsets(description)
    half = max(1, records // 2)
    first = {at: (oldest[at], min(end, oldest[at] + half)) for at, end in ends.items()}
    newest = {at: (max(first[at][1], end - half), end) for at, end in ends.items()}
    batches: list[pa.RecordBatch] = []
    with KafkaRecords(kafka) as reader:
        for ranges in (_filled(first), _filled(newest)):
            batches += reader.batches(name, ranges, _SAMPLED) if ranges else ()
    if not batches:
        kinds = (pa.binary(), pa.binary(), pa.int32(), pa.int64())
        return pa.RecordBatch.from_arrays([pa.nulls(0, k) for k in kinds], names=list(_SAMPLED))
    whole = pa.Table.from_batches(batches).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    return whole_batch(whole.to_batches())


def _filled(ranges: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    return {at: (first, end) for at, (first, end) in ranges.items() if first < end}


_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
_LIST = "Run sluice topic ls to see the topics; sluice topic create makes one."
_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}")
_AWAY = "Start it with sluice up, or name the brokers of another one with --bootstrap-servers."
Write = Callable[[Iterable[tuple[bytes | None, bytes | None]]], list[Written]]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record; `timestamp_ms` is None outside the years 1 to 9999, as in jobs."""

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def make_topic(
    kafka: KafkaOptions, partitions: int, replication: int, config: Mapping[str, str]
) -> None:
    """Create a topic; `replication` -1 takes the cluster's default. Raises SourceError."""
    if not _NAME.fullmatch(kafka.topic):
        raise SourceError(
            f'topic "{kafka.topic}" has no name that Kafka accepts, expected 1 to 249 of A to Z, '
            'a to z, 0 to 9, ".", "_" and "-"',
            hint='Choose another name, such as "clicks".',
        )
    with _reached():
        cluster = KafkaCluster(kafka)
        there = cluster.describe(kafka.topic)
        if there is not None:
            count = len(there.partitions)
            raise SourceError(
                f'topic "{kafka.topic}" is there already, with {count} '
                f"partition{'' if count == 1 else 's'}",
                hint="Use it as it is, or choose another name.",
            )
        cluster.create(kafka.topic, partitions, replication, config)


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic; `records` counts offsets, so a compacted topic may have fewer."""

    name: str
    partitions: int
    records: int


def listed_topics(kafka: KafkaOptions, *, every: bool) -> list[ListedTopic]:
    """All topics by name, internal ones only if `every`; raises SourceError."""
    with _reached():
        cluster = KafkaCluster(kafka, keep_open=True)
        try:
            names = sorted(cluster.topics() if every else without_internal(cluster.topics()))
            return _listed(cluster, [*cluster.describe_all(names).values()]) if names else []
        finally:
            cluster.close()


def _listed(cluster: KafkaCluster, topics: Sequence[TopicDescription]) -> list[ListedTopic]:
    """Those that have not been deleted meanwhile."""
    try:
        begins, ends = cluster.ranges_of(topics)
    except SourceUnavailableError:
        raise
    except SourceError:  # of all, as one is gone
        half = len(topics) // 2
        return _listed(cluster, topics[:half]) + _listed(cluster, topics[half:]) if half else []
    records = {name: sum(ends[name].values()) - sum(begins[name].values()) for name in ends}
    return [ListedTopic(each.name, len(each.partitions), records[each.name]) for each in topics]


def delete_topic(kafka: KafkaOptions) -> None:
    """Raises SourceError if there is no such topic."""
    with _reached():
        cluster = KafkaCluster(kafka)
        cluster.require(kafka.topic, _LIST)
        cluster.delete(kafka.topic)


@contextmanager
def writing(kafka: KafkaOptions) -> Iterator[Write]:
    """A function that writes (key, value) records and returns positions. Raises SourceError."""
    with _reached():
        KafkaCluster(kafka).require(kafka.topic, _LIST)
        with TopicWriter(kafka, away=_AWAY) as writer:
            yield writer.write


def peeked(kafka: KafkaOptions, most: int, *, newest: bool) -> list[TopicRecord]:
    """The `most` oldest or newest committed records; raises SourceError.

    They are ordered by time, records without a time last, then by position.
    """
    with _reached():
        cluster = KafkaCluster(kafka)
        topic = cluster.require(kafka.topic, _LIST)
        # Offset ranges that may contain the `most` records, by partition; empty ones are left out
        begins, ends = cluster.beginning_offsets(topic), cluster.end_offsets(topic)
        if newest:
            places = {at: (max(begins[at], end - most), end) for at, end in ends.items()}
        else:
            places = {at: (begins[at], min(end, begins[at] + most)) for at, end in ends.items()}
        ranges = {at: (first, end) for at, (first, end) in places.items() if first < end}
        if not ranges:
            return []
        named = StreamTopics.one(kafka.topic, topic.topic_id)
        with KafkaRecords(kafka) as reader:
            read = [_records(batch) for batch in reader.batches(named, ranges, _COLUMNS)]
    records = sorted(chain(*read), key=_by_time)
    return records[-most:] if newest else records[:most]


def _by_time(record: TopicRecord) -> tuple[bool, int, int, int]:
    time_ms = record.timestamp_ms
    return time_ms is None, time_ms or 0, record.partition, record.offset


def _records(batch: pa.RecordBatch) -> list[TopicRecord]:
    times_ms = pc.divide(batch.column("timestamp").cast(pa.int64()), 1000)  # datetime lacks years
    names = ("partition", "offset", "key", "value", "headers")
    columns = [times_ms.to_pylist(), *(batch.column(name).to_pylist() for name in names)]
    return [
        TopicRecord(partition, offset, timestamp_ms, key, value, tuple(headers or ()))
        for timestamp_ms, partition, offset, key, value, headers in zip(*columns, strict=True)
    ]


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except SourceUnavailableError as exc:
        raise SourceUnavailableError(exc.message, hint=_AWAY, detail=exc.detail) from exc
