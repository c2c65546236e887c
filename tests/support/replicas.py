"""A primary and its replica, real MariaDBs, behind one address that moves to the replica."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.sockets import LOOPBACK, balanced
from tests.support.sql import run_sql
from tests.support.wait import wait_until

_OPTIONS = {"log-slave-updates": "ON", "gtid-strict-mode": "ON"}


@dataclass
class Replicas:
    """Two servers; `answering` is the one behind port `address` of this machine."""

    primary: MariaDb
    replica: MariaDb
    address: int
    answering: MariaDb

    def wait_replicated(self) -> None:
        """The replica has everything of the primary."""
        [[gtids]] = run_sql(self.primary, "SELECT @@GLOBAL.gtid_binlog_pos")
        [[result]] = run_sql(self.replica, f"SELECT MASTER_GTID_WAIT('{gtids}', 60)")
        assert result == 0

    def purge_replica(self) -> None:
        run_sql(self.replica, "FLUSH BINARY LOGS")
        last = run_sql(self.replica, "SHOW MASTER STATUS")[0][0]

        def is_purged() -> bool:
            run_sql(self.replica, f"PURGE BINARY LOGS TO '{last}'")
            return bool(run_sql(self.replica, "SHOW BINARY LOGS")[0][0] == last)

        wait_until(is_purged, what="it is purged")

    def fail_over(self) -> None:
        """The primary is gone, and the address is the replica's."""
        self.primary.stop()
        run_sql(self.replica, "STOP SLAVE", "RESET SLAVE ALL")
        self.answering = self.replica


@contextmanager
def replicas(directory: Path, home: Path) -> Iterator[Replicas]:
    def settings(number: int) -> DatabaseSettings:
        return DatabaseSettings(options={**_OPTIONS, "server-id": str(number)})

    with (
        MariaDb(directory / "primary", home, settings(1)) as primary,
        MariaDb(directory / "replica", home, settings(2)) as replica,
    ):
        same = f"ALTER USER {primary.cdc_user}@'{LOOPBACK}' IDENTIFIED BY '{primary.cdc_password}'"
        run_sql(replica, same, "RESET MASTER")
        run_sql(primary, "RESET MASTER")
        run_sql(
            replica,
            f"CHANGE MASTER TO MASTER_HOST='{LOOPBACK}', MASTER_PORT={primary.port},"
            f" MASTER_USER='root', MASTER_PASSWORD='{primary.root_password}',"
            " MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_SSL=0,"
            " MASTER_SSL_VERIFY_SERVER_CERT=0",
            "START SLAVE",
        )
        with balanced(lambda _: made.answering.port) as address:
            made = Replicas(primary, replica, address, primary)
            yield made
