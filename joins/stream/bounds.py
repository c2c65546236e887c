"""Bounds: where a bounded stream ends, and what of a topic or of a plan lies before its end.

A backlog's end is where a stream goes on in processing time: no batch reads across it.

All that is compared, counted and pinned is cut at the end first.
"""

from collections.abc import Mapping


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
