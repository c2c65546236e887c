"""The probe's steps: each plans a batch, writes its pin and runs it.

A batch begins when there are records. In a job with event time or windows it may have to run
without: when the watermark has reached something that waits, once when a bounded stream has ended,
and when a stream has switched to processing time.

The pin says everything that a batch depends on. A batch that was pinned and is not committed is run
again under its pin before anything else, also by a later runner.
"""

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from joins.batch.batch_plan import BatchPlan, BatchPlanner, EventParts
from joins.batch.batches import BatchRunner, FinishedBatch, ProbeHooks, ProbeSettings
from joins.batch.event_state import Advance, EventState
from joins.batch.event_view import EventView
from joins.durable.pins import Pin
from joins.loop import Loop, LoopSettings
from joins.stream.bounds import is_reached

_SHOW_EVERY_S = 0.5  # while batch follows batch; what is due next is read from files
_NextTimes = tuple[int | None, int | None]  # of rows that wait, of windows


class ProbeSteps:
    """The steps of one loop.

    Args:
        event: of a job with event time or windows.
    """

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
        self._time = None if event is None else _EventTime(settings, self._planner, event)

    def loop(self, spark: SparkSession) -> Loop:
        settings = LoopSettings("probe", "probe", self._settings.trigger_ms)
        return Loop(spark, self, settings, self._hooks.guards)

    def close(self) -> None:
        self._planner.close()

    def recover(self) -> None:
        """Find where the newest pin has come to."""
        life, pin = self._settings.life, self._hooks.pins.newest()
        self._hooks.guards.failpoints.hit("C1", self._next if pin is None else pin.batch)
        self._batches.sweep()
        if pin is None or pin.batch < life.first_batch:
            self._state = self._batches.newest_state()
            return
        done = self._batches.committed(pin)
        if done is None:
            self._retry, self._next = pin, pin.batch
            return
        self._hooks.on_finish(done)
        self._follow(done)

    def step(self) -> bool:
        """Run a batch if there is a reason for one; returns whether there was."""
        if self._retry is not None:
            self._run(self._retry)
            return True
        plan = self._planner.next(self._next, self._start, self._state)
        if not (plan.has_records() or self._is_due(plan)):
            return False
        self._hooks.guards.failpoints.hit("C2", self._next)
        self._retry = self._planner.pinned(plan, self._next)
        self._hooks.guards.failpoints.hit("C3", self._next)
        self._run(self._retry)
        return True

    def wait(self) -> None:
        if self._time is None:
            self._planner.wait(self._start)

    def _is_due(self, plan: BatchPlan) -> bool:
        return self._time is not None and self._time.is_due(plan, self._state)

    def _run(self, pin: Pin) -> None:
        self._hooks.on_pin(pin)
        done = self._batches.run(pin)
        self._hooks.on_finish(done)
        self._hooks.guards.failpoints.hit("C9", pin.batch)
        self._follow(done)
        if self._time is not None:
            self._time.moved(self._next, self._start, self._state)

    def _follow(self, done: FinishedBatch) -> None:
        """Go on behind a batch that is committed."""
        self._state, self._retry = done.state, None
        self._start = dict(done.pin.end_offsets)
        self._next = done.pin.batch + 1
        self._hooks.guards.failpoints.hit("C10", done.pin.batch)


class _EventTime:
    """What in a job with event time or windows is a reason for a batch, and how its time stands."""

    def __init__(self, settings: ProbeSettings, planner: BatchPlanner, parts: EventParts) -> None:
        self._settings = settings
        self._planner = planner
        self._parts = parts
        self._shown_at = 0.0

    def is_due(self, plan: BatchPlan, state: EventState) -> bool:
        """Whether something waits for where `plan` goes, or the stream's time ends by it."""
        move, times = self._planner.moved(plan, state), self._next_times(state)
        if _is_due(move, times, state):
            return True
        self._show(plan.start, state, move, times)
        return False

    def moved(self, number: int, start: Mapping[int, int], state: EventState) -> None:
        """A batch is done: `number` is the next one, from `start` on."""
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
        """Tell how the time stands."""
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


def _is_due(move: Advance, times: _NextTimes, state: EventState) -> bool:
    if move.after.has_ended and not state.has_ended:
        return True
    waiting, windows = times
    return (waiting is not None and waiting <= move.after.release_ms) or (
        windows is not None and windows <= move.after.window_watermark
    )
