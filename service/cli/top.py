"""`sluice top`: all jobs, live on a terminal, one frame elsewhere."""

import os
import select
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.live import Live
from rich.text import Text

from service.cli.options import Form, Server, open_client
from service.cli.output import (
    OutputFormat,
    brief,
    console,
    instant,
    one_line,
    show,
    show_json,
    span,
)
from service.cli.views import as_of, by_trouble, reason, since, sinks, state
from service.client.transport import is_passing
from service.errors import ControlPlaneError

if TYPE_CHECKING:
    from service.client import Sluice
    from service.schemas.jobs import ListedJob

_WIDE = 120  # sink and reason stand beside the numbers, else below them
_MOST_NAME, _MOST_SINK = 20, 28
_GAP = "  "


class Order(StrEnum):
    """Sort orders of jobs; unknown values come last."""

    TROUBLE = "trouble"
    RATE = "rate"
    NAME = "name"
    WAITING = "waiting"
    FRESHNESS = "freshness"
    DEAD = "dead-letters"
    BATCH = "batch"
    AGE = "age"


_KEYS = {order.value[0]: order for order in Order}
_NUMBERS: dict[Order, Callable[["ListedJob"], float | None]] = {
    Order.RATE: lambda job: job.records_per_s,
    Order.WAITING: lambda job: job.waiting_records,
    Order.FRESHNESS: lambda job: None if job.as_of_ms is None else -job.as_of_ms,
    Order.DEAD: lambda job: job.letters_to_settle,
    Order.BATCH: lambda job: job.batch_ms,
    Order.AGE: lambda job: job.created_at_ms,
}


@dataclass(frozen=True, slots=True)
class Sorting:
    """An order of jobs and its direction."""

    order: Order
    reverse: bool = False

    def pressed(self, key: str) -> "Sorting":
        """The sorting after a key press; the key of the current order reverses it."""
        chosen = _KEYS.get(key)
        if chosen is None:
            return self
        return Sorting(chosen, reverse=chosen is self.order and not self.reverse)

    def of(self, jobs: Sequence["ListedJob"]) -> list["ListedJob"]:
        if self.order is Order.TROUBLE:
            return by_trouble(jobs)[:: -1 if self.reverse else 1]
        if self.order is Order.NAME:
            return sorted(jobs, key=lambda job: job.name, reverse=self.reverse)
        pairs = [(_NUMBERS[self.order](job), job) for job in jobs]
        known = [(value, job) for value, job in pairs if value is not None]
        sign = 1 if self.reverse else -1
        ordered = sorted(known, key=lambda pair: sign * pair[0])
        return [job for _, job in ordered] + [job for value, job in pairs if value is None]


@dataclass(frozen=True, slots=True)
class Look:
    """The last answer of the control plane; `trouble` is why there is no newer one."""

    url: str
    jobs: Sequence["ListedJob"]
    at_ms: int
    trouble: str | None = None


# A frame
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    head: str
    cell: Callable[["ListedJob"], Text | str]
    most: int = 12
    is_number: bool = False


_COLUMNS = (
    _Column("NAME", lambda job: one_line(job.name), _MOST_NAME),
    _Column("STATE", state, 26),
    _Column("SINCE", since),
    _Column("REC/S", lambda job: brief(job.records_per_s), is_number=True),
    _Column("WAITING", lambda job: brief(job.waiting_records), is_number=True),
    _Column("AS OF", lambda job: as_of(job.as_of_ms), is_number=True),
    _Column("DEAD", lambda job: brief(job.letters_to_settle), is_number=True),
    _Column("BATCH", lambda job: span(job.batch_ms), is_number=True),
)
_SINK = _Column("OUTPUT", lambda job: one_line(sinks(job)), _MOST_SINK)


def frame(look: Look, order: Sorting, width: int, height: int | None = None) -> list[Text]:
    """The lines of one frame; with `height` the last one lists keys and excess jobs are counted."""
    is_wide = width >= _WIDE
    jobs = order.of(look.jobs)
    shown = jobs if height is None else jobs[: _room(height, is_wide=is_wide)]
    columns = (*_COLUMNS, _SINK) if is_wide else _COLUMNS
    counts = Counter(state(job).plain.partition(" (")[0] for job in look.jobs)
    total = f"{len(look.jobs)} job{'' if len(look.jobs) == 1 else 's'}"
    by_state = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    heading = Text.assemble((look.url, "bold"), _GAP, instant(look.at_ms)[11:19], " UTC", _GAP)
    if look.trouble is not None:
        heading.append(f"no answer since: {one_line(look.trouble)}", style="yellow")
    else:
        heading.append(f"{total}: {by_state}" if by_state else total)
    lines = [heading, Text("")]
    lines += _table(columns, shown, is_wide=is_wide) if shown else [_nothing()]
    if len(shown) < len(jobs):
        lines.append(Text(f"and {len(jobs) - len(shown)} more; change the order to see them"))
    if height is not None:
        lines += [Text("")] * (height - 1 - len(lines)) + [_keys(order)]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
        line.rstrip()
    return lines


