"""Bounded jobs: what was there at submission is joined, then the job ends by itself."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import add_partitions, create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
BATCH = "SET 'execution.runtime-mode' = 'batch';"


def sluice(rig: Rig, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "service.cli", *arguments, "--server", str(rig.client.base_url)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_batch_job_joins_what_was_there_at_submission_and_finishes_also_after_kills(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """Its only batch is killed after staging and after its commit; Spark plans it too long."""
    servers, path = kafka.bootstrap_servers, unique_name("batch")
    topic = create_topic(servers, partitions=2)
    faults = "C6=kill#0;C8=kill#0"
    with (
        running_rig(tmp_path, kafka, mariadb, failpoints=faults, runners="shared") as rig,
        new_schema(mariadb, USERS, fill_users(30_000)) as schema,
        mariadb.connect(schema) as lock,
        lock.cursor() as cursor,
    ):
        for partition in (0, 1):
            clicks = [click(n, 100 * partition + n) for n in range(1, 81)]
            produce(servers, topic, clicks, partition=partition)
        chunked = ("'scan.incremental.snapshot.chunk.size'='20'",)  # the lock finds it at work
        with rig.job(BATCH + enrich_sql(rig, schema, topic, path, chunked)) as job:
            job.wait_state("SNAPSHOT", deadline_s=300)
            cursor.execute("LOCK TABLES user_info WRITE")
            produce(servers, topic, [click(1, 1_000 + n) for n in range(50)], partition=1)
            add_partitions(servers, topic, 3)
            produce(servers, topic, [click(1, 2_000)], partition=2)
            held = job.wait_for(lambda s: (s["probe"] or {}).get("held_records"), "some are held")
            assert held["probe"]["held_records"] == 160
            cursor.execute("UPDATE user_info SET name = 'changed' WHERE user_id = 7")
            cursor.execute("UNLOCK TABLES")
            finished = job.wait_state("FINISHED", deadline_s=600)
            assert_joined_once(rig, path)
            assert_finished_for_good(job, finished)
            assert_beyond_the_end_is_told(rig, job, topic)


def assert_joined_once(rig: Rig, path: str) -> None:
    rows = {row["item_id"]: row["name"] for row in rig.rows(path)}
    assert len(rig.rows(path)) == 160
    assert set(rows) == {100 * p + n for p in (0, 1) for n in range(1, 81)}
    assert rows[7] == rows[107] == "changed"


def assert_finished_for_good(job: RunningJob, finished: dict[str, Any]) -> None:
    assert finished["probe"]["joined_records"] == 160
    assert finished["probe"]["bounded_offsets"] == {"0": 80, "1": 80}
    assert finished["probe"]["lag_records"] == 0
    assert finished["epoch"] == 3, "it was killed twice"
    assert [e["to"] for e in job.events()][-1] == "FINISHED"
    job.wait_for(lambda s: s["desired_state"] == "STOPPED", "the end of the runner is seen")
    assert job.runner() is None
    assert job.rig.client.post(f"/v1/jobs/{job.id}:start").status_code == 409
    assert job.status()["state"] == "FINISHED"
    assert (job.directory / "tables").is_dir()
    shown = sluice(job.rig, "jobs", "get", job.id)
    assert "FINISHED" in shown.stdout, shown


def assert_beyond_the_end_is_told(rig: Rig, job: RunningJob, topic: str) -> None:
    pins = job.pins
    newest = pins.newest()
    assert newest is not None
    assert newest.batch == 0
    assert dict(newest.end_offsets) == {0: 80, 1: 80}
    batch = rig.get(f"/v1/jobs/{job.id}/batches/0")
    assert batch["records"] == 160
    assert batch["freshness_ms"]["user_info"] >= 0
    for place in ("1/80", "2/0"):
        told = rig.get(f"/v1/jobs/{job.id}/rows/{topic}/{place}")
        assert told["state"] == "after-end", told
    replayed = sluice(rig, "replay", job.id, "--batch", "0", "--diff")
    assert replayed.returncode == 0, replayed
