"""A session of PostgreSQL that holds the leader's lock, or would like to.

The lock is advisory and the session's: the server gives it back when the session ends, however that
happens. A session that says nothing for `SESSION_ENDS_S` is ended by the server itself, so that a
machine that is cut off, or a process that stands still, does not keep it.
"""

from contextlib import suppress
from typing import Any, Self

import sqlalchemy as sa

from service.errors import StoreError
from service.jobs.leadership.pace import ANSWER_S, SESSION_ENDS_S
from service.jobs.store.database import in_our_words
from service.jobs.store.leader_row import (
    LEADER,
    LEADERSHIP,
    LOCK_SPACE,
    LeaderRecord,
    lock_key,
    record_of,
)
from service.jobs.store.postgres import lock_engine
from service.jobs.store.rows import now_ms

_LOCKS = sa.table(
    "pg_locks",
    *map(sa.column, ("locktype", "database", "classid", "objid", "objsubid", "pid", "granted")),
)
_DATABASES = sa.table("pg_database", sa.column("oid"), sa.column("datname"))
_UNSIGNED = 0xFFFF_FFFF


class LockSession:
    """One session; for one thread. After an error it is of no use any more."""

    def __init__(self, engine: sa.Engine, connection: sa.Connection) -> None:
        self._engine = engine
        self._connection = connection

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect to the store at `url`.

        Raises:
            StoreError: that cannot be done, or not in time.
        """
        with in_our_words():
            engine = lock_engine(sa.make_url(url), answer_s=ANSWER_S)
            connection = engine.connect()
            limit_ms = int(SESSION_ENDS_S * 1000)
            connection.exec_driver_sql(f"SET SESSION idle_session_timeout = {limit_ms}")
            return cls(engine, connection)

    def look(self) -> tuple[bool, LeaderRecord]:
        """Take the lock if nobody has it; whether it is ours now, and who has led last.

        Raises:
            StoreError: there is no answer in time.
        """
        take = sa.func.pg_try_advisory_lock(LOCK_SPACE, lock_key(LEADER))
        is_ours = sa.case((_is_held(), sa.true()), else_=take).label("is_ours")
        with in_our_words():
            row = self._connection.execute(sa.select(LEADERSHIP, is_ours)).mappings().one()
        return bool(row["is_ours"]), record_of(row)

    def take_over(self, url: str) -> LeaderRecord:
        """Begin a new term, in which the control plane at `url` leads; the lock must be ours.

        Writers of the term before have ended when this returns.

        Raises:
            StoreError: there is no answer in time.
        """
        values = {"url": url, "since_ms": now_ms(), "is_vacant": False}
        change = sa.update(LEADERSHIP).values(term=LEADERSHIP.c.term + 1, **values)
        with in_our_words():
            row = self._connection.execute(change.returning(*LEADERSHIP.c)).mappings().one()
        return record_of(row)

    def vacate(self, term: int) -> None:
        """Say that who leads in `term` has ended its runners: a successor need not wait.

        Raises:
            StoreError: there is no answer in time.
        """
        mine = sa.update(LEADERSHIP).where(LEADERSHIP.c.term == term)
        with in_our_words():
            self._connection.execute(mine.values(is_vacant=True))

    def address(self) -> str:
        """This machine's address as the server sees it.

        Raises:
            StoreError: there is no answer in time.
        """
        with in_our_words():
            seen = self._connection.scalar(sa.select(sa.func.host(sa.func.inet_client_addr())))
        return str(seen or "localhost")

    def close(self) -> None:
        """End the session and, with it, the lock."""
        with suppress(StoreError), in_our_words():
            self._connection.invalidate()
            self._connection.close()
            self._engine.dispose()


def _is_held() -> sa.ColumnElement[bool]:
    """Whether this session has the lock: behind a pooler it may be another one by now."""
    database = sa.select(_DATABASES.c.oid).where(_DATABASES.c.datname == sa.func.current_database())
    key = sa.cast(lock_key(LEADER), sa.BigInteger).op("&")(sa.literal_column(str(_UNSIGNED)))
    conditions: tuple[Any, ...] = (
        _LOCKS.c.locktype == "advisory",
        _LOCKS.c.granted,
        _LOCKS.c.pid == sa.func.pg_backend_pid(),
        _LOCKS.c.database == database.scalar_subquery(),
        sa.cast(_LOCKS.c.classid, sa.BigInteger) == LOCK_SPACE,
        sa.cast(_LOCKS.c.objid, sa.BigInteger) == key,
        _LOCKS.c.objsubid == 2,
    )
    return sa.exists().where(*conditions).select_from(_LOCKS)
