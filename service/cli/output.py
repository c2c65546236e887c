"""Output of the commands: data on standard output, messages on standard error; plain in a pipe."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from service.client import AccessError, RefusedError
from service.errors import UnreachableError, WaitTimeoutError
from watermark.errors import SluiceError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from service.schemas.inspection import GapView


class ExitCode(IntEnum):
    """Exit codes of the command line; scripts may rely on them.

    | code | meaning |
    |---|---|
    | 0 | Done. |
    | 1 | Not done, or a check (`doctor`, `replay`, `dlq replay`) found a fault. |
    | 2 | The command line is wrong. |
    | 3 | The control plane cannot be reached. |
    | 4 | The control plane denies access: no token, or one of too small a scope. |
    | 5 | Timed out waiting; the job continues. |
    | 130 | Interrupted; the job continues. |
    | 143 | Ended by SIGTERM; `serve` and `up`, which stop in order, end with 0. |
    """

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    DENIED = 4
    TIMED_OUT = 5
    INTERRUPTED = 130
    TERMINATED = 143


def exit_code(error: SluiceError) -> ExitCode:
    if isinstance(error, UnreachableError):
        return ExitCode.UNREACHABLE
    if isinstance(error, WaitTimeoutError):
        return ExitCode.TIMED_OUT
    if isinstance(error, AccessError):
        return ExitCode.DENIED
    return ExitCode.FAILED


def place_of(error: SluiceError) -> str:
    """The excerpt of the script with a caret below it; empty without one."""
    problem = error.problem if isinstance(error, RefusedError) else vars(error)
    return str(problem.get("excerpt") or "")


def say_findings(error: SluiceError) -> None:
    """Print the error, or each fault of its script with the text that would be accepted."""
    problem = error.problem if isinstance(error, RefusedError) else vars(error)
    documents = problem.get("findings") or ()
    if len(documents) < _SEVERAL:
        detail = problem.get("cause") if isinstance(error, RefusedError) else error.detail
        shown_detail = one_line(str(detail or ""), _DETAIL)
        say_error(error.message, error.hint, place_of(error), shown_detail)
    shown = ""
    for finding in documents:
        place = f"line {finding['line']}, column {finding['column']}"
        if len(documents) >= _SEVERAL:
            say_error(f"{place}: {finding['message']}", finding["hint"], finding["excerpt"])
        if finding["replacement"] and finding["replacement"] != shown:
            shown = finding["replacement"]
            say(f"{place}, as it would be accepted:")
            say("\n".join(f"  {line}" for line in finding["replacement"].split("\n")))


Answer = TypeVar("Answer")
_PIPE_WIDTH = 240
_WIDEST = 100_000
_CELL = 200
_RANGES = 8
_WARNING = 2000
_DETAIL = 300
_SEVERAL = 2
_STEPS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


class OutputFormat(StrEnum):
    """The form of the data on standard output."""

    TABLE = "table"
    JSON = "json"


def say(text: str) -> None:
    typer.echo(clean(text), err=True)


def say_error(message: str, hint: str, place: str = "", detail: str = "") -> None:
    """Print an error, the excerpt of a script and the text of a server if any, and the hint."""
    say(f"error: {' '.join(message.split())}")
    for line in place.splitlines():
        say(f"  {line}")
    if detail:
        say(f"detail: {detail}")
    say(f"hint: {' '.join(hint.split())}")


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        say(f"warning: {one_line(warning, _WARNING)}")


def clean(text: str) -> str:
    """`text` with control characters replaced, as they could be terminal commands."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def one_line(text: object, limit: int = _CELL) -> str:
    """`text` on one line, cut to `limit`, control characters replaced."""
    shown = "".join(char if char.isprintable() else "�" for char in str(text)[: limit + 1])
    return shown if len(shown) <= limit else shown[:limit] + "…"


def show_json(value: object) -> None:
    typer.echo(escaped(json.dumps(value, indent=2, ensure_ascii=False, default=plain)))


def tell(answer: Answer, output: OutputFormat, show_text: Callable[[Answer], object]) -> None:
    if output is OutputFormat.JSON:
        show_json(answer)
    else:
        show_text(answer)


def plain(answer: "BaseModel") -> dict[str, Any]:
    """The document that an answer was parsed from; unset fields stay absent."""
    return answer.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


def escaped(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def table(*columns: str) -> Table:
    """An empty table; pass cells through `clean` or `one_line`."""
    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in made.columns:
        column.overflow = "fold"
    return made


def facts_table(facts: Iterable[tuple[str, Text | str]]) -> Table:
    made = Table.grid(padding=(0, 2))
    for name, value in facts:
        made.add_row(name, value)
    return made


def show(*renderables: RenderableType) -> None:
    """Print tables and texts: plain in a pipe, where each row of a table is one line."""
    screen = console()
    for renderable in renderables:
        if not screen.is_terminal:
            longest = screen.measure(renderable, options=screen.options.update(max_width=_WIDEST))
            screen.width = max(_PIPE_WIDTH, longest.maximum)
        with screen.capture() as capture:
            screen.print(renderable)
        for line in capture.get().removesuffix("\n").split("\n"):
            typer.echo(line.rstrip(), color=screen.is_terminal)


def console(*, err: bool = False) -> Console:
    """Rich on standard output or error; escape sequences only on a terminal that is not dumb.

    `NO_COLOR` disables colours, not cursor movements.
    """
    stream = sys.stderr if err else sys.stdout
    terminal = takes_commands(stream)
    return Console(
        file=stream,
        width=None if stream.isatty() else _PIPE_WIDTH,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )


def working(text: str) -> AbstractContextManager[object]:
    if not takes_commands(sys.stderr):
        return nullcontext()
    return console(err=True).status(Text(text))


def takes_commands(stream: TextIO) -> bool:
    """Whether colours and movements of the cursor may be sent to `stream`."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def say_more(cursor: object) -> None:
    if cursor is not None:
        say(f"more rows: --cursor {cursor}")


def or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def brief(value: float | None) -> str:
    """A count or a rate in at most five characters, such as `12`, `0.4`, `45.2k`, `1.3M`."""
    if value is None:
        return "-"
    for size, unit in _STEPS:
        if value >= size:
            scaled = value / size
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def span(value_ms: int | None) -> str:
    """A time in at most six characters, such as `80 ms`, `3.4 s`, `12 min`."""
    if value_ms is None:
        return "-"
    if value_ms < 1000:
        return f"{value_ms} ms"
    seconds = value_ms / 1000
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    if minutes < 100:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 6000 else f"{minutes / 1440:.0f} d"


def clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f}"[:-3] + " UTC"


def instant(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def ranges(gaps: Sequence["GapView"]) -> str:
    places = (f"{gap.topic}/{gap.partition}" if gap.topic else str(gap.partition) for gap in gaps)
    texts = [
        f"partition {place}: {gap.first} to {gap.end}"
        for place, gap in zip(places, gaps, strict=True)
    ]
    more = f" and {len(gaps) - _RANGES} more" if len(gaps) > _RANGES else ""
    return ", ".join(texts[:_RANGES]) + more
