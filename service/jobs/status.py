"""A runner's report of its job: state, progress, and reasons for waiting."""

import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from joins.dimension.dimension import DimensionRuntime
from joins.durable.requests import SOURCE, Fault
from joins.job.opening import OpeningView
from joins.job.temporal_join import TemporalJoin
from joins.kernels.changelog.digest import ChangelogState
from joins.plan.durations import duration_text
from joins.plan.errors import SnapshotUnprovenError
from joins.plan.stream_topics import FILES
from joins.source.coordinator import SourceCoordinator, SourceView, evidence_of
from service.jobs.inspect.event_waiting import part_name
from service.schemas.inspection import AcknowledgementView, StallView, WarningView
from service.schemas.jobs import (
    ChangelogChannelView,
    DimensionView,
    EmittedView,
    ErrorView,
    EventTimeView,
    OpenTransactionView,
    PositionView,
    ProbeView,
    RunnerReport,
    SnapshotView,
    StreamHistoryView,
    WatermarkView,
)
from service.schemas.verification import FreshnessView, HeldTableView, HoldingView, RepairedView
from watermark.freshness import GateState, last_effective
from watermark.gate import Phase
from watermark.model import PROCESSING_TIME, Watermark
from watermark.valve import ChannelState

_LONG_STEP_S = 15.0
_COMMAND = re.compile(r"(sluice jobs [a-z]+) JOB\b")
_MEANWHILE = "meanwhile records are joined with the rows that came before"


def _watermark(watermark: Watermark) -> WatermarkView:
    return WatermarkView(
        timestamp_ms=watermark.timestamp_ms, use_processing_time=watermark.use_processing_time
    )


def _channel(dimension: DimensionRuntime, channel: ChannelState) -> ChangelogChannelView:
    return ChangelogChannelView(
        channel=channel.channel,
        status=channel.status.name,
        watermark=_watermark(
            last_effective(channel.watermark, [_channel_time(dimension, channel)])
        ),
        aligned=channel.aligned,
    )


def _channel_time(dimension: DimensionRuntime, channel: ChannelState) -> Watermark | None:
    return dimension.channel_time(int(channel.channel.rpartition("/")[2]))


def _channels_of(dimension: DimensionRuntime, opening: OpeningView) -> list[ChannelState]:
    name = dimension.dimension.name
    return [each for each in opening.channels if each.channel.rpartition("/")[0] == name]


def _combined(join: TemporalJoin, opening: OpeningView) -> WatermarkView:
    times = [
        _channel_time(dimension, channel)
        for dimension in join.parts.dimensions
        for channel in _channels_of(dimension, opening)
    ]
    return _watermark(last_effective(opening.combined, times))


def _position(place: Mapping[str, int] | None) -> PositionView | None:
    return None if place is None else PositionView(**{"row": -1, **place})


def _snapshot(dimension: DimensionRuntime, source: SourceCoordinator) -> SnapshotView:
    view = source.view()
    is_topic, complete = dimension.dimension.source.kind == "topic", dimension.complete
    done = copied_rows(dimension.state, is_topic=is_topic)
    is_unknown = view is not None and not view.rows_total and is_topic
    estimate = None if is_unknown else max(0 if view is None else view.rows_total, done)
    return SnapshotView(
        rows_done=done,
        rows_total=done if complete else estimate,
        rows_total_is_estimate=not complete,
        chunks_done=view.chunks_done if view is not None else 0,
        chunks_total=view.chunks_total if view is not None else 0,
        is_copied=view is not None and view.is_copied,
    )


def copied_rows(state: ChangelogState, *, is_topic: bool) -> int:
    """Rows of the copy that are committed.

    A topic of plain rows has no snapshot records: its copy is what lies before the watermark of
    each partition, or what is committed where there is none yet.
    """
    if state.snapshot_rows or not is_topic or state.generation > 1:
        return state.snapshot_rows
    marks = {partition: offset for partition, (_, offset) in state.marks.items()}
    return sum({**state.next_offsets, **marks}.values())


