"""`/v1/jobs`: submit, list, look, remove."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from joins.durable.stored import keep_stored
from service.api.http.access import OPERATOR, VIEWER
from service.api.recent import recent_rates
from service.api.views import job_detail, listed_job, sinks_of
from service.config import Settings
from service.errors import JobNotFoundError
from service.jobs.inspect.inspector import Inspector
from service.jobs.inspect.room import full_disks
from service.jobs.leadership.leadership import ControlPlaneRole, Leadership
from service.jobs.store.job import DesiredState, Job, JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.reports import read_acknowledgements, read_status
from service.jobs.store.requests import RequestBox
from service.jobs.store.rows import JobFilter
from service.jobs.store.store import JobStore
from service.jobs.submit import submission
from service.jobs.submit.catalog_tables import CatalogTables
from service.jobs.submit.submission import Submissions
from service.jobs.supervise.runner_log import tail_before
from service.jobs.supervise.supervisor import Supervisor
from service.schemas.jobs import JobDetail, JobPage, ListedJob, RemovalView, SinkView, Submission

_LOG_BLOCK_BYTES = 256 * 1024
_REMOVAL_WAIT_S = 10.0
_POLL_S = 0.05
_SHOWN_ACKNOWLEDGEMENTS = 20
_MOST_KNOWN = 10_000
_PLANS = 50


class PlannedSinks:
    """The sinks of jobs, kept in memory: a plan never changes, and lists come without plans."""

    def __init__(self) -> None:
        self._known: dict[str, list[SinkView]] = {}

    def of(self, store: JobStore, job_ids: Sequence[str]) -> Mapping[str, list[SinkView]]:
        """Job → its sinks; none of a job that has just gone."""
        known = self._known
        if missing := [job_id for job_id in job_ids if job_id not in known]:
            if len(known) + len(missing) > _MOST_KNOWN:
                known = {}
            self._known = known = {**known, **_read_sinks(store, missing)}
        return {job_id: known.get(job_id, []) for job_id in job_ids}


def _read_sinks(store: JobStore, job_ids: Sequence[str]) -> dict[str, list[SinkView]]:
    """Those of some jobs, of a few at a time: plans may be large."""
    parts = (job_ids[at : at + _PLANS] for at in range(0, len(job_ids), _PLANS))
    plans = (each for part in parts for each in store.plans(part).items())
    return {job_id: sinks_of(plan) for job_id, plan in plans}


@dataclass(frozen=True, slots=True)
class Services:
    """What the handlers work with."""

    settings: Settings
    store: JobStore
    supervisor: Supervisor
    submissions: Submissions
    tables: CatalogTables
    inspector: Inspector = field(default_factory=Inspector)
    leadership: Leadership = field(default_factory=lambda: Leadership(leads=True))
    sinks: PlannedSinks = field(default_factory=PlannedSinks)

    def detail(self, job: Job) -> JobDetail:
        """The job with its runner and the runner's newest report."""
        runner, full = self.supervisor.runner_of(job.id), full_disks(self.settings)
        if not self.has_directories:
            return job_detail(job, None, runner, [], full)
        job_dir = self.layout(job.id).job_dir
        acknowledged = read_acknowledgements(job_dir)[-_SHOWN_ACKNOWLEDGEMENTS:]
        return job_detail(job, read_status(job_dir), runner, acknowledged, full)

    def listed(self, jobs: Sequence[Job], *, recent: bool = False) -> list[ListedJob]:
        """The jobs as a list has them, with their `recent` rates if they are wanted."""
        sinks = self.sinks.of(self.store, [job.id for job in jobs])
        return [self._listed(job, sinks[job.id], recent=recent) for job in jobs]

    def _listed(self, job: Job, sinks: Sequence[SinkView], *, recent: bool) -> ListedJob:
        runner = self.supervisor.runner_of(job.id)
        if not self.has_directories:
            return listed_job(job, None, runner, sinks)
        layout = self.layout(job.id)
        listed = listed_job(job, read_status(layout.job_dir), runner, sinks)
        return listed.model_copy(update={"recent": recent_rates(layout)}) if recent else listed

    @property
    def has_directories(self) -> bool:
        """Whether the directories of jobs are as their runners write them.

        Those of a standby are not, where each machine has its own (ADR-0095).
        """
        return self.store.has_directories or self.leadership.role is ControlPlaneRole.LEADER

    def layout(self, job_id: str) -> JobLayout:
        """The job's directory.

        Raises:
            StandbyError: it is on the machine of the control plane that leads.
        """
        if not self.has_directories:
            self.leadership.require()
        return JobLayout(self.settings.jobs_dir / job_id)

    def requests(self, job_id: str) -> RequestBox:
        """What is asked of the job's runner."""
        layout = self.layout(job_id)
        stored = layout.stored()
        if stored is not None:
            keep_stored(stored)
        return RequestBox(layout.requests)

    def want(self, job_id: str, desired: DesiredState, *, resume: bool = False) -> JobDetail:
        """Note what is wanted and let the supervisor see to it."""
        job = self.store.want(job_id, desired, resume=resume)
        self.supervisor.wake()
        return self.detail(job)


