"""A real MariaDB with a row-based binlog, on the loopback interface."""

import os
import shutil
from pathlib import Path
from typing import Any

import pymysql

from service.embedded.process import LOOPBACK, Command, last_lines
from service.embedded.server import EmbeddedDatabase

CDC_USER = "cdc"
_CDC_GRANTS = "SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"
DEFAULT_OPTIONS: dict[str, str | None] = {
    "bind-address": LOOPBACK,
    "skip-name-resolve": None,
    "socket": "mariadb.sock",  # relative to the data: a socket's path has a length limit
    "pid-file": "mariadb.pid",
    "skip-ssl": None,  # making a certificate takes seconds; loopback needs none
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
    "innodb-buffer-pool-size": "128M",
    "innodb-log-file-size": "128M",
    "innodb-flush-log-at-trx-commit": "2",
    "local-infile": "ON",
}


class MariaDb(EmbeddedDatabase):
    """A MariaDB whose data is below `data_dir`, with users `root` and `cdc`; passwords are kept."""

    name = "mariadb"
    state_file = "database.json"

    @property
    def cdc_user(self) -> str:
        return CDC_USER

    def connect(
        self,
        database: str | None = None,
        **options: Any,  # noqa: ANN401 (pymysql's own)
    ) -> "pymysql.Connection[Any]":
        arguments: dict[str, Any] = {
            "host": LOOPBACK,
            "port": self.port,
            "user": "root",
            "password": self.root_password,
            "database": database,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 5,
        }
        return pymysql.connect(**{**arguments, **options})

    def _answers(self) -> bool:
        try:
            with self.connect() as connection, connection.cursor() as cursor:
                answered = bool(cursor.execute("SELECT 1"))
        except pymysql.MySQLError:
            return False
        self._users_file.unlink(missing_ok=True)  # the first start has run it
        return answered

    @property
    def _users_file(self) -> Path:
        return self._dir / "users.sql"

    def _install(self) -> None:
        """Create the system tables on first use; a half-made directory is replaced."""
        marker = self._dir / "installed"
        if marker.exists():
            return
        shutil.rmtree(self._data, ignore_errors=True)
        arguments = [
            "sh",
            str(self._home / "scripts" / "mariadb-install-db"),
            "--no-defaults",
            f"--basedir={self._home}",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
            "--skip-name-resolve",
            "--skip-test-db",
            *_user_option(),
        ]
        command = Command(arguments, self.log, self._environment())
        self._run_once(command, task=f'be set up in "{self._data}"')
        self._users_file.touch(mode=0o600)
        self._users_file.write_text(self._users())
        marker.touch()

    def _users(self) -> str:
        root, cdc = self.root_password, self.cdc_password
        return (
            "DELETE FROM mysql.global_priv WHERE User='' OR (User='root' AND Host<>'localhost');\n"
            "FLUSH PRIVILEGES;\n"
            f"ALTER USER root@localhost IDENTIFIED BY '{root}';\n"
            f"CREATE USER root@'{LOOPBACK}' IDENTIFIED BY '{root}';\n"
            f"GRANT ALL ON *.* TO root@'{LOOPBACK}' WITH GRANT OPTION;\n"
            f"CREATE USER {CDC_USER}@'{LOOPBACK}' IDENTIFIED BY '{cdc}';\n"
            f"GRANT {_CDC_GRANTS} ON *.* TO {CDC_USER}@'{LOOPBACK}';\n"
        )

    def _command(self) -> Command:
        options = {**DEFAULT_OPTIONS, "port": str(self.port), **self._settings.options}
        if self._users_file.exists():
            options["init-file"] = str(self._users_file)
        arguments = [
            str(self._home / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={self._home}",
            f"--datadir={self._data}",
            *_user_option(),
            *(f"--{n}" if value is None else f"--{n}={value}" for n, value in options.items()),
        ]
        return Command(arguments, self.log, self._environment())

    def _environment(self) -> dict[str, str]:
        temporary = self._dir / "tmp"
        temporary.mkdir(exist_ok=True)
        return {"TMPDIR": str(temporary)}

    def _hint(self) -> str:
        if "loading shared libraries" in last_lines(self.log, 10):
            return (
                "Install the library that it names (on Debian: libcrypt1, libsystemd0, libstdc++6),"
                " or use a database of your own."
            )
        return super()._hint()


def _user_option() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []
