"""The micro-batch loop of a job with event time or windows.

Spark's own streaming runs no batch without records, but here idleness, a dimension's watermark and
the clock must release rows, too. So the loop chooses the offsets of a batch, writes its pin and
runs it; it begins a batch when there are records, when the watermark has reached something that
waits, and once when a bounded stream has ended, or a stream has switched to processing time. It is
started, watched and stopped like a query of Spark's.

The pin says everything that a batch depends on. A batch that was pinned and is not committed is run
again under its pin before anything else, also by a later runner.
"""

import threading
import time
from collections.abc import Mapping
from typing import Any

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from joins.batch.event_batch import EventBatches, EventOutcome
from joins.batch.event_plan import BatchPlanner, EventParts
from joins.batch.event_state import Advance, EventState
from joins.batch.event_view import EventView
from joins.batch.probe_side import FinishedBatch, ProbeHooks, ProbeSettings
from joins.durable.pins import Pin
from joins.plan.errors import StoppingError
from joins.stream.bounds import is_reached

_JOIN_S = 10.0
_SHOW_EVERY_S = 0.5  # while batch follows batch; what is due next is read from files
_NextTimes = tuple[int | None, int | None]  # of rows that wait, of windows
_log = structlog.get_logger(__name__)


class EventLoop:
    """One run of the loop, on a thread of its own; looks like a streaming query."""

    def __init__(
        self,
        spark: SparkSession,
        batches: EventBatches,
        settings: ProbeSettings,
        hooks: ProbeHooks,
        parts: EventParts,
    ) -> None:
        self._spark = spark
        self._batches = batches
        self._settings = settings
        self._hooks = hooks
        self._parts = parts
        self._planner = BatchPlanner(settings, hooks, parts)
        self._stopping = threading.Event()
        self._ended = False
        self._error: Exception | None = None
        self._progress: dict[str, Any] | None = None
        self._state = EventState()
        self._start = dict(settings.start_offsets)
        self._next = settings.life.first_batch
        self._retry: Pin | None = None
        self._shown_at = 0.0
        self._group = f"event-batches-{id(self)}"
        self._thread = threading.Thread(target=self._work, name="event-batches", daemon=True)

    # Like a query

    def start(self) -> "EventLoop":
        """Begin; the first thing is what an earlier run has left."""
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:  # noqa: N802 - the name that a query of Spark's has
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def lastProgress(self) -> Mapping[str, Any] | None:  # noqa: N802 - as above
        """The newest batch; None until the topic was looked at, or a batch run, once."""
        return self._progress

    def exception(self) -> Exception | None:
        """Why it ended; None while it runs, and if it was stopped."""
        return self._error

    def stop(self) -> None:
        """End it; a batch that runs is broken off and run again by the next one."""
        self._stopping.set()
        try:
            self._spark.sparkContext.cancelJobGroup(self._group)
        except (PySparkException, Py4JError) as exc:
            _log.warning("jobs of a batch were not cancelled", error=str(exc))
        self._thread.join(_JOIN_S)

    def end(self) -> None:
        """No batch begins any more."""
        self._ended = True

    # The loop

    def _work(self) -> None:
        context = self._spark.sparkContext
        guarded = self._hooks.guards.guarded(self._tick)
        try:
            context.setLocalProperty("spark.scheduler.pool", self._parts.pool)
            context.setJobGroup(self._group, "event batches", interruptOnCancel=True)
            self._guarded_recovery()
            while not self._stopping.is_set():
                began = time.monotonic()
                guarded(None, self._next)
                rest_s = self._settings.trigger_ms / 1000 - (time.monotonic() - began)
                self._stopping.wait(max(0.0, rest_s))
        except Exception as exc:  # whatever it is, the query has ended by it
            self._error = None if self._stopping.is_set() else exc
        finally:
            self._planner.close()

    def _guarded_recovery(self) -> None:
        self._hooks.guards.guarded(lambda _, __: self._recover())(None, self._next)

    def _recover(self) -> None:
        """Find where the newest pin has come to."""
        with self._hooks.turn:
            self._batches.sweep()
            life, pin = self._settings.life, self._hooks.pins.newest()
            if pin is None or pin.batch < life.first_batch:
                self._state = self._batches.newest_state()
                return
            done = self._batches.committed(pin)
            if done is None:
                self._retry, self._next = pin, pin.batch
                return
            self._hooks.on_finish(FinishedBatch(pin, done.counts))
            self._follow(pin, done)

    def _follow(self, pin: Pin, done: EventOutcome) -> None:
        """The batch of `pin` is committed: go on behind it."""
        self._state, self._retry = done.state, None
        self._start = dict(pin.end_offsets)
        self._next = pin.batch + 1

    def _tick(self, _: None, number: int) -> None:
        """Run a batch if there is a reason for one."""
        with self._hooks.turn:
            if self._ended or self._stopping.is_set():
                raise StoppingError(
                    f"batch {number} of an ended loop does not start",
                    hint="The loop was started again.",
                )
            if self._retry is not None:
                self._run(self._retry, is_retry=True)
                return
            plan = self._planner.next(number, self._start, self._state)
            if not plan.has_records():
                move, times = self._planner.moved(plan, self._state), self._next_times()
                if not self._is_due(move, times):
                    self._show(move, times)
                    self._progress = self._progress or {"batch": None}
                    return
            self._hooks.guards.failpoints.hit("C2", number)
            self._run(self._planner.pinned(plan, number), is_retry=False)

    def _run(self, pin: Pin, *, is_retry: bool) -> None:
        hit = self._hooks.guards.failpoints.hit
        if not is_retry:
            hit("C3", pin.batch)
        self._retry = pin
        self._hooks.on_pin(pin)
        done = self._batches.run(pin, is_retry=is_retry)
        self._hooks.on_finish(FinishedBatch(pin, done.counts))
        hit("C9", pin.batch)
        self._follow(pin, done)
        self._progress = {"batch": pin.batch, **done.counts}
        self._parts.trim(done.state.release_ms)
        if time.monotonic() - self._shown_at >= _SHOW_EVERY_S:
            plan = self._planner.quiet(self._next, self._start, self._state)
            self._show(self._planner.moved(plan, self._state), self._next_times())

    # Without records

    def _is_due(self, move: Advance, times: _NextTimes) -> bool:
        """Whether something waits for where `move` goes, or the stream's time ends by it."""
        if move.after.has_ended and not self._state.has_ended:
            return True
        waiting, windows = times
        return (waiting is not None and waiting <= move.after.release_ms) or (
            windows is not None and windows <= move.after.window_watermark
        )

    def _next_times(self) -> _NextTimes:
        """When the next row that waits, and the next window, is due."""
        tables, state = self._parts.tables, self._state
        waiting, windows = tables.waiting, tables.windows
        return (
            None if waiting is None else waiting.next_due(state.release_ms),
            None if windows is None else windows.next_due(state.window_watermark),
        )

    def _show(self, move: Advance, times: _NextTimes) -> None:
        """Tell how the time stands."""
        self._shown_at = time.monotonic()
        waiting, windows = times
        tables = self._parts.tables
        at_end = is_reached(self._start, self._settings.life.end_offsets)
        view = EventView(
            spec=self._parts.spec,
            state=self._state,
            channels=move.channels,
            next_waiting_ms=waiting,
            next_window_ms=windows,
            waiting_files=tables.waiting.newest_files() if tables.waiting else (),
            window_files=tables.windows.newest_files() if tables.windows else (),
            is_drained=at_end and self._state.has_ended and waiting is None and windows is None,
            backlog=self._settings.life.backlog_offsets,
        )
        self._parts.seen(view)
