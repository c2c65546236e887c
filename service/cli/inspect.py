"""Commands that look into a job: `acknowledge`, `replay`, `explain-row`, `doctor`, `watermarks`."""

import getpass
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from joins.plan.durations import duration_ms, duration_text
from joins.plan.stream_topics import NAME, input_name
from service.cli.options import (
    Form,
    Job,
    Key,
    Server,
    Sink,
    Timeout,
    complete_job,
    open_client,
)
from service.cli.output import (
    OutputFormat,
    clock,
    facts_table,
    instant,
    number,
    one_line,
    or_dash,
    ranges,
    say,
    show,
    table,
    tell,
)
from service.cli.views import watermark
from service.errors import JobConflictError, SubmissionError, UnreachableError
from service.jobs.inspect.event_waiting import shown_time

if TYPE_CHECKING:
    from service.client import RemoteJob
    from service.schemas.inspection import (
        AcknowledgementView,
        BatchReplay,
        CheckReport,
        DimensionLookup,
        RowExplanation,
    )
    from service.schemas.jobs import EventTimeView, GeneratorView
    from service.schemas.progress import GateView, WatermarkReport


def watermarks(job: Job, server: Server = None, output: Form = OutputFormat.TABLE) -> None:
    """Show the watermark of each channel, the combined one, and waiting records."""
    with open_client(server) as client:
        tell(client.job(job).inspect.watermarks(), output, _show)


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
        names = (channel.dimension, channel.channel, _standing(channel.status, channel.aligned))
        made.add_row(*(one_line(name) for name in names), watermark(channel.watermark))
    return made


def _facts(report: "WatermarkReport") -> Iterable[tuple[str, str]]:
    yield "phase", report.phase or "-"
    if report.channels or not report.gate.open:
        yield "combined", "-" if report.combined is None else watermark(report.combined)
    yield "records", _gate(report.gate)
    for source in report.emitted:
        emitted = source.emitted
        text = "nothing yet" if emitted is None else watermark(emitted.watermark)
        yield "emitted", f"{text} by {one_line(source.dimension)}"
    if report.status_age_ms is not None:
        yield "reported", f"{number(report.status_age_ms)} ms ago"


def _gate(gate: "GateView") -> str:
    if not gate.open:
        return "held until every table is complete"
    if gate.holding is not None:
        return one_line(gate.holding.text, _LINE)
    at = "" if gate.opened_at_ms is None else f" since {instant(gate.opened_at_ms)}"
    held = gate.held_at_open
    if held is None:
        return f"joined{at}"
    return f"joined{at}, {f'at most {number(held)}' if held else 'none'} had been held"


def _event_time(time: "EventTimeView") -> Iterable[tuple[str, str]]:
    clock = ", and processing time" if time.use_processing_time else ""
    yield "event time", f"{shown_time(time.watermark_ms)}{clock}"
    for source in time.inputs:
        clock = " + processing time" if source.use_processing_time else ""
        text = f"{shown_time(source.watermark_ms)}{clock} of {one_line(input_name(source.input))}"
        yield "input", f"{text}, {one_line(source.status)}"
    oldest = time.oldest_waiting_ms
    since = "" if oldest is None else f", the oldest of {shown_time(oldest)}"
    yield "waiting", f"{number(time.waiting_rows)} records{since}"
    if time.window_watermark_ms is not None or time.window_rows:
        yield "windows", _windows(time)
    if time.late_rows is not None:
        late = time.late_rows
        text = f"{number(late.matched)} left with a match, {number(late.expired)} without one"
        yield "waited", f"{text}, {duration_text(late.wait_ms)} at most"
        if late.correct_ms is not None:
            bound = f"for {duration_text(late.correct_ms)} after that"
            yield "corrected", f"{number(late.corrected)} records, {bound}"
    yield "late", f"{number(time.late_records)} records"
    if time.waits_for is not None:
        yield "waits for", one_line(time.waits_for.text, 300)


def _windows(time: "EventTimeView") -> str:
    next_ms = time.next_window_ms
    ends = "none open" if next_ms is None else f"next one due at {shown_time(next_ms)}"
    fired, rows = number(time.fired_rows), number(time.window_rows)
    return f"{ends}; {fired} rows fired, {rows} rows of state"


def _standing(status: str, aligned: bool | None) -> str:
    """Idle and ended channels are never aligned: of those the status says enough."""
    return "NOT ALIGNED" if status == "ACTIVE" and aligned is False else status


def _promise(channel: "GeneratorView") -> str:
    if channel.use_processing_time:
        return "processing time"
    text, end = shown_time(channel.watermark_ms), channel.backlog_end
    return text if end is None else f"{text}, processing time from offset {number(end)} on"


def _generators(time: "EventTimeView") -> Table:
    made = table("INPUT", "PARTITION", "STATUS", "WATERMARK", "ACTIVE AT")
    for channel in time.channels:
        at_ms = channel.active_at_ms
        made.add_row(
            one_line(input_name(channel.input)),
            one_line(channel.channel.removeprefix(f"{channel.input}/")),
            one_line(_standing(channel.status, channel.aligned)),
            _promise(channel),
            "-" if at_ms is None else shown_time(at_ms),
        )
    return made


