"""Takes over what runners report, and says so when one reports nothing any more."""

import time

import structlog

from service.config import Settings
from service.jobs.inspect.room import full_disks
from service.jobs.store.job import Job, JobError, JobState, StateUpdate
from service.jobs.store.reports import Status, read_changes, read_status
from service.jobs.store.store import JobStore
from service.jobs.supervise.liveness import unresponsive
from service.jobs.supervise.sampling import JobSampler
from service.jobs.supervise.watch import Watch, answers, mute, own

_MISMATCH_S = 1.5
_NOT_REPORTED = frozenset({JobState.CREATED, JobState.STARTING, JobState.STOPPED})
_log = structlog.get_logger(__name__)


class RunnerReports:
    """Brings the store up to what the runner of a job has reported."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def follow(self, job: Job, watch: Watch) -> Job:
        """Take over what the runner has reported since the last look."""
        job_dir = self._settings.jobs_dir / job.id
        status = own(read_status(job_dir), watch)
        if status is not None:
            watch.sampler = watch.sampler or JobSampler(job_dir)
            watch.sampler.sample(status)
        changes, offset = read_changes(job_dir, job.events_offset)
        if offset != job.events_offset:
            error = None if status is None else status.error
            updates = [_with_error(change, error) for change in changes]
            job = self._store.follow(job.id, updates, offset)
            _log_changes(job, updates)
        return self._reconcile(job, watch, status)

    def _reconcile(self, job: Job, watch: Watch, status: Status | None) -> Job:
        if watch.runner is None or not watch.runner.running() or watch.stop_deadline is not None:
            return job
        if answers(job):
            return job
        silent_s = watch.silence.lasts_s(None if status is None else status.updated_at_ms)
        starting = job.state is JobState.STARTING
        if silent_s > watch.silence.report_after_s(self._settings, starting=starting):
            if full_disks(self._settings):  # nobody can report there, nor note that nobody does
                watch.silence.begin()
                return job
            return self._silent(job, watch, silent_s)
        if status is not None and mute(job) and job.state is status.state:
            self._store.set_reason(job.id, status.reason, status.error)
        target = None if status is None else status.state
        if status is None or target is None or target is job.state or target in _NOT_REPORTED:
            watch.mismatch_since = None
            return job
        since = watch.mismatch_since = watch.mismatch_since or time.monotonic()
        if time.monotonic() - since < _MISMATCH_S:
            return job
        change = StateUpdate(target, status.reason or "reported by the runner", error=status.error)
        return self._store.follow(job.id, [change], job.events_offset)

    def _silent(self, job: Job, watch: Watch, silent_s: float) -> Job:
        """Say that the runner does not speak; kill it when that lasts."""
        runner = watch.runner
        assert runner is not None
        starting = job.state is JobState.STARTING
        limit_s = watch.silence.kill_after_s(self._settings, starting=starting)
        if silent_s > limit_s and not watch.hung:
            watch.hung = True
            watch.silence.hangs += 1
            _log.error("silent runner is killed", job_id=job.id, pid=runner.pid, after_s=limit_s)
        if watch.hung:
            runner.kill()
        if mute(job) or job.state is JobState.FINISHED:
            return job
        error = unresponsive(runner.pid, silent_s, limit_s)
        _log.error("runner is silent", job_id=job.id, pid=runner.pid, silent_s=round(silent_s))
        return self._store.transition(
            job.id, StateUpdate(JobState.STALLED, error.message, error=error)
        )


def _with_error(change: StateUpdate, error: JobError | None) -> StateUpdate:
    if error is None or change.target not in (JobState.STALLED, JobState.FAILED):
        return change
    return StateUpdate(change.target, change.cause, error=error, at_ms=change.at_ms)


def _log_changes(job: Job, changes: list[StateUpdate]) -> None:
    for change in changes:
        _log.info("job changed", job_id=job.id, state=change.target.value, cause=change.cause)
