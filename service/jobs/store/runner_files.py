"""Files between control plane and runner: `status.json`, `events.jsonl` and requests.

A request is `requests/<id>.json`, its answer `requests/<id>.result.json`; ids are UUIDs of version
7, so they sort by time. A request is durable before its sender waits: a killed runner answers it
after its next start.
"""

import hashlib
import json
import os
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from joins.durable.checkpoint import create_json_once, json_lines, read_json, remove_durably
from joins.kernels.local_files import append_line, sync
from joins.plan.errors import (
    CheckpointError,
    ForeignRecordError,
    GuardError,
    NotReplayableError,
    PinnedVersionExpiredError,
    SnapshotUnprovenError,
    StaleTableError,
)
from joins.plan.plan import JoinPlan
from service.errors import BusyError, JobConflictError
from service.jobs.store.job import JobError, JobState, StateUpdate, new_job_id
from service.jobs.store.layout import JobLayout, write_private

EVENTS_LIMIT_BYTES = 1 << 20
BEFORE = "bytes_before"
_FIRST_LINE_BYTES = 1_024


def append_event(job_dir: Path, event: Mapping[str, Any]) -> None:
    """Append a transition (`at_ms`, `from`, `to`, `cause`) to `events.jsonl`, durably.

    A file that is too large becomes `events.jsonl.1`. The first line of the next file has the
    number of preceding bytes, so that readers' offsets stay valid. After an OSError nothing is
    added.
    """
    file = JobLayout(job_dir).events
    _begin_anew(file)
    is_new = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        append_line(descriptor, _line(event))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync(file.parent)


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps({"format_version": 1, **event}, separators=(",", ":")).encode() + b"\n"


