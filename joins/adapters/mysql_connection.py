"""Connections to a MySQL or MariaDB server, and PyMySQL's errors as ours."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor

from joins.errors import SourceError, SourceUnavailableError

_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 600
_TOO_MANY_CONNECTIONS = 1040
_SHUTTING_DOWN = (1053, 1077, 1079, 1927)
_UNAVAILABLE = frozenset(
    {
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_UNKNOWN_HOST,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        _TOO_MANY_CONNECTIONS,
        *_SHUTTING_DOWN,
        ER.LOCK_WAIT_TIMEOUT,
        ER.LOCK_DEADLOCK,
    }
)
_REFUSED = frozenset({ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, 1698})
# Strings as they are stored, instants in UTC, no surprise from the server's own modes.
_SESSION = "SET SESSION sql_mode='', time_zone='+00:00'"


@dataclass(frozen=True, slots=True)
class MysqlConnectionConfig:
    """How to reach one table; `password` is the resolved secret and never shown."""

    hostname: str
    port: int
    username: str
    password: str = field(repr=False)
    database: str
    table: str

    @property
    def server(self) -> str:
        """`host:port`, for messages."""
        return f"{self.hostname}:{self.port}"


@contextmanager
def connected(
    config: MysqlConnectionConfig, cursor_class: type[Cursor] = Cursor
) -> "Iterator[Connection[Any]]":
    """A connection without a default database, its session set up; closed at the end.

    Raises:
        SourceUnavailableError: the server cannot be reached, or the connection was lost.
        SourceError: the server refused us or a statement.
    """
    with foreign_errors(config):
        connection = open_connection(config, cursorclass=cursor_class)
        try:
            yield connection
        finally:
            connection.close()


def open_connection(
    config: MysqlConnectionConfig,
    **options: Any,  # noqa: ANN401 (pymysql's own)
) -> "Connection[Any]":
    """A new connection with our session settings; PyMySQL's own errors."""
    arguments: dict[str, Any] = {
        "host": config.hostname,
        "port": config.port,
        "user": config.username,
        "password": config.password,
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "read_timeout": _READ_TIMEOUT_S,
        "init_command": _SESSION,
    }
    return _Connection(**{**arguments, **options})


if TYPE_CHECKING:
    _Plain = Connection[Any]
else:
    _Plain = Connection  # it has its parameter in its stubs only


class _Connection(_Plain):
    """PyMySQL reads the machine's certificates for each connection, 25 ms; ours share them."""

    _preferred: ClassVar[ssl.SSLContext | None] = None

    def _create_ssl_ctx(self, options: dict[str, Any]) -> ssl.SSLContext:
        """The context for `options`; without any the server may, but need not, speak TLS."""
        if not options and _Connection._preferred is not None:
            return _Connection._preferred
        made: ssl.SSLContext = super()._create_ssl_ctx(options)  # type: ignore[misc] # has no stub
        if not options:
            _Connection._preferred = made
        return made


def read_certificates() -> None:
    """Read the machine's certificates now, and not for the first connection."""
    _Connection(defer_connect=True)


@contextmanager
def foreign_errors(config: MysqlConnectionConfig) -> Iterator[None]:
    """Turn PyMySQL's errors into ours.

    Raises:
        SourceUnavailableError: waiting may help.
        SourceError: it does not.
    """
    try:
        yield
    except pymysql.err.MySQLError as exc:
        raise translated(config, exc) from exc
    except OSError as exc:
        raise _unavailable(config, str(exc)) from exc


def translated(config: MysqlConnectionConfig, exc: pymysql.err.MySQLError) -> SourceError:
    """Our error for one of PyMySQL's."""
    code = exc.args[0] if exc.args and isinstance(exc.args[0], int) else 0
    text = str(exc.args[1]) if len(exc.args) > 1 else str(exc)
    if code in _UNAVAILABLE or isinstance(exc, pymysql.err.InterfaceError):
        return _unavailable(config, text)
    if code in _REFUSED:
        return SourceError(
            f'database server "{config.server}" refused user "{config.username}": {text}',
            hint="Check the username and password options, and the host that the account is for.",
        )
    return SourceError(
        f'database server "{config.server}" answered error {code}: {text}',
        hint="Look the error up in the server's manual; its log may say more.",
    )


def _unavailable(config: MysqlConnectionConfig, text: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f'database server "{config.server}" cannot be reached: {text}',
        hint="Start the server, or correct the hostname and port options; we try again.",
    )


def rows(connection: "Connection[Any]", statement: str, *values: object) -> list[tuple[Any, ...]]:
    """All rows that `statement` gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


def variables(connection: "Connection[Any]", *names: str) -> dict[str, str]:
    """Global variables by name; those that the server does not know are missing."""
    marks = ", ".join(["%s"] * len(names))
    found = rows(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({marks})", *names)
    return {str(name).lower(): str(value) for name, value in found}


def is_mariadb(connection: "Connection[Any]") -> bool:
    """Whether the server is a MariaDB."""
    return "mariadb" in str(rows(connection, "SELECT VERSION()")[0][0]).lower()


def quoted(name: str) -> str:
    """`name` as an identifier in SQL."""
    return "`" + name.replace("`", "``") + "`"
