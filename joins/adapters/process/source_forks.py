"""Where the processes of sources come from: a fork of the runner from before it had threads.

What the runner has loaded is there in them, too, which saves each a second of a core and most of
its memory. They are its grandchildren, and end with it.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

import structlog
from setproctitle import setproctitle

from joins.adapters.process.forks import ForkedChild, Forks, receive, send
from joins.adapters.process.protocol import bind_to_parent

_server: socket.socket | None = None
_lock = threading.Lock()
_log = structlog.get_logger(__name__)


SourceChild = subprocess.Popen[str] | ForkedChild
"""A process of a source: a child of ours, or a forked one."""


def prepare() -> None:
    """Fork what sources are forked from; this process must have one thread only.

    Nothing that it holds is to be kept from sources: call it before secrets are known.
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
    """A process that runs `python -m module`, its standard input and its output.

    Raises:
        OSError: it cannot be started.
    """
    if _server is not None:
        try:
            return _forked(_server, module)
        except ConnectionError as exc:
            _log.warning("a source is started anew, for what forks them is gone", error=str(exc))
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
    """Fork for each request, until the runner is gone."""
    bind_to_parent()
    setproctitle("sluice-sources")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # the runner finds its secrets there
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
