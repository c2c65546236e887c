"""`sluice watermarks`: each channel's promise, what is made of all of them, and what waits."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from service.cli.options import Form, Job, Server, open_client
from service.cli.output import (
    OutputFormat,
    facts_table,
    instant,
    number,
    one_line,
    show,
    table,
    tell,
)
from service.cli.views import watermark
from service.jobs.inspect.event_waiting import shown_time

if TYPE_CHECKING:
    from service.schemas.jobs import EventTimeView, GeneratorView
    from service.schemas.progress import GateView, WatermarkReport


def watermarks(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show the watermark of each channel, the combined one, and what waits for it."""
    with open_client(server) as client:
        report = client.job(job).watermarks()
    tell(report, output, _show)


def _show(report: "WatermarkReport") -> None:
    show(facts_table(_facts(report)))
    if report.channels or not report.gate.open:  # a job of windows has no tables
        show(Text(""), _channels(report))
    time = report.event_time
    if time is not None:
        show(Text(""), facts_table(_event_time(time)), Text(""), _generators(time))


def _channels(report: "WatermarkReport") -> Table:
    made = table("TABLE", "CHANNEL", "STATUS", "WATERMARK")
    for channel in report.channels:
        status = channel.status if channel.aligned is not False else "NOT ALIGNED"
        names = (channel.dimension, channel.channel, status)
        made.add_row(*(one_line(name) for name in names), watermark(channel.watermark))
    return made


def _facts(report: "WatermarkReport") -> Iterable[tuple[str, str]]:
    yield "phase", report.phase or "-"
    if report.channels or not report.gate.open:
        yield "combined", "-" if report.combined is None else watermark(report.combined)
    yield "gate", _gate(report.gate)
    for source in report.emitted:
        emitted = source.emitted
        text = "nothing yet" if emitted is None else watermark(emitted.watermark)
        yield "emitted", f"{text} by {one_line(source.dimension)}"
    if report.status_age_ms is not None:
        yield "reported", f"{number(report.status_age_ms)} ms ago"


def _gate(gate: "GateView") -> str:
    if not gate.open:
        return "closed"
    at = "" if gate.opened_at_ms is None else f" since {instant(gate.opened_at_ms)}"
    held = gate.held_at_open
    return f"open{at}" + ("" if held is None else f", at most {number(held)} records were held")


def _event_time(time: "EventTimeView") -> Iterable[tuple[str, str]]:
    clock = ", and processing time" if time.use_processing_time else ""
    yield "event time", f"{shown_time(time.watermark_ms)}{clock}"
    for source in time.inputs:
        clock = " + processing time" if source.use_processing_time else ""
        text = f"{shown_time(source.watermark_ms)}{clock} of {one_line(source.input)}"
        yield "input", f"{text}, {one_line(source.status)}"
    oldest = time.oldest_waiting_ms
    since = "" if oldest is None else f", the oldest of {shown_time(oldest)}"
    yield "waiting", f"{number(time.waiting_rows)} records{since}"
    if time.window_watermark_ms is not None or time.window_rows:
        yield "windows", _windows(time)
    yield "late", f"{number(time.late_records)} records"
    if time.waits_for is not None:
        yield "waits for", one_line(time.waits_for.text, 300)


def _windows(time: "EventTimeView") -> str:
    next_ms = time.next_window_ms
    ends = "none is open" if next_ms is None else f"the next one is due at {shown_time(next_ms)}"
    fired, rows = number(time.fired_rows), number(time.window_rows)
    return f"{ends}; {fired} rows have come out, {rows} rows of state"


def _promise(channel: "GeneratorView") -> str:
    """What the generator has said; until when it speaks of event time, if that is known."""
    if channel.use_processing_time:
        return "processing time"
    text, end = shown_time(channel.watermark_ms), channel.backlog_end
    return text if end is None else f"{text}, processing time from offset {number(end)} on"


def _generators(time: "EventTimeView") -> Table:
    made = table("INPUT", "PARTITION", "STATUS", "WATERMARK", "ACTIVE AT")
    for channel in time.channels:
        status = channel.status if channel.aligned else "NOT ALIGNED"
        at_ms = channel.active_at_ms
        made.add_row(
            one_line(channel.input),
            one_line(channel.channel.removeprefix(f"{channel.input}/")),
            one_line(status),
            _promise(channel),
            "-" if at_ms is None else shown_time(at_ms),
        )
    return made
