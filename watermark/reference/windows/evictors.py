"""Evictors: which records leave a window before its function sees them, or after."""

from collections.abc import Callable

from watermark.checks import checked, require_not_negative
from watermark.reference.records import Record, Value


class Evictor:
    """Removes records from a window when it fires; the rest stays in the window."""

    def before(self, records: list[Record]) -> list[Record]:
        return records

    def after(self, records: list[Record]) -> list[Record]:
        return records


class _PlacedEvictor(Evictor):
    # reads better deep: Flink's three evictors differ only in what they keep.
    def __init__(self, *, evict_after: bool) -> None:
        self._evict_after = evict_after

    def before(self, records: list[Record]) -> list[Record]:
        return records if self._evict_after else self._kept(records)

    def after(self, records: list[Record]) -> list[Record]:
        return self._kept(records) if self._evict_after else records

    def _kept(self, records: list[Record]) -> list[Record]:
        raise NotImplementedError


@checked
class CountEvictor(_PlacedEvictor):
    """Keeps the newest `count` records, by arrival.

    >>> [each.value for each in CountEvictor(2).before([Record("a"), Record("b"), Record("c")])]
    ['b', 'c']

    Raises:
        InvalidParameterError: the count is negative.
    """

    def __init__(self, count: int, *, evict_after: bool = False) -> None:
        super().__init__(evict_after=evict_after)
        require_not_negative("count evictor", "count", count, unit="")
        self.count = count

    def _kept(self, records: list[Record]) -> list[Record]:
        return records[max(0, len(records) - self.count) :]


@checked
class TimeEvictor(_PlacedEvictor):
    """Keeps records within `span_ms` of the newest event time in the window.

    Raises:
        InvalidParameterError: the span is negative.
    """

    def __init__(self, span_ms: int, *, evict_after: bool = False) -> None:
        super().__init__(evict_after=evict_after)
        require_not_negative("time evictor", "span", span_ms)
        self.span_ms = span_ms

    def _kept(self, records: list[Record]) -> list[Record]:
        times = [each.timestamp_ms for each in records if each.timestamp_ms is not None]
        if not times:
            return records
        cut_ms = max(times) - self.span_ms
        return [each for each in records if each.timestamp_ms is None or each.timestamp_ms > cut_ms]


@checked
class DeltaEvictor(_PlacedEvictor):
    """Keeps records that differ from the newest by less than `threshold`."""

    def __init__(
        self, threshold: float, delta: Callable[[Value, Value], float], *, evict_after: bool = False
    ) -> None:
        super().__init__(evict_after=evict_after)
        self.threshold = threshold
        self.delta = delta

    def _kept(self, records: list[Record]) -> list[Record]:
        if not records:
            return records
        newest = records[-1].value
        return [each for each in records if self.delta(each.value, newest) < self.threshold]
