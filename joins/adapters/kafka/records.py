"""Records of a Kafka topic between two offsets, read without Spark, for looking back."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors

from joins.adapters.kafka.options import client_options
from joins.plan.errors import RecordsExpiredError, SourceError, SourceUnavailableError
from joins.plan.plan import KafkaOptions

Ranges = Mapping[int, tuple[int, int]]

_SILENCE_S = 30.0
_POLL_RECORDS = 20_000
_POLL_MS = 500
_FETCH_BYTES = 64 << 20
_SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


class KafkaRecords:
    """Reads offset ranges of topics of one cluster, for one thread; belongs to no consumer group.

    It is a context manager; one connection serves all its reads.
    """

    def __init__(self, kafka: KafkaOptions) -> None:
        self._kafka = kafka
        self._consumer: KafkaConsumer | None = None
        logging.getLogger("kafka").setLevel(logging.CRITICAL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next read makes a new one."""
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            consumer.close()

    def batches(self, topic: str, ranges: Ranges) -> Iterator[pa.RecordBatch]:
        """The records whose offset is in `ranges` (partition → first, end), as the probe gets them.

        `[value: binary, partition: int32, offset: int64, timestamp]`; a partition's records come in
        the order of their offsets. Offsets without a record are left out.

        Raises:
            RecordsExpiredError: retention has removed a record of the ranges.
            SourceUnavailableError: the cluster does not answer.
            SourceError: it refused, or the records are compressed in a way that we cannot read.
        """
        for records in self._records(topic, ranges):
            stamps = pa.array([record.timestamp for record in records], pa.timestamp("ms", "UTC"))
            columns = [
                pa.array([record.value for record in records], pa.binary()),
                pa.array([record.partition for record in records], pa.int32()),
                pa.array([record.offset for record in records], pa.int64()),
                stamps.cast(pa.timestamp("us", "UTC")),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def marked(
        self, topic: str, ranges: Ranges, header: tuple[str, bytes], names: Sequence[str]
    ) -> Iterator[tuple[tuple[bytes | None, ...], bytes | None, bytes | None]]:
        """(values of the headers `names`, key, value) of the records that carry `header`.

        Raises:
            As `batches`.
        """
        for records in self._records(topic, ranges):
            for record in records:
                if header in record.headers:
                    headers = dict(record.headers)
                    yield tuple(headers.get(name) for name in names), record.key, record.value

    def _records(self, topic: str, ranges: Ranges) -> Iterator[list[Any]]:
        bounds = {TopicPartition(topic, p): r for p, r in ranges.items() if r[0] < r[1]}
        if not bounds:
            return
        try:
            yield from _polled(self._positioned(bounds), bounds)
        except kafka_errors.OffsetOutOfRangeError as exc:
            raise RecordsExpiredError(
                f'topic "{topic}" does not keep all of the offsets {dict(ranges)} any more',
                hint="Its retention removed them; only younger batches can be read again.",
            ) from exc
        except (kafka_errors.KafkaError, OSError, ValueError, AssertionError) as exc:
            self.close()
            raise self._translated(topic, exc) from exc

    def _positioned(self, bounds: Mapping[TopicPartition, tuple[int, int]]) -> KafkaConsumer:
        if self._consumer is None:
            self._consumer = KafkaConsumer(
                **client_options(self._kafka),
                enable_auto_commit=False,
                isolation_level=self._kafka.isolation.value,
                auto_offset_reset="none",
                max_poll_records=_POLL_RECORDS,
                fetch_max_wait_ms=100,
                bootstrap_timeout_ms=5_000,
                max_partition_fetch_bytes=_FETCH_BYTES,
            )
        self._consumer.assign(list(bounds))
        self._consumer.resume(*bounds)  # the same assignment keeps what an earlier read has paused
        for partition, (first, _) in bounds.items():
            self._consumer.seek(partition, first)
        return self._consumer

    def _translated(self, topic: str, exc: Exception) -> SourceError:
        servers = self._kafka.bootstrap_servers
        if isinstance(exc, kafka_errors.UnsupportedCodecError):
            return SourceError(
                f'records of topic "{topic}" are compressed and cannot be read: {exc}',
                hint="Install the named compression library beside Sluice.",
            )
        if isinstance(exc, OSError | ValueError) or getattr(exc, "retriable", False):
            return SourceUnavailableError(
                f'kafka "{servers}" cannot be reached: {type(exc).__name__}: {exc}',
                hint="Check properties.bootstrap.servers, and that the broker runs.",
            )
        return SourceError(
            f'topic "{topic}" of kafka "{servers}" cannot be read: {type(exc).__name__}: {exc}',
            hint="Check this user's rights and the properties of the connection.",
        )


def _polled(
    consumer: KafkaConsumer, bounds: Mapping[TopicPartition, tuple[int, int]]
) -> Iterator[list[Any]]:
    """Lists of records of one partition each; a partition that is through is read no further.

    A poll may find no record and come further all the same, through aborted transactions.
    """
    unfinished = dict(bounds)
    places: dict[TopicPartition, int] = {}
    heard_at = time.monotonic()
    while unfinished:
        for partition, records in consumer.poll(timeout_ms=_POLL_MS).items():
            end = bounds[partition][1]
            before_end = [record for record in records if record.offset < end]
            if before_end:
                yield before_end
        reached = {partition: consumer.position(partition) for partition in unfinished}
        if reached != places:
            places, heard_at = reached, time.monotonic()
        for partition in [p for p, r in unfinished.items() if reached[p] >= r[1]]:
            del unfinished[partition]
            consumer.pause(partition)
        if time.monotonic() - heard_at > _SILENCE_S:
            raise kafka_errors.KafkaTimeoutError(f"no record within {_SILENCE_S:.0f} s")
