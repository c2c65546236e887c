"""The database of the job store: SQLite (WAL, synchronous FULL), or PostgreSQL by URL.

SQLite serves one control plane, PostgreSQL several: the leader writes under its term, and a
transaction of an older term is refused (ADR-0093).
"""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError

from service.errors import StandbyError, StoreError
from service.jobs.store.rows import LEADERSHIP, LOCK_SPACE, MIGRATION, lock_key

OLDEST = 14  # the first version that ends silent sessions
_CONNECT_S, _ANSWER_S = 10, 30
_OURS = "postgresql+pg8000"
_LOGIN = {"user", "password", "host", "port", "unix_sock"}  # of the driver, as options of URLs
_SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
_SESSION = {
    "idle_in_transaction_session_timeout": "8s",
    "lock_timeout": "20s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20s",
}


def store_engine(url: sa.URL) -> sa.Engine:
    """Connections for the store. Raises StoreError if its TLS settings cannot be used."""
    url, arguments = reached_by(url, connect_s=_CONNECT_S, answer_s=_ANSWER_S)
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=arguments)
    sa.event.listen(engine, "connect", _set_up)
    return engine


def lock_engine(url: sa.URL, *, answer_s: int) -> sa.Engine:
    """Single autocommit sessions that give up on a silent server; raises as `store_engine`."""
    url, arguments = reached_by(url, connect_s=answer_s, answer_s=answer_s)
    return sa.create_engine(
        url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments
    )


def reached_by(url: sa.URL, *, connect_s: int, answer_s: int) -> tuple[sa.URL, dict[str, Any]]:
    """The URL and driver arguments with timeouts, so that no thread waits forever."""
    if url.drivername == "postgresql":
        url = url.set(drivername=_OURS)
    if url.drivername == _OURS:
        context = _tls(url)
        rest = url.difference_update_query(("sslmode", "sslrootcert"))
        unknown = sorted(rest.query.keys() - _LOGIN - {"application_name"})
        if unknown:
            raise StoreError(
                f'job store has option "{unknown[0]}" in its URL, expected sslmode, sslrootcert or '
                "application_name",
                hint="Leave it out of SLUICE_DATABASE_URL; timeouts are set by the control plane.",
            )
        return rest, {"timeout": answer_s, "ssl_context": context}
    if url.get_driver_name().startswith("psycopg"):
        silence = {"tcp_user_timeout": answer_s * 1000, "keepalives_idle": answer_s}
        return url, {"connect_timeout": connect_s, **silence}
    return url, {}


def _tls(url: sa.URL) -> ssl.SSLContext | bool | None:
    """The TLS context; None is `prefer`. As in libpq, `require` checks no certificate."""
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
    """Make the server end the session and its locks when this machine is cut off."""
    cursor = connection.cursor()
    for setting, value in _SESSION.items():
        cursor.execute(f"SET SESSION {setting} = '{value}'")
    cursor.close()
    connection.commit()


_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_TIMEOUT_S = 30
_TIDY_AFTER = 100  # transactions; with a plan each, 3 MiB of SQLite's log
_LOG_PAGES = 10_000  # of 4 KiB; a writer checkpoints itself without `tidy`
_MIGRATING = threading.Lock()  # alembic keeps its context in a module


