"""A control plane's parts without its server: a real store with a job in each state of interest."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from service.api.services import Services
from service.jobs.inspect.inspector import Inspector
from service.jobs.store.job import (
    DesiredState,
    Job,
    JobError,
    JobState,
    NewJob,
    StateUpdate,
    new_job_id,
)
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import CatalogTables, SubmissionRequest, Submissions
from service.jobs.supervise.supervisor import Supervisor
from tests.support.control_plane import HOOKS, INSPECT, script, settings_in
from tests.support.page_plane import remember
from tests.support.runner_program import Program

JOB = Job(
    id="01234567-89ab-7def-8123-456789abcdef",
    name="one",
    state=JobState.JOINING,
    desired_state=DesiredState.RUNNING,
    plan=b"{}",
    sql="",
    warnings=(),
    reason="",
    error=None,
    crashes=0,
    restarts=0,
    events_offset=0,
    remove_output=False,
    created_at_ms=0,
    updated_at_ms=0,
)
# A process that takes SIGTERM as a runner does and never reports.
QUIET_RUNNER = ("/bin/sh", "-c", "exec sleep 600", "runner")
STEPS = {
    "fresh": (),
    "copying": (JobState.STARTING, JobState.SNAPSHOT),
    "open": (JobState.STARTING, JobState.SNAPSHOT, JobState.JOINING),
    "paused": (JobState.STARTING, JobState.JOINING, JobState.PAUSED),
    "stalled": (JobState.STARTING, JobState.STALLED),
    "failed": (JobState.STARTING, JobState.FAILED),
    "finished": (JobState.STARTING, JobState.JOINING, JobState.FINISHED),
}
ERROR = JobError("source-unavailable", "database does not answer", "Start the database.")
_DESIRED = {"paused": DesiredState.PAUSED, "failed": DesiredState.STOPPED}


@contextmanager
def stored_services(data_dir: Path, *, supervised: bool = False) -> Iterator[Services]:
    """The parts, with no job yet; `supervised` if stored jobs get runners."""
    settings = settings_in(data_dir, requests_per_s=1_000_000)
    store = JobStore.open(settings.store_url)
    supervisor = Supervisor(store, settings, HOOKS.remove, runner_command=QUIET_RUNNER)
    submissions = Submissions(store, settings, HOOKS)
    tables = CatalogTables(store, settings, submissions)
    inspector = Inspector(INSPECT, settings)
    services = Services(settings, store, supervisor, submissions, tables, inspector)
    if supervised:
        supervisor.start()
    try:
        yield services
    finally:
        for job in store.all_jobs() if supervised else ():
            store.want(job.id, DesiredState.REMOVED)
        supervisor.wake()
        supervisor.close()
        for job in store.all_jobs():
            watch = supervisor._watches.get(job.id)
            if watch is not None and watch.runner is not None:
                watch.runner.kill()
        store.close()


def store_job(services: Services, name: str) -> str:
    """Keep a job that has gone the way of `STEPS[name]`, with the report of a runner; its id."""
    job = services.submissions.submit(SubmissionRequest(script(), name))
    steps = STEPS[name]
    for state in steps:
        failed = state in (JobState.STALLED, JobState.FAILED)
        desired = _DESIRED.get(name) if state is steps[-1] else None
        change = StateUpdate(
            state, f"now {state}", error=ERROR if failed else None, desired=desired
        )
        services.store.transition(job.id, change)
    if steps:
        write_report(services.layout(job.id), steps[-1])
    return job.id


def write_report(layout: JobLayout, state: JobState) -> None:
    """Leave the status that a runner in `state` has written."""
    program = Program(layout)
    program.state = state.value
    joining = state in (JobState.JOINING, JobState.PAUSED, JobState.FINISHED)
    content = program.status(1_700_000_000_000, f"now {state}", joining, None)
    layout.status.write_text(json.dumps({"format_version": 1, **content}))


def store_copies(
    services: Services, count: int, numbers: Mapping[str, Callable[[float], float]]
) -> list[str]:
    """The ids of so many jobs, each with a day of history in which a series is what is given."""
    first = services.submissions.submit(SubmissionRequest(script(), "job 0"))
    home = services.layout(first.id).job_dir
    remember(home, **numbers)
    plan = services.store.get(first.id).plan
    new = NewJob(first.id, first.name, plan, script(), (), None, "")
    ids = [first.id]
    for number in range(1, count):
        one = replace(new, id=new_job_id(), name=f"job {number}")
        services.store.add(one)
        shutil.copytree(home, services.layout(one.id).job_dir)
        ids.append(one.id)
    return ids


def rest(services: Services, ids: Iterable[str]) -> None:
    for job_id in ids:
        stopped = StateUpdate(JobState.STOPPED, "stopped", desired=DesiredState.STOPPED)
        services.store.transition(job_id, stopped)
