"""Reads what a runner reports in its job's directory: `status.json` and `events.jsonl`."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import json_lines, read_json
from joins.plan.errors import CheckpointError
from service.jobs.store.events import bytes_before
from service.jobs.store.job import JobError, JobState, StateUpdate
from service.jobs.store.layout import JobLayout

_CHUNK_BYTES = 1 << 20
_NEEDED = {"id", "at_ms", "by", "cause", "choice", "reason"}
_OF_CONTROL_PLANE = frozenset({JobState.CREATED, JobState.STARTING, JobState.STOPPED})


@dataclass(frozen=True, slots=True)
class Status:
    """The newest report of a runner.

    Attributes:
        pid: of the runner that wrote it, perhaps not the one that runs now.
        content: the whole document.
    """

    pid: int
    state: JobState | None
    reason: str
    error: JobError | None
    updated_at_ms: int
    content: dict[str, Any]

    def age_ms(self) -> int:
        """Milliseconds since the report."""
        return max(0, time.time_ns() // 1_000_000 - self.updated_at_ms)


def read_status(job_dir: Path) -> Status | None:
    """The newest report, or None if there is none that can be read."""
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


def read_changes(job_dir: Path, offset: int) -> tuple[list[StateUpdate], int]:
    """The runner's transitions after byte `offset` and the offset behind them.

    A line that is still being written is left for later, one that cannot be read is skipped.
    Starting and stopping are the control plane's transitions; the runner's are left out. Of a
    runner that nobody has followed for long, the oldest transitions may be gone.
    """
    offset, block = _events_after(JobLayout(job_dir).events, offset)
    whole = block[: block.rfind(b"\n") + 1]
    changes = [change for line in json_lines(whole) if (change := _change(line)) is not None]
    return changes, offset + len(whole)


def _events_after(events: Path, offset: int) -> tuple[int, bytes]:
    """A block of events from `offset` on, or from where the oldest file begins."""
    begin = offset
    for file in (events, events.with_name(f"{events.name}.1")):
        try:
            with file.open("rb") as opened:
                before = bytes_before(opened)
                if before <= offset:
                    opened.seek(offset - before)
                    block = opened.read(_CHUNK_BYTES)
                    # In the older file, a line that has no end never gets one.
                    return (offset, block) if b"\n" in block else (begin, b"")
                begin = before
        except FileNotFoundError:
            continue
    return begin, b""


def read_acknowledgements(job_dir: Path) -> list[dict[str, Any]]:
    """What operators have acknowledged, the oldest first; what cannot be read is left out."""
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
