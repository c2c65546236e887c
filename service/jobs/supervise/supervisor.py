"""Keeps one runner process per wanted job, follows its reports, and carries out stop and removal.

One thread looks at every job about twice a second and makes the world agree with what the store
says is wanted. All it must remember is in the store and in the jobs' directories: a control plane
that was killed goes on where it was, and runners that live are adopted.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psutil
import structlog

from joins.durable.requests import Requests
from service.config import Settings
from service.jobs.store.job import ENDED, RESTING, DesiredState, Job, JobError, JobState
from service.jobs.store.layout import JobLayout, living_runner, noted_pid, processes_on_jobs
from service.jobs.store.reports import Status, read_changes, read_status
from service.jobs.store.store import JobStore, StateUpdate
from service.jobs.supervise.hooks import Remover
from service.jobs.supervise.liveness import UNRESPONSIVE, Silence, unresponsive
from service.jobs.supervise.removal import Removals, back_off_s
from service.jobs.supervise.runner_process import (
    EXIT_FAILED,
    EXIT_LOCKED,
    RUNNER_COMMAND,
    RunnerProcess,
)

POLL_S = 0.4
_HEALTHY_S = 60.0
_MISMATCH_S = 1.5
_START_SLOT_S = 60.0
_TURN = "; it waits for its turn to start"
_INTERRUPTED = "its control plane has ended; it goes on when one is there again"
_LOG_HINT = "Look at the runner's log, correct the cause and start the job again."
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Watch:
    """What the supervisor knows of one job beyond the store; none of it must survive."""

    runner: RunnerProcess | None = None
    start_at: float = 0.0
    start_at_ms: int | None = None
    stop_deadline: float | None = None
    killed: bool = False
    waits: int = 0
    mismatch_since: float | None = None
    silence: Silence = field(default_factory=Silence)
    hung: bool = False
    starting_since: float | None = None
    is_asked: bool = True

    def holds_slot(self, now: float) -> bool:
        """Whether its runner counts as one that starts; one that hangs then does not for long."""
        return self.starting_since is not None and now - self.starting_since < _START_SLOT_S

    def start_after(self, wait_s: float) -> None:
        """Start the next runner in `wait_s`."""
        self.start_at = time.monotonic() + wait_s
        self.start_at_ms = time.time_ns() // 1_000_000 + int(wait_s * 1000)


@dataclass(frozen=True, slots=True)
class RunnerView:
    """A job's runner as operators see it.

    Attributes:
        restart_at_ms: when a runner that ended is started again; None if one lives or none is due.
    """

    pid: int | None
    alive: bool
    adopted: bool
    started_at_ms: int | None
    restart_at_ms: int | None = None


class Supervisor:
    """Owner of the runner processes; `close` leaves them running."""

    def __init__(
        self,
        store: JobStore,
        settings: Settings,
        remove: Remover,
        *,
        runner_command: Sequence[str] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._command = tuple(runner_command or RUNNER_COMMAND)
        self._watches: dict[str, _Watch] = {}
        self._due: list[Job] = []
        self._processes: dict[str, psutil.Process] | None = None
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._ending = threading.Event()
        self._all_ended = threading.Event()
        self._has_looked = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="supervisor", daemon=True)
        self._removals = Removals(store, settings, remove)

    def start(self) -> None:
        """Clear up after a control plane that was killed and begin to look after the jobs."""
        self._discard_unfinished_submissions()
        self._thread.start()

    def close(self) -> None:
        """Stop looking after jobs; their runners go on."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._removals.close()

    def end_runners(self, *, timeout_s: float) -> bool:
        """End all runners and start none; what is wanted stays, for the next control plane.

        Returns:
            True if all have ended in time.
        """
        self._ending.set()
        self._wake.set()
        return self._all_ended.wait(timeout_s)

    def ask(self, job_id: str) -> None:
        """A request waits for a finished job: a runner is started to answer it."""
        watch = self._watches.get(job_id)
        if watch is not None:
            watch.is_asked = True
        self._wake.set()

    @property
    def ready(self) -> bool:
        """Whether it has seen each job once: what its runners do is known from then on."""
        return self._has_looked.is_set()

    @property
    def alive(self) -> bool:
        """Whether jobs are being looked after."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Look at the jobs now: what is wanted has changed."""
        self._wake.set()

    def left(self, job_id: str) -> tuple[str, ...]:
        """What of the outputs of a job that was removed is left and why."""
        return self._removals.left(job_id)

    def runner_of(self, job_id: str) -> RunnerView:
        """The runner of a job, dead or alive."""
        watch = self._watches.get(job_id)
        runner = None if watch is None else watch.runner
        if runner is None:
            restart_at_ms = None if watch is None else watch.start_at_ms
            return RunnerView(None, False, False, None, restart_at_ms)
        return RunnerView(
            pid=runner.pid,
            alive=runner.running(),
            adopted=runner.adopted,
            started_at_ms=int(runner.started_at_s * 1000),
        )

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            ending = self._ending.is_set()
            try:
                self._look_at_all()
                self._has_looked.set()
                if ending and all(watch.runner is None for watch in self._watches.values()):
                    self._all_ended.set()
                self._store.tidy()
            except Exception:  # a fault here must not end the care for all jobs
                _log.exception("jobs cannot be looked at")
            self._wake.wait(POLL_S)

    def _look_at_all(self) -> None:
        jobs = self._store.all_jobs()
        self._processes = None
        for gone in self._watches.keys() - {job.id for job in jobs}:
            del self._watches[gone]
            self._removals.forget(gone)
        for job in jobs:
            self._carefully(self._look_at, job)
        self._start_due()

    def _carefully(self, action: Callable[[Job], None], job: Job) -> None:
        if self._closing.is_set():
            return
        try:
            action(job)
        except Exception:  # a fault of one job must not end the care for the others
            _log.exception("job cannot be looked at", job_id=job.id)

    def _start_due(self) -> None:
        """Start the runners that are due, those first that have waited longest, few at once."""
        due, self._due = sorted(self._due, key=lambda job: self._watches[job.id].start_at), []
        now = time.monotonic()
        starting = sum(watch.holds_slot(now) for watch in self._watches.values())
        free = max(0, self._settings.start_limit - starting)
        for job in due[:free]:
            self._carefully(self._start, job)
        for job in due[free:]:
            self._carefully(self._queue, job)

    def _queue(self, job: Job) -> None:
        if not _answers(job) and not job.reason.endswith(_TURN):
            self._store.set_reason(job.id, job.reason.rstrip(".") + _TURN, job.error)

    def _look_at(self, job: Job) -> None:
        watch = self._watches.get(job.id)
        if watch is None:
            never_started = job.state is JobState.CREATED
            watch = _Watch(runner=None if never_started else self._adopt(job))
            self._watches[job.id] = watch
            if watch.runner is None and job.state not in _AT_REST:
                job = self._ended_unseen(job, watch)
        if watch.runner is None:
            self._without_runner(job, watch)
        elif watch.runner.running():
            self._with_runner(self._follow(job, watch), watch)
        else:
            self._ended(self._follow(job, watch), watch, watch.runner)

    def _layout(self, job: Job) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job.id)

    def _adopt(self, job: Job) -> RunnerProcess | None:
        if self._processes is None:  # once a look at all jobs: there may be hundreds
            self._processes = processes_on_jobs()
        process = living_runner(self._layout(job).job_dir, self._processes)
        if process is None:
            return None
        _log.info("runner adopted", job_id=job.id, pid=process.pid)
        return RunnerProcess.adopt(process)

    def _ended_unseen(self, job: Job, watch: _Watch) -> Job:
        """Take over the end of a runner that came while no control plane was there."""
        layout = self._layout(job)
        job = self._follow(job, watch)
        status = read_status(layout.job_dir)
        last = status is not None and status.pid == noted_pid(layout.job_dir)
        if status is not None and last and status.state is JobState.FAILED:
            return self._fail(job, status.error or JobError("job-failed", status.reason, _LOG_HINT))
        if status is not None and last and status.state is JobState.FINISHED:
            return self._finished(job, status)
        if job.state is JobState.STALLED or job.desired_state is not DesiredState.RUNNING:
            return job
        cause = "runner was gone when the control plane started"
        return self._store.transition(job.id, StateUpdate(JobState.STALLED, cause))

    def _without_runner(self, job: Job, watch: _Watch) -> None:
        if job.desired_state is DesiredState.REMOVED:
            self._removals.carry_out(job)
        elif job.state is JobState.FINISHED and job.desired_state is DesiredState.RUNNING:
            self._settle(job, job.reason)  # its runner has ended while nobody was there
        elif job.state is JobState.FINISHED and watch.is_asked and not self._ending.is_set():
            watch.is_asked = False  # before the look: who asks meanwhile sets it again
            if Requests(self._layout(job).requests, {}).open():
                watch.is_asked = True
                if time.monotonic() >= watch.start_at:
                    self._due.append(job)
        elif job.desired_state is not DesiredState.RUNNING or job.state is JobState.FINISHED:
            watch.start_at, watch.start_at_ms = 0.0, None
            self._rest(job)
        elif time.monotonic() >= watch.start_at and not self._ending.is_set():
            self._due.append(job)

    def _start(self, job: Job) -> None:
        if job.state is JobState.FINISHED:
            self._start_answering(job)
            return
        watch = self._watches[job.id]
        first = job.state is JobState.CREATED
        why = f": {job.reason.removesuffix(_TURN)}" if job.state is JobState.STALLED else ""
        cause = "submitted" if first else f"started again after {job.state}{why}"
        reason = "The runner is starting."
        if job.state is not JobState.STARTING:
            job = self._store.transition(job.id, StateUpdate(JobState.STARTING, cause, reason))
        try:
            self._settings.hand_over(self._layout(job).job_dir)
            watch.runner = RunnerProcess.start(self._command, self._layout(job).job_dir)
        except OSError as exc:
            self._fail(job, _cannot_start(exc))
            return
        watch.stop_deadline, watch.killed, watch.mismatch_since = None, False, None
        watch.hung, watch.start_at_ms = False, None
        watch.silence.begin()
        watch.starting_since = time.monotonic()
        if not first:
            self._store.count(job.id, crashes=job.crashes, restarts=job.restarts + 1)
        _log.info("runner started", job_id=job.id, pid=watch.runner.pid)

    def _start_answering(self, job: Job) -> None:
        """Start a runner that answers what a finished job was asked, and ends."""
        watch, job_dir = self._watches[job.id], self._layout(job).job_dir
        try:
            self._settings.hand_over(job_dir)
            watch.runner = RunnerProcess.start(self._command, job_dir)
        except OSError as exc:
            _log.error("runner cannot be started to answer", job_id=job.id, error=str(exc))
            self._answered(watch, well=False)
            return
        watch.stop_deadline, watch.killed = None, False
        watch.starting_since = time.monotonic()
        _log.info("runner started to answer requests", job_id=job.id, pid=watch.runner.pid)

    def _with_runner(self, job: Job, watch: _Watch) -> None:
        if watch.runner is None:
            return
        if job.state is not JobState.STARTING and not _answers(job):
            watch.starting_since = None
        unwanted = job.desired_state is not DesiredState.RUNNING and not _answers(job)
        unwanted |= self._ending.is_set()
        if unwanted or watch.stop_deadline is not None:
            self._stop(job, watch, watch.runner)
        elif (job.crashes or watch.waits) and _healthy(job, watch.runner):
            watch.waits, watch.silence.hangs = 0, 0
            self._store.count(job.id, crashes=0, restarts=job.restarts)

    def _stop(self, job: Job, watch: _Watch, runner: RunnerProcess) -> None:
        now = time.monotonic()
        if watch.stop_deadline is None:
            watch.stop_deadline = now + self._settings.stop_timeout_s
            runner.terminate()
            _log.info("runner asked to stop", job_id=job.id, pid=runner.pid)
        elif now > watch.stop_deadline:
            watch.killed = True
            runner.kill()

    def _follow(self, job: Job, watch: _Watch) -> Job:
        """Take over what the runner has reported since the last look."""
        job_dir = self._layout(job).job_dir
        status = _own(read_status(job_dir), watch)
        changes, offset = read_changes(job_dir, job.events_offset)
        if offset != job.events_offset:
            error = None if status is None else status.error
            told = [_with_error(change, error) for change in changes]
            job = self._store.follow(job.id, told, offset)
            _log_changes(job, told)
        return self._reconcile(job, watch, status)

    def _reconcile(self, job: Job, watch: _Watch, status: Status | None) -> Job:
        if watch.runner is None or not watch.runner.running() or watch.stop_deadline is not None:
            return job
        if _answers(job):
            return job
        silent_s = watch.silence.lasts_s(None if status is None else status.updated_at_ms)
        starting = job.state is JobState.STARTING
        if silent_s > watch.silence.report_after_s(self._settings, starting=starting):
            return self._silent(job, watch, silent_s)
        if status is not None and _mute(job) and job.state is status.state:
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

    def _silent(self, job: Job, watch: _Watch, silent_s: float) -> Job:
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
        if _mute(job) or job.state is JobState.FINISHED:
            return job
        error = unresponsive(runner.pid, silent_s, limit_s)
        _log.error("runner is silent", job_id=job.id, pid=runner.pid, silent_s=round(silent_s))
        return self._store.transition(
            job.id, StateUpdate(JobState.STALLED, error.message, error=error)
        )

    def _ended(self, job: Job, watch: _Watch, runner: RunnerProcess) -> None:
        watch.runner, watch.starting_since = None, None
        if _answers(job):
            self._answered(watch, well=runner.exit_code == 0)
            return
        status = _own(read_status(self._layout(job).job_dir), _Watch(runner=runner))
        error = None if status is None else status.error
        failed = runner.exit_code == EXIT_FAILED or (
            runner.exit_code is None and status is not None and status.state is JobState.FAILED
        )
        if status is not None and status.state is JobState.FINISHED:
            self._finished(job, status)
        elif failed:
            self._fail(job, error or _failed_silently(runner))
        elif job.desired_state is not DesiredState.RUNNING or watch.stop_deadline is not None:
            self._stopped(job, watch)
        elif runner.exit_code == EXIT_LOCKED:
            self._locked(job, watch)
        elif watch.hung:
            self._crashed(job, watch, "killed, because it did not report any more", None)
        elif error is not None and status is not None and status.state is JobState.STALLED:
            self._waits(job, watch, error)
        else:
            self._crashed(job, watch, _ending(runner), error)

    def _answered(self, watch: _Watch, *, well: bool) -> None:
        """What is left is asked again, later where the runner did not start or end as it should."""
        watch.waits = 0 if well else watch.waits + 1
        watch.start_at = time.monotonic()
        if watch.waits:
            watch.start_at += back_off_s(self._settings, watch.waits)

    def _finished(self, job: Job, status: Status) -> Job:
        _log.info("job finished", job_id=job.id)
        return self._settle(job, status.reason)

    def _settle(self, job: Job, cause: str) -> Job:
        change = StateUpdate(JobState.FINISHED, cause, desired=DesiredState.STOPPED)
        return self._store.transition(job.id, change)

    def _waits(self, job: Job, watch: _Watch, error: JobError) -> None:
        """The runner gave up on something outside that may come back: that is no crash."""
        watch.waits += 1
        wait_s = back_off_s(self._settings, watch.waits)
        watch.start_after(wait_s)
        if job.state is not JobState.STOPPED:
            self._store.transition(
                job.id, StateUpdate(JobState.STALLED, error.message, error=error)
            )
        _log.warning("job waits", job_id=job.id, error=error.message, retry_in_s=wait_s)

    def _stopped(self, job: Job, watch: _Watch) -> None:
        limit_s = self._settings.stop_timeout_s
        cause = f"killed after {limit_s:g} s" if watch.killed else None
        if self._ending.is_set() and job.desired_state is DesiredState.RUNNING:
            self._store.transition(job.id, StateUpdate(JobState.STALLED, _INTERRUPTED))
        else:
            self._rest(job, cause)
        watch.stop_deadline = None
        _log.info("runner stopped", job_id=job.id, killed=watch.killed)
        self.wake()

    def _rest(self, job: Job, cause: str | None = None) -> None:
        """The job has no runner: STOPPED, or PAUSED where it is to go on, perhaps at once."""
        ends = job.desired_state in (DesiredState.STOPPED, DesiredState.REMOVED)
        target = JobState.STOPPED if ends else JobState.PAUSED
        if job.state not in ENDED | {target}:
            cause = cause or f"{target.lower()} by request"
            self._store.transition(job.id, StateUpdate(target, cause))

    def _locked(self, job: Job, watch: _Watch) -> None:
        """Somebody else holds the checkpoint: a runner that we did not know of, or a dying JVM."""
        watch.runner = self._adopt(job)
        watch.silence.begin()
        if watch.runner is None:
            self._crashed(job, watch, "checkpoint is in use by another process", None)

    def _crashed(self, job: Job, watch: _Watch, ending: str, error: JobError | None) -> None:
        crashes = job.crashes + 1
        self._store.count(job.id, crashes=crashes, restarts=job.restarts)
        if crashes > self._settings.restart_limit:
            self._fail(job, error or _too_many(crashes, ending))
            return
        wait_s = back_off_s(self._settings, crashes)
        watch.start_after(wait_s)
        cause = f"runner ended ({ending}); crash {crashes}, starting again in {wait_s:g} s"
        reported = error or JobError("runner-crashed", cause, "Look at the runner's log.")
        if job.state not in ENDED:
            self._store.transition(job.id, StateUpdate(JobState.STALLED, cause, error=reported))
        _log.error("runner crashed", job_id=job.id, ending=ending, crashes=crashes)

    def _fail(self, job: Job, error: JobError) -> Job:
        change = StateUpdate(
            JobState.FAILED, error.message, error=error, desired=DesiredState.STOPPED
        )
        _log.error("job failed", job_id=job.id, error=error.message, hint=error.hint)
        return self._store.transition(job.id, change)

    def _discard_unfinished_submissions(self) -> None:
        """Delete directories of submissions that were never acknowledged: no row, never started."""
        known = {job.id for job in self._store.all_jobs()}
        for job_dir in self._settings.jobs_dir.glob("*-*-*-*-*"):
            layout = JobLayout(job_dir)
            started = layout.settings.exists() or layout.checkpoint.exists()
            if job_dir.name not in known and not started:
                layout.discard()


