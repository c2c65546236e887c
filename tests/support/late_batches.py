"""A job with `join.late-rows.wait` without Spark: its stages run here, its state is in Delta."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.state_log import StateChange, StateFile, StateLog
from joins.batch.event_stages import WAITING_COLUMNS, added, run_stages
from joins.batch.event_state import EventSpec, EventState
from joins.durable.checkpoint import Checkpoint, JobMeta, write_json_atomically
from joins.durable.pins import EventPin, Pin, PinStore
from joins.kernels.index.index import DimensionIndex, advance, build
from joins.kernels.probe.event_times import LATE_RECORDS
from joins.kernels.probe.files import SharedTable
from joins.kernels.probe.probe import DEAD_LETTERS, JoinedBatch, index_spec, kernel_spec
from joins.kernels.table_path import remove_below
from joins.lookback.event_replay import BatchAgain, EventReplay
from joins.lookback.history import History, HistoryPlaces, PastEvent
from joins.plan.plan import JoinPlan
from joins.worker.event_task import EventPlaces, event_task, waiting_schema
from joins.worker.late_rows import LateReader, answer_items
from joins.worker.probe_task import IndexPlace, ProbeTask, TaskCounts
from joins.worker.staging import BatchReport, merge_reports
from tests.support.changelog import batch_of, record
from tests.support.event_batches import Arrived, frames_of
from tests.support.probe import PLAN

APP_ID = "sluice:job:1"
WAIT_MS = 1_000
WAITING_PLAN = replace(
    PLAN, dimensions=tuple(replace(each, late_wait_ms=WAIT_MS) for each in PLAN.dimensions)
)
"""clicks LEFT JOIN users; the output has `user_id`, `name` and the row's metadata."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one batch has done; `rows` are (partition, offset, name) in the order of the tasks."""

    rows: list[tuple[int, int, str | None]]
    late: list[tuple[int, int]]
    dead: list[tuple[int, int]]
    counts: Mapping[str, int]
    state: EventState


