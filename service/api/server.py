"""The control plane as a running thing: lock, store, supervisor and HTTP server."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from types import TracebackType
from typing import Self

import uvicorn

from joins.kernels.local_files import give_lock_up
from service.api.app import create_app
from service.api.http import exposure
from service.api.http.connections import HEAD_LIMIT_BYTES, SeatedServer, patient
from service.api.http.exposure import Peers
from service.api.services import Services
from service.config import Settings, ends_runners, store_is_shared
from service.errors import ControlPlaneError
from service.jobs.inspect.inspector import Inspector
from service.jobs.leadership.data_directory import (
    bind_directory,
    lock_directory,
)
from service.jobs.leadership.election import Duties, Election
from service.jobs.leadership.leadership import Leadership
from service.jobs.leadership.pace import ANSWER_S
from service.jobs.store.store import JobStore
from service.jobs.submit.catalog_tables import CatalogTables
from service.jobs.submit.submission import Submissions
from service.jobs.supervise.hooks import Hooks, default_hooks
from service.jobs.supervise.supervisor import Supervisor

_START_TIMEOUT_S = 20.0
_KILLED_WITHIN_S = 10.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is open while the control plane runs."""

    lock: int
    listener: socket.socket
    services: Services
    server: uvicorn.Server
    election: Election | None


class ControlPlane:
    """A control plane of one data directory; its runners live on when it ends.

    With the setting `stop_with_parent` it ends them first; the next one starts them again. So it
    does where several are on one PostgreSQL store: one leads, and the others wait for its end.

    Use `run` to serve in this thread until a signal, or a `with` block to serve in the background.
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
        self._inspector = Inspector(inspect_command, settings)
        self._parts: _Parts | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def open(self) -> None:
        """Take data directory, port and job store; nothing is served yet.

        Raises:
            ConfigError: it would be unsafe to reach, or TLS cannot be spoken.
            ControlPlaneError: the data directory or the port is in use or cannot be had.
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
        self._parts = _Parts(lock, listener, services, _server(services, tls), election)

    def warm_up(self) -> None:
        self._hooks.warm_up()

    @property
    def services(self) -> Services:
        return self._open_parts().services

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; call `open` before and `close` after it."""
        parts = self._open_parts()
        if parts.election is None:
            parts.services.supervisor.start()
        else:
            parts.election.start()
            parts.election.wait(ANSWER_S)
        parts.server.run(sockets=[parts.listener])

    def close(self) -> None:
        """Give everything back; runners go on, unless they are to stop with us."""
        if self._parts is None:
            return
        parts = self._parts
        try:
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
        except BaseException:  # an interrupt, too, must leave nothing behind
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
                "control plane did not answer in time", hint="Look at the log and try again."
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
            store.fence(None)
        exposure.check_tokens(settings, store.tokens)
    except BaseException:
        store.close()
        raise
    return store


def _election(services: Services, address: Callable[[str], str]) -> Election | None:
    """How it is found out whether this control plane leads; one that is alone does."""
    settings, store, supervisor = services.settings, services.store, services.supervisor
    if not store_is_shared(settings):
        return None

    def begin(term: int) -> None:
        store.fence(term)
        supervisor.start()

    def end(by: float) -> None:
        store.fence(None)
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
        proxy_headers=False,  # the guard does it, for those who are trusted
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
            hint="Stop the program that uses it, or choose another with --port or SLUICE_PORT.",
        ) from exc
    return listener


def _advertised(listener: socket.socket, scheme: str, seen_as: str) -> str:
    """Where others reach us: where we listen, or on all addresses, as the database sees us."""
    if not ip_address(listener.getsockname()[0]).is_unspecified:
        return _url(listener, scheme)
    host = f"[{seen_as}]" if ":" in seen_as else seen_as
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _url(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
