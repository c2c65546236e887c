"""How the operator's watermark moves within a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from joins.kernels.windows.grouping import Rows
from watermark.model import MAX_TIMESTAMP

BEFORE_ALL = -1
BEHIND_ALL = 2**31 - 1
"""Instead of a partition: a step before the first record of the batch, or behind the last one."""


@dataclass(frozen=True, slots=True)
class Advance:
    """The steps of the watermark, in order of arrival, each higher than the one before.

    Attributes:
        before_ms: the watermark before the batch.
        partitions: of the record behind which a step is, or one of the two constants above.
        offsets: of that record.
        watermarks_ms: from the step on.
    """

    before_ms: int
    partitions: Rows
    offsets: Rows
    watermarks_ms: Rows

    @classmethod
    def of(
        cls,
        before_ms: int,
        after_ms: int,
        steps: Sequence[tuple[int, int, int]] = (),
        *,
        first: bool = False,
    ) -> Self:
        """From the watermark before the batch to the one behind it.

        Args:
            before_ms: the watermark before the batch.
            after_ms: the watermark behind it.
            steps: on the way, as (partition, offset, watermark), in order of arrival; a step that
                does not raise the watermark is none. Empty with emission per batch.
            first: the step to `after_ms` comes before all records instead of behind them: time
                that follows the clock.
        """
        last = (BEFORE_ALL if first else BEHIND_ALL, 0, after_ms)
        kept: list[tuple[int, int, int]] = []
        highest = before_ms
        for step in (*steps, last):
            if step[2] > highest:
                kept.append(step)
                highest = step[2]
        columns = np.array(kept, dtype=np.int64).reshape(-1, 3)
        return cls(before_ms, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())

    @property
    def after_ms(self) -> int:
        """The watermark behind the batch."""
        return int(self.watermarks_ms[-1]) if len(self.watermarks_ms) else self.before_ms

    def steps_at(self, due: Rows) -> Rows:
        """The step that reaches each of `due`, which lie between both ends."""
        return np.searchsorted(self.watermarks_ms, due)

    def held(self, steps: Rows) -> Rows:
        """The watermark that was there before each step: what a sink sees with its results."""
        before = np.concatenate([[self.before_ms], self.watermarks_ms])
        found: Rows = before[steps]
        return found

    @property
    def is_last(self) -> bool:
        """Time has ended: every window fires and nothing is kept."""
        return self.after_ms == MAX_TIMESTAMP
