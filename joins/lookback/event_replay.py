"""Runs an event batch again from its pin in this process, with files in a scratch directory.

The stages are those of the batch; they read what the pin names: records, versions of the
dimensions, watermarks and versions of the state. The job's state is only read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.adapters.delta.log import DeltaLog
from joins.adapters.delta.state_log import StateColumns, StateFile, StateLog
from joins.batch.event_stages import (
    WAITING_COLUMNS,
    WINDOW_COLUMNS,
    MergedSteps,
    StagePlan,
    run_stages,
)
from joins.batch.event_state import Advance, EventSpec, EventState, shown_ms
from joins.durable.pins import Pin
from joins.kernels.index.dimension_index import DimensionIndex
from joins.kernels.local_files import OwnDirectory
from joins.kernels.probe.arrival_files import OFFSET
from joins.kernels.probe.event_times import LATE_RECORDS, event_times
from joins.kernels.probe.files import SharedTable
from joins.kernels.probe.probe import (
    JoinedBatch,
    ParsedRecords,
    ProbeKernelSpec,
    join_arrivals,
    parse_records,
)
from joins.kernels.table_path import TablePath, readable
from joins.kernels.windows.partials import partials
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import DUE, END, START
from joins.lookback.history import History, PastEvent
from joins.plan.durations import duration_text
from joins.plan.errors import PinnedVersionExpiredError, SinkError
from joins.plan.stream_topics import partition_of
from joins.worker.event_task import (
    WINDOW_BUCKETS,
    EventPlaces,
    EventTask,
    act,
    event_task,
    scan,
    steps,
)
from joins.worker.late_rows import waiting_item
from joins.worker.probe_task import DEAD_LETTERS, ProbeTask, TaskCounts, pinned_context
from joins.worker.staging import BatchReport, merge_reports
from joins.worker.window_task import LATE, WindowClock

Records = Callable[[], Iterable[pa.RecordBatch]]
"""Reads the records of a batch, partition by partition; called once or twice."""


@dataclass(frozen=True, slots=True)
class BatchAgain:
    """The result of an event batch that ran again."""

    answers: Sequence[JoinedBatch]  # of the last stage: rows, and some of the dead letters
    dead_letters: Sequence[pa.RecordBatch]  # all of them
    late: Sequence[pa.RecordBatch]  # records, with the schema `LATE_RECORDS`
    move: Advance
    after: EventState  # the state for the next batch


@dataclass(frozen=True, slots=True)
class _PastTask(ProbeTask):
    """A task with indexes of old versions; `past_indexes` by alias of the role."""

    past_indexes: Mapping[str, DimensionIndex] = field(default_factory=dict)

    def attach(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        return dict(self.past_indexes)


class PastState:
    """The state tables of one job, read only."""

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

    def has_waiting(self, place: tuple[int, int], pin: Pin | None = None) -> bool:
        """True if the record at `place`, partition and offset, waits: before the batch of `pin`."""
        partition, offset = place
        waiting = self._logs["waiting"]
        files = waiting.newest_files() if pin is None else self.files(pin, "waiting")
        root = waiting.log.path
        return any(
            pc.any(pc.equal(_offsets(root / file.path), offset)).as_py()
            for file in files
            if file.bucket == partition
        )

    @property
    def roots(self) -> dict[str, TablePath]:
        return {name: log.log.path for name, log in self._logs.items()}

    def after(self, batch: int) -> EventState | None:
        """State after `batch`; None if its commit is gone."""
        try:
            metadata = list(self._logs.values())[-1].find_after(batch)
        except SinkError:
            return None
        return None if metadata is None else EventState.of(metadata)


def _log(path: TablePath, app_id: str, columns: StateColumns) -> StateLog:
    return StateLog(DeltaLog(path, f"{app_id}:{path.name}"), columns)


def _offsets(path: TablePath) -> pa.ChunkedArray:
    return pq.read_table(readable(path), columns=[OFFSET], partitioning=None).column(0)


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
        """`indexes` are those of the pinned versions, by alias of the role.

        Raises:
            PinnedVersionExpiredError: the state is gone.
        """
        with OwnDirectory("batch") as scratch:
            task = self._task(pin, scratch, indexes)
            return _StageRun(self._spec, task, pin, self.state).result(records)

    def _task(self, pin: Pin, scratch: Path, indexes: Mapping[str, DimensionIndex]) -> EventTask:
        """The task of the batch, which writes only below `scratch`."""
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
    """Stages of one batch in this process; the last stage gives the `answers`."""

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

    def answer(self, waiting: Mapping[int, Mapping[str, Any]]) -> BatchReport:
        first = map(waiting_item, (part for _, part in sorted(waiting.items())))
        return self._answered(chain(first, self.records()))

    def last(self, plan: StagePlan) -> BatchReport:
        return self._answered(_items(plan))

    def _answered(self, batches: Iterator[pa.RecordBatch]) -> BatchReport:
        counts = TaskCounts()
        self.answers.extend(self.task.answers(batches, self.pin, counts))
        files = {name: (file,) for name, file in counts.files.items()}
        return BatchReport(files, counts.values, (counts.detail,))

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
    # through JSON, because one of them was stored as JSON
    ones = [json.loads(json.dumps(each.as_json())) for each in (expected, actual)]
    ours, other = ({n: each[n] for n in each if ones[0][n] != ones[1][n]} for each in ones)
    return (ours, other) if ours else None


@dataclass(frozen=True, slots=True)
class Passed:
    """The batch that advanced the time far enough for a waiting row or window."""

    pin: Pin
    after: EventState


@dataclass(frozen=True, slots=True)
class Waited:
    """How long a record has waited for rows of tables; `until_ms` is None while it waits."""

    tables: tuple[str, ...]
    wait_ms: int
    since_ms: int
    until_ms: int | None
    corrected_ms: int | None = None  # when the row came of a record that was out with NULL

    @property
    def waited_ms(self) -> int | None:
        return None if self.until_ms is None else self.until_ms - self.since_ms

    @property
    def text(self) -> str:
        tables = " and ".join(self.tables)
        if self.waited_ms is None:
            return f"waits for {tables}, {duration_text(self.wait_ms)} at most"
        text = f"waited {duration_text(self.waited_ms)} for {tables}"
        if self.corrected_ms is None:
            return text
        behind = duration_text(self.corrected_ms - self.since_ms)
        return f"{text}, went out with NULL, and was corrected {behind} after it came"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "tables": list(self.tables), "waited_ms": self.waited_ms}


@dataclass(frozen=True, slots=True)
class Journey:
    """The way of a record until it was joined."""

    arrived: Pin  # the batch that has read it
    arrival: pa.RecordBatch | None  # the scanned record; None if it does not exist or is dead
    rowtime_ms: int | None  # None also for a record in processing time
    released: Passed | None  # the batch that joins it; None while it waits, or if it is not joined
    late: Mapping[str, Any] | None  # reason and watermark from the table of late records
    waited: "Waited | None" = None  # in a job with `join.late-rows.wait`

    @property
    def pin(self) -> Pin:
        return self.arrived if self.released is None else self.released.pin

    @property
    def waits(self) -> bool:
        return self.arrival is not None and self.released is None and self.late is None

    def as_json(self) -> dict[str, Any]:
        before = EventState.before(self.arrived.of_event)
        release = self.released
        return {
            "rowtime_ms": self.rowtime_ms,
            "arrived_in_batch": self.arrived.batch,
            "watermark_at_arrival_ms": shown_ms(before.watermark),
            "released_in_batch": None if release is None else release.pin.batch,
            "released_by_watermark_ms": None
            if release is None
            else shown_ms(release.after.watermark),
            "released_by_processing_time": release is not None and release.after.processing_time,
            "late": self.late,
            **({} if self.waited is None else {"late_rows": self.waited.as_json()}),
        }


_Waits = Callable[[tuple[int, int]], bool]


class EventJourneys:
    """Finds the journeys of records of one job."""

    def __init__(self, history: History, event: PastEvent) -> None:
        self._history = history
        self._kernel = history.places.kernel
        self._plan = event.plan
        self._spec = EventSpec.of(event.plan)
        self._state = PastState(event.places, history.places.app_id)

    def of(self, record: pa.RecordBatch | None, place: tuple[int, int], arrived: Pin) -> Journey:
        """The journey of the record at `place`, which the batch of `arrived` has read."""
        late = self._late(*place)
        if record is None:
            return Journey(arrived, None, None, None, late)
        parsed = parse_records(self._kernel, record, pinned_context(arrived))
        if self._spec.late_wait_ms is not None:
            return self._waited(parsed, place, arrived, late)
        if self._kernel.watermark is None:
            arrival = parsed.as_arrivals(parsed.living())
            return self._scanned(arrival, None, arrived, late)
        times = event_times(parsed, self._kernel.watermark, arrived.batch_timestamp_ms)
        before = EventState.before(arrived.of_event)
        watermark = before.watermark if self._spec.waits else before.window_watermark
        timed = (pa.array(times.times), pa.repeat(pa.scalar(watermark), len(times.times)))
        arrival = parsed.as_arrivals(times.rows, *timed)
        rowtime_ms = int(times.times[0]) if len(times.times) else None
        return self._scanned(arrival, rowtime_ms, arrived, late)

    def _scanned(
        self,
        arrival: pa.RecordBatch,
        rowtime_ms: int | None,
        arrived: Pin,
        late: Mapping[str, Any] | None,
    ) -> Journey:
        if arrival.num_rows == 0:
            return Journey(arrived, None, rowtime_ms, None, late)
        release = None
        if late is None or late["reason"] == "window":
            release = self._released(arrived, rowtime_ms)
        return Journey(arrived, arrival, rowtime_ms, release, late)

    def _waited(
        self,
        parsed: ParsedRecords,
        place: tuple[int, int],
        arrived: Pin,
        late: Mapping[str, Any] | None,
    ) -> Journey:
        """The journey in a job with `join.late-rows.wait`: until no state has the record."""
        rows, since_ms = parsed.living(), arrived.batch_timestamp_ms
        clock = pa.repeat(pa.scalar(since_ms, pa.int64()), len(rows))
        arrival = parsed.as_arrivals(rows, clock, clock)
        if arrival.num_rows == 0:
            return Journey(arrived, None, None, None, late)
        release = None if late is not None else self._left(place, arrived)
        until_ms = None if release is None else release.pin.batch_timestamp_ms
        if late is not None:
            until_ms = late["watermark_ms"]
        corrected = None if release is None else self._corrected(place, release, since_ms)
        corrected_ms = None if corrected is None else corrected.pin.batch_timestamp_ms
        wait_ms = self._spec.late_wait_ms or 0
        waited = Waited(self._spec.waited, wait_ms, since_ms, until_ms, corrected_ms)
        return Journey(arrived, arrival, None, corrected or release, late, waited)

    def _left(self, place: tuple[int, int], arrived: Pin) -> Passed | None:
        """The first batch from `arrived` on after which the record is out, maybe with NULL."""
        since_ms = arrived.batch_timestamp_ms
        return self._first(arrived, lambda s, waits: s.watermark >= since_ms or not waits(place))

    def _corrected(self, place: tuple[int, int], release: Passed, since_ms: int) -> Passed | None:
        """The batch that has corrected the record, which left at its bound in `release`."""
        correct_ms = self._spec.late_correct_ms
        if not correct_ms or release.after.watermark < since_ms:
            return None
        passed = self._first(release.pin, lambda _, waits: not waits(place))
        if passed is None or passed.pin.batch == release.pin.batch:
            return None
        return None if since_ms <= passed.after.watermark - correct_ms else passed

    def _released(self, arrived: Pin, rowtime_ms: int | None) -> Passed | None:
        if not self._spec.waits or rowtime_ms is None:
            return self._first(arrived, lambda *_: True)
        return self._first(arrived, lambda state, _: state.release_ms >= rowtime_ms)

    def _first(self, start: Pin, holds: Callable[[EventState, _Waits], bool]) -> Passed | None:
        """The first batch from `start` on after which `holds`; later states must hold too."""
        later = self._history.first_behind(
            start,
            lambda pin: holds(
                EventState.before(pin.of_event),
                lambda place: self._state.has_waiting(place, pin),
            ),
        )
        if later is not None:
            pin = self._history.last_before(later, start)
            return Passed(pin, EventState.before(later.of_event))
        newest = self._history.pins.newest() or start
        after = self._state.after(newest.batch)
        if after is None or not self._history.is_committed(newest.batch):
            return None
        return Passed(newest, after) if holds(after, self._state.has_waiting) else None

    def _late(self, partition: int, offset: int) -> dict[str, Any] | None:
        table = self._history.late
        assert table is not None, "a job with event time has a table of late records"
        place = {"partition": partition_of(partition), "offset": offset}
        for row in table.rows_now(place, LATE_RECORDS).to_pylist():
            if row["topic"] == self._kernel.topics.topic_of(partition).name:
                stamp = row["watermark"]
                late_at_ms = None if stamp is None else round(stamp.timestamp() * 1_000)
                return {"reason": row["reason"], "watermark_ms": late_at_ms}
        return None

    def joined(self, journey: Journey, indexes: Mapping[str, DimensionIndex]) -> JoinedBatch | None:
        """The rows of a record; with windows, the rows before aggregation."""
        if journey.arrival is None or journey.released is None:
            return None
        context = pinned_context(journey.pin)
        return join_arrivals(self._kernel, journey.arrival, indexes, context)

    def windows(self, journey: Journey, joined: JoinedBatch) -> list[dict[str, Any]]:
        """The windows that count the rows of a record, and the batches that fired them.

        For a session this is what the record alone makes, without a batch: other records may merge
        with it.
        """
        if self._plan.window is None:
            return []
        spec = WindowSpec.of(self._plan, WINDOW_BUCKETS)
        clock = WindowClock.of(journey.pin, follows_clock=self._spec.follows_clock)
        bounds = partials(spec, clock.timed(joined.rows)).table.select([START, END, DUE])
        documents = []
        for start, end, due in sorted(set(zip(*bounds.to_pydict().values(), strict=True))):
            window: dict[str, Any] = {"start_ms": start, "end_ms": end, "merges": spec.merges}
            fired = None if spec.merges else self._fired(journey.pin, due)
            documents.append({**window, "fired_in_batch": fired})
        return documents

    def _fired(self, pin: Pin, due: int) -> int | None:
        firing = self._first(pin, lambda state, _: state.window_watermark >= due)
        return None if firing is None else firing.pin.batch
