"""What a source's process speaks with its runner: commands in, events out, a JSON line each.

ARCHITECTURE.md ("The CDC process", "The process of a `delta` dimension") has the lines.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from watermark.errors import SluiceError, keep

_PR_SET_PDEATHSIG = 1
_GRACE_S = 5.0


class SourceProtocol:
    """Commands from standard input, events to standard output; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def first_line(self) -> dict[str, Any] | None:
        """The first line, None if standard input ended before it; its secrets are known then."""
        line = sys.stdin.readline()
        value = dict(json.loads(line)) if line.strip() else None
        keep({} if value is None else value.get("secrets", {}))
        return value

    def listen(self) -> None:
        """Read commands until `stop` or the end of input; then see to it that the process ends."""
        for line in sys.stdin:
            command = json.loads(line) if line.strip() else {}
            if command.get("stop"):
                break
            self.on_command(command)
        self.stopped.set()
        time.sleep(_GRACE_S)
        os._exit(0)

    def on_command(self, command: Mapping[str, Any]) -> None:
        """Take a command other than `stop`; on the listening thread."""

    def tell(self, event: str, value: Mapping[str, Any]) -> None:
        """Write one event."""
        line = json.dumps({"event": event, **value}, separators=(",", ":"))
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def tell_error(self, error: SluiceError, *, retry: bool) -> None:
        kind = type(error).__name__
        value = {"type": kind, "message": error.message, "hint": error.hint, "retry": retry}
        self.tell("error", value)


def bind_to_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
