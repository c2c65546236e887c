"""Child processes that end with this process, even when it is killed; and locks on directories."""

import contextlib
import fcntl
import os
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from joins.kernels.local_files import take_lock
from service.errors import ServiceError


class EmbeddedError(ServiceError, fault="embedded"):
    """A fault of the embedded Java, jars or servers."""


class JavaNotFoundError(EmbeddedError, fault="java-not-found"):
    """There is no Java 17 to 25."""


class JarCacheError(EmbeddedError, fault="jar-cache"):
    """Jars or binaries cannot be fetched, or differ from what the lock file pins."""


class ServerStartError(EmbeddedError, fault="server-start"):
    """An embedded server cannot be started."""


LOOPBACK = "127.0.0.1"
_POLL_S = 0.05
_LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run: its output is appended to `log`, `environment` to the present one."""

    arguments: list[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None


def spawn(command: Command) -> subprocess.Popen[bytes]:
    reply: Future[subprocess.Popen[bytes]] = Future()
    _spawner().put((command, reply))
    return reply.result()


def stop(
    process: subprocess.Popen[bytes],
    *,
    timeout_s: float,
    ask: signal.Signals = signal.SIGTERM,
) -> None:
    """Send `ask`, kill the process after `timeout_s`, and wait until it is gone."""
    if process.poll() is None:
        process.send_signal(ask)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_until(
    condition: Callable[[], bool], *, process: subprocess.Popen[bytes], timeout_s: float
) -> bool:
    """Poll `condition`; False if `process` has exited or `timeout_s` has passed first."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        if condition():
            return True
        time.sleep(_POLL_S)
    return False


_PORTS = range(10_000, 32_768)
"""Linux gives the ports above to connections: one may take a port before its server listens."""


def free_port() -> int:
    """A port at which nothing listens."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


def require_free(port: int, *, what: str, hint: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as exc:
            raise ServerStartError(
                f"{what} cannot listen on {LOOPBACK}:{port}: {os.strerror(exc.errno or 0).lower()}",
                hint=hint,
            ) from exc


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of `path`; a holder's death releases it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def claim_directory(directory: Path, *, what: str) -> int:
    """Lock `directory`; returns the descriptor for `give_lock_up`. Raises ServerStartError."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory / "sluice.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not take_lock(descriptor):
        os.close(descriptor)
        raise ServerStartError(
            f'{what} cannot use directory "{directory}": another process has it',
            hint="Stop the other instance, or choose another data directory.",
        )
    return descriptor


def last_lines(log: Path, count: int = 3) -> str:
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return "no log"
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return " / ".join(lines[-count:]) or "no output"


@cache
def _spawner() -> "queue.SimpleQueue[tuple[Command, Future[subprocess.Popen[bytes]]]]":
    """The thread that forks; it lives as long as this process.

    The kernel ends the children with the thread that forked them, and a caller's thread may be a
    short-lived one of a server's pool.
    """
    work: queue.SimpleQueue[tuple[Command, Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
    threading.Thread(target=_serve, args=(work,), name="spawner", daemon=True).start()
    return work


def _serve(work: "queue.SimpleQueue[tuple[Command, Future[subprocess.Popen[bytes]]]]") -> None:
    while True:
        command, reply = work.get()
        try:
            reply.set_result(_start(command))
        except OSError as exc:
            reply.set_exception(exc)


def _start(command: Command) -> subprocess.Popen[bytes]:
    launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
    with command.log.open("ab") as log:
        return subprocess.Popen(
            [*launcher, *command.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **command.environment},
            cwd=command.directory,
            start_new_session=True,
        )
