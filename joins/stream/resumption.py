"""Where a new life of the stream begins, when what the old one has joined is not all there."""

from collections.abc import Mapping
from dataclasses import dataclass

from joins.durable.probe_lives import Gap, Life
from joins.plan.stream_topics import index_of
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

    Another topic is joined from its beginning, up to where it ends now if the stream has an end,
    and what it has now is its backlog. Of a topic that is gone all partitions are missing.
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
    """Nobody waits for records that were there and are lost, nor for lost partitions."""
    ends = {}
    for partition, end in offsets.items():
        if partition in view.end_offsets:
            was_there = marks.high.get(partition, 0) >= end
            left = min(end, view.high_watermarks[partition]) if was_there else end
            ends[partition] = max(left, start[partition])
    return ends


def _real(gaps: list[Gap]) -> tuple[Gap, ...]:
    return tuple(sorted((g for g in gaps if g.end > g.first), key=lambda g: (g.partition, g.first)))
