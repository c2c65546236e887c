"""The workers' half of an event batch: scan, then act on what the watermark says, then windows.

A0 `steps`   the watermarks of each partition, record by record, where they hold at once;
A  `scan`    Kafka rows become arrivals, dead letters and late records; without event-time joins
             they are joined at once and become parts of windows;
B  `act`     arrivals and waiting rows that are due are joined, the others wait;
C            parts of windows and their state become fired rows and new state.

Between the stages the driver merges watermarks. The last stage (B without windows, C) runs in a
sink's `BatchWriter`, by `EventTask.answers`; what it is given there are work items, rows of JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joins.kernels.arrival_files import (
    SLICE_ROWS,
    Released,
    Rows,
    ScratchFile,
    ScratchWriter,
    WaitingFile,
    filtered,
    times_of,
)
from joins.kernels.arrivals import RECORD, WATERMARK
from joins.kernels.event_times import (
    LATE_FOR_JOIN,
    LATE_RECORDS,
    EventTimes,
    OperatorWatermarks,
    Rises,
    event_times,
    late_for_join,
    late_records,
)
from joins.kernels.files import FileOrigin, ParquetStage
from joins.kernels.index import DimensionIndex
from joins.kernels.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe import JoinedBatch, ParsedRecords, ProbeKernelSpec, join_arrivals
from joins.kernels.probe import parse_records
from joins.pins import Pin
from joins.plan import JoinPlan
from joins.probe_task import (
    DEAD_LETTERS,
    ProbeTask,
    TaskCounts,
    pinned_context,
    pinned_indexes,
)
from joins.staging import TaskReport, current_origin

LATE = "late"
ITEM_DDL = "item string"


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """Where event batches keep their files; all nodes see these directories.

    Attributes:
        scratch: what the stages of the running batch exchange.
        waiting: root of the table of rows that wait for a watermark; None if none do.
        windows: root of the table of open windows; None without windows.
        late: root of the table of late records.
    """

    scratch: Path
    waiting: Path | None
    windows: Path | None
    late: Path


@dataclass(frozen=True, slots=True)
class EventTask:
    """What a worker needs for its part of an event batch; picklable.

    Attributes:
        probe: how records are parsed and joined.
        waits: records wait for the watermark: a join is as of their rowtime.
    """

    probe: ProbeTask
    places: EventPlaces
    waits: bool

    @property
    def kernel(self) -> ProbeKernelSpec:
        """The probe's."""
        return self.probe.kernel

    @property
    def epoch(self) -> int:
        """The runner's."""
        return self.probe.epoch

    @property
    def dead_letters(self) -> Path:
        """Root of the dead-letter table."""
        return self.probe.dead_letters

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: TaskCounts
    ) -> Iterator[JoinedBatch]:
        """The rows of the work items of one task, in their order."""
        for item in work_items(batches):
            yield from _acted(self, item, pin, counts)


def event_task(plan: JoinPlan, probe: ProbeTask, places: EventPlaces) -> EventTask:
    """The task of the event batches of `plan`."""
    return EventTask(probe, places, any(join.time is not None for join in plan.joins))


def waiting_schema(task: EventTask) -> pa.Schema:
    """Of the table of rows that wait: their own columns first, `_time` among them."""
    return task.kernel.arrivals.schema


def work_items(batches: Iterator[pa.RecordBatch]) -> Iterator[Mapping[str, Any]]:
    """What the driver has written in the column `item`."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield json.loads(text)


# A0 and A
# ----------------------------------------------------------------------------------------------


def steps(
    batches: Iterator[pa.RecordBatch], *, task: EventTask, pin: Pin
) -> Iterator[pa.RecordBatch]:
    """A0: where the watermarks of partitions rise; emits one report.

    Its detail is `{"steps": {"<partition>": [[offset, watermark], …]}}`: what the record at the
    offset said, if it is more than all before it said.
    """
    rises = Rises()
    for records in batches:
        rises.add(_timed(task, records, pin)[1])
    found = {str(partition): pairs for partition, pairs in rises.steps.items() if pairs}
    yield TaskReport(detail={"steps": found}).to_batch()


def _timed(task: EventTask, records: pa.RecordBatch, pin: Pin) -> tuple[ParsedRecords, EventTimes]:
    spec = task.kernel.watermark
    assert spec is not None, "a job with event time has a watermark"
    parsed = parse_records(task.kernel, records, pinned_context(pin))
    return parsed, event_times(parsed, spec, pin.batch_timestamp_ms)


def scan(
    batches: Iterator[pa.RecordBatch],
    *,
    task: EventTask,
    pin: Pin,
    merged: Mapping[int, Sequence[Sequence[int]]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """A: Kafka rows to arrivals, dead letters and late records; emits one report.

    `merged`, where watermarks hold at once: partition → (offset, operator's watermark from there
    on). Otherwise every record sees that of the pin.

    Detail of the report: `partitions` (for each its `records`, greatest `watermark` and greatest
    `max_time`, or null), and `arrivals` (files with `path`, `partition`, `rows`, `bytes`).
    """
    with ExitStack() as stack:
        stage = _Scan(task, pin, OperatorWatermarks.of(_start_ms(pin), merged), stack)
        for records in batches:
            stage.add(records)
        yield stage.report().to_batch()


def _start_ms(pin: Pin) -> int:
    """The operator's watermark before the batch."""
    assert pin.event is not None, "the pin of an event batch says its watermarks"
    return int(pin.event["watermark"])