def _emitted(dimension: DimensionRuntime, source: SourceCoordinator) -> EmittedView | None:
    view, progress = source.view(), source.progress
    written = progress.get("partitions")
    if view is None or written is None or progress.get("generation") != view.generation:
        return None
    offsets = {str(each["partition"]): each["offset"] for each in written}
    watermark = _watermark(last_effective(PROCESSING_TIME, [dimension.freshness.said()]))
    return EmittedView(watermark=watermark, generation=view.generation, offsets=offsets)


def _dimension(
    dimension: DimensionRuntime, source: SourceCoordinator, opening: OpeningView
) -> DimensionView:
    view = source.view()
    is_whole = dimension.complete and (view is None or _is_told(dimension, view))
    repaired = None if view is None else view.repaired
    name = dimension.dimension.name
    return DimensionView(
        name=name,
        snapshot=_snapshot(dimension, source),
        source=dimension.dimension.source.kind,
        source_version=view.version if view is not None else None,
        generation=view.generation if view is not None else 0,
        copied_because=source.copied_because,
        low=_position(view.low) if view is not None else None,
        high=_position(view.high) if view is not None else None,
        position=_position(source.progress.get("position")),
        changelog_version=dimension.version,
        fold_version=dimension.fold_version,
        index_version=dimension.keeper.ready_version,
        lag_records=dimension.lag_records(),
        streamed_records=dimension.counts.streamed_records,
        binlog_delay_ms=dimension.counts.delay_ms,
        evidence=evidence_of(view) if is_whole else None,
        waits_for=None if view is None else view.waits_for,
        emitted=_emitted(dimension, source),
        freshness=_freshness(dimension, source),
        repaired=None if repaired is None else RepairedView.model_validate(repaired),
        channels=[_channel(dimension, each) for each in _channels_of(dimension, opening)],
    )


