"""CPU seconds of a process and of all that it has started, between two moments."""

import time
from collections.abc import Callable
from threading import Event

import numpy as np
import psutil

from tests.support.beside import RunsBeside

_EVERY_S = 0.2


class CpuSeconds(RunsBeside):
    """Adds up, several times a second, what the processes have used; those that end count on.

    Args:
        root: the process whose descendants are meant; None while there is none.
    """

    def __init__(self, root: Callable[[], psutil.Process | None]) -> None:
        self._find_root = root
        self._root: psutil.Process | None = None
        self._used: dict[tuple[int, float], float] = {}
        self._times: list[float] = []
        self._totals: list[float] = []

    def between(self, since: float, until: float) -> float:
        """CPU seconds between two Unix times; what was used between two looks is spread evenly.

        Raises:
            ValueError: nothing was seen.
        """
        if not self._times:
            raise ValueError("no process was there to look at")
        before, after = np.interp([since, until], self._times, self._totals)
        return float(after - before)

    def _run(self, ended: Event) -> None:
        while not ended.wait(_EVERY_S):
            self._look_at_all()
        self._look_at_all()

    def _look_at_all(self) -> None:
        self._root = self._root or self._find_root()
        if self._root is None:
            return
        try:
            for process in [self._root, *self._root.children(recursive=True)]:
                self._look(process)
        except psutil.NoSuchProcess:
            self._root = None
            return
        self._times.append(time.time())
        self._totals.append(sum(self._used.values()))

    def _look(self, process: psutil.Process) -> None:
        try:
            times = process.cpu_times()
            self._used[(process.pid, process.create_time())] = times.user + times.system
        except psutil.NoSuchProcess:
            return
