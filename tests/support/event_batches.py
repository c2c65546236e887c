"""A job with event time without Spark: its batches are cut, scanned and acted on in this process.

The driver's part is as small as it can be: watermarks go through the valve of `watermark`, files of
the state are lists.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from joins.durable.pins import ABSENT, EventPin, Pin
from joins.kernels.index.index import DimensionIndex, build
from joins.kernels.probe.files import SharedTable, StagedFile
from joins.kernels.probe.probe import index_spec, kernel_spec
from joins.kernels.table_path import TablePath
from joins.plan.plan import JoinPlan
from joins.plan.stream_topics import StreamTopics
from joins.worker.event_task import EventPlaces, EventTask, act, event_task, scan, steps
from joins.worker.probe_task import IndexPlace, ProbeTask, TaskCounts
from joins.worker.staging import BatchReport, merge_reports
from tests.support.changelog import batch_of, record
from watermark import MAX_TIMESTAMP, MIN_TIMESTAMP, StatusWatermarkValve, Watermark

CLOCK_MS = 1_000_000
PARTITIONS = (0, 1)
_CLICKS = StreamTopics.one("clicks")
_NONE = BatchReport({}, {}, ())

Arrived = Mapping[int, Sequence[Mapping[str, Any] | bytes | None]]
"""Of one batch: partition → values, objects or raw bytes."""


def frames_of(arrived: Arrived, ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    """The records as Kafka gives them, where their partitions end at `ends`."""
    for partition, values in sorted(arrived.items()):
        first = ends[partition] - len(values)
        raw = [json.dumps(v).encode() if isinstance(v, dict) else v for v in values]
        yield pa.RecordBatch.from_pydict(
            {
                "value": pa.array(raw, pa.binary()),
                "partition": pa.array([partition] * len(raw), pa.int32()),
                "offset": pa.array(range(first, first + len(raw)), pa.int64()),
                "timestamp": pa.array([7_000] * len(raw), pa.timestamp("us", tz="UTC")),
            }
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch has done.

    Attributes:
        rows: of the output, a tuple each, in the order in which tasks gave them.
        kinds: of the rows, None where all are new.
        watermarks: before and behind the batch.
    """

    rows: list[tuple[Any, ...]]
    kinds: list[int] | None
    watermarks: tuple[int, int]
    late: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    counts: Mapping[str, int]


