"""Sends records to a changelog topic."""

import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import client_options, refusal
from joins.kernels.changelog.envelope import BinlogPosition, encode_watermark
from joins.plan.causes import detail_of
from joins.plan.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions

_ACKNOWLEDGE_S = 30.0
_END_S = 10.0
_SETTINGS = {
    "acks": "all",
    "linger_ms": 1_000,  # `send` flushes: until then only full batches go
    "batch_size": 256 << 10,
    "request_timeout_ms": 15_000,
    "delivery_timeout_ms": 3_600_000,  # no record expires alone: what is written is always a prefix
    "max_block_ms": 20_000,
    "bootstrap_timeout_ms": 10_000,
}
MOST_MESSAGE_BYTES = 64 << 20
"""Limit of a message in a changelog topic whose cluster does not expose it."""

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)


class ChangelogProducer:
    """The only producer of a changelog topic; not thread-safe."""

    def __init__(
        self,
        kafka: KafkaOptions,
        partitions: int,
        table: str,
        most_bytes: int = MOST_MESSAGE_BYTES,
    ) -> None:
        """Connect; SourceUnavailableError if Kafka cannot be reached, SourceError if it refuses."""
        self._kafka = kafka
        self._partitions = partitions
        self._table = table
        with self._errors():
            self._producer = KafkaProducer(**client_options(kafka), **_options(most_bytes))

    def close(self) -> None:
        """Drop what is not acknowledged and end the producer."""
        sender = self._producer._sender  # close() leaves it running when it cannot flush
        sender.force_close()
        sender.join(_END_S)
        self._producer.close(timeout=0)

    def send(self, records: Iterable[tuple[bytes | None, bytes, int]]) -> list[Any]:
        """Write (key, value, partition) records and return when Kafka has acknowledged all."""
        topic = self._kafka.topic
        sent: list[tuple[int, Any]] = []
        with self._errors():
            try:
                for key, value, partition in records:
                    future = self._producer.send(topic, value=value, key=key, partition=partition)
                    sent.append((partition, future))
                self._producer.flush(timeout=_ACKNOWLEDGE_S)
                return [future.get(timeout=_ACKNOWLEDGE_S) for _, future in sent]
            except kafka_errors.KafkaError as exc:
                if has_gap(sent):
                    raise SnapshotNeededError(
                        f'topic "{topic}" has records of table "{self._table}" behind '
                        f"one that it did not take: {refusal(exc)}",
                        hint="The table is copied again; sent again, the missing record would count"
                        " as a repeat.",
                        detail=detail_of(exc),
                    ) from exc
                raise

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        """Write a watermark record to every partition; returns its (partition, offset) pairs."""
        value = encode_watermark(high, generation)
        sent = self.send([(None, value, number) for number in range(self._partitions)])
        return [(int(metadata.partition), int(metadata.offset)) for metadata in sent]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        topic = self._kafka.topic
        try:
            yield
        except _TOO_LARGE as exc:
            raise SourceError(
                f'a row of table "{self._table}" does not fit into a message of topic "{topic}"',
                hint="Raise max.message.bytes of the topic (message.max.bytes of the brokers), "
                "then start the job again, or declare fewer columns.",
                detail=detail_of(exc),
            ) from exc
        except (
            kafka_errors.TopicAuthorizationFailedError,
            kafka_errors.SaslAuthenticationFailedError,
        ) as exc:
            raise SourceError(
                f'Kafka at "{self._kafka.bootstrap_servers}" refused to write topic "{topic}": '
                f"{refusal(exc)}",
                hint="Check the credentials and grant WRITE on the topic.",
                detail=detail_of(exc),
            ) from exc
        except (kafka_errors.KafkaError, OSError) as exc:
            raise SourceUnavailableError(
                f'Kafka at "{self._kafka.bootstrap_servers}" did not take records of '
                f'topic "{topic}"',
                hint="Start the brokers, or wait for them; we try again by ourselves.",
                detail=detail_of(exc),
            ) from exc


def has_gap(sent: Iterable[tuple[int, Any]]) -> bool:
    """True if a record was refused and a later one of its partition was accepted."""
    refused: set[int] = set()
    for partition, future in sent:
        if future.failed():
            refused.add(partition)
        elif future.succeeded() and partition in refused:
            return True
    return False


def _options(most_bytes: int) -> dict[str, Any]:
    has_lz4 = importlib.util.find_spec("lz4") is not None
    compression = "lz4" if has_lz4 else None
    return {**_SETTINGS, "max_request_size": most_bytes, "compression_type": compression}
