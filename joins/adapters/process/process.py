"""The process of a source as seen from the runner.

Processes are forked from a copy of the runner made before it had threads, which saves each a second
of a core and most of its memory. They end with the runner.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Protocol

import structlog
from setproctitle import setproctitle

from joins.adapters.process.forks import ForkedChild, Forks, receive, send
from joins.adapters.process.parent import bind_to_parent
from joins.adapters.store_path import stored_as_json
from joins.durable.codec import as_json
from joins.plan.errors import SourceError
from joins.plan.plan import KafkaOptions
from watermark.errors import secrets_in

_server: socket.socket | None = None
_lock = threading.Lock()
_log = structlog.get_logger(__name__)


SourceChild = subprocess.Popen[str] | ForkedChild
"""A process of a source: a child of this process, or a forked one."""


def prepare() -> None:
    """Fork the server that sources are forked from; this process must have one thread only.

    Call it before secrets are loaded: the server inherits this process's memory.
    """
    global _server
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() == 0:
        try:
            ours.close()
            _serve(theirs)
        finally:
            os._exit(1)
    theirs.close()
    _server = ours


def started(module: str) -> tuple[SourceChild, IO[str], IO[str]]:
    """Start `python -m module`; the child, its standard input and its output."""
    if _server is not None:
        try:
            return _forked(_server, module)
        except ConnectionError as exc:
            _log.warning(
                "a source is started again: the process that forks sources is gone", error=str(exc)
            )
    child = subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    return child, child.stdin, child.stdout


def _forked(server: socket.socket, module: str) -> tuple[SourceChild, IO[str], IO[str]]:
    read_input, write_input = os.pipe2(os.O_CLOEXEC)
    read_output, write_output = os.pipe2(os.O_CLOEXEC)
    link, end = socket.socketpair()
    try:
        with _lock:
            send(server, {"module": module}, [read_input, write_output, end.fileno()])
        pid = int(receive(link)[0]["pid"])
    except BaseException:
        link.close()
        for descriptor in (write_input, read_output):
            os.close(descriptor)
        raise
    finally:
        end.close()
        for descriptor in (read_input, write_output):
            os.close(descriptor)
    return ForkedChild(pid, link), os.fdopen(write_input, "w"), os.fdopen(read_output)


def _serve(requests: socket.socket) -> None:
    bind_to_parent()
    setproctitle("sluice-sources")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the runner's standard input has its secrets
    os.close(nothing)
    forks = Forks()
    forks.watch(requests, lambda: _fork(forks, requests))
    while True:
        forks.turn(None)


def _fork(forks: Forks, requests: socket.socket) -> None:
    try:
        request, (read_input, write_output, end) = receive(requests, 3)
    except OSError:
        os._exit(0)  # the runner has ended
    link = socket.socket(fileno=end)
    pid = forks.fork(lambda: _run(request, read_input, write_output, link), leads=False)
    forks.waiting[pid] = link
    for descriptor in (read_input, write_output):
        os.close(descriptor)
    with suppress(OSError):
        send(link, {"pid": pid})


def _run(
    request: Mapping[str, Any], read_input: int, write_output: int, link: socket.socket
) -> int:
    link.close()
    for standard, descriptor in ((0, read_input), (1, write_output)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    module = request["module"]
    setproctitle(f"sluice-source -m {module}")
    return int(import_module(module).main())


_STOP_TIMEOUT_S = 10.0


class SourceConfig(Protocol):
    """Configuration of a source's process."""

    @property
    def kafka(self) -> KafkaOptions:
        """Cluster and changelog topic."""


class SourceProcess:
    """A running process of a source; it dies with this process or the thread that starts it."""

    def __init__(
        self, module: str, config: SourceConfig, on_event: Callable[[dict[str, Any]], None]
    ) -> None:
        self._topic = config.kafka.topic
        self._on_event = on_event
        self._last_error: dict[str, Any] | None = None
        self._child, self._input, self._output = started(module)
        self._reader = threading.Thread(
            target=self._read, name=f"source {self._topic}", daemon=True
        )
        self._reader.start()
        secrets = secrets_in(config)
        self.send({"config": as_json(config), "secrets": secrets, "stored": stored_as_json()})

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def send(self, command: dict[str, Any]) -> None:
        """Write one command; a dead child shows in `running`."""
        try:
            self._input.write(json.dumps(command) + "\n")
            self._input.flush()
        except BrokenPipeError:
            return

    @property
    def ended_silently(self) -> bool:
        if self.running:
            return False
        self._reader.join(_STOP_TIMEOUT_S)
        return self._last_error is None

    def failure(self) -> SourceError:
        if self._last_error is not None:
            error = self._last_error
            return SourceError(error["message"], hint=error["hint"], detail=error["detail"])
        return SourceError(
            f'source process of topic "{self._topic}" ended with status {self._child.returncode}',
            hint="It is started again; if this stays, see the runner's log.",
        )

    def stop(self) -> None:
        self.send({"stop": True})
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            self._child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join(_STOP_TIMEOUT_S)  # its last events are read before the next one starts
        if not self._reader.is_alive():
            self._output.close()

    def _read(self) -> None:
        for line in self._output:
            event = json.loads(line)
            if event["event"] == "error":
                self._last_error = event
            self._on_event(event)
