"""A primary and its replica, real servers, behind one address that moves to the replica."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.mysql import MySql
from tests.support.sockets import LOOPBACK, balanced
from tests.support.sql import run_sql
from tests.support.wait import wait_until


@dataclass(frozen=True)
class Dialect:
    """What MariaDB and MySQL say differently of replication."""

    server: type[MariaDb]
    options: Mapping[str, str]
    reset: str
    source: str  # without who and where, which are named by `prefix`
    prefix: str
    replica: str
    gtids: str
    wait: str
    status: str


OF_MARIADB = Dialect(
    MariaDb,
    {"log-slave-updates": "ON", "gtid-strict-mode": "ON"},
    "RESET MASTER",
    "CHANGE MASTER TO MASTER_USE_GTID=slave_pos, MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0",
    "MASTER",
    "SLAVE",
    "SELECT @@GLOBAL.gtid_binlog_pos",
    "MASTER_GTID_WAIT",
    "SHOW MASTER STATUS",
)
OF_MYSQL = Dialect(
    MySql,
    {"gtid-mode": "ON", "enforce-gtid-consistency": "ON"},
    "RESET BINARY LOGS AND GTIDS",
    "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
    "SOURCE",
    "REPLICA",
    "SELECT @@GLOBAL.gtid_executed",
    "WAIT_FOR_EXECUTED_GTID_SET",
    "SHOW BINARY LOG STATUS",
)


@dataclass
class Replicas:
    """Two servers; `answering` is the one behind port `address` of this machine."""

    dialect: Dialect
    primary: MariaDb
    replica: MariaDb
    address: int
    answering: MariaDb

    def wait_replicated(self) -> None:
        """The replica has everything of the primary."""
        [[gtids]] = run_sql(self.primary, self.dialect.gtids)
        [[result]] = run_sql(self.replica, f"SELECT {self.dialect.wait}('{gtids}', 60)")
        assert result == 0

    def purge_replica(self) -> None:
        run_sql(self.replica, "FLUSH BINARY LOGS")
        last = run_sql(self.replica, self.dialect.status)[0][0]

        def is_purged() -> bool:
            run_sql(self.replica, f"PURGE BINARY LOGS TO '{last}'")
            return bool(run_sql(self.replica, "SHOW BINARY LOGS")[0][0] == last)

        wait_until(is_purged, what="it is purged")

    def fail_over(self) -> None:
        """The primary is gone, and the address is the replica's."""
        self.primary.stop()
        word = self.dialect.replica
        run_sql(self.replica, f"STOP {word}", f"RESET {word} ALL")
        self.answering = self.replica


@contextmanager
def replicas(directory: Path, home: Path, dialect: Dialect = OF_MARIADB) -> Iterator[Replicas]:
    def settings(number: int) -> DatabaseSettings:
        return DatabaseSettings(options={**dialect.options, "server-id": str(number)})

    with (
        dialect.server(directory / "primary", home, settings(1)) as primary,
        dialect.server(directory / "replica", home, settings(2)) as replica,
    ):
        same = f"ALTER USER {primary.cdc_user}@'{LOOPBACK}' IDENTIFIED BY '{primary.cdc_password}'"
        run_sql(replica, same, dialect.reset)
        run_sql(primary, dialect.reset)
        login = {
            "HOST": f"'{LOOPBACK}'",
            "PORT": str(primary.port),
            "USER": "'root'",
            "PASSWORD": f"'{primary.root_password}'",
            "CONNECT_RETRY": "1",
        }
        named = ", ".join(f"{dialect.prefix}_{name}={value}" for name, value in login.items())
        run_sql(replica, f"{dialect.source}, {named}", f"START {dialect.replica}")
        with balanced(lambda _: made.answering.port) as address:
            made = Replicas(dialect, primary, replica, address, primary)
            yield made
