"""What the supervisor knows of one job's runner beyond the store; lost with the control plane.

`RUNNER_STATES` has the states of a runner, `JOB_STATES` those of its job.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from service.config import Settings
from service.jobs.store.history import JobSampler
from service.jobs.store.job import RESTING, DesiredState, Job, JobState, Transitions
from service.jobs.store.runner_files import Status, read_status
from service.jobs.supervise.runner_process import RunnerProcess

UNRESPONSIVE = "runner-unresponsive"
STARTING_S = 180.0  # a runner that starts may be silent for this long
_MOST_DOUBLINGS = 4
_HEALTHY_S = 60.0
_START_SLOT_S = 60.0


class RunnerStage(StrEnum):
    """Where the runner of a job stands; `RUNNER_STATES` has meanings and transitions."""

    ABSENT = "ABSENT"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    HUNG = "HUNG"
    STOPPING = "STOPPING"
    KILLED = "KILLED"


ENDING = frozenset({RunnerStage.STOPPING, RunnerStage.KILLED})
RUNNER_STATES = Transitions(
    "runner",
    {
        RunnerStage.ABSENT: (
            "No runner lives; the supervisor starts one when it is due, or adopts a living one.",
            {RunnerStage.STARTING, RunnerStage.RUNNING},
        ),
        RunnerStage.STARTING: (
            "It was started and its job has not reported yet; for a minute it holds a start slot.",
            {RunnerStage.RUNNING, RunnerStage.HUNG, RunnerStage.STOPPING, RunnerStage.ABSENT},
        ),
        RunnerStage.RUNNING: (
            "Its job has reported, or the supervisor has adopted it alive.",
            {RunnerStage.HUNG, RunnerStage.STOPPING, RunnerStage.ABSENT},
        ),
        RunnerStage.HUNG: (
            "It was killed because it had not reported for `SLUICE_RUNNER_HANG_KILL_S`.",
            {RunnerStage.STOPPING, RunnerStage.ABSENT},
        ),
        RunnerStage.STOPPING: (
            "It got SIGTERM and has `SLUICE_STOP_TIMEOUT_S` to end.",
            {RunnerStage.KILLED, RunnerStage.ABSENT},
        ),
        RunnerStage.KILLED: (
            "It was killed because it had not ended in that time.",
            {RunnerStage.ABSENT},
        ),
    },
)


@dataclass(slots=True)
class Silence:
    """Silence of one job's runners; each of `hangs` kills in a row doubles the patience.

    It is measured on the monotonic clock since a report was first seen: setting the clock or a
    sleeping machine makes no healthy runner look dead.
    """

    clock: Callable[[], float] = field(default=time.monotonic)
    hangs: int = 0
    _report_ms: int | None = None  # time in the newest report
    _seen_at: float | None = None

    def begin(self) -> None:
        """Measure from the next look on."""
        self._report_ms, self._seen_at = None, None

    def lasts_s(self, updated_at_ms: int | None) -> float:
        """Seconds without news, given the time in the newest report (None: no report yet)."""
        now = self.clock()
        if self._seen_at is None or updated_at_ms != self._report_ms:
            self._report_ms, self._seen_at = updated_at_ms, now
        return now - self._seen_at

    def report_after_s(self, settings: Settings, *, starting: bool) -> float:
        return max(settings.runner_hang_report_s, STARTING_S if starting else 0.0)

    def kill_after_s(self, settings: Settings, *, starting: bool) -> float:
        patience_s = max(settings.runner_hang_kill_s, settings.runner_hang_report_s)
        patience_s = max(patience_s, STARTING_S if starting else 0.0)
        return patience_s * 2.0 ** min(self.hangs, _MOST_DOUBLINGS)


@dataclass(slots=True)
class Watch:
    """A job's runner; the supervisor's thread owns it. `runner` is None exactly in state ABSENT."""

    runner: RunnerProcess | None = None
    state: RunnerStage = RunnerStage.ABSENT
    since: float = 0.0  # of `state`, monotonic
    start_at: float = 0.0  # when the next runner may start, monotonic
    start_at_ms: int | None = None  # the same for people, after a back-off
    waits: int = 0  # runners in a row that could not start, or gave up on what may return
    mismatch_since: float | None = None  # its report and the stored state of the job differ
    silence: Silence = field(default_factory=Silence)
    has_request: bool = True  # a finished job may have requests to answer
    sampler: JobSampler | None = None

    def holds_slot(self, now: float) -> bool:
        return self.state is RunnerStage.STARTING and now - self.since < _START_SLOT_S

    def move(self, target: RunnerStage) -> None:
        RUNNER_STATES.check(self.state, target)
        self.state, self.since = target, time.monotonic()

    def begin(self, runner: RunnerProcess) -> None:
        self.move(RunnerStage.STARTING)
        self.runner = runner

    def adopt(self, runner: RunnerProcess) -> None:
        self.move(RunnerStage.RUNNING)
        self.runner = runner

    def end(self) -> RunnerStage:
        ended = self.state
        self.move(RunnerStage.ABSENT)
        self.runner = None
        return ended

    def start_after(self, wait_s: float) -> None:
        self.start_at = time.monotonic() + wait_s
        self.start_at_ms = time.time_ns() // 1_000_000 + int(wait_s * 1000)

    def view(self) -> "RunnerView":
        runner = self.runner  # the supervisor's thread may clear it meanwhile
        if runner is None:
            return RunnerView(None, False, False, None, self.start_at_ms)
        return RunnerView(
            pid=runner.pid,
            alive=runner.running(),
            adopted=runner.adopted,
            started_at_ms=int(runner.started_at_s * 1000),
        )


@dataclass(frozen=True, slots=True)
class RunnerView:
    """A job's runner as operators see it; `restart_at_ms` is None unless a restart is due."""

    pid: int | None
    alive: bool
    adopted: bool
    started_at_ms: int | None
    restart_at_ms: int | None = None


def reported_runner(status: Status | None, settings: Settings) -> RunnerView:
    """A runner under another supervisor, from its report; alive while the report is recent."""
    if status is None:
        return RunnerView(None, alive=False, adopted=False, started_at_ms=None)
    is_recent = status.age_ms() < settings.runner_hang_report_s * 1000
    started_at_ms = status.content.get("started_at_ms")
    return RunnerView(
        pid=status.pid,
        alive=is_recent and status.state not in RESTING,
        adopted=False,
        started_at_ms=started_at_ms if isinstance(started_at_ms, int) else None,
    )


def status_of(runner: RunnerProcess | None, job_dir: Path) -> Status | None:
    """The newest report of the job, if this runner wrote it."""
    status = read_status(job_dir)
    return status if status and runner and status.pid == runner.pid else None


def is_unresponsive(job: Job) -> bool:
    """True if the job is shown as stalled by a silent runner."""
    return job.error is not None and job.error.type == UNRESPONSIVE


def only_serves_requests(job: Job) -> bool:
    """True if the job has ended, and a runner of it can only answer requests."""
    return job.state is JobState.FINISHED and job.desired_state is DesiredState.STOPPED


def is_healthy(job: Job, runner: RunnerProcess) -> bool:
    """True if the runner has run for long enough that earlier crashes do not count."""
    reports = job.state is not JobState.STARTING and not is_unresponsive(job)
    return reports and runner.age_s() > _HEALTHY_S
