"""Reports of a job, from a thread of their own: a long step of the main loop is no silence."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

HANGS_S = 60.0
"""A main loop that neither goes on nor is in a long step for this long hangs."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Activity:
    """What the main loop does; replaced as a whole.

    Attributes:
        step: of a step that may take long, its name; None of the others.
        since_s: when it began, or when the loop last went on; monotonic.
    """

    step: str | None
    since_s: float


class Reporter:
    """Reports while the main loop goes on or is in a step that it has named.

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
        """The main loop goes on.

        Raises:
            Exception: what a report has failed with.
        """
        self.activity = Activity(None, time.monotonic())
        if self._error is not None:
            raise self._error

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the main loop that may take as long as it needs."""
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
            except Exception as exc:  # whatever it is, the main loop ends by it
                self._error = exc
                return
