"""The services that the handlers of the REST API use, and their shared parameters."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Header, Path, Request

from joins.durable.stored import keep_stored
from service.api.http.access import Caller
from service.api.views import PlannedEnds, ends_of, job_detail, listed_job, with_verifications
from service.config import Settings
from service.jobs.inspect.facts import full_disks
from service.jobs.inspect.inspector import Inspector
from service.jobs.leadership import ControlPlaneRole, Leadership
from service.jobs.store.history import COARSE, read_points
from service.jobs.store.job import DesiredState, Job
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import (
    RequestBox,
    read_acknowledgements,
    read_status,
    read_verifications,
)
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import CatalogTables, Submissions
from service.jobs.supervise.supervisor import Supervisor
from service.jobs.update.updates import Updates
from service.schemas.inspection import JobOrder
from service.schemas.jobs import JobDetail, ListedJob

_SHOWN_ACKNOWLEDGEMENTS = 20
_MOST_KNOWN = 10_000
_MINUTES = 30
_RATE = "records_per_s"


class KnownEnds:
    """Caches what jobs read and write, until they change: lists are read without plans."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, PlannedEnds]] = {}

    def of(self, store: JobStore, jobs: Sequence[Job]) -> Mapping[str, PlannedEnds]:
        """By job id; empty for a removed job."""
        known, nothing = self._known, (-1, PlannedEnds())
        changed_at = {job.id: job.updated_at_ms for job in jobs}
        missing = [i for i, at_ms in changed_at.items() if known.get(i, nothing)[0] != at_ms]
        if missing:
            if len(known) + len(missing) > _MOST_KNOWN:
                known, missing = {}, list(changed_at)
            plans = store.look(lambda stored: dict(stored.plans(missing)))
            ends = {i: (changed_at[i], ends_of(plan)) for i, plan in plans.items()}
            self._known = known = {**known, **ends}
        return {job_id: known.get(job_id, nothing)[1] for job_id in changed_at}


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the handlers use; one for each control plane."""

    settings: Settings
    store: JobStore
    supervisor: Supervisor
    submissions: Submissions
    tables: CatalogTables
    inspector: Inspector = field(default_factory=Inspector)
    leadership: Leadership = field(default_factory=lambda: Leadership(leads=True))
    ends: KnownEnds = field(default_factory=KnownEnds)

    def detail(self, job: Job) -> JobDetail:
        runner, full = self.supervisor.runner_of(job.id), full_disks(self.settings)
        if not self.has_directories:
            return job_detail(job, None, runner, [], full)
        job_dir = self.layout(job.id).job_dir
        acknowledged = read_acknowledgements(job_dir)[-_SHOWN_ACKNOWLEDGEMENTS:]
        detail = job_detail(job, read_status(job_dir), runner, acknowledged, full)
        return with_verifications(detail, read_verifications(job_dir))

    def listed(self, jobs: Sequence[Job], *, recent: bool = False) -> list[ListedJob]:
        """The jobs as list entries, optionally with their `recent` rates."""
        ends = self.ends.of(self.store, jobs)
        return [self._listed(job, ends[job.id], recent=recent) for job in jobs]

    def _listed(self, job: Job, ends: PlannedEnds, *, recent: bool) -> ListedJob:
        runner = self.supervisor.runner_of(job.id)
        if not self.has_directories:
            return listed_job(job, None, runner, ends)
        layout = self.layout(job.id)
        listed = listed_job(job, read_status(layout.job_dir), runner, ends)
        return listed.model_copy(update={"recent": recent_rates(layout)}) if recent else listed

    @property
    def updates(self) -> Updates:
        return Updates(self.store, self.settings, self.submissions)

    @property
    def has_directories(self) -> bool:
        """False on a standby whose machine does not share the job directories (ADR-0095)."""
        return self.store.has_directories or self.leadership.role is ControlPlaneRole.LEADER

    def layout(self, job_id: str) -> JobLayout:
        """The job's directory; raises StandbyError if only the leader's machine has it."""
        if not self.has_directories:
            self.leadership.require()
        return JobLayout(self.settings.jobs_dir / job_id)

    def requests(self, job_id: str) -> RequestBox:
        layout = self.layout(job_id)
        stored = layout.stored()
        if stored is not None:
            keep_stored(stored)
        return RequestBox(layout.requests)

    def want(
        self,
        job_id: str,
        desired: DesiredState,
        *,
        by: str | None = None,
        resume: bool = False,
    ) -> JobDetail:
        job = self.store.want(job_id, desired, by=by, resume=resume)
        self.supervisor.wake()
        return self.detail(job)


def recent_rates(layout: JobLayout) -> list[float | None]:
    """Records a second in each of the last 30 minutes, oldest first; None where unknown."""
    end = COARSE.slot(time.time_ns() // 1_000_000)
    first = end - _MINUTES
    points = read_points(layout.history, COARSE, first, end - 1)
    rates = {COARSE.slot(point.at_ms): point.number(_RATE) for point in points}
    return [rates.get(slot) for slot in range(first, end)]


async def _services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


async def _asked_by(request: Request, body: JobOrder | None = None) -> str | None:
    """The name of the token; without tokens, what the request says."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    said = None if body is None else body.by or None
    return said if caller.token_id is None else caller.name


Injected = Annotated[Services, Depends(_services)]
AskedBy = Annotated[str | None, Depends(_asked_by)]
JobId = Annotated[
    str, Path(pattern=r"^[0-9a-f-]{36}$", description="The job's id, a UUID of version 7.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Repeating a request with the same key and body has no further effect.",
    ),
]
