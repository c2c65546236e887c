"""`sluice up`: a control plane with an embedded broker and database, for a first hour."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.api.routes.program import UP_DIRECTORY
from service.api.server import ControlPlane
from service.config import Settings
from service.demo.shop import Binaries, DebeziumBinaries, create_users, servers
from service.embedded.broker import KafkaBroker
from service.embedded.connect import KafkaConnect, postgres_connector, publish
from service.embedded.database import MariaDb
from service.embedded.java import Java
from service.embedded.postgres import SUPERUSER, PostgreSql
from service.embedded.process import ServerStartError
from service.embedded.server import EmbeddedServer
from service.errors import ConfigError
from service.jobs.store.layout import write_private

CUSTOMERS = 1000
_NAME = "shop"  # database, connector and prefix of its topics
_TOPIC_TIMEOUT_S = 120.0
_STATEMENTS = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name TEXT NOT NULL, credit NUMERIC(10, 2))",
    "INSERT INTO customers SELECT n, 'customer ' || n, n / 100.0"
    f" FROM generate_series(1, {CUSTOMERS}) AS n",
)
_CAPTURED_SCRIPT = Path(__file__).with_name("captured.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class CapturedShop:
    """A database, its Connect, and a job that joins the captured table.

    `client_file` has the database's connection options as JSON; only its owner can read it.
    """

    postgres: PostgreSql
    connect: KafkaConnect
    script: Path
    client_file: Path

    def places(self) -> dict[str, str]:
        return {
            "postgres": f"{self.postgres.host}:{self.postgres.port}",
            "postgres_options": str(self.client_file),
            "connect": self.connect.url,
            "postgres_script": str(self.script),
        }


@contextmanager
def captured_shop(
    directory: Path, java: Java, binaries: DebeziumBinaries, kafka: KafkaBroker
) -> Iterator[CapturedShop]:
    """Start both on the data below `directory`; the connector runs when the block begins."""
    postgres = PostgreSql(directory / "postgres", binaries.postgres_home)
    connect = KafkaConnect(
        directory / "connect", java, binaries.connect_jars, kafka.bootstrap_servers
    )
    with postgres, connect:
        if not (directory / "connect" / "connectors" / f"{_NAME}.json").exists():
            _create_captured(postgres)
            config = postgres_connector(postgres, prefix=_NAME, name=_NAME)
            connect.connectors.put(_NAME, config)
            topic = f"{_NAME}.public.customers"
            connect.await_topic(_NAME, topic, timeout_s=_TOPIC_TIMEOUT_S)
        client_file = directory / "postgres.json"
        client_file.unlink(missing_ok=True)
        options = {
            "host": postgres.host,
            "port": postgres.port,
            "user": SUPERUSER,
            "password": postgres.root_password,
            "database": _NAME,
        }
        write_private(client_file, (json.dumps(options, indent=2) + "\n").encode())
        script = directory / "captured.sql"
        if not script.exists():  # it may have been edited
            text = _CAPTURED_SCRIPT.format(servers=kafka.bootstrap_servers, customers=CUSTOMERS)
            script.write_text(text, encoding="utf-8")
        yield CapturedShop(postgres, connect, script, client_file)


def _create_captured(postgres: PostgreSql) -> None:
    """Create the database again: an earlier start may have failed halfway."""
    connection = postgres.connect()
    connection.cursor().execute(f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)")
    connection.cursor().execute(f"CREATE DATABASE {_NAME}")
    connection.close()
    connection = postgres.connect(_NAME)
    for statement in _STATEMENTS:
        connection.cursor().execute(statement)
    connection.close()
    publish(postgres, prefix=_NAME, name=_NAME)


USERS = 1000
_STOP_TIMEOUT_S = 15.0
_POLL_S = 0.5
_MOST_BETWEEN_STARTS_S = 60.0
_SCRIPT = Path(__file__).with_name("first.sql").read_text(encoding="utf-8")
_CLIENT_FILE = """\
[client]
host={host}
port={port}
user=root
password={password}
"""


@dataclass(frozen=True, slots=True)
class Up:
    """The running parts and their addresses; `captured` is None without Debezium.

    `client_file` has a MySQL client's options with root's password; only its owner can read it.
    """

    url: str
    kafka: KafkaBroker
    database: MariaDb
    directory: Path
    script: Path
    client_file: Path
    captured: CapturedShop | None = None

    def wait(self, tell: Callable[[str], None]) -> None:
        """Never return; SIGINT and SIGTERM interrupt it.

        A server that exits is restarted on its data and port; jobs that need it stall meanwhile.
        `tell` gets a line when a server has exited, serves again or cannot be started.
        """
        further = () if self.captured is None else (self.captured.postgres, self.captured.connect)
        keepers = [_Keeper(server, tell) for server in (self.kafka, self.database, *further)]
        while True:
            for keeper in keepers:
                keeper.look()
            time.sleep(_POLL_S)


class _Keeper:
    def __init__(self, server: EmbeddedServer, tell: Callable[[str], None]) -> None:
        self._server = server
        self._tell = tell
        self._failures = 0
        self._start_at = 0.0

    def look(self) -> None:
        server = self._server
        if server.running or time.monotonic() < self._start_at:
            return
        name = f"{server.name} on {server.host}:{server.port}"
        if not self._failures:
            self._tell(f"{name} exited unexpectedly and is restarting; its jobs are stalled")
        try:
            server.start()
        except ServerStartError as exc:
            self._failures += 1
            wait_s = min(2.0**self._failures, _MOST_BETWEEN_STARTS_S)
            self._start_at = time.monotonic() + wait_s
            self._tell(f"{exc.message}. {exc.hint} The next try is in {wait_s:g} s.")
            return
        self._failures = 0
        self._tell(f"{name} serves again")


@contextmanager
def everything(
    directory: Path,
    port: int | None,
    binaries: Binaries,
    debezium: DebeziumBinaries | None = None,
) -> Iterator[Up]:
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise ConfigError(
            f'directory "{directory}" cannot be created: {exc.strerror}',
            hint="Name another one with --data-dir.",
        ) from exc
    with ExitStack() as stack:
        kafka, database = stack.enter_context(servers(directory, binaries))
        captured = None
        if debezium is not None:
            shop = captured_shop(directory, binaries.java, debezium, kafka)
            captured = stack.enter_context(shop)
        os.environ["SLUICE_SECRET_MARIADB"] = database.cdc_password
        with database.connect() as connection, connection.cursor() as cursor:
            there = cursor.execute("SHOW DATABASES LIKE 'shop'")
        if not there:
            create_users(database, USERS)
        client_file = directory / "mariadb.cnf"
        client_file.unlink(missing_ok=True)
        write_private(client_file, _client_options(database).encode())
        settings = Settings.load(
            data_dir=directory / "data",
            warehouse_dir=directory / "warehouse",
            port=port,
            kafka_bootstrap_servers=kafka.bootstrap_servers,
            stop_with_parent=True,
            stop_timeout_s=_STOP_TIMEOUT_S,
        )
        with ControlPlane(settings) as plane:
            script = _write_script(directory, database)
            offered = [script] if captured is None else [script, captured.script]
            _offer(settings, directory, offered)
            yield Up(plane.url, kafka, database, directory, script, client_file, captured)


def _offer(settings: Settings, up: Path, scripts: Sequence[Path]) -> None:
    """Make the control plane offer `scripts` as they are now, and name the directory `up`."""
    directory = settings.data_dir / "examples"
    directory.mkdir(mode=0o700, exist_ok=True)
    (directory / UP_DIRECTORY).write_text(str(up), encoding="utf-8")
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        (directory / script.name).write_text(text, encoding="utf-8")


def _write_script(directory: Path, database: MariaDb) -> Path:
    """Write the first job's script; an existing one, perhaps edited, stays."""
    path = directory / "first.sql"
    if not path.exists():
        user = {"user": database.cdc_user, "users": USERS}
        text = _SCRIPT.format(host=database.host, port=database.port, **user)
        path.write_text(text, encoding="utf-8")
    return path


def _client_options(database: MariaDb) -> str:
    return _CLIENT_FILE.format(
        host=database.host, port=database.port, password=database.root_password
    )
