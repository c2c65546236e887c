"""The pulse of each job of a list: its newest rates, where it stands, half an hour of one rate."""

import time
from collections.abc import Callable, Sequence

from service.api.views import sinks_of
from service.jobs.store.history import COARSE, FINE, read_points
from service.jobs.store.job import Job
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.schemas.pulse import PulseView

_RECENT = 30  # of the coarse ring
_NEWEST = 3  # of the fine one: older points say nothing of now
_DRAWN = "records_per_s"


def pulses_of(
    store: JobStore, layout: Callable[[str], JobLayout], jobs: Sequence[Job]
) -> dict[str, PulseView]:
    """By the ids of `jobs`; their files are read, and the plans of all at once."""
    plans, now_ms = store.plans([job.id for job in jobs]), time.time_ns() // 1_000_000
    return {job.id: _pulse(layout(job.id), plans.get(job.id, b""), now_ms) for job in jobs}


def _pulse(layout: JobLayout, plan: bytes, now_ms: int) -> PulseView:
    now = {ring: ring.slot(now_ms) for ring in (FINE, COARSE)}
    newest = read_points(layout.history, FINE, now[FINE] - _NEWEST, now[FINE])
    first = now[COARSE] - _RECENT
    drawn = {
        COARSE.slot(point.at_ms): point.numbers()[_DRAWN]
        for point in read_points(layout.history, COARSE, first, now[COARSE] - 1)
    }
    numbers = newest[-1].numbers() if newest else {}
    shown = ("records_per_s", "rows_per_s", "copied_rows_per_s", "held_records", "lag_records")
    return PulseView(
        **{name: numbers.get(name) for name in shown},
        recent=[drawn.get(slot) for slot in range(first, now[COARSE])],
        sinks=sinks_of(plan),
    )
