"""Common parts of the embedded servers: process, directory and health."""

import secrets
import signal
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from joins.durable.checkpoint import read_json, write_json_atomically
from joins.kernels.local_files import give_lock_up
from service.embedded.process import (
    LOOPBACK,
    Command,
    ServerStartError,
    claim_directory,
    free_port,
    last_lines,
    require_free,
    spawn,
    stop,
    wait_until,
)

_STOP_TIMEOUT_S = 30.0


class EmbeddedServer(ABC):
    """A server on the loopback interface with its data below a directory.

    It can be restarted, and ends with this process, even when that is killed. A later start on the
    same directory serves the same data on the same port. Not thread-safe.
    """

    name: ClassVar[str]
    role: ClassVar[str]
    state_file: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, data_dir: Path, *, ready_timeout_s: float) -> None:
        self._dir = data_dir.absolute()
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._claim: int | None = None
        self._state: dict[str, Any] = {}

    @property
    def port(self) -> int:
        """The port that clients connect to; 0 until the first start."""
        return int(self._state.get("port", 0))

    @property
    def host(self) -> str:
        return LOOPBACK

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        return self._dir / f"{self.name}.log"

    def healthy(self) -> bool:
        return self.running and self._answers()

    def start(self, *, given_up: threading.Event | None = None) -> Self:
        """Start the server and wait until it serves; does nothing while it runs.

        `given_up` ends the wait. Raises ServerStartError if the port or the directory is taken, or
        the server does not come up.
        """
        if self.running:
            return self
        self.stop()
        self._claim = claim_directory(self._dir, what=self.name)
        try:
            self._prepare()
            self._process = spawn(self._command())
            self._await_health(self._process, given_up or threading.Event())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process, timeout_s=_STOP_TIMEOUT_S, ask=self.stop_signal)
            self._process = None
        if self._claim is not None:
            give_lock_up(self._claim)
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
        """Choose the port and write the server's files."""

    @abstractmethod
    def _command(self) -> Command:
        """What to run."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether a request is answered."""

    def _keep_state(self, port: int | None, **new: str) -> Path:
        """Choose a port and store it with the values of a first start; returns the file."""
        path = self._dir / self.state_file
        state: dict[str, Any] = read_json(path) or {"port": free_port(), **new}
        state["port"] = port or int(state["port"])
        require_free(
            state["port"],
            what=self.name,
            hint=f"Stop the program that listens there, or choose another port for {self.role}.",
        )
        write_json_atomically(path, state)
        self._state = state
        return path

    def _hint(self) -> str:
        return f'Read "{self.log}"; a damaged data directory may be removed.'

    def _run_once(self, command: Command, *, task: str) -> None:
        """Run a tool of the server to its end. Raises ServerStartError if it fails."""
        if spawn(command).wait() != 0:
            raise ServerStartError(
                f"{self.name} cannot {task}: {last_lines(self.log)}", hint=self._hint()
            )

    def _await_health(self, process: subprocess.Popen[bytes], given_up: threading.Event) -> None:
        is_over = wait_until(
            lambda: given_up.is_set() or self.healthy(),
            process=process,
            timeout_s=self._ready_timeout_s,
        )
        if not is_over or given_up.is_set():
            raise ServerStartError(
                f"{self.name} on {LOOPBACK}:{self.port} did not come up: {last_lines(self.log)}",
                hint=self._hint(),
            )


@contextmanager
def side_by_side(*servers: EmbeddedServer) -> Iterator[None]:
    """Run `servers` within the block, each started in its own thread.

    Raises ServerStartError if one does not start; the others are stopped.
    """
    given_up = threading.Event()
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
        with ThreadPoolExecutor(len(servers)) as threads:
            starts = [threads.submit(server.start, given_up=given_up) for server in servers]
            try:
                for start in as_completed(starts):
                    start.result()
            except BaseException:
                given_up.set()
                raise
        yield


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How a database runs; `port` None takes the directory's earlier port, else a free one.

    `options` are the server's, such as ``{"binlog-row-image": "MINIMAL"}``; None for an option
    without a value, such as ``{"skip-log-bin": None}``.
    """

    port: int | None = None
    options: Mapping[str, str | None] = field(default_factory=dict)
    ready_timeout_s: float = 90.0


class EmbeddedDatabase(EmbeddedServer):
    """A database with a superuser and the user `cdc`; a later start keeps their passwords."""

    # reads better deep: two databases differ in their programs and statements only.

    role = "the database"

    def __init__(
        self, data_dir: Path, home: Path, settings: DatabaseSettings | None = None
    ) -> None:
        self._settings = settings or DatabaseSettings()
        super().__init__(data_dir, ready_timeout_s=self._settings.ready_timeout_s)
        self._home = home

    @property
    def cdc_password(self) -> str:
        return str(self._state.get("cdc_password", ""))

    @property
    def root_password(self) -> str:
        return str(self._state.get("root_password", ""))

    @property
    def _data(self) -> Path:
        return self._dir / "data"

    def _prepare(self) -> None:
        passwords = {name: secrets.token_urlsafe(18) for name in ("root_password", "cdc_password")}
        self._keep_state(self._settings.port, **passwords).chmod(0o600)
        self._install()

    @abstractmethod
    def _install(self) -> None:
        """On first use, create the data directory; a half-made one is replaced."""
