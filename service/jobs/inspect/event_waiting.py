"""Conditions of event time for output: watermarks of channels, waiting records, windows.

The runner reports which channel holds the combined watermark back (`waits_for`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from joins.plan.durations import duration_text
from joins.plan.stream_topics import PROBE, input_name


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition for output.

    Attributes:
        name: stable, in kebab case, such as `gate-open`.
        about: the table, channel, topic or part; None for the whole job.
        met: None if unknown yet.
        evidence: observation with numbers, a sentence without a full stop.
        hint: None if the operator can only wait.
    """

    name: str
    about: str | None
    met: bool | None
    evidence: str
    hint: str | None = None


_MIN, _MAX = -(2**63), 2**63 - 1
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999
_IDLE_HINT = "Set 'scan.watermark.idle-timeout' on its table if it may stay without records."
_LATE_HINT = (
    "Let the table's watermark stay further behind its records, or allow lateness; "
    "'late-records.path' keeps what is late."
)
Document = Mapping[str, Any]


def event_time_conditions(job: Document) -> Iterator[Condition]:
    """The conditions of an event-time job in phase JOIN; none for other jobs."""
    time = job["event_time"]
    if time is None or job["phase"] != "JOIN":
        return
    if time.get("late_rows"):
        yield _late_rows(time)
        return
    for channel in time["channels"]:
        yield _channel(channel, is_needed=holds_rows(time))
    yield _released(time)
    if time["window_watermark_ms"] is not None or time["window_rows"]:
        yield _windows(time)
    yield _in_time(job, time)


def holds_rows(time: Document | None) -> bool:
    return time is not None and bool(time["waiting_rows"] or time["window_rows"])


def _channel(channel: Document, *, is_needed: bool) -> Condition:
    name, place = "channel-has-watermark", channel["channel"]
    named = f"{channel_name(channel['input'], place)} is"
    if channel.get("use_processing_time"):
        evidence = f"{named} in processing time: it does not hold the watermark back"
        return Condition(name, place, True, evidence)
    if channel["status"] == "ENDED":
        return Condition(name, place, True, f"{named} at its end: the others do not wait for it")
    if channel["status"] == "IDLE":
        evidence = f"{named} idle: the others do not wait for it"
        return Condition(name, place, True, evidence)
    if channel["watermark_ms"] is None:
        evidence = f"{named} not idle and has no watermark yet: no record has given one"
        hint = f"Write a record to it. {_IDLE_HINT}"
        return Condition(name, place, False if is_needed else None, evidence, hint)
    evidence = f"{named} not idle, its watermark is {shown_time(channel['watermark_ms'])}"
    if not channel["aligned"]:
        evidence += "; it counts again once it has caught up"
    return Condition(name, place, True, evidence)


def part_name(part: str) -> str:
    """A stalled part for people: the stream, a table, or a file of the job."""
    kind, _, table = part.partition(" ")
    return input_name(table or kind) if table or kind == PROBE else kind


def channel_name(name: str, channel: str) -> str:
    """A partition of an input, such as `partition 3 of the stream`."""
    return f"partition {channel.removeprefix(f'{name}/')} of {input_name(name)}"


def _released(time: Document) -> Condition:
    name, rows, cause = "rows-released", time["waiting_rows"], time["waits_for"]
    if cause is None or not rows:
        at = shown_time(time["watermark_ms"])
        evidence = f"{rows:,} records wait for the watermark, which is {at}" if rows else ""
        return Condition(name, None, True, evidence or "no record waits for a watermark")
    channel = next((c for c in time["channels"] if c["channel"] == cause["channel"]), None)
    evidence, hint = cause["text"].rstrip("."), None
    if channel is not None and channel["status"] != "IDLE":
        since, limit_ms = channel["active_at_ms"], channel["idle_timeout_ms"]
        quiet = "" if since is None else f", quiet since {shown_time(since)}"
        evidence += f"; the partition is not idle{quiet}"
        if wait_ms := channel.get("max_wait_ms"):
            hint = f"It follows the clock {duration_text(wait_ms)} after its newest record."
        else:
            hint = _IDLE_HINT if limit_ms is None else _idle_after(limit_ms)
    return Condition(name, cause["channel"], False, evidence, hint)


def _idle_after(limit_ms: int) -> str:
    idle = f"It is idle {duration_text(limit_ms)} after its newest record"
    return f"{idle}, then it no longer holds the watermark back."


def _late_rows(time: Document) -> Condition:
    """Waiting is usual: the bound ends it."""
    rows, late = time["waiting_rows"], time["late_rows"]
    tables = " and ".join(f'"{name}"' for name in late["tables"])
    evidence = f"no record waits for a row of {tables}"
    if rows:
        oldest = time["oldest_waiting_ms"]
        since = "" if oldest is None else f", the oldest since {shown_time(oldest)}"
        bound = f"{duration_text(late['wait_ms'])} at most"
        evidence = f"{rows:,} records wait for a row of {tables}, {bound}{since}"
    return Condition("rows-released", None, True, evidence)


def _windows(time: Document) -> Condition:
    name, fired, next_ms = "windows-fired", time["fired_rows"], time["next_window_ms"]
    if next_ms is None:
        evidence = f"{fired:,} rows have come out of windows, none is open"
        return Condition(name, None, True if fired else None, evidence)
    at = time["window_watermark_ms"]
    evidence = f"the next window is due at {shown_time(next_ms)}, the watermark is {shown_time(at)}"
    if fired:
        return Condition(name, None, True, f"{fired:,} rows have come out of windows; {evidence}")
    why = "" if time["waits_for"] is None else f"; {time['waits_for']['text'].rstrip('.')}"
    return Condition(name, None, False, f"no window has fired yet: {evidence}{why}")


def _in_time(job: Document, time: Document) -> Condition:
    name, late = "records-in-time", time["late_records"]
    if not late:
        return Condition(name, None, True, "no record was late so far")
    written = time["fired_rows"] or (job["probe"] or {}).get("joined_records")
    if written or holds_rows(time):
        return Condition(name, None, True, f"{late:,} records were late so far")
    evidence = f"{late:,} records were late so far, and no other has come"
    return Condition(name, None, False, evidence, _LATE_HINT)


def shown_time(at_ms: int | None) -> str:
    """An instant in UTC, to the second if it is whole; names for those outside the calendar."""
    if at_ms is None or at_ms == _MIN:
        return "not known yet" if at_ms is None else "MIN"
    if at_ms == _MAX:
        return "MAX (the stream has ended)"
    if not _FIRST_MS <= at_ms <= _LAST_MS:
        return f"{at_ms} ms"
    seconds, ms = divmod(at_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}.{ms:03} UTC" if ms else f"{text} UTC"
