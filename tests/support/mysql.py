"""A MySQL server that is on this machine already: `MYSQL_FOR_TESTS` names its directory.

`.ci/mysql` makes one. It has `usr/sbin/mysqld` and its libraries, as `dpkg-deb -x` unpacks them.
"""

import os
import shutil
from pathlib import Path

import pytest

from service.embedded.database import CDC_USER, MariaDb
from service.embedded.process import LOOPBACK, Command

_HOME = "MYSQL_FOR_TESTS"
_GRANTS = "SELECT, RELOAD, LOCK TABLES, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"


def mysql_home() -> Path:
    """The directory; without one the test is skipped."""
    home = os.environ.get(_HOME)
    if home is None or not (Path(home) / "usr/sbin/mysqld").exists():
        pytest.skip(f"no MySQL server: .ci/mysql fetches one; name its directory in {_HOME}")
    return Path(home)


class MySql(MariaDb):
    """It, with its own defaults but for places and ports; `root` and `cdc` as of a MariaDB."""

    name = "mysql"

    def _install(self) -> None:
        marker = self._dir / "installed"
        if marker.exists():
            return
        shutil.rmtree(self._data, ignore_errors=True)
        command = Command([*self._server(), "--initialize-insecure"], self.log, {})
        self._run_once(command, task=f'be set up in "{self._data}"')
        self._users_file.write_text(self._users())
        marker.touch()

    def _users(self) -> str:
        accounts = {"root": ("ALL", self.root_password), CDC_USER: (_GRANTS, self.cdc_password)}
        return "".join(
            f"CREATE USER {user}@'{LOOPBACK}' IDENTIFIED BY '{password}';\n"
            f"GRANT {grants} ON *.* TO {user}@'{LOOPBACK}' WITH GRANT OPTION;\n"
            for user, (grants, password) in accounts.items()
        )

    def _command(self) -> Command:
        options = [f"--port={self.port}", f"--bind-address={LOOPBACK}", "--mysqlx=OFF"]
        options += ["--socket=mysql.sock", "--pid-file=mysql.pid", "--binlog-row-metadata=FULL"]
        options += [f"--{name}={value}" for name, value in self._settings.options.items()]
        if self._users_file.exists():
            options.append(f"--init-file={self._users_file}")
        return Command([*self._server(), *options], self.log, {})

    def _server(self) -> list[str]:
        """The program by the loader that its libraries are of, if that is there, too."""
        usr = self._home / "usr"
        libraries = usr / "lib/x86_64-linux-gnu"
        loader = libraries / "ld-linux-x86-64.so.2"
        by_loader = [str(loader), "--library-path", str(libraries)] if loader.exists() else []
        return [
            *by_loader,
            str(usr / "sbin/mysqld"),
            "--no-defaults",
            "--user=root",
            f"--basedir={usr}",
            f"--datadir={self._data}",
            f"--lc-messages-dir={usr / 'share/mysql'}",
            f"--plugin-dir={usr / 'lib/mysql/plugin'}",
            "--secure-file-priv=",
        ]