def _begin_anew(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            first = _line({BEFORE: bytes_before(opened) + size})
    except FileNotFoundError:
        return
    if size < EVENTS_LIMIT_BYTES:
        return
    before, aside = file.with_name(f"{file.name}.1"), file.with_name(f"{file.name}.new")
    before.unlink(missing_ok=True)
    os.link(file, before)  # the file stays until the new one replaces it
    write_private(aside, first)
    aside.replace(file)
    sync(file.parent)


def begin_events(job_dir: Path, offset: int) -> None:
    """Ensure that `append_event` appends behind `offset`, up to which readers have read.

    A shorter file is left from a runner that has since been followed on another machine.
    """
    file = JobLayout(job_dir).events
    try:
        with file.open("rb") as opened:
            end = bytes_before(opened) + os.fstat(opened.fileno()).st_size
    except FileNotFoundError:
        end = 0
    if end < offset:
        write_private(file, _line({BEFORE: offset}))


def bytes_before(events: BinaryIO) -> int:
    """Bytes of events before those in a file, from its first line."""
    line, _, _ = events.read(_FIRST_LINE_BYTES).partition(b"\n")
    try:
        return int(json.loads(line)[BEFORE])
    except (ValueError, KeyError, TypeError):
        return 0


_CHUNK_BYTES = 1 << 20
_NEEDED = {"id", "at_ms", "by", "cause", "choice", "reason"}
_OF_CONTROL_PLANE = frozenset({JobState.CREATED, JobState.STARTING, JobState.STOPPED})


@dataclass(frozen=True, slots=True)
class Status:
    """The newest report of a runner; `pid` is its writer's, perhaps not the present runner's."""

    pid: int
    state: JobState | None
    reason: str
    error: JobError | None
    updated_at_ms: int
    content: dict[str, Any]

    def age_ms(self) -> int:
        return max(0, time.time_ns() // 1_000_000 - self.updated_at_ms)


def read_status(job_dir: Path) -> Status | None:
    """The newest report; None without a readable one."""
    try:
        content = read_json(JobLayout(job_dir).status)
        if content is None:
            return None
        return Status(
            pid=int(content["pid"]),
            state=_state(content["state"]),
            reason=str(content.get("reason") or ""),
            error=_error(content.get("error")),
            updated_at_ms=int(content["updated_at_ms"]),
            content=content,
        )
    except (CheckpointError, KeyError, TypeError, ValueError, OSError):
        return None


def read_verifications(job_dir: Path) -> dict[str, Mapping[str, Any]]:
    """Table → the newest comparison with its source; a damaged file counts as none."""
    results: dict[str, Mapping[str, Any]] = {}
    for path in sorted(JobLayout(job_dir).verifications.glob("*.json")):
        with suppress(CheckpointError, OSError):
            content = read_json(path)
            if content is not None:
                results[path.stem] = content
    return results


def read_changes(job_dir: Path, offset: int) -> tuple[list[StateUpdate], int]:
    """The runner's transitions after byte `offset` and the offset behind them.

    An incomplete line is left for later. Unreadable lines are skipped, and so are starting and
    stopping, which are the control plane's transitions. After a long pause the oldest may be gone.
    """
    offset, block = _events_after(JobLayout(job_dir).events, offset)
    whole = block[: block.rfind(b"\n") + 1]
    changes = [change for line in json_lines(whole) if (change := _change(line)) is not None]
    return changes, offset + len(whole)


def _events_after(events: Path, offset: int) -> tuple[int, bytes]:
    begin = offset
    for file in (events, events.with_name(f"{events.name}.1")):
        try:
            with file.open("rb") as opened:
                before = bytes_before(opened)
                if before <= offset:
                    opened.seek(offset - before)
                    block = opened.read(_CHUNK_BYTES)
                    # An incomplete line of the older file is never completed.
                    return (offset, block) if b"\n" in block else (begin, b"")
                begin = before
        except FileNotFoundError:
            continue
    return begin, b""


def read_acknowledgements(job_dir: Path) -> list[dict[str, Any]]:
    """What operators have acknowledged, oldest first; unreadable lines are skipped."""
    try:
        text = JobLayout(job_dir).acknowledgements.read_bytes()
    except FileNotFoundError:
        return []
    values = (_object(line) for line in json_lines(text))
    return [value for value in values if value is not None and value.keys() >= _NEEDED]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _change(line: bytes) -> StateUpdate | None:
    try:
        value = json.loads(line)
        target = JobState(value["to"])
        is_note = value.get("from") == value["to"]
        change = StateUpdate(
            target, str(value["cause"]), at_ms=int(value["at_ms"]), is_note=is_note
        )
    except (KeyError, TypeError, ValueError):
        return None
    return None if target in _OF_CONTROL_PLANE else change


def _state(value: object) -> JobState | None:
    try:
        return JobState(str(value))
    except ValueError:
        return None


def _error(value: object) -> JobError | None:
    if not isinstance(value, dict):
        return None
    return JobError(
        type=str(value.get("type") or "SluiceError"),
        message=str(value.get("message") or ""),
        hint=str(value.get("hint") or ""),
        detail=str(value.get("detail") or ""),
    )


ACKNOWLEDGE = "acknowledge"
REPAIR = "repair"
REPLAY_DEAD_LETTERS = "replay-dead-letters"
MOST_UNANSWERED = 100
# What an operator may acknowledge, and what may be chosen; the first choice is the default.
CHOICES: Mapping[str, tuple[str, ...]] = {
    **{error.fault: error.choices for error in GuardError.__subclasses__()},
    PinnedVersionExpiredError.fault: PinnedVersionExpiredError.choices,
    SnapshotUnprovenError.fault: SnapshotUnprovenError.choices,
    ForeignRecordError.fault: ForeignRecordError.choices,
    StaleTableError.fault: StaleTableError.choices,
}
_KEPT_ANSWERS = 1_000
_POLL_S = 0.1
_RESULT = ".result.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of an operator, such as `acknowledge`; `by` is unchecked."""

    kind: str
    body: Mapping[str, Any]
    by: str
    key: str | None = None

    @property
    def digest(self) -> str:
        text = json.dumps([self.kind, self.body], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """How a request ended: with a result or an error."""

    result: Mapping[str, Any] | None
    error: JobError | None


def not_replayable(plan: JoinPlan) -> NotReplayableError:
    return NotReplayableError(
        f'dead letters of job "{plan.name}" cannot be replayed: with event time or windows their '
        "batch has moved the watermark on without them",
        hint="Send the corrected record to its topic again, where it comes in under the watermark "
        f"of now; `sluice dlq show {shlex.quote(plan.name)} PARTITION/OFFSET --raw > value.json` "
        "gives the bytes, and a record that is late by then goes to the late records.",
    )


class RequestBox:
    """The requests of one job, as the control plane sees them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def send(self, request: Asked) -> str:
        """Store a request durably, or find the one with the same key; returns its id.

        Raises JobConflictError if the key was used for another request, BusyError if too many wait.
        """
        request_id = new_job_id() if request.key is None else self._id_of_key(request.key, request)
        path = self._directory / f"{request_id}.json"
        if path.exists() or self.answer(request_id) is not None:
            return request_id
        self._make_room()
        self._write(path, request)
        return request_id

    def sent(self, request_id: str) -> bool:
        names = (f"{request_id}.json", f"{request_id}{_RESULT}")
        return any((self._directory / name).exists() for name in names)

    def answer(self, request_id: str) -> RequestAnswer | None:
        """How the request ended; None while it is unanswered. Raises CheckpointError if damaged."""
        path = self._directory / f"{request_id}{_RESULT}"
        try:
            content = json.loads(path.read_bytes())
            if content["status"] == "done":
                return RequestAnswer(dict(content["result"]), None)
            error = content["error"]
            job_error = JobError(str(error["type"]), str(error["message"]), str(error["hint"]))
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as exc:
            raise CheckpointError(
                f'answer "{path.name}" cannot be read', hint="Look at the runner's log."
            ) from exc
        return RequestAnswer(None, job_error)

    def wait(self, request_id: str, *, timeout_s: float) -> RequestAnswer | None:
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.answer(request_id)
            if answer is not None or time.monotonic() >= deadline:
                return answer
            time.sleep(_POLL_S)

    def _id_of_key(self, key: str, request: Asked) -> str:
        digest = hashlib.sha256(key.encode()).hexdigest()
        path = self._directory / "keys" / f"{digest}.json"
        self._make_directory()
        create_json_once(path, {"request": new_job_id(), "digest": request.digest})
        content = read_json(path)
        assert content is not None
        if content["digest"] != request.digest:
            raise JobConflictError(
                f'idempotency key "{key}" was used for another request',
                hint="Use a new key for a new request.",
            )
        return str(content["request"])

    def _write(self, path: Path, request: Asked) -> None:
        content = {
            "format_version": 1,
            "kind": request.kind,
            "body": request.body,
            "at_ms": time.time_ns() // 1_000_000,
            "by": request.by,
        }
        self._make_directory()
        write_private(path, json.dumps(content, separators=(",", ":")).encode())

    def _make_directory(self) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)

    def _make_room(self) -> None:
        """Refuse when too many wait; delete the oldest answered ones."""
        names = sorted(path.name for path in self._directory.glob("*-*.json"))
        answered = [name.removesuffix(_RESULT) for name in names if name.endswith(_RESULT)]
        waiting = {name.removesuffix(".json") for name in names if not name.endswith(_RESULT)}
        if len(waiting - set(answered)) >= MOST_UNANSWERED:
            raise BusyError(
                f"{MOST_UNANSWERED} requests wait for the runner",
                hint="Wait until the runner has answered them; sluice jobs logs says what it does.",
            )
        for request_id in answered[:-_KEPT_ANSWERS]:
            request, answer = f"{request_id}.json", f"{request_id}{_RESULT}"
            remove_durably(self._directory / request, self._directory / answer)
