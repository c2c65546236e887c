"""What the store says of a job whose runner has ended, or cannot be started."""

import structlog

from service.config import Settings
from service.jobs.store.job import ENDED, DesiredState, Job, JobError, JobState, StateUpdate
from service.jobs.store.reports import Status
from service.jobs.store.store import JobStore
from service.jobs.supervise.attempts import back_off_s
from service.jobs.supervise.runner_process import RunnerProcess
from service.jobs.supervise.watch import Watch

_INTERRUPTED = "its control plane has ended; it goes on when one is there again"
_STOPPED_UNSEEN = "its runner was stopped while no control plane was there; it goes on now"
LOG_HINT = "Look at the runner's log, correct the cause and start the job again."
_log = structlog.get_logger(__name__)


class Outcomes:
    """Moves jobs to the state that the end of their runner means."""

    def __init__(self, store: JobStore, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def finished(self, job: Job, status: Status) -> Job:
        _log.info("job finished", job_id=job.id)
        return self.settle(job, status.reason)

    def settle(self, job: Job, cause: str) -> Job:
        change = StateUpdate(JobState.FINISHED, cause, desired=DesiredState.STOPPED)
        return self._store.transition(job.id, change)

    def waits(self, job: Job, watch: Watch, error: JobError) -> None:
        """The runner gave up on something outside that may come back: that is no crash."""
        watch.waits += 1
        wait_s = back_off_s(self._settings, watch.waits)
        watch.start_after(wait_s)
        if job.state is not JobState.STOPPED:
            self._store.transition(
                job.id, StateUpdate(JobState.STALLED, error.message, error=error)
            )
        _log.warning("job waits", job_id=job.id, error=error.message, retry_in_s=wait_s)

    def stopped(self, job: Job, watch: Watch, *, interrupted: bool) -> None:
        """Its runner was ended: as somebody wants it, or `interrupted` with the control plane."""
        limit_s = self._settings.stop_timeout_s
        how = f"; its runner had not ended after {limit_s:g} s and was killed"
        if interrupted and job.desired_state is DesiredState.RUNNING:
            self._pause(job, _INTERRUPTED)
        else:
            self.rest(job, how if watch.killed else "")
        watch.stop_deadline = None
        _log.info("runner stopped", job_id=job.id, killed=watch.killed)

    def stopped_unseen(self, job: Job) -> Job:
        return self._pause(job, _STOPPED_UNSEEN)

    def _pause(self, job: Job, cause: str) -> Job:
        target = job.state if job.state in ENDED else JobState.PAUSED
        return self._store.transition(job.id, StateUpdate(target, cause))

    def rest(self, job: Job, how: str = "") -> None:
        """The job has no runner: STOPPED, or PAUSED where it is to go on, perhaps at once."""
        ends = job.desired_state in (DesiredState.STOPPED, DesiredState.REMOVED)
        target = JobState.STOPPED if ends else JobState.PAUSED
        if job.state not in ENDED | {target}:
            cause = f"{target.lower()} by request{how}"
            self._store.transition(job.id, StateUpdate(target, cause))

    def crashed(self, job: Job, watch: Watch, ending: str, error: JobError | None) -> None:
        """Its runner has ended as none should: another one follows, or too many have."""
        crashes = job.crashes + 1
        self._store.count(job.id, crashes=crashes, restarts=job.restarts)
        if crashes > self._settings.restart_limit:
            self.fail(job, error or _too_many(crashes, ending))
            return
        wait_s = back_off_s(self._settings, crashes)
        watch.start_after(wait_s)
        cause = f"runner ended ({ending}); crash {crashes}, starting again in {wait_s:g} s"
        reported = error or JobError("runner-crashed", cause, "Look at the runner's log.")
        if job.state not in ENDED:
            self._store.transition(job.id, StateUpdate(JobState.STALLED, cause, error=reported))
        _log.error("runner crashed", job_id=job.id, ending=ending, crashes=crashes)

    def fail(self, job: Job, error: JobError) -> Job:
        change = StateUpdate(
            JobState.FAILED, error.message, error=error, desired=DesiredState.STOPPED
        )
        _log.error("job failed", job_id=job.id, error=error.message, hint=error.hint)
        return self._store.transition(job.id, change)


def ending_of(runner: RunnerProcess) -> str:
    """How a runner has ended, in a few words."""
    code = runner.exit_code
    if code is None:
        return "adopted process is gone"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def cannot_start(exc: OSError) -> JobError:
    return JobError(
        "runner-not-started",
        f"runner cannot be started: {exc}",
        "Check the job's directory and free space, then start the job again.",
    )


def failed_silently(runner: RunnerProcess) -> JobError:
    return JobError(
        "runner-failed",
        f"runner {runner.pid} failed and gave no error",
        LOG_HINT,
    )


def _too_many(crashes: int, ending: str) -> JobError:
    return JobError(
        "runner-crashed",
        f"runner crashed {crashes} times in a row, last with {ending}",
        LOG_HINT,
    )
