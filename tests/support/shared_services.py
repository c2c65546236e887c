"""One broker, database, PostgreSQL, Connect and registry for all tests of a run.

The process that a run begins with starts each of them when a test first asks for it, and the
kernel ends them with that process, also when it is killed. Its workers ask over a connection.
"""

import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, TypeVar, cast

from joins.durable.checkpoint import read_json
from service.config import Settings
from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache, JarSet
from service.embedded.java import find_java
from service.embedded.postgres import PostgreSql
from service.embedded.process import LOOPBACK
from service.embedded.server import EmbeddedServer
from tests.support.apicurio import ApicurioRegistry
from tests.support.services import home_that_installs_once

HEAP = "512m"
_Server = TypeVar("_Server", bound=EmbeddedServer)


@dataclass(frozen=True)
class Place:
    """Where a server runs.

    Attributes:
        directory: with its data.
        pid: of its process.
    """

    directory: Path
    pid: int


class SharedServices:
    """Starts each server once, below `directory`, and says so."""

    def __init__(self, directory: Path, say: Callable[[str], None]) -> None:
        self._directory, self._say = directory, say
        self._servers: dict[str, EmbeddedServer] = {}
        self._faults: dict[str, Exception] = {}
        self._locks = {name: threading.Lock() for name in _MADE}

    def place(self, name: str) -> Place:
        """Where `name` runs; the first call starts it, and the others wait for that."""
        with self._locks[name]:
            if name in self._faults:
                raise self._faults[name]
            server = self._servers.get(name)
            if server is None:
                began = time.monotonic()
                try:
                    server = _MADE[name](self, self._directory / name).start()
                except Exception as fault:
                    self._faults[name] = fault  # a second attempt would meet what this one left
                    raise
                self._servers[name] = server
                took_s = time.monotonic() - began
                self._say(f"starting {server.name} for all tests … {took_s:.1f} s")
        if server.pid is None:
            raise RuntimeError(f'{name} has ended: read "{server.log}"')
        return Place(self._directory / name, server.pid)

    def kill(self) -> None:
        """End all that were started; their data is of no use any more."""
        for server in reversed(self._servers.values()):
            if server.pid is not None:
                os.kill(server.pid, signal.SIGKILL)
            server.stop()

    def answer(self) -> tuple[str, int, str]:
        """Host, port and key with which other processes ask for `place` from now on."""
        key = secrets.token_hex(16)
        listener = Listener((LOOPBACK, 0), backlog=64, authkey=key.encode())
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return *cast("tuple[str, int]", listener.address), key

    def _accept(self, listener: Listener) -> None:
        while True:
            with suppress(OSError, AuthenticationError):
                link = listener.accept()
                threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: "Connection[Any, Any]") -> None:
        with link:
            try:
                link.send(self.place(link.recv()))
            except Exception as exc:
                link.send(f"{type(exc).__name__}: {exc}")

    @property
    def jar_cache(self) -> JarCache:
        cache_dir = Settings.load().cache_dir
        return JarCache(cache_dir, find_java(cache_dir))


def ask(host: str, port: int, key: str, name: str) -> Place:
    """Where `name` runs, as the process that answers there tells it."""
    with Client((host, port), authkey=key.encode()) as link:
        link.send(name)
        place = link.recv()
    if not isinstance(place, Place):
        raise RuntimeError(f"{name} was not started: {place}")
    return place


def shared(server: _Server, pid: int) -> _Server:
    server._state = read_json(server.log.parent / server.state_file) or {}
    server._process = cast("Any", _RunsElsewhere(pid))
    return server


class _RunsElsewhere:
    """A process that another process has started, and that other tests need."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 1
        return None

    def send_signal(self, number: signal.Signals) -> None:
        raise RuntimeError(
            f"process {self.pid} is shared by all tests: a test that stops or changes a server "
            "starts one (fixture own_broker, own_database, own_postgres or own_connect)"
        )


def _broker(services: SharedServices, directory: Path) -> KafkaBroker:
    cache = services.jar_cache
    return KafkaBroker(directory, cache.java, cache.jars(JarSet.BROKER), BrokerSettings(heap=HEAP))


def _mariadb(services: SharedServices, directory: Path) -> MariaDb:
    home = home_that_installs_once(
        directory.with_name("mariadb-home"),
        services.jar_cache.database_home(),
        directory.parents[1] / "system-tables",
    )
    return MariaDb(directory, home)


def _postgres(services: SharedServices, directory: Path) -> PostgreSql:
    return PostgreSql(directory, services.jar_cache.postgres_home())


def _connect(services: SharedServices, directory: Path) -> KafkaConnect:
    cache = services.jar_cache
    services.place("kafka")
    broker = cast("KafkaBroker", services._servers["kafka"])
    return KafkaConnect(directory, cache.java, cache.jars(JarSet.CONNECT), broker.bootstrap_servers)


def _registry(services: SharedServices, directory: Path) -> ApicurioRegistry:
    cache = services.jar_cache
    return ApicurioRegistry(directory, cache.java, cache.registry_home())


_MADE: dict[str, Callable[[SharedServices, Path], EmbeddedServer]] = {
    "kafka": _broker,
    "mariadb": _mariadb,
    "postgres": _postgres,
    "connect": _connect,
    "registry": _registry,
}
SHARED = frozenset(_MADE)
