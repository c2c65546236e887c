"""The newest records of a topic, for a look at what it is; a client of its own, closed at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import client_options
from joins.plan.causes import detail_of
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import Isolation, KafkaOptions

_WAIT_MS = 1_500
_BOOTSTRAP_MS = 5_000


@dataclass(frozen=True, slots=True)
class NewestRecord:
    """A record as it is."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def newest_records(kafka: KafkaOptions, count: int) -> list[NewestRecord]:
    """About `count` of the newest records over all partitions; none of an empty topic.

    Raises:
        SourceUnavailableError: the cluster does not answer.
        SourceError: it refused us.
    """
    with _consumer(kafka) as consumer:
        parts = [
            TopicPartition(kafka.topic, partition)
            for partition in sorted(consumer.partitions_for_topic(kafka.topic) or ())
        ]
        ends, begins = consumer.end_offsets(parts), consumer.beginning_offsets(parts)
        filled = [part for part in parts if ends[part] > begins[part]]
        if not filled:
            return []
        consumer.assign(filled)
        for part in filled:
            consumer.seek(part, max(begins[part], ends[part] - count))
        answer = consumer.poll(timeout_ms=_WAIT_MS, max_records=count * len(filled))
        return [
            NewestRecord(each.partition, each.offset, each.key, each.value)
            for records in answer.values()
            for each in records
        ]


@contextmanager
def _consumer(kafka: KafkaOptions) -> Iterator[KafkaConsumer]:
    """A consumer of no group."""
    try:
        consumer = KafkaConsumer(
            **client_options(kafka),
            enable_auto_commit=False,
            isolation_level=Isolation.COMMITTED.value,
            bootstrap_timeout_ms=_BOOTSTRAP_MS,
        )
        try:
            yield consumer
        finally:
            consumer.close()
    except (kafka_errors.KafkaError, OSError) as exc:
        if isinstance(exc, OSError) or exc.retriable:
            raise SourceUnavailableError(
                f'kafka "{kafka.bootstrap_servers}" cannot be reached',
                hint="Check properties.bootstrap.servers, and that the broker runs.",
                detail=detail_of(exc),
            ) from exc
        raise SourceError(
            f'topic "{kafka.topic}" cannot be read: {type(exc).__name__}: {exc}',
            hint="Check this user's rights and the properties of the connection.",
        ) from exc
