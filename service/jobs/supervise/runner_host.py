"""The control plane's side of a runner host: there while it is needed, and asked for runners."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import structlog

from joins.adapters.process.forks import ForkedChild, receive, send
from service.config import Settings
from service.jobs.store.layout import JobLayout
from service.jobs.supervise.host_link import BEGIN, connect
from service.jobs.supervise.runner_process import (
    RunnerProcess,
    environment,
    opened_log,
)
from service.security.secrets import handed_over

_LOG = "host.log"
_ANSWER_S = 60.0
_MOST_FAILURES = 3
_log = structlog.get_logger(__name__)


class RunnerHostLink:
    """A link to the host of `settings.host_dir`, which is started where there is none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = settings.host_dir
        self._log = self._directory / _LOG
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._failures = 0

    def start(self, job_dir: Path) -> RunnerProcess | None:
        """Have a runner forked for the job of `job_dir`, its output going to `runner.log`.

        Returns:
            The runner; None while the host is being started, so that one asks again.

        Raises:
            OSError: the host ends again and again, or the log cannot be written.
        """
        try:
            link = self._linked()
            if link is not None:
                runner = self._forked(link, job_dir)
                self._failures = 0
                return runner
        except ConnectionError as exc:
            _log.warning("the runner host ended while a runner was started", error=str(exc))
        if self._process is None or self._process.poll() is not None:
            self._spawn()
        return None

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _linked(self) -> socket.socket | None:
        """A connection for one request to the host that we are linked with; None if it is gone."""
        if not self._directory.is_dir():
            return None
        if self._link is None or not _is_open(self._link):
            self.close()
            self._link = connect(self._directory)
            if self._link is None:
                return None
            send(self._link, {"link": True})
        return connect(self._directory)

    def _forked(self, link: socket.socket, job_dir: Path) -> RunnerProcess:
        self._settings.hand_over(job_dir)
        log = opened_log(JobLayout(job_dir).runner_log)
        try:
            with handed_over(job_dir) as secrets:
                request = {"job_dir": str(job_dir), "environment": environment()}
                send(link, request, [secrets, log])
                link.settimeout(_ANSWER_S)
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
