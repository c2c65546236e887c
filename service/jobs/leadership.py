"""Leader election among control planes on one PostgreSQL store.

One thread asks the server, which may be slow; another watches the clock and acts. The lock is
advisory and belongs to a session: the server releases it when the session ends. A leader certainly
held the lock when it sent its last answered question. Times after that, on its own clock:

| after | |
|---|---|
| `RENEW_S` | it asks again |
| `ANSWER_S` | the question counts as unanswered: it reconnects |
| `SESSION_ENDS_S` | the server ends a silent session, which releases the lock |
| `YIELDS_S` | without an answer it stops leading: no changes, its runners are asked to stop |
| `RUNNERS_GONE_S` | the last runner is killed |
| `TAKES_OVER_S` | a successor holds the lock this long before it leads |

Another control plane can hold the lock at the earliest when the last answer was sent, so it leads
`TAKES_OVER_S - RUNNERS_GONE_S` after the runners of its predecessor are gone. After a crash of the
leader that takes at most `SESSION_ENDS_S + RENEW_S + TAKES_OVER_S`.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import sqlalchemy as sa
import structlog

from service.errors import StandbyError, StoreError
from service.jobs.store.database import in_our_words, lock_engine
from service.jobs.store.job import now_ms
from service.jobs.store.rows import (
    LEADER,
    LEADERSHIP,
    LOCK_SPACE,
    LeaderRecord,
    lock_key,
    record_of,
)

RENEW_S = 1.0
AGAIN_S = 0.3  # after an error; a leader whose server was restarted comes before a standby
ANSWER_S = 3
SESSION_ENDS_S = 8.0
YIELDS_S = 9.0
RUNNERS_GONE_S = 13.0
TAKES_OVER_S = 15.0
DECIDES_S = 0.2


_LOCKS = sa.table(
    "pg_locks",
    *map(sa.column, ("locktype", "database", "classid", "objid", "objsubid", "pid", "granted")),
)
_DATABASES = sa.table("pg_database", sa.column("oid"), sa.column("datname"))
_UNSIGNED = 0xFFFF_FFFF


class LockSession:
    """One session, for one thread; after an error it must be replaced."""

    def __init__(self, engine: sa.Engine, connection: sa.Connection) -> None:
        self._engine = engine
        self._connection = connection

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect to the store. Like all methods, raises StoreError without a timely answer."""
        with in_our_words():
            engine = lock_engine(sa.make_url(url), answer_s=ANSWER_S)
            connection = engine.connect()
            limit_ms = int(SESSION_ENDS_S * 1000)
            connection.exec_driver_sql(f"SET SESSION idle_session_timeout = {limit_ms}")
            return cls(engine, connection)

    def look(self) -> tuple[bool, LeaderRecord]:
        """Take the lock if it is free; True if this session has it, and the newest leader."""
        take = sa.func.pg_try_advisory_lock(LOCK_SPACE, lock_key(LEADER))
        is_ours = sa.case((_is_held(), sa.true()), else_=take).label("is_ours")
        with in_our_words():
            row = self._connection.execute(sa.select(LEADERSHIP, is_ours)).mappings().one()
        return bool(row["is_ours"]), record_of(row)

    def take_over(self, url: str) -> LeaderRecord:
        """Begin a new term, led by the control plane at `url`; this session must have the lock.

        Writers of the previous term have ended when this returns.
        """
        values = {"url": url, "since_ms": now_ms(), "is_vacant": False}
        change = sa.update(LEADERSHIP).values(term=LEADERSHIP.c.term + 1, **values)
        with in_our_words():
            row = self._connection.execute(change.returning(*LEADERSHIP.c)).mappings().one()
        return record_of(row)

    def vacate(self, term: int) -> None:
        """Record that the leader of `term` has ended its runners: a successor need not wait."""
        mine = sa.update(LEADERSHIP).where(LEADERSHIP.c.term == term)
        with in_our_words():
            self._connection.execute(mine.values(is_vacant=True))

    def address(self) -> str:
        with in_our_words():
            seen = self._connection.scalar(sa.select(sa.func.host(sa.func.inet_client_addr())))
        return str(seen or "localhost")

    def close(self) -> None:
        with suppress(StoreError), in_our_words():
            self._connection.invalidate()
            self._connection.close()
            self._engine.dispose()


