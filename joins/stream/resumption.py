"""Where a new life of the stream begins, when what the old one has joined is not all there."""

from collections.abc import Mapping
from dataclasses import dataclass

from joins.durable.probe_lives import Gap, Life
from joins.stream.guards import Marks, TopicView


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a new life begins, what is never joined because of it, and where a bounded one ends.

    Likewise where its backlog ends, if it has one.
    """

    start_offsets: Mapping[int, int]
    gaps: tuple[Gap, ...]
    end_offsets: Mapping[int, int] | None = None
    backlog_offsets: Mapping[int, int] | None = None


def resumption(
    life: Life, committed: Mapping[int, int], marks: Marks, view: TopicView
) -> Resumption:
    """Where the committed output ends, moved to what still exists in `view`.

    Another topic is joined up to where it ends now if the stream has an end, and what it has now is
    its backlog.
    """
    if view.topic_id != life.topic_id:
        lost = [Gap(p, committed.get(p, 0), end) for p, end in marks.high.items()]
        ends = None if life.end_offsets is None else dict(view.end_offsets)
        backlog = None if life.backlog_offsets is None else dict(view.end_offsets)
        return Resumption(dict(view.begin_offsets), _real(lost), ends, backlog)
    start: dict[int, int] = {}
    gaps: list[Gap] = []
    for partition in sorted({*committed, *view.end_offsets}):
        done, high = committed.get(partition, 0), marks.high.get(partition, 0)
        if partition not in view.end_offsets:
            gaps.append(Gap(partition, done, high))
            start[partition] = max(done, high)
            continue
        low = marks.low.get(partition, max(done, high))
        begin = view.begin_offsets.get(partition, 0)
        start[partition] = max(min(done, low), begin)
        gaps += [Gap(partition, min(done, low), begin), Gap(partition, max(done, low, begin), high)]
    kept = (_ends(each, start, marks, view) for each in (life.end_offsets, life.backlog_offsets))
    return Resumption(start, _real(gaps), *kept)


def _ends(
    offsets: Mapping[int, int] | None, start: Mapping[int, int], marks: Marks, view: TopicView
) -> dict[int, int] | None:
    """Nobody waits for records that were there and are lost, nor for lost partitions."""
    if offsets is None:
        return None
    ends = {}
    for partition, end in offsets.items():
        if partition in view.end_offsets:
            was_there = marks.high.get(partition, 0) >= end
            left = min(end, view.high_watermarks[partition]) if was_there else end
            ends[partition] = max(left, start[partition])
    return ends


def _real(gaps: list[Gap]) -> tuple[Gap, ...]:
    return tuple(sorted((g for g in gaps if g.end > g.first), key=lambda g: (g.partition, g.first)))
