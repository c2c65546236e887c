"""Two control planes share PostgreSQL and an object store, and no directory; a machine is gone.

The job goes on below the other one from what the store has, and each record is joined once.
"""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from werkzeug.wrappers import Request

from joins.adapters.delta.versions import delta_options
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from service.embedded.postgres import PostgreSql
from service.embedded.process import free_port
from tests.support.object_store import ObjectStore
from tests.support.planes import TAKEN_OVER_WITHIN_S, Pair, Plane, Stage, running_stage, say
from tests.support.rig import SMALL, Rig, is_alive, rig_settings
from tests.support.standalone import (
    NODE_DISK,
    NodeWorld,
    executor_conf,
    packed_wheel,
    running_cluster,
)
from tests.support.store_databases import new_store_url
from tests.support.topics import unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment


HERE, CLUSTER = "executors here", "executors on a cluster"


@dataclass(frozen=True)
class Executors:
    """Where they run.

    Attributes:
        planes: the directory below which the control planes have theirs.
        told: variables of both control planes that say so.
    """

    planes: Path
    told: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module", params=[HERE])
def executors(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    java: Java,
    store: ObjectStore,
) -> Iterator[Executors]:
    """In the control planes' runners, or on two machines that share only the store with them."""
    planes = tmp_path_factory.mktemp("planes")
    if request.param == HERE:
        yield Executors(planes)
        return
    directory = tmp_path_factory.mktemp("cluster")
    conf = {**SMALL, **executor_conf(packed_wheel(directory / "wheel"))}
    world = NodeWorld((planes,), store.environment)
    with running_cluster(directory / "machines", java, world, workers=2) as cluster:
        told = {
            "SLUICE_SPARK_MASTER": cluster.master,
            "SLUICE_SPARK_CONF": json.dumps(conf),
            "SLUICE_INDEX_DIR": f"{{{NODE_DISK}}}/index",
        }
        yield Executors(planes, told)


@pytest.fixture(scope="module")
def pair(
    postgres: PostgreSql,
    kafka: KafkaBroker,
    store: ObjectStore,
    executors: Executors,
    prepared: None,
) -> Iterator[Pair]:
    directory = executors.planes
    warehouse = store.warehouse
    settings = [
        rig_settings(directory / name, kafka, port=free_port(), warehouse=warehouse)
        for name in ("one", "two")
    ]
    extra = {"SLUICE_WAREHOUSE": warehouse, **executors.told, **store.environment}
    url = new_store_url(postgres)
    planes = Pair(settings, [url, url], directory / "planes.log", extra)
    yield planes
    planes.end()


@pytest.fixture(scope="module")
def stage(
    pair: Pair, postgres: PostgreSql, kafka: KafkaBroker, mariadb: MariaDb, store: ObjectStore
) -> Iterator[Stage]:
    path = unique_name("failover")
    out = store.path(f"lake/{path}")

    def rig() -> Rig:
        leader = pair.the_leader()
        return Rig(pair.settings[pair.planes.index(leader)], leader.client, kafka, mariadb)

    def rows() -> list[dict[str, Any]]:
        with suppress(TableNotFoundError):
            table = DeltaTable(str(out), storage_options=delta_options(out))
            return list(table.to_pyarrow_table().to_pylist())
        return []

    with running_stage(pair, postgres, rig, path, rows) as found:
        yield found
    assert store.keys(f"lake/_sluice/jobs/{found.job_id}") == []


def end_machine(pair: Pair, processes: list[int]) -> tuple[Plane, float]:
    """All of the leader's is gone at once, its directory, too; who leads then, after how long."""
    leader = pair.the_leader()
    index = pair.planes.index(leader)
    other = pair.planes[1 - index]
    for pid in (leader.process.pid, *processes):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    leader.end(signal.SIGKILL)
    began = time.monotonic()
    shutil.rmtree(pair.settings[index].data_dir, ignore_errors=True)
    wait_until(lambda: other.is_ready, deadline_s=60, what="the standby leads")
    taken_s = time.monotonic() - began
    shutil.rmtree(pair.settings[index].data_dir, ignore_errors=True)  # what was written meanwhile
    pair.start_again(index)
    return other, taken_s


@pytest.mark.parametrize("executors", [HERE, CLUSTER], indirect=True, scope="module")
def test_the_drivers_machine_is_gone(stage: Stage) -> None:
    before = stage.job().status()
    _, taken_s = end_machine(stage.pair, stage.runners())
    began = time.monotonic()
    stage.goes_on()
    after = stage.job().status()
    events = stage.of_leader().get(f"/v1/jobs/{stage.job_id}/events")["items"]
    assert events[-1]["to"] in ("JOINING", "RUNNING"), "what the new runner reports is followed"
    assert taken_s < TAKEN_OVER_WITHIN_S
    assert after["dimensions"][0]["generation"] == before["dimensions"][0]["generation"]
    say(f"the machine is gone: another leads after {taken_s:.1f} s, all is out {seconds(began)}")


def test_a_standby_tells_what_the_database_knows_and_names_the_leader(stage: Stage) -> None:
    leader = stage.pair.the_leader()
    standby = next(plane for plane in stage.pair.planes if plane is not leader)
    listed = standby.client.get("/v1/jobs").json()["items"]
    assert [job["id"] for job in listed] == [stage.job_id]
    assert standby.client.get(f"/v1/jobs/{stage.job_id}").is_success
    refused = standby.client.get(f"/v1/jobs/{stage.job_id}/batches")
    assert refused.status_code == 503
    assert leader.url in refused.json()["hint"]


def test_the_store_stands_still(stage: Stage, store: ObjectStore) -> None:
    is_back = threading.Event()

    def stand_still(_: Request) -> None:
        is_back.wait(timeout=150)

    store.fault = stand_still
    try:
        stage.job().wait_for(lambda s: s["state"] == "STALLED", "it waits", deadline_s=120)
        assert stage.pair.the_leader()
    finally:
        store.fault = lambda _: None
        is_back.set()
    began = time.monotonic()
    stage.goes_on()
    say(f"the store stood still: all is out {seconds(began)}")


def test_a_runner_that_was_taken_for_dead_writes_nothing(stage: Stage) -> None:
    leader = stage.pair.the_leader()
    index = stage.pair.planes.index(leader)
    other = stage.pair.planes[1 - index]
    log = stage.pair.settings[index].jobs_dir / stage.job_id / "runner.log"
    seen, runners = log.stat().st_size, stage.runners()
    for pid in (leader.process.pid, *runners):
        os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: other.is_ready, deadline_s=60, what="the standby leads")
        stage.goes_on()
        for pid in runners:
            os.kill(pid, signal.SIGCONT)  # its control plane stands still
        wait_until(
            lambda: not any(is_alive(pid) for pid in runners), deadline_s=30, what="it has ended"
        )
    finally:
        for pid in (leader.process.pid, *runners):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    with log.open("rb") as file:
        file.seek(seen)
        said = file.read().decode()
    assert "fenced" in said, said[-3_000:]
    wait_until(lambda: leader.role == "standby", deadline_s=30, what="it has seen that it is late")
    stage.goes_on()


def seconds(began: float) -> str:
    return f"within {time.monotonic() - began:.1f} s"
