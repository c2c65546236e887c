"""`/v1/jobs/{id}/history`: the last day of a job in numbers, with its transitions."""

import time
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from service.api.http.access import VIEWER
from service.api.routes.event_stream import event_view
from service.api.routes.jobs import Injected, JobId
from service.jobs.store.history import COARSE, FINE, SERIES, HistoryPoint, means, read_points
from service.schemas.progress import HistorySeries, JobHistory

_HOUR_MS = 3_600_000
_LARGEST = 2**53
router = APIRouter(prefix="/v1/jobs", tags=["progress"], dependencies=[VIEWER])


@router.get("/{job_id}/history", summary="Show the last day in numbers")
def show_history(
    job_id: JobId,
    services: Injected,
    since: Annotated[
        int | None,
        Query(ge=0, le=_LARGEST, description="Milliseconds since 1970; an hour ago if left out."),
    ] = None,
    step: Annotated[
        int | None,
        Query(
            ge=10,
            le=3600,
            multiple_of=10,
            description="Seconds from point to point. Multiples of 60 reach a day back, others an "
            "hour; 10 if left out, and 60 for what is older than an hour.",
        ),
    ] = None,
) -> JobHistory:
    """Rates, lag, held records, freshness and batch times as points, and the transitions.

    Points that nobody has seen are left out, and so are numbers that were not known.
    """
    now_ms = time.time_ns() // 1_000_000
    first_ms = now_ms - _HOUR_MS if since is None else since
    step_s = step or (FINE.step_s if first_ms >= now_ms - _HOUR_MS else COARSE.step_s)
    events = services.store.events_since(job_id, first_ms)
    ring = COARSE if step_s % COARSE.step_s == 0 else FINE
    file = services.layout(job_id).history
    points = read_points(file, ring, ring.slot(first_ms), ring.slot(now_ms))
    if step_s != ring.step_s:
        points = list(means(points, 1000 * step_s))
    return JobHistory(
        job_id=job_id,
        step_s=step_s,
        at_ms=[point.at_ms for point in points],
        series=_series(points),
        transitions=[event_view(event) for event in events],
    )


def _series(points: Sequence[HistoryPoint]) -> HistorySeries:
    rows = [point.numbers() for point in points]
    return HistorySeries(**{name: [row[name] for row in rows] for name in SERIES})
