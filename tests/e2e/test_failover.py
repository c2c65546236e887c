"""Two control planes, each a process of its own, share PostgreSQL and a directory; one ends.

The job goes on below the other one, within the time that is promised, and each record of the
stream is joined once, whatever has happened to the one that led or to the database.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from service.config import Settings
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.jars import JarCache
from service.embedded.postgres import PostgreSql
from service.embedded.process import free_port
from tests.support.control_plane import ROOT
from tests.support.rig import SMALL, Rig, RunningJob, is_alive, rig_settings
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sockets import way_to
from tests.support.sql import new_schema
from tests.support.store_databases import new_store_url
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(900)]
TAKEN_OVER_WITHIN_S = 30.0


class Plane:
    """A control plane as a process."""

    def __init__(self, settings: Settings, store_url: str, log: Path) -> None:
        variables = {
            "SLUICE_DATA_DIR": str(settings.data_dir),
            "SLUICE_DATABASE_URL": store_url,
            "SLUICE_PORT": str(settings.port),
            "SLUICE_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers or "",
            "SLUICE_SPARK_DRIVER_MEMORY": settings.spark_driver_memory,
            "SLUICE_SPARK_MASTER": settings.spark_master,
            "SLUICE_SPARK_CONF": json.dumps(SMALL),
            "SLUICE_RESTART_BACKOFF_MIN_S": "0.1",
        }
        self.url = f"http://127.0.0.1:{settings.port}"
        self.client = httpx.Client(base_url=self.url, timeout=20.0, trust_env=False)
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service.cli", "serve"],
                cwd=ROOT,
                env={**os.environ, **variables},
                stdout=out,
                stderr=out,
            )

    @property
    def role(self) -> str:
        """What it says it is; empty while it says nothing."""
        with suppress(httpx.TransportError):
            answer = self.client.get("/v1/version")
            return str(answer.json()["role"]) if answer.is_success else ""
        return ""

    @property
    def is_ready(self) -> bool:
        with suppress(httpx.TransportError):
            return self.client.get("/readyz").is_success
        return False

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=90)
        self.client.close()


class Witness:
    """Looks all the time how many control planes say that they lead."""

    def __init__(self, planes: list[Plane]) -> None:
        self._planes = planes
        self._over = threading.Event()
        self.roles: list[tuple[float, tuple[str, ...]]] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        clients = {plane.url: httpx.Client(base_url=plane.url, timeout=1.0) for plane in self._all}
        while not self._over.wait(0.1):
            roles = []
            for plane in self._all:
                with suppress(httpx.HTTPError, ValueError, KeyError):
                    client = clients.setdefault(plane.url, httpx.Client(base_url=plane.url))
                    roles.append(client.get("/v1/version").json()["role"])
            self.roles.append((time.monotonic(), tuple(roles)))

    @property
    def _all(self) -> list[Plane]:
        return [plane for plane in self._planes if plane.process.poll() is None]

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    @property
    def most_leaders(self) -> int:
        return max((roles.count("leader") for _, roles in self.roles), default=0)


class Source:
    """Records without an end, each with a number of its own."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self._over = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._over.wait(0.5):
            numbers = range(self.sent, self.sent + 50)
            produce(self._servers, self._topic, [click(1 + n % 1000, n) for n in numbers])
            self.sent = numbers.stop

    def end(self) -> int:
        """How many there were."""
        self._over.set()
        self._thread.join()
        return self.sent


class Pair:
    """Two control planes; one that was killed is followed by a new one."""

    def __init__(self, settings: list[Settings], ways: list[str], log: Path) -> None:
        self.settings, self._ways, self._log = settings, ways, log
        self.planes = [Plane(*each, log) for each in zip(settings, ways, strict=True)]
        wait_until(lambda: self.leader is not None, deadline_s=60, what="one leads")
        wait_until(
            lambda: sorted(plane.role for plane in self.planes) == ["leader", "standby"],
            deadline_s=60,
            what="the other one is a standby",
        )

    @property
    def leader(self) -> Plane | None:
        return next((plane for plane in self.planes if plane.is_ready), None)

    def the_leader(self, within_s: float = TAKEN_OVER_WITHIN_S) -> Plane:
        found = wait_until(lambda: self.leader, deadline_s=within_s, what="one leads")
        assert found is not None
        return found

    def end_leader(self, how: signal.Signals) -> float:
        """Seconds until the standby leads; the one that has ended is started again."""
        leader = self.the_leader()
        other = next(plane for plane in self.planes if plane is not leader)
        leader.end(how)
        began = time.monotonic()
        wait_until(lambda: other.is_ready, deadline_s=60, what="the standby leads")
        taken_s = time.monotonic() - began
        index = self.planes.index(leader)
        self.planes[index] = Plane(self.settings[index], self._ways[index], self._log)
        wait_until(lambda: self.planes[index].role == "standby", deadline_s=60, what="it is back")
        return taken_s

    def end(self) -> None:
        for plane in self.planes:
            plane.end()


