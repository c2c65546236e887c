"""kill -9 of every process of ours, in LOAD and in JOIN: nothing is lost or repeated."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

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
