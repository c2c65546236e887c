"""Moves jobs to the state that their runner's reports, silence or end imply.

What follows from the end of a runner (the first row that applies, see `Supervisor._ended`):

    it reported FINISHED              FINISHED, desired STOPPED; the next one only answers requests
    report or exit code say FAILED    FAILED, desired STOPPED
    a request stopped it              STOPPED or PAUSED
    the control plane stopped it      PAUSED; the next control plane starts another one
    the job has a newer plan          PAUSED; the next one starts at once
    it was killed as unresponsive     as after a crash
    it reported STALLED               STALLED; the next one starts after a back-off by `Watch.waits`
    it crashed                        the same by `Job.crashes`; FAILED after `restart_limit`
"""

import time

import structlog

from service.config import Settings
from service.jobs.inspect.facts import full_disks
from service.jobs.store.history import JobSampler
from service.jobs.store.job import ENDED, DesiredState, Job, JobError, JobState, StateUpdate
from service.jobs.store.runner_files import Status, read_changes
from service.jobs.store.store import JobStore
from service.jobs.supervise.background import back_off_s
from service.jobs.supervise.runner_process import RunnerProcess
from service.jobs.supervise.watch import (
    ENDING,
    UNRESPONSIVE,
    RunnerStage,
    Watch,
    is_unresponsive,
    only_serves_requests,
    status_of,
)

_MISMATCH_S = 1.5
_NOT_REPORTED = frozenset({JobState.CREATED, JobState.STARTING, JobState.STOPPED})
_INTERRUPTED = "its control plane has ended; it goes on when one is there again"
SUPERSEDED = "it has a newer plan, under which its runner starts again"
STOPPED_UNSEEN = "its runner was stopped while no control plane was there; it goes on now"
LOG_HINT = "Look at the runner's log, correct the cause and start the job again."
_log = structlog.get_logger(__name__)


