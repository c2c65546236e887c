"""Jobs as text: a list, one job, and progress bars."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from service.cli.output import (
    brief,
    clean,
    facts_table,
    instant,
    number,
    one_line,
    ranges,
    span,
    table,
)
from service.jobs.inspect.event_waiting import part_name, shown_time
from service.jobs.store.job import JobState

if TYPE_CHECKING:  # models are slow to load, and only answers bring them
    from service.schemas.inspection import AcknowledgementView
    from service.schemas.jobs import (
        DimensionView,
        EventTimeView,
        JobDetail,
        JobSummary,
        ListedJob,
        ProbeView,
        SnapshotView,
        StreamHistoryView,
        WatermarkView,
    )
    from service.schemas.progress import WaitReport
    from service.schemas.verification import FreshnessView, VerifiedView

_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}
_TROUBLE = ("bad", "warn", "letters", "busy", "good", "rest")  # order of lists
_WELL = ("good", "rest")  # their conditions are of no use to a reader
_SHORT_ID = 8
_HEADS = ("ID", "NAME", "STATE", "SINCE")
_NUMBERS = ("REC/S", "WAITING", "AS OF", "DEAD")
_CUT = {"NAME": 20, "STATE": 26, "OUTPUT": 20}  # maximum widths
_FOR_RATES, _FOR_OUTPUT = 80, 108  # columns of a terminal
_WHOLE = 10_000  # characters of a reason in a pipe
_BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """Progress of a copy or a bounded stream; `total` is None while unknown."""

    name: str
    done: int
    total: int | None
    text: str


def jobs_table(jobs: Sequence["ListedJob"], *, width: int | None) -> Table:
    """A table of jobs, those in trouble first.

    With the `width` of a terminal ids are shortened, and each job is one line with the columns that
    fit; without it nothing is cut.
    """
    has_rates, has_output = (width is None or width >= least for least in (_FOR_RATES, _FOR_OUTPUT))
    heads = [*_HEADS, *(_NUMBERS if has_rates else ()), *(("OUTPUT",) if has_output else ())]
    made = table(*heads, "REASON")
    ordered = by_trouble(jobs)
    ids = [job.id for job in ordered]
    shown = ids if width is None else short_ids(ids)
    for job, job_id in zip(ordered, shown, strict=True):
        cells: list[Text | str] = [job_id, one_line(job.name), state(job), since(job)]
        if has_rates:
            numbers = (brief(job.records_per_s), brief(job.waiting_records))
            cells += (*numbers, as_of(job.as_of_ms), brief(job.letters_to_settle))
        cells += (one_line(sinks(job)),) if has_output else ()
        made.add_row(*cells, one_line(reason(job), _WHOLE))
    for column in made.columns:
        column.justify = "right" if column.header in _NUMBERS else "left"
    if width is not None:
        _fit(made)
    return made


def by_trouble(jobs: Iterable["ListedJob"]) -> list["ListedJob"]:
    """Failed jobs, then those that wait, have dead letters, are on their way, run, are at rest."""

    def rank(job: "ListedJob") -> int:
        tone = "good" if job.status is None else job.status.tone
        return _TROUBLE.index("letters" if tone == "good" and job.letters_to_settle else tone)

    return sorted(jobs, key=rank)


def reason(job: "JobSummary") -> str:
    return job.reason if job.status is None else job.status.sentence


def since(job: "JobSummary") -> str:
    return "-" if job.status is None else age(job.status.since_ms)


def _fit(made: Table) -> None:
    """Keep each job on one line; the reason gets the remaining width."""
    for column in made.columns:
        column.no_wrap = True
        if column.header in _CUT:
            column.max_width, column.overflow = _CUT[str(column.header)], "ellipsis"
        elif column.header != "REASON":  # keep its width; others are cut first
            column.min_width = max((len(str(cell)) for cell in column.cells), default=0)
    made.columns[-1].overflow, made.columns[-1].ratio = "ellipsis", 1
    made.expand = True


def short_ids(ids: Sequence[str]) -> list[str]:
    """Unique prefixes of `ids`, all of one length."""
    length = _SHORT_ID
    while len({job_id[:length] for job_id in ids}) < len(ids):
        length += 1
    return [job_id[:length] for job_id in ids]


def job_parts(job: "JobDetail", explanation: "WaitReport | None" = None) -> list[RenderableType]:
    """One job: its state, what it waits for, its tables and its stream."""
    parts: list[RenderableType] = [facts_table(_facts(job))]
    is_well = job.status is not None and job.status.tone in _WELL
    if explanation is not None and explanation.waiting and not is_well:
        parts += [Text(""), _waits(explanation)]
    if job.dimensions:
        parts += [Text(""), _dimensions(job)]
    return parts


def bars(job: "JobDetail") -> list[Bar]:
    """Progress: the copies, then files before a stream, or its end."""
    if job.phase != "JOIN":
        return [_copy(dimension) for dimension in job.dimensions]
    probe = job.probe
    if probe and probe.history and probe.history.rows_read < probe.history.rows:
        return [_files(probe.history)]
    if not probe or not probe.bounded_offsets:
        return []
    starts, ends = probe.start_offsets, probe.bounded_offsets
    total = sum(max(0, end - starts.get(name, 0)) for name, end in ends.items())
    done = sum(
        max(0, min(probe.next_offsets.get(name, 0), end) - starts.get(name, 0))
        for name, end in ends.items()
    )
    text = f"{number(done)} of {number(total)} records"
    return [Bar(_stream(probe), done, total, text)]


def _files(history: "StreamHistoryView") -> Bar:
    left = "" if history.seconds_left is None else f", about {number(history.seconds_left)} s left"
    text = f"{number(history.rows_read)} of {number(history.rows)} rows of files{left}"
    return Bar(one_line(history.place), history.rows_read, history.rows, text)


def _copy(dimension: "DimensionView") -> Bar:
    snapshot = dimension.snapshot
    return Bar(one_line(dimension.name), snapshot.rows_done, snapshot.rows_total, _rows(snapshot))


def _rows(snapshot: "SnapshotView") -> str:
    about = "about " if snapshot.rows_total_is_estimate else ""
    total = snapshot.rows_total
    of_total = "" if total is None else f" of {about}{number(total)}"
    return f"{number(snapshot.rows_done)}{of_total} rows"


def bars_grid(progress: Sequence[Bar]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for bar in progress:
        drawn = ProgressBar(
            total=None if bar.total is None else max(bar.total, 1),
            completed=bar.done,
            width=_BAR_WIDTH,
        )
        grid.add_row(bar.name, drawn, bar.text)
    return grid


def _facts(job: "JobDetail") -> Iterable[tuple[str, Text | str]]:
    yield "job", f"{job.id} ({clean(job.name)})"
    yield "state", Text.assemble(state(job), f", for {since(job)}")
    yield "reason", clean(reason(job))
    if job.status is not None and job.status.remedy:
        yield "remedy", clean(job.status.remedy)
    yield from _troubles(job)
    yield "phase", f"{job.phase or '-'} ({job.state})"
    runner = job.runner
    alive = f"process {runner.pid}" if runner.alive else "not running"
    yield "runner", f"{alive}, crashes {runner.crashes}, restarts {runner.restarts}"
    if runner.restart_at_ms is not None:
        yield "next start", instant(runner.restart_at_ms)
    yield from _sinks(job)
    if job.combined_watermark and (job.dimensions or job.phase != "JOIN"):
        yield "watermark", watermark(job.combined_watermark)
    if job.probe:
        yield from _probe(job.probe)
    yield from _wholeness(job)
    for dimension in job.dimensions:
        if dimension.freshness is not None:
            yield "table", _fresh(dimension.name, dimension.freshness)
        if dimension.verified is not None:
            yield "verified", _verified(dimension.name, dimension.verified)
    if job.report and not job.report.is_live:
        why = "runner not responding" if runner.alive else "the runner's last report"
        yield "as of", f"{instant(job.report.at_ms)} ({why})"
    if job.event_time:
        yield "event time", _event_time(job.event_time)
    for warning in job.warnings:
        yield "warning", f"{clean(warning.message)} {clean(warning.hint)}"
    for acknowledgement in job.acknowledgements:
        yield "acknowledged", _acknowledged(acknowledgement)


def _verified(name: str, verified: "VerifiedView") -> str:
    part = "" if verified.sample == 1 else f", {verified.sample:.0%} of the chunks"
    result = "equal" if not verified.differences else f"{number(verified.differences)} differences"
    return f"{name} {result} at {instant(verified.at_ms)}, {number(verified.rows)} rows{part}"


def _fresh(name: str, freshness: "FreshnessView") -> str:
    shown = f"{name} as of {as_of(freshness.as_of_ms)}"
    if freshness.offset_ms is not None and freshness.kind == "position":
        side = "ahead" if freshness.offset_ms > 0 else "behind"
        shown += f" (its clock is {abs(freshness.offset_ms)} ms {side}, ±{freshness.within_ms} ms)"
    why = "" if freshness.waits_for is None else f"; {freshness.waits_for}"
    return one_line(shown + why, 500)


def _wholeness(job: "JobDetail") -> Iterable[tuple[str, str]]:
    """Evidence that topic tables are complete, or what is missing."""
    for dimension in job.dimensions:
        if dimension.waits_for is not None:
            yield "waits for", one_line(f"{dimension.name}: {dimension.waits_for}", 500)
        elif dimension.source == "topic" and dimension.evidence is not None:
            by = dimension.evidence.replace("_", " ")
            yield "complete", one_line(f"{dimension.name}, by {by}", 500)


def _sinks(job: "JobDetail") -> Iterable[tuple[str, str]]:
    for sink in job.sinks:
        place = "" if sink.place is None else f", {sink.place}"
        yield "sink", one_line(f"{sink.table} ({sink.connector}{place})", 500)
    if job.writer:
        why = f" ({clean(job.writer_reason)})" if job.writer_reason else ""
        yield "writer", f"{clean(job.writer)}{why}"


def _troubles(job: "JobDetail") -> Iterable[tuple[str, str]]:
    if job.error and job.error.detail:
        yield "detail", one_line(job.error.detail, 300)
    for stall in job.stalls[1:]:  # the first is reason and remedy
        yield "also", clean(f"{part_name(stall.part)}: {stall.message} {stall.hint}")
    for stall in job.stalls:
        if stall.choices:
            choices = " or ".join(f"--choice {one_line(choice)}" for choice in stall.choices)
            cause = f"{job.id} {one_line(stall.type)}"
            yield "to go on", f'sluice acknowledge {cause} {choices} --reason "…"'


def _probe(probe: "ProbeView") -> Iterable[tuple[str, str]]:
    held, lag = (_at_most(probe, count) for count in (probe.held_records, probe.lag_records))
    yield "stream", f"{_stream(probe)}: {held} held, lag {lag}"
    for transaction in probe.open_transactions:
        yield "waits for", one_line(transaction.text, 500)
    rows, matched = number(probe.joined_records), probe.matched
    if matched is not None:  # a table is joined
        rows += f", from {number(matched)} matched and {number(probe.unmatched)} unmatched records"
    yield "rows out", rows
    yield "dead letters", _letters(probe)


def _stream(probe: "ProbeView") -> str:
    """The topic; for records that the job generates, their table in the script."""
    return one_line(probe.generated or probe.topic)


def _letters(probe: "ProbeView") -> str:
    settled = {"replayed": probe.replayed_dead_letters, "discarded": probe.discarded_dead_letters}
    more = "".join(f", {number(count)} {name}" for name, count in settled.items() if count)
    return f"{number(probe.letters_to_settle)} open{more}"


def _at_most(probe: "ProbeView", count: int | None) -> str:
    return f"at most {number(count)}" if count and probe.held_is_upper_bound else number(count)


def _event_time(time: "EventTimeView") -> str:
    waiting, late = number(time.waiting_rows), number(time.late_records)
    return f"watermark {shown_time(time.watermark_ms)}, {waiting} records waiting, {late} late"


def _acknowledged(entry: "AcknowledgementView") -> str:
    decision = f"{entry.cause} ({entry.choice}) {age(entry.at_ms)} ago by {entry.by}"
    lost = f"; not joined: {ranges(entry.gaps)}" if entry.gaps else ""
    return one_line(f"{decision}: {entry.reason}{lost}", 500)


def _waits(explanation: "WaitReport") -> Table:
    made = table("WAITS FOR", "WHAT TO DO")
    for condition in explanation.conditions:
        if condition.met is False:
            made.add_row(one_line(condition.evidence, 500), one_line(condition.hint or "-", 500))
    return made


def _dimensions(job: "JobDetail") -> Table:
    made = table("TABLE", "COPIED", "CHUNKS", "VERSION", "LAG", "COMPLETE CHANNELS")
    for dimension in job.dimensions:
        snapshot, channels = dimension.snapshot, dimension.channels
        complete = sum(channel.watermark.use_processing_time for channel in channels)
        made.add_row(
            one_line(dimension.name),
            _rows(snapshot),
            f"{number(snapshot.chunks_done)} of {number(snapshot.chunks_total)}",
            number(dimension.changelog_version),
            number(dimension.lag_records),
            f"{complete} of {len(channels)}",
        )
    return made


_WORDS = (
    *("catching up", "copying", "failed", "finished", "holding", "paused", "removing"),
    *("running", "stalled", "starting", "stopped", "stopping", "waiting"),
)


def checked_states(names: list[str] | None) -> list[str]:
    """States as people write them; raises typer.BadParameter for another word."""
    states = [name.lower().replace("_", " ") for name in names or ()]
    for name in states:
        if name not in _WORDS and name.upper().replace(" ", "_") not in list(JobState):
            expected = ", ".join(_WORDS)
            raise typer.BadParameter(f'"{one_line(name)}" is no state, expected {expected}')
    return states


def is_in(job: "JobSummary", states: Sequence[str]) -> bool:
    """Whether the job has one of the states, as its word or by the runner's name."""
    word = state(job).plain.lower()
    named = job.state.lower().replace("_", " ")
    return any(name == named or word.startswith(name) for name in states)


def state(job: "JobSummary") -> Text:
    """The job's state in its word; an older control plane sends only its name."""
    if job.status is None:
        return Text(job.state)
    return Text(one_line(job.status.word), style=_COLOURS.get(job.status.tone, ""))


def as_of(as_of_ms: int | None) -> str:
    """How long ago a table was as it is now; a dash while unknown."""
    if as_of_ms is None:
        return "-"
    return f"{span(max(0, int(time.time() * 1000) - as_of_ms))} ago"


def sinks(job: "ListedJob") -> str:
    """The first sink with its connector, and the number of others."""
    if not job.sinks:
        return "-"
    first, more = job.sinks[0], len(job.sinks) - 1
    return f"{first.table} ({first.connector})" + (f" +{more}" if more else "")


def watermark(value: "WatermarkView") -> str:
    """A watermark's time, and whether it has switched to processing time."""
    clock = " + processing time" if value.use_processing_time else ""
    return shown_time(value.timestamp_ms) + clock


def age(at_ms: int) -> str:
    seconds = max(0, int(time.time() - at_ms / 1000))
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