@dataclass(frozen=True)
class Stage:
    """A job on a pair of control planes, fed all the time."""

    pair: Pair
    witness: Witness
    source: Source
    postgres: PostgreSql
    job_id: str
    path: str
    of_leader: Callable[[], Rig]

    @property
    def data_dir(self) -> Path:
        return self.of_leader().settings.data_dir

    def job(self) -> RunningJob:
        """The job as the one that leads now shows it."""
        return RunningJob(self.of_leader(), self.job_id)

    def goes_on(self) -> None:
        """What was sent until now has come out, each record once, and never did two lead."""
        sent = self.source.sent
        self.job().wait_joining()
        rows = self.job().wait_output(self.path, sent)
        numbers = [row["item_id"] for row in rows]
        assert len(set(numbers)) == len(numbers), "a record was joined twice"
        assert set(range(sent)) <= set(numbers), "a record is lost"
        assert self.witness.most_leaders <= 1

    def runners(self) -> list[int]:
        """Processes that are runners of the job."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            command = " ".join(process.info["cmdline"] or [])
            is_runner = "service.jobs.runner" in command or command.startswith("runner of sluice")
            if is_runner and self.job_id in command:
                found.append(process.pid)
        return [pid for pid in found if is_alive(pid)]


@pytest.fixture(scope="module")
def postgres_of_ours(
    tmp_path_factory: pytest.TempPathFactory, jar_cache: JarCache
) -> Iterator[PostgreSql]:
    """It is stopped and paused, so no other test can use it."""
    with PostgreSql(tmp_path_factory.mktemp("pg"), jar_cache.postgres_home()) as database:
        yield database


@pytest.fixture(scope="module")
def cuts() -> tuple[threading.Event, threading.Event]:
    """Set where the way from a control plane to the database is cut."""
    return threading.Event(), threading.Event()


@pytest.fixture(scope="module")
def prepared(spark_jars: list[Path], class_archive: Path | None) -> None:
    """What runners need is there."""


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
    path, topic = unique_name("failover"), create_topic(kafka.bootstrap_servers, partitions=2)

    def rig() -> Rig:
        return Rig(pair.settings[0], pair.the_leader().client, kafka, mariadb)

    with ExitStack() as at_end:
        schema = at_end.enter_context(new_schema(mariadb, USERS, fill_users(1_000)))
        job_id = rig().submit(enrich_sql(rig(), schema, topic, path)).id
        RunningJob(rig(), job_id).wait_joining()
        witness = Witness(pair.planes)
        at_end.callback(witness.end)
        source = Source(kafka.bootstrap_servers, topic)
        at_end.callback(source.end)
        found = Stage(pair, witness, source, postgres_of_ours, job_id, path, rig)
        wait_until(lambda: source.sent >= 200, what="records are sent")
        found.goes_on()
        yield found
        rig().remove(found.job(), output=True)


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


def test_the_leader_stands_still_with_its_runner(stage: Stage) -> None:
    leader = stage.pair.the_leader()
    other = next(plane for plane in stage.pair.planes if plane is not leader)
    standing = [leader.process.pid, *stage.runners()]
    for pid in standing:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        wait_until(lambda: other.is_ready, deadline_s=60, what="the standby leads")
        taken_s = time.monotonic() - began
    finally:
        for pid in standing:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert taken_s < TAKEN_OVER_WITHIN_S
    wait_until(lambda: leader.role == "standby", deadline_s=30, what="it has seen that it is late")
    stage.goes_on()
    say(f"the leader stood still: another leads after {taken_s:.1f} s")


def signal_server(database: PostgreSql, how: signal.Signals) -> None:
    assert database.pid is not None
    server = psutil.Process(database.pid)
    for process in (server, *server.children(recursive=True)):
        os.kill(process.pid, how)


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
