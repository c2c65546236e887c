"""Whether a runner that lives still speaks: how long it is silent, and when that is too long.

Silence is measured on our own monotonic clock from the moment we first saw a report: a clock that
is set, or a machine that slept, makes no healthy runner look dead.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.config import Settings
from service.jobs.store.job import JobError

UNRESPONSIVE = "runner-unresponsive"
STARTING_S = 180.0
_MOST_DOUBLINGS = 4


@dataclass(slots=True)
class Silence:
    """What one runner, and those before it, have let us hear.

    Attributes:
        hangs: runners in a row that were killed because they were silent. Each doubles the patience
            with the next, so that a step that is merely long gets through in the end.
    """

    clock: Callable[[], float] = field(default=time.monotonic)
    hangs: int = 0
    _heard: int | None = None
    _heard_at: float | None = None

    def begin(self) -> None:
        self._heard, self._heard_at = None, None

    def lasts_s(self, updated_at_ms: int | None) -> float:
        """Seconds without news, given the time in the newest report (None: there is none yet)."""
        now = self.clock()
        if self._heard_at is None or updated_at_ms != self._heard:
            self._heard, self._heard_at = updated_at_ms, now
        return now - self._heard_at

    def report_after_s(self, settings: Settings, *, starting: bool) -> float:
        return max(settings.runner_hang_report_s, STARTING_S if starting else 0.0)

    def kill_after_s(self, settings: Settings, *, starting: bool) -> float:
        patience_s = max(settings.runner_hang_kill_s, settings.runner_hang_report_s)
        patience_s = max(patience_s, STARTING_S if starting else 0.0)
        return patience_s * 2.0 ** min(self.hangs, _MOST_DOUBLINGS)


def unresponsive(pid: int, silent_s: float, kill_after_s: float) -> JobError:
    return JobError(
        UNRESPONSIVE,
        f"runner {pid} lives, but has not reported for {silent_s:.0f} s",
        f"It is killed and started again after {kill_after_s:g} s; look at its log and at the "
        "machine's memory and disk.",
    )
