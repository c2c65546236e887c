"""The workers' half of an event batch: scan, then act on the watermark, then windows.

A0 `steps`: finds the watermarks of each partition, record by record, where they hold at once.
A `scan`: turns Kafka rows into arrivals, dead letters and late records; without waiting rows it
joins them at once and adds them to windows.
B `act`: joins arrivals and waiting rows that are due; the others wait.
C: turns parts of windows and their state into fired rows and new state.

Between the stages the driver merges watermarks. The last stage (B without windows, C) runs in a
sink's `BatchWriter`, by `EventTask.answers`, whose input is work items: rows of JSON.
"""
# reads better long: the stages of one batch in their order, each fed by the one before.

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joins.durable.pins import Pin
from joins.kernels.expressions.casts import Mask
from joins.kernels.index.index import DimensionIndex
from joins.kernels.probe.arrival_files import (
    TIME,
    WATERMARK,
    Released,
    Rows,
    ScratchFiles,
    WaitingFile,
    filtered,
    in_order,
    mapped,
    with_column,
)
from joins.kernels.probe.event_times import (
    LATE_FOR_JOIN,
    LATE_FOR_WINDOW,
    LATE_RECORDS,
    EventTimes,
    OperatorWatermarks,
    Rises,
    event_times,
    late_for_join,
    late_records,
)
from joins.kernels.probe.files import FileOrigin, ParquetStage, SharedTable
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import (
    JoinedBatch,
    ParsedRecords,
    ProbeKernelSpec,
    join_arrivals,
    parse_records,
)
from joins.kernels.table_path import TablePath
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import state_schema
from joins.plan.plan import JoinPlan
from joins.plan.stream_topics import StreamTopics
from joins.worker.index_source import spill_directory
from joins.worker.late_rows import WAITING, LateRows
from joins.worker.probe_task import (
    DEAD_LETTERS,
    ProbeTask,
    TaskCounts,
    pinned_context,
    pinned_indexes,
)
from joins.worker.staging import TaskReport, current_origin
from joins.worker.window_task import LATE, WindowClock, WindowParts, WindowTask, once_a_record
from watermark.model import MAX_TIMESTAMP

WINDOW_BUCKETS = 8
"""Of a job's windows, for good: tasks that may fire at the same time, and files a batch."""


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """Where event batches keep their files; all nodes see these paths."""

    scratch: TablePath  # files that the stages of the running batch exchange
    # root of the table of rows that wait for a watermark; None if none wait
    waiting: TablePath | None
    windows: TablePath | None  # root of the table of open windows; None without windows
    late: SharedTable
    # `waiting` and `windows` → where files of the table are read, if not where it writes
    past: Mapping[str, TablePath] = field(default_factory=dict)

    @property
    def spill(self) -> Path:
        return self.scratch if isinstance(self.scratch, Path) else spill_directory()


@dataclass(frozen=True, slots=True)
class EventTask:
    """A worker's part of an event batch; picklable.

    `waits`: records wait for the watermark, as a join is as of their rowtime.
    `windows_follow_clock`: windows are in processing time.
    """

    probe: ProbeTask
    places: EventPlaces
    waits: bool
    windows: WindowSpec | None = None
    windows_follow_clock: bool = False

    @property
    def kernel(self) -> ProbeKernelSpec:
        return self.probe.kernel

    def reading(self, topics: StreamTopics) -> "EventTask":
        return replace(self, probe=self.probe.reading(topics))

    @property
    def epoch(self) -> int:
        return self.probe.epoch

    @property
    def dead_letters(self) -> TablePath:
        return self.probe.dead_letters

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: TaskCounts
    ) -> Iterator[JoinedBatch]:
        hit = self.probe.failpoints.hit
        if self.kernel.waits_for:
            hit("C5", pin.batch)
            yield from self.late_rows.answers(batches, pin, counts)
            return
        if self.windows is None:
            acting = _Acting(self, pin, counts)
            hit("C5", pin.batch)
            for rows in acting.rows_of(batches):
                counts.add("joined", rows.rows.num_rows)
                yield rows
            return
        hit("C5", pin.batch)
        origin = current_origin(self.epoch, pin.batch)
        for item in work_items(batches):
            yield from self.firing.fired(item, pin, counts, origin)

    @property
    def late_rows(self) -> LateRows:
        places = self.places
        root = places.waiting
        assert root is not None, "rows wait in a table"
        read_from = places.past.get("waiting", root)
        return LateRows(self.probe, root, read_from, places.spill, places.late)

    @property
    def firing(self) -> WindowTask:
        spec, root = self.windows, self.places.windows
        assert spec is not None, "the plan has windows"
        assert root is not None, "windows have a table"
        read_from = self.places.past.get("windows", root)
        places = self.places
        return WindowTask(spec, self.kernel, root, places.late, read_from, places.scratch)

    def clock(self, pin: Pin) -> WindowClock:
        return WindowClock.of(pin, follows_clock=self.windows_follow_clock)


