"""Waiting for a job: the goals, progress meanwhile, and when a goal is out of reach."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from service.cli.options import Form, Job, Server, Timeout, open_client
from service.cli.output import OutputFormat, console, one_line, say, takes_commands, tell
from service.cli.views import bars, reason, state
from service.client import NotFoundError, RefusedError
from service.client.transport import is_passing
from service.errors import (
    ControlPlaneError,
    JobConflictError,
    JobNotFoundError,
    WaitTimeoutError,
)

if TYPE_CHECKING:
    from service.client import RemoteJob
    from service.schemas.jobs import JobDetail

POLL_S = 0.25
_UNREACHED_S = 30.0
_LINE_EVERY_S = 15.0
_BAR_WIDTH = 20
Show = Callable[["JobDetail"], None]
_OPEN = frozenset({"JOINING", "FINISHED"})  # a short job is JOINING for a moment only
_AT_REST = frozenset({"PAUSED", "STOPPED", "FAILED", "FINISHED"})


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of waiting, reached in any of `states`."""

    name: str
    states: frozenset[str]


GOALS = {
    goal.name: goal
    for goal in (
        Goal("load", frozenset({"SNAPSHOT", "CATCHING_UP"}) | _OPEN),
        Goal("join", _OPEN),
        Goal("paused", frozenset({"PAUSED"})),
        Goal("stopped", frozenset({"STOPPED", "FINISHED"})),
        Goal("finished", frozenset({"FINISHED"})),
    )
}
ENDED = Goal("ended", frozenset({"STOPPED", "FAILED", "FINISHED"}))
_SYNONYMS = {"snapshot": "load", "joining": "join"}


def read_goal(text: str) -> Goal:
    """The goal named `text`, case-insensitive; raises typer.BadParameter."""
    name = text.lower()
    goal = GOALS.get(_SYNONYMS.get(name, name))
    if goal is None:
        raise typer.BadParameter(f'"{text}" is not a phase, expected {", ".join(GOALS)}')
    return goal


def _complete(incomplete: str) -> list[str]:
    return [name for name in GOALS if name.startswith(incomplete.lower())]


OptionalPhase = Annotated[
    Goal | None,
    typer.Argument(
        help="load, join (records are joined), paused, stopped or finished.",
        metavar="PHASE",
        parser=read_goal,
        autocompletion=_complete,
    ),
]
WaitFor = Annotated[
    Goal | None,
    typer.Option(
        "--wait",
        help="Return in this phase, as sluice wait does.",
        metavar="PHASE",
        parser=read_goal,
        autocompletion=_complete,
    ),
]


def wait(
    job: Job,
    phase: OptionalPhase = None,
    table: Annotated[
        str | None, typer.Option(help="Wait for a position of this table's source.")
    ] = None,
    position: Annotated[
        str | None,
        typer.Option(help="now, a GTID, file:pos, partition:offset or a version; default: now."),
    ] = None,
    timeout: Timeout = 3600.0,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Wait until a job is in a phase, or until a batch has a position of a table's source.

    Fails at once if the job cannot reach the phase.
    """
    if (phase is None) is (table is None):
        raise typer.BadParameter("give a phase, or --table with --position")
    if position is not None and table is None:
        raise typer.BadParameter("--position needs --table")
    with open_client(server) as client:
        if table is not None:
            dimension = client.job(job).dimension(table)
            reached = dimension.wait_for_position(position or "now", timeout_s=timeout)
            tell(reached, output, lambda reached: say(reached.text))
            return
        assert phase is not None
        document = follow(client.job(job), phase, timeout)
    tell(document, output, lambda job: say(f"job {job.id} is {state(job)}: {reason(job)}"))


@contextmanager
def job_progress() -> Iterator[Show]:
    """A function that shows a job's progress from its newest document.

    Bars on a terminal, lines elsewhere; always on standard error.
    """
    if not takes_commands(sys.stderr):
        yield _Lines().show
        return
    drawn = _Bars()
    with Live(
        console=console(err=True),
        get_renderable=drawn.render,
        transient=True,
        redirect_stdout=False,
        refresh_per_second=4,
    ):
        yield drawn.show


class _Bars:
    """State and reason on one line, and a bar with the remaining time for each copy."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[text]}", markup=False),
            TimeRemainingColumn(compact=True),
        )
        self._tasks: dict[str, TaskID] = {}
        self._line = Text("")

    def show(self, job: "JobDetail") -> None:
        self._line = Text.assemble(state(job), f": {one_line(reason(job))}", overflow="ellipsis")
        self._line.no_wrap = True
        by_name = {bar.name: bar for bar in bars(job)}
        for name in self._tasks.keys() - by_name.keys():
            self._progress.remove_task(self._tasks.pop(name))
        for name, bar in by_name.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=bar.total, text=bar.text)
            task = self._tasks[name]
            self._progress.update(task, total=bar.total, completed=bar.done, text=bar.text)

    def render(self) -> RenderableType:
        return Group(self._line, self._progress.get_renderable())


