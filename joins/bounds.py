"""Bounds: where a bounded stream ends, and what of a topic or of a plan lies before its end.

Spark's streaming source has no end and may plan a batch beyond ours. All that we compare, count and
pin is cut at the end first, so that the batch that reaches it is the same on every attempt.
"""

from collections.abc import Mapping


def cut(offsets: Mapping[int, int], end: Mapping[int, int] | None) -> dict[int, int]:
    """`offsets` of the partitions that have an end, none beyond it; all of them without an end."""
    if end is None:
        return dict(offsets)
    return {p: min(offset, end[p]) for p, offset in offsets.items() if p in end}


def is_reached(offsets: Mapping[int, int], end: Mapping[int, int] | None) -> bool:
    """Whether `offsets` are at the end in every partition; never without an end."""
    return end is not None and all(offsets.get(p, 0) >= last for p, last in end.items())
