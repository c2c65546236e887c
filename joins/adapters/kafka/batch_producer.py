"""Sends finished record batches to a topic, without an object per record and without duplicates."""

import time
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from kafka import errors as kafka_errors
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from joins.adapters.kafka.client import KafkaClient, failure, passing, require_success
from joins.adapters.kafka.cluster import described
from joins.adapters.kafka.options import client_options
from joins.kernels.records.layout import BatchHeader, BatchOrigin, record_batch
from joins.plan.causes import detail_of
from joins.plan.errors import SinkError
from joins.plan.plan import KafkaOptions

BODY_BYTES = 256 << 10
_REQUEST_BYTES = 8 << 20  # a broker takes 100 MiB (socket.request.max.bytes)
_REQUEST_MS = 30_000
_BOOTSTRAP_MS = 10_000
SILENCE_S = 120.0
_PAUSE_S = 0.1
_SEQUENCES = 1 << 31
_ALL_REPLICAS = -1
_PRODUCE_VERSION = 9  # from 13 on topics are addressed by id
_LIMIT = "max.message.bytes"


@dataclass(slots=True)
class ProducerIdentity:
    """The producer id at the broker, and the next sequence number of each partition."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None
    sequences: dict[int, int] = field(default_factory=dict)

    def origin(self, partition: int) -> BatchOrigin:
        sequence, is_transactional = self.sequences.get(partition, 0), bool(self.transactional_id)
        return BatchOrigin(self.producer_id, self.epoch, sequence, is_transactional)

    def acknowledge(self, partition: int, records: int) -> None:
        after = self.sequences.get(partition, 0) + records
        self.sequences[partition] = after % _SEQUENCES


_Queues = dict[int, deque[tuple[int, bytes]]]


class BatchProducer:
    """An idempotent producer of finished record batches; one request a broker at a time.

    Connects on first use and again after an error; for one thread. All public methods raise
    SinkError if the cluster does not answer or refuses. `most_bytes` limits a body, if the topic
    allows it; a round trip sends one body a partition.
    """

    def __init__(self, kafka: KafkaOptions, most_bytes: int = BODY_BYTES) -> None:
        self._kafka = kafka
        self._most_bytes = most_bytes
        self._client: KafkaClient | None = None
        self._producer: ProducerIdentity | None = None
        self._body_bytes: int | None = None
        self.ends: dict[int, int] = {}
        """Partition → end after the records that were sent; the caller may know it from before."""
        self.went_back: tuple[int, int, int] | None = None
        """Partition, offset of records and the end that it had before; None while none has."""

    def partitions(self) -> int:
        """Number of the topic's partitions, cached for minutes."""
        with self.connected() as client:
            return len(client.run(client.leaders, self._kafka.topic))

    def body_bytes(self) -> int:
        """Maximum size of a body, so that the topic accepts its batch."""
        if self._body_bytes is None:
            with self.connected() as client:
                config = client.topic_config(self._kafka.topic, [_LIMIT]) or {}
            # If the limit is unknown, it is what this producer sends.
            most = int(config.get(_LIMIT) or 2 * BODY_BYTES)
            # Incompressible content becomes a little larger.
            self._body_bytes = max(1, min(self._most_bytes, most - most // 64 - BatchHeader.SIZE))
        return self._body_bytes

    def message_bytes(self) -> int | None:
        """max.message.bytes of the topic, None if the cluster does not expose it."""
        with self.connected() as client:
            config = client.topic_config(self._kafka.topic, [_LIMIT]) or {}
        return int(config[_LIMIT]) if config.get(_LIMIT) else None

    def send(self, parts: Iterable[pa.RecordBatch]) -> None:
        """Write `BODIES`, in order per partition, acknowledged; after a SinkError perhaps some."""
        for part in parts:
            queues: _Queues = {}
            columns = (column.to_pylist() for column in part.columns)
            for partition, records, body in zip(*columns, strict=True):
                queues.setdefault(partition, deque()).append((records, body))
            with self.connected() as client:
                client.run(self._send, client, queues)

    def send_files(self, paths: Iterable[str]) -> None:
        """Like `send`, with the `BODIES` in Parquet files, in this order."""
        for path in paths:
            with pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    self.send(file.read_row_group(group).to_batches())

    def close(self) -> None:
        """End the connections without waiting for acknowledgements."""
        self._producer = None
        self._body_bytes = None
        if self._client is not None:
            client, self._client = self._client, None
            client.close()

    @contextmanager
    def connected(self) -> Iterator[KafkaClient]:
        """The cluster's client; after a SinkError the next call reconnects."""
        try:
            if self._client is None:
                options = client_options(self._kafka)
                self._client = KafkaClient(**options, bootstrap_timeout_ms=_BOOTSTRAP_MS)
            yield self._client
        except (kafka_errors.KafkaError, OSError, ValueError) as exc:  # an invalid name
            self.close()
            raise SinkError(
                f'rows cannot be sent to topic "{self._kafka.topic}" of Kafka at '
                f'"{self._kafka.bootstrap_servers}"',
                hint="Repair what the detail names; the batch is sent again.",
                detail=detail_of(exc),
            ) from exc

    async def _send(self, client: KafkaClient, queues: _Queues) -> None:
        """Retry until all is acknowledged, or nothing was for `SILENCE_S`."""
        heard_at, failed = time.monotonic(), None
        while queues:
            if failed is not None:
                if time.monotonic() - heard_at > SILENCE_S:
                    raise failed
                await client.pause(_PAUSE_S)
            try:
                leaders = await client.leaders(self._kafka.topic, anew=failed is not None)
                producer = await self.identified(client)
                await self.enlist(client, producer, queues)
                taken, failed = await self._round(client, producer, _heads(queues, leaders))
            except kafka_errors.KafkaError as exc:
                failed = passing(exc)
                continue
            for partition, first in taken.items():
                heard_at = time.monotonic()
                records = queues[partition].popleft()[0]
                producer.acknowledge(partition, records)
                if first >= 0:
                    if first < self.ends.get(partition, 0):
                        self.went_back = partition, first, self.ends[partition]
                    self.ends[partition] = first + records
                if not queues[partition]:
                    del queues[partition]

    async def identified(self, client: KafkaClient) -> ProducerIdentity:
        if self._producer is None:
            self._producer = await self.identify(client)
        return self._producer

    async def identify(self, client: KafkaClient) -> ProducerIdentity:
        return await initialized(client, None, _REQUEST_MS)

    async def enlist(
        self, client: KafkaClient, producer: ProducerIdentity, partitions: Iterable[int]
    ) -> None:
        """Prepare for records in these partitions; only inside `run`."""

    async def _round(
        self,
        client: KafkaClient,
        producer: ProducerIdentity,
        heads: Mapping[int, Mapping[int, Any]],
    ) -> tuple[dict[int, int], kafka_errors.KafkaError | None]:
        """One request to each broker: partition → its first offset (-1: unknown), an error."""
        answers: list[Awaitable[Any]] = []
        for node, batches in heads.items():
            answers.append(client.ask(self._request(producer, batches), node))
        taken: dict[int, int] = {}
        failed = None if heads else kafka_errors.LeaderNotAvailableError(self._kafka.topic)
        for answer in answers:
            try:
                for one in (await answer).responses[0].partition_responses:
                    if one.error_code in _TAKEN:
                        taken[one.index] = one.base_offset
                    else:
                        what = f"partition {one.index}: {one.error_message}"
                        failed = failure(one.error_code, what)
            except kafka_errors.KafkaError as exc:
                failed = passing(exc)
        return taken, failed

    def _request(
        self, producer: ProducerIdentity, batches: Mapping[int, tuple[int, bytes]]
    ) -> ProduceRequest:
        now_ms = time.time_ns() // 1_000_000
        topic_type = ProduceRequest.TopicProduceData
        data = [
            topic_type.PartitionProduceData(
                index=partition,
                records=record_batch(
                    body, records, self._kafka.compression, now_ms, producer.origin(partition)
                ),
            )
            for partition, (records, body) in batches.items()
        ]
        return ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=_REQUEST_MS,
            topic_data=[topic_type(name=self._kafka.topic, partition_data=data)],
            max_version=_PRODUCE_VERSION,
        )


def topic_id_of(producer: BatchProducer, topic: str) -> str:
    """Kafka's UUID of the topic as text, "" if the brokers have none; SinkError without one."""
    with producer.connected() as client:
        there = described(client, [topic]).get(topic)
        if there is None:
            raise kafka_errors.InvalidTopicError(f'topic "{topic}" does not exist')
        return there.topic_id


_TAKEN = (0, kafka_errors.DuplicateSequenceNumberError.errno)


def _heads(queues: _Queues, leaders: Mapping[int, int]) -> dict[int, dict[int, tuple[int, bytes]]]:
    heads: dict[int, dict[int, tuple[int, bytes]]] = {}
    sizes: dict[int, int] = {}
    for partition, queue in queues.items():
        node = leaders.get(partition)
        if node is None:
            raise kafka_errors.InvalidTopicError(f"partition {partition} is gone")
        size = len(queue[0][1])
        if node >= 0 and (node not in heads or sizes[node] + size <= _REQUEST_BYTES):
            heads.setdefault(node, {})[partition] = queue[0]
            sizes[node] = sizes.get(node, 0) + size
    return heads


async def initialized(
    client: KafkaClient, transactional_id: str | None, timeout_ms: int, node: int | None = None
) -> ProducerIdentity:
    """A new identity by broker `node`, which fences older ones of the transactional id."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )
    answer = await client.ask(request, node)
    require_success(answer.error_code, "no producer id")
    return ProducerIdentity(answer.producer_id, answer.producer_epoch, transactional_id)