class _Lines:
    """A line for each change of state, and at intervals for a new reason."""

    def __init__(self) -> None:
        self._state = self._line = ""
        self._told_at = 0.0

    def show(self, job: "JobDetail") -> None:
        now = time.monotonic()
        line = f"{state(job)}: {one_line(reason(job))}"
        is_early = job.state == self._state and now - self._told_at < _LINE_EVERY_S
        if is_early or line == self._line:
            return
        self._state, self._line, self._told_at = job.state, line, now
        say(line)


def follow(followed: "RemoteJob", goal: Goal, timeout_s: float) -> "JobDetail":
    """Wait for `goal` and show progress.

    Raises:
        RefusedError: the job failed.
        JobNotFoundError: it was removed.
        JobConflictError: it stays in another state.
        WaitTimeoutError: timeout.
    """
    with job_progress() as show:
        for job in looks(followed, goal, timeout_s):
            if job.state in goal.states:
                return job
            show(job)
    raise AssertionError("the last document has reached the goal")


def looks(followed: "RemoteJob", goal: Goal, timeout_s: float) -> Iterator["JobDetail"]:
    """The job's documents, polled until the goal is reached; raises as `follow`."""
    deadline = time.monotonic() + timeout_s
    look = JobPoll(followed)
    while True:
        job = look.job()
        if job.state not in goal.states:
            _check_hope(job, goal)
        yield job
        if job.state in goal.states:
            return
        if time.monotonic() >= deadline:
            why = followed.inspect.explain_wait()
            hint = "" if why.hint is None else f"{why.hint} "
            raise WaitTimeoutError(
                f'job "{job.id}" is {state(job)} after {timeout_s:g} s, expected "{goal.name}": '
                f"{why.sentence}",
                hint=f"{hint}The job continues; check it with sluice jobs get {job.id}.",
            )
        time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))


class JobPoll:
    """Polls a job, and survives a restart of the control plane."""

    def __init__(self, looked_at: "RemoteJob") -> None:
        self._looked_at = looked_at
        self._seen_at: float | None = None
        self._warned = False

    def job(self) -> "JobDetail":
        """The job's newest document.

        Raises:
            UnreachableError: no answer for half a minute, or no first answer.
            JobNotFoundError: the job was removed meanwhile.
            RefusedError: the job never existed.
        """
        while True:
            try:
                document = self._looked_at.status()
            except ControlPlaneError as exc:
                self._bear(exc)
                time.sleep(POLL_S)
            else:
                self._seen_at, self._warned = time.monotonic(), False
                return document

    def _bear(self, exc: ControlPlaneError) -> None:
        now = time.monotonic()
        if self._seen_at is not None and isinstance(exc, NotFoundError):
            raise _removed(self._looked_at.id) from exc
        if not is_passing(exc) or self._seen_at is None or now - self._seen_at > _UNREACHED_S:
            raise exc
        if not self._warned:
            self._warned = True
            say(f"{exc.message}; retrying for {_UNREACHED_S:g} s")


def _removed(job_id: str) -> JobNotFoundError:
    return JobNotFoundError(
        f'job "{job_id}" was removed while waiting for it', hint="Submit its script again."
    )


def _check_hope(job: "JobDetail", goal: Goal) -> None:
    state, desired = job.state, job.desired_state
    if desired == "REMOVED" and "STOPPED" not in goal.states:
        raise _removed(job.id)
    if state == "FAILED" and desired != "RUNNING":
        error = job.error
        raise RefusedError(
            job.reason if error is None else error.message,
            hint="Run sluice jobs logs." if error is None else error.hint,
            problem={},
        )
    over = state == "FINISHED"
    if over or (state in _AT_REST and desired in (state, "REMOVED")):
        raise JobConflictError(
            f'job "{job.id}" stays {state}, expected "{goal.name}"',
            hint="The job has finished; submit its script again."
            if over
            else f"Run sluice jobs resume {job.id} first.",
        )
