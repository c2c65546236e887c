"""A harness for tests of operators: put elements in, look at what comes out, in order.

It needs no clock and no threads, so a test says what time it is. Each call answers with the
elements that it caused; the harness also keeps them all. It is meant for tests of your own jobs
too:

>>> from watermark.reference.windows import Stream, TumblingWindows
>>> def count_words():
...     counted = Stream().key_by(lambda row: row[0]).window(TumblingWindows(60_000))
...     return counted.reduce(lambda a, b: (a[0], a[1] + b[1]))
>>> harness = OperatorHarness(count_words)
>>> harness.row(("a", 1), 1_000), harness.row(("a", 1), 2_000)
([], [])
>>> for element in harness.watermark(59_999):
...     print(element)
Record(value=('a', 2), timestamp_ms=59999)
Watermark(timestamp_ms=59999, use_processing_time=False)

`restart` stores the operator's state, makes a new operator with the function you gave and goes on
from the stored state: a test that gives the same with a restart anywhere shows that the operator
is resumable.

>>> harness.restart()
>>> _ = harness.row(("a", 7), 60_000), harness.end_of_input()
>>> harness.values()
[('a', 2), ('a', 7)]

`logged` is what a sink would write down: each record with the watermark that had come before it.

>>> harness.logged()[-1]
LoggedRecord(value=('a', 7), timestamp_ms=119999, watermark_ms=59999)

For sources, `rows_with_watermarks` reads rows and `WATERMARK.<time>` lines:

>>> list(rows_with_watermarks(["5,Mike,1", "WATERMARK.9"], time_of=int))
[Record(value=['Mike', '1'], timestamp_ms=5), Watermark(timestamp_ms=9, use_processing_time=False)]
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from watermark.checks import checked
from watermark.model import (
    END_OF_TIME,
    MIN_TIMESTAMP,
    PROCESSING_TIME,
    Watermark,
    WatermarkStatus,
)
from watermark.reference.operator import Operator
from watermark.reference.timers import Element, OutputTag, Record, SideRecord, Value

WATERMARK_LINE = "WATERMARK."


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record as a sink sees it; `watermark_ms` is `MIN_TIMESTAMP` before the first watermark."""

    value: Value
    timestamp_ms: int | None
    watermark_ms: int


@checked
class OperatorHarness:
    """Drives one operator; `operator` changes with `restart`, `output` has all its elements."""

    # reads better long: what Flink's harness has: a method an input, and one an output.

    def __init__(self, new_operator: Callable[[], Operator], *, now_ms: int = 0) -> None:
        self._new_operator = new_operator
        self.operator = new_operator()
        self.output: list[Element] = []
        self.now_ms = now_ms
        self._source = self.operator.inputs[0]

    def row(
        self, value: Value, timestamp_ms: int | None = None, *, source: str | None = None
    ) -> list[Element]:
        record = Record(value, timestamp_ms)
        return self._keep(
            self.operator.process_record(record, now_ms=self.now_ms, source=source or self._source)
        )

    def watermark(self, watermark: Watermark | int, *, source: str | None = None) -> list[Element]:
        if isinstance(watermark, int):
            watermark = Watermark(watermark)
        return self._keep(
            self.operator.process_watermark(
                watermark, now_ms=self.now_ms, source=source or self._source
            )
        )

    def processing_time(self, *, source: str | None = None) -> list[Element]:
        return self.watermark(PROCESSING_TIME, source=source)

    def end_of_input(self, *, source: str | None = None) -> list[Element]:
        return self.watermark(END_OF_TIME, source=source)

    def status(self, status: WatermarkStatus, *, source: str | None = None) -> list[Element]:
        return self._keep(
            self.operator.process_status(status, now_ms=self.now_ms, source=source or self._source)
        )

    def clock(self, now_ms: int) -> list[Element]:
        self.now_ms = now_ms
        return self._keep(self.operator.advance_clock(now_ms))

    def feed(self, elements: Iterable[Record | Watermark | WatermarkStatus]) -> list[Element]:
        caused: list[Element] = []
        for element in elements:
            if isinstance(element, Record):
                caused += self.row(element.value, element.timestamp_ms)
            elif isinstance(element, Watermark):
                caused += self.watermark(element)
            else:
                caused += self.status(element)
        return caused

    def restart(self) -> None:
        stored = pickle.dumps(self.operator.snapshot())
        self.operator = self._new_operator()
        self.operator.restore(pickle.loads(stored))

    def records(self) -> list[Record]:
        return [each for each in self.output if isinstance(each, Record)]

    def values(self) -> list[Value]:
        return [each.value for each in self.records()]

    def side(self, tag: OutputTag) -> list[Record]:
        return [
            each.record for each in self.output if isinstance(each, SideRecord) and each.tag == tag
        ]

    def watermarks(self) -> list[Watermark]:
        return [each for each in self.output if isinstance(each, Watermark)]

    def logged(self) -> list[LoggedRecord]:
        return log(self.output)

    def _keep(self, elements: Sequence[Element]) -> list[Element]:
        self.output += elements
        return list(elements)


def log(elements: Iterable[Element]) -> list[LoggedRecord]:
    logged: list[LoggedRecord] = []
    watermark_ms = MIN_TIMESTAMP
    for element in elements:
        if isinstance(element, Watermark):
            watermark_ms = element.timestamp_ms
        elif isinstance(element, Record):
            logged.append(LoggedRecord(element.value, element.timestamp_ms, watermark_ms))
    return logged


def rows_with_watermarks(
    lines: Iterable[str], *, time_of: Callable[[str], int]
) -> Iterator[Record | Watermark]:
    """Rows `<time>,<field>,…` and `WATERMARK.<time>` lines as the elements of a stream."""
    for line in lines:
        if line.startswith(WATERMARK_LINE):
            yield Watermark(time_of(line.removeprefix(WATERMARK_LINE)))
        else:
            time, *fields = line.split(",")
            yield Record(fields, time_of(time))
