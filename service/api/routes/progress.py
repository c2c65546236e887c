"""`/v1/jobs/{id}/watermarks`, `/explain-wait` and `/history`: the progress of a job."""

import time
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from service.api.http.access import VIEWER
from service.api.routes.events import event_view
from service.api.services import Injected, JobId
from service.jobs.inspect.waiting import explain_wait
from service.jobs.store.history import COARSE, FINE, SERIES, means, read_points
from service.jobs.store.job import Job
from service.jobs.store.plan_codec import load
from service.schemas.jobs import JobDetail
from service.schemas.progress import (
    ConditionView,
    DimensionChannel,
    DimensionEmission,
    GateView,
    HistorySeries,
    JobHistory,
    VertexView,
    WaitReport,
    WatermarkReport,
)

_HOUR_MS = 3_600_000
_LATEST_MS = 2**53  # JavaScript's exact integers
router = APIRouter(prefix="/v1/jobs", tags=["progress"], dependencies=[VIEWER])


@router.get("/{job_id}/history", summary="Show up to a day in numbers")
def show_history(
    job_id: JobId,
    services: Injected,
    since: Annotated[
        int | None,
        Query(ge=0, le=_LATEST_MS, description="Milliseconds since 1970; default: an hour ago."),
    ] = None,
    step: Annotated[
        int | None,
        Query(
            ge=10,
            le=3600,
            multiple_of=10,
            description="Seconds between points. Sluice keeps points of a day for multiples of 60, "
            "of the last hour for others: an earlier `since` begins there. Default: 10, or 60 if "
            "`since` is more than an hour ago.",
        ),
    ] = None,
) -> JobHistory:
    """Rates, lag, held records, freshness and batch times as points, and the transitions.

    Unrecorded points are missing; unknown numbers are null.
    """
    now_ms = time.time_ns() // 1_000_000
    first_ms = now_ms - _HOUR_MS if since is None else since
    step_s = step or (FINE.step_s if first_ms >= now_ms - _HOUR_MS else COARSE.step_s)
    events = services.store.events.since(job_id, first_ms)
    ring = COARSE if step_s % COARSE.step_s == 0 else FINE
    file = services.layout(job_id).history
    points = read_points(file, ring, ring.slot(first_ms), ring.slot(now_ms))
    if step_s != ring.step_s:
        points = list(means(points, 1000 * step_s))
    rows = [point.numbers() for point in points]
    return JobHistory(
        job_id=job_id,
        step_s=step_s,
        at_ms=[point.at_ms for point in points],
        series=HistorySeries(**{name: [row[name] for row in rows] for name in SERIES}),
        transitions=[event_view(event) for event in events],
    )


@router.get("/{job_id}/watermarks", summary="Show watermarks")
def show_watermarks(job_id: JobId, services: Injected) -> WatermarkReport:
    """Watermarks by channel, watermarks emitted by the sources, and the state of the gate."""
    job = services.store.get(job_id)
    detail = services.detail(job)
    return WatermarkReport(
        job_id=detail.id,
        phase=detail.phase,
        combined=detail.combined_watermark,
        gate=GateView(
            open=detail.phase == "JOIN",
            opened_at_ms=detail.opened_at_ms,
            held_at_open=detail.held_at_open,
            holding=detail.holding,
        ),
        channels=[
            DimensionChannel(dimension=dimension.name, **channel.model_dump())
            for dimension in detail.dimensions
            for channel in dimension.channels
        ],
        emitted=[
            DimensionEmission(
                dimension=dimension.name,
                source=dimension.source,
                generation=dimension.generation,
                position=dimension.position,
                emitted=dimension.emitted,
            )
            for dimension in detail.dimensions
        ],
        event_time=detail.event_time,
        vertices=vertices(job, detail),
        status_age_ms=detail.runner.status_age_ms,
    )


def vertices(job: Job, detail: JobDetail) -> list[VertexView]:
    """The parts of the job; ids come from its plan and survive restarts.

    Join and windows have one part each: their tasks differ from batch to batch.
    """
    channels = {dimension.name: len(dimension.channels) for dimension in detail.dimensions}
    plan = load(job.plan)
    names = [dimension.name for dimension in plan.dimensions]
    builds = [
        VertexView(
            id=f"build-{name}", kind="build", parallelism=channels.get(name, 0), dimension=name
        )
        for name in names
    ]
    probe = detail.probe
    partitions = 0 if probe is None else len(probe.end_offsets or probe.start_offsets)
    parts = [
        *builds,
        VertexView(id="probe", kind="probe", parallelism=partitions),
        VertexView(id="join", kind="join", parallelism=1),
    ]
    if plan.window is not None:
        parts.append(VertexView(id="windows", kind="windows", parallelism=1))
    return parts


@router.get("/{job_id}/explain-wait", summary="Why is nothing coming out?")
def show_wait(job_id: JobId, services: Injected) -> WaitReport:
    """The conditions for output, and a sentence about the first that is not met."""
    detail = services.detail(services.store.get(job_id))
    explanation = explain_wait(detail.model_dump(mode="json", by_alias=True))
    assert detail.status is not None, "a detail has its words"
    return WaitReport(
        job_id=detail.id,
        state=detail.state,
        waiting=explanation.waiting,
        sentence=detail.status.sentence,
        hint=detail.status.remedy,
        conditions=[ConditionView(**asdict(condition)) for condition in explanation.conditions],
        status_age_ms=detail.runner.status_age_ms,
    )
