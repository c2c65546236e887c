"""What an operator does with a real job: look back, decide about a topic."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from kafka.errors import TopicAlreadyExistsError

from service.jobs.store.layout import JobLayout
from tests.support.canary import files_with, processes_with
from tests.support.control_plane import ROOT
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table
from tests.support.sql import new_schema
from tests.support.topics import create_topic, delete_topics, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment

USERS = "CREATE TABLE users (user_id BIGINT PRIMARY KEY, name VARCHAR(40))"
FILL = "INSERT INTO users VALUES (1, 'one'), (2, 'two')"


def statement(rig: Rig, schema: str, topic: str, path: str) -> str:
    columns = "user_id BIGINT NOT NULL, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"
    return (
        cdc_table(rig.mariadb, schema, "users", columns)
        + kafka_table(rig.kafka, "clicks", topic, "user_id BIGINT, at AS PROCTIME()")
        + "CREATE TABLE enriched (user_id BIGINT, name STRING) WITH "
        f"('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.user_id, u.name FROM clicks AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.at AS u ON c.user_id = u.user_id;"
    )


def clicks(rig: Rig, topic: str, *users: int) -> None:
    values = [json.dumps({"user_id": user}).encode() for user in users]
    produce(rig.kafka.bootstrap_servers, topic, values, keys=["k"] * len(values))


def sluice(rig: Rig, *arguments: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", *arguments, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "SLUICE_SERVER": str(rig.client.base_url)},
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def look_back(rig: Rig, job: RunningJob, topic: str, path: str) -> None:
    row = next(row for row in rig.rows(path) if row["user_id"] == 2)
    record = f"{topic}/{row['_partition']}/{row['_offset']}"
    code, found = sluice(rig, "explain-row", job.id, record)
    assert code == 0
    assert found["state"] == "joined"
    assert found["batch"] == row["_batch"]
    assert [met["name"] for met in found["dimensions"][0]["rows"]] == ["two"]
    code, found = sluice(rig, "replay", job.id, "--batch", str(row["_batch"]), "--diff")
    assert code == 0, found
    assert found["identical"] is True
    batch = rig.get(f"/v1/jobs/{job.id}/batches/{row['_batch']}")
    assert batch["committed"] is True
    version = str(batch["pin"]["versions"]["users"])
    code, found = sluice(rig, "dim", "get", job.id, "users", "2", "9", "--version", version)
    assert code == 1  # there is no user 9
    assert [row["values"] for row in found["items"]] == [{"user_id": 2, "name": "two"}]
    assert [(a["key"], a["reason"]) for a in found["absent"]] == [({"user_id": 9}, "no-record")]
    code, found = sluice(rig, "preview", job.id, "--limit", "3")
    assert code == 0
    assert {r["values"]["name"] for r in found["items"]} == {"one", "two", None}
    missing = rig.client.get(f"/v1/jobs/{job.id}/batches/999999")
    assert (missing.status_code, missing.json()["type"]) == (
        404,
        "urn:sluice:problem:unknown-batch",
    )
    code, report = sluice(rig, "doctor", job.id)
    assert code == 0, [check for check in report["checks"] if check["ok"] is False]


def made_anew(rig: Rig, topic: str) -> bool:
    """False while the broker still deletes the old one."""
    try:
        create_topic(rig.kafka.bootstrap_servers, topic)
    except TopicAlreadyExistsError:
        return False
    return True


def lose_the_topic(rig: Rig, job: RunningJob, topic: str, path: str) -> None:
    rows = len(rig.rows(path))
    delete_topics(rig.kafka.bootstrap_servers, topic)
    wait_until(lambda: made_anew(rig, topic), what="the topic is made anew")
    clicks(rig, topic, 2, 2, 2, 2, 2)  # it is larger than the old one was
    job.wait_for(
        lambda s: s["state"] == "STALLED" and s["error"]["type"] == "topic-identity-changed",
        "the stall",
    )
    assert len(rig.rows(path)) == rows
    code, found = sluice(
        rig, "acknowledge", job.id, "topic-identity-changed", "--reason", "made anew on purpose"
    )
    assert code == 0, found
    assert found["choice"] == "continue"
    job.wait_joining()
    assert len(job.wait_output(path, rows + 5)) == rows + 5
    status = job.status()
    assert [a["reason"] for a in status["acknowledgements"]] == ["made anew on purpose"]
    listed = rig.get(f"/v1/jobs/{job.id}/acknowledgements")["items"]
    assert listed == status["acknowledgements"]


def nothing_shows_the_password(rig: Rig, job: RunningJob) -> None:
    """It was written into the script: it is in one file, and no process shows it."""
    password, runner = rig.mariadb.cdc_password, job.runner()
    assert runner is not None
    assert processes_with(password, [runner.pid]) == []
    assert files_with(password, job.directory, rig.settings.warehouse_dir) == [
        JobLayout(job.directory).secrets
    ]
    assert files_with(password, *rig.settings.data_dir.glob("jobs.db*")) == []
    assert password not in f"{job.status()}{job.events()}"


def test_an_operator_looks_back_and_decides_about_a_topic_that_was_made_anew(rig: Rig) -> None:
    topic, path = create_topic(rig.kafka.bootstrap_servers), unique_name("operator")
    clicks(rig, topic, 1, 2, 3)
    with (
        new_schema(rig.mariadb, USERS, FILL) as schema,
        rig.job(statement(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        job.wait_output(path, 3)
        look_back(rig, job, topic, path)
        nothing_shows_the_password(rig, job)
        lose_the_topic(rig, job, topic, path)
