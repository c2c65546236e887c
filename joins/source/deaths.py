"""Silent deaths of a CDC process at one position of the binlog."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joins.kernels.changelog.envelope import BinlogPosition

_SURVIVED_S = 30.0  # a process that lives so long has passed the position where others died


@dataclass(slots=True)
class Deaths:
    """Consecutive silent deaths of the CDC process at one boundary, `at`."""

    at: BinlogPosition | None = None
    count: int = 0
    _last_s: float = 0.0

    def add(self, at: BinlogPosition) -> bool:
        self.count = self.count + 1 if at == self.at else 1
        self.at, self._last_s = at, time.monotonic()
        return self.count > 1

    def is_stall_after(self, event: Mapping[str, Any], now_s: float) -> bool:
        """True if an event of the next process leaves the stall, as it has not progressed yet."""
        if self.count <= 1 or self.at is None or event["event"] == "error":
            return False
        place = event.get("acknowledged")
        is_further = place is not None and BinlogPosition(**place) > self.at
        if is_further or now_s - self._last_s > _SURVIVED_S:
            self.count = 0
        return self.count > 1
