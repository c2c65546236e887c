"""A shared table and two jobs that read it, on real parts: one copy, one binlog, exact rows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.shop import USERS, USERS_DDL, click, enrich_by, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.timeout(400)
ROWS = 20_000
DUMPS = "SELECT COUNT(*) FROM information_schema.processlist WHERE COMMAND = 'Binlog Dump'"


@pytest.fixture
def own_rig(
    tmp_path: Path,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    spark_jars: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rig]:
    """A control plane whose jobs keep house every second."""
    monkeypatch.setenv("SLUICE_SECRET_CDC", mariadb.cdc_password)
    with running_rig(tmp_path, kafka, mariadb, maintenance_interval_s=1.0) as rig:
        yield rig


def _create(rig: Rig, schema: str) -> RunningJob:
    chunked = ("'scan.incremental.snapshot.chunk.size'='2000'",)
    sql = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, chunked)
    sql = sql.replace("CREATE TABLE", "CREATE SHARED TABLE")
    sql = sql.replace(f"'{rig.mariadb.cdc_password}'", "'${secret:cdc}'")
    answer = rig.client.post("/v1/tables", json={"sql": sql})
    assert answer.status_code == 201, answer.text
    return RunningJob(rig, rig.get("/v1/tables/user_info")["job_id"])


def _rows(job: RunningJob, path: str, count: int) -> dict[int, dict[str, Any]]:
    rows = job.wait_output(path, count)
    assert len(rows) == count, "no row is there twice"
    return {row["item_id"]: row for row in rows}


def _is_current(rig: Rig, job: RunningJob, user: int, name: str) -> bool:
    """Whether the version that the job's next batch takes has this name of a user."""
    status = job.status()
    index = status["dimensions"][0]["index_version"]
    if index is None:
        return False
    path = f"/v1/jobs/{job.id}/dimensions/user_info?key={user}&version={index}"
    return any(item["values"]["name"] == name for item in rig.get(path)["items"])


def test_two_jobs_read_one_copy_and_survive_kills(own_rig: Rig) -> None:
    rig, servers = own_rig, own_rig.kafka.bootstrap_servers
    paths = [unique_name("first"), unique_name("second")]
    topics = [create_topic(servers, partitions=2), create_topic(servers)]
    with new_schema(rig.mariadb, USERS, fill_users(ROWS)) as schema:
        ((before,),) = run_sql(rig.mariadb, DUMPS)
        table = _create(rig, schema)
        produce(servers, topics[0], [click(n, n) for n in range(1, 201)])
        with rig.mariadb.connect(schema) as lock, lock.cursor() as cursor:
            table.wait_state("SNAPSHOT")
            cursor.execute("LOCK TABLES user_info WRITE")
            first = rig.submit(enrich_by(rig, "", topics[0], paths[0]))
            held = first.wait_for(
                lambda s: 'shared table "user_info" is in LOAD, chunk ' in s["reason"],
                "the job waits for the shared table",
            )
            assert held["phase"] == "LOAD"
            cursor.execute("UPDATE user_info SET name = 'changed' WHERE user_id = 7")
            cursor.execute("DELETE FROM user_info WHERE user_id = 8")
            assert rig.rows(paths[0]) == []
            cursor.execute("UNLOCK TABLES")
        opened = first.wait_joining()
        rows = _rows(first, paths[0], 200)
        assert rows[7]["name"] == "changed"
        assert {item for item, row in rows.items() if row["name"] is None} == {8}
        _assert_never_early(first, opened, rows)

        second = rig.submit(enrich_by(rig, "", topics[1], paths[1]))
        assert second.wait_joining()["dimensions"][0]["source"] == "shared"
        assert run_sql(rig.mariadb, DUMPS) == [(before + 1,)]
        for job in (first, second):
            assert not job.children("joins.adapters.mysql.binlog")
            assert not (job.directory / "tables" / "user_info").exists(), "no copy of its own"

        killed = table.kill_runner()
        run_sql(rig.mariadb, "UPDATE user_info SET name = 'again' WHERE user_id = 9", schema=schema)
        produce(servers, topics[1], [click(7, 1), click(8, 2)])  # joined meanwhile
        assert _rows(second, paths[1], 2)[1]["name"] == "changed"
        old = first.kill_runner()
        produce(servers, topics[0], [click(n, n) for n in range(201, 301)])
        table.wait_restarted(killed)
        first.wait_restarted(old)
        for job in (first, second):
            wait_until(
                lambda job=job: _is_current(rig, job, 9, "again"), what="the change is there"
            )
        produce(servers, topics[0], [click(9, 301)])
        produce(servers, topics[1], [click(9, 3)])
        rows = _rows(first, paths[0], 301)
        assert rows[301]["name"] == "again"
        assert rows[300]["name"] == "user 300"
        assert _rows(second, paths[1], 3)[3]["name"] == "again"
        assert run_sql(rig.mariadb, DUMPS) == [(before + 1,)]

        leases = table.directory / "checkpoint" / "leases"
        wait_until(
            lambda: all(
                json.loads(file.read_text())["version"] > 0 for file in leases.glob("*.json")
            ),
            what="leases move on",
        )
        assert {file.stem for file in leases.glob("*.json")} == {first.id, second.id}
        refused = rig.client.delete("/v1/tables/user_info")
        assert refused.status_code == 409
        assert first.id in refused.json()["detail"]
        assert second.id in refused.json()["detail"]
        rig.remove(first)
        rig.remove(second)
        assert not list(leases.glob("*.json"))
        assert rig.client.delete("/v1/tables/user_info").status_code == 204
        wait_until(lambda: not table.directory.exists(), what="the copy is removed")
        assert run_sql(rig.mariadb, DUMPS) == [(before,)]


def _assert_never_early(job: RunningJob, opened: dict[str, Any], rows: dict[int, Any]) -> None:
    for batch in {row["_batch"] for row in rows.values()}:
        pin = job.pins.read(batch)
        assert pin is not None
        assert pin.batch_timestamp_ms >= opened["opened_at_ms"]
        assert pin.versions["user_info"] >= opened["versions_at_open"]["user_info"]
