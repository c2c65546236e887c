"""Requests of the control plane to a runner, as files; each is carried out once.

`<id>.json` is a request, `<id>.result.json` its result; the runner works in the order of the ids.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import structlog

from joins.durable.checkpoint import write_json_atomically
from joins.durable.stored import stored_files
from joins.plan.errors import CheckpointError, FencedError, RequestError
from watermark.errors import SluiceError

SOURCE = "source "
"""Prefix of the parts that are a table's source; all other parts concern the stream, too."""
_UNAVAILABLE = "source-unavailable"
_UNREACHED = " cannot be reached"
_KAFKA = re.compile(r'^kafka (?:at )?"([^"]+)"', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as shown; `type` is stable, `choices` are for an acknowledgement."""

    type: str
    message: str
    hint: str
    choices: tuple[str, ...] = ()
    detail: str = ""

    @staticmethod
    def of(error: SluiceError, since_s: float | None = None) -> "Fault":
        """The fault for `error`; for an unreachable server it says since when."""
        choices, message = tuple(getattr(error, "choices", ())), error.message
        if since_s is not None and message.endswith(_UNREACHED):
            at = datetime.fromtimestamp(since_s, UTC)
            server = message.removesuffix(_UNREACHED)
            message = f"{server} has not answered since {at:%H:%M:%S} UTC"
        return Fault(error.fault, message, error.hint, choices, error.detail)


class Stalls:
    """Faults by part (`source user_info`, `build user_info`, `probe`); thread-safe."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def note(self, part: str, error: SluiceError) -> None:
        with self._lock:
            if self._is_closed:
                return
            known, since_s = self._since.get(part, ("", 0.0))
            if known != error.message:
                since_s = time.time()
                self._since[part] = error.message, since_s
            self._faults[part] = Fault.of(error, since_s)

    def close(self) -> None:
        self._is_closed = True  # without the lock, which the interrupted thread may hold

    def clear(self, part: str) -> None:
        with self._lock:
            self._faults.pop(part, None)
            self._since.pop(part, None)

    def first(self) -> tuple[str, Fault] | None:
        return next(iter(self.all()), None)

    def all(self) -> list[tuple[str, Fault]]:
        """Faults by part, in the order of `first`; a fault of several parts appears once."""
        with self._lock:
            faults = sorted(self._faults.items(), key=lambda item: not item[1].choices)
        first_of: dict[tuple[str, ...], tuple[str, Fault]] = {}
        for part, fault in faults:
            older = first_of.setdefault(_cause(part, fault), (part, fault))
            if older[0].startswith(SOURCE) and not part.startswith(SOURCE):
                first_of[_cause(part, fault)] = part, fault
        return list(first_of.values())


def _cause(part: str, fault: Fault) -> tuple[str, ...]:
    """Key of a fault that may stall several parts: an unreachable Kafka is one fault."""
    server = _KAFKA.search(fault.message)
    if fault.type == _UNAVAILABLE and server is not None:
        return fault.type, server[1]
    return fault.type, fault.message, part


_RESULT = ".result.json"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `id`, the file's name without suffix, stays the same after a restart."""

    id: str
    kind: str
    body: Mapping[str, Any]
    at_ms: int
    by: str


Handler = Callable[[Request], Mapping[str, Any]]


class TurnHandler(Protocol):
    """Carries out requests beside batches."""

    def __call__(
        self, request: Request, *, turn: AbstractContextManager[object]
    ) -> Mapping[str, Any]:
        """`turn` is held while a batch runs."""


class Requests:
    """The requests of one job; the main loop calls `serve`.

    Args:
        directory: of the requests; it need not exist.
        handlers: kind → handler. A `SluiceError` refuses the request, an `OSError` leaves it for
            the next time. After a crash a handler may get a request again, and must not repeat its
            effects.
        slow: kinds that run on a separate thread, one request at a time.
    """

    def __init__(
        self, directory: Path, handlers: Mapping[str, Handler], *, slow: Collection[str] = ()
    ) -> None:
        self._directory = directory
        self._handlers = handlers
        self._slow = frozenset(slow)
        self._worker: threading.Thread | None = None
        self._fatal: SluiceError | None = None

    def open(self) -> list[str]:
        """Ids without a result, oldest first."""
        try:
            names = {path.name for path in self._directory.iterdir()}
        except FileNotFoundError:
            return []
        ids = {n.removesuffix(".json") for n in names if n.endswith(".json") and n[0] != "."}
        return sorted(i for i in ids if not i.endswith(".result") and i + _RESULT not in names)

    def serve(self) -> None:
        """Carry out open requests, slow ones on their thread; FencedError, CheckpointError."""
        if self._fatal is not None:
            raise self._fatal
        is_busy = self._worker is not None and self._worker.is_alive()
        for request_id in self.open():
            request = self._read(request_id)
            if request is not None and request.kind in self._slow:
                if is_busy:
                    continue
                is_busy = True
                work = threading.Thread(target=self._behind, args=(request,), name="request")
                work.daemon = True
                self._worker = work
                work.start()
            elif request is not None:
                self._carry_out(request)

    def refuse_all(self, error: SluiceError) -> None:
        for request_id in self.open():
            self._answer(request_id, _refused(error))

    def finish(self, timeout_s: float) -> None:
        if self._worker is not None:
            self._worker.join(timeout_s)

    def _read(self, request_id: str) -> Request | None:
        try:
            value = json.loads((self._directory / f"{request_id}.json").read_bytes())
            return Request(
                id=request_id,
                kind=str(value["kind"]),
                body=dict(value.get("body") or {}),
                at_ms=int(value.get("at_ms", 0)),
                by=str(value.get("by", "")),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            error = RequestError(
                f'request "{request_id}" cannot be read: {exc!r}', hint="Send it again."
            )
            self._answer(request_id, _refused(error))
            return None

    def _behind(self, request: Request) -> None:
        try:
            self._carry_out(request)
        except SluiceError as exc:
            self._fatal = exc

    def _carry_out(self, request: Request) -> None:
        _log.info("request", id=request.id, kind=request.kind, by=request.by)
        try:
            answer = {"status": "done", "result": dict(self._handler(request.kind)(request))}
        except (FencedError, CheckpointError):
            raise
        except SluiceError as exc:
            answer = _refused(exc)
        except OSError as exc:
            _log.warning("request is tried again", id=request.id, error=str(exc))
            return
        except Exception as exc:  # no error may end the job or repeat forever
            _log.exception("request failed", id=request.id)
            error = RequestError(
                f"request failed: {type(exc).__name__}: {exc}", hint="See the runner's log."
            )
            answer = _refused(error)
        self._answer(request.id, answer)

    def _handler(self, kind: str) -> Handler:
        if kind not in self._handlers:
            known = ", ".join(sorted(self._handlers))
            raise RequestError(f'request has kind "{kind}", expected {known}', hint="Send another.")
        return self._handlers[kind]

    def _answer(self, request_id: str, answer: Mapping[str, Any]) -> None:
        try:
            write_json_atomically(self._directory / f"{request_id}{_RESULT}", answer)
        except OSError as exc:
            _log.warning("request is answered later", id=request_id, error=str(exc))


def _refused(error: SluiceError) -> dict[str, Any]:
    fault = Fault.of(error)
    document = {"type": fault.type, "message": fault.message, "hint": fault.hint}
    return {"status": "refused", "error": document}


def reason_of(request: Request) -> str:
    """The operator's reason for going on; RequestError without one."""
    reason = request.body.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise RequestError("acknowledgement has no reason", hint="Say why it is right to go on.")
    return reason


def record_of(
    request: Request,
    *,
    choice: object,
    message: str,
    gaps: Sequence[Mapping[str, int]] = (),
) -> dict[str, Any]:
    """The record of a granted request; `gaps` are what the stream leaves out."""
    return {
        "id": request.id,
        "at_ms": time.time_ns() // 1_000_000,
        "by": request.by,
        "cause": request.body.get("cause"),
        "choice": choice,
        "reason": reason_of(request),
        "message": message,
        "gaps": list(gaps),
    }


def append_missing(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append to the list in `path`, durably, the `records` that it lacks."""
    known = path.read_text() if path.exists() else ""
    whole = known[: known.rfind("\n") + 1]  # a crash may have cut the last line
    missing = [each for each in records if f'"id":"{each["id"]}"' not in whole]
    if not missing:
        return
    begin = "" if known.endswith("\n") or not known else "\n"
    text = begin + "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in missing)
    stored = stored_files(path)
    if stored is not None:
        stored.put(path, (known + text).encode())
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
