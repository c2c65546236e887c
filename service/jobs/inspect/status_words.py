"""What people read of a job's state: a word, a sentence, a remedy.

List, page, commands and REST take them from here. The runner's own terms stay in typed fields.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from joins.durable.requests import SOURCE
from joins.plan.durations import duration_text
from joins.plan.errors import (
    ConstraintViolatedError,
    OffsetsWentBackError,
    OutputTopicChangedError,
    PartitionsMissingError,
    RecordsLostError,
    SinkError,
    SourceError,
    SourceUnavailableError,
    StoreUnavailableError,
    TopicIdentityChangedError,
    TopicMissingError,
)
from joins.plan.stream_topics import PROBE, input_name
from service.jobs.inspect.event_waiting import Condition, channel_name, shown_time
from service.jobs.inspect.waiting import (
    WaitExplanation,
    at_most,
    done_word,
    explain_wait,
    goes_on,
    open_letters,
    stream_name,
)
from service.jobs.store.job import REMOVAL_FAILED

Document = Mapping[str, Any]
_FAR_BEHIND_MS = 60_000  # below it, records that wait for event time are the usual case
_TOLD = 3
_MEANWHILE = "Meanwhile records are joined with the rows that are there"


class Tone(StrEnum):
    """How much a state needs its reader: the colour of its word, and the order of lists."""

    BAD = "bad"
    WARN = "warn"
    BUSY = "busy"
    GOOD = "good"
    REST = "rest"


class RemedyAction(StrEnum):
    """What a button beside the remedy does."""

    START = "start"
    RESUME = "resume"
    DECIDE = "decide"
    DEAD_LETTERS = "dead-letters"


class FaultPlace(StrEnum):
    """The part of a job that a fault is in."""

    TABLE = "table"
    CHANGELOG = "changelog"
    STREAM = "stream"
    BATCHES = "batches"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class StatusWords:
    """A job's state for people.

    Attributes:
        word: of one vocabulary, such as `Copying (89 %)`.
        remedy: what the operator can do; None if nothing is needed.
        since_ms: when the state began, if it is not the newest transition of the job.
    """

    word: str
    tone: Tone
    sentence: str
    remedy: str | None = None
    action: RemedyAction | None = None
    since_ms: int | None = None


_OF_OUTPUT = frozenset(
    each.fault for each in (SinkError, ConstraintViolatedError, OutputTopicChangedError)
)
_OF_STREAM = frozenset(
    each.fault
    for each in (
        TopicIdentityChangedError,
        TopicMissingError,
        PartitionsMissingError,
        OffsetsWentBackError,
        RecordsLostError,
    )
)
_OUTSIDE = frozenset(
    each.fault for each in (SourceError, SourceUnavailableError, StoreUnavailableError)
)
_PLACES = {
    "kafka": FaultPlace.STREAM,
    "topics": FaultPlace.STREAM,
    "changelog": FaultPlace.CHANGELOG,
    "source": FaultPlace.TABLE,
    "build": FaultPlace.CHANGELOG,
}


def place_of(part: str, fault: str) -> FaultPlace | None:
    """Where a fault of type `fault` is that stalls `part`; None if neither says so."""
    known = _PLACES.get(part.partition(" ")[0])
    if known is not None:
        return known
    if fault in _OF_OUTPUT:
        return FaultPlace.OUTPUT
    if fault in _OF_STREAM:
        return FaultPlace.STREAM
    return FaultPlace.BATCHES if part == "probe" and fault not in _OUTSIDE else None


def status_words(job: Document) -> StatusWords:
    explained = explain_wait(job)
    leading = next((each for each in explained.conditions if each.met is False), None)
    rules = (_ended, _leaving, _starting, _stalled, _without_room, _copying, _joining)
    return next(words for rule in rules if (words := rule(job, explained, leading)) is not None)


_Leading = Condition | None
_GOES_ON = re.compile("sluice jobs resume|submit", re.IGNORECASE)
"""A hint that says already how the job, or another one instead, goes on."""


def _ended(job: Document, _: WaitExplanation, __: _Leading) -> StatusWords | None:
    state, resume = job["state"], f"Continue it: sluice jobs resume {job['id']}"
    if job["desired_state"] == "REMOVED":
        return None
    if state == "FINISHED":
        rows = (job["probe"] or {}).get("joined_records")
        count = "" if rows is None else f": {_many(rows, 'row')}"
        done = done_word(job)
        return StatusWords(
            "Finished", Tone.REST, f"Everything up to the end of its stream is {done}{count}."
        )
    if state == "FAILED":
        error = job["error"] or {"message": job["reason"], "hint": "Read its log."}
        remedy = error["hint"]
        if not _GOES_ON.search(remedy):
            remedy = f"{remedy} Then continue it: sluice jobs resume {job['id']}"
        text = sentence(error["message"])
        return StatusWords("Failed", Tone.BAD, text, remedy, RemedyAction.START)
    if state == "STOPPED" and job["desired_state"] == "STOPPED":
        text = f"It was stopped {_request(job)} and has ended; it keeps its position"
        text = f"{text}{_waiting_text(job)}."
        return StatusWords("Stopped", Tone.REST, text, resume, RemedyAction.START)
    if state == "PAUSED" and job["desired_state"] == "PAUSED":
        text = f"It was paused {_request(job)} and keeps its position until it is resumed"
        text = f"{text}{_waiting_text(job)}."
        return StatusWords("Paused", Tone.REST, text, resume, RemedyAction.RESUME)
    return None


def _request(job: Document) -> str:
    by = job.get("desired_by")
    return f"by request of {by}" if by else "by request"


def _leaving(job: Document, _: WaitExplanation, __: _Leading) -> StatusWords | None:
    """A job that ends by request: what stalls it meanwhile is no trouble any more."""
    desired = job["desired_state"]
    if desired == "RUNNING":
        return None
    if desired == "REMOVED":
        if job["reason"].startswith(REMOVAL_FAILED):
            hint = job["error"]["hint"] if job["error"] else None
            return StatusWords("Removing", Tone.WARN, sentence(job["reason"]), hint)
        return StatusWords("Removing", Tone.BUSY, "Its runner ends, then its data is deleted.")
    end = "paused" if desired == "PAUSED" else "stopped"
    return StatusWords("Stopping", Tone.BUSY, f"It is {end} after its current batch.")


def _starting(job: Document, explained: WaitExplanation, _: _Leading) -> StatusWords | None:
    state = job["state"]
    if state == "STALLED" or (state not in _WITHOUT_RUNNER and job["runner"]["alive"]):
        return None
    if job["runner"]["alive"]:
        return StatusWords("Starting", Tone.BUSY, "The runner starts and checks its sources.")
    return StatusWords("Starting", Tone.BUSY, explained.sentence, explained.hint)


_WITHOUT_RUNNER = ("CREATED", "STARTING", "STOPPED", "PAUSED")


def _stalled(job: Document, explained: WaitExplanation, leading: _Leading) -> StatusWords | None:
    if job["state"] != "STALLED":
        return None
    restarts = leading is not None and leading.name == "runner-alive"
    if restarts or not (job["stalls"] or job["error"]):
        return StatusWords("Stalled", Tone.WARN, explained.sentence, explained.hint)
    first = job["stalls"][0] if job["stalls"] else job["error"]
    others = len(job["stalls"]) - 1
    text = f"{_part(first.get('part'))}{first['message'].rstrip('.')}"
    text += f"; and {others} more fault{'s' if others > 1 else ''}" if others > 0 else ""
    text = sentence(text)
    parts = [stall["part"] for stall in job["stalls"]]
    if parts and goes_on(job) and all(part.startswith(SOURCE) for part in parts):
        text = f"{text} {_MEANWHILE}."
    action = RemedyAction.DECIDE if first.get("choices") else None
    return StatusWords("Stalled", Tone.WARN, text, first["hint"], action)


def _part(part: str | None) -> str:
    if part is None:
        return ""
    return f'Table "{part.removeprefix(SOURCE)}": ' if part.startswith(SOURCE) else ""


def _without_room(job: Document, _: WaitExplanation, leading: _Leading) -> StatusWords | None:
    if leading is None or leading.name != "disk-has-room":
        return None
    return StatusWords(
        "Waiting for disk space", Tone.WARN, sentence(leading.evidence), leading.hint
    )


# Copies
# --------------------------------------------------------------------------------------------------


def _copying(job: Document, explained: WaitExplanation, _: _Leading) -> StatusWords | None:
    if job["phase"] == "JOIN" or job["state"] == "JOINING":
        return None
    tables = [table for table in job["dimensions"] if table["evidence"] is None]
    blocked = next((table for table in tables if table.get("waits_for")), None)
    if blocked is not None:
        text = sentence(f'Table "{blocked["name"]}": {blocked["waits_for"]}{_held(job)}')
        word = f"Waiting for {input_name(blocked['name'])}"
        return StatusWords(word, Tone.WARN, text, explained.hint)
    copied = [table for table in tables if not table["snapshot"]["is_copied"]]
    if job["state"] == "SNAPSHOT" and (copied or not job["dimensions"]):
        share = _share(job["dimensions"])
        word = "Copying" if share is None else f"Copying ({share} %)"
        texts = "; ".join(_copy(table) for table in copied[:_TOLD]) or "The tables are copied first"
        return StatusWords(word, Tone.BUSY, sentence(f"{texts}{_more(copied)}{_held(job)}"))
    texts = "; ".join(_catching_up(table) for table in tables[:_TOLD])
    texts = texts or "Every table is copied; their lookup indexes are being built"
    return StatusWords("Catching up", Tone.BUSY, sentence(f"{texts}{_more(tables)}{_held(job)}"))


def _share(tables: list[Document]) -> int | None:
    """Percent of all rows; None while the size of a table is unknown, and never 100."""
    sizes = [table["snapshot"]["rows_total"] for table in tables]
    if not sizes or any(size is None for size in sizes) or not sum(sizes):
        return None
    done = sum(table["snapshot"]["rows_done"] for table in tables)
    return int(min(99, 100 * done // sum(sizes)))


def _copy(table: Document) -> str:
    copy = table["snapshot"]
    about = "about " if copy["rows_total_is_estimate"] else ""
    total = copy["rows_total"]
    of = "" if not total else f" of {about}{total:,}"
    return f'Table "{table["name"]}": {copy["rows_done"]:,}{of} rows are copied'


def _catching_up(table: Document) -> str:
    lag = table["lag_records"]
    if not table["snapshot"]["is_copied"]:
        return _copy(table)
    left = f", {lag:,} are left" if lag else ""
    return f'Table "{table["name"]}" is copied; changes made meanwhile are being applied{left}'


def _more(tables: list[Document]) -> str:
    more = len(tables) - _TOLD
    return f"; and {_many(more, 'more table')}" if more > 0 else ""


def _held(job: Document) -> str:
    """What waits until the copies are complete."""
    probe = job["probe"]
    if probe is None or not probe["held_records"]:
        return ""
    return f'. {_count(probe, probe["held_records"])} records of "{stream_name(probe)}" wait'


def _waiting_text(job: Document) -> str:
    probe = job["probe"]
    waits = (probe or {}).get("held_records") or (probe or {}).get("lag_records")
    return f'; {at_most(probe, waits)} records of "{stream_name(probe)}" wait' if waits else ""


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _count(probe: Document, count: int) -> str:
    text = at_most(probe, count)
    return f"{text[0].upper()}{text[1:]}"


# The stream
# --------------------------------------------------------------------------------------------------


def _joining(job: Document, explained: WaitExplanation, leading: _Leading) -> StatusWords:
    holding, probe = job["holding"], job["probe"]
    if holding is not None and holding["state"] == "HOLDING":
        tables = ", ".join(f'"{each["table"]}"' for each in holding["tables"]) or "the table"
        return StatusWords(
            "Holding (stale)",
            Tone.WARN,
            sentence(holding["text"]),
            f"Check what {tables} is copied from; records go on by themselves when it answers. To "
            f'let them pass before: sluice acknowledge {job["id"]} stale --for "10 min" '
            '--reason "…"',
            since_ms=holding["since_ms"],
        )
    held = (probe or {}).get("open_transactions") or ()
    if held:
        return StatusWords(
            "Waiting for a transaction",
            Tone.WARN,
            sentence(held[0]["text"]),
            held[0]["hint"],
            since_ms=held[0]["since_ms"],
        )
    if leading is not None and leading.name in _OF_EVENT_TIME:
        return _event_time(job["event_time"], leading)
    letters = 0 if probe is None else open_letters(probe)
    if letters:
        return _with_letters(job, explained, leading, letters)
    if leading is not None and leading.name == "rows-written" and probe["batch"] is not None:
        return StatusWords("Running", Tone.GOOD, sentence(leading.evidence), leading.hint)
    copied = [table for table in job["dimensions"] if table["evidence"] is None]
    text = _running(job, leading)
    if copied:
        names = ", ".join(f'"{table["name"]}"' for table in copied[:_TOLD])
        more = f" and {len(copied) - _TOLD} more" if len(copied) > _TOLD else ""
        tables = f"Table {names} is" if len(copied) == 1 else f"Tables {names}{more} are"
        text = f"{tables} copied again. {_MEANWHILE}."
    is_idle = leading is not None and leading.name == "records-available"
    return StatusWords("Running", Tone.GOOD, text, leading.hint if leading and is_idle else None)


def _with_letters(
    job: Document, explained: WaitExplanation, leading: _Leading, letters: int
) -> StatusWords:
    """Open dead letters are said whatever else is true: only an operator ends them."""
    remedy, action = f"Read their reasons: sluice dlq ls {job['id']}", RemedyAction.DEAD_LETTERS
    rows = next(each for each in explained.conditions if each.name == "rows-written")
    if rows.met is False:
        return StatusWords("Running", Tone.WARN, sentence(rows.evidence), remedy, action)
    needs = "needs" if letters == 1 else "need"
    text = (
        f"{_running(job, leading)} {_many(letters, 'dead letter')} {needs} a replay or a discard."
    )
    return StatusWords("Running", Tone.GOOD, text, remedy, action)


def _running(job: Document, leading: _Leading) -> str:
    probe, done = job["probe"], done_word(job)
    if job["shared_table"] is not None:
        return "Changes of the table are committed as they arrive."
    if leading is not None and leading.name == "records-available":
        return sentence(leading.evidence)
    if probe is None or not probe["lag_records"]:
        return f"Records are {done} as they arrive."
    waits = at_most(probe, probe["lag_records"])
    if probe["batch"] is None:
        return f"The first records are being {done}; {waits} are not {done} yet."
    return f"Records are {done} as they arrive; {waits} are not {done} yet."


_OF_EVENT_TIME = ("channel-has-watermark", "rows-released", "windows-fired", "records-in-time")


def _event_time(time: Document, leading: Condition) -> StatusWords:
    """Records that wait for the time of an input: usual, unless it is silent or far behind."""
    cause = time["waits_for"]
    if leading.name == "records-in-time":
        return StatusWords("Running", Tone.WARN, sentence(leading.evidence), leading.hint)
    if leading.name == "channel-has-watermark":
        name, _, _ = (leading.about or "").rpartition("/")
        text = f"{channel_name(name, leading.about or '')} has no record with a time yet"
        return StatusWords(
            f"Waiting for {input_name(name)}", Tone.WARN, sentence(text), leading.hint
        )
    if leading.name == "windows-fired" or cause is None:
        due = time["next_window_ms"]
        at = "" if due is None else f"; the next one ends at {shown_time(due + 1)}"
        return StatusWords("Running", Tone.GOOD, f"No window has ended yet{at}.")
    name, rows, behind_ms = cause["input"] or PROBE, time["waiting_rows"], cause["behind_ms"]
    far = "has no time yet" if behind_ms is None else f"is {duration_text(behind_ms)} behind"
    where = "" if cause["partition"] is None else f", partition {cause['partition']},"
    one = "1 record waits" if rows == 1 else f"{rows:,} records wait"
    text = f"{one} for later records of {input_name(name)}{where} which {far}."
    if behind_ms is not None and behind_ms < _FAR_BEHIND_MS:
        return StatusWords("Running", Tone.GOOD, text)
    return StatusWords(f"Waiting for {input_name(name)}", Tone.WARN, text, leading.hint)


def sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
