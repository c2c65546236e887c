"""Work behind a job's batches: each kind on a thread of its own, and which of them do not succeed.

A kind that takes long does not keep the others from their turn. It is not begun a second time
beside itself.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import structlog

from joins.kernels.local_files import is_full
from joins.plan.errors import DiskFullError
from watermark.errors import SluiceError

PATIENCE_S = 20.0
SLOW_S = 60.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UpkeepFault:
    """A kind of work that does not succeed.

    Attributes:
        part: its name.
        since_ms: when its first attempt failed, or when the one that runs began.
        failures: attempts since the last success.
        error: of the newest one; None while the first one runs.
    """

    part: str
    since_ms: int
    failures: int = 0
    error: str | None = None
    hint: str = "Look at the load of the machine, and at the runner's log."

    @property
    def text(self) -> str:
        """As a sentence."""
        minutes = max(0, time.time_ns() // 1_000_000 - self.since_ms) // 60_000
        if self.error is None:
            return f"{self.part} has not ended for {minutes or 'about 1'} min"
        times = "once" if self.failures == 1 else f"{self.failures} times"
        return f"{self.part} has failed {times} in {minutes} min: {self.error}"


class UpkeepAttempts:
    """The attempts of one job; `run` comes from one thread, `conditions` from any.

    Args:
        stopping: nothing is begun and no failure is told after it.
        enter: what each thread does first.
        patience_s: how long `run` waits for an attempt to end.
        slow_s: how long an attempt may run before it is told.
    """

    def __init__(
        self,
        stopping: threading.Event,
        enter: Callable[[], object] = lambda: None,
        *,
        patience_s: float = PATIENCE_S,
        slow_s: float = SLOW_S,
    ) -> None:
        self._stopping = stopping
        self._enter = enter
        self._patience_s = patience_s
        self._slow_s = slow_s
        self._running: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._begun: Mapping[str, int] = {}
        self._failed: Mapping[str, UpkeepFault] = {}

    def run(
        self, part: str, work: Callable[[], object], *, not_beside: Collection[str] = ()
    ) -> None:
        """Begin `work` unless it, or a part that it is not to run beside, still runs."""
        if self._stopping.is_set() or any(map(self.is_running, (part, *not_beside))):
            return
        thread = threading.Thread(
            target=self._attempt, args=(part, work), name=f"upkeep: {part}", daemon=True
        )
        self._running[part] = thread
        with self._lock:
            self._begun = {**self._begun, part: time.time_ns() // 1_000_000}
        thread.start()
        end = time.monotonic() + self._patience_s
        while thread.is_alive() and not self._stopping.is_set():
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            thread.join(min(0.5, left_s))

    def is_running(self, part: str) -> bool:
        thread = self._running.get(part)
        return thread is not None and thread.is_alive()

    def conditions(self) -> tuple[UpkeepFault, ...]:
        now_ms, begun, failed = time.time_ns() // 1_000_000, self._begun, self._failed
        slow = (
            UpkeepFault(part, at_ms)
            for part, at_ms in begun.items()
            if part not in failed and now_ms - at_ms > 1000 * self._slow_s
        )
        return (*failed.values(), *slow)

    def join(self, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        for thread in list(self._running.values()):
            thread.join(max(0.0, end - time.monotonic()))

    def _attempt(self, part: str, work: Callable[[], object]) -> None:
        error: Exception | None = None
        try:
            self._enter()
            work()
        except Exception as exc:  # whatever it is, it is tried again
            error = exc
        with self._lock:
            self._begun = {name: at for name, at in self._begun.items() if name != part}
            others = {name: each for name, each in self._failed.items() if name != part}
            if error is None:
                self._failed = others
            elif not self._stopping.is_set():
                self._failed = {**others, part: self._after(part, error)}
        if error is not None and not self._stopping.is_set():
            _log.warning("background work failed; it is tried again", part=part, error=str(error))

    def _after(self, part: str, error: Exception) -> UpkeepFault:
        known = self._failed.get(part) or UpkeepFault(part, time.time_ns() // 1_000_000)
        text, hint = str(error) or type(error).__name__, known.hint
        if isinstance(error, SluiceError):
            text, hint = error.message, error.hint
        elif is_full(error):
            hint = DiskFullError.HINT
        return replace(known, failures=known.failures + 1, error=text, hint=hint)
