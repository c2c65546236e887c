"""Connections to a MySQL or MariaDB server, and PyMySQL's errors as Sluice's."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Self

import pymysql
from pymysql.connections import Connection, MySQLResult
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor, DictCursor

from joins.adapters.network import current_deadline, load_certificate
from joins.plan.errors import ServerChangedError, SourceError, SourceUnavailableError
from joins.plan.plan import PREFERRED_TLS, MetadataField, MysqlTls, TlsMode
from joins.plan.table_patterns import TablePattern

_VERIFYING = (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)
_READ_BYTES = 256 << 10
_PROOFS = frozenset({b"mysql_native_password", b"client_ed25519", b"caching_sha2_password"})

if TYPE_CHECKING:
    _Plain = Connection[Any]
else:
    _Plain = Connection  # only the stubs have its parameter


def tls_arguments(tls: MysqlTls) -> dict[str, Any]:
    """PyMySQL's arguments for `tls`; SourceError for an invalid certificate or key."""
    if tls.mode is TlsMode.DISABLED:
        return {"ssl_disabled": True}
    if tls.mode is TlsMode.PREFERRED:
        return {}
    return {"ssl": tls_context(tls)}


@lru_cache(maxsize=16)
def tls_context(tls: MysqlTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.mode is TlsMode.VERIFY_IDENTITY
    context.verify_mode = ssl.CERT_REQUIRED if tls.mode in _VERIFYING else ssl.CERT_NONE
    try:
        if tls.ca is not None:
            context.load_verify_locations(cadata=tls.ca)
        elif tls.mode in _VERIFYING:
            context.load_default_certs()
        if tls.cert is not None:
            load_certificate(context, tls.cert, tls.key or "")
    except (ssl.SSLError, ValueError) as exc:
        raise SourceError(
            f"certificates of the database connection cannot be used: {exc}",
            hint="Give PEM texts to the secrets of database.ssl.ca, database.ssl.cert and "
            "database.ssl.key, the key without a passphrase.",
        ) from exc
    return context


class SafeConnection(_Plain):
    """A connection that never sends its password in plain text."""

    connect_timeout: float
    _read_timeout: float
    _write_timeout: float
    _secure: bool
    _sock: socket.socket | None
    _rfile: BufferedReader
    _next_seq_id: int
    _result: MySQLResult
    _is_cut = False

    def cut(self) -> None:
        """End the connection from another thread, even while it waits.

        `close` would wait for the reader. During TCP and TLS handshakes their timeout ends it.
        """
        self._is_cut = True
        waiting = self._sock
        with suppress(OSError):
            if waiting is not None:
                waiting.shutdown(socket.SHUT_RDWR)

    def _read_packet(self, *kind: object) -> object:
        if self._is_cut:
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, "the connection was cut")
        return super()._read_packet(*kind)  # type: ignore[no-untyped-call] # has no types

    def begin_rows(self, statement: str) -> int:
        """Send `statement`, read its columns, return the next sequence number; then `read_some`."""
        self.query(statement, unbuffered=True)
        self._result.unbuffered_active = False  # else PyMySQL reads the rows where it drops this
        return self._next_seq_id

    def read_some(self, view: memoryview) -> int:
        """Read at least one byte into `view`; returns the count."""
        # What PyMySQL has read ahead comes first; behind its file is the socket, or TLS over it.
        came, why = b"", "cut" if self._is_cut else "closed"
        if not self._is_cut:
            try:
                came = self._rfile.read1(min(len(view), _READ_BYTES))
            except OSError as exc:
                why = str(exc)
        if not came:
            lost = f"Lost connection to MySQL server during query ({why})"
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, lost)
        view[: len(came)] = came
        return len(came)

    def _create_ssl_ctx(self, options: dict[str, Any] | ssl.SSLContext) -> ssl.SSLContext:
        return options if isinstance(options, ssl.SSLContext) else tls_context(PREFERRED_TLS)

    def _process_auth(self, plugin_name: bytes, *rest: object) -> object:
        if not self._secure and plugin_name not in _PROOFS:
            raise self._would_tell(f"by {plugin_name.decode('ascii', 'replace')}")
        try:
            return super()._process_auth(plugin_name, *rest)  # type: ignore[misc] # has no stub
        except RuntimeError as exc:  # a library for that authentication is missing
            raise pymysql.err.OperationalError(CR.CR_AUTH_PLUGIN_CANNOT_LOAD, str(exc)) from exc

    @property
    def server_public_key(self) -> bytes | None:
        return None

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        if key is not None:
            raise self._would_tell("for a key that anybody could have sent")

    def _would_tell(self, how: str) -> SourceError:
        return SourceError(
            f'database server "{self.host}:{self.port}" asks for the password {how}, over a plain '
            "connection",
            hint="Let the server offer TLS and set 'database.ssl.mode' = 'required', or give the "
            "account a password by mysql_native_password or ed25519.",
        )


