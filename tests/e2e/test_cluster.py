"""The example on a standalone Spark cluster: two workers with the wheel, one executor killed."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.java import Java
from tests.support.jvm import QUICK_JVM
from tests.support.rig import SMALL, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.standalone import EXECUTOR, Cluster, running_cluster
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(400)]
WORKER = "joins.worker.daemon"
EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": QUICK_JVM,
}
FEW, RECORDS = ("'scan.max-records-per-batch'='1000'",), 12_000


@pytest.fixture
def cluster(tmp_path: Path, java: Java) -> Iterator[Cluster]:
    with running_cluster(tmp_path, java) as found:
        yield found


def test_the_same_script_gives_the_same_rows_where_an_executor_is_killed(
    tmp_path: Path, cluster: Cluster, kafka: KafkaBroker, mariadb: MariaDb
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("cluster")
    topic = create_topic(servers, partitions=4)
    given = {"spark_master": cluster.master, "spark_conf": {**SMALL, **EXECUTORS}}
    with (
        running_rig(tmp_path / "rig", kafka, mariadb, **given) as rig,
        new_schema(mariadb, USERS, fill_users(1_000)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path).replace(*in_small_batches())) as job,
    ):
        job.wait_joining()
        produce(servers, topic, [click(n % 1_500, n) for n in range(RECORDS)])
        job.wait_output(path, 2_000)
        assert_workers_have_the_wheel(cluster)
        kill_an_executor(cluster)
        rows = job.wait_output(path, RECORDS, deadline_s=180)
        found = [tuple(r[c] for c in ("item_id", "user_id", "gender", "name")) for r in rows]
        assert sorted(found) == [expected(n) for n in range(RECORDS)]
        assert job.status()["epoch"] == 1, "a lost executor costs tasks, not the runner"
        wait_until(
            lambda: all(node.running(EXECUTOR) for node in cluster.nodes),
            what="another executor in the place of the killed one",
        )


def in_small_batches() -> tuple[str, str]:
    """What to replace in the script: the stream's options get one more."""
    return "'format'='json'", f"'format'='json', {FEW[0]}"


def expected(number: int) -> tuple[int, int, str | None, str | None]:
    """The row of record `number`: users 1 to 1,000 exist."""
    user = number % 1_500
    if not 1 <= user <= 1_000:
        return number, user, None, None
    return number, user, "F" if user % 2 else "M", f"user {user}"


def assert_workers_have_the_wheel(cluster: Cluster) -> None:
    """The Python workers of each node import what is installed there."""
    for node in cluster.nodes:
        site = str(node.directory / "site")
        paths = [child.environ().get("PYTHONPATH", "") for child in node.running(WORKER)]
        assert paths, f"{node.directory} has no Python workers"
        assert all(site in path.split(":") for path in paths)


def kill_an_executor(cluster: Cluster) -> None:
    (executor,) = cluster.nodes[0].running(EXECUTOR)
    executor.send_signal(signal.SIGKILL)
    wait_until(lambda: not executor.is_running(), what="the executor is gone")
