"""Runs one runner process for each job that is to run, follows its reports, removes jobs.

The supervisor's thread looks at each job about twice a second; other threads only set events and
read. All durable state is in the store and in the jobs' directories: a control plane that was
killed continues, and adopts living runners. By its states a job without a runner gets:

    desired REMOVED                         its removal
    FINISHED, desired RUNNING               desired STOPPED: its runner ended unseen
    FINISHED, with open requests            a runner that only answers them
    desired PAUSED or STOPPED               that state
    otherwise                               a runner, when it is due and `start_limit` allows
"""

import threading
import time
from collections.abc import Callable, Sequence

import psutil
import structlog

from joins.durable.requests import Requests
from joins.kernels.local_files import is_full
from service.config import Settings, store_is_shared
from service.jobs.presence import ControlPlaneSign
from service.jobs.store.job import RESTING, DesiredState, Job, JobError, JobState, StateUpdate
from service.jobs.store.layout import JobLayout, living_runner, noted_pid, processes_on_jobs
from service.jobs.store.runner_files import Status, read_status
from service.jobs.store.store import JobStore
from service.jobs.supervise.background import Removals, Restorations, back_off_s
from service.jobs.supervise.hooks import Remover
from service.jobs.supervise.outcomes import (
    LOG_HINT,
    STOPPED_UNSEEN,
    SUPERSEDED,
    Outcomes,
    RunnerReports,
    cannot_start,
    ending_of,
    failed_silently,
)
from service.jobs.supervise.runner_host import RunnerStarter
from service.jobs.supervise.runner_process import (
    EXIT_FAILED,
    EXIT_LOCKED,
    EXIT_SUPERSEDED,
    RunnerProcess,
    end_all,
)
from service.jobs.supervise.watch import (
    ENDING,
    RunnerStage,
    RunnerView,
    Watch,
    is_healthy,
    only_serves_requests,
    reported_runner,
    status_of,
)

AGAIN_S = 60.0
POLL_S = 0.4
# States that a job without a runner may have: when it is seen first, and later. All others say
# that its runner has ended unseen.
_AT_REST = RESTING | {JobState.CREATED}
_STARTABLE = _AT_REST | {JobState.STARTING, JobState.STALLED}
_TURN = "; it waits for its turn to start"
_fault_log = structlog.get_logger("service.supervisor")
_log = structlog.get_logger(__name__)


