"""Changed rows on their way to the changelog topic: collected, encoded, sent, acknowledged."""

import importlib.util
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from kafka import KafkaProducer
from kafka import errors as kafka_errors

from joins.adapters.kafka_cluster import client_options
from joins.adapters.mysql_cdc_config import CdcConfig
from joins.adapters.mysql_rows import Row, wire_rows
from joins.adapters.mysql_stream import RowImages
from joins.errors import SnapshotNeededError, SourceError, SourceUnavailableError
from joins.kernels.envelope import (
    SOURCE_SCHEMA,
    BinlogPosition,
    Changes,
    encode_records,
    encode_watermark,
)

MAX_BATCH_ROWS = 5_000
MAX_BATCH_BYTES = 8 << 20
_ACKNOWLEDGE_S = 30.0
_END_S = 10.0
_REQUEST_BYTES = 64 << 20
_SETTINGS = {
    "acks": "all",
    "linger_ms": 1,
    "batch_size": 256 << 10,
    "max_request_size": _REQUEST_BYTES,
    "request_timeout_ms": 15_000,
    "delivery_timeout_ms": 3_600_000,  # nothing expires singly: what landed is always a prefix
    "max_block_ms": 20_000,
    "bootstrap_timeout_ms": 10_000,
}
_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)


@dataclass(slots=True)
class _Pending:
    """Rows that wait to be encoded; all lists have one length."""

    ops: list[str] = field(default_factory=list)
    places: list[tuple[int, int, int, int]] = field(default_factory=list)
    before: list[Row | None] = field(default_factory=list)
    after: list[Row | None] = field(default_factory=list)
    bytes: int = 0
    since_s: float = 0.0


class ChangelogSender:
    """One producer's life. Not for use by several threads.

    Attributes:
        records: sent and acknowledged so far.
        source_ts_ms: when the newest of them happened at the source, 0 before the first one.
    """

    def __init__(self, config: CdcConfig) -> None:
        self._config = config
        self._key = tuple(
            [column.name for column in config.table.captured].index(name)
            for name in config.table.primary_key
        )
        self._pending = _Pending()
        self._transaction = (0, 0)
        self._ordinal = 0
        self.records = 0
        self.source_ts_ms = 0
        with _kafka_errors(config):
            self._producer = KafkaProducer(**client_options(config.kafka), **_options())

    def close(self) -> None:
        """Give up what is not acknowledged and end the producer; nothing is sent afterwards."""
        sender = self._producer._sender  # close() leaves it running when it cannot flush
        sender.force_close()
        sender.join(_END_S)
        self._producer.close(timeout=0)

    def begin(self, file: int, pos: int) -> None:
        """A transaction begins; its rows are numbered from 0."""
        self._transaction, self._ordinal = (file, pos), 0

    def age_s(self) -> float:
        """How long the oldest waiting row has waited, 0 if there is none."""
        return time.monotonic() - self._pending.since_s if self._pending.ops else 0.0

    def add(self, images: RowImages) -> None:
        """Collect the rows of one event; full batches are sent on the way.

        Raises:
            SourceUnavailableError: Kafka did not acknowledge in time.
            SourceError: Kafka refused the records.
        """
        size = len(images.images)
        rows = images.decoded()
        at_ms = images.at_s * 1000
        for row in rows:
            if images.op == "u":
                self._update(row, next(rows), at_ms)
            elif images.op == "d":
                self._append("d", at_ms, row, None)
            else:
                self._append("c", at_ms, None, row)
            if len(self._pending.ops) >= MAX_BATCH_ROWS:
                self.flush()
        if self._pending.ops:
            self._pending.bytes += size
            if self._pending.bytes >= MAX_BATCH_BYTES:
                self.flush()

    def _update(self, before: Row, after: Row, at_ms: int) -> None:
        if all(before[slot] == after[slot] for slot in self._key):
            self._append("u", at_ms, before, after)
        else:
            self._append("d", at_ms, before, None)
            self._append("c", at_ms, None, after)

    def _append(self, op: str, at_ms: int, before: Row | None, after: Row | None) -> None:
        pending = self._pending
        if not pending.ops:
            pending.since_s = time.monotonic()
        pending.ops.append(op)
        pending.places.append((*self._transaction, self._ordinal, at_ms))
        pending.before.append(before)
        pending.after.append(after)
        self._ordinal += 1

    def flush(self) -> None:
        """Send what waits and return when Kafka has acknowledged it.

        Raises:
            SourceUnavailableError: Kafka did not acknowledge in time.
            SourceError: Kafka refused the records.
        """
        pending = self._pending
        if not pending.ops:
            return
        self._pending = _Pending()
        records = encode_records(
            self._changes(pending),
            self._config.table.primary_key,
            partitions=self._config.partitions,
        )
        columns = (records.column(name).to_pylist() for name in ("key", "value", "partition"))
        self._send(list(zip(*columns, strict=True)))
        self.records += len(pending.ops)
        self.source_ts_ms = pending.places[-1][3]

    def watermark(self, high: BinlogPosition, generation: int) -> list[tuple[int, int]]:
        """Write a watermark record to every partition; returns its (partition, offset) pairs.

        Raises:
            SourceUnavailableError: Kafka did not acknowledge in time.
            SourceError: Kafka refused the records.
        """
        value = encode_watermark(high, generation)
        sent = self._send([(None, value, number) for number in range(self._config.partitions)])
        return [(int(found.partition), int(found.offset)) for found in sent]

    def _changes(self, pending: _Pending) -> Changes:
        count = len(pending.ops)
        files, positions, rows, times = zip(*pending.places, strict=True)
        constants = (self._config.low.position.epoch, self._config.generation)
        epoch, generation = (pa.repeat(pa.scalar(v, pa.int32()), count) for v in constants)
        numbers = [pa.array(v, pa.int64()) for v in (files, positions, rows)]
        source = [epoch, *numbers, generation, pa.array(times, pa.int64())]
        table = self._config.table
        return Changes(
            ops=pa.array(pending.ops, pa.string()),
            source=pa.RecordBatch.from_arrays(source, schema=SOURCE_SCHEMA),
            before=wire_rows(pending.before, table) if any(pending.before) else None,
            after=wire_rows(pending.after, table) if any(pending.after) else None,
        )

    def _send(self, records: list[tuple[bytes | None, bytes, int]]) -> list[Any]:
        topic = self._config.kafka.topic
        sent: list[tuple[int, Any]] = []
        with _kafka_errors(self._config):
            try:
                for key, value, partition in records:
                    future = self._producer.send(topic, value=value, key=key, partition=partition)
                    sent.append((partition, future))
                self._producer.flush(timeout=_ACKNOWLEDGE_S)
                return [future.get(timeout=_ACKNOWLEDGE_S) for _, future in sent]
            except kafka_errors.KafkaError as exc:
                if has_gap(sent):
                    raise SnapshotNeededError(
                        f'topic "{topic}" has records of table "{self._config.table.table}" behind '
                        f"one that it did not take: {exc}",
                        hint="The table is copied again; sent again, the missing record would count"
                        " as a repeat.",
                    ) from exc
                raise


