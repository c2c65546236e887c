"""`/v1/jobs/{id}/watermarks` and `/explain-wait`: how far a job is, and what it waits for."""

from dataclasses import asdict

from fastapi import APIRouter

from service.api.http.access import VIEWER
from service.api.routes.jobs import Injected, JobId
from service.jobs.inspect.waiting import explain_wait
from service.jobs.store.job import Job
from service.jobs.store.plan_codec import load
from service.schemas.jobs import DimensionView, JobDetail
from service.schemas.progress import (
    ConditionView,
    DimensionChannel,
    DimensionEmission,
    GateView,
    VertexView,
    WaitReport,
    WatermarkReport,
)

router = APIRouter(prefix="/v1/jobs", tags=["progress"], dependencies=[VIEWER])


@router.get("/{job_id}/watermarks", summary="Show watermarks")
def show_watermarks(job_id: JobId, services: Injected) -> WatermarkReport:
    """Each channel's watermark, what the sources have emitted, and what feeds the gate."""
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
        ),
        channels=[
            DimensionChannel(dimension=dimension.name, **channel.model_dump())
            for dimension in detail.dimensions
            for channel in dimension.channels
        ],
        emitted=[_emission(dimension) for dimension in detail.dimensions],
        event_time=detail.event_time,
        vertices=vertices(job, detail),
        status_age_ms=detail.runner.status_age_ms,
    )


def _emission(dimension: DimensionView) -> DimensionEmission:
    return DimensionEmission(
        dimension=dimension.name,
        source=dimension.source,
        generation=dimension.generation,
        position=dimension.position,
        emitted=dimension.emitted,
    )


def vertices(job: Job, detail: JobDetail) -> list[VertexView]:
    """The parts of the job; their ids come from its plan and stay the same over restarts."""
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
    """What must come true before rows come out, and in one sentence what of it has not."""
    detail = services.detail(services.store.get(job_id))
    explanation = explain_wait(detail.model_dump(mode="json", by_alias=True))
    return WaitReport(
        job_id=detail.id,
        state=detail.state,
        waiting=explanation.waiting,
        sentence=explanation.sentence,
        hint=explanation.hint,
        conditions=[ConditionView(**asdict(condition)) for condition in explanation.conditions],
        status_age_ms=detail.runner.status_age_ms,
    )