def _is_held() -> sa.ColumnElement[bool]:
    """True if this session has the lock: behind a pooler it may be another session by now."""
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


class ControlPlaneRole(StrEnum):
    """Leader or standby."""

    LEADER = "leader"  # accepts changes and supervises the jobs
    STANDBY = "standby"  # serves reads, and takes over


class Leadership:
    """The role of this control plane and the leader's address; thread-safe.

    `leads` is fixed for SQLite, whose store has one control plane.
    """

    def __init__(self, *, leads: bool) -> None:
        self._changing = threading.Lock()
        self._term = 0 if leads else None
        self._record: LeaderRecord | None = None

    @property
    def role(self) -> ControlPlaneRole:
        return ControlPlaneRole.STANDBY if self._term is None else ControlPlaneRole.LEADER

    @property
    def term(self) -> int:
        return 0 if self._record is None else self._record.term

    @property
    def leader_url(self) -> str:
        record = self._record
        return "" if record is None or record.is_vacant else record.url

    def lead(self, term: int) -> None:
        with self._changing:
            self._term = term

    def stand_by(self) -> None:
        with self._changing:
            self._term = None

    def know(self, record: LeaderRecord) -> None:
        self._record = record

    def require(self) -> None:
        if self._term is not None:
            return
        url = self.leader_url
        if url:
            raise StandbyError(
                f'control plane is a standby; the one at "{url}" leads',
                hint=f"Ask {url}; if it does not answer, ask again here: a standby takes over "
                "within 30 s.",
                leader_url=url,
            )
        raise StandbyError(
            "control plane is a standby, and none leads at the moment",
            hint="Ask again in a moment: a standby takes over within 30 s.",
        )


_LAST_S = 1.0  # for runners that have not ended when the control plane did
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Duties:
    """The actions of a control plane in a term: `begin` supervises the jobs, `end` stops.

    `end` leaves no runner after a monotonic time; the store may be unreachable then.
    """

    begin: Callable[[int], None]
    end: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class _Claim:
    """This session has the lock; `certain_at` is when the last answered question was sent."""

    term: int
    certain_at: float


