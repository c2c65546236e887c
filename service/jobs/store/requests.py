"""What the control plane asks a runner to do: files in the job's directory, answered by files.

A request is `requests/<id>.json`, its answer `requests/<id>.result.json`; ids are UUIDs of version
7, so their order is that of the asking. A request is durable before anybody waits for its answer:
a runner that was killed takes it up after its next start.
"""

import hashlib
import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import create_json_once, read_json, remove_durably
from joins.plan.errors import (
    CheckpointError,
    ForeignRecordError,
    GuardError,
    NotReplayableError,
    PinnedVersionExpiredError,
    SnapshotUnprovenError,
)
from joins.plan.plan import JoinPlan
from service.errors import BusyError, JobConflictError
from service.jobs.store.job import JobError, new_job_id
from service.jobs.store.layout import write_private

ACKNOWLEDGE = "acknowledge"
REPLAY_DEAD_LETTERS = "replay-dead-letters"
MOST_UNANSWERED = 100
# What an operator may acknowledge, and what may be chosen; the first choice is the default.
CHOICES: Mapping[str, tuple[str, ...]] = {
    **{error.fault: error.choices for error in GuardError.__subclasses__()},
    PinnedVersionExpiredError.fault: PinnedVersionExpiredError.choices,
    SnapshotUnprovenError.fault: SnapshotUnprovenError.choices,
    ForeignRecordError.fault: ForeignRecordError.choices,
}
_KEPT_ANSWERS = 1_000
_POLL_S = 0.1
_RESULT = ".result.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be done, and who wants it.

    Attributes:
        kind: `acknowledge` or `replay-dead-letters`.
        by: a name that the client gives; nobody checks it.
        key: the client's own key: the same key again is the same request.
    """

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
    """How a request ended: with a result, or refused with an error."""

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
        """Keep a request durably, or find the one that was sent under the same key; its id.

        Raises:
            JobConflictError: the key was used for another request.
            BusyError: too many requests wait for an answer.
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
        """How the request ended; None as long as nobody has answered it.

        Raises:
            CheckpointError: the answer is damaged.
        """
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
        """The answer as soon as it is there; None when `timeout_s` have passed."""
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
        """Refuse when too many wait; forget the oldest that are answered."""
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
