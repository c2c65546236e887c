"""Sends records to a changelog topic."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from kafka import errors as kafka_errors

from joins.adapters.kafka.batch_producer import BatchProducer, Sent
from joins.adapters.kafka.client import compressed
from joins.adapters.kafka.options import refusal
from joins.kernels.changelog.envelope import RECORDS_SCHEMA, BinlogPosition, encode_watermark
from joins.kernels.records.layout import plain_bodies
from joins.plan.errors import SinkError, SourceError, SourceUnavailableError
from joins.plan.plan import Compression, KafkaOptions

_COMPRESSION = Compression.LZ4
MOST_MESSAGE_BYTES = 64 << 20
"""Limit of a message in a changelog topic whose cluster does not expose it."""

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)
_REFUSED = (
    kafka_errors.TopicAuthorizationFailedError,
    kafka_errors.SaslAuthenticationFailedError,
)


class ChangelogProducer:
    """The only producer of a changelog topic; for one thread, and it compiles nothing.

    `source` names the source in messages. All methods raise SourceUnavailableError if Kafka does
    not answer or acknowledge, SourceError if it refuses; some records may be written then: in each
    partition a prefix.
    """

    silence_s = 30.0
    """How long no acknowledgement is waited for."""

    def __init__(self, kafka: KafkaOptions, partitions: int, source: str) -> None:
        self._kafka = kafka.compressing(_COMPRESSION)
        self._partitions = partitions
        self._source = source
        self._producer = BatchProducer(self._kafka, silence_s=self.silence_s)

    def close(self) -> None:
        """End the connections without waiting for acknowledgements."""
        self._producer.close()

    def message_bytes(self) -> int:
        """Maximum size of a message of the topic."""
        with self._errors():
            return self._producer.message_bytes() or MOST_MESSAGE_BYTES

    def send(self, records: pa.RecordBatch) -> Sent:
        """Write `[key, value, partition]`; all is acknowledged on return."""
        with self._errors():
            bodies = self._bodies(records, self._producer.body_bytes())
            return self._producer.send([compressed(bodies, _COMPRESSION)])

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        """Write a watermark record to every partition; returns its (partition, offset) pairs."""
        value, partitions = encode_watermark(high, generation), range(self._partitions)
        columns = [[None] * self._partitions, [value] * self._partitions, partitions]
        sent = self.send(pa.record_batch(columns, schema=RECORDS_SCHEMA))
        return [(number, sent[number][0] if number in sent else -1) for number in partitions]

    def _bodies(self, records: pa.RecordBatch, body_bytes: int) -> pa.RecordBatch:
        return plain_bodies(records, body_bytes)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SinkError as exc:
            raise self._translated(exc) from exc

    def _translated(self, error: SinkError) -> SourceError:
        cause, kafka = error.__cause__, self._kafka
        if isinstance(cause, _TOO_LARGE):
            return SourceError(
                f'a row of table "{self._source}" does not fit into a message of topic '
                f'"{kafka.topic}"',
                hint="Raise max.message.bytes of the topic (message.max.bytes of the brokers), "
                "then start the job again, or declare fewer columns.",
                detail=error.detail,
            )
        if isinstance(cause, _REFUSED):
            return SourceError(
                f'Kafka at "{kafka.bootstrap_servers}" refused to write topic "{kafka.topic}": '
                f"{refusal(cause)}",
                hint="Check the credentials and grant WRITE on the topic.",
                detail=error.detail,
            )
        return SourceUnavailableError(
            f'Kafka at "{kafka.bootstrap_servers}" did not take records of topic "{kafka.topic}"',
            hint="Start the brokers, or repair what the detail names; we try again by ourselves.",
            detail=error.detail,
        )
