"""`sluice up`: a control plane with a broker and a database of its own, for a first hour."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.api.server import ControlPlane
from service.config import Settings
from service.demo.captured import CapturedShop, captured_shop
from service.demo.servers import Binaries, DebeziumBinaries, servers
from service.demo.shop import create_users
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.errors import ServerStartError
from service.embedded.server import EmbeddedServer
from service.jobs.store.layout import write_private

USERS = 1000
_STOP_TIMEOUT_S = 15.0
_POLL_S = 0.5
_MOST_BETWEEN_STARTS_S = 60.0
_SCRIPT = """\
-- A first job: five clicks a second of a generator, joined with the table shop.user_info.
-- Change a row of the table, and the clicks from then on show it.
SET 'pipeline.name' = 'first';
CREATE TABLE user_info (
  user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '{host}', 'port' = '{port}',
  'username' = '{user}', 'password' = '${{secret:mariadb}}',
  'database-name' = 'shop', 'table-name' = 'user_info'
);
CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.user_id.min' = '1', 'fields.user_id.max' = '{users}',
  'fields.item_id.min' = '1', 'fields.item_id.max' = '1000000'
);
CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING, name STRING)
WITH ('connector' = 'print');
INSERT INTO enriched
SELECT c.user_id, c.item_id, u.gender, u.name FROM clicks AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
"""
_CLIENT_FILE = """\
[client]
host={host}
port={port}
user=root
password={password}
"""


@dataclass(frozen=True, slots=True)
class Up:
    """What runs, and where.

    Attributes:
        script: a job that can be submitted at once.
        client_file: options of a MySQL client, with the password of `root`; of its owner only.
        captured: a PostgreSQL with Debezium, if it was wanted.
    """

    url: str
    kafka: KafkaBroker
    database: MariaDb
    directory: Path
    script: Path
    client_file: Path
    captured: CapturedShop | None = None

    def wait(self, tell: Callable[[str], None]) -> None:
        """Return never; SIGINT and SIGTERM interrupt it.

        A server that ends by itself is started again on its data and its port; jobs that need it
        are STALLED meanwhile, the others go on.

        Args:
            tell: gets a line when a server has ended, serves again or cannot be started.
        """
        further = () if self.captured is None else (self.captured.postgres, self.captured.connect)
        keepers = [_Keeper(server, tell) for server in (self.kafka, self.database, *further)]
        while True:
            for keeper in keepers:
                keeper.look()
            time.sleep(_POLL_S)


class _Keeper:
    """Starts one server again whenever it has ended."""

    def __init__(self, server: EmbeddedServer, tell: Callable[[str], None]) -> None:
        self._server = server
        self._tell = tell
        self._failures = 0
        self._start_at = 0.0

    def look(self) -> None:
        """Start the server if it has ended and a start is due."""
        server = self._server
        if server.running or time.monotonic() < self._start_at:
            return
        name = f"{server.name} on {server.host}:{server.port}"
        if not self._failures:
            self._tell(f"{name} has ended by itself; it is started again, and jobs wait for it")
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
    """Start all of it on the data below `directory`; at the end of the block all is stopped.

    With `debezium` there are a PostgreSQL and a Kafka Connect, too.

    Raises:
        SluiceError: a part does not start.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        kafka, database = stack.enter_context(servers(directory, binaries))
        captured = None
        if debezium is not None:
            shop = captured_shop(directory, binaries.java, debezium, kafka)
            captured = stack.enter_context(shop)
        os.environ["SLUICE_SECRET_MARIADB"] = database.cdc_password
        _create_shop(database)
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
            yield Up(plane.url, kafka, database, directory, script, client_file, captured)


def _create_shop(database: MariaDb) -> None:
    with database.connect() as connection, connection.cursor() as cursor:
        there = cursor.execute("SHOW DATABASES LIKE 'shop'")
    if not there:
        create_users(database, USERS)


def _write_script(directory: Path, database: MariaDb) -> Path:
    """The first job's script; one that is there may have been edited and stays."""
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
