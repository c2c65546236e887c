"""Plans and pins the stream's next batch (offsets, versions, clock) and runs the loop's steps."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.records import KafkaRecords
from joins.adapters.kafka.stream_cluster import StreamCluster, StreamDescription
from joins.batch.batches import BatchRunner, FinishedBatch, ProbeHooks, ProbeSettings, check_fence
from joins.batch.event_batch import EventTables
from joins.batch.event_channels import Steps
from joins.batch.event_state import Advance, EventSpec, EventState, EventView, advance, batch_input
from joins.durable.pins import EventPin, Pin, as_read
from joins.loop import Loop, LoopSettings
from joins.plan.errors import FencedError, SinkError
from joins.plan.stream_topics import of_kafka
from joins.stream.bounds import behind_backlog, cut, is_reached, up_to_backlog
from joins.stream.guards import first_offsets, wrong_topic
from joins.worker.work import spread
from watermark.freshness import LookUp, Proof

_WAIT_S = 0.5
_EVENT_WAIT_S = 0.1  # a watermark of a table, or the clock, is a reason for a batch, too
_SHORTEST_WAIT_S = 0.01
_HELD_S = 0.2
_KNOWN_S = 1.0  # readers know a topic by its id
_RECORDS_ON_EVENT = 20_000  # each may move the watermark; every work item has all moves


@dataclass(frozen=True, slots=True)
class EventParts:
    """What the loop of a job with event time or windows calls beside `ProbeHooks`."""

    spec: EventSpec
    tables: EventTables
    # versions of dimensions → name → partition → (watermark, newest change), JSON values
    heard: Callable[[Mapping[str, int]], Mapping[str, Mapping[str, Any]]]
    seen: Callable[[EventView], None]  # receives the state of time for the status
    trim: Callable[[int], None]  # no row will need a version of a dimension before this time


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The next batch before it is pinned; `event` is None without event time or windows."""

    start: Mapping[int, int]
    end: Mapping[int, int]
    versions: Mapping[str, int]
    event: EventPin | None
    now_ms: int
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    stale_released: bool = False
    looked_up: LookUp | None = None

    def has_records(self) -> bool:
        return any(end > self.start.get(p, 0) for p, end in self.end.items())


@dataclass(frozen=True, slots=True)
class _Known:
    at_s: float
    topics: StreamDescription
    ends: Mapping[int, int]