def _room(height: int, *, is_wide: bool) -> int:
    return max(1, (height - 6) // (1 if is_wide else 2))


def _nothing() -> Text:
    return Text("No jobs yet. Submit a script: sluice submit SCRIPT")


def _table(
    columns: Sequence[_Column], jobs: Sequence["ListedJob"], *, is_wide: bool
) -> Iterator[Text]:
    cells = [[_text(column.cell(job)) for column in columns] for job in jobs]
    widths = [
        min(column.most, max(cell_len(column.head), *(cell.cell_len for cell in own)))
        for column, own in zip(columns, zip(*cells, strict=True), strict=True)
    ]
    heads = [Text(column.head, style="bold") for column in columns]
    yield _row(columns, heads, widths, Text("REASON" if is_wide else "", style="bold"))
    for job, own in zip(jobs, cells, strict=True):
        why = _text(one_line(reason(job), 500))
        yield _row(columns, own, widths, why if is_wide else Text(""))
        if not is_wide:
            yield Text.assemble(_GAP, (one_line(sinks(job)), "cyan"), _GAP, (why.plain, "dim"))


def _text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _row(
    columns: Sequence[_Column], cells: Sequence[Text], widths: Sequence[int], rest: Text
) -> Text:
    row = Text("")
    for column, cell, width in zip(columns, cells, widths, strict=True):
        text = cell.plain
        if cell_len(text) > width:
            text = set_cell_size(text, width - 1).rstrip() + "…"
        padding = " " * (width - cell_len(text))
        row.append(padding + text if column.is_number else text + padding, style=cell.style)
        row.append(_GAP)
    return row.append_text(rest)


def _keys(order: Sorting) -> Text:
    keys = Text.assemble(("q", "bold"), " quit ", " sort:")
    for key, named in _KEYS.items():
        style = "reverse" if named is order.order else ""
        keys.append(" ").append(key, style=f"bold {style}").append(f" {named}", style=style)
    return keys


QUIT = "q"


@contextmanager
def typed_keys() -> Iterator[Callable[[float], Iterable[str]]]:
    """A function that waits up to so many seconds for keys and returns those pressed."""
    if not sys.stdin.isatty():
        yield _no_keys
        return
    import termios  # a system without it has no terminal that this could be one of
    import tty

    before: list[Any] = termios.tcgetattr(sys.stdin)
    keys = select.poll()
    keys.register(sys.stdin, select.POLLIN)

    def pressed(seconds: float) -> Iterable[str]:
        if not keys.poll(1_000 * seconds):
            return ""
        return _read_keys()

    tty.setcbreak(sys.stdin)
    try:
        yield pressed
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _read_keys() -> str:
    typed = os.read(sys.stdin.fileno(), 64)
    return "" if typed.startswith(b"\x1b") else typed.decode(errors="replace") or "q"


def _no_keys(seconds: float) -> Iterable[str]:
    time.sleep(seconds)
    return ""


_KEY_S = 0.5


def top(
    sort: Annotated[Order, typer.Option(help="Sort order.", case_sensitive=False)] = Order.TROUBLE,
    reverse: Annotated[bool, typer.Option("--reverse", help="Reverse the order.")] = False,
    once: Annotated[bool, typer.Option("--once", help="One frame, also on a terminal.")] = False,
    interval: Annotated[
        float, typer.Option(help="Seconds between updates.", metavar="SECONDS", min=0.2, max=60)
    ] = 1.0,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show all jobs live: state, rate, waiting records, reason. In a pipe, prints one frame."""
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
    """Polls the control plane on a thread, so that slow answers do not block keys."""

    def __init__(self, client: "Sluice", jobs: Sequence["ListedJob"], interval_s: float) -> None:
        self._client = client
        self._interval_s = interval_s
        self._ended = threading.Event()
        self.look = Look(client.url, jobs, _now_ms())
        self.fault: ControlPlaneError | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
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