_LINE = 2000


def seconds_of(text: str) -> int:
    """The seconds of a duration such as `10 min`; typer.BadParameter if it is none."""
    milliseconds = duration_ms(text)
    if milliseconds is None or milliseconds % 1000:
        raise typer.BadParameter(f'"{text}" is no duration; write 30 s, 10 min, 2 h or 1 d')
    return milliseconds // 1000


_COORDINATES = re.compile(NAME + r"/\d{1,10}/\d{1,19}")
_RESULTS = {True: Text("ok"), False: Text("FAILED", style="red"), None: Text("unknown")}


def acknowledge(  # noqa: PLR0913 (options of a command)
    job: Job,
    cause: Annotated[str, typer.Argument(help="Cause, as shown by sluice jobs get.")],
    reason: Annotated[str, typer.Option(help="Reason (recorded).")],
    choice: Annotated[
        str | None, typer.Option(help="How to continue; default: the cause's first choice.")
    ] = None,
    lasts: Annotated[
        str | None,
        typer.Option("--for", help="Of cause stale: how long records pass, such as '10 min'."),
    ] = None,
    timeout: Timeout = 120.0,
    key: Key = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Decide how a stalled job continues. The decision and the loss are recorded."""
    basis = {"cause": cause, "choice": choice, "reason": reason, "by": operator()}
    decision = basis if lasts is None else {**basis, "for_s": seconds_of(lasts)}
    with open_client(server) as client:
        tell(
            client.job(job).acknowledge(decision, idempotency_key=key, timeout_s=timeout),
            output,
            _show_acknowledgement,
        )


def _show_acknowledgement(acknowledgement: "AcknowledgementView") -> None:
    shown = [
        (name, one_line(getattr(acknowledgement, name), _LINE))
        for name in ("cause", "choice", "reason", "by")
    ]
    shown.append(("not joined", ranges(acknowledgement.gaps) or "no offsets skipped"))
    show(facts_table(shown))


def replay(
    job: Job,
    batch: Annotated[
        int | None, typer.Option(help="Number of the batch; default: the newest.", min=0)
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="List the rows that differ.")] = False,
    sink: Sink = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Join a batch again and compare. Writes nothing, exits with 1 unless it is identical."""
    with open_client(server) as client:
        remote = client.job(job)
        number_of_batch = _newest_batch(remote) if batch is None else batch
        result = remote.inspect.replay_batch(number_of_batch, diff=diff, sink=sink)
    tell(result, output, _show_replay)
    if not result.identical:
        raise typer.Exit(1)


def _newest_batch(job: "RemoteJob") -> int:
    """The number of the newest committed batch; raises JobConflictError without one."""
    for batch in job.batches(most=5):
        if batch.committed:
            return batch.batch
    raise JobConflictError(
        f'job "{job.id}" has committed no batch yet',
        hint=f"Run sluice jobs get {job.id} to see what the job waits for.",
    )


def _show_replay(result: "BatchReplay") -> None:
    missing = result.records_missing
    facts: list[tuple[str, Text | str]] = [
        ("batch", number(result.batch)),
        *_insert_facts(result),
        ("identical", _verdict_text(result)),
        ("rows", f"{number(result.rows)}, expected {number(result.expected_rows)}"),
        ("digest", one_line(f"{result.committed_digest}, expected {result.digest}")),
    ]
    if missing:
        facts.append(("records gone", one_line(ranges(missing), _LINE)))
    if result.pin:
        facts.append(("versions", one_line(_compact(result.pin.get("versions")), _LINE)))
    show(facts_table(facts))
    if result.differences:
        rows = table("ROW", "TABLE", "PARTITION", "OFFSET", "EXPECTED", "FOUND")
        for row in result.differences:
            values = (one_line(_compact(value), 500) for value in (row.expected, row.actual))
            partition = or_dash(row.partition)
            named = partition if row.topic is None else one_line(f"{row.topic}/{partition}")
            place = (named, or_dash(row.offset))
            rows.add_row(one_line(row.kind), one_line(row.table or "-"), *place, *values)
        show(Text(""), rows)


def _verdict_text(result: "BatchReplay") -> str:
    if result.verdict == "nothing-to-compare":
        return "nothing to compare: the batch has no readable rows, dead letters or late records"
    return "yes" if result.identical else "NO"


def explain_row(
    job: Job,
    coordinates: Annotated[
        str,
        typer.Argument(help="topic/partition/offset; a generated stream goes by its table's name."),
    ],
    sink: Sink = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show what became of a record: its batch, its pin, and the table rows that it met."""
    if not _COORDINATES.fullmatch(coordinates):
        raise SubmissionError(
            f'"{coordinates}" is not a record, expected topic/partition/offset',
            hint="Use _topic, _partition and _offset of an output row.",
        )
    with open_client(server) as client:
        explanation = client.job(job).inspect.explain_row(coordinates, sink=sink)
    tell(explanation, output, lambda row: _show_row(row, coordinates))


def _show_row(explanation: "RowExplanation", coordinates: str) -> None:
    show(facts_table([("record", one_line(coordinates)), *_row_facts(explanation)]))
    for dimension in explanation.dimensions:
        name = f"{dimension.name} AS {dimension.alias}"
        about = f"{name}: {_versions(dimension)}, key {_compact(dimension.key)}"
        if dimension.as_of_ms is not None:
            about += f", joined with {dimension.name} as of {clock(dimension.as_of_ms)}"
        show(Text(""), Text(one_line(about, _LINE)))
        for row in tuple(dimension.rows) or ("no row has this key",):
            show(Text("  " + one_line(_compact(row), _LINE)))
        if dimension.rows_left_out:
            show(Text(f"  … and {number(dimension.rows_left_out)} more"))


def _versions(dimension: "DimensionLookup") -> str:
    text = f"version {number(dimension.version)}"
    if dimension.current_version is None:
        return f"{text}, not folded into current"
    equal = "equal to" if dimension.current_equal else "newer than"
    return f"{text}, {equal} version {number(dimension.current_version)} of current"


def _insert_facts(answer: "BatchReplay | RowExplanation") -> Iterable[tuple[str, str]]:
    if answer.insert is not None:
        yield "insert", one_line(f"{answer.insert} INTO {answer.sink_table}", _LINE)


def _row_facts(explanation: "RowExplanation") -> Iterable[tuple[str, str]]:
    yield from _insert_facts(explanation)
    for name in ("state", "reason", "batch", "committed_at_ms"):
        value = getattr(explanation, name)
        if value is not None:
            shown = instant(value) if name == "committed_at_ms" else value
            yield name.removesuffix("_at_ms"), one_line(shown, _LINE)
    if explanation.pin:
        yield "versions", one_line(_compact(explanation.pin.get("versions")), _LINE)
    yield from _event_facts(explanation.event_time or {})
    for name, value in (
        ("value", explanation.record),
        ("value base64", explanation.record_base64),
    ):
        if value is not None:
            yield name, one_line(value, _LINE)
    for row in explanation.output_rows:
        yield "output row", one_line(_compact(row), _LINE)
    if explanation.output_rows_left_out:
        yield "output row", f"… and {number(explanation.output_rows_left_out)} more"


def _event_facts(event_time: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if not event_time:
        return
    if event_time["rowtime_ms"] is not None:
        yield "rowtime", shown_time(event_time["rowtime_ms"])
    seen = event_time["watermark_at_arrival_ms"]
    yield "came in batch", f"{number(event_time['arrived_in_batch'])}, watermark {shown_time(seen)}"
    if event_time["released_in_batch"] is not None:
        by = f", watermark {shown_time(event_time['released_by_watermark_ms'])} behind it"
        if event_time["released_by_processing_time"]:
            by = ", in processing time"
        if event_time.get("late_rows"):
            by = f", {duration_text(event_time['late_rows']['waited_ms'])} after it came"
        yield "left in batch", f"{number(event_time['released_in_batch'])}{by}"
    for window in event_time["windows"]:
        fired = window["fired_in_batch"]
        state = "not fired" if fired is None else f"fired in batch {number(fired)}"
        if window["merges"]:
            state = "part of a session"
        span = f"{shown_time(window['start_ms'])} to {shown_time(window['end_ms'])}"
        yield "window", f"{span}, {state}"


def doctor(
    job: Annotated[
        str | None,
        typer.Argument(
            help="Id, unique prefix of an id, or name; default: the machine.",
            metavar="JOB",
            autocompletion=complete_job,
        ),
    ] = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Check a job, or the machine. Exits with 1 if a check fails."""
    with open_client(server) as client:
        try:
            report = client.doctor() if job is None else client.job(job).inspect.doctor()
        except UnreachableError as exc:
            if job is not None:
                raise
            report = _examine_here(exc)
    tell(report, output, _show_checks)
    if not report.ok:
        raise typer.Exit(1)


def _examine_here(unreached: UnreachableError) -> "CheckReport":
    from service.api.routes.inspection import (
        check_report,  # slow to load
    )
    from service.jobs.inspect.inspector import Inspector

    report = Inspector().ask(None, ["doctor"], timeout_s=60.0)
    first = {"name": "control plane", "ok": None, "detail": unreached.message}
    checks = [{**first, "hint": unreached.hint}, *report["checks"]]
    return check_report({"checks": checks})


def _show_checks(report: "CheckReport") -> None:
    rows = table("CHECK", "RESULT", "DETAIL")
    hints = []
    for check in report.checks:
        rows.add_row(one_line(check.name), _RESULTS[check.ok], one_line(check.detail, 500))
        if check.ok is not True and check.hint:
            hints.append(f"{one_line(check.name)}: {one_line(check.hint, 500)}")
    show(rows)
    for hint in hints:
        say(f"hint: {hint}")


def operator() -> str:
    try:
        return one_line(getpass.getuser(), 100)
    except (OSError, KeyError):
        return "unknown"


def _compact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
