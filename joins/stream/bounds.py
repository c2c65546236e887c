"""Where the stream begins, ends and is cut: batch limits, bounded ends, backlogs, incarnations.

No batch reads across a backlog's end, where the stream continues in processing time.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from joins.durable.probe_lives import Gap, Life
from joins.plan.stream_topics import index_of
from joins.stream.guards import Marks, TopicView


class BatchLimit:
    """The limit of one job's probe; the loop's thread calls `records` and `record`."""

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._in_use = 0
        self._given_average = 0.0
        self._is_full = False
        self._seen_records = 0
        self._seen_bytes = 0
        self._newest_average = 0.0  # of the newest batch with records

    def begin(self, average_bytes: float | None) -> None:
        """Start a loop; `average_bytes` of a record is None if unknown."""
        with self._lock:
            self._given_average = average_bytes or 0.0

    def records(self) -> int:
        with self._lock:
            seen = self._seen_bytes / self._seen_records if self._seen_records else 0.0
            average_bytes = max(self._given_average, seen, self._newest_average)
            self._in_use = self._max_records
            if average_bytes > 0:
                self._in_use = max(1, min(self._in_use, int(self._max_bytes // average_bytes)))
            return self._in_use

    def record(self, counts: Mapping[str, int]) -> None:
        records, size = counts.get("records", 0), counts.get("bytes", 0)
        with self._lock:
            self._seen_records += records
            self._seen_bytes += size
            if records:
                self._newest_average = size / records
            self._is_full = 2 * records >= self._in_use > 0

    def is_draining(self) -> bool:
        with self._lock:
            return self._is_full


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a new incarnation begins, its gaps, and the ends of its bound and backlog, if any."""

    start_offsets: Mapping[int, int]
    gaps: tuple[Gap, ...]
    end_offsets: Mapping[int, int] | None = None
    backlog_offsets: Mapping[int, int] | None = None


def resumption(
    life: Life, committed: Mapping[int, int], marks: Marks, view: TopicView
) -> Resumption:
    """Where the committed output ends, moved to what still exists in `view`.

    A replaced topic is joined from its beginning; its present records are its backlog, and its
    present end is its bound if the stream has an end. A missing topic has all partitions missing.
    """
    others = _others(life, view)
    start = {p: begin for p, begin in view.begin_offsets.items() if index_of(p) in others}
    gaps = [
        Gap(p, committed.get(p, 0), end) for p, end in marks.high.items() if index_of(p) in others
    ]
    for partition in sorted({*committed, *marks.high, *view.end_offsets}):
        done, high = committed.get(partition, 0), marks.high.get(partition, 0)
        if index_of(partition) in others:
            continue
        if partition not in view.end_offsets:
            gaps.append(Gap(partition, done, high))
            start[partition] = max(done, high)
            continue
        low = marks.low.get(partition, max(done, high))
        begin = view.begin_offsets.get(partition, 0)
        start[partition] = max(min(done, low), begin)
        gaps += [Gap(partition, min(done, low), begin), Gap(partition, max(done, low, begin), high)]
    ends, backlog = (
        None if each is None else _ends(_kept(each, others), start, marks, view) | _of(view, others)
        for each in (life.end_offsets, life.backlog_offsets)
    )
    return Resumption(start, _real(gaps), ends, backlog)


def _others(life: Life, view: TopicView) -> frozenset[int]:
    pairs = zip(life.topics.topics, view.topic_ids, strict=True)
    return frozenset(
        i for i, (topic, known) in enumerate(pairs) if known not in (None, topic.topic_id)
    )


def _kept(offsets: Mapping[int, int], others: frozenset[int]) -> dict[int, int]:
    return {p: offset for p, offset in offsets.items() if index_of(p) not in others}


def _of(view: TopicView, others: frozenset[int]) -> dict[int, int]:
    return {p: end for p, end in view.end_offsets.items() if index_of(p) in others}


def _ends(
    offsets: Mapping[int, int], start: Mapping[int, int], marks: Marks, view: TopicView
) -> dict[int, int]:
    ends = {}
    for partition, end in offsets.items():
        if partition in view.end_offsets:
            was_there = marks.high.get(partition, 0) >= end
            left = min(end, view.high_watermarks[partition]) if was_there else end
            ends[partition] = max(left, start[partition])
    return ends


def _real(gaps: list[Gap]) -> tuple[Gap, ...]:
    return tuple(sorted((g for g in gaps if g.end > g.first), key=lambda g: (g.partition, g.first)))


def cut(offsets: Mapping[int, int], end: Mapping[int, int] | None) -> dict[int, int]:
    if end is None:
        return dict(offsets)
    return {p: min(offset, end[p]) for p, offset in offsets.items() if p in end}


def up_to_backlog(
    start: Mapping[int, int], there: Mapping[int, int], backlog: Mapping[int, int] | None
) -> dict[int, int]:
    if backlog is None:
        return dict(there)
    return {
        p: min(end, backlog[p]) if start.get(p, 0) < backlog.get(p, 0) else end
        for p, end in there.items()
    }


def behind_backlog(offsets: Mapping[int, int], backlog: Mapping[int, int] | None) -> list[int]:
    if backlog is None:
        return []
    return [p for p, offset in sorted(offsets.items()) if offset >= backlog.get(p, 0)]


def is_reached(offsets: Mapping[int, int], end: Mapping[int, int] | None) -> bool:
    return end is not None and all(offsets.get(p, 0) >= last for p, last in end.items())
