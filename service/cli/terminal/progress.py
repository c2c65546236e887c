"""What people see while they wait: bars on a terminal, now and then a line everywhere else.

All of it goes to standard error, so data on standard output stays data.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from service.cli.output import console, one_line, say, takes_commands
from service.cli.views import bars, state

if TYPE_CHECKING:
    from service.schemas.jobs import JobDetail

_LINE_EVERY_S = 15.0
_BAR_WIDTH = 20
Show = Callable[["JobDetail"], None]


@contextmanager
def job_progress() -> Iterator[Show]:
    """Gives a function that shows a job each time it is called with its newest document."""
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


def working(text: str) -> AbstractContextManager[object]:
    """Shows on a terminal that something goes on."""
    if not takes_commands(sys.stderr):
        return nullcontext()
    return console(err=True).status(Text(text))


class _Bars:
    """State and reason in one line, and a bar with the time left for each copy."""

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
        self._line = Text.assemble(state(job), f": {one_line(job.reason)}", overflow="ellipsis")
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
    """A line for each change of state, and for a new reason when some time has passed."""

    def __init__(self) -> None:
        self._state = self._reason = ""
        self._told_at = 0.0

    def show(self, job: "JobDetail") -> None:
        now = time.monotonic()
        late = now - self._told_at >= _LINE_EVERY_S and job.reason != self._reason
        if job.state == self._state and not late:
            return
        self._state, self._reason, self._told_at = job.state, job.reason, now
        say(f"{job.state}: {one_line(job.reason)}")
