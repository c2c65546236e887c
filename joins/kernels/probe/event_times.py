"""Event time of records: rowtime, the watermark that follows from it, and which records are late.

A record without rowtime, or further ahead of the batch's clock than `max_future_ms`, is a dead
letter and never moves a watermark. Late records do. `watermark` merges the channels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.calendar.ticks import millis
from joins.kernels.expressions.casts import Mask, integers, mask_of
from joins.kernels.expressions.evaluate import evaluate_rows
from joins.kernels.probe.arrival_files import OFFSET, PARTITION, TIME, TIMESTAMP, VALUE, WATERMARK
from joins.kernels.probe.probe import COORDINATES, ParsedRecords
from joins.kernels.records.layout import topic_names, true_partitions
from joins.plan.plan import WatermarkSpec
from joins.plan.stream_topics import StreamTopics
from watermark.model import MIN_TIMESTAMP

Rows = npt.NDArray[np.int64]

_MICROS = 1_000
_SHOWABLE_MS = (2**63 - 1) // _MICROS
_INSTANT = pa.timestamp("us", tz="UTC")

LATE_RECORDS = pa.schema(
    [
        *COORDINATES,
        ("timestamp", _INSTANT),
        ("event_time", _INSTANT),
        ("watermark", _INSTANT),
        ("reason", pa.string()),
        ("value", pa.binary()),
    ]
)
"""The late table. `watermark` is the operator's before the record; `reason` names the operator."""