async def _services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


Injected = Annotated[Services, Depends(_services)]
JobId = Annotated[
    str, Path(pattern=r"^[0-9a-f-]{36}$", description="The job's id, a UUID of version 7.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="The same key with the same body is the same job, however often it is sent.",
    ),
]
router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[VIEWER])


@router.post(
    "",
    status_code=201,
    summary="Submit a job",
    dependencies=[OPERATOR],
    responses={201: {"headers": {"Location": {"schema": {"type": "string"}}}}},
)
def submit_job(
    body: Submission, response: Response, services: Injected, idempotency_key: IdempotencyKey = None
) -> JobDetail:
    """Plan the script, check what it names, keep the job durably and start its runner."""
    request = submission.SubmissionRequest(body.sql, body.name, idempotency_key, append=body.append)
    job = services.submissions.submit(request)
    services.supervisor.wake()
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return services.detail(job)


async def _job_filter(
    state: Annotated[list[JobState] | None, Query(max_length=20)] = None,
    desired_state: Annotated[list[DesiredState] | None, Query(max_length=8)] = None,
    name: Annotated[str | None, Query(max_length=100, description="The whole name.")] = None,
    search: Annotated[
        str | None,
        Query(max_length=100, description="Part of the name, or the beginning of the id."),
    ] = None,
) -> JobFilter:
    return JobFilter(tuple(state or ()), tuple(desired_state or ()), name, search)


@router.get("", summary="List jobs")
def list_jobs(
    services: Injected,
    job_filter: Annotated[JobFilter, Depends(_job_filter)],
    cursor: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    recent: Annotated[bool, Query(description="With the last half hour of each job.")] = False,
) -> JobPage:
    """Jobs, the newest first, a page at a time; of a repeated filter any value fits."""
    jobs = services.store.page(job_filter, before=cursor, limit=limit + 1)
    items = services.listed(jobs[:limit], recent=recent)
    return JobPage(items=items, next_cursor=items[-1].id if len(jobs) > limit else None)


@router.get("/{job_id}", summary="Show a job")
def show_job(job_id: JobId, services: Injected) -> JobDetail:
    """Phase, snapshot progress, watermarks, held records, versions, lag, and why it waits."""
    return services.detail(services.store.get(job_id))


@router.delete(
    "/{job_id}",
    status_code=204,
    summary="Remove a job",
    dependencies=[OPERATOR],
    response_model=None,
    responses={
        200: {"model": RemovalView, "description": "The job is gone, some of its output is not."},
        202: {"model": JobDetail, "description": "The removal goes on."},
    },
)
def remove_job(
    job_id: JobId,
    services: Injected,
    output: Annotated[bool, Query(description="Also delete what the job has written.")] = False,
) -> Response:
    """Stop the job and delete its topics, tables, index and checkpoint.

    With `output`, the Delta tables go that the job has created and nobody else has written to.
    """
    try:
        services.store.want(job_id, DesiredState.REMOVED, remove_output=output)
    except JobNotFoundError:
        if not services.supervisor.left(job_id):
            raise
        return _removed(job_id, services)
    services.supervisor.wake()
    deadline = time.monotonic() + _REMOVAL_WAIT_S
    while time.monotonic() < deadline:
        try:
            job = services.store.get(job_id)
        except JobNotFoundError:
            return _removed(job_id, services)
        if job.reason.startswith("removal failed"):
            break
        time.sleep(_POLL_S)
    return JSONResponse(
        services.detail(job).model_dump(mode="json", by_alias=True), status_code=202
    )


def _removed(job_id: str, services: Services) -> Response:
    left = services.supervisor.left(job_id)
    return JSONResponse(RemovalView(left=left).model_dump()) if left else Response(status_code=204)


@router.get("/{job_id}/log", summary="Show the runner's log", response_class=PlainTextResponse)
def show_log(
    job_id: JobId,
    services: Injected,
    offset: Annotated[
        int | None, Query(ge=0, description="First byte; the end if missing.")
    ] = None,
) -> Response:
    """A block of the log; the header `Sluice-Next-Offset` says where the next one starts."""
    services.store.get(job_id)
    text, next_offset = _log_block(services.layout(job_id), offset)
    headers = {"Sluice-Next-Offset": str(next_offset)}
    return PlainTextResponse(text, headers=headers)


def _log_block(layout: JobLayout, offset: int | None) -> tuple[bytes, int]:
    try:
        with layout.runner_log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            first = max(0, size - _LOG_BLOCK_BYTES) if offset is None else offset
            file.seek(0 if first > size else first)
            text = file.read(_LOG_BLOCK_BYTES)
            if offset is None and first == 0:
                text = tail_before(layout.runner_log, _LOG_BLOCK_BYTES - len(text)) + text
            return text, file.tell()
    except FileNotFoundError:
        return b"", 0
