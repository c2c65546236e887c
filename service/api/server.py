"""The running control plane: its data directory, store, supervisor and HTTP server."""

import os
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from joins.durable.checkpoint import create_json_once, read_json
from joins.kernels.local_files import give_lock_up, take_lock
from service.api.app import create_app
from service.api.http import exposure
from service.api.http.connections import HEAD_LIMIT_BYTES, SeatedServer, patient
from service.api.http.exposure import Peers
from service.api.services import Services
from service.config import Settings, ends_runners, store_is_shared
from service.errors import ControlPlaneError
from service.jobs.inspect.inspector import Inspector
from service.jobs.leadership import ANSWER_S, ControlPlaneRole, Duties, Election, Leadership
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import CatalogTables, Submissions
from service.jobs.supervise.hooks import Hooks, default_hooks
from service.jobs.supervise.supervisor import Supervisor
from service.jobs.supervise.verification_schedule import VerificationSchedule

_LOCK = "control-plane.lock"
_ID = "job-store.json"


def lock_directory(data_dir: Path, *, shared: bool) -> int:
    """Create and lock the directory; returns the descriptor for `give_lock_up`.

    Control planes on one PostgreSQL store share it; one on SQLite has it alone. Raises
    ControlPlaneError if it cannot be used or is in use.
    """
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = data_dir / _LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise ControlPlaneError(
            f'data directory "{data_dir}" cannot be used: {exc.strerror}',
            hint="Set SLUICE_DATA_DIR to a directory that this user can write.",
        ) from exc
    if not take_lock(descriptor, shared=shared):
        os.close(descriptor)
        raise ControlPlaneError(
            f'data directory "{data_dir}" is in use by another control plane',
            hint="Use that one, stop it, or set SLUICE_DATA_DIR to another directory.",
        )
    return descriptor


def bind_directory(store: JobStore, data_dir: Path, warehouse: str | None) -> None:
    """Ensure that control planes on one store use one data directory, or one warehouse.

    With a warehouse, each control plane has copies of the jobs in its directory, and the store has
    the rest. The first control plane decides. Raises ControlPlaneError if this one differs.
    """
    path = data_dir / _ID
    bound = store.database.bind(None)
    of_warehouse = None if warehouse is None else str(uuid.uuid5(uuid.NAMESPACE_URL, warehouse))
    if bound is None and of_warehouse is not None and not path.exists():
        bound = store.database.bind(of_warehouse)
    if bound is not None and bound == of_warehouse:
        store.has_directories = False
        return
    if bound is None:
        create_json_once(path, {"data_dir_id": str(uuid.uuid4())})
    content = read_json(path)
    own = None if content is None else str(content["data_dir_id"])
    if own is None or store.database.bind(own) != own:
        has = "no job store" if own is None else "another job store"
        raise ControlPlaneError(
            f'data directory "{data_dir}" belongs to {has}, not to that of SLUICE_DATABASE_URL',
            hint="Mount the directory that the other control planes of this store have, and set "
            "SLUICE_DATA_DIR to it; or set SLUICE_WAREHOUSE to theirs, if they have one.",
        )


_START_TIMEOUT_S = 20.0
_KILLED_WITHIN_S = 10.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class _Parts:
    lock: int
    listener: socket.socket
    services: Services
    server: uvicorn.Server
    election: Election | None
    schedule: VerificationSchedule


