"""Topics of a real broker: make, fill and read them."""

import json
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.options import NetClient
from joins.dimension.changelog_topic import ChangelogTopic
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import StreamTopics
from tests.support.wait import wait_until

SOON = {"kafka_client": NetClient}  # others wait for 100 ms before they ask about a topic


def changelog_topic(kafka: KafkaOptions, partitions: int, file: Path) -> ChangelogTopic:
    def make(cluster: KafkaCluster) -> None:
        cluster.create(kafka.topic, partitions, 1, {})

    return ChangelogTopic(kafka, kafka.topic, partitions, make, file)


def unique_name(prefix: str = "t") -> str:
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def create_topic(
    bootstrap_servers: str,
    topic: str | None = None,
    *,
    partitions: int = 1,
    config: dict[str, str] | None = None,
) -> str:
    """Create `topic`, or one with a new name, and return its name."""
    name = topic or unique_name("topic")
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, **SOON)
    try:
        new = NewTopic(name, partitions, 1, topic_configs=config or {})
        admin.create_topics([new], wait_for_metadata=True)
    finally:
        admin.close()
    return name


def identified(bootstrap_servers: str, topic: str) -> StreamTopics:
    cluster = KafkaCluster(KafkaOptions(bootstrap_servers, topic))
    return StreamTopics.one(topic, cluster.require(topic).topic_id)


def add_partitions(bootstrap_servers: str, topic: str, total: int) -> None:
    """Let `topic` have `total` partitions."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, **SOON)
    try:
        admin.create_partitions({topic: NewPartitions(total)})
    finally:
        admin.close()
    wait_until(lambda: len(end_offsets(bootstrap_servers, topic)) == total, what="the partitions")


def delete_topics(bootstrap_servers: str, *topics: str) -> None:
    """Delete `topics`."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers, **SOON)
    try:
        admin.delete_topics(list(topics))
    finally:
        admin.close()


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def produce(
    bootstrap_servers: str,
    topic: str,
    values: Iterable[Any],
    *,
    partition: int | None = None,
    keys: Iterable[Any] | None = None,
    timestamp_ms: int | None = None,
) -> list[tuple[int, int]]:
    """Send `values` (bytes as they are, None as null, the rest as JSON) and wait for all.

    Returns:
        (partition, offset) of each record.
    """
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", linger_ms=5, **SOON)
    try:
        pairs = (
            [(None, v) for v in values] if keys is None else list(zip(keys, values, strict=True))
        )
        sent = [
            producer.send(
                topic,
                value=_bytes(v),
                key=_bytes(k),
                partition=partition,
                timestamp_ms=timestamp_ms,
            )
            for k, v in pairs
        ]
        producer.flush(timeout=60)
        written = [future.get(timeout=60) for future in sent]
        return [(one.partition, one.offset) for one in written]
    finally:
        producer.close()


def end_offsets(bootstrap_servers: str, topic: str) -> dict[int, int]:
    return _offsets(bootstrap_servers, topic, KafkaConsumer.end_offsets)


def first_offsets(bootstrap_servers: str, topic: str) -> dict[int, int]:
    return _offsets(bootstrap_servers, topic, KafkaConsumer.beginning_offsets)


def _offsets(
    bootstrap_servers: str, topic: str, of: Callable[[Any, list[TopicPartition]], Any]
) -> dict[int, int]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, **SOON)
    try:
        parts = [
            TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        return {tp.partition: offset for tp, offset in of(consumer, parts).items()}
    finally:
        consumer.close()


def consume(
    bootstrap_servers: str, topic: str, *, count: int | None = None, deadline_s: float = 150.0
) -> list[Any]:
    """The records of `topic` from its beginning: the first `count`, or all that there are now.

    Raises:
        TimeoutError: fewer than `count` have come within `deadline_s`.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        enable_auto_commit=False,
        isolation_level="read_committed",
        **SOON,
    )
    deadline = time.monotonic() + deadline_s
    records: list[Any] = []
    try:
        parts = [
            TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)

        def complete() -> bool:
            if count is not None:
                return len(records) >= count
            return all(consumer.position(tp) >= end for tp, end in ends.items())

        while not complete():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(records)} of {count} records in {topic}")
            for batch in consumer.poll(timeout_ms=200).values():
                records.extend(batch)
    finally:
        consumer.close()
    return records if count is None else records[:count]


def consume_json(bootstrap_servers: str, topic: str, **options: Any) -> list[Any]:
    found = consume(bootstrap_servers, topic, **options)
    return [None if record.value is None else json.loads(record.value) for record in found]
