"""A real PostgreSQL with logical decoding, on the loopback interface."""

import os
import shutil
import signal
import threading
from typing import Self

import pg8000.dbapi

from service.embedded.process import LOOPBACK, Command, ServerStartError
from service.embedded.server import EmbeddedDatabase

SUPERUSER = "postgres"
POSTGRES_CDC_USER = "cdc"
_NOBODY = 65534
_AS_NOBODY = (  # root's reach into directories is kept: access(2) sees it only without the fixup
    "setpriv",
    f"--reuid={_NOBODY}",
    f"--regid={_NOBODY}",
    "--clear-groups",
    "--inh-caps=-all,+dac_override",
    "--ambient-caps=-all,+dac_override",
    "--securebits=+no_setuid_fixup",
    "--pdeathsig=KILL",  # the change of user has cleared it
)
DEFAULT_POSTGRES_OPTIONS: dict[str, str] = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "shared_buffers": "64MB",
}


class PostgreSql(EmbeddedDatabase):
    """A PostgreSQL whose data is below `data_dir`, with users `postgres` and `cdc`.

    A later start keeps the passwords. PostgreSQL refuses to run as root, so there it runs as
    nobody.
    """

    name = "postgres"
    state_file = "postgres.json"
    stop_signal = signal.SIGINT  # PostgreSQL's fast shutdown: it disconnects clients

    @property
    def cdc_user(self) -> str:
        return POSTGRES_CDC_USER

    def connect(self, database: str = "postgres") -> pg8000.dbapi.Connection:
        connection = pg8000.dbapi.connect(
            SUPERUSER,
            host=LOOPBACK,
            port=self.port,
            password=self.root_password,
            database=database,
            timeout=30,
        )
        connection.autocommit = True
        return connection

    def _answers(self) -> bool:
        try:
            connection = self.connect()
        except (pg8000.dbapi.Error, OSError):
            return False
        connection.close()
        return True

    def start(self, *, given_up: threading.Event | None = None) -> Self:
        super().start(given_up=given_up)
        marker = self._dir / "users"
        if not marker.exists():
            connection = self.connect()
            cursor = connection.cursor()
            cursor.execute(f"DROP ROLE IF EXISTS {POSTGRES_CDC_USER}")
            cursor.execute(
                f"CREATE ROLE {POSTGRES_CDC_USER} LOGIN REPLICATION PASSWORD '{self.cdc_password}'"
            )
            cursor.execute(f"GRANT pg_read_all_data TO {POSTGRES_CDC_USER}")
            connection.close()
            marker.touch()
        return self

    def _install(self) -> None:
        """Create the cluster on first use; a half-made directory is replaced."""
        marker = self._dir / "installed"
        if marker.exists():
            return
        shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self._data, _NOBODY, _NOBODY)
        password = self._dir / "password"
        password.touch(mode=0o600)
        password.write_text(self.root_password)
        arguments = (
            f"--pgdata={self._data}",
            f"--username={SUPERUSER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        self._run_once(self._program("initdb", *arguments), task=f'be set up in "{self._data}"')
        password.unlink()
        marker.touch()

    def _command(self) -> Command:
        options = {**DEFAULT_POSTGRES_OPTIONS, "port": str(self.port), **self._settings.options}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return self._program("postgres", "-D", str(self._data), *settings)

    def _program(self, name: str, *arguments: str) -> Command:
        program = [str(self._home / "bin" / name), *arguments]
        if os.geteuid() != 0:
            return Command(program, self.log)
        if shutil.which(_AS_NOBODY[0]) is None:
            raise ServerStartError(
                "postgres does not run as root, and there is no setpriv to run it as nobody",
                hint="Install it (on Debian: util-linux), or be another user than root.",
            )
        return Command([*_AS_NOBODY, *program], self.log)
