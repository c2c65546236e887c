"""A control plane of our own on the session's real broker and database, and jobs that run on it."""

import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import httpx
import psutil
import pyarrow as pa
from deltalake import DeltaTable

from joins.adapters.process.forks import send, words_of
from joins.durable.pins import PinStore
from service.api.server import ControlPlane
from service.config import Settings
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.jobs.inspect.past import open_replayer
from service.jobs.supervise import runner_host
from tests.support.control_plane import stop_jobs
from tests.support.jvm import QUICK_JVM
from tests.support.topics import create_topic, produce
from tests.support.wait import wait_until
from tests.support.warm_inspections import warm_inspections

OPENS_WITHIN_S = 120.0
SMALL = {"spark.driver.extraJavaOptions": QUICK_JVM, "spark.ui.enabled": "false"}


def _living(pid: int) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def descendants(process: psutil.Process, part: str) -> list[psutil.Process]:
    """Living descendants that run the module `part`; some may end while we look."""
    found = []
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if part in words_of(child.cmdline()):
                found.append(child)
    return found


@dataclass(frozen=True)
class RunningJob:
    """A submitted job, seen from outside: REST, its directory, its processes, its output."""

    rig: "Rig"
    id: str

    @property
    def directory(self) -> Path:
        return self.rig.settings.jobs_dir / self.id

    @property
    def pins(self) -> PinStore:
        return PinStore(self.directory / "checkpoint" / "pins")

    def status(self) -> dict[str, Any]:
        return self.rig.get(f"/v1/jobs/{self.id}")

    def probe(self) -> dict[str, Any]:
        return self.status().get("probe") or {}

    def events(self) -> list[dict[str, Any]]:
        return self.rig.get(f"/v1/jobs/{self.id}/events")["items"]

    def wait_for(
        self,
        condition: Callable[[dict[str, Any]], Any],
        what: str,
        *,
        deadline_s: float = OPENS_WITHIN_S,
    ) -> dict[str, Any]:
        """The first status that meets `condition`; a FAILED job fails the test at once."""

        def look() -> dict[str, Any] | None:
            status = self.status()
            assert status["state"] != "FAILED", status["error"]
            return status if condition(status) else None

        try:
            found = wait_until(look, deadline_s=deadline_s, what=what)
        except TimeoutError as exc:
            log = (self.directory / "runner.log").read_text(errors="replace")
            changes = "\n".join(f"{e['at_ms']} {e['to']}: {e['cause']}" for e in self.events())
            raise TimeoutError(f"{exc}\n{self.status()}\n{log[-6000:]}\n{changes}") from None
        assert found is not None
        return found

    def wait_joining(self) -> dict[str, Any]:
        return self.wait_for(lambda s: s["state"] == "JOINING", "the gate opens")

    def wait_state(self, state: str, deadline_s: float = 90.0) -> dict[str, Any]:
        return self.wait_for(lambda s: s["state"] == state, f"state {state}", deadline_s=deadline_s)

    def wait_output(self, path: str, rows: int, deadline_s: float = 90.0) -> list[dict[str, Any]]:
        self.wait_for(
            lambda _: len(self.rig.rows(path)) >= rows, f"{rows} rows", deadline_s=deadline_s
        )
        return self.rig.rows(path)

    def wait_all_joined(self) -> dict[str, Any]:
        """The status that reports the newest batch there is now, and that no record waits.

        A report comes behind the batch: of one that was just seen in the output, or was told to
        wait for nothing before a topic grew, it says nothing yet.
        """
        newest = self.pins.newest()

        def reported(status: dict[str, Any]) -> bool:
            probe = status["probe"]
            seen = newest is None or (probe["batch"] is not None and probe["batch"] >= newest.batch)
            return seen and probe["lag_records"] == 0

        return self.wait_for(reported, "the newest batch is reported, and no record waits")

    def replays(self) -> list[dict[str, Any]]:
        """What the replay of each batch says, with its differences; without a process for each."""
        newest = self.pins.newest()
        assert newest is not None
        with open_replayer(self.directory) as replayer:
            return [replayer.replay(batch, diff=True) for batch in range(newest.batch + 1)]

    # Processes

    def runner(self) -> psutil.Process | None:
        pid = (self.status().get("runner") or {}).get("pid")
        return None if pid is None else _living(pid)

    def children(self, part: str) -> list[psutil.Process]:
        runner = self.runner()
        return [] if runner is None else descendants(runner, part)

    def kill_runner(self) -> int:
        """SIGKILL the runner's process only; returns its pid."""
        runner = wait_until(self.runner, what="the runner lives")
        runner.send_signal(signal.SIGKILL)
        wait_until(lambda: _living(runner.pid) is None, what="the runner is gone")
        return int(runner.pid)

    def kill_child(self, part: str) -> int:
        children = wait_until(lambda: self.children(part), what=f"{part} lives")
        children[0].send_signal(signal.SIGKILL)
        return int(children[0].pid)

    def wait_restarted(self, old_pid: int) -> None:
        self.wait_for(
            lambda s: (s["runner"]["pid"] or old_pid) != old_pid and s["state"] != "STALLED",
            "a new runner reports",
        )

    def start(self) -> None:
        self.rig.client.post(f"/v1/jobs/{self.id}:start").raise_for_status()

    def stop(self) -> None:
        self.rig.client.post(f"/v1/jobs/{self.id}:stop").raise_for_status()
        wait_until(
            lambda: self.status()["state"] in ("STOPPED", "FAILED"), what="the job has stopped"
        )


