"""What the embedded servers have in common: a process on a directory of its own, and its health."""

import os
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from service.embedded.errors import ServerStartError
from service.embedded.process import (
    LOOPBACK,
    Command,
    claim_directory,
    last_lines,
    spawn,
    stop,
    wait_until,
)

_STOP_TIMEOUT_S = 30.0


class EmbeddedServer(ABC):
    """A server that listens on the loopback interface and keeps its data below a directory.

    It can be stopped and started again, and ends when this process ends, however that happens. A
    later start on the same directory serves the same data on the same port. Not for use by several
    threads at a time.
    """

    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path, *, ready_timeout_s: float) -> None:
        self._dir = data_dir.absolute()
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._claim: int | None = None

    @property
    @abstractmethod
    def port(self) -> int:
        """The port that clients connect to; 0 until the first start."""

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return LOOPBACK

    @property
    def pid(self) -> int | None:
        """Process id of the running server, else None."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """File with what the server printed."""
        return self._dir / f"{self.name}.log"

    def healthy(self) -> bool:
        """Whether the server lives and answers a request."""
        return self.running and self._answers()

    def start(self) -> Self:
        """Start the server and wait until it serves; does nothing while it runs.

        Raises:
            ServerStartError: the port or the directory is taken, or the server did not come up.
        """
        if self.running:
            return self
        self.stop()
        self._claim = claim_directory(self._dir, what=self.name)
        try:
            self._prepare()
            self._process = spawn(self._command())
            self._await_health(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Shut the server down and wait until it is gone; does nothing when it is not there."""
        if self._process is not None:
            stop(self._process, timeout_s=_STOP_TIMEOUT_S, ask=self.stop_signal)
            self._process = None
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @abstractmethod
    def _prepare(self) -> None:
        """Choose the port and make on disk what the server needs."""

    @abstractmethod
    def _command(self) -> Command:
        """What to run."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a request is answered."""

    def _hint(self) -> str:
        """What to do when it does not start."""
        return f'Read "{self.log}"; a damaged data directory may be removed.'

    def _run_once(self, command: Command, *, task: str) -> None:
        """Run a tool of the server to its end.

        Raises:
            ServerStartError: it failed.
        """
        if spawn(command).wait() != 0:
            raise ServerStartError(
                f"{self.name} cannot {task}: {last_lines(self.log)}", hint=self._hint()
            )

    def _await_health(self, process: subprocess.Popen[bytes]) -> None:
        if not wait_until(self.healthy, process=process, timeout_s=self._ready_timeout_s):
            raise ServerStartError(
                f"{self.name} on {LOOPBACK}:{self.port} did not come up: {last_lines(self.log)}",
                hint=self._hint(),
            )
