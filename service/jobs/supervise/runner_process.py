"""One runner as an operating-system process: started in a session of its own, or adopted alive."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import psutil

import service
from joins.adapters.process.forks import ForkedChild
from service.jobs.store.layout import JobLayout, write_runner_pid
from service.jobs.supervise.runner_log import LOG_LIMIT_BYTES, older
from service.security.secrets import VARIABLE_PREFIX, handed_over

EXIT_STOPPED = 0
EXIT_FAILED = 3
EXIT_LOCKED = 4
_KILL_TAKES_S = 0.5
_POLL_S = 0.05
RUNNER_COMMAND = (sys.executable, "-m", "service.jobs.runner")
_STAYS_HERE = ("SLUICE_DATABASE_URL", "SLUICE_TOKEN", VARIABLE_PREFIX)


class RunnerProcess:
    """A runner that was alive when we got hold of it."""

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
        """Start `command --job-dir <job_dir>`, its output going to `runner.log`.

        Raises:
            OSError: the command cannot be executed, or the log cannot be written.
        """
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
        write_runner_pid(job_dir, child.pid)
        return cls(psutil.Process(child.pid), child)

    @classmethod
    def of_child(cls, child: ForkedChild) -> Self:
        return cls(psutil.Process(child.pid), child)

    @classmethod
    def adopt(cls, process: psutil.Process) -> Self:
        return cls(process, None)

    def running(self) -> bool:
        """Whether it still lives."""
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
        """Seconds since it was started."""
        return max(0.0, time.time() - self.started_at_s)

    def terminate(self) -> None:
        try:
            self._process.send_signal(signal.SIGTERM)
        except psutil.NoSuchProcess:
            return

    def kill(self) -> None:
        """Kill it and what it started in its own process group."""
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
    """Ask all runners to stop, kill those that have not; return when none is left, at `by` at last.

    Args:
        runners: those that there are now; it is asked again, for one may have just been started.
        by: a time of `time.monotonic`; the kill comes so much earlier that it is done by then.
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
    """A descriptor that appends to a log of processes; a long one is put aside before.

    Raises:
        OSError: it cannot be written.
    """
    _rotate(log)
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def environment() -> dict[str, str]:
    """Ours, with our packages' directory in front: the runner works in another directory.

    The job store is the control plane's: its URL, which may hold a password, stays here. So do
    secrets: a runner and all its children would show them to whoever may look at a process.
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
