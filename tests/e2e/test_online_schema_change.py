"""A tool copies the table, fills the copy by triggers and swaps them while rows change."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
REQUIRED = "CI_NEEDS_PERCONA_TOOLKIT"  # .ci/run sets it: without the tool is an error then
TOOL = "pt-online-schema-change"
USERS_COUNT, ALTER = 2_000, "ADD COLUMN extra INT NOT NULL DEFAULT 7"


@pytest.fixture
def tool() -> str:
    path = shutil.which(TOOL)
    if path is None and REQUIRED not in os.environ:
        pytest.skip(f"no {TOOL} on PATH (Debian: percona-toolkit)")
    assert path is not None, f"no {TOOL} on PATH (Debian: percona-toolkit)"
    return path


@contextmanager
def a_login(mariadb: MariaDb, schema: str) -> Iterator[str]:
    """A user of the tool, by its parts of the tool's address."""
    user = unique_name("osc")[:30]
    who = f"{user}@'%'"
    run_sql(mariadb, f"CREATE USER {who} IDENTIFIED BY 'osc'", f"GRANT ALL ON *.* TO {who}")
    try:
        yield f"h={mariadb.host},P={mariadb.port},D={schema},t=user_info,u={user},p=osc"
    finally:
        run_sql(mariadb, f"DROP USER {who}")


def change_rows(mariadb: MariaDb, schema: str, ended: Event) -> int:
    """Rename, delete and insert users, each in its own transaction, until `ended`; how many."""
    changes = 0
    with mariadb.connect(schema) as connection, connection.cursor() as cursor:
        while not ended.wait(0.01):
            changes += 1
            user = changes % USERS_COUNT + 1
            cursor.execute(f"UPDATE user_info SET name = 'change {changes}' WHERE user_id = {user}")
            cursor.execute(f"DELETE FROM user_info WHERE user_id = {USERS_COUNT + 1 - user}")
            row = f"({USERS_COUNT + changes}, 'F', 'new {changes}')"
            cursor.execute(f"INSERT INTO user_info (user_id, gender, name) VALUES {row}")
    return changes


def test_a_table_that_gets_other_values_is_copied_once_while_the_job_joins(rig: Rig) -> None:
    mariadb, servers = rig.mariadb, rig.kafka.bootstrap_servers
    path, topic = unique_name("enriched"), create_topic(servers)
    with (
        new_schema(mariadb, USERS, fill_users(USERS_COUNT)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        run_sql(
            mariadb,
            "CREATE TABLE user_info_new LIKE user_info",
            "INSERT INTO user_info_new SELECT user_id, gender, UPPER(name) FROM user_info",
            "RENAME TABLE user_info TO user_info_old, user_info_new TO user_info",
            schema=schema,
        )
        job.wait_for(lambda s: s["dimensions"][0]["generation"] == 2, "it is copied again")
        job.wait_joining()
        assert verified(rig, job) == ("equal", 0, 2)
        produce(servers, topic, [click(7, 1)])
        (row,) = job.wait_output(path, 1)
        assert row["name"] == "USER 7"
        assert "FAILED" not in {each["to"] for each in job.events()}


def verified(rig: Rig, job: RunningJob) -> tuple[str, int, int]:
    found = rig.client.post(f"/v1/jobs/{job.id}:verify", json={})
    found.raise_for_status()
    (table,) = found.json()["tables"]
    return table["state"], table["differences"], table["generation"]


def test_a_table_that_a_tool_replaces_is_followed_without_a_copy(rig: Rig, tool: str) -> None:
    mariadb, servers = rig.mariadb, rig.kafka.bootstrap_servers
    path, topic = unique_name("enriched"), create_topic(servers)
    with (
        new_schema(mariadb, USERS, fill_users(USERS_COUNT)) as schema,
        a_login(mariadb, schema) as address,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
        ThreadPoolExecutor(1) as pool,
    ):
        job.wait_joining()
        ended = Event()
        changes = pool.submit(change_rows, mariadb, schema, ended)
        try:
            program = [tool, "--execute", "--alter", ALTER, "--recursion-method=none"]
            subprocess.run([*program, "--chunk-size=100", address], check=True, timeout=300)
            run_sql(
                mariadb, "UPDATE user_info SET name = 'behind' WHERE user_id = 1", schema=schema
            )
        finally:
            ended.set()
        newest = USERS_COUNT + changes.result()

        assert verified(rig, job) == ("equal", 0, 1)
        produce(servers, topic, [click(newest, 1)])
        (row,) = job.wait_output(path, 1)
        assert row["name"] == f"new {newest - USERS_COUNT}"
        states = {each["to"] for each in job.events()}
        assert "FAILED" not in states
