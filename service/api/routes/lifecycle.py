"""`/v1/jobs/{id}:stop`, `:start`, `:pause` and `:resume`: what an operator wants of a job."""

from fastapi import APIRouter

from service.api.http.access import OPERATOR
from service.api.routes.jobs import Injected, JobId
from service.jobs.store.job import DesiredState
from service.schemas.jobs import JobDetail

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[OPERATOR])


@router.post("/{job_id}:stop", status_code=202, summary="Stop a job")
def stop_job(job_id: JobId, services: Injected) -> JobDetail:
    """Let the runner end after its batch; the job keeps its place."""
    return services.want(job_id, DesiredState.STOPPED)


@router.post("/{job_id}:start", status_code=202, summary="Start a stopped or failed job")
def start_job(job_id: JobId, services: Injected) -> JobDetail:
    """Go on where the job stopped; a paused job goes on, too."""
    return services.want(job_id, DesiredState.RUNNING)


@router.post("/{job_id}:pause", status_code=202, summary="Pause a job that runs")
def pause_job(job_id: JobId, services: Injected) -> JobDetail:
    """Let the runner end after its batch; nothing is lost, the stream's records stay in Kafka."""
    return services.want(job_id, DesiredState.PAUSED)


@router.post("/{job_id}:resume", status_code=202, summary="Resume a paused job")
def resume_job(job_id: JobId, services: Injected) -> JobDetail:
    """Go on behind the last committed batch; a job that runs stays as it is."""
    return services.want(job_id, DesiredState.RUNNING, resume=True)