_NUMBERS = count(1)


@dataclass(frozen=True)
class Rig:
    """One control plane."""

    settings: Settings
    client: httpx.Client
    kafka: KafkaBroker
    mariadb: MariaDb

    def get(self, path: str) -> Any:
        """An answer; a busy machine may make the control plane say "retry later" first."""

        def asked() -> httpx.Response | None:
            answer = self.client.get(path)
            return None if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE else answer

        answer = wait_until(asked, what=path)
        answer.raise_for_status()
        return answer.json()

    def post_job(self, sql: str, name: str | None = None) -> httpx.Response:
        body = {"sql": sql} if name is None else {"sql": sql, "name": name}
        return self.client.post("/v1/jobs", json=body)

    def submit(self, sql: str, *, is_named: bool = True) -> RunningJob:
        answer = self.post_job(sql, f"job {next(_NUMBERS)}" if is_named else None)
        assert answer.status_code == 201, answer.text
        return RunningJob(self, answer.json()["id"])

    @contextmanager
    def job(self, sql: str, *, is_named: bool = True) -> Iterator[RunningJob]:
        """A job that is removed at the end, also when the test fails."""
        job = self.submit(sql, is_named=is_named)
        try:
            yield job
        finally:
            self.remove(job)

    def remove(self, job: RunningJob, *, output: bool = False) -> None:
        answer = self.client.delete(f"/v1/jobs/{job.id}", params={"output": output})
        if answer.status_code != 404:
            answer.raise_for_status()
        wait_until(
            lambda: self.client.get(f"/v1/jobs/{job.id}").status_code == 404,
            what="the job is removed",
        )

    def output(self, path: str) -> Path:
        return self.settings.warehouse_dir / path

    def table(self, path: str) -> pa.Table:
        return DeltaTable(str(self.output(path))).to_pyarrow_table()

    def rows(self, path: str) -> list[dict[str, Any]]:
        if not (self.output(path) / "_delta_log").is_dir():
            return []
        return self.table(path).to_pylist()


def rig_settings(directory: Path, kafka: KafkaBroker, **given: Any) -> Settings:
    return Settings.load(
        **{
            "data_dir": directory,
            "warehouse_dir": directory / "warehouse",
            "port": 0,
            "kafka_bootstrap_servers": kafka.bootstrap_servers,
            "spark_driver_memory": "1g",
            "spark_master": "local[2,4]",
            "spark_conf": SMALL,
            "fold_interval_s": 2.0,
            "restart_backoff_min_s": 0.1,
            **given,
        }
    )