class FaultLog:
    """Logs a fault when it is new, and each minute while it lasts; no traceback for a full disk."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, float]] = {}

    def log(self, event: str, error: Exception, job_id: str = "") -> None:
        text, now = f"{type(error).__name__}: {error}", time.monotonic()
        before, at = self._newest.get(job_id, ("", 0.0))
        if text == before and now < at + AGAIN_S:
            return
        self._newest[job_id] = text, now
        of_job = {"job_id": job_id} if job_id else {}
        if is_full(error):
            _fault_log.error(event, error=text, **of_job)
        else:
            _fault_log.error(event, exc_info=error, **of_job)


class Supervisor:
    """Owner of the runner processes, between `start` and `close` or `give_up`.

    `close` ends the supervision and leaves them running, `give_up` ends both without the store, and
    `end_runners` stops them in order while the supervision goes on.
    """

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
        self._starter = RunnerStarter(settings, runner_command)
        self._watches: dict[str, Watch] = {}
        self._due: list[Job] = []
        self._processes: dict[str, psutil.Process] | None = None
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._ending = threading.Event()
        self._all_ended = threading.Event()
        self._has_looked = threading.Event()
        self._thread = threading.Thread()
        self._removals = Removals(store, settings, remove)
        self._restorations = Restorations(store, settings, self.wake)
        self._outcomes = Outcomes(store, settings)
        self._reports = RunnerReports(store, settings)
        self._faults = FaultLog()
        self._presence = ControlPlaneSign(settings.data_dir)

    def start(self) -> None:
        """Clean up after a killed control plane and supervise; also again after `give_up`."""
        if self._closing.is_set():
            self._reset()
        self._discard_unfinished_submissions()
        self._thread = threading.Thread(target=self._loop, name="supervisor", daemon=True)
        self._thread.start()

    def _reset(self) -> None:
        if self._thread.is_alive():
            self._thread.join()  # after its present call of the store
        self._starter.reset()
        self._watches.clear()
        self._due.clear()
        self._removals.reset()
        self._restorations.reset()
        self._has_looked.clear()
        self._closing.clear()

    def give_up(self, *, by: float) -> None:
        """Stop supervising and end all runners before `by` (`time.monotonic`), without the store.

        Another control plane may supervise the jobs then.
        """
        self._starter.give_up()
        self._closing.set()
        self._wake.set()
        end_all(lambda: [watch.runner for watch in list(self._watches.values())], by=by)
        self._starter.close()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._starter.close()
        self._removals.close()
        self._restorations.close()

    def end_runners(self, *, timeout_s: float) -> bool:
        """End all runners and start none; desired states stay. True if all have ended in time."""
        self._ending.set()
        self._wake.set()
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline and not self._all_ended.wait(POLL_S):
            continue
        return self._all_ended.is_set()

    def serve_requests(self, job_id: str) -> None:
        watch = self._watches.get(job_id)
        if watch is not None:
            watch.has_request = True
        self._wake.set()

    @property
    def ready(self) -> bool:
        return self._has_looked.is_set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wake(self) -> None:
        self._wake.set()

    def remove(self, job_id: str) -> None:
        """Remove the job, which the store says to do, without waiting."""
        self._removals.hurry(job_id)
        self._wake.set()

    def left(self, job_id: str) -> tuple[str, ...]:
        return self._removals.left(job_id)

    def runner_of(self, job_id: str) -> RunnerView:
        """The job's runner; on a standby, from its report."""
        if store_is_shared(self._settings) and not self._thread.is_alive():
            status = read_status(self._settings.jobs_dir / job_id)
            return reported_runner(status, self._settings)
        return self._watches.get(job_id, Watch()).view()

    def _loop(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            ending = self._ending.is_set()
            try:
                self._look_at_all()
                self._has_looked.set()
                if ending and all(watch.runner is None for watch in self._watches.values()):
                    self._all_ended.set()
                self._store.database.tidy()
            except Exception as exc:  # a fault must not stop the supervision of all jobs
                self._faults.log("jobs cannot be looked at", exc)
            self._presence.show()
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
        except Exception as exc:  # a fault must not affect other jobs
            self._faults.log("job cannot be looked at", exc, job.id)

    def _start_due(self) -> None:
        """Start due runners, the longest waiting first, within `start_limit`."""
        due, self._due = sorted(self._due, key=lambda job: self._watches[job.id].start_at), []
        now = time.monotonic()
        starting = sum(watch.holds_slot(now) for watch in self._watches.values())
        free = max(0, self._settings.start_limit - starting)
        for job in due[:free]:
            self._carefully(self._start, job)
        for job in due[free:]:
            self._carefully(self._queue, job)

    def _queue(self, job: Job) -> None:
        if not only_serves_requests(job) and not job.reason.endswith(_TURN):
            self._store.set_reason(job.id, job.reason.rstrip(".") + _TURN, job.error)

    def _look_at(self, job: Job) -> None:
        if not self._restorations.has(job):
            return  # its directory is being restored from the store
        watch, at_rest = self._watches.get(job.id), _STARTABLE
        if watch is None:
            watch, at_rest = self._watches.setdefault(job.id, Watch()), _AT_REST
            if job.state is not JobState.CREATED:
                self._adopt(job, watch)
        if watch.runner is None and job.state not in at_rest:
            job = self._ended_unseen(job, watch)
        if watch.runner is None:
            self._without_runner(job, watch)
        elif watch.runner.running():
            job = self._reports.follow(job, watch)  # kills a runner that does not report any more
            self._with_runner(job, watch, watch.runner)
        else:
            self._ended(self._reports.follow(job, watch), watch, watch.runner)

    def _layout(self, job: Job) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job.id)

    def _adopt(self, job: Job, watch: Watch) -> None:
        if self._processes is None:  # once per pass: there may be hundreds of jobs
            self._processes = processes_on_jobs()
        process = living_runner(self._layout(job).job_dir, self._processes)
        if process is not None:
            watch.adopt(RunnerProcess.adopt(process))
            _log.info("runner adopted", job_id=job.id, pid=process.pid)

    def _ended_unseen(self, job: Job, watch: Watch) -> Job:
        """Note by its last report how a runner has ended, while no control plane could note it."""
        layout = self._layout(job)
        job = self._reports.follow(job, watch)
        status = read_status(layout.job_dir)
        if status is not None and status.pid != noted_pid(layout.job_dir):
            status = None  # an earlier runner wrote it
        if status is not None and status.state is JobState.FAILED:
            error = status.error or JobError("job-failed", status.reason, LOG_HINT)
            return self._outcomes.failed(job, error)
        if status is not None and status.state is JobState.FINISHED:
            return self._outcomes.finished(job, status.reason)
        if job.state is JobState.STALLED or job.desired_state is not DesiredState.RUNNING:
            return job
        if status is not None and status.state is JobState.STOPPED:
            return self._outcomes.pause(job, STOPPED_UNSEEN)
        cause = "runner was gone when the control plane looked for it"
        return self._store.transition(job.id, StateUpdate(JobState.STALLED, cause))

    def _without_runner(self, job: Job, watch: Watch) -> None:
        if job.desired_state is DesiredState.REMOVED:
            self._removals.carry_out(job)
        elif job.state is JobState.FINISHED and job.desired_state is DesiredState.RUNNING:
            self._outcomes.finished(job, job.reason)  # its runner ended without a control plane
        elif job.state is JobState.FINISHED and watch.has_request and not self._ending.is_set():
            watch.has_request = False  # before the check: a new request sets it again
            if Requests(self._layout(job).requests, {}).open():
                watch.has_request = True
                if time.monotonic() >= watch.start_at:
                    self._due.append(job)
        elif job.desired_state is not DesiredState.RUNNING:
            watch.start_at, watch.start_at_ms = 0.0, None
            self._outcomes.rest(job)
        elif time.monotonic() >= watch.start_at and not self._ending.is_set():
            self._due.append(job)

    def _start(self, job: Job) -> None:
        if job.state is JobState.FINISHED:
            self._start_answering(job)
            return
        watch = self._watches[job.id]
        why = f": {job.reason.removesuffix(_TURN)}" if job.state is JobState.STALLED else ""
        is_new = job.state is JobState.CREATED
        cause = "submitted" if is_new else f"started again after {job.state}{why}"
        reason = "The runner is starting."
        if job.state is not JobState.STARTING:
            job = self._store.transition(job.id, StateUpdate(JobState.STARTING, cause, reason))
        layout = self._layout(job)
        had_runner = noted_pid(layout.job_dir) is not None or layout.checkpoint.exists()
        try:
            layout.runner_pid.unlink(missing_ok=True)  # its last report is not of this start
            if not self._starter.start(watch, layout.job_dir):
                return
        except OSError as exc:
            self._outcomes.waits(job, watch, cannot_start(exc))
            return
        watch.mismatch_since, watch.start_at_ms = None, None
        watch.silence.begin()
        if had_runner:
            self._store.count(job.id, crashes=job.crashes, restarts=job.restarts + 1)
        _log.info("runner started", job_id=job.id, pid=watch.view().pid)

    def _start_answering(self, job: Job) -> None:
        watch = self._watches[job.id]
        try:
            if not self._starter.start(watch, self._layout(job).job_dir):
                return
        except OSError as exc:
            _log.error("runner cannot be started to answer", job_id=job.id, error=str(exc))
            self._has_served(watch, well=False)
            return
        _log.info("runner started to answer requests", job_id=job.id, pid=watch.view().pid)

    def _with_runner(self, job: Job, watch: Watch, runner: RunnerProcess) -> None:
        """Stop the runner unless the job is to run, or has ended and its runner ends by itself."""
        has_reported = job.state is not JobState.STARTING and not only_serves_requests(job)
        if watch.state is RunnerStage.STARTING and has_reported:
            watch.move(RunnerStage.RUNNING)
        has_ended = job.state in (JobState.FAILED, JobState.FINISHED)
        ends_alone = has_ended and job.desired_state is DesiredState.STOPPED
        is_wanted = ends_alone or job.desired_state is DesiredState.RUNNING
        if self._ending.is_set() or not is_wanted or watch.state in ENDING:
            self._stop(job, watch, runner)
        elif (job.crashes or watch.waits) and is_healthy(job, runner):
            watch.waits, watch.silence.hangs = 0, 0  # what failed before does not count any more
            self._store.count(job.id, crashes=0, restarts=job.restarts)

    def _stop(self, job: Job, watch: Watch, runner: RunnerProcess) -> None:
        if watch.state not in ENDING:
            watch.move(RunnerStage.STOPPING)
            runner.terminate()
            _log.info("runner asked to stop", job_id=job.id, pid=runner.pid)
            return
        is_late = time.monotonic() > watch.since + self._settings.stop_timeout_s
        if watch.state is RunnerStage.STOPPING and is_late:
            watch.move(RunnerStage.KILLED)
        if watch.state is RunnerStage.KILLED:
            runner.kill()

    def _ended(self, job: Job, watch: Watch, runner: RunnerProcess) -> None:
        ended = watch.end()
        if only_serves_requests(job):
            self._has_served(watch, well=runner.exit_code == 0)
            return
        status = status_of(runner, self._layout(job).job_dir)
        state, error = (None, None) if status is None else (status.state, status.error)
        if status is not None and state is JobState.FINISHED:
            self._outcomes.finished(job, status.reason)
        elif runner.exit_code == EXIT_FAILED or state is JobState.FAILED:
            self._outcomes.failed(job, error or failed_silently(runner))
        elif job.desired_state is not DesiredState.RUNNING or ended in ENDING:
            killed = ended is RunnerStage.KILLED
            self._outcomes.stopped(job, killed=killed, interrupted=self._ending.is_set())
            self.wake()
        elif runner.exit_code == EXIT_LOCKED:
            self._locked(job, watch)
        elif _is_superseded(job, runner, status):
            self._outcomes.pause(job, SUPERSEDED)
            _log.info("runner starts again under a newer plan", job_id=job.id)
            self.wake()
        elif ended is RunnerStage.HUNG:
            self._outcomes.crashed(job, watch, "killed, because it did not report any more", None)
        elif error is not None and state is JobState.STALLED:
            self._outcomes.waits(job, watch, error)
        else:
            self._outcomes.crashed(job, watch, ending_of(runner), error)

    def _has_served(self, watch: Watch, *, well: bool) -> None:
        watch.waits = 0 if well else watch.waits + 1
        watch.start_at = time.monotonic()
        if watch.waits:
            watch.start_at += back_off_s(self._settings, watch.waits)

    def _locked(self, job: Job, watch: Watch) -> None:
        """Another process holds the checkpoint: an unknown runner, or a dying JVM."""
        self._adopt(job, watch)
        watch.silence.begin()
        if watch.runner is None:
            self._outcomes.crashed(job, watch, "checkpoint is in use by another process", None)

    def _discard_unfinished_submissions(self) -> None:
        """Delete directories of submissions that were never acknowledged: no row, never started.

        If the directories are on this machine alone, also those of jobs deleted meanwhile.
        """
        known = {job.id for job in self._store.all_jobs()}
        for job_dir in self._settings.jobs_dir.glob("*-*-*-*-*"):
            layout = JobLayout(job_dir)
            started = layout.settings.exists() or layout.checkpoint.exists()
            if job_dir.name not in known and not started:
                layout.abandon()
            elif job_dir.name not in known and not self._store.has_directories:
                layout.discard()


def _is_superseded(job: Job, runner: RunnerProcess, status: Status | None) -> bool:
    """True if the runner ended for a newer plan; an adopted one, without exit code, has said so."""
    if runner.exit_code is not None or status is None:
        return runner.exit_code == EXIT_SUPERSEDED
    return status.state is JobState.STARTING and job.state not in _STARTABLE