LATE_FOR_JOIN = "join"
LATE_FOR_WINDOW = "window"
UNMATCHED = "unmatched"
"""Of a record that INNER JOIN drops at its bound of `join.late-rows.wait`."""


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The living parsed rows, in order of arrival; times in epoch milliseconds.

    `rows` are their numbers among the parsed rows. A row that is not `speaking` gives no watermark,
    and has `MIN_TIMESTAMP`.
    """

    rows: Rows
    partitions: Rows
    offsets: Rows
    times: Rows
    watermarks: Rows
    speaking: Mask


def event_times(parsed: ParsedRecords, spec: WatermarkSpec, clock_ms: int) -> EventTimes:
    """Read event time of `parsed`; records without a valid one are dead afterwards."""
    rowtime = parsed.columns[spec.rowtime]
    times, no_time = _milliseconds(rowtime)
    said, silent = _watermarks(parsed, spec)
    parsed.kill(np.flatnonzero(no_time), f'rowtime "{spec.rowtime}" is NULL')
    limit_ms = clock_ms + spec.max_future_ms
    _kill_future(parsed, f'rowtime "{spec.rowtime}"', ~no_time & (times > limit_ms), times, spec)
    _kill_future(parsed, f'watermark of "{spec.rowtime}"', ~silent & (said > limit_ms), said, spec)
    rows = parsed.living()
    origin = pa.array(parsed.input_rows[rows])
    return EventTimes(
        rows=rows,
        partitions=integers(parsed.records.column("partition").take(origin)),
        offsets=integers(parsed.records.column("offset").take(origin)),
        times=times[rows],
        watermarks=np.where(silent, MIN_TIMESTAMP, said)[rows],
        speaking=~silent[rows],
    )


def _watermarks(parsed: ParsedRecords, spec: WatermarkSpec) -> tuple[Rows, Mask]:
    scope = parsed.scope(lambda column: parsed.columns[column.name], len(parsed.input_rows))
    result = evaluate_rows(spec.expression, scope)
    for row, reason in result.errors.items():
        parsed.kill([row], f'watermark of "{spec.rowtime}": {reason}')
    return _milliseconds(result.values)


def _kill_future(
    parsed: ParsedRecords, what: str, ahead: Mask, times: Rows, spec: WatermarkSpec
) -> None:
    for row in np.flatnonzero(ahead):
        shown = pa.scalar(int(times[row]) * _MICROS, pa.timestamp("us")).cast(pa.string())
        limit = f"more than {spec.max_future_ms} ms ahead of the clock"
        parsed.kill([int(row)], f"{what} is {shown.as_py().removesuffix('000')}, {limit}")


def _milliseconds(instants: pa.Array) -> tuple[Rows, Mask]:
    missing = mask_of(instants.is_null())
    return millis(instants), missing


class Rises:
    """Greatest watermark of each partition, and the records where it rose."""

    def __init__(self) -> None:
        self._highest: dict[int, int] = {}
        self._steps: dict[int, list[list[int]]] = {}

    def add(self, times: EventTimes) -> None:
        for partition in np.unique(times.partitions):
            here = times.partitions == partition
            self._add(int(partition), times.offsets[here], times.watermarks[here])

    def _add(self, partition: int, offsets: Rows, watermarks: Rows) -> None:
        highest = self._highest.get(partition, MIN_TIMESTAMP)
        reached = np.maximum.accumulate(np.concatenate([[highest], watermarks]))
        rises = np.flatnonzero(reached[1:] > reached[:-1])
        steps = self._steps.setdefault(partition, [])
        steps += map(list, zip(offsets[rises].tolist(), watermarks[rises].tolist(), strict=True))
        self._highest[partition] = int(reached[-1])

    @property
    def steps(self) -> Mapping[int, Sequence[Sequence[int]]]:
        return self._steps


@dataclass(frozen=True, slots=True)
class OperatorWatermarks:
    """The operator's watermark before each record of a batch.

    It stays `start_ms` without `steps`: partition → (offset, watermark from there on), by offset.
    The first offset is not after the partition's first record of the batch.
    """

    start_ms: int
    steps: Mapping[int, tuple[Rows, Rows]] = field(default_factory=dict)

    @classmethod
    def of(cls, start_ms: int, merged: Mapping[int, Sequence[Sequence[int]]] | None) -> Self:
        """From the driver's merged steps; None where watermarks stand still within a batch."""
        steps = {}
        for partition, pairs in (merged or {}).items():
            table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            steps[partition] = (table[:, 0], table[:, 1])
        return cls(start_ms, steps)

    def before(self, times: EventTimes) -> Rows:
        watermarks_before = np.full(len(times.rows), self.start_ms, dtype=np.int64)
        for partition, (offsets, watermarks) in self.steps.items():
            here = np.flatnonzero(times.partitions == partition)
            place = np.searchsorted(offsets, times.offsets[here], side="right") - 1
            known = place >= 0
            watermarks_before[here[known]] = watermarks[place[known]]
        return watermarks_before


def late_for_join(times: Rows, watermarks: Rows) -> Mask:
    return times <= watermarks


def late_records(
    arrivals: pa.RecordBatch | pa.Table, topics: StreamTopics, reason: str
) -> pa.RecordBatch:
    rows, numbers = arrivals.num_rows, arrivals.column(PARTITION)
    columns = {
        "topic": topic_names(topics, numbers),
        "partition": true_partitions(numbers),
        "offset": arrivals.column(OFFSET),
        "timestamp": arrivals.column(TIMESTAMP),
        "event_time": _instants(arrivals.column(TIME)),
        "watermark": _instants(arrivals.column(WATERMARK)),
        "reason": pa.repeat(pa.scalar(reason), rows),
        "value": arrivals.column(VALUE),
    }
    table = pa.table(columns).cast(LATE_RECORDS).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], schema=LATE_RECORDS))


def _instants(milliseconds: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Epoch milliseconds as timestamps, NULL beyond their range."""
    numbers = np.asarray(milliseconds.to_numpy(), dtype=np.int64)
    sayable = np.abs(np.maximum(numbers, -_SHOWABLE_MS - 1)) <= _SHOWABLE_MS
    micros = pa.array(np.where(sayable, numbers, 0) * _MICROS, pa.int64(), mask=~sayable)
    return micros.cast(_INSTANT)
