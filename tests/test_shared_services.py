"""The servers that all tests of a run share: each is started once, and ends with the run."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError

import pytest

from service.embedded.database import MariaDb
from tests.support.control_plane import ROOT
from tests.support.lanes import some_of
from tests.support.rig import is_alive
from tests.support.shared_services import SharedServices, ask, shared
from tests.support.sql import run_sql
from tests.support.wait import wait_until

RUN = """
import sys, time
from pathlib import Path
from tests.support.shared_services import SharedServices
services = SharedServices(Path(sys.argv[1]), print)
print(services.place("mariadb").pid, flush=True)
time.sleep(600)
"""


def test_all_who_ask_get_the_one_server_of_the_run(processes, tmp_path):
    said = []
    services = SharedServices(tmp_path / "services", said.append)
    try:
        host, port, key = services.answer()
        with ThreadPoolExecutor(4) as workers:
            places = list(workers.map(lambda _: ask(host, port, key, "mariadb"), range(4)))
        assert len(set(places)) == 1
        (line,) = said
        assert line.startswith("starting mariadb for all tests … ")
        database = shared(MariaDb(places[0].directory, tmp_path), places[0].pid)
        assert run_sql(database, "SELECT 7") == [(7,)]
        with pytest.raises(RuntimeError, match="shared by all tests: a test that stops"):
            database.stop()
        assert database.start().healthy()
        with pytest.raises(RuntimeError, match="oracle was not started: KeyError"):
            ask(host, port, key, "oracle")
        with pytest.raises(AuthenticationError):
            ask(host, port, "another key", "mariadb")
    finally:
        services.kill()
    wait_until(lambda: not is_alive(places[0].pid), what="it is gone")


def test_a_run_that_is_killed_leaves_no_server_behind(processes, tmp_path):
    command = [sys.executable, "-c", RUN, str(tmp_path / "services")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        started, pid = run.stdout.readline(), int(run.stdout.readline())
        assert started.startswith("starting mariadb")
        assert is_alive(pid)
        run.kill()
    wait_until(lambda: not is_alive(pid), what="it is gone")


def test_cases_that_are_not_in_every_run_have_the_mark():
    found = some_of({"one": (1, 2), "two": (3, 4)}, "two")
    assert [(each.id, each.values) for each in found] == [("one", (1, 2)), ("two", (3, 4))]
    assert [[mark.name for mark in each.marks] for each in found] == [["matrix"], []]
    with pytest.raises(AssertionError, match="no case is named"):
        some_of(["one"], "three")