_AT_REST = RESTING | {JobState.CREATED}
_NOT_REPORTED = frozenset({JobState.CREATED, JobState.STARTING, JobState.STOPPED})


def _own(status: Status | None, watch: _Watch) -> Status | None:
    """`status` if the runner that is watched wrote it."""
    if status is None or watch.runner is None or status.pid != watch.runner.pid:
        return None
    return status


def _mute(job: Job) -> bool:
    """Whether the job is STALLED because its runner does not speak."""
    return job.error is not None and job.error.type == UNRESPONSIVE


def _answers(job: Job) -> bool:
    """Whether a runner of the job only answers requests: its stream has ended before."""
    return job.state is JobState.FINISHED and job.desired_state is DesiredState.STOPPED


def _healthy(job: Job, runner: RunnerProcess) -> bool:
    """Whether the runner has lived for long enough, and has something to say."""
    speaks = job.state is not JobState.STARTING and not _mute(job)
    return speaks and runner.age_s() > _HEALTHY_S


def _with_error(change: StateUpdate, error: JobError | None) -> StateUpdate:
    if error is None or change.target not in (JobState.STALLED, JobState.FAILED):
        return change
    return StateUpdate(change.target, change.cause, error=error, at_ms=change.at_ms)


def _log_changes(job: Job, changes: list[StateUpdate]) -> None:
    for change in changes:
        _log.info("job changed", job_id=job.id, state=change.target.value, cause=change.cause)


def _ending(runner: RunnerProcess) -> str:
    code = runner.exit_code
    if code is None:
        return "adopted process is gone"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _cannot_start(exc: OSError) -> JobError:
    return JobError(
        "runner-not-started",
        f"runner cannot be started: {exc}",
        "Check the job's directory and free space, then start the job again.",
    )


def _failed_silently(runner: RunnerProcess) -> JobError:
    return JobError(
        "runner-failed",
        f"runner {runner.pid} failed and gave no error",
        _LOG_HINT,
    )


def _too_many(crashes: int, ending: str) -> JobError:
    return JobError(
        "runner-crashed",
        f"runner crashed {crashes} times in a row, last with {ending}",
        _LOG_HINT,
    )
