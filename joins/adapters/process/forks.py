"""Forks processes from one that has loaded their modules: fast to start, with shared memory.

The forking process has one thread. A requester sends a line of JSON with the new process's
descriptors over a Unix socket, and gets a line back when that process has ended.
"""

import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from joins.adapters.process.parent import bind_to_parent

_MOST_BYTES = 1 << 20


def send(link: socket.socket, document: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one line, and the `descriptors` with its first byte; a short line arrives whole."""
    line = json.dumps(document).encode() + b"\n"
    sent = socket.send_fds(link, [line], descriptors)
    if sent < len(line):
        link.sendall(line[sent:])


def receive(link: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any], list[int]]:
    """One line and at most `descriptors` descriptors; OSError after the peer has gone."""
    line, received, _, _ = socket.recv_fds(link, 1, descriptors)
    try:
        while line and not line.endswith(b"\n") and len(line) < _MOST_BYTES:
            part = link.recv(1 << 16, socket.MSG_PEEK)
            end = part.find(b"\n") + 1 or len(part)
            line += link.recv(end)
            if not part:
                break
        return dict(json.loads(line)), received
    except BaseException as exc:
        for descriptor in received:
            os.close(descriptor)
        if isinstance(exc, ValueError | TypeError):
            raise ConnectionError("the other end has sent no line of JSON") from exc
        raise


def words_of(command_line: Sequence[str]) -> list[str]:
    words = [word for word in command_line if word]
    return words[0].split(" ") if len(words) == 1 else words


class ForkedChild:
    """A child of the forking process, like `subprocess.Popen`; `returncode` < 0 is a signal.

    Thread-safe.
    """

    def __init__(self, pid: int, link: socket.socket) -> None:
        link.setblocking(False)
        self._link = link
        self._looking = threading.RLock()
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, None while it lives. Without the forking process it counts as killed."""
        with self._looking:
            return self._look() if self.returncode is None else self.returncode

    def _look(self) -> int | None:
        try:
            if self._link.recv(1, socket.MSG_PEEK):
                self.returncode = int(receive(self._link)[0]["exit"])
            else:
                self.returncode = -signal.SIGKILL
        except BlockingIOError:
            return None
        except OSError:
            self.returncode = -signal.SIGKILL
        self._link.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if left_s == 0.0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            ended = select.poll()
            ended.register(self._link, select.POLLIN)
            ended.poll(None if left_s is None else 1_000 * left_s)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Forks:
    """The children of this single-threaded process, and the requesters that wait for their ends."""

    def __init__(self) -> None:
        self.waiting: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._open: set[socket.socket] = set()
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = (woken, wake)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))

    def watch(self, link: socket.socket, on_input: Callable[[], object]) -> None:
        self._open.add(link)
        self._selector.register(link, selectors.EVENT_READ, on_input)

    def forget(self, link: socket.socket) -> None:
        self._open.discard(link)
        self._selector.unregister(link)
        link.close()

    def turn(self, timeout_s: float | None) -> dict[int, int]:
        """Handle events, or wait for one; returns exit codes of children without a waiter."""
        for key, _ in self._selector.select(timeout_s):
            key.data()
        unknown = {}
        for pid, code in _ended():
            link = self.waiting.pop(pid, None)
            if link is None:
                unknown[pid] = code
                continue
            with suppress(OSError):
                send(link, {"exit": code})
            link.close()
        return unknown

    def fork(self, work: Callable[[], int], *, leads: bool) -> int:
        """A child that exits with the result of `work`; `leads` a session.

        It dies with this process.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            self._leave(leads=leads)
            code = work()
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _leave(self, *, leads: bool) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if leads:
            os.setsid()
        bind_to_parent()
        self._selector.close()
        for other in (*self._open, *self.waiting.values()):
            other.close()
        for descriptor in self._wake:
            os.close(descriptor)


def _ended() -> list[tuple[int, int]]:
    ended = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == 0:
            break
        ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended
