"""The sign of a living control plane, which its runners look for."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_FILE = "control-plane.alive"
_EVERY_S = 5.0


@dataclass(slots=True)
class ControlPlaneSign:
    """Shows runners that the control plane of `data_dir` is there; for one thread."""

    data_dir: Path
    clock: Callable[[], float] = time.monotonic
    _shown_at: float | None = None

    def show(self) -> None:
        now = self.clock()
        if self._shown_at is not None and now - self._shown_at < _EVERY_S:
            return
        self._shown_at = now
        with suppress(OSError):  # a full disk or a lost directory is reported elsewhere
            (self.data_dir / _FILE).touch()


@dataclass(slots=True)
class ControlPlaneAbsence:
    """Measures for how long no control plane has been there, by this process's own clock."""

    data_dir: Path
    limit_s: float
    clock: Callable[[], float] = time.monotonic
    _seen: tuple[int | None, float] | None = field(default=None)

    def is_over_limit(self) -> bool:
        try:
            touched_ns = (self.data_dir / _FILE).stat().st_mtime_ns
        except OSError:
            touched_ns = None
        now = self.clock()
        if self._seen is None or (touched_ns is not None and touched_ns != self._seen[0]):
            self._seen = touched_ns, now
        return now - self._seen[1] > self.limit_s
