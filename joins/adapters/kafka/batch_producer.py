"""Sends finished record batches to a topic, without an object per record and without duplicates."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

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
_IN_FLIGHT = 4  # a broker knows the newest five batches of a producer in each partition
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

    def origin(self, partition: int, ahead: int) -> BatchOrigin:
        """Of records behind `ahead` others that are under way."""
        sequence = (self.sequences.get(partition, 0) + ahead) % _SEQUENCES
        return BatchOrigin(self.producer_id, self.epoch, sequence, bool(self.transactional_id))

    def acknowledge(self, partition: int, records: int) -> None:
        after = self.sequences.get(partition, 0) + records
        self.sequences[partition] = after % _SEQUENCES


_Queues = dict[int, deque[tuple[int, bytes]]]
_Batches = dict[int, tuple[int, int, bytes]]
"""Partition → records of it that are under way ahead of a body, its records, and the body."""
Sent = dict[int, tuple[int, int]]
"""Partition → first offset of records that were sent, and the end after them."""


def sent_together(parts: Iterable[Mapping[int, tuple[int, int]]]) -> Sent:
    whole: Sent = {}
    for part in parts:
        for partition, (first, end) in part.items():
            known = whole.get(partition, (first, end))
            whole[partition] = (min(known[0], first), max(known[1], end))
    return whole


class BatchProducer:
    """An idempotent producer of finished record batches, with some requests to a broker under way.

    Connects on first use and again after an error; for one thread. All public methods raise
    SinkError if the cluster does not answer or refuses. `most_bytes` limits a body, if the topic
    allows it. `silence_s` is how long no acknowledgement is waited for.
    """

    def __init__(
        self, kafka: KafkaOptions, most_bytes: int = BODY_BYTES, *, silence_s: float = SILENCE_S
    ) -> None:
        self._kafka = kafka
        self._most_bytes = most_bytes
        self._silence_s = silence_s
        self._client: KafkaClient | None = None
        self._producer: ProducerIdentity | None = None
        self._body_bytes: int | None = None

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

    def send(self, parts: Iterable[pa.RecordBatch]) -> Sent:
        """Write `BODIES`, in order per partition, acknowledged; after a SinkError perhaps some.

        Each part is acknowledged before the next one is made.
        """
        return sent_together(self.send_whole([part]) for part in parts)

    def send_whole(
        self, parts: Iterable[pa.RecordBatch], identity: ProducerIdentity | None = None
    ) -> Sent:
        """Like `send`, with all parts in memory.

        With `identity` as that producer, which sends nothing at the same time.
        """
        self._producer = self._producer if identity is None else identity
        queues: _Queues = {}
        for part in parts:
            columns = (column.to_pylist() for column in part.columns)
            for partition, records, body in zip(*columns, strict=True):
                queues.setdefault(partition, deque()).append((records, body))
        with self.connected() as client:
            return client.run(self._send, client, queues)

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

    async def _send(self, client: KafkaClient, queues: _Queues) -> Sent:
        """Retry until all is acknowledged, or nothing was for `silence_s`."""
        heard_at, failed = time.monotonic(), None
        sent: list[Sent] = []
        while queues:
            if failed is not None:
                if time.monotonic() - heard_at > self._silence_s:
                    raise failed
                await client.pause(_PAUSE_S)
            try:
                leaders = await client.leaders(self._kafka.topic, anew=failed is not None)
                producer = await self.identified(client)
                await self.enlist(client, producer, queues)
                taken, failed = await self._window(client, producer, queues, leaders)
            except kafka_errors.KafkaError as exc:
                failed = passing(exc)
                continue
            for partition, offsets in taken.items():
                heard_at = time.monotonic()
                for first in offsets:
                    records = queues[partition].popleft()[0]
                    producer.acknowledge(partition, records)
                    if first >= 0:
                        sent.append({partition: (first, first + records)})
                if not queues[partition]:
                    del queues[partition]
        return sent_together(sent)

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

    async def _window(
        self,
        client: KafkaClient,
        producer: ProducerIdentity,
        queues: _Queues,
        leaders: Mapping[int, int],
    ) -> tuple[dict[int, list[int]], kafka_errors.KafkaError | None]:
        """Some requests to each broker: partition → first offsets (-1: unknown), an error.

        Bodies of a partition are acknowledged in order: those behind a refused one are sent again,
        and the broker detects those that it has.
        """
        requests = _window_of(queues, leaders, producer)
        requested = [
            (batches, client.ask(self._request(producer, batches), node))
            for node, batches in requests
        ]
        taken: dict[int, list[int]] = {}
        refused: set[int] = set()
        failed = None if requested else kafka_errors.LeaderNotAvailableError(self._kafka.topic)
        for batches, answer in requested:
            try:
                for one in (await answer).responses[0].partition_responses:
                    if one.index in refused:
                        continue
                    if one.error_code in _TAKEN:
                        taken.setdefault(one.index, []).append(one.base_offset)
                    else:
                        refused.add(one.index)
                        what = f"partition {one.index}: {one.error_message}"
                        failed = failure(one.error_code, what)
            except kafka_errors.KafkaError as exc:
                refused.update(batches)
                failed = passing(exc)
        return taken, failed

    def _request(self, producer: ProducerIdentity, batches: _Batches) -> ProduceRequest:
        now_ms = time.time_ns() // 1_000_000
        topic_type = ProduceRequest.TopicProduceData
        data = [
            topic_type.PartitionProduceData(
                index=partition,
                records=record_batch(
                    body,
                    records,
                    self._kafka.compression,
                    now_ms,
                    producer.origin(partition, ahead),
                ),
            )
            for partition, (ahead, records, body) in batches.items()
        ]
        return ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=_REQUEST_MS,
            topic_data=[topic_type(name=self._kafka.topic, partition_data=data)],
            max_version=_PRODUCE_VERSION,
        )


def admitted(producer: BatchProducer, partitions: Iterable[int]) -> ProducerIdentity:
    """The identity by which others may send to these partitions; SinkError without an answer."""
    with producer.connected() as client:
        identity = client.run(producer.identified, client)
        client.run(producer.enlist, client, identity, partitions)
    return identity


def topic_id_of(producer: BatchProducer, topic: str) -> str:
    """Kafka's UUID of the topic as text, "" if the brokers have none; SinkError without one."""
    with producer.connected() as client:
        there = described(client, [topic]).get(topic)
        if there is None:
            raise kafka_errors.InvalidTopicError(f'topic "{topic}" does not exist')
        return there.topic_id


