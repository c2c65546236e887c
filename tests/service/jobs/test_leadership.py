"""Of several candidates for one store one leads, and the next one waits until it is certain."""

import os
import signal
import threading
import time

import psutil
import pytest

from service.errors import StandbyError, StoreError
from service.jobs import leadership
from service.jobs.leadership import ControlPlaneRole, Duties, Election, Leadership, LockSession
from service.jobs.store.store import JobStore
from tests.support.sockets import way_to
from tests.support.store_databases import empty_store, new_store_url
from tests.support.wait import wait_until

QUICK = {
    "RENEW_S": 0.05,
    "AGAIN_S": 0.05,
    "ANSWER_S": 1,
    "SESSION_ENDS_S": 3.2,
    "YIELDS_S": 3.6,
    "RUNNERS_GONE_S": 5.2,
    "TAKES_OVER_S": 6.0,
    "DECIDES_S": 0.02,
}


@pytest.fixture(scope="module")
def postgres(own_postgres):
    return own_postgres


@pytest.fixture(scope="module")
def used_url(postgres):
    url = new_store_url(postgres)
    JobStore.open(url).close()
    return url


@pytest.fixture
def url(used_url):
    empty_store(used_url)
    return used_url


class Candidate:
    """A control plane without jobs: notes when it begins and ends to look after them."""

    def __init__(self, url, name):
        self.leadership = Leadership(leads=False)
        self.notes = []
        duties = Duties(
            lambda term: self.notes.append(("begin", term, time.monotonic())),
            lambda by: self.notes.append(("end", by, time.monotonic())),
        )
        self.election = Election(url, lambda _: f"http://{name}", self.leadership, duties)
        self.election.start()

    @property
    def leads(self):
        return self.leadership.role is ControlPlaneRole.LEADER


@pytest.fixture
def stand(url, monkeypatch):
    for name, value in QUICK.items():
        monkeypatch.setattr(leadership, name, value)
    candidates = []

    def stand_for_election(name, way=url):
        candidates.append(Candidate(way, name))
        return candidates[-1]

    yield stand_for_election
    for candidate in candidates:
        candidate.election.close()


def _sessions(postgres, what):
    """End or count the sessions that hold the leader's lock."""
    connection = postgres.connect()
    cursor = connection.cursor()
    cursor.execute(f"SELECT {what} FROM pg_locks WHERE locktype = 'advisory' AND granted")
    rows = cursor.fetchall()
    connection.close()
    return [row[0] for row in rows]


def test_the_first_leads_at_once_and_the_second_knows_who(stand):
    first = stand("first")
    wait_until(lambda: first.leads, deadline_s=10)
    second = stand("second")
    wait_until(lambda: second.leadership.leader_url == "http://first", deadline_s=10)
    assert not second.leads
    first.leadership.require()
    with pytest.raises(StandbyError, match='the one at "http://first" leads') as refused:
        second.leadership.require()
    assert refused.value.leader_url == "http://first"


def test_who_gives_leadership_back_is_followed_at_once(stand):
    first = stand("first")
    wait_until(lambda: first.leads, deadline_s=10)
    second = stand("second")
    second.election.wait(10)
    first.election.close()
    left = time.monotonic()
    wait_until(lambda: second.leads, deadline_s=10)
    assert time.monotonic() - left < leadership.TAKES_OVER_S
    second.leadership.require()
    assert [note[0] for note in first.notes] == ["begin", "end"]
    assert second.notes[0][1] == first.notes[0][1] + 1, "the next term"


def test_a_session_that_was_ended_is_taken_up_again_without_a_pause(stand, postgres):
    only = stand("only")
    wait_until(lambda: only.leads, deadline_s=10)
    (before,) = _sessions(postgres, "pid")
    _sessions(postgres, "pg_terminate_backend(pid)")
    wait_until(lambda: _sessions(postgres, "pid") not in ([], [before]), deadline_s=10)
    time_is_over = threading.Event()
    time_is_over.wait(2 * leadership.YIELDS_S)
    assert only.leads
    assert len(only.notes) == 1


def test_who_is_cut_off_has_ended_before_another_begins(stand, postgres, url):
    is_cut = threading.Event()
    with way_to(postgres.port, is_cut) as port:
        first = stand("first", url.replace(f":{postgres.port}/", f":{port}/"))
        wait_until(lambda: first.leads, deadline_s=10)
        second = stand("second")
        second.election.wait(10)
        is_cut.set()
        wait_until(lambda: second.leads, deadline_s=20)
        assert not first.leads
        (_, (_, by, ended)), (_, _, began) = first.notes, second.notes[0]
        assert ended < by < began
        is_cut.clear()
        wait_until(lambda: first.leadership.leader_url == "http://second", deadline_s=20)
        assert second.leads


def test_whose_lock_another_has_is_done_before_that_one_begins(stand, postgres, url, monkeypatch):
    first = stand("first")
    wait_until(lambda: first.leads, deadline_s=10)
    nowhere = url.replace(f":{postgres.port}/", ":9/")
    monkeypatch.setattr(first.election, "_store_url", nowhere)
    _sessions(postgres, "pg_terminate_backend(pid)")
    second = stand("second")
    wait_until(lambda: second.leads, deadline_s=20)
    assert not first.leads
    (_, (_, by, ended)), (_, _, began) = first.notes, second.notes[0]
    assert ended < by < began


def test_while_the_server_stands_still_nobody_leads(stand, postgres):
    first, second = stand("first"), stand("second")
    wait_until(lambda: first.leads or second.leads, deadline_s=10)
    servers = [psutil.Process(postgres.pid), *psutil.Process(postgres.pid).children()]
    for server in servers:
        os.kill(server.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not first.leads and not second.leads, deadline_s=20)
    finally:
        for server in servers:
            os.kill(server.pid, signal.SIGCONT)
    wait_until(lambda: first.leads or second.leads, deadline_s=30)
    turns = sorted([*first.notes, *second.notes], key=lambda note: note[2])
    assert [note[0] for note in turns] == ["begin", "end", "begin"]


def test_a_silent_session_loses_the_lock(url):
    holder, other = LockSession.open(url), LockSession.open(url)
    holder._connection.exec_driver_sql("SET SESSION idle_session_timeout = 300")
    assert holder.look()[0]
    assert holder.look()[0], "it may look as often as it likes"
    assert not other.look()[0]
    wait_until(lambda: other.look()[0], deadline_s=10)
    with pytest.raises(StoreError):
        holder.look()
    holder.close()
    other.close()


def test_the_order_of_times():
    times = leadership
    assert times.RENEW_S + times.ANSWER_S < times.SESSION_ENDS_S < times.YIELDS_S
    assert times.YIELDS_S < times.RUNNERS_GONE_S < times.TAKES_OVER_S
    assert times.SESSION_ENDS_S + times.RENEW_S + times.ANSWER_S + times.TAKES_OVER_S < 30
