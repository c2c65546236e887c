"""A source's process seen from the runner: commands in, events out, a JSON line each."""

import json
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from joins.adapters.process.source_forks import started
from joins.adapters.store.hand_over import stored_as_json
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from watermark.errors import secrets_in

_STOP_TIMEOUT_S = 10.0


class SourceConfig(Protocol):
    """What a source's process is started with."""

    @property
    def kafka(self) -> KafkaOptions:
        """Cluster and changelog topic."""

    def as_json(self) -> dict[str, Any]:
        """The value of `config` in the first line on standard input."""


class SourceProcess:
    """A running process of a source; it dies with this process, or the thread that starts it."""

    def __init__(
        self, module: str, config: SourceConfig, on_event: Callable[[dict[str, Any]], None]
    ) -> None:
        """Start `python -m module` and tell it `config`."""
        self._topic = config.kafka.topic
        self._on_event = on_event
        self._last_error: dict[str, Any] | None = None
        self._child, self._input, self._output = started(module)
        self._reader = threading.Thread(
            target=self._read, name=f"source {self._topic}", daemon=True
        )
        self._reader.start()
        document = config.as_json()
        secrets = secrets_in(document)
        self.send({"config": document, "secrets": secrets, "stored": stored_as_json()})

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def send(self, command: dict[str, Any]) -> None:
        """Write one command; a child that is gone is found by `running`."""
        try:
            self._input.write(json.dumps(command) + "\n")
            self._input.flush()
        except BrokenPipeError:
            return

    @property
    def ended_silently(self) -> bool:
        """Whether the child has ended without a word about the reason."""
        if self.running:
            return False
        self._reader.join(_STOP_TIMEOUT_S)
        return self._last_error is None

    def failure(self) -> SourceError:
        if self._last_error is not None:
            return SourceError(self._last_error["message"], hint=self._last_error["hint"])
        return SourceError(
            f'source process of topic "{self._topic}" ended with status {self._child.returncode}',
            hint="It is started again; if this stays, see the runner's log.",
        )

    def stop(self) -> None:
        """Ask the child to end, then insist."""
        self.send({"stop": True})
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            self._child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join(_STOP_TIMEOUT_S)  # its last words are heard before the next one starts
        if not self._reader.is_alive():
            self._output.close()

    def _read(self) -> None:
        for line in self._output:
            event = json.loads(line)
            if event["event"] == "error":
                self._last_error = event
            self._on_event(event)