class _Scan:
    """Stage A of one task; what it opens is closed by `stack`."""

    def __init__(
        self, task: EventTask, pin: Pin, watermarks: OperatorWatermarks, stack: ExitStack
    ) -> None:
        origin = current_origin(task.epoch, pin.batch)
        self._task = task
        self._pin = pin
        self._watermarks = watermarks
        self._stack = stack
        self._origin = origin
        self._counts = TaskCounts()
        self._partitions: dict[int, dict[str, int | None]] = {}
        self._writers: dict[int, ScratchWriter] = {}
        self._dead = stack.enter_context(
            ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin)
        )
        self._late = stack.enter_context(ParquetStage(task.places.late, LATE_RECORDS, origin))

    def add(self, records: pa.RecordBatch) -> None:
        """Take the next Kafka rows."""
        self._counts.read(records)
        parsed, times = _timed(self._task, records, self._pin)
        before = self._watermarks.before(times)
        self._see(records, times)
        late = late_for_join(times.times, before)
        arrivals = _arrivals(parsed, times, before)
        behind = late_records(filtered(arrivals, late), self._task.kernel.topic, LATE_FOR_JOIN)
        self._late.write(behind)
        self._counts.add(LATE, behind.num_rows)
        for partition in np.unique(times.partitions[~late]).tolist():
            rows = filtered(arrivals, ~late & (times.partitions == partition))
            self._writer(partition).write(rows)
        letters = parsed.dead_letters()
        self._dead.write(letters)
        self._counts.add("dead_letters", letters.num_rows)

    def _see(self, records: pa.RecordBatch, times: EventTimes) -> None:
        """Note what the driver is told of partitions."""
        every = records.column("partition").to_numpy()
        for partition in np.unique(every).tolist():
            here = times.partitions == partition
            seen = self._partitions.setdefault(
                partition, {"records": 0, "watermark": None, "max_time": None}
            )
            seen["records"] = (seen["records"] or 0) + int((every == partition).sum())
            _raise(seen, "max_time", times.times[here])
            _raise(seen, "watermark", times.watermarks[here & times.speaking])

    def _writer(self, partition: int) -> ScratchWriter:
        if partition not in self._writers:
            columns = self._task.kernel.arrivals
            writer = ScratchWriter(self._task.places.scratch, columns.schema, self._origin)
            self._writers[partition] = self._stack.enter_context(writer)
        return self._writers[partition]

    def report(self) -> TaskReport:
        """What the task has to say; its files are complete."""
        arrivals = [
            {"partition": partition, **asdict(file)}
            for partition, file in ((at, each.finish()) for at, each in self._writers.items())
            if file is not None
        ]
        self._counts.stage(DEAD_LETTERS, self._dead.finish())
        self._counts.stage(LATE, self._late.finish())
        seen = {str(partition): values for partition, values in self._partitions.items()}
        return TaskReport(
            files=self._counts.files,
            counts=self._counts.values,
            detail={"partitions": seen, "arrivals": arrivals},
        )


def _raise(seen: dict[str, int | None], name: str, values: Rows) -> None:
    if len(values):
        last, found = seen[name], int(values.max())
        seen[name] = found if last is None else max(last, found)


def _arrivals(parsed: ParsedRecords, times: EventTimes, before: Rows) -> pa.RecordBatch:
    """The living records as arrivals."""
    schema = parsed.spec.arrivals.schema
    timed = {TIME: pa.array(times.times), WATERMARK: pa.array(before)}
