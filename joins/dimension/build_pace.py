"""How far apart the batches of one build side are while the probe drains."""

import time
from collections.abc import Callable

APART_S = 1.7


class BuildPace:
    """Lets build batches rest while records wait; for one dimension, on Spark's batch thread.

    A probe batch takes about a second then and pins one version: more versions than that cost time
    that the probe needs. The next batch will take about what this one took, so that their commits
    are `APART_S` apart.

    Args:
        is_draining: whether more records wait than arrive.
        wait: return after so many seconds, or sooner when the job stops.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        is_draining: Callable[[], bool],
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_draining = is_draining
        self._wait = wait
        self._clock = clock
        self._went_on_at_s = clock()

    def rest(self) -> None:
        """Return when the next batch may begin; called when a batch is committed."""
        took_s = self._clock() - self._went_on_at_s
        if took_s < APART_S and self._is_draining():
            self._wait(APART_S - took_s)
        self._went_on_at_s = self._clock()
