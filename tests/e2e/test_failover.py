"""Two control planes, each a process of its own, share PostgreSQL and a directory; one ends.

The job goes on below the other one, within the time that is promised, and each record of the
stream is joined once, whatever has happened to the one that led or to the database.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache
from service.embedded.postgres import PostgreSql
from service.embedded.process import free_port
from tests.support.planes import (
    TAKEN_OVER_WITHIN_S,
    Pair,
    Stage,
    running_stage,
    say,
    signal_server,
)
from tests.support.rig import Rig, is_alive, rig_settings
from tests.support.sockets import way_to
from tests.support.store_databases import new_store_url
from tests.support.topics import unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment


@pytest.fixture(scope="module")
def postgres_of_ours(
    tmp_path_factory: pytest.TempPathFactory, jar_cache: JarCache
) -> Iterator[PostgreSql]:
    with PostgreSql(tmp_path_factory.mktemp("pg"), jar_cache.postgres_home()) as database:
        yield database


@pytest.fixture(scope="module")
def cuts() -> tuple[threading.Event, threading.Event]:
    return threading.Event(), threading.Event()


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_of_ours: PostgreSql,
    kafka: KafkaBroker,
    cuts: tuple[threading.Event, threading.Event],
    prepared: None,
) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("failover")
    settings = [rig_settings(directory / "data", kafka, port=free_port()) for _ in range(2)]
    url, port = new_store_url(postgres_of_ours), postgres_of_ours.port
    with ExitStack() as at_end:
        own = [at_end.enter_context(way_to(port, cut)) for cut in cuts]
        ways = [url.replace(f":{port}/", f":{each}/") for each in own]
        found = Pair(settings, ways, directory / "planes.log")
        at_end.callback(found.end)
        yield found


@pytest.fixture(scope="module")
def stage(
    pair: Pair, postgres_of_ours: PostgreSql, kafka: KafkaBroker, mariadb: MariaDb
) -> Iterator[Stage]:
    def rig() -> Rig:
        return Rig(pair.settings[0], pair.the_leader().client, kafka, mariadb)

    with running_stage(pair, postgres_of_ours, rig, unique_name("failover")) as found:
        yield found


def test_the_leader_is_killed(stage: Stage) -> None:
    taken_s = stage.pair.end_leader(signal.SIGKILL)
    assert taken_s < TAKEN_OVER_WITHIN_S
    stage.goes_on()
    say(f"killed: another leads after {taken_s:.1f} s")


def test_the_leader_is_stopped_in_order(stage: Stage) -> None:
    taken_s = stage.pair.end_leader(signal.SIGTERM)
    assert taken_s < 5.0, "whoever ends in order has told the other one"
    stage.goes_on()
    assert stage.job().status()["runner"]["crashes"] == 0
    say(f"stopped: another leads {taken_s:.1f} s after its end")


def test_the_database_is_restarted(stage: Stage) -> None:
    before = stage.job().status()["runner"]["pid"]
    stage.postgres.stop()
    stage.postgres.start()
    stage.goes_on()
    goes_on = stage.job().status()["runner"]["pid"] == before
    say(f"the database was restarted: {'the same' if goes_on else 'another'} runner")


def test_the_database_stands_still(stage: Stage) -> None:
    signal_server(stage.postgres, signal.SIGSTOP)
    try:
        wait_until(lambda: stage.runners() == [], deadline_s=30, what="no runner is left")
        assert all(plane.role != "leader" for plane in stage.pair.planes)
    finally:
        signal_server(stage.postgres, signal.SIGCONT)
    began = time.monotonic()
    stage.pair.the_leader(within_s=60)
    taken_s = time.monotonic() - began
    stage.goes_on()
    say(f"the database stood still: one leads {taken_s:.1f} s after it goes on")


def test_the_leader_is_cut_off_from_the_database(
    stage: Stage, cuts: tuple[threading.Event, threading.Event]
) -> None:
    leader = stage.pair.the_leader()
    other = next(plane for plane in stage.pair.planes if plane is not leader)
    before = stage.runners()
    cut = cuts[stage.pair.planes.index(leader)]
    cut.set()
    began = time.monotonic()
    try:
        wait_until(lambda: other.is_ready, deadline_s=60, what="the standby leads")
        taken_s = time.monotonic() - began
        assert not [pid for pid in before if is_alive(pid)], "its runner has ended before"
        assert leader.role == "standby"
    finally:
        cut.clear()
    assert taken_s < TAKEN_OVER_WITHIN_S
    stage.goes_on()
    say(f"the leader was cut off: another leads after {taken_s:.1f} s")
