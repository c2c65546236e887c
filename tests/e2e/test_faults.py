"""Bad input and sources that fail later: a one-line error with a hint, and nothing half-started."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.rig import Rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

REFUSED_TABLE = "users_of_the_refused"
Edit = Callable[[str], str]
REFUSED: dict[str, tuple[Edit, str, str]] = {
    "wrong_password": (
        lambda sql: sql.replace("'password'='", "'password'='wrong"),
        "password",
        "password",
    ),
    "database_down": (lambda sql: replace_port(sql, "1"), "127.0.0.1:1", "Start the server"),
    "broker_down": (lambda sql: replace_servers(sql, "127.0.0.1:1"), "127.0.0.1:1", "broker"),
    "table_missing": (
        lambda sql: sql.replace("'table-name'='user_info'", "'table-name'='nobody'"),
        "nobody",
        "table-name",
    ),
    "topic_missing": (
        lambda sql: re.sub(r"'topic'='[^']*'", "'topic'='absent'", sql),
        'topic "absent" does not exist',
        "Create it (sluice topic create NAME)",
    ),
    "column_missing": (
        lambda sql: sql.replace("gender STRING, name STRING, PRIMARY", "g STRING, PRIMARY").replace(
            "u.gender, u.name", "u.g, u.g"
        ),
        '"g"',
        "",
    ),
    "key_is_another": (
        lambda sql: sql.replace("PRIMARY KEY (user_id)", "PRIMARY KEY (name)"),
        "key",
        "PRIMARY KEY",
    ),
    "unknown_option": (
        lambda sql: sql.replace("'hostname'=", "'hostnam'='x', 'hostname'="),
        "hostnam",
        "hostname",
    ),
}


def replace_port(sql: str, port: str) -> str:
    before, rest = sql.split("'port'='", 1)
    return before + f"'port'='{port}'" + rest.split("'", 1)[1]


def replace_servers(sql: str, servers: str) -> str:
    before, rest = sql.split("'properties.bootstrap.servers'='", 1)
    return before + f"'properties.bootstrap.servers'='{servers}'" + rest.split("'", 1)[1]


@pytest.fixture(scope="module")
def good_sql(rig: Rig) -> Any:
    topic = create_topic(rig.kafka.bootstrap_servers)
    with new_schema(rig.mariadb, USERS, fill_users(3)) as schema:
        sql = enrich_sql(rig, schema, topic, unique_name("refused"))
        yield sql.replace("TABLE user_info", f"TABLE {REFUSED_TABLE}").replace(
            "JOIN user_info", f"JOIN {REFUSED_TABLE}"
        )


@pytest.mark.parametrize(("edit", "told", "hint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_run_is_refused_at_submission(
    rig: Rig, good_sql: str, edit: Edit, told: str, hint: str
) -> None:
    jobs_before = sorted(rig.settings.jobs_dir.glob("*"))
    answer = rig.post_job(edit(good_sql))
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert told in problem["detail"]
    assert "\n" not in problem["hint"]
    assert hint in problem["hint"]
    assert sorted(rig.settings.jobs_dir.glob("*")) == jobs_before
    assert topics_of_the_refused(rig.kafka) == []
    assert rig.get("/v1/jobs")["items"] == [] or all(
        job["state"] != "FAILED" for job in rig.get("/v1/jobs")["items"]
    )


SERVER_SETTINGS: dict[str, tuple[dict[str, str | None], str]] = {
    "binlog_off": ({"skip-log-bin": None}, "log_bin"),
    "row_image_minimal": ({"binlog-row-image": "MINIMAL"}, "binlog_row_image"),
    "binlog_format_statement": ({"binlog-format": "STATEMENT"}, "binlog_format"),
}


@pytest.mark.parametrize(("options", "named"), SERVER_SETTINGS.values(), ids=list(SERVER_SETTINGS))
def test_a_database_that_cannot_be_followed_is_refused_with_the_setting(
    rig: Rig, tmp_path: Path, database_home: Path, options: dict[str, str | None], named: str
) -> None:
    topic = create_topic(rig.kafka.bootstrap_servers)
    with (
        MariaDb(tmp_path, database_home, DatabaseSettings(options=options)) as database,
        new_schema(database, USERS, fill_users(3)) as schema,
    ):
        other = replace(rig, mariadb=database)
        problem = rig.post_job(enrich_sql(other, schema, topic, unique_name("refused"))).json()
        assert named in problem["detail"] + problem["hint"]


def topics_of_the_refused(kafka: KafkaBroker) -> list[str]:
    """No other test names a table so."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    try:
        return [name for name in admin.list_topics() if name.endswith(f".{REFUSED_TABLE}")]
    finally:
        admin.close()


@pytest.mark.experiment
def test_a_source_that_fails_later_stalls_the_job_which_goes_on_by_itself(
    rig: Rig, own_database: MariaDb
) -> None:
    """The database goes away in JOIN: what is known is still joined, changes come later."""
    kafka, database, rig = rig.kafka, own_database, replace(rig, mariadb=own_database)
    topic, path = create_topic(kafka.bootstrap_servers), unique_name("stall")
    with (
        new_schema(database, USERS, fill_users(50)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        database.stop()
        stalled = job.wait_state("STALLED")
        assert "user_info" in stalled["reason"]
        assert stalled["error"]["hint"]
        produce(kafka.bootstrap_servers, topic, [click(1, 1)])
        assert job.wait_output(path, 1)[0]["name"] == "user 1"
        database.start()
        run_sql(database, "UPDATE user_info SET name = 'back' WHERE user_id = 1", schema=schema)
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 1, "the change arrives")
        assert job.wait_joining()["epoch"] == 1
        produce(kafka.bootstrap_servers, topic, [click(1, 2)])
        rows = {row["item_id"]: row["name"] for row in job.wait_output(path, 2)}
        assert rows == {1: "user 1", 2: "back"}
        causes = [event["cause"] for event in job.events() if event["to"] == "STALLED"]
        assert causes
