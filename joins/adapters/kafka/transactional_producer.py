"""Sends record batches in transactions.

A commit has a number and a note: offset and metadata of a consumer group, committed in the same
transaction. The next producer of the transactional id fences the previous one, aborts its open
transaction and reads the note. Source: KIP-98, and Kafka's protocol guide.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from joins.adapters.kafka.batch_producer import (
    SILENCE_S,
    BatchProducer,
    ProducerIdentity,
    initialized,
)
from joins.adapters.kafka.client import KafkaClient, passing, require_success
from joins.plan.errors import SinkError
from joins.plan.plan import KafkaOptions

_TIMEOUT_MS = 300_000  # a broker allows 15 minutes (transaction.max.timeout.ms)
_PAUSE_S = 0.02  # meanwhile the markers of the previous transaction are written
_PARTITION = 0  # of the topic; the group keeps its offset there
# The newest versions of clients whose transactions begin with their first partition. From the next
# version on a broker adds partitions itself, and gives a new epoch at each end.
_FIND, _FETCH, _PARTITIONS, _OFFSETS, _COMMIT, _END = 3, 7, 3, 3, 3, 4
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class CommitNote:
    """`number` grows; `text` has at most 4 KiB (offset.metadata.max.bytes)."""

    number: int
    text: str


class TransactionalProducer(BatchProducer):
    """A producer whose records become visible by `commit`; for one thread.

    `transactional_id` must be unique; the consumer group of the notes has the same name.
    """

    def __init__(self, kafka: KafkaOptions, transactional_id: str) -> None:
        super().__init__(kafka)
        self._topic = kafka.topic
        self._id = transactional_id
        self._enlisted: set[int] = set()
        self._coordinators: dict[int, int] = {}
        self._newest: CommitNote | None = None

    def newest(self) -> CommitNote | None:
        """The newest commit; older producers of the id are fenced by then."""
        with self.connected() as client:
            client.run(self.identified, client)
        return self._newest

    def commit(self, note: CommitNote, identity: ProducerIdentity | None = None) -> None:
        """Make what was sent visible, with `note`; after a SinkError `newest` has the outcome.

        `identity` is the one by which others have sent: a later one has nothing of theirs.
        """
        if identity is not None and identity is not self._producer:
            raise SinkError(
                f'transaction of batch {note.number} in topic "{self._topic}" was aborted',
                hint="The batch is run again.",
            )
        with self.connected() as client:
            client.run(self._commit, client, note)
        self._enlisted.clear()
        self._newest = note

    async def identify(self, client: KafkaClient) -> ProducerIdentity:
        """A new identity; the open transaction of the old one is aborted."""
        self._enlisted.clear()

        async def initialize(node: int) -> ProducerIdentity:
            return await initialized(client, self._id, _TIMEOUT_MS, node)

        producer = await self._answered(client, CoordinatorType.TRANSACTION, initialize)
        self._newest = await self._answered(client, CoordinatorType.GROUP, self._read_note(client))
        return producer

    async def enlist(
        self, client: KafkaClient, producer: ProducerIdentity, partitions: Iterable[int]
    ) -> None:
        """Add partitions to the transaction."""
        new = sorted(set(partitions) - self._enlisted)
        if not new:
            return
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=self._topic, partitions=new)
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
            max_version=_PARTITIONS,
        )

        async def add(node: int) -> None:
            answer = await client.ask(request, node)
            for topic in answer.results_by_topic_v3_and_below:
                for one in topic.results_by_partition:
                    require_success(one.partition_error_code, f"partition {one.partition_index}")

        await self._answered(client, CoordinatorType.TRANSACTION, add)
        self._enlisted.update(new)

    async def _commit(self, client: KafkaClient, note: CommitNote) -> None:
        producer = await self.identified(client)
        who: dict[str, Any] = {
            "transactional_id": self._id,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
        }
        offsets = AddOffsetsToTxnRequest(**who, group_id=self._id, max_version=_OFFSETS)
        end = EndTxnRequest(**who, committed=True, max_version=_END)

        def coordinated(request: Any) -> Callable[[int], Awaitable[None]]:  # noqa: ANN401
            async def ask(node: int) -> None:
                answer = await client.ask(request, node)
                require_success(answer.error_code, type(request).__name__)

            return ask

        await self._answered(client, CoordinatorType.TRANSACTION, coordinated(offsets))
        await self._answered(client, CoordinatorType.GROUP, self._write_note(client, who, note))
        await self._answered(client, CoordinatorType.TRANSACTION, coordinated(end))

    def _write_note(
        self, client: KafkaClient, who: dict[str, Any], note: CommitNote
    ) -> Callable[[int], Awaitable[None]]:
        topic_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        kept = topic_type.TxnOffsetCommitRequestPartition(
            partition_index=_PARTITION, committed_offset=note.number, committed_metadata=note.text
        )
        topics = [topic_type(name=self._topic, partitions=[kept])]
        request = TxnOffsetCommitRequest(
            **who, group_id=self._id, topics=topics, max_version=_COMMIT
        )

        async def write(node: int) -> None:
            answer = await client.ask(request, node)
            require_success(answer.topics[0].partitions[0].error_code, "the number of the commit")

        return write

    def _read_note(self, client: KafkaClient) -> Callable[[int], Awaitable[CommitNote | None]]:
        topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
        request = OffsetFetchRequest(
            group_id=self._id,
            topics=[topic_type(name=self._topic, partition_indexes=[_PARTITION])],
            require_stable=True,  # waits for a commit that is under way
            max_version=_FETCH,
        )

        async def read(node: int) -> CommitNote | None:
            answer = await client.ask(request, node)
            require_success(answer.error_code, "the number of the newest commit")
            one = answer.topics[0].partitions[0]
            require_success(one.error_code, "the number of the newest commit")
            number = one.committed_offset
            return None if number < 0 else CommitNote(number, one.metadata or "")

        return read

    async def _answered(
        self,
        client: KafkaClient,
        kind: int,
        ask: Callable[[int], Awaitable[_Answer]],
    ) -> _Answer:
        """The answer of the coordinator of the id or group, retried for `SILENCE_S`."""
        since = time.monotonic()
        while True:
            try:
                return await ask(await self._coordinator(client, kind))
            except kafka_errors.KafkaError as exc:
                error = passing(exc)
                if time.monotonic() - since > SILENCE_S:
                    raise error from exc
            self._coordinators.clear()
            await client.pause(_PAUSE_S)

    async def _coordinator(self, client: KafkaClient, kind: int) -> int:
        if kind in self._coordinators:
            return self._coordinators[kind]
        request = FindCoordinatorRequest(key=self._id, key_type=kind, max_version=_FIND)
        answer = await client.ask(request)
        require_success(answer.error_code, "no coordinator")
        return self._coordinators.setdefault(kind, int(answer.node_id))
