"""An event batch run again from its pin, in this process: the same stages, files in a scratch.

What the batch has read is what its pin names: records, versions of the dimensions, watermarks, and
versions of the state. The state is only read; what the stages write goes to a directory that is
gone afterwards.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.state_log import StateColumns, StateFile, StateLog
from joins.batch.event_items import WAITING_COLUMNS, WINDOW_COLUMNS, StagePlan
from joins.batch.event_stages import MergedSteps, run_stages
from joins.batch.event_state import Advance, EventSpec, EventState
from joins.durable.pins import Pin
from joins.kernels.index.index import DimensionIndex
from joins.kernels.local_files import OwnDirectory
from joins.kernels.probe.files import SharedTable
from joins.kernels.probe.probe import JoinedBatch, ProbeKernelSpec
from joins.kernels.table_path import TablePath, readable
from joins.lookback.history import PastEvent
from joins.plan.errors import PinnedVersionExpiredError, SinkError
from joins.worker.event_task import EventPlaces, EventTask, act, event_task, scan, steps
from joins.worker.probe_task import DEAD_LETTERS, ProbeTask, TaskCounts
from joins.worker.staging import BatchReport, merge_reports
from joins.worker.window_task import LATE

Records = Callable[[], Iterable[pa.RecordBatch]]
"""Reads the records of a batch, partition by partition; asked once or twice."""


@dataclass(frozen=True, slots=True)
class BatchAgain:
    """What an event batch gives when it is run again.

    Attributes:
        answers: of its last stage: rows, and dead letters among them.
        dead_letters: all of them.
        late: records, of `LATE_RECORDS`.
        move: of the time.
        after: what the next batch begins with.
    """

    answers: Sequence[JoinedBatch]
    dead_letters: Sequence[pa.RecordBatch]
    late: Sequence[pa.RecordBatch]
    move: Advance
    after: EventState


@dataclass(frozen=True, slots=True)
class _PastTask(ProbeTask):
    """A task with indexes of old versions, wherever they are.

    Attributes:
        past_indexes: role's alias → index.
    """

    past_indexes: Mapping[str, DimensionIndex] = field(default_factory=dict)

    def attach(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        return dict(self.past_indexes)


class PastState:
    """The tables of the state of one job, to be read only."""

    def __init__(self, places: EventPlaces, app_id: str) -> None:
        named = {
            "waiting": (places.waiting, WAITING_COLUMNS),
            "windows": (places.windows, WINDOW_COLUMNS),
        }
        self._logs = {
            name: _log(path, app_id, columns)
            for name, (path, columns) in named.items()
            if path is not None
        }

    def files(self, pin: Pin, name: str) -> tuple[StateFile, ...]:
        """The files of the table `name` that the batch of `pin` has read.

        Raises:
            PinnedVersionExpiredError: the version, or files of it, are gone.
        """
        version = int(pin.of_event.state_versions[name])
        log = self._logs[name]
        try:
            files = log.files(version)
        except SinkError as exc:
            raise _gone(pin, name, version, exc.message) from exc
        root = log.log.path
        missing = [file.path for file in files if not (root / file.path).exists()]
        if missing:
            message = f"{len(missing)} of its {len(files)} files are gone"
            raise _gone(pin, name, version, message)
        return files

    @property
    def roots(self) -> dict[str, TablePath]:
        return {name: log.log.path for name, log in self._logs.items()}

    def after(self, batch: int) -> EventState | None:
        """What `batch` has left for the next one; None if its commit does not tell any more."""
        try:
            metadata = list(self._logs.values())[-1].find_after(batch)
        except SinkError:
            return None
        return None if metadata is None else EventState.of(metadata)


def _log(path: TablePath, app_id: str, columns: StateColumns) -> StateLog:
    return StateLog(DeltaLog(path, f"{app_id}:{path.name}"), columns)


def _gone(pin: Pin, name: str, version: int, message: str) -> PinnedVersionExpiredError:
    return PinnedVersionExpiredError(
        f'version {version} of the state "{name}", which batch {pin.batch} has read, '
        f"cannot be read any more: {message}",
        hint="Replay a younger batch; SLUICE_REPLAY_BATCHES and SLUICE_REPLAY_STATE_MAX_MIB say "
        "how many keep their state.",
    )


class EventReplay:
    """Runs event batches of one job again."""

    def __init__(self, event: PastEvent, kernel: ProbeKernelSpec, app_id: str) -> None:
        self._event = event
        self._kernel = kernel
        self._spec = EventSpec.of(event.plan)
        self.state = PastState(event.places, app_id)

    def run(self, pin: Pin, records: Records, indexes: Mapping[str, DimensionIndex]) -> BatchAgain:
        """The batch of `pin` again.

        Args:
            pin: of the batch.
            records: its records.
            indexes: role's alias → index of the pinned version.

        Raises:
            PinnedVersionExpiredError: the state cannot be read any more.
        """
        with OwnDirectory("batch") as scratch:
            task = self._task(pin, scratch, indexes)
            return _StageRun(self._spec, task, pin, self.state).result(records)

    def _task(self, pin: Pin, scratch: Path, indexes: Mapping[str, DimensionIndex]) -> EventTask:
        """The task of the batch, which writes below `scratch` only."""
        dead = scratch / DEAD_LETTERS
        probe = _PastTask(self._kernel, {}, dead, pin.epoch, past_indexes=indexes)
        late = SharedTable(scratch)
        waiting, windows = scratch / "waiting", scratch / "windows"
        stages = scratch / "stages"
        own = EventPlaces(stages, waiting, windows, late, self.state.roots)
        for place in (stages, dead):
            place.mkdir(parents=True)
        return event_task(self._event.plan, probe, own)


@dataclass(frozen=True, slots=True)
class _StageRun:
    """One run of the stages."""

    spec: EventSpec
    task: EventTask
    pin: Pin
    state: PastState

    def result(self, records: Records) -> BatchAgain:
        """All stages."""
        stages = _Here(self.task, self.pin, self.state, records)
        done = run_stages(self.spec, self.pin, stages)
        answers = stages.answers
        letters = [
            *self._staged(done.report, DEAD_LETTERS),
            *(each.dead_letters for each in answers),
        ]
        late = self._staged(done.report, LATE)
        after = done.move.after.counted(done.report.counts)
        return BatchAgain(answers, letters, late, done.move, after)

    def _staged(self, report: BatchReport, name: str) -> list[pa.RecordBatch]:
        places = {DEAD_LETTERS: self.task.dead_letters, LATE: self.task.places.late.root}
        tables = (
            pq.read_table(readable(places[name] / file.path), partitioning=None)
            for file in report.files.get(name, ())
        )
        return [batch for table in tables for batch in table.to_batches()]


@dataclass(frozen=True, slots=True)
class _Here:
    """Stages of one batch in this process.

    Attributes:
        answers: of the last stage.
    """

    task: EventTask
    pin: Pin
    state: PastState
    records: Records
    answers: list[JoinedBatch] = field(default_factory=list)

    def steps(self) -> BatchReport:
        return _merged_report(steps(iter(self.records()), task=self.task, pin=self.pin))

    def scan(self, merged: MergedSteps | None) -> BatchReport:
        return _merged_report(
            scan(iter(self.records()), task=self.task, pin=self.pin, merged=merged)
        )

    def act(self, plan: StagePlan) -> BatchReport:
        return _merged_report(act(_items(plan), task=self.task, pin=self.pin))

    def last(self, plan: StagePlan) -> BatchReport:
        """What a sink runs; what it gives is added to `answers`."""
        counts = TaskCounts()
        self.answers.extend(self.task.answers(_items(plan), self.pin, counts))
        files = {name: (file,) for name, file in counts.files.items()}
        return BatchReport(files, counts.values, ())

    def files(self, name: str) -> Sequence[StateFile]:
        return self.state.files(self.pin, name)


def _items(plan: StagePlan) -> Iterator[pa.RecordBatch]:
    for item in plan.items:
        yield pa.record_batch([pa.array([item])], names=["item"])


def _merged_report(reports: Iterator[pa.RecordBatch]) -> BatchReport:
    return merge_reports(text for each in reports for text in each.column(0).to_pylist())


def state_differences(
    expected: EventState, actual: EventState
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    # through JSON, for one of them comes from there
    ones = [json.loads(json.dumps(each.as_json())) for each in (expected, actual)]
    ours, other = ({n: each[n] for n in each if ones[0][n] != ones[1][n]} for each in ones)
    return (ours, other) if ours else None
