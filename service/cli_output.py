"""What the commands print: data to standard output, talk to standard error, plain in a pipe."""

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 240
_CELL = 200
_RANGES = 8
_MINIMUM = -(2**63)
_MAXIMUM = 2**63 - 1
_COLOURS = {"JOINING": "green", "FINISHED": "green", "STALLED": "yellow", "FAILED": "red"}


class Output(StrEnum):
    """The form of the data on standard output."""

    TEXT = "text"
    JSON = "json"


def say(text: str) -> None:
    """Talk to the operator."""
    typer.echo(clean(text), err=True)


def clean(text: str) -> str:
    """`text` without control characters, which could be commands to a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def one_line(text: object, limit: int = _CELL) -> str:
    """The beginning of `text`, on one line, without control characters."""
    shown = "".join(char if char.isprintable() else "�" for char in str(text)[: limit + 1])
    return shown if len(shown) <= limit else shown[:limit] + "…"


def show_json(value: object) -> None:
    """One JSON document; what could be a command to a terminal is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo("".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text))


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def show_jobs(jobs: Iterable[Mapping[str, Any]]) -> None:
    """A table of jobs."""
    made = table("ID", "NAME", "STATE", "PHASE", "AGE", "REASON")
    for job in jobs:
        age = _age(job["created_at_ms"])
        phase = job["phase"] or "-"
        made.add_row(job["id"], clean(job["name"]), _state(job), phase, age, clean(job["reason"]))
    show(made)


def show_job(job: Mapping[str, Any]) -> None:
    """One job: where it stands, its tables, its probe."""
    show(facts_table(_facts(job)))
    if job["dimensions"]:
        show(Text(""), _dimensions(job))
    if job["probe"]:
        show(Text(""), _probe(job["probe"]))


def _facts(job: Mapping[str, Any]) -> Iterable[tuple[str, Text | str]]:
    yield "job", f"{job['id']} ({clean(job['name'])})"
    yield "state", _state(job)
    yield "phase", job["phase"] or "-"
    yield "reason", clean(job["reason"])
    if job["error"]:
        yield "error", clean(job["error"]["message"])
        yield "hint", clean(job["error"]["hint"])
    runner = job["runner"]
    alive = f"process {runner['pid']}" if runner["alive"] else "not running"
    yield "runner", f"{alive}, crashes {runner['crashes']}, restarts {runner['restarts']}"
    if job["writer"]:
        why = f" ({clean(job['writer_reason'])})" if job["writer_reason"] else ""
        yield "writer", f"{clean(job['writer'])}{why}"
    if job["combined_watermark"]:
        yield "watermark", _watermark(job["combined_watermark"])
    for stall in job["stalls"]:
        if stall["choices"]:
            yield "to go on", _how_to_acknowledge(job, stall)
    for warning in job["warnings"]:
        yield "warning", f"{clean(warning['message'])} {clean(warning['hint'])}"
    for found in job["acknowledgements"]:
        yield "acknowledged", _acknowledged(found)


def _how_to_acknowledge(job: Mapping[str, Any], stall: Mapping[str, Any]) -> str:
    choices = " or ".join(f"--choice {one_line(choice)}" for choice in stall["choices"])
    return f'sluice acknowledge {job["id"]} {one_line(stall["type"])} {choices} --reason "…"'


def _acknowledged(found: Mapping[str, Any]) -> str:
    told = f"{found['cause']} ({found['choice']}) {_age(found['at_ms'])} ago by {found['by']}"
    lost = f"; not joined: {ranges(found['gaps'])}" if found["gaps"] else ""
    return one_line(f"{told}: {found['reason']}{lost}", 500)


def _dimensions(job: Mapping[str, Any]) -> Table:
    made = table("TABLE", "SNAPSHOT ROWS", "CHUNKS", "VERSION", "LAG", "WATERMARKS")
    for dimension in job["dimensions"]:
        snapshot = dimension["snapshot"]
        about = "~" if snapshot["rows_total_is_estimate"] else ""
        made.add_row(
            clean(dimension["name"]),
            f"{number(snapshot['rows_done'])} of {about}{number(snapshot['rows_total'])}",
            f"{number(snapshot['chunks_done'])} of {number(snapshot['chunks_total'])}",
            number(dimension["changelog_version"]),
            number(dimension["lag_records"]),
            ", ".join(
                f"{channel['channel'].rpartition('/')[2]}: {_watermark(channel['watermark'])}"
                for channel in dimension["channels"]
            ),
        )
    return made


def _probe(probe: Mapping[str, Any]) -> Table:
    made = table("PROBE TOPIC", "HELD", "LAG", "JOINED", "MATCHED", "UNMATCHED", "DEAD LETTERS")
    names = ("held_records", "lag_records", "joined_records", "matched", "unmatched")
    counts = [number(probe[name]) for name in (*names, "dead_letters")]
    made.add_row(clean(probe["topic"]), *counts)
    return made


def table(*columns: str) -> Table:
    """An empty table; cells are text that `clean` or `one_line` has seen."""
    made = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in made.columns:
        column.overflow = "fold"
    return made


def facts_table(facts: Iterable[tuple[str, Text | str]]) -> Table:
    """Names and values, one pair a line."""
    made = Table.grid(padding=(0, 2))
    for name, value in facts:
        made.add_row(name, value)
    return made


def show(*renderables: Table | Text) -> None:
    """Print tables and texts: wide and without colours in a pipe."""
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if terminal else _PIPE_WIDTH,
        no_color=not terminal,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for renderable in renderables:
        with console.capture() as capture:
            console.print(renderable)
        for line in capture.get().splitlines():
            typer.echo(line.rstrip(), color=terminal)


def _state(job: Mapping[str, Any]) -> Text:
    state = job["state"]
    settled = (state, "STOPPED" if state == "FINISHED" else "RUNNING")
    wanted = "" if job["desired_state"] in settled else f" → {job['desired_state']}"
    return Text(state + wanted, style=_COLOURS.get(state, ""))


def _watermark(watermark: Mapping[str, Any]) -> str:
    timestamp_ms = watermark["timestamp_ms"]
    named = {_MINIMUM: "MIN", _MAXIMUM: "MAX"}.get(timestamp_ms, str(timestamp_ms))
    return f"{named} + processing time" if watermark["use_processing_time"] else named


def number(value: int | None) -> str:
    """A count with its thousands apart."""
    return "-" if value is None else f"{value:,}"


def instant(at_ms: int) -> str:
    """A time in UTC, to the millisecond."""
    at = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def ranges(gaps: Sequence[Mapping[str, Any]]) -> str:
    """Offsets by partition, each to the one behind the last; the first few."""
    told = [f"partition {gap['partition']}: {gap['from']} to {gap['to']}" for gap in gaps]
    more = f" and {len(gaps) - _RANGES} more" if len(gaps) > _RANGES else ""
    return ", ".join(told[:_RANGES]) + more


def _age(at_ms: int) -> str:
    seconds = max(0, int(time.time() - at_ms / 1000))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
