"""The supervisor's memory of one job beyond the store; it is lost with the control plane.

Silence is measured on the monotonic clock since a report was first seen: setting the clock or a
sleeping machine makes no healthy runner look dead.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from service.config import Settings
from service.jobs.store.history import JobSampler
from service.jobs.store.job import RESTING, DesiredState, Job, JobError, JobState, Transitions
from service.jobs.store.runner_files import Status
from service.jobs.supervise.runner_process import RunnerProcess

UNRESPONSIVE = "runner-unresponsive"
STARTING_S = 180.0
_MOST_DOUBLINGS = 4


@dataclass(slots=True)
class Silence:
    """Silence of one job's runners; each of `hangs` kills in a row doubles the patience."""

    clock: Callable[[], float] = field(default=time.monotonic)
    hangs: int = 0
    _heard: int | None = None
    _heard_at: float | None = None

    def begin(self) -> None:
        self._heard, self._heard_at = None, None

    def lasts_s(self, updated_at_ms: int | None) -> float:
        """Seconds without news, given the time in the newest report (None: no report yet)."""
        now = self.clock()
        if self._heard_at is None or updated_at_ms != self._heard:
            self._heard, self._heard_at = updated_at_ms, now
        return now - self._heard_at

    def report_after_s(self, settings: Settings, *, starting: bool) -> float:
        return max(settings.runner_hang_report_s, STARTING_S if starting else 0.0)

    def kill_after_s(self, settings: Settings, *, starting: bool) -> float:
        patience_s = max(settings.runner_hang_kill_s, settings.runner_hang_report_s)
        patience_s = max(patience_s, STARTING_S if starting else 0.0)
        return patience_s * 2.0 ** min(self.hangs, _MOST_DOUBLINGS)


def unresponsive(pid: int, silent_s: float, kill_after_s: float) -> JobError:
    return JobError(
        UNRESPONSIVE,
        f"runner {pid} lives, but has not reported for {silent_s:.0f} s",
        f"It is killed and started again after {kill_after_s:g} s; look at its log and at the "
        "machine's memory and disk.",
    )


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
class Watch:
    """A job's runner, its state since when, and when the next one starts.

    The supervisor's thread owns it; `runner` is None exactly in state ABSENT.
    """

    runner: RunnerProcess | None = None
    state: RunnerStage = RunnerStage.ABSENT
    since: float = 0.0
    start_at: float = 0.0
    start_at_ms: int | None = None
    waits: int = 0
    mismatch_since: float | None = None
    silence: Silence = field(default_factory=Silence)
    has_request: bool = True
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
    speaks = status.age_ms() < settings.runner_hang_report_s * 1000
    started_at_ms = status.content.get("started_at_ms")
    return RunnerView(
        pid=status.pid,
        alive=speaks and status.state not in RESTING,
        adopted=False,
        started_at_ms=started_at_ms if isinstance(started_at_ms, int) else None,
    )


def own(status: Status | None, runner: RunnerProcess | None) -> Status | None:
    if status is None or runner is None or status.pid != runner.pid:
        return None
    return status


def mute(job: Job) -> bool:
    return job.error is not None and job.error.type == UNRESPONSIVE


def only_serves_requests(job: Job) -> bool:
    return job.state is JobState.FINISHED and job.desired_state is DesiredState.STOPPED


def healthy(job: Job, runner: RunnerProcess) -> bool:
    speaks = job.state is not JobState.STARTING and not mute(job)
    return speaks and runner.age_s() > _HEALTHY_S