def has_gap(sent: Iterable[tuple[int, Any]]) -> bool:
    """Whether a record was refused and a later one of its partition was taken.

    Args:
        sent: partition and kafka-python's future of each record, in the order of sending.
    """
    refused: set[int] = set()
    for partition, future in sent:
        if future.failed():
            refused.add(partition)
        elif future.succeeded() and partition in refused:
            return True
    return False


def _options() -> dict[str, Any]:
    has_lz4 = importlib.util.find_spec("lz4") is not None
    return {**_SETTINGS, "compression_type": "lz4" if has_lz4 else None}


@contextmanager
def _kafka_errors(config: CdcConfig) -> Iterator[None]:
    topic = config.kafka.topic
    try:
        yield
    except _TOO_LARGE as exc:
        raise SourceError(
            f'a row of table "{config.table.database}.{config.table.table}" does not fit into '
            f'a message of topic "{topic}": {exc}',
            hint="Raise max.message.bytes of the topic (message.max.bytes of the brokers), then "
            "start the job again, or declare fewer columns.",
        ) from exc
    except (
        kafka_errors.TopicAuthorizationFailedError,
        kafka_errors.SaslAuthenticationFailedError,
    ) as exc:
        raise SourceError(
            f'Kafka at "{config.kafka.bootstrap_servers}" refused to write topic "{topic}": {exc}',
            hint="Check the credentials and grant WRITE on the topic.",
        ) from exc
    except (kafka_errors.KafkaError, OSError) as exc:
        raise SourceUnavailableError(
            f'Kafka at "{config.kafka.bootstrap_servers}" did not take records of '
            f'topic "{topic}": {type(exc).__name__} {exc}',
            hint="Start the brokers, or wait for them; we try again by ourselves.",
        ) from exc