@dataclass(slots=True)
class EventJob:
    """Runs batches of `plan`; users 1 to 3 are in the one dimension, if it has one.

    Attributes:
        clock_ms: of the newest batch, once the operator is in processing time.
        partitions: of the stream, by their numbers in `topics`.
        scratch: where the stages of a batch meet, if not below `root`.
    """

    plan: JoinPlan
    root: Path
    topics: StreamTopics = _CLICKS
    partitions: tuple[int, ...] = PARTITIONS
    scratch: TablePath | None = None
    task: EventTask = field(init=False)
    watermark_ms: int = MIN_TIMESTAMP
    clock_ms: int | None = None
    number: int = 0
    ends: dict[int, int] = field(init=False)
    valve: StatusWatermarkValve = field(init=False)
    waiting: dict[int, list[StagedFile]] = field(default_factory=dict)
    windows: dict[int, list[StagedFile]] = field(default_factory=dict)
    pin: Pin | None = None
    frames: list[pa.RecordBatch] = field(default_factory=list)
    late_files: list[StagedFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends = dict.fromkeys(self.partitions, 0)
        self.valve = StatusWatermarkValve([str(each) for each in self.partitions])
        indexes = {}
        for join in self.plan.joins:
            spec = index_spec(self.plan, join, 1)
            changes = batch_of([record("r", number, number, number) for number in (1, 2, 3)])
            build(self.root / "index", 1, spec, [changes])
            DimensionIndex.attach(self.root / "index", 1, spec)
            indexes[join.alias] = IndexPlace("users", self.root / "index", spec)
        kernel = kernel_spec(self.plan).reading(self.topics)
        probe = ProbeTask(kernel, indexes, self.root / "dead", 2)
        waits = any(join.time is not None for join in self.plan.joins)
        places = EventPlaces(
            scratch=self.scratch or self.root / "scratch",
            waiting=self.root / "waiting" if waits else None,
            windows=self.root / "windows" if self.plan.window else None,
            late=SharedTable(self.root / "late"),
        )
        self.task = event_task(self.plan, probe, places)

    def run(
        self, arrived: Arrived, *, upto: int | None = None, now_ms: int | None = None
    ) -> Outcome:
        """A batch of these records; `upto` is a watermark that it reaches in any case.

        With `now_ms` the operator is in processing time at the batch's end, and this is its clock.
        """
        before, pin = self.watermark_ms, self._pin(arrived)
        self.pin, self.frames = pin, list(frames_of(arrived, self.ends))
        frames = self.frames
        spec = self.plan.probe.watermark
        merged, on_the_way = self._merged(frames, pin) if spec and spec.on_event else (None, [])
        scanned = _collected(scan(iter(frames), task=self.task, pin=pin, merged=merged))
        (detail,) = scanned.details
        if merged is None and self.clock_ms is None:
            for partition, seen in sorted(detail["partitions"].items()):
                if seen["watermark"] is not None:
                    self._say(int(partition), seen["watermark"])
        if upto is not None:
            self.watermark_ms = max(self.watermark_ms, upto)
        if self.plan.window is not None and self.plan.window.time is None:
            self.watermark_ms = pin.event.clock_ms - 1
        moves = self._moves(before, on_the_way, now_ms)
        counts = TaskCounts()
        acted, answers = self._rest(detail, pin, moves, counts)
        self._keep(counts)
        if now_ms is not None:
            self.waiting.clear()  # all of its files are behind the watermark
        staged = {name: (file,) for name, file in counts.files.items()}
        reports = [scanned, acted, BatchReport(staged, counts.values, ())]
        self.late_files = [file for each in reports for file in each.files.get("late", ())]
        return self._outcome(answers, reports, before)

    def _moves(
        self, before: int, steps: list[int], now_ms: int | None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """How far the time goes for the join and for windows."""
        moved = {"after": before, "upto": self.watermark_ms, "steps": steps}
        if now_ms is None:
            return moved, moved
        fires = {**moved, "after": self.clock_ms or before, "upto": now_ms}
        self.watermark_ms, self.clock_ms = MIN_TIMESTAMP, now_ms
        return {**moved, "upto": MAX_TIMESTAMP}, fires

    def _pin(self, arrived: Arrived) -> Pin:
        start = dict(self.ends)
        for partition, values in arrived.items():
            self.ends[partition] += len(values)
        self.number += 1
        clock = CLOCK_MS + 1_000 * self.number
        event = EventPin(
            watermark=self.watermark_ms,
            window_watermark=ABSENT if self.clock_ms is None else self.clock_ms,
            clock_ms=clock,
        )
        versions = {"users": 1} if self.plan.joins else {}
        return Pin(self.number, "clicks", start, dict(self.ends), versions, clock, 2, {}, event)

    def _say(self, partition: int, watermark_ms: int) -> None:
        known = {each.channel: each.watermark for each in self.valve.channels()}
        if watermark_ms > known[str(partition)].timestamp_ms:
            self.valve.input_watermark(str(partition), Watermark(watermark_ms), now_ms=0)
        self.watermark_ms = max(self.watermark_ms, self.valve.last_output.timestamp_ms)

    def _merged(
        self, frames: list[pa.RecordBatch], pin: Pin
    ) -> tuple[dict[int, list[tuple[int, int]]], list[int]]:
        """The operator's watermarks by place, and those that it reaches."""
        if self.clock_ms is not None:
            return {}, []
        (detail,) = _collected(steps(iter(frames), task=self.task, pin=pin)).details
        found: dict[int, list[tuple[int, int]]] = {}
        reached = []
        for partition, start in sorted(pin.start_offsets.items()):
            found[partition] = [(start, self.watermark_ms)]
            for offset, watermark_ms in detail["steps"].get(str(partition), ()):
                self._say(partition, watermark_ms)
                found[partition].append((offset + 1, self.watermark_ms))
                reached.append(self.watermark_ms)
        return found, sorted({each for each in reached if each > pin.event.watermark})

    def _rest(
        self,
        detail: Mapping[str, Any],
        pin: Pin,
        moves: tuple[Mapping[str, Any], Mapping[str, Any]],
        counts: TaskCounts,
    ) -> tuple[BatchReport, list[Any]]:
        """What is left to do behind the scan: the report of B where C follows, and the answers."""
        moved, fires = moves
        acted, partials = _NONE, list(detail["partials"])
        if self.task.waits:
            item = _frame({"stage": "act", "parts": self._parts(detail["arrivals"]), **moved})
            if self.task.windows is None:
                return acted, list(self.task.answers(iter([item]), pin, counts))
            acted = _collected(act(iter([item]), task=self.task, pin=pin))
            for name, staged in acted.files.items():
                if name.startswith("waiting/"):
                    counts.stage(name, staged[0])
            (told,) = acted.details
            partials = told["partials"]
        item = _frame({"stage": "windows", "parts": self._buckets(partials), **fires})
        return acted, list(self.task.answers(iter([item]), pin, counts))

    def _parts(self, arrivals: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "partition": partition,
                "arrivals": [e["path"] for e in arrivals if e["partition"] == partition],
                "waiting": [
                    {"path": file.path, "rewrite": self.number % 2 == 0}
                    for file in self.waiting.get(partition, ())
                ],
            }
            for partition in self.partitions
        ]

    def _buckets(self, partials: list[dict[str, Any]]) -> list[dict[str, Any]]:
        merges = self.task.windows is not None and self.task.windows.merges
        parts = []
        for bucket in sorted({each["bucket"] for each in partials} | set(self.windows)):
            state = []
            for file in self.windows.get(bucket, ()):
                stats = json.loads(file.stats)
                low, high = (stats[each]["_due"] for each in ("minValues", "maxValues"))
                rewrite = merges or self.number % 2 == 0
                state.append(
                    {"path": file.path, "min_due": low, "max_due": high, "rewrite": rewrite}
                )
            here = [each for each in partials if each["bucket"] == bucket]
            parts.append({"bucket": bucket, "state": state, "partials": here})
        return parts

    def _keep(self, counts: TaskCounts) -> None:
        """The next state: what is new, behind what the batch has not written anew."""
        merges = self.task.windows is not None and self.task.windows.merges
        for kind, kept in (("waiting", self.waiting), ("windows", self.windows)):
            if self.number % 2 == 0 or (kind == "windows" and merges):
                kept.clear()
            for name, file in counts.files.items():
                if name.startswith(f"{kind}/"):
                    kept.setdefault(int(name.removeprefix(f"{kind}/")), []).append(file)

    def _outcome(self, answers: list[Any], reports: list[BatchReport], before: int) -> Outcome:
        dead = [row for each in answers for row in each.dead_letters.to_pylist()]
        late = []
        for report in reports:
            for file in report.files.get("late", ()):
                late += pq.read_table(self.root / "late" / file.path).to_pylist()
            for file in report.files.get("dead_letters", ()):
                dead += pq.read_table(self.root / "dead" / file.path).to_pylist()
        counts: dict[str, int] = {}
        for report in reports:
            for name, number in report.counts.items():
                counts[name] = counts.get(name, 0) + number
        kinds = [each.kinds for each in answers if each.kinds is not None]
        return Outcome(
            rows=[tuple(row.values()) for each in answers for row in each.rows.to_pylist()],
            kinds=[kind for each in kinds for kind in each.to_pylist()] if kinds else None,
            watermarks=(before, self.watermark_ms),
            late=late,
            dead=dead,
            counts=counts,
        )


def _frame(item: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([json.dumps(item)])], names=["item"])


def _collected(reports: Iterator[pa.RecordBatch]) -> BatchReport:
    return merge_reports(text for each in reports for text in each.column(0).to_pylist())
