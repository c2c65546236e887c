"""PostgreSQL as a job store: which driver, how it is reached, what its sessions promise.

`postgresql://` without a driver is pg8000, which comes with Sluice. It takes the words of libpq for
TLS from the URL: `sslmode` and `sslrootcert`.
"""

import ssl
from typing import Any

import sqlalchemy as sa

from service.errors import StoreError

OLDEST = 14  # the first that ends silent sessions
_CONNECT_S, _ANSWER_S = 10, 30
_OURS = "postgresql+pg8000"
_SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
_SESSION = {
    "idle_in_transaction_session_timeout": "8s",
    "lock_timeout": "20s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",
}


def check_server(dialect: sa.Dialect) -> None:
    """Let pass what is not PostgreSQL, or new enough.

    Raises:
        StoreError: it is too old.
    """
    version = getattr(dialect, "server_version_info", None) or (0,)
    if dialect.name == "postgresql" and version[0] < OLDEST:
        raise StoreError(
            f"job store is on PostgreSQL {version[0]}, expected {OLDEST} or newer",
            hint="Let SLUICE_DATABASE_URL name a newer server.",
        )


def store_engine(url: sa.URL) -> sa.Engine:
    """Connections for the store.

    Raises:
        StoreError: the URL asks for TLS that cannot be spoken.
    """
    url, arguments = reached_by(url, connect_s=_CONNECT_S, answer_s=_ANSWER_S)
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments)
    sa.event.listen(engine, "connect", _set_up)
    return engine


def lock_engine(url: sa.URL, *, answer_s: int) -> sa.Engine:
    """One session at a time, each statement by itself, that gives up on a silent server.

    Raises:
        StoreError: the URL asks for TLS that cannot be spoken.
    """
    url, arguments = reached_by(url, connect_s=answer_s, answer_s=answer_s)
    return sa.create_engine(
        url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments
    )


def reached_by(url: sa.URL, *, connect_s: int, answer_s: int) -> tuple[sa.URL, dict[str, Any]]:
    """The URL and what its driver is told, so that no thread waits forever for a silent server.

    Raises:
        StoreError: the URL asks for TLS that cannot be spoken.
    """
    if url.drivername == "postgresql":
        url = url.set(drivername=_OURS)
    if url.drivername == _OURS:
        context = _tls(url)
        rest = url.difference_update_query(("sslmode", "sslrootcert"))
        return rest, {"timeout": answer_s, "ssl_context": context}
    if url.get_driver_name().startswith("psycopg"):
        silence = {"tcp_user_timeout": answer_s * 1000, "keepalives_idle": answer_s}
        return url, {"connect_timeout": connect_s, **silence}
    return url, {}


def _tls(url: sa.URL) -> ssl.SSLContext | bool | None:
    """What TLS is spoken with; None is `prefer`. As in libpq, `require` looks at no certificate."""
    mode, root = (str(url.query.get(name, "")) for name in ("sslmode", "sslrootcert"))
    if not mode and root:
        mode = "verify-full"
    if mode in ("", "prefer"):
        return None
    if mode == "disable":
        return False
    if mode not in _SSL_MODES:
        raise StoreError(
            f'job store has sslmode "{mode}", expected {", ".join(_SSL_MODES)}',
            hint="Correct sslmode in SLUICE_DATABASE_URL; verify-full looks at the certificate.",
        )
    try:
        context = ssl.create_default_context(cafile=root or None)
    except OSError as exc:
        raise StoreError(
            f'job store has sslrootcert "{root}", which cannot be read: {exc.strerror}',
            hint="Name a file with the authority's certificate as PEM, or leave sslrootcert out.",
        ) from exc
    context.check_hostname = mode == "verify-full"
    if mode == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def _set_up(connection: Any, _record: object) -> None:  # noqa: ANN401 (the driver's own)
    """See that the server ends the session, and its locks, of a machine that is cut off."""
    cursor = connection.cursor()
    for setting, value in _SESSION.items():
        cursor.execute(f"SET SESSION {setting} = '{value}'")
    cursor.close()
    connection.commit()