_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 600
_TOO_MANY_CONNECTIONS = 1040
_OFFLINE = 3032
_SHUTTING_DOWN = (1053, 1077, 1079, 1927)
_UNAVAILABLE = frozenset(
    {
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_UNKNOWN_HOST,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        *_SHUTTING_DOWN,
    }
)
_LOCKED = (
    "A transaction or a statement of others has a lock, see SHOW FULL PROCESSLIST there; a running "
    "job retries."
)
_FULL = "Raise max_connections of the server, or end connections to it; a running job retries."
_FULL_FOR_USER = (
    "Raise max_user_connections of the server or of the account, or end connections of that user; "
    "a running job retries."
)
_NOT_OPEN = "Open the server to clients, or wait until it is; a running job retries."
_BUSY = {
    ER.LOCK_WAIT_TIMEOUT: _LOCKED,
    ER.LOCK_DEADLOCK: _LOCKED,
    _TOO_MANY_CONNECTIONS: _FULL,
    ER.TOO_MANY_USER_CONNECTIONS: _FULL_FOR_USER,
    ER.USER_LIMIT_REACHED: _FULL_FOR_USER,
    ER.UNKNOWN_COM_ERROR: _NOT_OPEN,  # of a node that has not joined its Galera cluster
    _OFFLINE: _NOT_OPEN,
    ER.QUERY_INTERRUPTED: "An administrator ended the statement; a running job retries.",
}
_REFUSED = frozenset({ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, 1698})
# Server settings that would refuse a SELECT, change which rows it returns, how it writes them, and
# how SHOW CREATE TABLE quotes names, or end a session that reads slowly or waits for other work.
# Instants are in UTC. A lock is waited for less long than an answer, so that the error names it.
_SESSION = (
    "SET SESSION sql_mode='', time_zone='+00:00', sql_select_limit=18446744073709551615,"
    " sql_big_selects=1, sql_quote_show_create=1, wait_timeout=28800, net_write_timeout=600,"
    " lock_wait_timeout=60"
    " /*M!100304 , system_versioning_asof=DEFAULT */ /*M!100101 , max_statement_time=0 */"
    " /*M!100300 , idle_transaction_timeout=0, idle_readonly_transaction_timeout=0 */"
    " /*!50708 , max_execution_time=0 */"
)
# A copy never has a row that its writer may still undo. The variable has two names, this has one.
_ISOLATION = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server; `server_uid` may be empty, `gtid_domain_id` is 0 except for a MariaDB."""

    server_uid: str
    server_id: int
    gtid_domain_id: int
    version: str
    is_mariadb: bool

    def same_server(self, other: "ServerIdentity") -> bool:
        mine = (self.server_uid, self.server_id, self.gtid_domain_id, self.is_mariadb)
        return mine == (other.server_uid, other.server_id, other.gtid_domain_id, other.is_mariadb)


@dataclass(frozen=True, slots=True)
class MysqlConnectionConfig:
    """How to reach a table, or all that its names match; secrets are resolved and never shown."""

    hostname: str
    port: int
    username: str
    password: str = field(repr=False)
    database: str
    table: str
    tls: MysqlTls = PREFERRED_TLS
    # the server that must answer, None for any; an address may be a load balancer
    identity: ServerIdentity | None = None
    secret: str = ""  # name of the secret with the password; empty if the script has it
    # in which an instant is the date and clock of a column that is declared TIMESTAMP
    zone: str = "UTC"
    metadata: tuple[MetadataField, ...] = ()  # columns that are not the server's
    is_part: bool = False  # its names are those of one table, whatever characters they have

    @property
    def server(self) -> str:
        return f"{self.hostname}:{self.port}"

    @property
    def pattern(self) -> TablePattern | None:
        """None if the names are those of one table."""
        pattern = TablePattern(self.database, self.table)
        return None if self.is_part or pattern.is_one else pattern

    def at(self, database: str, table: str) -> Self:
        """The same connection for one of the tables."""
        return replace(self, database=database, table=table, is_part=True)

    def of_server(self, identity: ServerIdentity) -> Self:
        return replace(self, identity=identity)


@contextmanager
def connected(config: MysqlConnectionConfig) -> Iterator[SafeConnection]:
    """A connection with Sluice's session settings and no default database, closed at the end.

    SourceUnavailableError if it fails or is lost, ServerChangedError if another server answers,
    SourceError if the server refuses the user or a statement.
    """
    with foreign_errors(config):
        connection = open_connection(config)
        try:
            yield connection
        finally:
            connection.close()


def open_connection(
    config: MysqlConnectionConfig,
    **options: Any,  # noqa: ANN401 (pymysql's own)
) -> SafeConnection:
    """A new connection with Sluice's session settings, to the server of `config`.

    ServerChangedError if another server answers, SourceError if the password would go in plain
    text, else PyMySQL's errors.
    """
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
        **tls_arguments(config.tls),
    }
    connection = SafeConnection(**{**arguments, **options}, defer_connect=True)
    try:
        _connect(config, connection)
        if config.identity is not None:
            require_identity(config, identity_of(connection), config.identity)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(config: MysqlConnectionConfig, connection: SafeConnection) -> None:
    """Log in; the connect timeout covers the whole login."""
    deadline = current_deadline()
    patience_s = connection._read_timeout
    if deadline is not None:
        patience_s = deadline.left_s(config.server)
        connection.connect_timeout = min(_CONNECT_TIMEOUT_S, patience_s)
        deadline.on_end(config.server, connection.cut)
    connection._read_timeout = connection._write_timeout = connection.connect_timeout
    connection.connect()  # the handshake of TLS has the timeout of writes
    connection._read_timeout = patience_s
    connection.query(_ISOLATION)


def identity_of(connection: "Connection[Any]") -> ServerIdentity:
    names = ("server_uid", "server_uuid", "server_id", "gtid_domain_id", "version")
    values = variables(connection, *names)
    return ServerIdentity(
        server_uid=values.get("server_uuid") or values.get("server_uid", ""),
        server_id=int(values["server_id"]),
        gtid_domain_id=int(values.get("gtid_domain_id", 0)),
        version=values["version"],
        is_mariadb=is_mariadb(connection),
    )


def require_identity(
    config: MysqlConnectionConfig, actual: ServerIdentity, expected: ServerIdentity
) -> None:
    if not actual.same_server(expected):
        raise ServerChangedError(
            f'database server "{config.server}" is another one (server id {actual.server_id}, '
            f"{actual.server_uid}) than the one that we read (server id {expected.server_id}, "
            f"{expected.server_uid})",
            hint="No action is needed after a failover: the table is followed there by GTIDs, or "
            "copied again by itself. Behind a balancer name one server of it.",
        )


@contextmanager
def foreign_errors(config: MysqlConnectionConfig) -> Iterator[None]:
    """Translate PyMySQL's errors: SourceUnavailableError if a retry may help, else SourceError."""
    try:
        yield
    except pymysql.err.MySQLError as exc:
        raise translated(config, exc) from exc
    except OSError as exc:
        raise _unavailable(config, str(exc)) from exc


