"""A few records to a topic from the driver: a Spark job would cost more than they do."""

from collections.abc import Iterable
from typing import NamedTuple

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import client_options
from joins.plan.errors import SinkError
from joins.plan.plan import KafkaOptions

_ACKNOWLEDGE_S = 120.0
_PRODUCER = {
    "acks": "all",
    "linger_ms": 0,
    "delivery_timeout_ms": int(_ACKNOWLEDGE_S * 1000),
    "max_block_ms": 60_000,
}


class ProducerRecord(NamedTuple):
    """One record of a topic; without a value it is a tombstone."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


class RecordProducer:
    """Connects when it is first used and again after an error. Not for use by several threads."""

    def __init__(self, kafka: KafkaOptions) -> None:
        self._kafka = kafka
        self._producer: KafkaProducer | None = None

    def send(self, records: Iterable[ProducerRecord]) -> None:
        """Write records in their order; all are acknowledged when this returns.

        Raises:
            SinkError: the cluster did not take them; some may be there.
        """
        try:
            self._send(records)
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:  # a name that cannot be
            self.close()
            raise SinkError(
                f'rows cannot be sent to topic "{self._kafka.topic}" of Kafka at '
                f'"{self._kafka.bootstrap_servers}": {type(exc).__name__} {exc}',
                hint="Repair what the message names; the batch is sent again.",
            ) from exc

    def close(self) -> None:
        """End the connections; what is not acknowledged is given up."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.close(timeout=0)

    def _send(self, records: Iterable[ProducerRecord]) -> None:
        if self._producer is None:
            self._producer = KafkaProducer(**client_options(self._kafka), **_PRODUCER)
        topic, send = self._kafka.topic, self._producer.send
        sent = [send(topic, key=r.key, value=r.value, headers=r.headers) for r in records]
        self._producer.flush(timeout=_ACKNOWLEDGE_S)
        for future in sent:
            future.get(timeout=_ACKNOWLEDGE_S)