def _freshness(dimension: DimensionRuntime, source: SourceCoordinator) -> FreshnessView:
    ready = dimension.keeper.ready_version
    proof = dimension.proof(dimension.version if ready is None else ready)
    view = FreshnessView(
        answered_at_ms=dimension.freshness.answered_at_ms,
        max_staleness_ms=dimension.dimension.max_staleness_ms,
        waits_for=source.progress.get("freshness_waits_for"),
    )
    if proof is None:
        return view
    known = proof.as_json()
    return view.model_copy(
        update={
            "as_of_ms": known.pop("time_ms"),
            "age_ms": max(0, time.time_ns() // 1_000_000 - proof.time_ms),
            **known,
        }
    )


def _holding(join: TemporalJoin) -> HoldingView | None:
    holding, now_ms = join.staleness.holding, time.time_ns() // 1_000_000
    if holding is None:
        return None
    tables = [
        HeldTableView(table=each.table, bound_ms=each.bound_ms, time_ms=each.time_ms)
        for each in holding.tables
    ]
    return HoldingView(
        state="RELEASED" if holding.state is GateState.RELEASED else "HOLDING",
        since_ms=holding.since_ms,
        tables=tables,
        released_until_ms=holding.released_until_ms,
        text=holding.text(now_ms),
    )


def _faults(join: TemporalJoin, opening: OpeningView, *, stall: bool) -> list[tuple[str, Fault]]:
    """The faults that stall the job, or those that only keep a later copy from being complete.

    Once the gate is open, an unproven snapshot is a later copy, which no record waits for.
    """

    def stalls(fault: Fault) -> bool:
        return opening.phase is not Phase.JOIN or fault.type != SnapshotUnprovenError.fault

    return [each for each in join.parts.stalls.all() if stalls(each[1]) is stall]


def _state(join: TemporalJoin, opening: OpeningView) -> str:
    if _faults(join, opening, stall=True):
        return "STALLED"
    if opening.phase is Phase.JOIN or not join.parts.dimensions:  # nothing is copied first
        return "JOINING"
    views = [source.view() for source in join.parts.sources]
    copied = all(view is not None and view.is_copied for view in views)
    return "CATCHING_UP" if copied else "SNAPSHOT"


def _reason(join: TemporalJoin, opening: OpeningView) -> str:
    faults = _faults(join, opening, stall=True)
    if faults:
        part, error = faults[0]
        return f"{part_name(part)}: {error.message}. {error.hint}{_meanwhile(join, opening)}"
    holding = _holding(join)
    if holding is not None:
        return holding.text
    if opening.phase is Phase.JOIN:
        return _why_joining(join)
    waiting = [d for d in join.parts.dimensions if not d.complete]
    if not waiting:
        return (
            "every channel is in processing time; the index of the opening version is being built"
        )
    return "; ".join(_why_waiting(join, dimension) for dimension in waiting)


def _meanwhile(join: TemporalJoin, opening: OpeningView) -> str:
    parts = [part for part, _ in join.parts.stalls.all()]
    goes_on = opening.phase is Phase.JOIN and all(part.startswith(SOURCE) for part in parts)
    return f" {_MEANWHILE.capitalize()}." if goes_on and join.event is None else ""


def _open_transactions(join: TemporalJoin) -> list[OpenTransactionView]:
    now_ms, topics = time.time_ns() // 1_000_000, join.control.lives.current.topics
    held = join.progress.transactions.held
    return [OpenTransactionView.model_validate(each.as_json(topics, now_ms)) for each in held]


def _why_joining(join: TemporalJoin) -> str:
    copied = [text for d in join.parts.dimensions if (text := _copied_again(join, d))]
    done = "; ".join(copied) or "every snapshot is complete and committed"
    held = _open_transactions(join)
    if held:
        more = f", and {len(held) - 1} more" if len(held) > 1 else ""
        return f"{done}; {held[0].text}{more}"
    if join.parts.plan.shared_table is not None:
        return f"{done}; changes are committed as they come"
    if join.event is None:
        return f"{done}; {_MEANWHILE if copied else 'records are joined as they come'}"
    waits_for = None if join.event.view is None else join.event.view.waits_for()
    first = f"{done}; " if join.parts.dimensions else ""
    return first + ("records go as watermarks let them" if waits_for is None else waits_for["text"])


def _copied_again(join: TemporalJoin, dimension: DimensionRuntime) -> str | None:
    view = _source_of(join, dimension).view()
    if view is None or _is_told(dimension, view):
        return None
    name, because = dimension.dimension.name, _source_of(join, dimension).copied_because
    again = copied_again(name, view.generation, because)
    return again if view.waits_for is None else f"{again}; {view.waits_for}"


def copied_again(table: str, generation: int, because: str | None) -> str:
    again = f'table "{table}" is copied again (generation {generation})'
    return again if because is None else f"{again}: {because}"


def _is_told(dimension: DimensionRuntime, view: SourceView) -> bool:
    return dimension.complete and dimension.state.generation >= view.generation


def _source_of(join: TemporalJoin, dimension: DimensionRuntime) -> SourceCoordinator:
    pairs = zip(join.parts.sources, join.parts.dimensions, strict=True)
    return next(source for source, one in pairs if one is dimension)


def _why_waiting(join: TemporalJoin, dimension: DimensionRuntime) -> str:
    name = dimension.dimension.name
    source = _source_of(join, dimension)
    progress = _snapshot(dimension, source)
    view = source.view()
    if view is None:
        return f'waiting for table "{name}": its source is being checked'
    if view.waits_for is not None:
        return f'waiting for table "{name}": {view.waits_for}'
    if not view.is_copied:
        about = "about " if progress.rows_total_is_estimate else ""
        of = "" if progress.rows_total is None else f" of {about}{progress.rows_total:,}"
        return f'waiting for table "{name}": {progress.rows_done:,}{of} snapshot rows are committed'
    return (
        f'waiting for table "{name}": the snapshot is read, {progress.rows_done:,} rows of it '
        "are committed; the watermark follows once all changes up to HIGH are committed"
    )


def _warnings(join: TemporalJoin, opening: OpeningView, job_id: str) -> list[WarningView]:
    of_sources = (each for source in join.parts.all_sources for each in source.warnings())
    warnings = [*join.progress.warnings(), *of_sources]
    unproven = [
        WarningView(
            type=fault.type,
            message=f"{fault.message}; {_MEANWHILE}",
            hint=f'{fault.hint} (sluice acknowledge {job_id} {fault.type} --reason "…")',
        )
        for _, fault in _faults(join, opening, stall=False)
    ]
    return [
        *(WarningView.model_validate(each) for each in warnings),
        *unproven,
        *_conditions(join),
    ]


def _conditions(join: TemporalJoin) -> list[WarningView]:
    faults = [
        WarningView(
            type="upkeep-slow" if each.error is None else "upkeep-failing",
            message=each.text,
            hint=each.hint,
        )
        for each in join.upkeep.conditions()
    ]
    if join.staleness.is_unreachable:
        faults.append(
            WarningView(
                type="staleness-unreachable",
                message="records wait for moments again and again: join.max-staleness "
                f"({_bounds_text(join)}) is below the freshness that this machine reaches "
                f"({_measured_text(join)})",
                hint="Raise join.max-staleness, or lower SLUICE_FRESHNESS_INTERVAL_S.",
            )
        )
    activity = join.reporter.activity
    lasts_s = time.monotonic() - activity.since_s
    if activity.step is None or lasts_s < _LONG_STEP_S:
        return faults
    text = f"{activity.step}, for {lasts_s:.0f} s"
    return [*faults, WarningView(type="long-step", message=text, hint="Wait until it is done.")]


def _bounds_text(join: TemporalJoin) -> str:
    bounds = sorted(join.staleness.bounds_ms.items())
    return ", ".join(f"{name} {duration_text(bound_ms)}" for name, bound_ms in bounds)


def _measured_text(join: TemporalJoin) -> str:
    pairs = zip(join.parts.dimensions, join.parts.sources, strict=True)
    ages = {d.dimension.name: _freshness(d, source).age_ms for d, source in pairs}
    known = {name: age for name, age in ages.items() if age is not None}
    return ", ".join(f"{name} {age_ms / 1000:.1f} s" for name, age_ms in sorted(known.items()))


def report_of(join: TemporalJoin, *, job_id: str, pid: int, started_at_ms: int) -> RunnerReport:
    # reads better long: one document, field by field
    opening, choice = join.parts.opening.view(), join.parts.writer_choice()
    stalls = _faults(join, opening, stall=True)
    view = None if join.event is None else join.event.view
    pairs = zip(join.parts.dimensions, join.parts.sources, strict=True)
    return RunnerReport(
        job_id=job_id,
        pid=pid,
        epoch=join.parts.meta.epoch,
        plan=join.parts.plan.number,
        state=_state(join, opening),
        phase=opening.phase.value,
        reason=_reason(join, opening),
        updated_at_ms=time.time_ns() // 1_000_000,
        started_at_ms=started_at_ms,
        opened_at_ms=opening.opened_at_ms,
        held_at_open=opening.held_at_open,
        dimensions=[_dimension(d, s, opening) for d, s in pairs],
        combined_watermark=_combined(join, opening),
        holding=_holding(join),
        probe=_probe(join, is_loading=opening.phase is not Phase.JOIN),
        event_time=None if view is None else EventTimeView.model_validate(view.as_json()),
        writer=None if choice is None else choice.writer.value,
        writer_reason=None if choice is None else choice.reason,
        versions_at_open=dict(opening.versions_at_open),
        versions={d.dimension.name: d.version for d in join.parts.dimensions},
        error=error_of(stalls[0][1]) if stalls else None,
        stalls=[
            StallView(part=part, **error_of(each).model_dump(), choices=list(each.choices))
            for part, each in stalls
        ],
        warnings=_warnings(join, opening, job_id),
        acknowledgements=[
            AcknowledgementView.model_validate(each)
            for each in sorted(
                [
                    *join.control.lives.acknowledgements(),
                    *join.staleness.acknowledgements(),
                    *(each for one in join.parts.sources for each in one.acknowledgements()),
                ],
                key=lambda record: int(record["at_ms"]),
            )
        ],
    )


def _probe(join: TemporalJoin, *, is_loading: bool) -> ProbeView:
    progress = join.progress
    committed, ends = progress.committed, progress.ends
    counts, newest = committed.counts, committed.newest
    known = ends.at_ms is not None
    unread = progress.held().held_records if known else None
    life = join.control.lives.current
    places = life.topics.places
    settled = join.letter_replays.settled()
    return ProbeView(
        topic=life.topics.text,
        topics=list(life.topics.read_names),
        history=_history(join),
        start_offsets=places(join.parts.meta.probe_start_offsets),
        next_offsets=places(life.topics.read_of(progress.next_offsets)),
        end_offsets=places(ends.end_offsets if known else {}),
        ends_at_ms=ends.at_ms,
        bounded_offsets=None if life.end_offsets is None else places(life.end_offsets),
        held_records=unread if is_loading else 0,
        held_bytes=ends.held_bytes if known and is_loading else None,
        lag_records=unread,
        held_is_upper_bound=join.parts.generator is None,
        open_transactions=_open_transactions(join),
        batch=counts.batch,
        joined_records=counts.joined,
        matched=counts.matched if join.parts.dimensions else None,
        unmatched=counts.unmatched if join.parts.dimensions else None,
        dead_letters=counts.dead_letters,
        open_dead_letters=max(0, counts.dead_letters - settled.replayed - settled.discarded),
        replayed_dead_letters=settled.replayed,
        discarded_dead_letters=settled.discarded,
        records_per_s=progress.pace.records_per_s(time.monotonic()),
        rows_per_s=progress.pace.rows_per_s(time.monotonic()),
        batch_ms=progress.pace.batch_ms,
        latency_ms=progress.pace.latency_ms,
        batch_stages_ms=dict(committed.stages_ms),
        freshness_ms={} if newest is None else newest.freshness_ms(),
    )


def _history(join: TemporalJoin) -> StreamHistoryView | None:
    topics, progress = join.control.lives.current.topics, join.progress
    if topics.history is None:
        return None
    rows, pace = topics.history.rows, progress.pace.records_per_s(time.monotonic())
    read = min(rows, progress.next_offsets.get(FILES, 0))
    left_s = math.ceil((rows - read) / pace) if pace and read < rows else None
    place = topics.place(FILES)
    return StreamHistoryView(place=place, rows=rows, rows_read=read, seconds_left=left_s)


def error_of(fault: Fault) -> ErrorView:
    return ErrorView(type=fault.type, message=fault.message, hint=fault.hint, detail=fault.detail)


def of_job(status: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    """`status` with the job's id in place of JOB in the commands of its hints."""

    def named(text: str) -> str:
        return _COMMAND.sub(rf"\1 {job_id}", text)

    shown = {**status, "reason": named(status["reason"])}
    if shown.get("error"):
        shown["error"] = {**shown["error"], "hint": named(shown["error"]["hint"])}
    if "stalls" in shown:
        shown["stalls"] = [{**stall, "hint": named(stall["hint"])} for stall in shown["stalls"]]
    return shown


def notes_on(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Changes of a job's parts between two reports, as notes for its history."""
    generations = {each["name"]: each["generation"] for each in before.get("dimensions", ())}
    for each in now.get("dimensions", ()):
        if 0 < generations.get(each["name"], 0) < each["generation"]:
            yield copied_again(each["name"], each["generation"], each.get("copied_because"))
    repairs = {each["name"]: each.get("repaired") for each in before.get("dimensions", ())}
    for each in now.get("dimensions", ()):
        repaired = each.get("repaired")
        if repaired is not None and repaired != repairs.get(each["name"]):
            yield (
                f'table "{each["name"]}" was repaired: {repaired["written"]} rows sent again, '
                f"{repaired['deleted']} deleted"
            )
    if before.get("state") != now["state"]:
        return  # the transition reports it
    stalled, stalls = (
        {stall["part"]: stall["message"] for stall in report.get("stalls", ())}
        for report in (before, now)
    )
    begun = ((part_name(part), text) for part, text in stalls.items() if part not in stalled)
    yield from (f"{name}: {text}" for name, text in begun)
    yield from (f"{part_name(part)} goes on" for part in stalled if part not in stalls)