class Election:
    """One candidate for the store at `store_url` (PostgreSQL); `close` gives leadership up.

    `address` returns this control plane's URL, given the host name that the server sees.
    """

    def __init__(
        self,
        store_url: str,
        address: Callable[[str], str],
        leadership: Leadership,
        duties: Duties,
    ) -> None:
        self._store_url = store_url
        self._address = address
        self._leadership = leadership
        self._duties = duties
        self._claiming = threading.Lock()
        self._claim: _Claim | None = None
        self._owned_since: float | None = None
        self._idle = threading.Event()  # no duty of an earlier term is left
        self._idle.set()
        self._closing = threading.Event()
        self._decided = threading.Event()
        self._asker = threading.Thread(target=self._ask, name="leader-lock", daemon=True)
        self._decider = threading.Thread(target=self._decide, name="leadership", daemon=True)

    def start(self) -> None:
        self._decider.start()
        self._asker.start()

    def close(self) -> None:
        self._closing.set()
        if self._asker.is_alive():
            self._asker.join()

    def wait(self, timeout_s: float) -> None:
        self._decided.wait(timeout_s)

    def _ask(self) -> None:
        """Hold the session; only a takeover has an effect."""
        session: LockSession | None = None
        fault = ""
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                session = session or LockSession.open(self._store_url)
                self._heard(session, began)
                pause_s = RENEW_S
                fault = ""
            except Exception as exc:  # a leader must continue to ask after any fault
                if str(exc) != fault:  # log once: the retry runs three times a second
                    fault = str(exc)
                    _log.warning("leader's lock cannot be asked for", error=fault)
                self._owned_since = None
                if session is not None:
                    session.close()
                session, pause_s = None, AGAIN_S
            self._closing.wait(pause_s)
        self._decider.join()
        if session is not None:
            self._give_back(session)

    def _heard(self, session: LockSession, began: float) -> None:
        is_ours, record = session.look()
        self._leadership.know(record)
        claim = self._claim
        if claim is not None and claim.term != record.term:
            self._drop("another control plane leads", record)
        elif claim is not None and is_ours:
            self._keep(_Claim(claim.term, began))
        if not is_ours:
            self._owned_since = None
            self._decided.set()
        elif self._claim is None:
            self._owned_since = self._owned_since or time.monotonic()
            self._take_over(session, record)

    def _take_over(self, session: LockSession, record: LeaderRecord) -> None:
        """Begin a term, once the runners of the previous one are certainly gone."""
        assert self._owned_since is not None
        is_due = record.is_vacant or time.monotonic() - self._owned_since >= TAKES_OVER_S
        if not is_due or not self._idle.is_set():
            self._decided.set()
            return
        began = time.monotonic()
        new_record = session.take_over(self._address(session.address()))
        self._leadership.know(new_record)
        with self._claiming:
            self._idle.clear()
            self._claim = _Claim(new_record.term, began)

    def _keep(self, claim: _Claim) -> None:
        with self._claiming:
            if self._claim is not None and self._claim.term == claim.term:
                self._claim = claim

    def _drop(self, why: str, record: LeaderRecord) -> None:
        _log.warning("leadership is lost", cause=why, term=record.term, leader=record.url)
        with self._claiming:
            self._claim = None

    def _decide(self) -> None:
        leads: _Claim | None = None
        while not self._closing.wait(DECIDES_S):
            claim = self._claim_seen(leads)
            if leads is None and claim is not None:
                leads = self._begin(claim)
            elif leads is not None and not _same(leads, claim):
                self._end(leads.certain_at if claim is None else claim.certain_at)
                leads = None
            elif leads is not None and claim is not None:
                leads = claim
                if time.monotonic() - claim.certain_at > YIELDS_S:
                    _log.warning("leadership is given up", cause="the job store does not answer")
                    self._end(claim.certain_at)
                    leads = None
        self._leadership.stand_by()
        if leads is not None:
            self._duties.end(time.monotonic() + _LAST_S)

    def _claim_seen(self, leads: _Claim | None) -> _Claim | None:
        with self._claiming:
            if self._claim is None and leads is None:
                self._idle.set()
            return self._claim

    def _begin(self, claim: _Claim) -> _Claim | None:
        try:
            self._duties.begin(claim.term)
        except Exception:  # started duties must end after any fault
            _log.exception("leadership cannot be taken", term=claim.term)
            self._end(claim.certain_at)
            return None
        self._leadership.lead(claim.term)
        self._decided.set()
        _log.info("control plane leads", term=claim.term)
        return claim

    def _end(self, certain_at: float) -> None:
        self._leadership.stand_by()
        with self._claiming:
            self._claim = None
        try:
            self._duties.end(certain_at + RUNNERS_GONE_S)
        except Exception:  # the next term must not begin in a thread that has ended
            _log.exception("runners cannot be ended")
        self._idle.set()
        _log.info("control plane is a standby")

    def _give_back(self, session: LockSession) -> None:
        claim = self._claim
        try:
            if claim is not None:
                session.vacate(claim.term)
        except StoreError as exc:
            _log.warning("leadership cannot be given back", error=exc.message)
        session.close()


def _same(one: _Claim, other: _Claim | None) -> bool:
    return other is not None and one.term == other.term
