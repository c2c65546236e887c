"""Watches of a stream's topics on the main loop: new topics, retention, open transactions."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import OpenTransaction
from joins.adapters.kafka.stream_cluster import StreamCluster, matching_topics
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from joins.plan.stream_topics import (
    StreamTopic,
    StreamTopics,
    by_topic,
    partition_of,
    place_json,
    place_name,
)
from joins.stream.guards import TopicView
from watermark.gate import HeldOffsets, LossWarning, Retention

_RETRY_S = 5.0


class TopicDiscovery:
    """Looks for new topics at the job's start and at its interval; soon after a failure."""

    def __init__(self, kafka: KafkaOptions, pattern: str, every_s: float) -> None:
        self._cluster = KafkaCluster(kafka, keep_open=True)
        self._pattern = pattern
        self._every_s = every_s
        self._next_at_s = float("-inf")

    def close(self) -> None:
        self._cluster.close()

    def look(self, known: StreamTopics) -> StreamTopics:
        """`known`, then new matching topics; queries only when due, and raises SourceError."""
        if time.monotonic() < self._next_at_s:
            return known
        try:
            names = matching_topics(self._pattern, self._cluster.topics())
            new = self._cluster.describe_all([name for name in names if name not in known.names])
            topics = known.with_more(StreamTopic(name, new[name].topic_id) for name in sorted(new))
        except SourceError:
            self._next_at_s = time.monotonic() + min(_RETRY_S, self._every_s)
            raise
        if topics == known:
            self._next_at_s = time.monotonic() + self._every_s
        return topics


_EVERY_S = 10.0
_STEPS = 7  # halves the longest age to less than a hundredth


class RetentionWatch:
    """Checks the retention of a stream's topics periodically, on the main loop."""

    def __init__(self, cluster: StreamCluster) -> None:
        self._cluster = cluster
        self._looked_at = float("-inf")
        # partition → its start, and where the topic began when that was first its start
        self._first: dict[int, tuple[int, int]] = {}
        self.warnings: tuple[LossWarning, ...] = ()

    def look(self, held: HeldOffsets) -> None:
        """Renew `warnings` if the last look is old enough; raises SourceError."""
        if time.monotonic() - self._looked_at < _EVERY_S:
            return
        self._looked_at = time.monotonic()
        now_ms = time.time_ns() // 1_000_000
        partitions = {each.partition: each for each in held.partitions}
        warnings: list[LossWarning] = []
        for index, own in by_topic(partitions).items():
            retention = self._cluster.retention(index)
            risks = self._with_risks(HeldOffsets(tuple(own.values())), retention, now_ms)
            warnings += risks.warnings(retention, now_ms=now_ms)
        self.warnings = tuple(warnings)

    def _with_risks(self, held: HeldOffsets, retention: Retention, now_ms: int) -> HeldOffsets:
        for each in held.partitions:
            if self._first.get(each.partition, (None, 0))[0] != each.start:
                self._first[each.partition] = each.start, each.retention_begin
        waiting = {p.partition: p.start for p in held.partitions if p.held_records}
        if not waiting or retention == Retention():
            return held
        sizes = self._cluster.partition_bytes({*waiting}) or {}
        oldest = self._oldest(waiting, retention, now_ms)
        return HeldOffsets(
            tuple(
                replace(
                    each,
                    first_retention_begin=self._first[each.partition][1],
                    oldest_at_ms=oldest.get(each.partition),
                    log_bytes=sizes.get(each.partition),
                )
                for each in held.partitions
            )
        )

    def _oldest(
        self, waiting: Mapping[int, int], retention: Retention, now_ms: int
    ) -> dict[int, int]:
        """Time of the oldest waiting record, at most a hundredth of its age too early."""
        if retention.max_age_ms is None:
            return {}
        early = dict.fromkeys(waiting, max(0, now_ms - retention.max_age_ms))
        late = dict.fromkeys(waiting, now_ms)
        for _ in range(_STEPS):
            middle = {p: (early[p] + late[p]) // 2 for p in waiting}
            firsts = self._cluster.first_since(middle)
            for partition, start in waiting.items():
                reached = partition in firsts and firsts[partition][0] <= start
                (early if reached else late)[partition] = middle[partition]
        return early


def warning_json(topics: StreamTopics, warning: LossWarning) -> dict[str, object]:
    return {
        "type": "records-near-loss",
        "message": f"{place_name(topics, warning.partition)} has used "
        f"{warning.used:.0%} of what its retention allows ({warning.risk.value}) for records that "
        "are not joined yet",
        "hint": "Lengthen the topic's retention until they are joined.",
    }


HOLDS_AFTER_S = 5.0
_ASK_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A partition that an open transaction blocks, `behind` offsets before its end.

    `since_ms` is the transaction's start; if unknown, when it was first seen to block.
    """

    transaction: OpenTransaction
    behind: int
    since_ms: int

    def as_json(self, topics: StreamTopics, now_ms: int) -> dict[str, Any]:
        age_ms, topic = max(0, now_ms - self.since_ms), topics.topic_of(self.transaction.partition)
        open_ = replace(self.transaction, partition=partition_of(self.transaction.partition))
        return {
            **place_json(topics, self.transaction.partition),
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
    """Watches for open transactions; `held` partitions are blocked at the newest look.

    Their last stable offset has stood below the high watermark for `holds_after_s` seconds.
    """

    def __init__(self, cluster: StreamCluster, *, holds_after_s: float = HOLDS_AFTER_S) -> None:
        self._cluster = cluster
        self._holds_after_s = holds_after_s
        self._standing: dict[int, _Standing] = {}
        self._known: dict[int, OpenTransaction] = {}
        self._asked_at = float("-inf")
        self.held: tuple[BlockedPartition, ...] = ()

    def look(self, view: TopicView) -> None:
        """Take the newest look at the topic; queries the brokers only while a partition is held."""
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
        """Find the blocking transactions; unknown ones are left out and queried again."""
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