@contextmanager
def running_rig(
    directory: Path,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    *,
    runner_command: Sequence[str] | None = None,
    own_host: bool = False,
    **given: Any,
) -> Iterator[Rig]:
    """A control plane in this process; its jobs are stopped at the end.

    With `runners="shared"` all rigs of this process share one runner host and its Spark, but for
    those that want `own_host`, or say where Spark runs or what its tables are in.
    """
    settings = rig_settings(directory, kafka, **given)
    is_common = settings.runners == "shared" and not own_host and not _OF_A_HOST & given.keys()
    if is_common:
        directory.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time:
            settings.host_dir.symlink_to(_common_host().name)
    commands = {"runner_command": runner_command, "inspect_command": warm_inspections()}
    with (
        ControlPlane(settings, **commands) as plane,
        httpx.Client(base_url=plane.url, timeout=400.0) as client,
    ):
        rig = Rig(settings, client, kafka, mariadb)
        try:
            yield rig
        finally:
            stop_jobs(plane, timeout_s=300.0)
            if is_common:
                _keep_common_host()


_OF_A_HOST = frozenset({"spark_conf", "spark_driver_memory", "spark_master", "warehouse"})
_links: list[socket.socket] = []
_one_at_a_time = Lock()  # lanes of an experiment begin at the same time


@cache
def _common_host() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sluice-host-", ignore_cleanup_errors=True)


def _keep_common_host() -> None:
    """Link this process to the host, which ends when it has neither a link nor a runner."""
    with _one_at_a_time:
        link = runner_host.connect(Path(_common_host().name))
        if link is not None:
            send(link, {"link": True})
            for older in _links:
                older.close()
            _links[:] = [link]


def cdc_table(
    mariadb: MariaDb, schema: str, table: str, columns: str, options: Sequence[str] = ()
) -> str:
    extra = "".join(f", {option}" for option in options)
    return (
        f"CREATE TABLE {table} ({columns}) WITH ('connector'='mysql-cdc', "
        f"'hostname'='{mariadb.host}', 'port'='{mariadb.port}', 'username'='{mariadb.cdc_user}', "
        f"'password'='{mariadb.cdc_password}', 'database-name'='{schema}', "
        f"'table-name'='{table}'{extra});"
    )


def kafka_table(
    kafka: KafkaBroker, name: str, topic: str, columns: str, options: tuple[str, ...] = ()
) -> str:
    fixed = ("'format'='json'", "'scan.startup.mode'='earliest-offset'")
    return _topic_table("kafka", kafka, name, topic, columns, (*fixed, *options))


def upsert_table(
    kafka: KafkaBroker, name: str, topic: str, columns: str, options: tuple[str, ...] = ()
) -> str:
    fixed = ("'key.format'='json'", "'value.format'='json'")
    return _topic_table("upsert-kafka", kafka, name, topic, columns, (*fixed, *options))


def _topic_table(
    connector: str, kafka: KafkaBroker, name: str, topic: str, columns: str, options: Sequence[str]
) -> str:
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='{connector}', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{kafka.bootstrap_servers}', {', '.join(options)});"
    )


def keyed_table(
    kafka: KafkaBroker, name: str, columns: str, rows: Sequence[Mapping[str, Any]]
) -> str:
    """A topic of `rows` by key, which is the first column, and its table."""
    topic, key = create_topic(kafka.bootstrap_servers), columns.split()[0]
    produce(kafka.bootstrap_servers, topic, rows, keys=[{key: row[key]} for row in rows])
    return upsert_table(kafka, name, topic, f"{columns}, PRIMARY KEY ({key}) NOT ENFORCED")


def is_alive(pid: int) -> bool:
    return _living(pid) is not None
