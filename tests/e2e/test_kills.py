"""kill -9 of every process of ours, in LOAD and in JOIN: nothing is lost or repeated."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, is_alive, rig_settings, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
CDC = "joins.adapters.mysql.binlog"
WORKER = "joins.worker.daemon"


@pytest.fixture(scope="module")
def rig(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    spark_jars: list[Path],
) -> Iterator[Rig]:
    with running_rig(tmp_path_factory.mktemp("kills"), kafka, mariadb) as found:
        yield found


def items(rig: Rig, path: str) -> list[int]:
    return sorted(row["item_id"] for row in rig.rows(path))


def test_kills_in_load_leave_a_complete_snapshot_and_no_early_row(rig: Rig) -> None:
    """CDC process and runner are killed while the table is locked in the middle of its copy."""
    path, topic = unique_name("killload"), create_topic(rig.kafka.bootstrap_servers, partitions=2)
    small = ("'scan.incremental.snapshot.chunk.size'='2000'",)
    with (
        new_schema(rig.mariadb, USERS, fill_users(1_000_000)) as schema,
        rig.mariadb.connect(schema) as lock,
        lock.cursor() as cursor,
        rig.job(enrich_sql(rig, schema, topic, path, small)) as job,
    ):
        produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in range(1, 2001)])
        job.wait_for(lambda s: chunks_done(s) >= 1, "a chunk is done")
        cursor.execute("LOCK TABLES user_info WRITE")
        cursor.execute("DELETE FROM user_info WHERE user_id = 3")
        job.kill_child(CDC)
        assert job.status()["phase"] == "LOAD"
        old = job.kill_runner()
        cursor.execute("UPDATE user_info SET name = 'while dead' WHERE user_id = 999999")
        cursor.execute("UNLOCK TABLES")
        job.wait_restarted(old)
        opened = job.wait_joining()
        assert opened["epoch"] == 2
        produce(rig.kafka.bootstrap_servers, topic, [click(999_999, 2001)])
        rows = {row["item_id"]: row for row in job.wait_output(path, 2001)}
        assert items(rig, path) == list(range(1, 2002))
        assert [i for i, row in rows.items() if row["gender"] is None] == [3]
        assert rows[2001]["name"] == "while dead"


def chunks_done(status: dict[str, object]) -> int:
    dimensions = status["dimensions"]
    assert isinstance(dimensions, list)
    return int(dimensions[0]["snapshot"]["chunks_done"]) if dimensions else 0


def test_kills_in_join_repeat_and_lose_nothing(rig: Rig) -> None:
    path, topic = unique_name("killjoin"), create_topic(rig.kafka.bootstrap_servers, partitions=2)
    servers = rig.kafka.bootstrap_servers
    with (
        new_schema(rig.mariadb, USERS, fill_users(1_000)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        produce(servers, topic, [click(1 + n % 1000, n) for n in range(5_000)])
        job.kill_child(WORKER)
        job.wait_output(path, 5_000)
        assert job.status()["epoch"] == 1, "a killed worker costs a task retry, not a restart"
        job.kill_child(CDC)
        run_sql(rig.mariadb, "UPDATE user_info SET name = 'after' WHERE user_id = 1", schema=schema)
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 1, "the change arrives")
        produce(servers, topic, [click(1, n) for n in range(5_000, 15_000)])
        old = job.kill_runner()
        produce(servers, topic, [click(1, n) for n in range(15_000, 16_000)])
        job.wait_restarted(old)
        rows = job.wait_output(path, 16_000)
        assert items(rig, path) == list(range(16_000))
        assert {row["name"] for row in rows if row["item_id"] >= 5_000} == {"after"}
        assert_versions_never_go_back(rows)


def assert_versions_never_go_back(rows: list[dict[str, object]]) -> None:
    by_batch = {row["_batch"]: row["_dimension_versions"] for row in rows}
    versions = [int(str(by_batch[b]).rpartition("=")[2]) for b in sorted(by_batch, key=int)]
    assert versions == sorted(versions)


def test_the_job_goes_on_while_the_control_plane_is_dead_and_is_adopted_again(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    settings = rig_settings(tmp_path, kafka)
    topic, path = create_topic(kafka.bootstrap_servers), unique_name("plane")
    with new_schema(mariadb, USERS, fill_users(100)) as schema:
        plane, client = start_plane(tmp_path, kafka)
        rig = Rig(settings, client, kafka, mariadb)
        job = rig.submit(enrich_sql(rig, schema, topic, path))
        job.wait_joining()
        runner = job.runner()
        assert runner is not None
        plane.send_signal(signal.SIGKILL)
        plane.wait()
        client.close()
        produce(kafka.bootstrap_servers, topic, [click(5, 1), click(6, 2)])
        wait_until(lambda: items(rig, path) == [1, 2], what="records are joined without it")
        plane, client = start_plane(tmp_path, kafka)
        rig = Rig(settings, client, kafka, mariadb)
        job = RunningJob(rig, job.id)
        status = job.wait_joining()
        assert status["runner"]["pid"] == runner.pid
        assert status["runner"]["adopted"]
        job.stop()
        assert not is_alive(runner.pid)
        assert job.status()["state"] == "STOPPED"
        plane.terminate()
        assert plane.wait(timeout=30) == 0
        client.close()


def start_plane(
    directory: Path, kafka: KafkaBroker
) -> tuple["subprocess.Popen[bytes]", httpx.Client]:
    """`sluice serve` as a process; its client when it is ready."""
    environment = {
        **psutil.Process().environ(),
        "SLUICE_DATA_DIR": str(directory),
        "SLUICE_WAREHOUSE_DIR": str(directory / "warehouse"),
        "SLUICE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "SLUICE_PORT": "0",
        "SLUICE_SPARK_DRIVER_MEMORY": "1g",
        "SLUICE_SPARK_MASTER": "local[2,4]",
    }
    with (directory / "serve.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", "serve"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    port = wait_until(lambda: listening_port(process.pid), what="the control plane listens")
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0)
    wait_until(lambda: client.get("/readyz").status_code == 200, what="the control plane is ready")
    return process, client


def listening_port(pid: int) -> int | None:
    for connection in psutil.Process(pid).net_connections(kind="tcp4"):
        if connection.status == psutil.CONN_LISTEN:
            return int(connection.laddr.port)
    return None
