"""Runners that share a Spark driver: each fault ends what it must, and nothing is lost by it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from service.api.server import ControlPlane
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, is_alive, rig_settings, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment


class Stream:
    """One job and the clicks that were sent to it."""

    def __init__(self, rig: Rig, schema: str) -> None:
        self.topic = create_topic(rig.kafka.bootstrap_servers)
        self.path = unique_name("shared")
        self.sent = 0
        self.job = rig.submit(enrich_sql(rig, schema, self.topic, self.path))

    @property
    def pid(self) -> int:
        runner = wait_until(self.job.runner, what="the runner lives")
        return int(runner.pid)

    def goes_on(self) -> None:
        """Ten more clicks come out, and each that was sent once."""
        clicks = [click(n % 50 + 1, self.sent + n) for n in range(10)]
        produce(self.job.rig.kafka.bootstrap_servers, self.topic, clicks)
        self.sent += len(clicks)
        rows = self.job.wait_output(self.path, self.sent)
        assert sorted(row["item_id"] for row in rows) == list(range(self.sent))
        assert all(row["name"] for row in rows)


@pytest.fixture
def shared(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> Iterator[Rig]:
    values = {"runners": "shared", "restart_backoff_max_s": 1.0}
    with running_rig(tmp_path, kafka, mariadb, own_host=True, **values) as rig:
        yield rig


def host_of(job: RunningJob) -> psutil.Process:
    runner = wait_until(job.runner, what="the runner lives")
    return runner.parent()


def driver_of(job: RunningJob) -> psutil.Process:
    host = host_of(job)
    (java,) = [p for p in host.children(recursive=True) if p.name() == "java"]
    return java


def test_a_fault_ends_what_shares_it_and_every_job_goes_on(shared: Rig) -> None:
    with new_schema(shared.mariadb, USERS, fill_users(50)) as schema:
        first, second = (Stream(shared, schema) for _ in range(2))
        streams = (first, second)
        for stream in streams:
            stream.job.wait_joining()
            stream.goes_on()
        assert host_of(first.job) == host_of(second.job)
        driver, unharmed = driver_of(first.job), second.pid

        first.job.wait_restarted(first.job.kill_runner())
        for stream in streams:
            stream.goes_on()
        assert second.pid == unharmed
        assert driver_of(first.job) == driver

        pids = [stream.pid for stream in streams]
        driver.kill()
        for stream, pid in zip(streams, pids, strict=True):
            stream.job.wait_restarted(pid)
            stream.goes_on()

        pids = [stream.pid for stream in streams]
        host_of(first.job).kill()
        for stream, pid in zip(streams, pids, strict=True):
            stream.job.wait_restarted(pid)
            stream.goes_on()


def test_a_control_plane_finds_the_host_and_its_runners_again(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    settings = rig_settings(tmp_path, kafka, runners="shared")
    with new_schema(mariadb, USERS, fill_users(50)) as schema:
        with (
            ControlPlane(settings) as plane,
            httpx.Client(base_url=plane.url, timeout=60) as client,
        ):
            before = Stream(Rig(settings, client, kafka, mariadb), schema)
            before.job.wait_joining()
            before.goes_on()
            pid, host = before.pid, host_of(before.job).pid
        with running_rig(tmp_path, kafka, mariadb, own_host=True, runners="shared") as rig:
            before.job = RunningJob(rig, before.job.id)
            before.goes_on()
            assert before.pid == pid
            after = Stream(rig, schema)
            after.job.wait_joining()
            after.goes_on()
            assert host_of(after.job).pid == host
        wait_until(lambda: not is_alive(host), deadline_s=30, what="the host has ended")