class StoreDatabase:
    """Connections for reading and, one at a time, for writing; thread-safe."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._writes = engine.execution_options(sluice_writes=True)
        self._order = threading.Lock()  # events are numbered in the order of their commits
        self._untidied = 0
        self._is_fenced = False
        self._term: int | None = None

    @classmethod
    def open(cls, url: str) -> Self:
        """Open or create the store and migrate it. Raises StoreError, also if it is newer."""
        try:
            engine = _engine(url)
            with _MIGRATING, engine.execution_options(sluice_writes=True).begin() as connection:
                version = getattr(connection.dialect, "server_version_info", None) or (0,)
                if connection.dialect.name == "postgresql" and version[0] < OLDEST:
                    raise StoreError(
                        f"job store is on PostgreSQL {version[0]}, expected {OLDEST} or newer",
                        hint="Let SLUICE_DATABASE_URL name a newer server.",
                    )
                if connection.dialect.name == "postgresql":  # SQLite has its one writer
                    one_at_a_time = sa.func.pg_advisory_xact_lock(LOCK_SPACE, lock_key(MIGRATION))
                    connection.execute(sa.select(one_at_a_time))
                config = Config()
                config.set_main_option("script_location", str(_MIGRATIONS))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except CommandError as exc:
            raise StoreError(
                f"job store has a revision that this program does not know: {exc}",
                hint="Run the version of Sluice that last used this data directory, or a newer.",
            ) from exc
        except (sa.exc.SQLAlchemyError, ImportError, OSError) as exc:
            raise StoreError(
                f"job store cannot be opened: {_first_line(exc)}",
                hint="Check SLUICE_DATA_DIR (its owner and free space) or SLUICE_DATABASE_URL.",
            ) from exc
        return cls(engine)

    def close(self) -> None:
        self._engine.dispose()

    def fence(self, term: int | None) -> None:
        """Allow writes only in `term` of leadership; None allows none.

        An open transaction of another term is refused too, or commits before its successor's
        begins.
        """
        self._term, self._is_fenced = term, True

    def bind(self, data_dir_id: str | None) -> str | None:
        """Store the id of the data directory unless there is one; returns the stored id."""
        with self.writing(fenced=False) as connection:
            known = sa.select(LEADERSHIP.c.data_dir_id).with_for_update()
            bound: str | None = connection.execute(known).scalar()
            if bound is None and data_dir_id is not None:
                connection.execute(sa.update(LEADERSHIP).values(data_dir_id=data_dir_id))
                return data_dir_id
            return bound

    def check(self) -> None:
        with self.writing(fenced=False) as connection:
            connection.execute(sa.select(sa.literal(1)))

    def tidy(self) -> None:
        """Checkpoint a long WAL of SQLite; otherwise a writer would wait for it."""
        if self._untidied < _TIDY_AFTER or self._engine.dialect.name != "sqlite":
            return
        self._untidied = 0
        with in_our_words():
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        with in_our_words(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, fenced: bool = True) -> Iterator[sa.Connection]:
        """A durable write; `fenced` ones are for the leader. Raises StoreError or StandbyError."""
        with in_our_words(), self._order, self._writes.begin() as connection:
            self._untidied += 1
            if fenced and self._is_fenced:
                _check_term(connection, self._term)
            yield connection


def _check_term(connection: sa.Connection, term: int | None) -> None:
    newest = connection.execute(sa.select(LEADERSHIP.c.term).with_for_update(read=True)).scalar()
    if term is None or newest != term:
        raise StandbyError(
            "control plane does not lead: it may not write to the job store",
            hint="Ask again; GET /v1/version says which control plane leads.",
        )


@contextmanager
def in_our_words() -> Iterator[None]:
    """Raise StoreError for faults of the database; violated constraints pass unchanged."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except (sa.exc.SQLAlchemyError, OSError) as exc:
        raise StoreError(
            f"job store cannot be used: {_first_line(exc)}",
            hint="Check the free space and the owner of the data directory, or the database.",
        ) from exc


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise StoreError(
            "job store has a URL that cannot be read",
            hint="Correct SLUICE_DATABASE_URL, such as postgresql://user@host/database; write %2F, "
            "%3A and %40 for /, : and @ in its password.",
        ) from None  # its text may have a part of the password
    if parsed.get_backend_name() == "postgresql":
        return store_engine(parsed)
    if parsed.get_backend_name() != "sqlite":
        raise StoreError(
            f'job store is of "{parsed.get_backend_name()}", expected sqlite or postgresql',
            hint="Correct SLUICE_DATABASE_URL, such as postgresql://user@host/database.",
        )
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(parsed.database).touch(mode=0o600)  # SQLite gives its other files the same mode
    engine = sa.create_engine(parsed, connect_args={"timeout": _BUSY_TIMEOUT_S})
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 (sqlite3's own)
    connection.isolation_level = None  # the driver's implicit BEGIN would come too late
    log = f"wal_autocheckpoint={_LOG_PAGES}"
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", log):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("sluice_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _first_line(exc: BaseException) -> str:
    cause = getattr(exc, "orig", None) or exc
    fields = cause.args[0] if cause.args else None
    text = fields.get("M", "") if isinstance(fields, dict) else str(cause)  # (pg8000's fields)
    return text.strip().partition("\n")[0] or type(exc).__name__
