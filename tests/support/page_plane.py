"""A control plane for the page's tests, whose runners say what a test tells them."""

import math
import socket
import time

from service.jobs.store.history import COARSE, FINE, SERIES, write_point
from service.jobs.store.job import DesiredState, JobState, StateUpdate
from service.jobs.store.layout import JobLayout
from tests.support.control_plane import (
    HOOKS,
    INSPECT,
    ControlPlane,
    script,
    settings_in,
    stop_jobs,
)
from tests.support.documents import Documents
from tests.support.told_runner import COMMAND, tell
from tests.support.wait import wait_until


class Plane:
    """A control plane that can go away and come back at the same address; its runners live on."""

    def __init__(self, data_dir):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.settings = settings_in(data_dir, port=port)
        self.url = f"http://127.0.0.1:{port}"
        self.plane = None
        self.gone = []  # supervisors that have started runners which live on
        self.client = Documents(self.url)

    def start(self):
        self.plane = ControlPlane(
            self.settings, hooks=HOOKS, runner_command=COMMAND, inspect_command=INSPECT
        ).__enter__()

    def stop(self):
        self.gone.append(self.plane.services.supervisor)
        self.plane.close()

    def end(self):
        jobs = self.plane.services.store.all_jobs()
        stop_jobs(self.plane, timeout_s=30)
        self.stop()
        for supervisor in self.gone:
            for job in jobs:
                supervisor.runner_of(job.id)  # reaps the process
        self.client.close()

    def tell(self, job_id, **report):
        tell(JobLayout(self.settings.jobs_dir / job_id).job_dir, **report)

    def submit(self, sql, name=None):
        return self.client.submit(sql, name)["id"]

    def at_rest(self, name, state, error=None):
        """A job that has ended, as the supervisor would have noted it."""
        job_id = self.submit(script(), name)
        store = self.plane.services.store
        store.want(job_id, DesiredState.STOPPED)
        wait_until(lambda: store.get(job_id).state is JobState.STOPPED, deadline_s=60)
        if state is JobState.FAILED:
            starts = StateUpdate(JobState.STARTING, "started again after STOPPED")
            fails = StateUpdate(state, error.message, error=error)
            # In one step: a supervisor that met it STARTING would note it as STOPPED again.
            store.follow(job_id, (starts, fails), store.get(job_id).events_offset)
        return job_id


def job_url(plane, job_id):
    return f"{plane.url}/#/jobs/{job_id}"


def remember(job_dir, **numbers):
    """Give a job a day of history: of each series a number, or a function of its age in s."""
    now_ms = time.time_ns() // 1_000_000
    for ring in (FINE, COARSE):
        for slot in range(ring.slot(now_ms) - ring.points + 1, ring.slot(now_ms)):
            age_s = now_ms / 1000 - slot * ring.step_s
            known = {n: v(age_s) if callable(v) else v for n, v in numbers.items()}
            write_point(
                JobLayout(job_dir).history, ring, slot, [known.get(n, math.nan) for n in SERIES]
            )
