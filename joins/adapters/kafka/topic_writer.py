"""Writes a user's records to a topic, through kafka-python's producer."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import client_options
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions

_ACKNOWLEDGE_S = 30.0
_END_S = 5.0
_SETTINGS = {
    "acks": "all",
    "enable_idempotence": True,
    "linger_ms": 5,
    "max_block_ms": 10_000,
    "request_timeout_ms": 10_000,
    "delivery_timeout_ms": 25_000,
    "bootstrap_timeout_ms": 5_000,
    "allow_auto_create_topics": False,
}


class Written(NamedTuple):
    """Position of a written record."""

    partition: int
    offset: int


class TopicWriter:
    """Writes to one existing topic; a context manager, for one thread.

    Keys are partitioned as by Kafka's default producer. `away` is the hint for an unreachable
    cluster. SourceUnavailableError if the cluster does not answer in time, SourceError if it
    refuses.
    """

    def __init__(self, kafka: KafkaOptions, *, away: str) -> None:
        self._kafka = kafka
        self._away = away
        try:
            self._producer = KafkaProducer(**client_options(kafka), **_SETTINGS)
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:
            raise self._translated(exc) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close(timeout=_END_S)

    def write(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> list[Written]:
        """Write (key, value) records; their positions once all are acknowledged."""
        topic = self._kafka.topic
        try:
            sent = [self._producer.send(topic, value=value, key=key) for key, value in records]
            self._producer.flush(timeout=_ACKNOWLEDGE_S)
            places = [future.get(timeout=_ACKNOWLEDGE_S) for future in sent]
        except (kafka_errors.KafkaError, OSError) as exc:
            raise self._translated(exc) from exc
        return [Written(int(place.partition), int(place.offset)) for place in places]

    def _translated(self, exc: Exception) -> SourceError:
        servers, topic = self._kafka.bootstrap_servers, self._kafka.topic
        what = f"{type(exc).__name__}: {exc}"
        if isinstance(exc, OSError) or getattr(exc, "retriable", False):
            return SourceUnavailableError(
                f'kafka "{servers}" cannot be reached', hint=self._away, detail=what
            )
        return SourceError(
            f'records cannot be written to topic "{topic}" of kafka "{servers}": {what}',
            hint="Give the topic a larger max.message.bytes, or check this user's rights.",
        )
