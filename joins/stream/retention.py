"""Warns before retention removes records that are not joined yet.

The age of the oldest waiting record is found by asking the broker for offsets by time: no record is
fetched while records are held.
"""

import time
from collections.abc import Mapping
from dataclasses import replace

from joins.adapters.kafka.stream_cluster import StreamCluster
from joins.plan.stream_topics import StreamTopics, index_of
from watermark.gate import HeldOffsets, LossWarning, Retention

_EVERY_S = 10.0
_STEPS = 7  # halves the longest age to less than a hundredth


class RetentionWatch:
    """Looks at the topics of a stream from time to time, on the main loop."""

    def __init__(self, cluster: StreamCluster, *, every_s: float = _EVERY_S) -> None:
        self._cluster = cluster
        self._every_s = every_s
        self._looked_at = float("-inf")
        self._first_begin: dict[int, int] = {}
        self.warnings: tuple[LossWarning, ...] = ()

    def look(self, held: HeldOffsets) -> None:
        """Renew `warnings` if the last look is old enough.

        Raises:
            SourceError: the cluster does not answer.
        """
        if time.monotonic() - self._looked_at < self._every_s:
            return
        self._looked_at = time.monotonic()
        now_ms = time.time_ns() // 1_000_000
        partitions = {each.partition: each for each in held.partitions}
        warnings: list[LossWarning] = []
        for index in self._cluster.topics.by_topic(partitions):
            own = tuple(each for p, each in partitions.items() if index_of(p) == index)
            retention = self._cluster.retention(index)
            risks = self._with_risks(HeldOffsets(own), retention, now_ms)
            warnings += risks.warnings(retention, now_ms=now_ms)
        self.warnings = tuple(warnings)

    def _with_risks(self, held: HeldOffsets, retention: Retention, now_ms: int) -> HeldOffsets:
        for each in held.partitions:
            self._first_begin.setdefault(each.partition, each.retention_begin)
        waiting = {p.partition: p.start for p in held.partitions if p.held_records}
        if not waiting or retention == Retention():
            return held
        sizes = self._cluster.partition_bytes({*waiting}) or {}
        oldest = self._oldest(waiting, retention, now_ms)
        return HeldOffsets(
            tuple(
                replace(
                    each,
                    first_retention_begin=self._first_begin[each.partition],
                    oldest_at_ms=oldest.get(each.partition),
                    log_bytes=sizes.get(each.partition),
                )
                for each in held.partitions
            )
        )

    def _oldest(
        self, waiting: Mapping[int, int], retention: Retention, now_ms: int
    ) -> dict[int, int]:
        """Partition → when its oldest waiting record was written, at most a hundredth too early."""
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
        "message": f"{topics.named(warning.partition)} has used "
        f"{warning.used:.0%} of what its retention allows ({warning.risk.value}) for records that "
        "are not joined yet",
        "hint": "Lengthen the topic's retention until they are joined.",
    }
