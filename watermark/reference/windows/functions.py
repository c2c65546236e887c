"""Contents and results of a window: reduce, aggregate and process functions."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from watermark.checks import checked, require_not_negative
from watermark.reference.timers import OutputTag, Record, Value
from watermark.reference.windows.triggers import TimeWindow


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
    """

    def __init__(self, count: int, *, evict_after: bool = False) -> None:
        super().__init__(evict_after=evict_after)
        require_not_negative("count evictor", "count", count, unit="")
        self.count = count

    def _kept(self, records: list[Record]) -> list[Record]:
        return records[max(0, len(records) - self.count) :]


@checked
class TimeEvictor(_PlacedEvictor):
    """Keeps records within `span_ms` of the newest event time in the window."""

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


Accumulator: TypeAlias = Any
Contents: TypeAlias = Any
"""Contents of a window, made by its `WindowContents`."""

ReduceFunction = Callable[[Value, Value], Value]


class AggregateFunction(Protocol):
    """Folds records into accumulators, which are values: `add` and `merge` give the new one."""

    def create(self) -> Accumulator:
        """The accumulator of no records."""

    def add(self, value: Value, accumulator: Accumulator) -> Accumulator:
        """With one record more."""

    def result(self, accumulator: Accumulator) -> Value:
        """The emitted value."""

    def merge(self, first: Accumulator, second: Accumulator) -> Accumulator:
        """The accumulator of the records of both."""


@dataclass(frozen=True, slots=True)
class WindowContext:
    """A process function's view of its window; `output` emits with the window's timestamp."""

    key: Hashable
    window: TimeWindow
    current_watermark_ms: int
    now_ms: int
    output: Callable[[OutputTag, Value], None]


ProcessWindowFunction = Callable[[WindowContext, list[Value]], Iterable[Value]]
"""From the context and the window's values (one value after reduce or aggregate) to results."""


EMPTY: Contents = object()
"""Returned by `WindowContents.fire` when nothing is left."""


class WindowContents(Protocol):
    """How the records of a window are kept."""

    def first(self, record: Record) -> Contents:
        """The contents of one record."""

    def add(self, contents: Contents, record: Record) -> Contents:
        """The contents with one record more."""

    def merge(self, first: Contents, second: Contents) -> Contents:
        """The contents of both."""

    def fire(self, contents: Contents, context: WindowContext) -> tuple[Iterable[Value], Contents]:
        """The results, and the contents from now on."""


def pass_through(context: WindowContext, values: list[Value]) -> Iterable[Value]:
    return values


class ReducedContents:
    """One value, the records reduced so far."""

    def __init__(
        self, reduce: ReduceFunction, process: ProcessWindowFunction = pass_through
    ) -> None:
        self._reduce = reduce
        self._process = process

    def first(self, record: Record) -> Contents:
        return record.value

    def add(self, contents: Contents, record: Record) -> Contents:
        return self._reduce(contents, record.value)

    def merge(self, first: Contents, second: Contents) -> Contents:
        return self._reduce(first, second)

    def fire(self, contents: Contents, context: WindowContext) -> tuple[Iterable[Value], Contents]:
        return self._process(context, [contents]), contents


class AggregatedContents:
    """An accumulator."""

    def __init__(
        self, function: AggregateFunction, process: ProcessWindowFunction = pass_through
    ) -> None:
        self._function = function
        self._process = process

    def first(self, record: Record) -> Contents:
        return self._function.add(record.value, self._function.create())

    def add(self, contents: Contents, record: Record) -> Contents:
        return self._function.add(record.value, contents)

    def merge(self, first: Contents, second: Contents) -> Contents:
        return self._function.merge(first, second)

    def fire(self, contents: Contents, context: WindowContext) -> tuple[Iterable[Value], Contents]:
        return self._process(context, [self._function.result(contents)]), contents


class ListedContents:
    """All values, for process functions that want each of them."""

    def __init__(self, process: ProcessWindowFunction) -> None:
        self._process = process

    def first(self, record: Record) -> Contents:
        return [record.value]

    def add(self, contents: Contents, record: Record) -> Contents:
        contents.append(record.value)
        return contents

    def merge(self, first: Contents, second: Contents) -> Contents:
        return [*first, *second]

    def fire(self, contents: Contents, context: WindowContext) -> tuple[Iterable[Value], Contents]:
        return self._process(context, list(contents)), contents


class EvictedContents(ListedContents):
    """All values with their times, for an evictor."""

    def __init__(self, process: ProcessWindowFunction, evictor: Evictor) -> None:
        super().__init__(process)
        self._evictor = evictor

    def first(self, record: Record) -> Contents:
        return [(record.value, record.timestamp_ms)]

    def add(self, contents: Contents, record: Record) -> Contents:
        contents.append((record.value, record.timestamp_ms))
        return contents

    def fire(self, contents: Contents, context: WindowContext) -> tuple[Iterable[Value], Contents]:
        left = self._evictor.before([Record(*each) for each in contents])
        results = list(self._process(context, [each.value for each in left]))
        kept = [(each.value, each.timestamp_ms) for each in self._evictor.after(left)]
        return results, kept or EMPTY


def reducing(reduce: ReduceFunction, process: ProcessWindowFunction) -> ProcessWindowFunction:
    """A process function over listed records that reduces them first; for evictors."""

    def run(context: WindowContext, values: list[Value]) -> Iterable[Value]:
        if not values:
            return ()
        reduced = values[0]
        for value in values[1:]:
            reduced = reduce(reduced, value)
        return process(context, [reduced])

    return run


def aggregating(
    function: AggregateFunction, process: ProcessWindowFunction
) -> ProcessWindowFunction:
    """A process function over listed records that aggregates them first; for evictors."""

    def run(context: WindowContext, values: list[Value]) -> Iterable[Value]:
        accumulator = function.create()
        for value in values:
            accumulator = function.add(value, accumulator)
        return process(context, [function.result(accumulator)])

    return run
