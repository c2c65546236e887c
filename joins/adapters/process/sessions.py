"""A source's process: its protocol (docs/reference/contracts.md) and sessions with back-off."""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from io import TextIOBase
from pathlib import Path
from typing import Any, TextIO, TypeVar

from joins.adapters.process.parent import bind_to_parent
from joins.adapters.store_path import store_alike
from joins.durable.checkpoint import read_document, write_document
from joins.durable.codec import from_json
from watermark.errors import SluiceError, keep, redacted
from watermark.freshness import Proof

_GRACE_S = 5.0
_PROGRESS_S = 0.5
_Config = TypeVar("_Config")
_Protocol = TypeVar("_Protocol", bound="SourceProtocol")


class SourceProtocol:
    """Commands from standard input, events to standard output; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stopped = threading.Event()
        self._reported_at_s = 0.0

    def first_line(self) -> dict[str, Any] | None:
        """The first line, whose secrets are redacted from now on; None at the end of input."""
        line = sys.stdin.readline()
        value = dict(json.loads(line)) if line.strip() else None
        keep({} if value is None else value.get("secrets", {}))
        return value

    def listen(self) -> None:
        """Read commands until `stop` or the end of input; then make the process end."""
        for line in sys.stdin:
            command = json.loads(line) if line.strip() else {}
            if command.get("stop"):
                break
            self.on_command(command)
        self.stopped.set()
        time.sleep(_GRACE_S)
        os._exit(0)

    def on_command(self, command: Mapping[str, Any]) -> None:
        """Handle a command other than `stop`; on the listening thread."""

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        line = json.dumps({"event": event, **value}, separators=(",", ":"))
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def tell_proof(self, proof: Proof) -> None:
        """The answer of the source to a question; Kafka has everything up to its position."""
        self.tell("fresh", replace(proof, ends={}).as_json())

    def tell_watermark(self, generation: int, written: Iterable[tuple[int, int]]) -> None:
        """The (partition, offset) of each watermark record of a generation."""
        partitions = [{"partition": partition, "offset": offset} for partition, offset in written]
        self.tell("watermark", {"generation": generation, "partitions": partitions})

    def is_due(self, *, paced: bool) -> bool:
        """True if it is time to tell progress; if `paced`, half a second after the last time."""
        now_s = time.monotonic()
        if paced and now_s - self._reported_at_s < _PROGRESS_S:
            return False
        self._reported_at_s = now_s
        return True

    def tell_error(self, error: SluiceError, *, retry: bool) -> None:
        value = {
            "type": type(error).__name__,
            "message": error.message,
            "hint": error.hint,
            "detail": error.detail,
            "retry": retry,
        }
        self.tell("error", value)


class _Redacted(TextIOBase):
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._stream.write(redacted("\n".join(lines)) + "\n")
            self._stream.flush()
        return len(text)

    def flush(self) -> None:
        if self._rest:
            self._stream.write(redacted(self._rest))
            self._rest = ""
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def abandon(path: Path, kind: type[Any], reason: str) -> None:
    """Make a source whose state of `kind` is in `path` copy its table again."""
    kept = read_document(path, kind)
    if kept is not None:
        write_document(path, replace(kept, needed=reason))


def redact_standard_error() -> None:
    sys.stderr = _Redacted(sys.stderr)


_BACKOFF_S = (0.2, 5.0)
_GOOD_S = 30.0


def run_process(
    protocol: _Protocol,
    config: type[_Config],
    run: Callable[[_Config, _Protocol], int],
    *quiet: str,
) -> int:
    """Read the configuration and run with it; returns the exit code.

    Libraries `quiet` do not warn.
    """
    bind_to_parent()
    redact_standard_error()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for library in ("kafka.net.selector", *quiet):
        logging.getLogger(library).setLevel(logging.ERROR)
    value = protocol.first_line()
    if value is None:
        return 0
    store_alike(value.get("stored", ()))
    threading.Thread(target=protocol.listen, name="commands", daemon=True).start()
    return run(from_json(config, value["config"]), protocol)


def run_sessions(
    protocol: SourceProtocol,
    session: Callable[[], None],
    retried: tuple[type[SluiceError], ...],
) -> int:
    """Run sessions with back-off until the protocol stops; returns the exit code.

    Reports errors; the types `retried` start a new session, other SluiceErrors end with 1.
    """
    wait_s = _BACKOFF_S[0]
    while not protocol.stopped.is_set():
        began_at_s = time.monotonic()
        try:
            session()
        except retried as error:
            protocol.tell_error(error, retry=True)
        except SluiceError as error:
            protocol.tell_error(error, retry=False)
            return 1
        if time.monotonic() - began_at_s > _GOOD_S:
            wait_s = _BACKOFF_S[0]
        protocol.stopped.wait(wait_s)
        wait_s = min(wait_s * 2, _BACKOFF_S[1])
    return 0
