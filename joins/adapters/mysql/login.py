"""Logging in to a MySQL or MariaDB server: TLS, and no password where others could read it.

A server, or whoever answers in its place, chooses how the client proves its password. Of what
PyMySQL knows, `mysql_clear_password` and `dialog` send it as it is, and the full forms of
`sha256_password` and `caching_sha2_password` encrypt it for a key that came over the same
connection. Over TLS that is fine; over a plain connection only proofs are given that do not tell
the password.
"""

import socket
import ssl
from contextlib import suppress
from functools import lru_cache
from io import BufferedReader
from typing import TYPE_CHECKING, Any

import pymysql
from pymysql.connections import Connection, MySQLResult
from pymysql.constants import CR

from joins.adapters.certificate import load_certificate
from joins.plan.errors import SourceError
from joins.plan.plan import PREFERRED_TLS, MysqlTls, TlsMode

_VERIFYING = (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)
_READ_BYTES = 256 << 10
_PROOFS = frozenset({b"mysql_native_password", b"client_ed25519", b"caching_sha2_password"})

if TYPE_CHECKING:
    _Plain = Connection[Any]
else:
    _Plain = Connection  # it has its parameter in its stubs only


def tls_arguments(tls: MysqlTls) -> dict[str, Any]:
    """PyMySQL's arguments for `tls`.

    Raises:
        SourceError: a certificate or the key cannot be used.
    """
    if tls.mode is TlsMode.DISABLED:
        return {"ssl_disabled": True}
    if tls.mode is TlsMode.PREFERRED:
        return {}
    return {"ssl": tls_context(tls)}


@lru_cache(maxsize=16)
def tls_context(tls: MysqlTls) -> ssl.SSLContext:
    """How to speak TLS; connections of equal options share it.

    Raises:
        SourceError: a certificate or the key cannot be used.
    """
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
    """A connection that tells its password to nobody over a plain connection."""

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
        """End it from another thread, also while it waits; `close` would wait for the reader.

        In the handshakes of TCP and TLS nobody has the socket; they end by their own timeout.
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
        """Send `statement` and read what describes its columns; its rows are read by `read_some`.

        Returns:
            The number of the packet that comes next.
        """
        self.query(statement, unbuffered=True)
        self._result.unbuffered_active = False  # else PyMySQL reads the rows where it drops this
        return self._next_seq_id

    def read_some(self, view: memoryview) -> int:
        """Put bytes that have come into `view`; how many, 1 at the least.

        Raises:
            pymysql.err.OperationalError: the connection is lost.
        """
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
        except RuntimeError as exc:  # a library of that proof is not there
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
