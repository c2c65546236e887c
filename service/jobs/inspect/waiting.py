"""Why a job has no output: all conditions for output, in order, and the unmet ones.

`explain_wait` is a pure function over the job as `GET /v1/jobs/{id}` shows it. A condition behind
an unmet one may be neither met nor unmet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joins.durable.requests import SOURCE
from service.jobs.inspect.event_waiting import (
    Condition,
    event_time_conditions,
    holds_rows,
    part_name,
    shown_time,
)
from service.jobs.inspect.facts import DISK_FULL, unread
from service.jobs.store.job import REMOVAL_FAILED
from service.jobs.supervise.watch import UNRESPONSIVE

_TOLD_TABLES = 3
_TOLD_CHANNELS = 5
_SOURCE_REACHED = "source-reached"
_DISK_HAS_ROOM = "disk-has-room"
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WaitExplanation:
    """Why no row comes out: the first unmet conditions as a sentence, and all conditions."""

    waiting: bool
    sentence: str
    hint: str | None
    conditions: tuple[Condition, ...]


def explain_wait(job: Document) -> WaitExplanation:
    if job["state"] == "FINISHED":
        evidence = f"The job has finished: all up to the end of its stream is {done_word(job)}"
        return WaitExplanation(
            False, f"{evidence}.", None, (Condition("finished", None, True, evidence),)
        )
    conditions = tuple(_conditions(job))
    unmet = [each for each in conditions if each.met is False]
    aside = [each for each in unmet if each.name == _SOURCE_REACHED and goes_on(job)]
    unmet = [each for each in unmet if each not in aside]
    if not unmet:
        remarks = "".join(f" But {each.evidence}." for each in aside[:_TOLD_TABLES])
        hint = next((each.hint for each in aside if each.hint), None)
        return WaitExplanation(False, f"{_flowing(job)}{remarks}", hint, conditions)
    leading = [each for each in unmet if each.name == unmet[0].name]
    sentence = "; ".join(each.evidence for each in leading[:_TOLD_TABLES])
    more = len(leading) - _TOLD_TABLES
    sentence += f"; and {more} more" if more > 0 else ""
    hint = next((each.hint for each in leading if each.hint), None)
    return WaitExplanation(
        True, f"{sentence[:1].upper()}{sentence[1:]}{_held(job)}.", hint, conditions
    )


def _conditions(job: Document) -> Iterator[Condition]:
    yield _desired(job)
    yield from _room(job)
    yield _alive(job)
    yield _reports(job)
    reported = bool(job["runner"]["alive"])
    yield from _stalls(job)
    for dimension in job["dimensions"]:
        for condition in _of_dimension(dimension, job, reported=reported):
            yield _after_opening(condition, job) if job["phase"] == "JOIN" else condition
    yield _gate(job)
    yield _index(job)
    yield from event_time_conditions(job)
    if job["probe"] is not None:
        yield from _transactions(job["probe"])
        yield _records(job, job["probe"])
        yield _rows(job, job["probe"])


# The runner
# --------------------------------------------------------------------------------------------------

_NOT_WANTED = {
    "PAUSED": ("the job is paused by request", "Go on with sluice jobs resume."),
    "STOPPED": ("the job is stopped by request", "Go on with sluice jobs resume."),
    "REMOVED": ("the job is being removed", None),
}


def _desired(job: Document) -> Condition:
    name, desired = "wanted-running", job["desired_state"]
    if job["state"] == "FAILED":
        error = job["error"] or {"message": job["reason"], "hint": "Look at the runner's log."}
        return Condition(
            name, None, False, f"the job has failed: {error['message']}", error["hint"]
        )
    if desired in _NOT_WANTED:
        evidence, hint = _NOT_WANTED[desired]
        if desired == "PAUSED" and job["state"] != "PAUSED":
            evidence = "the job is being paused: its runner ends after the batch"
        if desired == "REMOVED" and job["reason"].startswith(REMOVAL_FAILED):
            evidence, hint = f"the job is being removed: {job['reason']}", _hint(job)
        return Condition(name, None, False, evidence, hint)
    return Condition(name, None, True, "the job is wanted to run")


def _room(job: Document) -> Iterator[Condition]:
    full = [warning for warning in job["warnings"] if warning["type"] == DISK_FULL]
    for warning in full:
        yield Condition(_DISK_HAS_ROOM, None, False, warning["message"], warning["hint"])
    if not full:
        yield Condition(_DISK_HAS_ROOM, None, True, "data and warehouse directory have room")


def _alive(job: Document) -> Condition:
    name, runner = "runner-alive", job["runner"]
    if runner["alive"]:
        return Condition(name, None, True, f"runner {runner['pid']} lives")
    if job["desired_state"] != "RUNNING":
        return Condition(name, None, None, "no runner is needed")
    if runner["restart_at_ms"] is None:
        return Condition(name, None, False, "the runner has not been started yet")
    at = f"it is started again at {shown_time(1000 * (runner['restart_at_ms'] // 1000))}"
    why = job["error"]["message"] if job["error"] else job["reason"]
    crashes = runner["crashes"]
    if crashes:
        often = "once" if crashes == 1 else f"{crashes} times in a row"
        evidence = f"the runner has crashed {often} ({why}); {at}"
        return Condition(name, None, False, evidence, _hint(job) or "Look at the runner's log.")
    return Condition(
        name, None, False, f"the runner has given up for now ({why}); {at}", _hint(job)
    )


def _reports(job: Document) -> Condition:
    name, runner, error = "runner-reports", job["runner"], job["error"]
    if not runner["alive"]:
        return Condition(name, None, None, "there is no runner that could report")
    if error and error["type"] == UNRESPONSIVE:
        return Condition(name, None, False, error["message"], error["hint"])
    if job["state"] == "STARTING":
        evidence = "the runner starts Spark and looks at its sources"
        return Condition(name, None, False, evidence)
    return Condition(name, None, True, f"its last report is {runner['status_age_ms']} ms old")


def _stalls(job: Document) -> Iterator[Condition]:
    """One condition per stalled part; sources have their own conditions."""
    stalls = [stall for stall in job["stalls"] if not stall["part"].startswith(SOURCE)]
    for stall in stalls:
        evidence = f"{part_name(stall['part'])} is stalled: {stall['message']}"
        yield Condition("not-stalled", stall["part"], False, evidence, stall["hint"])
    if stalls:
        return
    error, alive = job["error"], job["runner"]["alive"]
    silent = bool(error) and error["type"] == UNRESPONSIVE
    if job["state"] == "STALLED" and alive and error and not silent and not job["stalls"]:
        yield Condition(
            "not-stalled", None, False, f"the job is stalled: {error['message']}", error["hint"]
        )
    else:
        met = True if alive else None
        yield Condition("not-stalled", None, met, "no part of the job reports a fault")


def _hint(job: Document) -> str | None:
    return job["error"]["hint"] if job["error"] else None


# Tables, and the gate behind them
# --------------------------------------------------------------------------------------------------


def _of_dimension(dimension: Document, job: Document, *, reported: bool) -> Iterator[Condition]:
    yield _source(dimension, job, reported=reported)
    yield _snapshot(dimension)
    yield _committed(dimension)
    for channel in dimension["channels"]:
        place, time = channel["channel"], channel["watermark"]
        done = time["use_processing_time"]
        shown = "in processing time" if done else f"{_watermark(time)} and not in processing time"
        evidence = f'channel "{place}" is {channel["status"]}, its watermark is {shown}'
        yield Condition("channel-in-processing-time", place, done, evidence)


def goes_on(job: Document) -> bool:
    return bool(job["phase"] == "JOIN" and not job["event_time"])


def _after_opening(condition: Condition, job: Document) -> Condition:
    """Opening is final: after it, an incomplete table holds no row back."""
    if condition.met is not False:
        return condition
    if condition.name == _SOURCE_REACHED and not goes_on(job):
        return condition
    if condition.name == _SOURCE_REACHED:
        evidence = f"{condition.evidence}; records are joined with the rows that are there"
        return replace(condition, evidence=evidence)
    return replace(
        condition, met=True, evidence=f"{condition.evidence}; records are joined all the same"
    )


def _source(dimension: Document, job: Document, *, reported: bool) -> Condition:
    name, table = _SOURCE_REACHED, dimension["name"]
    part = f"{SOURCE}{table}"
    stall = next((s for s in job["stalls"] if s["part"] == part), None)
    if stall is not None:
        evidence = f'the source of table "{table}" is stalled ({stall["type"]}): {stall["message"]}'
        return Condition(name, table, False, evidence, stall["hint"])
    if dimension["low"] is None and not dimension["generation"]:
        return Condition(name, table, None, f'the source of table "{table}" is being checked')
    evidence = f'the source of table "{table}" was reached, generation {dimension["generation"]}'
    return Condition(name, table, True if reported else None, evidence)


def _is_complete(dimension: Document) -> bool:
    return dimension["evidence"] is not None


def _snapshot(dimension: Document) -> Condition:
    name, table, copy = "snapshot-complete", dimension["name"], dimension["snapshot"]
    total = copy["rows_total"]
    about = "about " if copy["rows_total_is_estimate"] else ""
    of = "" if total is None else f" of {about}{total:,}"
    evidence = f'waiting for table "{table}": {copy["rows_done"]:,}{of} snapshot rows are committed'
    if dimension.get("waits_for"):
        evidence = f'waiting for table "{table}": {dimension["waits_for"]}'
    elif copy["chunks_total"]:
        evidence += f", {copy['chunks_done']} of {copy['chunks_total']} parts of the copy are read"
    if _is_complete(dimension):
        return Condition(name, table, True, f'the copy of table "{table}" is read')
    if copy["is_copied"]:
        evidence = f'the copy of table "{table}" is read, {copy["rows_done"]:,} rows are committed'
        return Condition(name, table, True, evidence)
    return Condition(name, table, False, evidence)


def _committed(dimension: Document) -> Condition:
    name, table = "build-committed", dimension["name"]
    if _is_complete(dimension):
        evidence = f'the copy of table "{table}" is committed ({dimension["evidence"]}), '
        return Condition(name, table, True, f"{evidence}version {dimension['changelog_version']}")
    lag = dimension["lag_records"]
    behind = "" if lag is None else f"; {lag:,} records of its changelog are not committed"
    if not dimension["snapshot"]["is_copied"]:
        evidence = f'table "{table}" is not copied yet{behind}'
    elif dimension["emitted"] is None:
        evidence = f'table "{table}" is read, its source has not reached HIGH'
        evidence += f"{_places(dimension)}{behind}"
    else:
        evidence = f'the watermark of table "{table}" is written, its commit is not made{behind}'
    return Condition(name, table, False, evidence)


def _places(dimension: Document) -> str:
    high, at = dimension["high"], dimension["position"]
    if high is None:
        return ", which is being taken"
    reached = "unknown" if at is None else f"{at['file']}/{at['pos']}"
    return f" {high['file']}/{high['pos']} (it is at {reached})"


def _gate(job: Document) -> Condition:
    name = "gate-open"
    if job["phase"] == "JOIN":
        held = job["held_at_open"]
        waited = f"at most {held:,} records" if held else "no record"
        suffix = "" if held is None else f"; {waited} had waited"
        return Condition(name, None, True, f"records are passed on{suffix}")
    channels = [channel for table in job["dimensions"] for channel in table["channels"]]
    closed = [c["channel"] for c in channels if not c["watermark"]["use_processing_time"]]
    if not channels:
        return Condition(name, None, None, "no partition of a table is known yet")
    if not closed:
        return Condition(name, None, None, "every partition of every table is complete")
    shown = ", ".join(closed[:_TOLD_CHANNELS]) + (", …" if len(closed) > _TOLD_CHANNELS else "")
    evidence = f"{len(closed)} of {len(channels)} partitions are not complete: {shown}"
    return Condition(name, None, False, evidence)


def _index(job: Document) -> Condition:
    name = "lookups-ready"
    if job["phase"] == "JOIN":
        return Condition(name, None, True, "the opening versions can be looked up")
    channels = [channel for table in job["dimensions"] for channel in table["channels"]]
    if channels and all(c["watermark"]["use_processing_time"] for c in channels):
        evidence = "every table is complete; the index of the opening version is being built"
        return Condition(name, None, False, evidence)
    return Condition(name, None, None, "the tables are not complete yet")


# The stream
# --------------------------------------------------------------------------------------------------


def _transactions(probe: Document) -> Iterator[Condition]:
    name, topic = "transactions-ended", stream_name(probe)
    for held in probe["open_transactions"]:
        place = f"{held.get('topic') or topic}/{held['partition']}"
        yield Condition(name, place, False, held["text"], held["hint"])
    if not probe["open_transactions"]:
        yield Condition(name, topic, True, f"no transaction holds {stream_of(probe)}")


def done_word(job: Document) -> str:
    """What has become of a record that is done: `joined`, or `processed` without a table."""
    return "joined" if job["dimensions"] else "processed"


def stream_name(probe: Document) -> str:
    """The topic; for records that the job generates, their table in the script."""
    return str(probe.get("generated") or probe["topic"])


def stream_of(probe: Document) -> str:
    kind = "stream" if probe.get("generated") else "topic"
    return f'{kind} "{stream_name(probe)}"'


def at_most(probe: Document, count: int) -> str:
    return f"at most {count:,}" if count and probe["held_is_upper_bound"] else f"{count:,}"


def _records(job: Document, probe: Document) -> Condition:
    name, topic, stream = "records-available", stream_name(probe), stream_of(probe)
    waiting = unread(probe)
    if waiting is None:
        evidence = f"the end offsets of {stream} are unknown"
        return Condition(name, topic, None, evidence)
    if waiting:
        what = f"are not {done_word(job)} yet" if job["phase"] == "JOIN" else "are held"
        evidence = f"{at_most(probe, waiting)} records of {stream} {what}"
        return Condition(name, topic, True, evidence)
    start, end = probe["start_offsets"], probe["end_offsets"]
    if all(offset <= start.get(partition, 0) for partition, offset in end.items()):
        if probe.get("generated"):
            return Condition(name, topic, False, f"{stream} has generated no record yet")
        evidence = f"{stream} has no record after its start offsets"
        hint = "Check that the producer writes to this topic, and 'scan.startup.mode'."
        return Condition(name, topic, False, evidence, hint)
    read = "read" if holds_rows(job["event_time"]) else done_word(job)
    every = (
        "every record before open transactions" if probe["open_transactions"] else "every record"
    )
    evidence = f"{every} of {stream} is {read}; new ones are {read} as they come"
    return Condition(name, topic, False, evidence)


def _rows(job: Document, probe: Document) -> Condition:
    name = "rows-written"
    batch, rows, letters = probe["batch"], probe["joined_records"], probe["dead_letters"]
    if job["phase"] != "JOIN":
        return Condition(name, None, None, "no batch runs before every table is complete")
    if batch is None:
        return Condition(name, None, False, "no batch is committed yet")
    if rows:
        evidence = f"batch {batch} is committed, {rows:,} rows so far, {letters:,} dead letters"
        return Condition(name, None, True, evidence)
    if letters and not open_letters(probe):
        evidence = f"all {letters:,} records so far were dead letters, and each is settled"
        return Condition(name, None, False, evidence)
    if letters:
        evidence = f"all {letters:,} records of {stream_of(probe)} so far are dead letters"
        return Condition(name, None, False, evidence, "Look at their reasons with sluice dlq ls.")
    if holds_rows(job["event_time"]):
        return Condition(name, None, False, f"batches up to {batch} are committed, no row was due")
    evidence = (
        f"batches up to {batch} are committed and have no row: no record met a row or the filter"
    )
    return Condition(name, None, False, evidence, "Look at one with sluice explain-row.")


def open_letters(probe: Document) -> int:
    """Dead letters that need an operator; an older runner reports only all of them."""
    still_open = probe.get("open_dead_letters")
    return int(probe["dead_letters"] if still_open is None else still_open)


def _flowing(job: Document) -> str:
    probe = job["probe"]
    if probe is None:
        return "Nothing waits."
    lag = probe["lag_records"]
    done = "Nothing waits: " + _committed_batch(probe["batch"])
    left = f", {at_most(probe, lag or 0)} records are not {done_word(job)} yet"
    return done + ("." if lag is None else f"{left}.")


def _committed_batch(batch: int | None) -> str:
    return "no batch is committed yet" if batch is None else f"batch {batch} is committed"


def _held(job: Document) -> str:
    probe = job["probe"]
    if probe is None or job["phase"] == "JOIN" or not probe["held_records"]:
        return ""
    held = at_most(probe, probe["held_records"])
    return f'; {held} records of "{stream_name(probe)}" are held meanwhile'


def _watermark(time: Document) -> str:
    return "MIN" if time["timestamp_ms"] == -(2**63) else f"{time['timestamp_ms']} ms"
