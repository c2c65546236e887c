"""When a fold pays: it rewrites most of `current`, however few the changes are."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from joins.kernels.changelog.digest import ChangelogState
from joins.worker.index_source import Folded

SMALL_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class FoldPolicy:
    """How far `current` may be behind.

    Attributes:
        share: changes wait until they are this share of the rows above `SMALL_ROWS`; 0 never waits.
        latest_s: however few there are, they wait no longer than this.
    """

    share: float = 0.1
    latest_s: float = 600.0


class FoldSchedule:
    """The changes of one dimension since its last fold, against what a fold costs."""

    def __init__(
        self,
        policy: FoldPolicy,
        folded: Folded | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with an earlier runner's fold, if it is known; its time counts from now."""
        self._policy = policy
        self._folded = folded
        self._monotonic_s = monotonic_s
        self._folded_at_s = monotonic_s()

    def is_due(self, state: ChangelogState) -> bool:
        """Whether to fold up to `state`; the first time, and for a new generation, always."""
        folded, newest = self._folded, Folded.of(state)
        if folded is None or newest.generation != folded.generation:
            return True
        if newest == folded:
            return False
        large = max(0, state.snapshot_rows - SMALL_ROWS)
        if newest.records - folded.records >= self._policy.share * large:
            return True
        return self._monotonic_s() - self._folded_at_s >= self._policy.latest_s

    def folded(self, state: ChangelogState) -> None:
        self._folded, self._folded_at_s = Folded.of(state), self._monotonic_s()
