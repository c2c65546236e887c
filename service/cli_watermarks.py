"""`sluice watermarks`: each channel's promise, and what the valve makes of all of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from service.cli_options import Form, Job, Server, open_client
from service.cli_output import (
    Output,
    facts_table,
    instant,
    number,
    one_line,
    show,
    show_json,
    table,
)
from service.cli_views import watermark


def watermarks(job: Job, server: Server = None, output: Form = Output.TABLE) -> None:
    """Show the watermark of each channel, and the combined one that opens the gate."""
    with open_client(server) as client:
        found = client.watermarks(client.find(job))
    if output is Output.JSON:
        show_json(found)
        return
    rows = table("TABLE", "CHANNEL", "STATUS", "WATERMARK")
    for channel in found["channels"]:
        status = channel["status"] if channel["aligned"] is not False else "NOT ALIGNED"
        names = (channel["dimension"], channel["channel"], status)
        rows.add_row(*(one_line(name) for name in names), watermark(channel["watermark"]))
    show(facts_table(_facts(found)), Text(""), rows)


def _facts(found: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "phase", found["phase"] or "-"
    yield "combined", "-" if found["combined"] is None else watermark(found["combined"])
    yield "gate", _gate(found["gate"])
    for source in found["emitted"]:
        emitted = source["emitted"]
        told = "nothing yet" if emitted is None else watermark(emitted["watermark"])
        yield "emitted", f"{told} by {one_line(source['dimension'])}"
    if found["status_age_ms"] is not None:
        yield "reported", f"{number(found['status_age_ms'])} ms ago"


def _gate(gate: Mapping[str, Any]) -> str:
    if not gate["open"]:
        return "closed"
    at = "" if gate["opened_at_ms"] is None else f" since {instant(gate['opened_at_ms'])}"
    held = gate["held_at_open"]
    return f"open{at}" + ("" if held is None else f", {number(held)} records were held")
