"""Makes a control plane lead when the lock is its own, and stand by when that is not certain.

Two threads: one asks the server, which may take its time; the other looks at the clock and acts.
`service.jobs.leadership.pace` has the order of times.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from service.errors import StoreError
from service.jobs.leadership import pace
from service.jobs.leadership.leadership import Leadership
from service.jobs.leadership.lock_session import LockSession
from service.jobs.store.leader_row import LeaderRecord

_LAST_S = 1.0  # for runners that have not ended when the control plane did
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Duties:
    """What a control plane does at both ends of its time as leader.

    Attributes:
        begin: look after the jobs in a term.
        end: do so no more, with all runners gone by a time of `time.monotonic`; the store may be
            out of reach.
    """

    begin: Callable[[int], None]
    end: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class _Claim:
    """The lock is ours, as far as we know.

    Attributes:
        certain_at: when the question was sent that was answered last.
    """

    term: int
    certain_at: float


class Election:
    """One candidate for the store at `store_url`; `close` gives leadership up.

    Args:
        store_url: of PostgreSQL.
        address: where this control plane answers, given what the server sees as its host.
        leadership: is kept up to date.
        duties: what to do at the beginning and at the end of a term.
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
        """Hold the session; never acts on what it hears but to take over."""
        session: LockSession | None = None
        fault = ""
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                session = session or LockSession.open(self._store_url)
                self._heard(session, began)
                pause_s = pace.RENEW_S
                fault = ""
            except Exception as exc:  # whatever it is, who leads must go on asking
                if str(exc) != fault:  # else it is tried three times a second
                    fault = str(exc)
                    _log.warning("leader's lock cannot be asked for", error=fault)
                self._owned_since = None
                if session is not None:
                    session.close()
                session, pause_s = None, pace.AGAIN_S
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
        """Begin a term, if the runners of the one before are certainly gone."""
        assert self._owned_since is not None
        is_due = record.is_vacant or time.monotonic() - self._owned_since >= pace.TAKES_OVER_S
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
        """Act on the claim and the clock."""
        leads: _Claim | None = None
        while not self._closing.wait(pace.DECIDES_S):
            claim = self._claim_seen(leads)
            if leads is None and claim is not None:
                leads = self._begin(claim)
            elif leads is not None and not _same(leads, claim):
                self._end(leads.certain_at if claim is None else claim.certain_at)
                leads = None
            elif leads is not None and claim is not None:
                leads = claim
                if time.monotonic() - claim.certain_at > pace.YIELDS_S:
                    _log.warning("leadership is given up", cause="the job store does not answer")
                    self._end(claim.certain_at)
                    leads = None
        self._leadership.stand_by()
        if leads is not None:
            self._duties.end(time.monotonic() + _LAST_S)

    def _claim_seen(self, leads: _Claim | None) -> _Claim | None:
        """The claim; without any, who does not lead has nothing left to end."""
        with self._claiming:
            if self._claim is None and leads is None:
                self._idle.set()
            return self._claim

    def _begin(self, claim: _Claim) -> _Claim | None:
        try:
            self._duties.begin(claim.term)
        except Exception:  # whatever it is, what has begun must end
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
            self._duties.end(certain_at + pace.RUNNERS_GONE_S)
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