class BatchPlanner:
    """Plans the batches of one loop, on its thread."""

    def __init__(
        self, settings: ProbeSettings, hooks: ProbeHooks, parts: EventParts | None
    ) -> None:
        self._settings = settings
        self._hooks = hooks
        self._parts = parts
        self._cluster = StreamCluster(KafkaCluster(settings.kafka, keep_open=True), settings.topics)
        self._records = KafkaRecords(settings.kafka)
        self._known: _Known | None = None

    def close(self) -> None:
        self._cluster.close()
        self._records.close()

    def wait(self, behind: Mapping[int, int], seconds: float) -> None:
        """Return once there are records after these offsets, or after `seconds`."""
        ends = self._settings.life.end_offsets
        behind = of_kafka(self._known_offsets(behind))
        if self._hooks.staleness.holding is not None:
            time.sleep(_HELD_S)  # records are there, and wait for a table
            return
        open_ones = {p: o for p, o in behind.items() if ends is None or o < ends.get(p, 0)}
        if open_ones:
            self._records.wait(self._settings.topics, open_ones, seconds)
        else:
            time.sleep(seconds)  # the stream is read to its end

    def next(self, number: int, behind: Mapping[int, int], state: EventState) -> BatchPlan:
        """Plan batch `number` after these offsets and this state.

        Raises:
            GuardError: the topic has lost records, or is another one.
            SourceUnavailableError: no broker answers.
        """
        life, limit = self._settings.life, self._hooks.limit()
        behind = self._known_offsets(behind)
        if self._parts is not None and self._parts.spec.on_event:
            limit = min(limit, _RECORDS_ON_EVENT)
        there = self._up_to_seam(behind, self._ends(behind, limit))
        start = first_offsets(behind, there, life)
        there = up_to_backlog(start, there, life.backlog_offsets)
        versions = self._versions(number)
        proofs = self._hooks.proofs(versions)
        end, released = self._hooks.staleness.cut(
            start, spread(start, there, limit), proofs, self._cluster.offsets_at
        )
        plan = self._planned((start, end), versions, state)
        if self._parts is not None and self._parts.spec.counts_quiet_time:
            assert plan.event is not None, "as the plans of such a job have it"
            unread = [p for p, last in sorted(there.items()) if last > end[p]]
            plan = replace(plan, event=replace(plan.event, unread=unread))
        looked_up = self._hooks.staleness.looked_up
        return replace(plan, proofs=proofs, stale_released=released, looked_up=looked_up)

    def _rows_left(self, behind: Mapping[int, int]) -> Mapping[int, int]:
        """The partition of the history's files with its end, if it is not read up to there."""
        bounds = self._settings.life.end_offsets or {}
        ends = self._settings.topics.file_ends
        ends = {p: bounds.get(p, end) for p, end in ends.items()}
        return ends if any(behind.get(p, 0) < end for p, end in ends.items()) else {}

    def _known_offsets(self, behind: Mapping[int, int]) -> Mapping[int, int]:
        """Of the files alone before the seam, and with the topics' beginnings behind it."""
        if not self._settings.topics.file_ends:
            return behind
        left = self._rows_left(behind)
        return {p: behind.get(p, 0) for p in left} or {**self._settings.start_offsets, **behind}

    def _up_to_seam(self, behind: Mapping[int, int], there: Mapping[int, int]) -> Mapping[int, int]:
        """No batch has rows of the files and records of the topics that continue them."""
        return self._rows_left(behind) or there

    def _ends(self, behind: Mapping[int, int], limit: int) -> Mapping[int, int]:
        """End offsets, at most a second old if they suffice for a whole batch."""
        bounds = self._settings.life.end_offsets
        known, now_s = self._known, time.monotonic()
        if known is None or now_s - known.at_s > _KNOWN_S:
            topics = self._cluster.describe()
            fault = wrong_topic(self._settings.life, topics.topic_ids, {})
            if fault is not None:
                raise fault
            known = _Known(now_s, topics, {})
        if sum(max(0, end - behind.get(p, end)) for p, end in known.ends.items()) < limit:
            asked_ms = time.time_ns() // 1_000_000
            ends = cut(self._cluster.end_offsets(known.topics), bounds)
            self._hooks.staleness.note_ends(LookUp(asked_ms, ends))
            known = replace(known, ends=ends)
        self._known = known
        return known.ends

    def quiet(self, number: int, behind: Mapping[int, int], state: EventState) -> BatchPlan:
        return self._planned((behind, behind), self._versions(number), state)

    def _versions(self, number: int) -> Mapping[str, int]:
        life = self._settings.life
        first = life.versions if number == life.first_batch else None
        return dict(self._hooks.versions() if first is None else first)

    def _planned(
        self,
        offsets: tuple[Mapping[int, int], Mapping[int, int]],
        versions: Mapping[str, int],
        state: EventState,
    ) -> BatchPlan:
        now_ms = max(time.time_ns() // 1_000_000, state.clock_ms)
        if self._parts is None:
            return BatchPlan(*offsets, versions, None, now_ms)
        event = self._event(self._parts, offsets, versions, (state, now_ms))
        return BatchPlan(*offsets, versions, event, now_ms)

    def _event(
        self,
        parts: EventParts,
        offsets: tuple[Mapping[int, int], Mapping[int, int]],
        versions: Mapping[str, int],
        clock: tuple[EventState, int],
    ) -> EventPin:
        (start, end), (state, now_ms) = offsets, clock
        bounds, backlog = self._settings.life.end_offsets, self._settings.life.backlog_offsets
        start, end = of_kafka(start), of_kafka(end)  # files never are the stream's end
        return EventPin(
            **{**state.as_json(), "clock_ms": now_ms},
            at_end=[p for p in sorted(start) if bounds and start[p] >= bounds[p]],
            backlog={
                "read": behind_backlog(end, backlog),
                "read_before": behind_backlog(start, backlog),
            },
            dimensions=parts.heard(versions),
            state_versions=parts.tables.versions(),
        )

    def moved(self, plan: BatchPlan, state: EventState) -> Advance:
        """How far `plan` would advance event time without its records."""
        assert self._parts is not None, "the job has event time or windows"
        assert plan.event is not None, "as its plans say"
        steps: Steps | None = {} if self._parts.spec.on_event else None
        return advance(self._parts.spec, state, batch_input(plan.event, plan.start, steps))

    def pin_of(self, plan: BatchPlan, number: int) -> Pin:
        """The pin of `plan`, which `write_pin` makes durable."""
        pin = Pin(
            batch=number,
            topic=self._settings.topics.names[0],
            start_offsets=plan.start,
            end_offsets=plan.end,
            versions=plan.versions,
            batch_timestamp_ms=plan.now_ms,
            epoch=self._hooks.epoch,
            source_ts_ms=dict(self._hooks.source_times(plan.versions)),
            event=plan.event,
            as_of=plan.proofs,
            stale_released=plan.stale_released,
            looked_up=plan.looked_up,
            plan=self._hooks.plan,
            before=self._hooks.counted(),
        )
        return as_read(pin)


def write_pin(hooks: ProbeHooks, pin: Pin) -> None:
    """Make `pin` durable.

    Raises FencedError if a newer runner has taken over, SinkError if the batch has another pin.
    """
    # the pin binds newer runners too
    check_fence(hooks.pins, hooks.dead_letters, hooks.epoch)
    stored = hooks.pins.create(pin)
    if stored.epoch > hooks.epoch:
        raise FencedError(
            f"batch {pin.batch} is pinned by a runner of epoch {stored.epoch}, this one is "
            f"{hooks.epoch}",
            hint="A newer runner of the job has taken over; this one ends.",
        )
    if stored != pin:
        raise SinkError(
            f"batch {pin.batch} has a pin of epoch {stored.epoch} already",
            hint="The batch is run again under that pin.",
        )
    hooks.guards.failpoints.hit("C3", pin.batch)


def _is_durable() -> None:
    """Of a pin that was written before."""


_SHOW_EVERY_S = 0.5  # at most, between batches: due times are read from files
_NextTimes = tuple[int | None, int | None]  # of rows that wait, of windows


class ProbeSteps:
    """The steps of one loop; `event` for a job with event time or windows."""

    def __init__(
        self,
        batches: BatchRunner,
        settings: ProbeSettings,
        hooks: ProbeHooks,
        event: EventParts | None = None,
    ) -> None:
        self._batches = batches
        self._settings = settings
        self._hooks = hooks
        self._planner = BatchPlanner(settings, hooks, event)
        self._state = EventState()
        self._start = dict(settings.start_offsets)
        self._next = settings.life.first_batch
        self._retry: Pin | None = None
        self._looked_s = 0.0
        self._time = None if event is None else _EventTime(settings, self._planner, event)
        self._writes = ThreadPoolExecutor(1, "pins")

    def loop(self, spark: SparkSession) -> Loop:
        settings = LoopSettings("probe", "probe", self._settings.trigger_ms)
        return Loop(spark, self, settings, self._hooks.guards, self._hooks.tasks.cancel)

    def close(self) -> None:
        self._writes.shutdown()
        self._planner.close()

    def recover(self) -> None:
        life, pin = self._settings.life, self._hooks.pins.newest()
        self._hooks.guards.failpoints.hit("C1", self._next if pin is None else pin.batch)
        self._batches.sweep()
        if pin is None or pin.batch < life.first_batch:
            self._state = self._batches.newest_state()
            return
        if pin.looked_up is not None:
            self._hooks.staleness.note_ends(pin.looked_up)
        done = self._batches.committed(pin)
        if done is None:
            self._retry, self._next = pin, pin.batch
            return
        self._hooks.on_finish(done)
        self._follow(done)

    def step(self) -> bool:
        """True if there was a reason for a batch."""
        self._looked_s = time.monotonic()
        if self._retry is not None:
            check_fence(self._hooks.pins, self._hooks.dead_letters, self._hooks.epoch)
            self._run(self._retry, _is_durable)
            return True
        if not self._hooks.may_pin():
            return False
        plan = self._planner.next(self._next, self._start, self._state)
        if not (plan.has_records() or self._is_due(plan)):
            return False
        self._hooks.guards.failpoints.hit("C2", self._next)
        self._run_new(self._planner.pin_of(plan, self._next))
        return True

    def wait(self) -> None:
        if self._time is None:
            self._planner.wait(self._start, _WAIT_S)
        else:
            left_s = self._looked_s + _EVENT_WAIT_S - time.monotonic()
            self._planner.wait(self._start, max(_SHORTEST_WAIT_S, left_s))

    def _is_due(self, plan: BatchPlan) -> bool:
        return self._time is not None and self._time.is_due(plan, self._state)

    def _run_new(self, pin: Pin) -> None:
        """Write the pin beside the tasks, which show nothing, or else before them."""
        if self._batches.shows_early:
            write_pin(self._hooks, pin)
            self._run(pin, _is_durable)
            return
        written = self._writes.submit(write_pin, self._hooks, pin)
        try:
            self._run(pin, written.result)
        finally:
            wait([written])  # nothing of a batch is written behind its step

    def _run(self, pin: Pin, settle: Callable[[], None]) -> None:
        self._hooks.on_pin(pin)
        done = self._batches.run(pin, settle)
        self._hooks.on_finish(done)
        self._hooks.guards.failpoints.hit("C9", pin.batch)
        self._follow(done)
        if self._time is not None:
            self._time.moved(self._next, self._start, self._state)

    def _follow(self, done: FinishedBatch) -> None:
        self._state, self._retry = done.state, None
        self._start = dict(done.pin.end_offsets)
        self._next = done.pin.batch + 1
        self._hooks.guards.failpoints.hit("C10", done.pin.batch)


class _EventTime:
    """In a job with event time or windows: due times as a reason for a batch, and the status."""

    def __init__(self, settings: ProbeSettings, planner: BatchPlanner, parts: EventParts) -> None:
        self._settings = settings
        self._planner = planner
        self._parts = parts
        self._shown_at = 0.0

    def is_due(self, plan: BatchPlan, state: EventState) -> bool:
        """True if rows or windows become due by `plan`, or the stream's time ends by it."""
        move, times = self._planner.moved(plan, state), self._next_times(state)
        if move.is_due(*times) or self._has_new_rows(plan, state):
            return True
        self._show(plan.start, state, move, times)
        return False

    def _has_new_rows(self, plan: BatchPlan, state: EventState) -> bool:
        """True if late rows may match what they have not been looked up in."""
        spec = self._parts.spec
        if spec.late_wait_ms is None or state.tried(spec.waited_versions(plan.versions)):
            return False
        if state.waiting:
            return True
        waiting = self._parts.tables.waiting
        may_correct = spec.late_correct_ms and waiting is not None and waiting.newest_files()
        return bool(may_correct)

    def moved(self, number: int, start: Mapping[int, int], state: EventState) -> None:
        self._parts.trim(state.release_ms)
        if time.monotonic() - self._shown_at >= _SHOW_EVERY_S:
            plan = self._planner.quiet(number, start, state)
            self._show(start, state, self._planner.moved(plan, state), self._next_times(state))

    def _next_times(self, state: EventState) -> _NextTimes:
        tables = self._parts.tables
        waiting, windows = tables.waiting, tables.windows
        return (
            None if waiting is None else waiting.next_due(state.release_ms),
            None if windows is None else windows.next_due(state.window_watermark),
        )

    def _show(
        self, start: Mapping[int, int], state: EventState, move: Advance, times: _NextTimes
    ) -> None:
        self._shown_at = time.monotonic()
        waiting, windows = times
        tables = self._parts.tables
        at_end = is_reached(start, self._settings.life.end_offsets)
        view = EventView(
            spec=self._parts.spec,
            state=state,
            channels=move.channels,
            next_waiting_ms=waiting,
            next_window_ms=windows,
            waiting_files=tables.waiting.newest_files() if tables.waiting else (),
            window_files=tables.windows.newest_files() if tables.windows else (),
            is_drained=at_end and state.has_ended and waiting is None and windows is None,
            backlog=self._settings.life.backlog_offsets,
            topics=self._settings.topics,
        )
        self._parts.seen(view)