@dataclass
class LateJob:
    """Runs batches of `plan`, whose only dimension is `users`."""

    root: Path
    plan: JoinPlan = WAITING_PLAN
    partitions: tuple[int, ...] = (0, 1)
    state: EventState = field(default_factory=EventState)
    number: int = 0
    version: int = 0
    users: dict[int, str] = field(default_factory=dict)
    ends: dict[int, int] = field(init=False)
    done: list[tuple[Pin, list[pa.RecordBatch], Outcome]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends = dict.fromkeys(self.partitions, 0)
        self.spec = EventSpec.of(self.plan)
        index, indexes = self.root / "index", {}
        for join in self.plan.joins:
            indexes[join.alias] = IndexPlace("users", index, index_spec(self.plan, join, 1))
        self.probe = ProbeTask(kernel_spec(self.plan), indexes, self.root / "dead", 2)
        places = EventPlaces(
            self.root / "scratch", self.root / "waiting", None, SharedTable(self.root / "late")
        )
        self.task = event_task(self.plan, self.probe, places)
        StateLog.create(self.root / "waiting", waiting_schema(self.task))
        self.log = StateLog(DeltaLog(self.root / "waiting", f"{APP_ID}:waiting"), WAITING_COLUMNS)
        create_table(self.root / "late", LATE_RECORDS)
        self.late = DeltaLog(self.root / "late", f"{APP_ID}:late")
        create_table(self.root / "dead", DEAD_LETTERS)
        self.event = PastEvent(self.plan, places)
        self.replay = EventReplay(self.event, self.task.kernel, APP_ID)
        self.checkpoint = Checkpoint(self.root / "checkpoint")
        self.checkpoint.write_meta(JobMeta("1", 2, "clicks", "id", dict(self.ends), {}))
        self.pins = PinStore(self.checkpoint.pins_directory)
        self.change()

    def change(self, users: Mapping[int, str] | None = None, *, whole: bool = False) -> int:
        """Make a version of the table with these rows; returns it.

        Its index is the one before with the changes, unless the index is built from the `whole`
        table.
        """
        before, self.users = self.users, dict(users or {})
        self.version += 1
        if whole or self.version == 1:
            changes = [("r", key, name) for key, name in sorted(self.users.items())]
        else:
            gone = [("d", key, None) for key in sorted(before.keys() - self.users.keys())]
            new = sorted(self.users.items() - before.items())
            changes = [*gone, *(("u", key, name) for key, name in new)]
        rows = [
            {**record(op, key, self.version, 100 * self.version + at), "name": name}
            for at, (op, key, name) in enumerate(changes)
        ]
        for place in {each.spec.digest: each for each in self.probe.indexes.values()}.values():
            if whole or self.version == 1:
                build(place.directory, self.version, place.spec, [batch_of(rows)])
            else:
                old = self.version - 1
                advance(place.directory, old, self.version, place.spec, [batch_of(rows)])
        return self.version

    def run(self, arrived: Arrived, now_ms: int, *, crashes: int = 0) -> Outcome:
        """A batch at `now_ms`; it runs `crashes` times more before its state is committed."""
        self.pins.create(self._pin(arrived, now_ms))
        frames = [each for each in frames_of(arrived, self.ends) if each.num_rows]
        pin = self.pins.newest()
        assert pin is not None
        for _ in range(crashes):
            self._staged(pin, frames)
        outcome, change, late = self._staged(pin, frames)
        self.log.commit(pin.batch, 2, replace(change, after=outcome.state.as_json()))
        if late:
            self.late.commit(pin.batch, 2, late, {})
        write_json_atomically(self.checkpoint.directory / "progress.json", {"batch": pin.batch})
        self.state = outcome.state
        self.done.append((pin, frames, outcome))
        return outcome

    def _pin(self, arrived: Arrived, now_ms: int) -> Pin:
        start = dict(self.ends)
        for partition, values in arrived.items():
            self.ends[partition] += len(values)
        self.number += 1
        event = {**self.state.as_json(), "clock_ms": now_ms, "at_end": [], "dimensions": {}}
        event |= {"state_versions": {"waiting": self.log.version()}}
        versions = {"users": self.version}
        ends = dict(self.ends)
        return Pin(self.number, "clicks", start, ends, versions, now_ms, 2, {}, EventPin.of(event))

    def _staged(self, pin: Pin, frames: list[pa.RecordBatch]) -> tuple[Outcome, StateChange, Any]:
        remove_below(self.root / "scratch")
        stages = _Stages(self, pin, frames)
        done = run_stages(self.spec, pin, stages)
        change = StateChange(added(done.report, "waiting"), done.removed["waiting"])
        late = done.report.files.get("late", ())
        rows = [row for each in stages.answers for row in _placed(each)]
        dropped = [row for file in late for row in _places(self.root / "late" / file.path)]
        dead = [row for each in stages.answers for row in _keys(each.dead_letters)]
        state = done.move.after.counted(done.report.counts)
        return Outcome(rows, dropped, dead, done.report.counts, state), change, late

    def again(self, at: int) -> BatchAgain:
        pin, frames, _ = self.done[at]
        indexes = {
            alias: DimensionIndex.attach(place.directory, pin.versions["users"], place.spec)
            for alias, place in self.probe.indexes.items()
        }
        return self.replay.run(pin, partial(iter, frames), indexes)

    def history(self) -> History:
        places = HistoryPlaces(
            app_id=APP_ID,
            checkpoint=self.checkpoint,
            kernel=self.task.kernel,
            roles=self.probe.indexes,
            tables={},
            dimensions={each.name: each for each in self.plan.dimensions},
            dead_letters=self.root / "dead",
            replays=self.root / "replays",
            output=None,
            probe_kafka=self.plan.probe.source.kafka,
            sink=self.plan.sink,
            event=self.event,
        )
        return History(places)


@dataclass(slots=True)
class _Stages:
    """The stages of one batch as tasks in this process."""

    job: LateJob
    pin: Pin
    frames: list[pa.RecordBatch]
    answers: list[JoinedBatch] = field(default_factory=list)

    def files(self, name: str) -> Sequence[StateFile]:
        return self.job.log.files(self.pin.of_event.state_versions[name])

    def answer(self, waiting: Mapping[int, Mapping[str, Any]]) -> BatchReport:
        parts = [{p: bounds} for p, bounds in self.pin.ranges().items()]
        reports = []
        for text in answer_items(waiting, parts):
            counts, reader = TaskCounts(), LateReader(self._read)
            self.answers += self.job.task.answers(reader(iter([_item(text)])), self.pin, counts)
            reports.append(counts.report.to_batch())
        return _report(iter(reports))

    def _read(self, items: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in items:
            for text in batch.column(0).to_pylist():
                mine = set(map(int, json.loads(text)))
                yield from (f for f in self.frames if f.column("partition")[0].as_py() in mine)

    def steps(self) -> BatchReport:
        raise AssertionError

    scan = act = last = steps


def _item(text: str) -> pa.RecordBatch:
    return pa.record_batch([pa.array([text])], names=["item"])


def _report(reports: Iterator[pa.RecordBatch]) -> BatchReport:
    return merge_reports(text for each in reports for text in each.column(0).to_pylist())


def _placed(answer: JoinedBatch) -> list[tuple[int, int, str | None]]:
    names = answer.rows.column("name").to_pylist()
    return [(*key, name) for key, name in zip(_keys(answer.coordinates), names, strict=True)]


def _keys(rows: pa.RecordBatch | pa.Table) -> list[tuple[int, int]]:
    columns = (rows.column(name).to_pylist() for name in ("partition", "offset"))
    return list(zip(*columns, strict=True))


def _places(path: Path) -> list[tuple[int, int]]:
    return _keys(pq.read_table(path, partitioning=None))
