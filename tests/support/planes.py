"""Control planes, each a process of its own, on one PostgreSQL, and a job that is fed below one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import psutil

from service.config import Settings
from service.embedded.postgres import PostgreSql
from tests.support.beside import RunsBeside
from tests.support.bulk import BulkProducer
from tests.support.control_plane import ROOT
from tests.support.rig import SMALL, Rig, RunningJob, is_alive
from tests.support.shop import USERS, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.standalone import NODE_DISK
from tests.support.topics import create_topic
from tests.support.wait import wait_until

TAKEN_OVER_WITHIN_S = 120.0


class Plane:
    """A control plane as a process."""

    def __init__(
        self, settings: Settings, store_url: str, log: Path, extra: Mapping[str, str]
    ) -> None:
        variables = {
            NODE_DISK: str(settings.data_dir),
            "SLUICE_DATA_DIR": str(settings.data_dir),
            "SLUICE_DATABASE_URL": store_url,
            "SLUICE_PORT": str(settings.port),
            "SLUICE_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers or "",
            "SLUICE_SPARK_DRIVER_MEMORY": settings.spark_driver_memory,
            "SLUICE_SPARK_MASTER": settings.spark_master,
            "SLUICE_SPARK_CONF": json.dumps(SMALL),
            "SLUICE_RESTART_BACKOFF_MIN_S": "0.1",
            **extra,
        }
        self.url = f"http://127.0.0.1:{settings.port}"
        self.client = httpx.Client(base_url=self.url, timeout=400.0, trust_env=False)
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


class Witness(RunsBeside):
    """Looks all the time how many control planes say that they lead."""

    def __init__(self, planes: list[Plane]) -> None:
        self._planes = planes
        self.roles: list[tuple[float, tuple[str, ...]]] = []

    def _run(self, ended: Event) -> None:
        clients = {plane.url: httpx.Client(base_url=plane.url, timeout=1.0) for plane in self._all}
        while not ended.wait(0.3):
            roles = []
            for plane in self._all:
                with suppress(httpx.HTTPError, ValueError, KeyError):
                    client = clients.setdefault(plane.url, httpx.Client(base_url=plane.url))
                    roles.append(client.get("/v1/version").json()["role"])
            self.roles.append((time.monotonic(), tuple(roles)))

    @property
    def _all(self) -> list[Plane]:
        return [plane for plane in self._planes if plane.process.poll() is None]

    @property
    def most_leaders(self) -> int:
        return max((roles.count("leader") for _, roles in self.roles), default=0)


class Source(RunsBeside):
    """Records of two partitions without an end, numbered one after the other."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self.sent = 0

    def _run(self, ended: Event) -> None:
        with BulkProducer(self._servers, self._topic) as producer:
            while not ended.wait(0.5):
                numbers = range(self.sent, self.sent + 50)
                clicks = [b'{"user_id":%d,"item_id":%d}' % (1 + n % 1000, n) for n in numbers]
                producer.send({0: clicks[::2], 1: clicks[1::2]})
                self.sent = numbers.stop


class Pair:
    """Two control planes; one that was killed is followed by a new one.

    Attributes:
        extra: variables that all have beside those of their settings.
    """

    def __init__(
        self,
        settings: list[Settings],
        ways: list[str],
        log: Path,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.settings, self._ways, self._log, self.extra = settings, ways, log, extra or {}
        self.planes = [self._plane(n) for n in range(len(settings))]
        wait_until(lambda: self.leader is not None, deadline_s=60, what="one leads")
        wait_until(
            lambda: sorted(plane.role for plane in self.planes) == ["leader", "standby"],
            deadline_s=60,
            what="the other one is a standby",
        )

    def _plane(self, index: int) -> Plane:
        return Plane(self.settings[index], self._ways[index], self._log, self.extra)

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
        self.start_again(self.planes.index(leader))
        return taken_s

    def start_again(self, index: int) -> None:
        self.planes[index] = self._plane(index)
        wait_until(lambda: self.planes[index].role == "standby", deadline_s=60, what="it is back")

    def end(self) -> None:
        for plane in self.planes:
            plane.end()


@dataclass(frozen=True)
class Stage:
    """A job on a pair of control planes, fed all the time.

    Attributes:
        rows: all rows of the output, if that is not in a directory.
    """

    pair: Pair
    witness: Witness
    source: Source
    postgres: PostgreSql
    job_id: str
    path: str
    of_leader: Callable[[], Rig]
    rows: Callable[[], list[dict[str, Any]]] | None = field(default=None)

    @property
    def data_dir(self) -> Path:
        return self.of_leader().settings.data_dir

    def job(self) -> RunningJob:
        return RunningJob(self.of_leader(), self.job_id)

    def goes_on(self) -> None:
        """What was sent until now has come out, each record once, and never did two lead."""
        sent = self.source.sent
        self.job().wait_joining()
        rows = self._wait_rows(sent)
        numbers = [row["item_id"] for row in rows]
        assert len(set(numbers)) == len(numbers), "a record was joined twice"
        assert set(range(sent)) <= set(numbers), "a record is lost"
        assert self.witness.most_leaders <= 1

    def _wait_rows(self, sent: int) -> list[dict[str, Any]]:
        if self.rows is None:
            return self.job().wait_output(self.path, sent)
        rows = self.rows
        self.job().wait_for(lambda _: len(rows()) >= sent, f"{sent} rows", deadline_s=120.0)
        return rows()

    def runners(self) -> list[int]:
        """Processes that are runners of the job."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            command = " ".join(process.info["cmdline"] or [])
            is_runner = "service.jobs.runner" in command or command.startswith("runner of sluice")
            if is_runner and self.job_id in command:
                found.append(process.pid)
        return [pid for pid in found if is_alive(pid)]


@contextmanager
def running_stage(
    pair: Pair,
    postgres: PostgreSql,
    of_leader: Callable[[], Rig],
    path: str,
    rows: Callable[[], list[dict[str, Any]]] | None = None,
) -> Iterator[Stage]:
    """A job that joins what is sent all the time; behind the block it is removed."""
    rig = of_leader()
    servers = rig.kafka.bootstrap_servers
    topic = create_topic(servers, partitions=2)
    with ExitStack() as at_end:
        schema = at_end.enter_context(new_schema(rig.mariadb, USERS, fill_users(1_000)))
        job_id = rig.submit(enrich_sql(rig, schema, topic, path)).id
        RunningJob(of_leader(), job_id).wait_joining()
        witness = at_end.enter_context(Witness(pair.planes))
        source = at_end.enter_context(Source(servers, topic))
        found = Stage(pair, witness, source, postgres, job_id, path, of_leader, rows)
        wait_until(lambda: source.sent >= 200, what="records are sent")
        found.goes_on()
        yield found
        of_leader().remove(found.job(), output=True)


def signal_server(database: PostgreSql, how: signal.Signals) -> None:
    assert database.pid is not None
    server = psutil.Process(database.pid)
    for process in (server, *server.children(recursive=True)):
        os.kill(process.pid, how)


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
