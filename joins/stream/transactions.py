"""Open transactions that hold the stream: partitions whose last stable offset stands still."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from joins.adapters.kafka.groups import OpenTransaction
from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.errors import SourceError
from joins.plan.stream_topics import StreamTopics, partition_of
from joins.stream.guards import TopicView

HOLDS_AFTER_S = 5.0
_ASK_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A partition that is not read further because a transaction is open.

    Attributes:
        behind: offsets from the transaction's first one to the partition's end.
        since_ms: when the transaction began, else when it was first seen to hold.
    """

    transaction: OpenTransaction
    behind: int
    since_ms: int

    def as_json(self, topics: StreamTopics, now_ms: int) -> dict[str, Any]:
        age_ms, topic = max(0, now_ms - self.since_ms), topics.topic_of(self.transaction.partition)
        open_ = replace(self.transaction, partition=partition_of(self.transaction.partition))
        return {
            **topics.where(self.transaction.partition),
            "offset": open_.offset,
            "producer_id": open_.producer_id,
            "transactional_id": open_.transactional_id,
            "behind": self.behind,
            "since_ms": self.since_ms,
            "age_ms": age_ms,
            "text": f"{open_.text(topic.name)}, open for {age_ms // 1000} s",
            "hint": open_.hint(topic.name),
        }


@dataclass(frozen=True, slots=True)
class _Standing:
    """A last stable offset, and when it was first seen there (monotonic seconds, milliseconds)."""

    offset: int
    seen_s: float
    seen_ms: int


class TransactionWatch:
    """Watches the topics of a stream, on the main loop.

    Args:
        holds_after_s: how long a last stable offset must stand still below its high watermark.

    Attributes:
        held: the partitions that are held, by the newest look.
    """

    def __init__(self, cluster: StreamCluster, *, holds_after_s: float = HOLDS_AFTER_S) -> None:
        self._cluster = cluster
        self._holds_after_s = holds_after_s
        self._standing: dict[int, _Standing] = {}
        self._known: dict[int, OpenTransaction] = {}
        self._asked_at = float("-inf")
        self.held: tuple[BlockedPartition, ...] = ()

    def look(self, view: TopicView) -> None:
        """Take the newest look at the topic; the brokers are asked only while it is held."""
        now_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._standing = {
            p: self._stands(p, view.end_offsets[p], now_s, now_ms) for p in view.open_ends
        }
        ends = {
            p: each.offset
            for p, each in sorted(self._standing.items())
            if now_s - each.seen_s >= self._holds_after_s
        }
        self._ask(ends, now_s)
        self.held = tuple(
            self._held(self._known.get(p, OpenTransaction(p, end)), view.open_ends[p])
            for p, end in ends.items()
        )

    def _stands(self, partition: int, offset: int, now_s: float, now_ms: int) -> _Standing:
        before = self._standing.get(partition)
        if before is not None and before.offset == offset:
            return before
        return _Standing(offset, now_s, now_ms)

    def _ask(self, ends: Mapping[int, int], now_s: float) -> None:
        """Who holds the partitions; what is not told is left out and asked for again."""
        self._known = {p: t for p, t in self._known.items() if ends.get(p) == t.offset}
        is_due = now_s - self._asked_at >= _ASK_EVERY_S
        if not is_due or all(p in self._known for p in ends):
            return
        self._asked_at = now_s
        try:
            transactions = self._cluster.open_transactions(ends)
        except SourceError:
            return
        self._known |= {each.partition: each for each in transactions}

    def _held(self, transaction: OpenTransaction, end: int) -> BlockedPartition:
        seen_ms = self._standing[transaction.partition].seen_ms
        since_ms = seen_ms if transaction.since_ms is None else transaction.since_ms
        return BlockedPartition(transaction, end - transaction.offset, since_ms)
