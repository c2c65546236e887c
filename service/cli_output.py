"""What the commands print: data to standard output, talk to standard error, plain in a pipe."""

import json
import sys
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 240
_MINIMUM = -(2**63)
_MAXIMUM = 2**63 - 1
_COLOURS = {"JOINING": "green", "STALLED": "yellow", "FAILED": "red"}


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


def show_json(value: object) -> None:
    """One JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_jobs(jobs: Iterable[Mapping[str, Any]]) -> None:
    """A table of jobs."""
    table = _table("ID", "NAME", "STATE", "PHASE", "AGE", "REASON")
    for job in jobs:
        age = _age(job["created_at_ms"])
        phase = job["phase"] or "-"
        table.add_row(job["id"], clean(job["name"]), _state(job), phase, age, clean(job["reason"]))
    _print(table)


def show_job(job: Mapping[str, Any]) -> None:
    """One job: where it stands, its tables, its probe."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(job):
        facts.add_row(name, value)
    _print(facts)
    if job["dimensions"]:
        _print(Text(""), _dimensions(job))
    if job["probe"]:
        _print(Text(""), _probe(job["probe"]))


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
    if job["combined_watermark"]:
        yield "watermark", _watermark(job["combined_watermark"])
    for warning in job["warnings"]:
        yield "warning", clean(warning)


def _dimensions(job: Mapping[str, Any]) -> Table:
    table = _table("TABLE", "SNAPSHOT ROWS", "CHUNKS", "VERSION", "LAG", "WATERMARKS")
    for dimension in job["dimensions"]:
        snapshot = dimension["snapshot"]
        about = "~" if snapshot["rows_total_is_estimate"] else ""
        table.add_row(
            clean(dimension["name"]),
            f"{_number(snapshot['rows_done'])} of {about}{_number(snapshot['rows_total'])}",
            f"{_number(snapshot['chunks_done'])} of {_number(snapshot['chunks_total'])}",
            _number(dimension["changelog_version"]),
            _number(dimension["lag_records"]),
            ", ".join(
                f"{channel['channel'].rpartition('/')[2]}: {_watermark(channel['watermark'])}"
                for channel in dimension["channels"]
            ),
        )
    return table


def _probe(probe: Mapping[str, Any]) -> Table:
    table = _table("PROBE TOPIC", "HELD", "LAG", "JOINED", "MATCHED", "UNMATCHED", "DEAD LETTERS")
    names = ("held_records", "lag_records", "joined_records", "matched", "unmatched")
    counts = [_number(probe[name]) for name in (*names, "dead_letters")]
    table.add_row(clean(probe["topic"]), *counts)
    return table


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    return table


def _print(*renderables: Table | Text) -> None:
    terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if terminal else _PIPE_WIDTH,
        no_color=not terminal,
        force_terminal=terminal,
        highlight=False,
        markup=False,
    )
    for renderable in renderables:
        with console.capture() as capture:
            console.print(renderable)
        for line in capture.get().splitlines():
            typer.echo(line.rstrip(), color=terminal)


def _state(job: Mapping[str, Any]) -> Text:
    state = job["state"]
    wanted = "" if job["desired_state"] in (state, "RUNNING") else f" → {job['desired_state']}"
    return Text(state + wanted, style=_COLOURS.get(state, ""))


def _watermark(watermark: Mapping[str, Any]) -> str:
    timestamp_ms = watermark["timestamp_ms"]
    named = {_MINIMUM: "MIN", _MAXIMUM: "MAX"}.get(timestamp_ms, str(timestamp_ms))
    return f"{named} + processing time" if watermark["use_processing_time"] else named


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _age(at_ms: int) -> str:
    seconds = max(0, int(time.time() - at_ms / 1000))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
