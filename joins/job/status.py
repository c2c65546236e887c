"""A job's status as JSON values: what it does, how far it is, and why it waits."""

import time
from collections.abc import Mapping
from typing import Any

from joins.dimension.dimension import DimensionRuntime
from joins.durable.stalls import SOURCE, Fault
from joins.job.opening import OpeningView
from joins.job.temporal_join import TemporalJoin
from joins.source.coordinator import SourceCoordinator, SourceView
from watermark.model import PROCESSING_TIME, Watermark
from watermark.phase import Phase
from watermark.valve import ChannelState

_MEANWHILE = "meanwhile records are joined with the rows that came before"


def watermark_json(watermark: Watermark) -> dict[str, Any]:
    """A watermark as the API shows it."""
    return {
        "timestamp_ms": watermark.timestamp_ms,
        "use_processing_time": watermark.use_processing_time,
    }


def _channel_json(channel: ChannelState) -> dict[str, Any]:
    return {
        "channel": channel.channel,
        "status": channel.status.name,
        "watermark": watermark_json(channel.watermark),
        "aligned": channel.aligned,
    }


def _position_json(place: Mapping[str, int] | None) -> dict[str, int] | None:
    """A position between two transactions; as a row's it would be before all of the next one."""
    return None if place is None else {"row": -1, **place}


def _snapshot_json(dimension: DimensionRuntime, source: SourceCoordinator) -> dict[str, Any]:
    view = source.view()
    done = dimension.state.snapshot_rows
    estimate = max(view.rows_total, done) if view is not None else 0
    complete = dimension.complete
    return {
        "rows_done": done,
        "rows_total": done if complete else estimate,
        "rows_total_is_estimate": not complete,
        "chunks_done": view.chunks_done if view is not None else 0,
        "chunks_total": view.chunks_total if view is not None else 0,
        "is_copied": view is not None and view.is_copied,
    }


def _emitted_json(source: SourceCoordinator) -> dict[str, Any] | None:
    """The watermark that the source has written last, by partition; None before, or unknown."""
    view, progress = source.view(), source.progress
    written = progress.get("partitions")
    if view is None or written is None or progress.get("generation") != view.generation:
        return None
    offsets = {str(each["partition"]): each["offset"] for each in written}
    watermark = watermark_json(PROCESSING_TIME)
    return {"watermark": watermark, "generation": view.generation, "offsets": offsets}


def _dimension_json(
    dimension: DimensionRuntime, source: SourceCoordinator, opening: OpeningView
) -> dict[str, Any]:
    view = source.view()
    is_whole = dimension.complete and (view is None or _is_told(dimension, view))
    name = dimension.dimension.name
    mine = [c for c in opening.channels if c.channel.rpartition("/")[0] == name]
    return {
        "name": name,
        "topic": dimension.places.topic,
        "changelog": str(dimension.places.changelog),
        "current": str(dimension.places.current),
        "snapshot": _snapshot_json(dimension, source),
        "source": dimension.dimension.source.kind,
        "source_version": view.version if view is not None else None,
        "generation": view.generation if view is not None else 0,
        "low": _position_json(view.low) if view is not None else None,
        "high": _position_json(view.high) if view is not None else None,
        "position": _position_json(source.progress.get("position")),
        "changelog_version": dimension.version,
        "fold_version": dimension.fold_version,
        "index_version": dimension.keeper.ready_version,
        "lag_records": dimension.lag_records(),
        "streamed_records": dimension.counts.streamed_records,
        "binlog_delay_ms": dimension.counts.delay_ms,
        "evidence": "in_band_watermark" if is_whole else None,
        "emitted": _emitted_json(source),
        "channels": [_channel_json(channel) for channel in mine],
    }


def _state(join: TemporalJoin, opening: OpeningView) -> str:
    if join.parts.stalls.first() is not None:
        return "STALLED"
    if opening.phase is Phase.JOIN or not join.parts.dimensions:  # nothing is copied first
        return "JOINING"
    views = [source.view() for source in join.parts.sources]
    copied = all(view is not None and view.is_copied for view in views)
    return "CATCHING_UP" if copied else "SNAPSHOT"


def _reason(join: TemporalJoin, opening: OpeningView) -> str:
    fault = join.parts.stalls.first()
    if fault is not None:
        part, error = fault
        return f"{part}: {error.message}. {error.hint}{_meanwhile(join, opening)}"
    if opening.phase is Phase.JOIN:
        return _why_joining(join)
    waiting = [d for d in join.parts.dimensions if not d.complete]
    if not waiting:
        return (
            "every channel is in processing time; the index of the opening version is being built"
        )
    return "; ".join(_why_waiting(join, dimension) for dimension in waiting)


def _meanwhile(join: TemporalJoin, opening: OpeningView) -> str:
    """What the other half of the join does while tables stand still; nothing if it stands, too."""
    parts = [part for part, _ in join.parts.stalls.all()]
    goes_on = opening.phase is Phase.JOIN and all(part.startswith(SOURCE) for part in parts)
    return f" {_MEANWHILE.capitalize()}." if goes_on and join.event is None else ""


def _open_transactions(join: TemporalJoin) -> list[dict[str, Any]]:
    now_ms = time.time_ns() // 1_000_000
    topic = join.parts.probe_kafka.topic
    return [held.as_json(topic, now_ms) for held in join.progress.transactions.held]


