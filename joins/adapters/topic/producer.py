"""Sends record batches to a changelog topic."""

from typing import Protocol

import pyarrow as pa

from joins.adapters.kafka.batch_producer import BatchProducer
from joins.adapters.kafka.changelog_producer import MOST_MESSAGE_BYTES, ChangelogProducer
from joins.adapters.kafka.client import compressed
from joins.kernels.changelog.envelope import BinlogPosition
from joins.kernels.records.encode import encode_bodies
from joins.plan.errors import SinkError, SourceUnavailableError
from joins.plan.plan import Compression, KafkaOptions

_COMPRESSION = Compression.LZ4


class RecordSink(Protocol):
    """The part of `TopicProducer` that a session uses."""

    def message_bytes(self) -> int:
        """Maximum size of a message of the topic; SourceUnavailableError without the cluster."""

    def send(self, records: pa.RecordBatch) -> None:
        """Write `[key, value, partition]`, acknowledged when this returns."""

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        """Write a watermark record to every partition; their (partition, offset) pairs."""


class TopicProducer:
    """The producer of a changelog topic that gets whole batches; for one thread.

    `source` names the source in messages. Both methods raise SourceUnavailableError if Kafka does
    not acknowledge; some records may be written then.
    """

    def __init__(self, kafka: KafkaOptions, partitions: int, source: str) -> None:
        self._kafka = kafka.compressing(_COMPRESSION)
        self._partitions = partitions
        self._source = source
        self._producer = BatchProducer(self._kafka)

    def send(self, records: pa.RecordBatch) -> None:
        """Write `[key, value, partition]`; all is acknowledged on return."""
        keys, values, partitions = records.columns
        try:
            body_bytes = self._producer.body_bytes()
            bodies = encode_bodies(keys, values, {}, partitions.to_numpy(), body_bytes)
            self._producer.send([compressed(bodies, _COMPRESSION)])
        except SinkError as exc:
            raise self._refused(exc) from exc

    def message_bytes(self) -> int:
        try:
            return self._producer.message_bytes() or MOST_MESSAGE_BYTES
        except SinkError as exc:
            raise self._refused(exc) from exc

    def _refused(self, error: SinkError) -> SourceUnavailableError:
        return SourceUnavailableError(
            f'Kafka at "{self._kafka.bootstrap_servers}" did not take records of topic '
            f'"{self._kafka.topic}"',
            hint="Start the brokers, or repair what the detail names; we try again by ourselves.",
            detail=error.detail,
        )

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        producer = ChangelogProducer(self._kafka, self._partitions, self._source)
        try:
            return producer.watermark(high, generation)
        finally:
            producer.close()

    def close(self) -> None:
        self._producer.close()