def translated(config: MysqlConnectionConfig, exc: pymysql.err.MySQLError) -> SourceError:
    code = exc.args[0] if exc.args and isinstance(exc.args[0], int) else 0
    text = str(exc.args[1]) if len(exc.args) > 1 else str(exc)
    cause = getattr(exc, "original_exception", None)  # of PyMySQL, when it could not connect
    if code == CR.CR_SSL_CONNECTION_ERROR or isinstance(cause, ssl.SSLCertVerificationError):
        return SourceError(
            f'database server "{config.server}" does not offer TLS as the table asks: {text}',
            hint="Correct the options database.ssl.*, or the certificate of the server.",
        )
    if code in _UNAVAILABLE or isinstance(exc, pymysql.err.InterfaceError):
        return _unavailable(config, text)
    if code in _BUSY:
        return SourceUnavailableError(
            f'database server "{config.server}" refuses for now: {text}', hint=_BUSY[code]
        )
    if code in _REFUSED:
        return SourceError(
            f'database server "{config.server}" refused user "{config.username}": {text}',
            hint="Check the username and password options, and the host that the account is for. "
            + _after_a_change(config),
        )
    return SourceError(
        f'database server "{config.server}" answered error {code}: {text}',
        hint="Look the error up in the server's manual; its log may say more.",
    )


