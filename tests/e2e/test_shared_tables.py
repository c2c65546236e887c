"""A shared table and two jobs that read it, on real parts: one copy, one binlog, exact rows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
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

pytestmark = pytest.mark.experiment
ROWS = 20_000
DUMPS = "SELECT COUNT(*) FROM information_schema.processlist WHERE COMMAND = 'Binlog Dump'"


@pytest.fixture(scope="module")
def mariadb(own_database: MariaDb) -> MariaDb:
    return own_database


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
    settings = {"maintenance_interval_s": 1.0, "runners": "shared"}
    with running_rig(tmp_path, kafka, mariadb, **settings) as rig:
        yield rig


def _create(rig: Rig, schema: str) -> RunningJob:
    chunked = ("'scan.incremental.snapshot.chunk.size'='20'",)  # the lock finds it at work
    sql = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, chunked)
    sql = sql.replace("CREATE TABLE", "CREATE SHARED TABLE")
    sql = sql.replace(f"'{rig.mariadb.cdc_password}'", "'${secret:cdc}'")
    answer = rig.client.post("/v1/tables", json={"sql": sql})
    assert answer.status_code == 201, answer.text
    return RunningJob(rig, rig.get("/v1/tables/user_info")["job_id"])


@dataclass
class Story:
    """A shared table and two jobs, step by step.

    Attributes:
        before: connections that read the binlog before there was any of this.
    """

    rig: Rig
    schema: str
    before: int
    table: RunningJob
    topics: list[str]
    paths: list[str]
    jobs: list[RunningJob] = field(default_factory=list)

    def submit(self) -> RunningJob:
        number = len(self.jobs)
        sql = enrich_by(self.rig, "", self.topics[number], self.paths[number])
        self.jobs.append(self.rig.submit(sql))
        return self.jobs[-1]

    def send(self, number: int, clicks: list[dict[str, Any]]) -> None:
        produce(self.rig.kafka.bootstrap_servers, self.topics[number], clicks)

    def rows(self, number: int, count: int) -> dict[int, dict[str, Any]]:
        rows = self.jobs[number].wait_output(self.paths[number], count)
        assert len(rows) == count, "no row is there twice"
        return {row["item_id"]: row for row in rows}

    def change(self, *statements: str) -> None:
        run_sql(self.rig.mariadb, *statements, schema=self.schema)

    def dumps(self) -> int:
        ((count,),) = run_sql(self.rig.mariadb, DUMPS)
        return int(count) - self.before

    def version_with(self, user: int, name: str) -> int | None:
        found = self.rig.get(f"/v1/jobs/{self.table.id}/dimensions/user_info?key={user}")
        is_there = any(item["values"]["name"] == name for item in found["items"])
        return int(found["version"]) if is_there else None

    def the_first_waits_for_the_copy(self) -> None:
        self.send(0, [click(n, n) for n in range(1, 201)])
        with self.rig.mariadb.connect(self.schema) as lock, lock.cursor() as cursor:
            self.table.wait_state("SNAPSHOT")
            cursor.execute("LOCK TABLES user_info WRITE")
            held = self.submit().wait_for(
                lambda s: 'shared table "user_info" is in LOAD, chunk ' in s["reason"],
                "the job waits for the shared table",
            )
            assert held["phase"] == "LOAD"
            cursor.execute("UPDATE user_info SET name = 'changed' WHERE user_id = 7")
            cursor.execute("DELETE FROM user_info WHERE user_id = 8")
            assert self.rig.rows(self.paths[0]) == []
            cursor.execute("UNLOCK TABLES")
        opened = self.jobs[0].wait_joining()
        rows = self.rows(0, 200)
        assert rows[7]["name"] == "changed"
        assert {item for item, row in rows.items() if row["name"] is None} == {8}
        _assert_never_early(self.jobs[0], opened, rows)

    def the_second_opens_without_a_copy(self) -> None:
        assert self.submit().wait_joining()["dimensions"][0]["source"] == "shared"
        assert self.dumps() == 1
        for job in self.jobs:
            assert not job.children("joins.adapters.mysql.binlog")
            assert not (job.directory / "tables" / "user_info").exists(), "no copy of its own"

    def runners_are_killed_and_nothing_is_lost(self) -> None:
        killed = self.table.kill_runner()
        self.change("UPDATE user_info SET name = 'again' WHERE user_id = 9")
        self.send(1, [click(7, 1), click(8, 2)])
        assert self.rows(1, 2)[1]["name"] == "changed", "meanwhile the old rows are joined"
        old = self.jobs[0].kill_runner()
        self.send(0, [click(n, n) for n in range(201, 301)])
        self.table.wait_restarted(killed)
        self.jobs[0].wait_restarted(old)
        version = wait_until(lambda: self.version_with(9, "again"), what="it is committed")
        for job in self.jobs:
            job.wait_for(
                lambda s: (s["dimensions"][0]["index_version"] or 0) >= version, "it is seen"
            )
        self.send(0, [click(9, 301)])
        self.send(1, [click(9, 3)])
        rows = self.rows(0, 301)
        assert (rows[300]["name"], rows[301]["name"]) == ("user 300", "again")
        assert self.rows(1, 3)[3]["name"] == "again"
        assert self.dumps() == 1

    def past_batches_find_the_versions_that_they_had(self) -> None:
        """Also behind the compactions of the shared table, which begin every second."""
        first = self.jobs[0]
        replay = self.rig.client.post(f"/v1/jobs/{first.id}/batches/0:replay")
        assert replay.status_code == 200, replay.text
        assert replay.json()["identical"], replay.json()
        for job in (self.table, first):
            report = self.rig.get(f"/v1/jobs/{job.id}/doctor")
            assert [check for check in report["checks"] if check["ok"] is False] == []

    def the_table_goes_when_nobody_reads_it(self) -> None:
        leases = self.table.directory / "checkpoint" / "leases"
        assert {file.stem for file in leases.glob("*.json")} == {job.id for job in self.jobs}
        wait_until(
            lambda: all(json.loads(f.read_bytes())["version"] > 0 for f in leases.glob("*.json")),
            what="leases move on",
        )
        refused = self.rig.client.delete("/v1/tables/user_info")
        assert refused.status_code == 409
        assert all(job.id in refused.json()["detail"] for job in self.jobs)
        for job in self.jobs:
            self.rig.remove(job)
        assert not list(leases.glob("*.json"))
        assert self.rig.client.delete("/v1/tables/user_info").status_code == 204
        wait_until(lambda: not self.table.directory.exists(), what="the copy is removed")
        wait_until(lambda: self.dumps() == 0, what="the database has seen the connection end")


def test_two_jobs_read_one_copy_and_survive_kills(own_rig: Rig) -> None:
    servers = own_rig.kafka.bootstrap_servers
    with new_schema(own_rig.mariadb, USERS, fill_users(ROWS)) as schema:
        ((before,),) = run_sql(own_rig.mariadb, DUMPS)
        story = Story(
            own_rig,
            schema,
            before,
            _create(own_rig, schema),
            [create_topic(servers, partitions=2), create_topic(servers)],
            [unique_name("first"), unique_name("second")],
        )
        story.the_first_waits_for_the_copy()
        story.the_second_opens_without_a_copy()
        story.runners_are_killed_and_nothing_is_lost()
        story.past_batches_find_the_versions_that_they_had()
        story.the_table_goes_when_nobody_reads_it()


def _assert_never_early(job: RunningJob, opened: dict[str, Any], rows: dict[int, Any]) -> None:
    for batch in {row["_batch"] for row in rows.values()}:
        pin = job.pins.read(batch)
        assert pin is not None
        assert pin.batch_timestamp_ms >= opened["opened_at_ms"]
        assert pin.versions["user_info"] >= opened["versions_at_open"]["user_info"]
