"""The loops of one job: starts, watches and restarts them with a growing delay."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from joins.durable.requests import Stalls
from joins.loop import Loop
from joins.plan.causes import cause_of
from joins.plan.errors import CheckpointError, FencedError
from watermark.errors import SluiceError

HANGS_S = 60.0
"""A main loop without progress for this long hangs, unless it is in a named step."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What the main loop does; replaced as a whole."""

    step: str | None  # name of a step that may take long; None for others
    since_s: float  # when the step began, or when the loop last went on; monotonic


class Reporter:
    """Reports while the main loop goes on or is in a named step.

    It is silent while the main loop hangs, so that the control plane sees the hang.
    """

    def __init__(
        self, report: Callable[[], None], *, every_s: float, hangs_s: float = HANGS_S
    ) -> None:
        self._report = report
        self._every_s = every_s
        self._hangs_s = hangs_s
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self.activity = Activity(None, time.monotonic())
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """The main loop goes on; raises the exception of a failed report."""
        self.activity = Activity(None, time.monotonic())
        if self._error is not None:
            raise self._error

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.activity = Activity(name, time.monotonic())
        try:
            yield
        finally:
            self.activity = Activity(None, time.monotonic())

    def stop(self, timeout_s: float) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            activity = self.activity
            if activity.step is None and time.monotonic() - activity.since_s > self._hangs_s:
                _log.error("the main loop hangs", seconds=round(self._hangs_s))
                continue
            try:
                self._report()
            except Exception as exc:  # any error ends the main loop
                self._error = exc
                return


_RETRY_MIN_S, _RETRY_MAX_S = 1.0, 20.0
_log = structlog.get_logger(__name__)


class Loops:
    """Keeps the named loops running; all calls but `note_error` come from one thread."""

    def __init__(self, stalls: Stalls, start: Callable[[str], Loop]) -> None:
        self._stalls = stalls
        self._start = start
        self._loops: dict[str, Loop] = {}
        self._errors: dict[str, Exception] = {}
        self._retry_at: dict[str, float] = {}
        self._retry_delay: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._loops

    def note_error(self, name: str, error: Exception) -> None:
        self._errors[name] = error

    def start(self, name: str) -> None:
        self._errors.pop(name, None)
        self._loops[name] = self._start(name)

    def is_active(self, name: str) -> bool:
        loop = self._loops.get(name)
        return loop is not None and loop.is_active

    def drop(self, name: str) -> None:
        loop = self._loops.pop(name, None)
        self._retry_at.pop(name, None)
        self._retry_delay.pop(name, None)
        self._stalls.clear(name)
        if loop is not None:
            loop.stop()

    def watch(self) -> None:
        """Note why loops have ended, and restart them when their delay is over.

        Raises:
            FencedError: a newer runner has taken over.
            CheckpointError: the job's durable files cannot be used.
        """
        now = time.monotonic()
        for name, loop in list(self._loops.items()):
            if loop.is_active:
                if name in self._retry_delay and loop.has_progressed:
                    self._stalls.clear(name)
                    del self._retry_delay[name]
            elif name not in self._retry_at:
                self._note_failure(name, loop)
                self._retry_delay[name] = self._next_delay(name, loop)
                self._retry_at[name] = now + self._retry_delay[name]
            elif now >= self._retry_at[name]:
                self._restart(name)

    def stop(self) -> None:
        for loop in self._loops.values():
            loop.stop()

    def _next_delay(self, name: str, loop: Loop) -> float:
        last = self._retry_delay.get(name)
        if last is None or loop.has_progressed:
            return _RETRY_MIN_S
        return min(last * 2, _RETRY_MAX_S)

    def _restart(self, name: str) -> None:
        del self._retry_at[name]
        try:
            self.start(name)
        except (FencedError, CheckpointError):
            raise
        except (SluiceError, OSError) as exc:
            self._errors[name] = exc

    def _note_failure(self, name: str, loop: Loop) -> None:
        error = self._errors.get(name)
        if isinstance(error, FencedError | CheckpointError):
            raise error
        if not isinstance(error, SluiceError):
            cause = error or loop.error or RuntimeError("unknown cause")
            error = cause_of(cause, f"{name} query ended")
        self._stalls.note(name, error)
        _log.warning("query ended", query=name, error=error.message, hint=error.hint)