class ControlPlane:
    """A control plane of one data directory; runners survive it.

    With `stop_with_parent`, or several control planes on one PostgreSQL store, it ends the runners
    first, and the next control plane or leader restarts them. `run` serves in this thread until a
    signal; a `with` block serves in the background.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        hooks: Hooks | None = None,
        runner_command: Sequence[str] | None = None,
        inspect_command: Sequence[str] | None = None,
    ) -> None:
        self._settings = settings
        self._hooks = default_hooks() if hooks is None else hooks
        self._runner_command = runner_command
        self._inspect_command = inspect_command
        self._inspector = Inspector(inspect_command, settings)
        self._parts: _Parts | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def open(self) -> None:
        """Lock the data directory, bind the port and open the job store.

        Raises:
            ConfigError: the settings are unsafe, or the certificate is unusable.
            ControlPlaneError: the data directory or the port is in use or not accessible.
            StoreError: the job store cannot be opened.
        """
        settings = self._settings
        exposure.check_settings(settings)
        tls = exposure.tls_context(settings)
        lock = lock_directory(settings.data_dir, shared=store_is_shared(settings))
        listener: socket.socket | None = None
        try:
            listener = _listen(settings.host, settings.port)
            store = _store(settings)
        except BaseException:
            if listener is not None:
                listener.close()
            give_lock_up(lock)
            raise
        command = self._runner_command
        supervisor = Supervisor(store, settings, self._hooks.remove, runner_command=command)
        submissions = Submissions(store, settings, self._hooks)
        tables = CatalogTables(store, settings, submissions)
        leadership = Leadership(leads=not store_is_shared(settings))
        services = Services(
            settings, store, supervisor, submissions, tables, self._inspector, leadership
        )
        scheme = "http" if tls is None else "https"
        self.url = _url(listener, scheme)
        election = _election(services, partial(_advertised, listener, scheme))
        inspector = Inspector(self._inspect_command, settings)  # it holds no seat of an operator
        schedule = VerificationSchedule(
            store, services.layout, inspector, lambda: leadership.role is ControlPlaneRole.LEADER
        )
        server = _server(services, tls)
        self._parts = _Parts(lock, listener, services, server, election, schedule)

    def warm_up(self) -> None:
        self._hooks.warm_up()

    @property
    def services(self) -> Services:
        return self._open_parts().services

    def run(self) -> None:
        parts = self._open_parts()
        if parts.election is None:
            parts.services.updates.catch_up()
            parts.services.supervisor.start()
        else:
            parts.election.start()
            parts.election.wait(ANSWER_S)
        parts.schedule.start()
        parts.server.run(sockets=[parts.listener])

    def close(self) -> None:
        """Release everything; runners continue unless configured to stop."""
        if self._parts is None:
            return
        parts = self._parts
        try:
            parts.schedule.close()
            parts.server.should_exit = True
            if self._thread is not None:
                self._thread.join()
            if ends_runners(self._settings) and parts.services.supervisor.alive:
                within_s = self._settings.stop_timeout_s + _KILLED_WITHIN_S
                parts.services.supervisor.end_runners(timeout_s=within_s)
        finally:
            self._parts = None
            if parts.election is not None:
                parts.election.close()
            parts.services.supervisor.close()
            self._hooks.close()
            parts.services.store.close()
            parts.listener.close()
            give_lock_up(parts.lock)

    def __enter__(self) -> Self:
        self.open()
        try:
            self._serve_in_background()
        except BaseException:  # an interrupt must release everything, too
            self.close()
            raise
        return self

    def _serve_in_background(self) -> None:
        parts = self._open_parts()
        self._thread = threading.Thread(target=self.run, name="control-plane", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not parts.server.started and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if not parts.server.started:
            raise ControlPlaneError(
                "control plane did not answer in time", hint="Check the log and try again."
            )

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open_parts(self) -> _Parts:
        assert self._parts is not None, "open() comes first"
        return self._parts


def _store(settings: Settings) -> JobStore:
    store = JobStore.open(settings.store_url)
    try:
        if store_is_shared(settings):
            bind_directory(store, settings.data_dir, settings.warehouse)
            store.database.fence(None)
        exposure.check_tokens(settings, store.tokens)
    except BaseException:
        store.close()
        raise
    return store


def _election(services: Services, address: Callable[[str], str]) -> Election | None:
    """The election on a shared store; None for a single control plane, which always leads."""
    settings, store, supervisor = services.settings, services.store, services.supervisor
    if not store_is_shared(settings):
        return None

    def begin(term: int) -> None:
        store.database.fence(term)
        services.updates.catch_up()
        supervisor.start()

    def end(by: float) -> None:
        store.database.fence(None)
        supervisor.give_up(by=by)

    return Election(settings.store_url, address, services.leadership, Duties(begin, end))


def _server(services: Services, tls: ssl.SSLContext | None) -> uvicorn.Server:
    servers: list[uvicorn.Server] = []
    app = create_app(services, closing=lambda: servers[0].should_exit)
    protocol = patient(services.settings.request_timeout_s)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # the guard reads them from trusted proxies
        ssl_context_factory=None if tls is None else lambda *_: tls,
        h11_max_incomplete_event_size=HEAD_LIMIT_BYTES,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=15,
    )
    servers.append(SeatedServer(config, protocol, Peers(services.settings)))
    return servers[0]


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as exc:
        listener.close()
        raise ControlPlaneError(
            f"port {port} of {host} cannot be used: {exc.strerror}",
            hint="Stop the program that uses it, or set another port with --port or SLUICE_PORT.",
        ) from exc
    return listener


def _advertised(listener: socket.socket, scheme: str, seen_as: str) -> str:
    """Our address for other control planes; if we listen on all, the one the database sees."""
    if not ip_address(listener.getsockname()[0]).is_unspecified:
        return _url(listener, scheme)
    host = f"[{seen_as}]" if ":" in seen_as else seen_as
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _url(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