class RunnerReports:
    """Stores what the runner of a job has reported, and kills a runner that is silent."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def follow(self, job: Job, watch: Watch) -> Job:
        job_dir = self._settings.jobs_dir / job.id
        status = status_of(watch.runner, job_dir)
        if status is not None:
            watch.sampler = watch.sampler or JobSampler(job_dir)
            watch.sampler.sample(status)
        changes, offset = read_changes(job_dir, job.events_offset)
        if offset != job.events_offset:
            error = None if status is None else status.error
            updates = [_with_error(change, error) for change in changes]
            if watch.state in ENDING or job.desired_state is not DesiredState.RUNNING:
                # What ends in order with the runner, such as its sources, stalls nothing.
                updates = [change for change in updates if change.target is not JobState.STALLED]
            job = self._store.follow(job.id, updates, offset)
            for change in updates:
                _log.info("job changed", job_id=job.id, state=change.target, cause=change.cause)
        return self._reconcile(job, watch, status)

    def _reconcile(self, job: Job, watch: Watch, status: Status | None) -> Job:
        if watch.runner is None or not watch.runner.running():
            return job
        if watch.state in ENDING or only_serves_requests(job):
            return job
        silent_s = watch.silence.lasts_s(None if status is None else status.updated_at_ms)
        starting = job.state is JobState.STARTING
        if silent_s > watch.silence.report_after_s(self._settings, starting=starting):
            if full_disks(self._settings):  # runners cannot report on a full disk
                watch.silence.begin()
                return job
            return self._silent(job, watch, silent_s)
        if status is not None and is_unresponsive(job) and job.state is status.state:
            self._store.set_reason(job.id, status.reason, status.error)
        target = None if status is None else status.state
        if status is None or target is None or target is job.state or target in _NOT_REPORTED:
            watch.mismatch_since = None
            return job
        since = watch.mismatch_since = watch.mismatch_since or time.monotonic()
        if time.monotonic() - since < _MISMATCH_S:  # the event may be on its way
            return job
        change = StateUpdate(target, status.reason or "reported by the runner", error=status.error)
        return self._store.follow(job.id, [change], job.events_offset)

    def _silent(self, job: Job, watch: Watch, silent_s: float) -> Job:
        runner = watch.runner
        assert runner is not None
        starting = job.state is JobState.STARTING
        limit_s = watch.silence.kill_after_s(self._settings, starting=starting)
        if silent_s > limit_s and watch.state is not RunnerStage.HUNG:
            watch.move(RunnerStage.HUNG)
            watch.silence.hangs += 1
            _log.error("silent runner is killed", job_id=job.id, pid=runner.pid, after_s=limit_s)
        if watch.state is RunnerStage.HUNG:
            runner.kill()
        if is_unresponsive(job) or job.state in ENDED:
            return job
        error = JobError(
            UNRESPONSIVE,
            f"runner {runner.pid} lives, but has not reported for {silent_s:.0f} s",
            f"It is killed and started again after {limit_s:g} s; look at its log and at the "
            "machine's memory and disk.",
        )
        _log.error("runner is silent", job_id=job.id, pid=runner.pid, silent_s=round(silent_s))
        return self._store.transition(
            job.id, StateUpdate(JobState.STALLED, error.message, error=error)
        )


def _with_error(change: StateUpdate, error: JobError | None) -> StateUpdate:
    if error is None or change.target not in (JobState.STALLED, JobState.FAILED):
        return change
    return StateUpdate(change.target, change.cause, error=error, at_ms=change.at_ms)


class Outcomes:
    """Moves jobs to the state that the end of their runner implies."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def finished(self, job: Job, cause: str) -> Job:
        _log.info("job finished", job_id=job.id)
        change = StateUpdate(JobState.FINISHED, cause, desired=DesiredState.STOPPED)
        return self._store.transition(job.id, change)

    def waits(self, job: Job, watch: Watch, error: JobError) -> None:
        """No crash: the runner gave up on what may return, or there was no room to start it."""
        watch.waits += 1
        wait_s = back_off_s(self._settings, watch.waits)
        watch.start_after(wait_s)
        if job.state is not JobState.STOPPED:
            self._store.transition(
                job.id, StateUpdate(JobState.STALLED, error.message, error=error)
            )
        _log.warning("job waits", job_id=job.id, error=error.message, retry_in_s=wait_s)

    def stopped(self, job: Job, *, killed: bool, interrupted: bool) -> None:
        """The runner was stopped by request, or `interrupted` with the control plane."""
        limit_s = self._settings.stop_timeout_s
        how = f"; its runner had not ended after {limit_s:g} s and was killed"
        if interrupted and job.desired_state is DesiredState.RUNNING:
            self.pause(job, _INTERRUPTED)
        else:
            self.rest(job, how if killed else "")
        _log.info("runner stopped", job_id=job.id, killed=killed)

    def pause(self, job: Job, cause: str) -> Job:
        """PAUSED until the next runner starts, unless the job has ended."""
        target = job.state if job.state in ENDED else JobState.PAUSED
        return self._store.transition(job.id, StateUpdate(target, cause))

    def rest(self, job: Job, how: str = "") -> None:
        """STOPPED or PAUSED as requested, unless the job has ended."""
        ends = job.desired_state in (DesiredState.STOPPED, DesiredState.REMOVED)
        target = JobState.STOPPED if ends else JobState.PAUSED
        if job.state not in ENDED | {target}:
            of = f" of {job.desired_by}" if job.desired_by else ""
            cause = f"{target.lower()} by request{of}{how}"
            self._store.transition(job.id, StateUpdate(target, cause))

    def crashed(self, job: Job, watch: Watch, ending: str, error: JobError | None) -> None:
        """Restart after a back-off, or fail the job after too many crashes."""
        crashes = job.crashes + 1
        self._store.count(job.id, crashes=crashes, restarts=job.restarts)
        if crashes > self._settings.restart_limit:
            text = f"runner crashed {crashes} times in a row, last with {ending}"
            self.failed(job, error or JobError("runner-crashed", text, LOG_HINT))
            return
        wait_s = back_off_s(self._settings, crashes)
        watch.start_after(wait_s)
        cause = f"runner ended ({ending}); crash {crashes}, starting again in {wait_s:g} s"
        reported = error or JobError("runner-crashed", cause, "Look at the runner's log.")
        if job.state not in ENDED:
            self._store.transition(job.id, StateUpdate(JobState.STALLED, cause, error=reported))
        _log.error("runner crashed", job_id=job.id, ending=ending, crashes=crashes)

    def failed(self, job: Job, error: JobError) -> Job:
        change = StateUpdate(JobState.FAILED, error.message, error=error)
        _log.error("job failed", job_id=job.id, error=error.message, hint=error.hint)
        return self._store.transition(job.id, change)


def ending_of(runner: RunnerProcess) -> str:
    code = runner.exit_code
    if code is None:
        return "adopted process is gone"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def cannot_start(exc: OSError) -> JobError:
    return JobError(
        "runner-not-started",
        f"runner cannot be started: {exc}",
        "It is tried again by itself; check the job's directory, and the machine's room on disk, "
        "memory and limit of processes.",
    )


def failed_silently(runner: RunnerProcess) -> JobError:
    return JobError("runner-failed", f"runner {runner.pid} failed and gave no error", LOG_HINT)
