"""A window: the half-open span [start, end) of milliseconds that records are grouped by."""

from typing import NamedTuple

from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP, clamp


class TimeWindow(NamedTuple):
    """[start, end) in epoch milliseconds; a named tuple, as it is hashed for every record.

    >>> TimeWindow(0, 100).max_timestamp_ms
    99
    """

    start_ms: int
    end_ms: int

    @property
    def max_timestamp_ms(self) -> int:
        return clamp(self.end_ms - 1)

    def touches(self, other: "TimeWindow") -> bool:
        """Whether sessions merge: they overlap, or one ends where the other starts.

        >>> TimeWindow(0, 10).touches(TimeWindow(10, 20))
        True
        """
        return self.start_ms <= other.end_ms and self.end_ms >= other.start_ms

    def cover(self, other: "TimeWindow") -> "TimeWindow":
        return TimeWindow(min(self.start_ms, other.start_ms), max(self.end_ms, other.end_ms))


GLOBAL_WINDOW = TimeWindow(MIN_TIMESTAMP, MAX_TIMESTAMP + 1)
"""All of time; its last instant is `MAX_TIMESTAMP`."""