def event_task(plan: JoinPlan, probe: ProbeTask, places: EventPlaces) -> EventTask:
    waits = any(join.time is not None for join in plan.joins) or bool(plan.late_joins)
    if plan.window is None:
        return EventTask(probe, places, waits)
    spec = WindowSpec.of(plan, WINDOW_BUCKETS)
    return EventTask(probe, places, waits, spec, plan.window.time is None)


def windows_schema(task: EventTask) -> pa.Schema:
    assert task.windows is not None, "the plan has windows"
    return state_schema(task.windows)


def waiting_schema(task: EventTask) -> pa.Schema:
    return task.kernel.arrivals.schema


def work_items(batches: Iterator[pa.RecordBatch]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield json.loads(text)


# A0 and A
# ----------------------------------------------------------------------------------------------


def steps(
    batches: Iterator[pa.RecordBatch], *, task: EventTask, pin: Pin
) -> Iterator[pa.RecordBatch]:
    """A0: where the watermarks of partitions rise; emits one report.

    Its detail is `{"steps": {"<partition>": [[offset, watermark], …]}}`: the watermark of the
    record at the offset, where it exceeds all before it.
    """
    rises = Rises()
    for records in batches:
        rises.add(_timed(task, records, pin)[1])
    steps_of = {str(partition): pairs for partition, pairs in rises.steps.items() if pairs}
    yield TaskReport(detail={"steps": steps_of}).to_batch()


def _timed(task: EventTask, records: pa.RecordBatch, pin: Pin) -> tuple[ParsedRecords, EventTimes]:
    parsed = parse_records(task.kernel, records, pinned_context(pin))
    assert parsed.spec.watermark is not None, "a job with event time has a watermark"
    return parsed, event_times(parsed, parsed.spec.watermark, pin.batch_timestamp_ms)


def scan(
    batches: Iterator[pa.RecordBatch],
    *,
    task: EventTask,
    pin: Pin,
    merged: Mapping[int, Sequence[Sequence[int]]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """A: Kafka rows to arrivals, dead letters and late records; emits one report.

    Where watermarks hold at once, `merged` maps partition → (offset, operator's watermark from
    there on). Otherwise every record sees the watermark of the pin.

    Detail of the report: `partitions` (for each its `records`, greatest `watermark` and greatest
    `max_time`, or null), and `arrivals` (files with `path`, `partition`, `rows`, `bytes`) or,
    without waiting rows, `partials` (files with `bucket`, `path`, `rows`, `bytes`).
    """
    with ExitStack() as stack:
        stage = _Scan(task, pin, merged, stack)
        for records in batches:
            stage.add(records)
        yield stage.report().to_batch()


class _Scan:
    """Stage A of one task; `stack` closes its resources."""

    def __init__(
        self,
        task: EventTask,
        pin: Pin,
        merged: Mapping[int, Sequence[Sequence[int]]] | None,
        stack: ExitStack,
    ) -> None:
        origin = current_origin(task.epoch, pin.batch)
        start_ms = pin.of_event.watermark if task.waits else task.clock(pin).start_ms
        self._task = task
        self._pin = pin
        self._watermarks = OperatorWatermarks.of(start_ms, merged)
        self._counts = TaskCounts()
        self._partitions: dict[int, dict[str, int | None]] = {}
        self._arrivals = stack.enter_context(
            ScratchFiles(task.places.scratch, task.kernel.arrivals.schema, origin, by="partition")
        )
        self._windows = None if task.waits else _InWindows(task, pin, origin, stack)
        self._dead = stack.enter_context(
            ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin)
        )
        self._late = stack.enter_context(task.places.late.stage(LATE_RECORDS, origin))

    def add(self, records: pa.RecordBatch) -> None:
        self._counts.read(records)
        if self._task.kernel.watermark is None:
            parsed = parse_records(self._task.kernel, records, pinned_context(self._pin))
            arrivals = parsed.as_arrivals(parsed.living())
            self._see(records, None)
        else:
            parsed, times = _timed(self._task, records, self._pin)
            before = self._watermarks.before(times)
            timed = (pa.array(times.times), pa.array(before))
            arrivals = parsed.as_arrivals(times.rows, *timed)
            self._see(records, times)
        self._bury(parsed.dead_letters())
        if self._windows is not None:
            letters, late = self._windows.add(arrivals, self._counts)
            self._bury(letters)
            self._put_late(once_a_record(late), LATE_FOR_WINDOW)
            return
        late_rows = late_for_join(times.times, before)
        self._put_late(filtered(arrivals, late_rows), LATE_FOR_JOIN)
        for partition in np.unique(times.partitions[~late_rows]).tolist():
            here = ~late_rows & (times.partitions == partition)
            self._arrivals.write(partition, filtered(arrivals, here))

    def _bury(self, letters: pa.RecordBatch) -> None:
        self._dead.write(letters)
        self._counts.add("dead_letters", letters.num_rows)

    def _put_late(self, rows: pa.RecordBatch | pa.Table, reason: str) -> None:
        records = late_records(rows, self._task.kernel.topics, reason)
        self._late.write(records)
        self._counts.add(LATE, records.num_rows)

    def _see(self, records: pa.RecordBatch, times: EventTimes | None) -> None:
        every = records.column("partition").to_numpy()
        for partition in np.unique(every).tolist():
            seen = self._partitions.setdefault(
                partition, {"records": 0, "watermark": None, "max_time": None}
            )
            seen["records"] = (seen["records"] or 0) + int((every == partition).sum())
            if times is not None:
                here = times.partitions == partition
                _raise(seen, "max_time", times.times[here])
                _raise(seen, "watermark", times.watermarks[here & times.speaking])

    def report(self) -> TaskReport:
        detail: dict[str, Any] = {
            "partitions": {str(at): seen for at, seen in self._partitions.items()},
            "arrivals": self._arrivals.finish(),
            "partials": [] if self._windows is None else self._windows.parts.finish(),
        }
        self._counts.stage(DEAD_LETTERS, self._dead.finish())
        self._counts.stage(LATE, self._late.finish())
        return TaskReport(self._counts.files, self._counts.values, detail)


def _raise(seen: dict[str, int | None], name: str, values: Rows) -> None:
    if len(values):
        last, greatest = seen[name], int(values.max())
        seen[name] = greatest if last is None else max(last, greatest)


class _InWindows:
    def __init__(self, task: EventTask, pin: Pin, origin: FileOrigin, stack: ExitStack) -> None:
        assert task.windows is not None, "what waits for nothing goes into windows"
        self.parts = stack.enter_context(WindowParts(task.windows, task.places.scratch, origin))
        self._kernel = task.kernel
        self._clock = task.clock(pin)
        self._indexes = pinned_indexes(task.probe, pin)
        self._context = pinned_context(pin)

    def add(self, arrivals: pa.RecordBatch, counts: TaskCounts) -> tuple[pa.RecordBatch, pa.Table]:
        """Returns dead letters and the rows that no window took."""
        answer = join_arrivals(self._kernel, arrivals, self._indexes, self._context)
        counts.add("matched", answer.matched)
        counts.add("unmatched", answer.unmatched)
        return answer.dead_letters, self.parts.add(answer.rows, self._clock)


# B
# ----------------------------------------------------------------------------------------------


def act(
    batches: Iterator[pa.RecordBatch], *, task: EventTask, pin: Pin
) -> Iterator[pa.RecordBatch]:
    """B where windows follow: due rows become parts of windows; emits one report.

    Its detail is `{"partials": [{"bucket", "path", "rows", "bytes"}]}`.
    """
    assert task.windows is not None, "without windows B is the last stage"
    origin = current_origin(task.epoch, pin.batch)
    counts, clock = TaskCounts(), task.clock(pin)
    with (
        WindowParts(task.windows, task.places.scratch, origin) as parts,
        ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead,
        task.places.late.stage(LATE_RECORDS, origin) as late,
    ):
        for answer in _Acting(task, pin, counts).rows_of(batches):
            dead.write(answer.dead_letters)
            rows = once_a_record(parts.add(answer.rows, clock))
            late.write(late_records(rows, task.kernel.topics, LATE_FOR_WINDOW))
            counts.add(LATE, rows.num_rows)
        counts.stage(DEAD_LETTERS, dead.finish())
        counts.stage(LATE, late.finish())
        detail = {"partials": parts.finish()}
    yield TaskReport(counts.files, counts.values, detail).to_batch()


class _Acting:
    def __init__(self, task: EventTask, pin: Pin, counts: TaskCounts) -> None:
        assert task.places.waiting is not None, "rows wait in a table"
        self._task = task
        self._root = task.places.waiting
        self._read_from = task.places.past.get("waiting", self._root)
        self._counts = counts
        self._origin = current_origin(task.epoch, pin.batch)
        self._context = pinned_context(pin)
        self._indexes: Mapping[str, DimensionIndex] = pinned_indexes(task.probe, pin)
        self._window_start_ms = None if task.windows is None else task.clock(pin).start_ms

    def rows_of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[JoinedBatch]:
        """The answers of work items.

        An item is `{"parts": [{"partition", "arrivals": [path], "waiting": [{"path", "rewrite"}]}],
        "after", "upto", "steps": [watermark]}`. Rows after `after` and up to `upto` are due. Other
        arrivals go to one new file a part, with what remains of rewritten files.
        """
        for item in work_items(batches):
            due = _Due.of(item)
            for part in item["parts"]:
                yield from self._part(part, due)

    def _part(self, part: Mapping[str, Any], due: "_Due") -> Iterator[JoinedBatch]:
        columns = self._task.kernel.arrivals
        with (
            ParquetStage(self._root, columns.schema, self._origin) as waiting,
            Released(self._task.places.spill, columns, self._origin) as released,
        ):
            for each in part["waiting"]:
                file = WaitingFile(self._read_from / each["path"], columns)
                for rows in file.between(due.after_ms, due.upto_ms):
                    released.copy(rows)
                    self._counts.add("released", rows.num_rows)
                if each["rewrite"]:
                    for rows in file.between(due.upto_ms, MAX_TIMESTAMP):
                        waiting.write(rows)
            scratch = self._task.places.scratch
            arrived = [rows for path in part["arrivals"] for rows in mapped(scratch / path)]
            for rows in in_order(arrived, due.is_ahead, lambda times: times):
                waiting.write(rows)
                self._counts.add("waited", rows.num_rows)
            self._counts.stage(WAITING + str(part["partition"]), waiting.finish())
            for rows in in_order(released.and_then(arrived), due.is_reached, due.rank):
                yield self._joined(rows, due)

    def _joined(self, rows: pa.RecordBatch, due: "_Due") -> JoinedBatch:
        if self._window_start_ms is not None:
            before = due.before(rows.column(TIME).to_numpy(), self._window_start_ms)
            rows = with_column(rows, WATERMARK, pa.array(before))
        answer = join_arrivals(self._task.kernel, rows, self._indexes, self._context)
        self._counts.add("matched", answer.matched)
        self._counts.add("unmatched", answer.unmatched)
        self._counts.add("dead_letters", answer.dead_letters.num_rows)
        return answer


@dataclass(frozen=True, slots=True)
class _Due:
    """How the operator's watermark moves in a batch; `steps` ends with `upto_ms`."""

    after_ms: int
    upto_ms: int
    steps: Rows

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> "_Due":
        after, upto = int(item["after"]), int(item["upto"])
        on_the_way = {each for each in item.get("steps", ()) if after < each < upto}
        return cls(after, upto, np.array([*sorted(on_the_way), upto], dtype=np.int64))

    def is_reached(self, times: Rows) -> Mask:
        return times <= self.upto_ms

    def is_ahead(self, times: Rows) -> Mask:
        return times > self.upto_ms

    def rank(self, times: Rows) -> Rows:
        return np.searchsorted(self.steps, times)

    def before(self, times: Rows, start_ms: int) -> Rows:
        held = np.concatenate([[start_ms], self.steps[:-1]])
        watermarks: Rows = held[self.rank(times)]
        return watermarks