def _why_joining(join: TemporalJoin) -> str:
    """What happens to records; with event time, also whom they wait for."""
    copied = [text for d in join.parts.dimensions if (text := _copied_again(join, d))]
    done = "; ".join(copied) or "every snapshot is complete and committed"
    held = _open_transactions(join)
    if held:
        more = f", and {len(held) - 1} more" if len(held) > 1 else ""
        return f"{done}; {held[0]['text']}{more}"
    if join.event is None:
        return f"{done}; {_MEANWHILE if copied else 'records are joined as they come'}"
    waits_for = None if join.event.view is None else join.event.view.waits_for()
    first = f"{done}; " if join.parts.dimensions else ""
    return first + ("records go as watermarks let them" if waits_for is None else waits_for["text"])


def _copied_again(join: TemporalJoin, dimension: DimensionRuntime) -> str | None:
    """That a table of an open job is being copied again."""
    view = _source_of(join, dimension).view()
    if view is None or _is_told(dimension, view):
        return None
    return f'table "{dimension.dimension.name}" is copied again (generation {view.generation})'


def _is_told(dimension: DimensionRuntime, view: SourceView) -> bool:
    """Whether the copy that the source is at has been completed by its watermarks."""
    return dimension.complete and dimension.state.generation >= view.generation


def _source_of(join: TemporalJoin, dimension: DimensionRuntime) -> SourceCoordinator:
    pairs = zip(join.parts.sources, join.parts.dimensions, strict=True)
    return next(source for source, one in pairs if one is dimension)


def _why_waiting(join: TemporalJoin, dimension: DimensionRuntime) -> str:
    name = dimension.dimension.name
    source = _source_of(join, dimension)
    progress = _snapshot_json(dimension, source)
    view = source.view()
    if view is None:
        return f'waiting for table "{name}": its source is being checked'
    if not view.is_copied:
        about = "about " if progress["rows_total_is_estimate"] else ""
        return (
            f'waiting for table "{name}": {progress["rows_done"]:,} of {about}'
            f"{progress['rows_total']:,} snapshot rows are committed"
        )
    return (
        f'waiting for table "{name}": the snapshot is read, {progress["rows_done"]:,} rows of it '
        "are committed; the watermark follows once all changes up to HIGH are committed"
    )


def status_json(join: TemporalJoin, *, job_id: str, pid: int, started_at_ms: int) -> dict[str, Any]:
    """The whole status; ARCHITECTURE.md names the file that it is kept in."""
    # reads better long: one document, field by field, as the file has it.
    opening = join.parts.opening.view()
    fault = join.parts.stalls.first()
    held = join.progress.held()
    pairs = zip(join.parts.dimensions, join.parts.sources, strict=True)
    counts, newest = join.progress.counts, join.progress.newest
    bounds = join.control.lives.current.end_offsets
    known, loading = join.progress.ends_at_ms is not None, opening.phase is not Phase.JOIN
    view = None if join.event is None else join.event.view
    return {
        "job_id": job_id,
        "pid": pid,
        "epoch": join.parts.meta.epoch,
        "state": _state(join, opening),
        "phase": opening.phase.value,
        "reason": _reason(join, opening),
        "updated_at_ms": time.time_ns() // 1_000_000,
        "started_at_ms": started_at_ms,
        "opened_at_ms": opening.opened_at_ms,
        "held_at_open": opening.held_at_open,
        "dimensions": [_dimension_json(d, s, opening) for d, s in pairs],
        "combined_watermark": watermark_json(opening.combined),
        "probe": {
            "topic": join.parts.probe_kafka.topic,
            "topic_id": join.control.lives.current.topic_id,
            "life": join.control.lives.current.directory,
            "start_offsets": _by_partition(join.parts.meta.probe_start_offsets),
            "next_offsets": _by_partition(join.progress.next_offsets),
            "end_offsets": _by_partition(join.progress.end_offsets if known else {}),
            "ends_at_ms": join.progress.ends_at_ms,
            "bounded_offsets": None if bounds is None else _by_partition(bounds),
            "held_records": (held.held_records if known else None) if loading else 0,
            "held_bytes": join.progress.held_bytes if known and loading else None,
            "lag_records": held.held_records if known else None,
            "held_is_upper_bound": join.parts.generator is None,
            "open_transactions": _open_transactions(join),
            "batch": counts.batch,
            "joined_records": counts.joined,
            "matched": counts.matched if join.parts.dimensions else None,
            "unmatched": counts.unmatched if join.parts.dimensions else None,
            "dead_letters": counts.dead_letters,
            "late": counts.late,
            "fired": counts.fired,
            "waiting": 0 if view is None else view.state.waiting,
            "freshness_ms": {} if newest is None else newest.freshness_ms(),
        },
        "event_time": None if view is None else view.as_json(),
        **_writer_json(join),
        "versions_at_open": dict(opening.versions_at_open),
        "versions": {d.dimension.name: d.version for d in join.parts.dimensions},
        "error": None
        if fault is None
        else {"type": fault[1].type, "message": fault[1].message, "hint": fault[1].hint},
        "stalls": [_stall_json(part, stall) for part, stall in join.parts.stalls.all()],
        "warnings": join.progress.warnings(),
        "acknowledgements": join.control.lives.acknowledgements(),
    }


def _writer_json(join: TemporalJoin) -> dict[str, str | None]:
    """Who appends to the delta output, and why it is not the columnar writer."""
    choice = join.parts.writer_choice()
    if choice is None:
        return {"writer": None, "writer_reason": None}
    return {"writer": choice.writer.value, "writer_reason": choice.reason}


def _stall_json(part: str, fault: Fault) -> dict[str, Any]:
    """A fault; `choices` is empty unless it waits for an acknowledgement."""
    document = {"part": part, "type": fault.type, "message": fault.message, "hint": fault.hint}
    return {**document, "choices": list(fault.choices)}


def _by_partition(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}
