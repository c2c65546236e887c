"""Starts runners: each as a separate process, or forked by a shared runner host.

Control plane and host exchange JSON lines through a Unix socket:

| the control plane sends | the host answers |
|---|---|
| `{"link": true}`, and stays | nothing; the host runs while there is a link, or a runner |
| `{"job_dir", "environment"}`, standard streams | `{"pid"}`, then `{"exit"}` at its end |

A forked runner begins after the control plane has sent a byte.
"""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from joins.adapters.process.forks import ForkedChild, receive, send
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.jobs.supervise.runner_process import (
    RUNNER_COMMAND,
    RunnerProcess,
    environment,
    opened_log,
)
from service.jobs.supervise.watch import Watch
from service.security.secrets import handed_over

BEGIN = b"!"
_SOCKET = "host.sock"
_ANSWER_S = 5.0  # the supervisor waits meanwhile


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """A path of the host's socket that fits into a socket address, however long `directory` is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{_SOCKET}"
    finally:
        os.close(descriptor)


def listen(directory: Path) -> socket.socket:
    """The host's end; only this user can access its directory."""
    (directory / _SOCKET).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    with address(directory) as path:
        listener.bind(path)
    listener.listen(128)
    return listener


def connect(directory: Path) -> socket.socket | None:
    """A connection to the host; None if there is none. Raises OSError if it does not answer."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(_ANSWER_S)
    try:
        with address(directory) as path:
            link.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except BaseException:
        link.close()
        raise
    return link


_LOG = "host.log"
_MOST_FAILURES = 3


class RunnerHostLink:
    """A link to the host of `settings.host_dir`; it starts the host if there is none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = settings.host_dir.resolve()  # the host stays if it was behind a link
        self._log = self._directory / _LOG
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._failures = 0

    def start(self, job_dir: Path) -> RunnerProcess | None:
        """Have a runner forked; None while the host is starting: call again. Raises OSError."""
        try:
            link = self._linked()
            if link is not None:
                runner = self._forked(link, job_dir)
                self._failures = 0
                return runner
        except (BlockingIOError, ConnectionError, TimeoutError) as exc:
            raise ChildProcessError(f'the runner host does not answer, see "{self._log}"') from exc
        if self._process is None or self._process.poll() is not None:
            self._spawn()
        return None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _linked(self) -> socket.socket | None:
        """A connection for one request to the linked host; None if it is gone."""
        if not self._directory.is_dir():
            return None
        if self._link is None or not _is_open(self._link):
            self.close()
            self._link = connect(self._directory)
            if self._link is None:
                return None
            send(self._link, {"link": True})
            self._link.setblocking(False)
        return connect(self._directory)

    def _forked(self, link: socket.socket, job_dir: Path) -> RunnerProcess:
        self._settings.hand_over(job_dir)
        log = opened_log(JobLayout(job_dir).runner_log)
        try:
            with handed_over(job_dir) as secrets:
                request = {"job_dir": str(job_dir), "environment": environment()}
                send(link, request, [secrets, log])
                pid = int(receive(link)[0]["pid"])
            runner = RunnerProcess.of_child(ForkedChild(pid, link))
            link.sendall(BEGIN)
        except BaseException:
            link.close()
            raise
        finally:
            os.close(log)
        return runner

    def _spawn(self) -> None:
        if self._failures > _MOST_FAILURES:
            self._failures = 0
            raise ChildProcessError(f'the runner host ends at its start, see "{self._log}"')
        self._failures += 1
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._settings.hand_over(self._directory)
        log = opened_log(self._log)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service.jobs.host", "--directory", str(self._directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                env=environment(),
                start_new_session=True,
            )
        finally:
            os.close(log)


def _is_open(link: socket.socket) -> bool:
    try:
        return bool(link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return True
    except OSError:
        return False


class RunnerStarter:
    """Starts runners until `give_up`, and again after `reset`."""

    def __init__(self, settings: Settings, command: Sequence[str] | None) -> None:
        self._settings = settings
        self._command = tuple(command or RUNNER_COMMAND)
        is_shared = settings.runners == "shared" and command is None
        self._host = RunnerHostLink(settings) if is_shared else None
        self._given_up = threading.Event()

    def start(self, watch: Watch, job_dir: Path) -> bool:
        """Start a runner for `watch`; False: call again. Raises OSError."""
        if self._given_up.is_set():
            return False
        if self._host is None:
            self._settings.hand_over(job_dir)
            runner: RunnerProcess | None = RunnerProcess.start(self._command, job_dir)
        else:
            runner = self._host.start(job_dir)
        if runner is None:
            return False
        watch.begin(runner)
        if self._given_up.is_set():  # set meanwhile: `end_all` may have returned
            runner.kill()
            return False
        return True

    def give_up(self) -> None:
        self._given_up.set()

    def reset(self) -> None:
        self.close()
        self._given_up.clear()

    def close(self) -> None:
        if self._host is not None:
            self._host.close()
