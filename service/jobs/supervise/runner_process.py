"""One runner as an operating-system process, and its log.

The log stays bounded: above the limit its content moves to `runner.log.1`. The file is emptied, not
renamed, as all processes of a runner have it open to append. Printed rows wait meanwhile and none
is lost; a line that another process writes in that instant may be.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, TextIO

import psutil

import service
from joins.adapters.process.forks import ForkedChild
from service.jobs.store.layout import JobLayout, write_runner_pid
from service.security.secrets import VARIABLE_PREFIX, handed_over

LOG_LIMIT_BYTES = 16 << 20
_LOOK_BYTES = 1 << 20


def older(log: Path) -> Path:
    return log.with_name(log.name + ".1")


def tail_before(log: Path, count: int) -> bytes:
    """At most the last `count` bytes of the log's previous file."""
    try:
        with older(log).open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - count))
            return opened.read(count)
    except FileNotFoundError:
        return b""


class RunnerLog:
    """Standard output of a runner, bounded if it is the file `log`; thread-safe."""

    def __init__(self, log: Path, stream: TextIO, limit: int = LOG_LIMIT_BYTES) -> None:
        self._log = log
        self._stream = stream
        self._limit: int | None = limit
        self._written = 0
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            count = self._stream.write(text)
            self._written += count
            if self._written >= _LOOK_BYTES:
                self._bound()
            return count

    def keep_all(self) -> None:
        self._limit = None

    def flush(self) -> None:
        with self._lock:
            self._bound()

    def _bound(self) -> None:
        self._stream.flush()
        self._written = 0
        try:
            descriptor = self._stream.fileno()
            status = os.fstat(descriptor)
            if (
                self._limit is not None
                and status.st_size > self._limit
                and self._is_ours(descriptor, status)
            ):
                self._move(descriptor)
        except OSError:  # not a file, or the disk is full: the log continues
            return

    def _is_ours(self, descriptor: int, status: os.stat_result) -> bool:
        appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
        return bool(appends) and os.path.samestat(status, self._log.stat())

    def _move(self, descriptor: int) -> None:
        aside = self._log.with_name(self._log.name + ".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with self._log.open("rb") as source, open(os.open(aside, flags, 0o600), "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            aside.replace(older(self._log))
            shutil.copyfileobj(source, copy)  # written since the first copy
            copy.flush()
            os.ftruncate(descriptor, 0)


EXIT_STOPPED = 0
EXIT_FAILED = 3
EXIT_LOCKED = 4
EXIT_SUPERSEDED = 5
_KILL_TAKES_S = 0.5
_POLL_S = 0.05
RUNNER_COMMAND = (sys.executable, "-m", "service.jobs.runner")
_STAYS_HERE = ("SLUICE_DATABASE_URL", "SLUICE_TOKEN", VARIABLE_PREFIX)


class RunnerProcess:
    """A runner that was alive when the supervisor found or started it."""

    def __init__(
        self, process: psutil.Process, child: "subprocess.Popen[bytes] | ForkedChild | None"
    ) -> None:
        self._process = process
        self._child = child
        self.pid = process.pid
        self.adopted = child is None
        self.started_at_s = process.create_time()

    @classmethod
    def start(cls, command: Sequence[str], job_dir: Path) -> Self:
        """Start `command --job-dir <job_dir>` with its output in `runner.log`. Raises OSError."""
        descriptor = opened_log(JobLayout(job_dir).runner_log)
        try:
            with handed_over(job_dir) as secrets:
                child = subprocess.Popen(
                    [*command, "--job-dir", str(job_dir)],
                    stdin=secrets,
                    stdout=descriptor,
                    stderr=subprocess.STDOUT,
                    cwd=job_dir,
                    env=environment(),
                    start_new_session=True,
                )
        finally:
            os.close(descriptor)
        try:
            write_runner_pid(job_dir, child.pid)
            return cls(psutil.Process(child.pid), child)
        except BaseException:
            child.kill()
            child.wait()
            raise

    @classmethod
    def of_child(cls, child: ForkedChild) -> Self:
        """Raises ChildProcessError if it has ended already."""
        try:
            return cls(psutil.Process(child.pid), child)
        except psutil.NoSuchProcess as exc:
            raise ChildProcessError(f"runner {child.pid} ended before its first step") from exc

    @classmethod
    def adopt(cls, process: psutil.Process) -> Self:
        return cls(process, None)

    def running(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        try:
            return self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    @property
    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.returncode

    def age_s(self) -> float:
        return max(0.0, time.time() - self.started_at_s)

    def terminate(self) -> None:
        try:
            self._process.send_signal(signal.SIGTERM)
        except psutil.NoSuchProcess:
            return

    def kill(self) -> None:
        try:
            if not self._process.is_running():
                return
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            return


def end_all(runners: Callable[[], Sequence[RunnerProcess | None]], *, by: float) -> None:
    """Stop all runners and kill the rest, so that none is left at `by` (`time.monotonic`).

    `runners` is called again each time, as one may have just been started.
    """
    terminated: set[int] = set()
    while living := [each for each in runners() if each is not None and each.running()]:
        now = time.monotonic()
        for runner in living:
            if now > by - _KILL_TAKES_S:
                runner.kill()
            elif runner.pid not in terminated:
                terminated.add(runner.pid)
                runner.terminate()
        if now > by:
            return
        time.sleep(_POLL_S)


def opened_log(log: Path) -> int:
    """A descriptor that appends to a log, rotated first if it is long. Raises OSError."""
    _rotate(log)
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def environment() -> dict[str, str]:
    """This process's variables with our packages in PYTHONPATH: runners have another directory.

    The job store's URL and secrets are left out: other users may see a process's variables.
    """
    root = str(Path(service.__file__).resolve().parents[1])
    entries = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    paths = dict.fromkeys(str(Path(entry).absolute()) for entry in entries)
    ours = {n: v for n, v in os.environ.items() if not n.startswith(_STAYS_HERE)}
    return {**ours, "PYTHONPATH": os.pathsep.join(paths)}


def _rotate(log: Path) -> None:
    try:
        if log.stat().st_size > LOG_LIMIT_BYTES:
            log.replace(older(log))
    except FileNotFoundError:
        return
