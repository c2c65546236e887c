"""How the operator's watermark moves within a batch."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from joins.kernels.windows.grouping import Rows


@dataclass(frozen=True, slots=True)
class WatermarkAdvance:
    """The operator's watermark before a batch, and its steps, each higher than the one before.

    Where a step is among the records is told by the records: those behind it have seen it.
    """

    before_ms: int
    watermarks_ms: Rows

    @classmethod
    def of(cls, before_ms: int, after_ms: int, steps: Iterable[int] = ()) -> Self:
        """From one watermark to the other; `steps` are those on the way, ascending, if any.

        With emission per batch there are none: the batch's records have all seen `before_ms`.
        """
        between = (each for each in steps if before_ms < each < after_ms)
        last = [after_ms] if after_ms > before_ms else []
        return cls(before_ms, np.array([*sorted(set(between)), *last], dtype=np.int64))

    @property
    def after_ms(self) -> int:
        return int(self.watermarks_ms[-1]) if len(self.watermarks_ms) else self.before_ms

    def seen(self, watermarks_ms: Rows) -> Rows:
        return np.searchsorted(self.watermarks_ms, watermarks_ms, side="right")

    def steps_at(self, due: Rows) -> Rows:
        return np.searchsorted(self.watermarks_ms, due)

    def held(self, steps: Rows) -> Rows:
        reached: Rows = np.concatenate([[self.before_ms], self.watermarks_ms])[steps]
        return reached