def _after_a_change(config: MysqlConnectionConfig) -> str:
    if not config.secret:
        return "If the password was changed, remove the job and submit its script with the new one."
    return (
        f"If the password was changed, run sluice secrets set {config.secret}; a job that is there "
        "already takes it after sluice jobs stop JOB and sluice jobs resume JOB."
    )


def _unavailable(config: MysqlConnectionConfig, text: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f'database server "{config.server}" cannot be reached',
        hint="Start the server, or correct the hostname and port options; a running job retries.",
        detail=text,
    )


def rows(connection: "Connection[Any]", statement: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor(Cursor) as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


# As the binlog has the names: in lower case on a server that compares them without case.
NAMES = (
    "SELECT IF(@@lower_case_table_names = 2, LOWER(TABLE_SCHEMA), TABLE_SCHEMA),"
    " IF(@@lower_case_table_names = 2, LOWER(TABLE_NAME), TABLE_NAME), TABLE_TYPE, ENGINE"
    " FROM information_schema.TABLES"
)


def tables_of(
    connection: "Connection[Any]", config: MysqlConnectionConfig
) -> tuple[tuple[str, str], ...]:
    """Database and name of each base table that `config` names; SourceError if there is none."""
    pattern = config.pattern
    if pattern is None:
        return ((config.database, config.table),)
    known = rows(connection, f"{NAMES} WHERE TABLE_TYPE = 'BASE TABLE'")
    names = sorted((str(row[0]), str(row[1])) for row in known)
    matching = tuple(name for name in names if pattern.has(*name))
    if not matching:
        raise SourceError(
            f'no table of server "{config.server}" that user "{config.username}" may see matches '
            f'"{config.database}.{config.table}"',
            hint="Correct 'database-name' and 'table-name', or create the first table.",
        )
    return matching


def first_known(connection: "Connection[Any]", statements: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows of the first of `statements` that the server's version knows, by column."""
    *others, last = statements
    for statement in others:
        try:
            return _rows_by_name(connection, statement)
        except pymysql.err.ProgrammingError as exc:
            if exc.args[0] != ER.PARSE_ERROR:
                raise
    return _rows_by_name(connection, last)


def _rows_by_name(connection: "Connection[Any]", statement: str) -> list[dict[str, Any]]:
    with connection.cursor(DictCursor) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def variables(connection: "Connection[Any]", *names: str) -> dict[str, str]:
    marks = ", ".join(["%s"] * len(names))
    name_values = rows(
        connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({marks})", *names
    )
    return {str(name).lower(): str(value) for name, value in name_values}


def is_mariadb(connection: "Connection[Any]") -> bool:
    return "mariadb" in str(rows(connection, "SELECT VERSION()")[0][0]).lower()
