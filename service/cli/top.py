"""`sluice top`: all jobs at a glance, live on a terminal, one frame everywhere else."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live

from service.cli.options import Form, Server, open_client
from service.cli.output import OutputFormat, console, show, show_json
from service.cli.terminal.keys import QUIT, typed_keys
from service.cli.terminal.top_frame import Look, Order, Sorting, frame
from service.client.refusals import is_passing
from service.errors import ControlPlaneError

if TYPE_CHECKING:
    from service.client import Sluice
    from service.schemas.jobs import ListedJob

_KEY_S = 0.5


def top(
    sort: Annotated[Order, typer.Option(help="What comes first.", case_sensitive=False)] = (
        Order.RATE
    ),
    reverse: Annotated[bool, typer.Option("--reverse", help="In the other direction.")] = False,
    once: Annotated[bool, typer.Option("--once", help="One frame, also on a terminal.")] = False,
    interval: Annotated[
        float, typer.Option(help="Seconds between two looks.", metavar="SECONDS", min=0.2, max=60)
    ] = 1.0,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show all jobs live: phase, rates, what waits and why. In a pipe, prints one frame."""
    order = Sorting(sort, reverse=reverse)
    with open_client(server) as client:
        jobs = list(client.jobs())
        if output is OutputFormat.JSON:
            show_json(order.of(jobs))
        elif once or not console().is_terminal:
            show(*frame(Look(client.url, jobs, _now_ms()), order, console().width))
        else:
            _live(client, order, jobs, interval)


class _Looker:
    """Asks the control plane again and again beside the keys, so that a slow answer holds none."""

    def __init__(self, client: "Sluice", jobs: Sequence["ListedJob"], interval_s: float) -> None:
        self._client = client
        self._interval_s = interval_s
        self._ended = threading.Event()
        self.look = Look(client.url, jobs, _now_ms())
        self.fault: ControlPlaneError | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Asks until the end of the block."""
        thread = threading.Thread(target=self._ask, name="top", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(_KEY_S)

    def _ask(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                jobs = list(self._client.jobs())
                self.look = Look(self._client.url, jobs, _now_ms())
            except ControlPlaneError as exc:
                if not is_passing(exc):
                    self.fault = exc
                    return
                self.look = replace(self.look, trouble=exc.message)


def _live(client: "Sluice", order: Sorting, jobs: Sequence["ListedJob"], interval_s: float) -> None:
    screen, looker = console(), _Looker(client, jobs, interval_s)
    with (
        looker.asking(),
        typed_keys() as pressed,
        Live(console=screen, screen=True, auto_refresh=False) as live,
    ):
        while True:
            if looker.fault is not None:
                raise looker.fault
            lines = frame(looker.look, order, screen.width, screen.height)
            live.update(Group(*lines), refresh=True)
            for key in pressed(min(interval_s, _KEY_S)):
                if key == QUIT:
                    return
                order = order.pressed(key)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
