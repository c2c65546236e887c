"""Half an hour of one rate, for the small chart that a job has in a list."""

import time

from service.jobs.store.history import COARSE, read_points
from service.jobs.store.layout import JobLayout

_MINUTES = 30
_RATE = "records_per_s"


def recent_rates(layout: JobLayout) -> list[float | None]:
    """Records a second in each of the last 30 minutes, the oldest first; None while unknown."""
    end = COARSE.slot(time.time_ns() // 1_000_000)
    first = end - _MINUTES
    points = read_points(layout.history, COARSE, first, end - 1)
    rates = {COARSE.slot(point.at_ms): point.number(_RATE) for point in points}
    return [rates.get(slot) for slot in range(first, end)]