_TAKEN = (0, kafka_errors.DuplicateSequenceNumberError.errno)


def _window_of(
    queues: _Queues, leaders: Mapping[int, int], producer: ProducerIdentity
) -> list[tuple[int, _Batches]]:
    """Requests in their order, with the brokers that they go to.

    A partition has one body in the first window: a broker that knows nothing of the producer would
    take its second body without the first.
    """
    requests: list[tuple[int, _Batches]] = []
    ahead = dict.fromkeys(queues, 0)
    for depth in range(_IN_FLIGHT):
        heads: dict[int, _Batches] = {}
        sizes: dict[int, int] = {}
        for partition in list(ahead):
            node = leaders.get(partition)
            if node is None:
                raise kafka_errors.InvalidTopicError(f"partition {partition} is gone")
            queue = queues[partition]
            is_first = depth == 0 or partition in producer.sequences
            if node < 0 or depth >= len(queue) or not is_first:
                del ahead[partition]
                continue
            records, body = queue[depth]
            if node in heads and sizes[node] + len(body) > _REQUEST_BYTES:
                del ahead[partition]
                continue
            heads.setdefault(node, {})[partition] = (ahead[partition], records, body)
            sizes[node] = sizes.get(node, 0) + len(body)
            ahead[partition] += records
        requests += heads.items()
    return requests


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


def send_files(producer: BatchProducer, paths: Iterable[str]) -> Sent:
    """Send the `BODIES` in Parquet files, in this order, as `BatchProducer.send` does."""

    def parts() -> Iterator[pa.RecordBatch]:
        for path in paths:
            with pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    yield from file.read_row_group(group).to_batches()

    return producer.send(parts())
