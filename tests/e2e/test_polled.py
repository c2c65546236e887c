"""A table of PostgreSQL without logical decoding: copied, refreshed, and as fresh as it says."""

import time

import pytest

from tests.support.debezium import run_postgres
from tests.support.rig import Rig, kafka_table
from tests.support.shop import CLICKS_DDL, click
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment


def statement(rig: Rig, postgres, clicks: str, schema: str, path: str) -> str:
    return (
        "CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
        f"'connector'='jdbc', 'url'='jdbc:postgresql://127.0.0.1:{postgres.port}/postgres', "
        f"'username'='cdc', 'password'='{postgres.cdc_password}', 'table-name'='{schema}.users', "
        f"'scan.refresh-interval'='2 s');"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + "CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, name STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.user_id, c.item_id, u.name FROM click_event AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.id;"
    )


def test_records_meet_the_rows_of_the_last_read(rig: Rig, postgres) -> None:
    clicks, path = create_topic(rig.kafka.bootstrap_servers), unique_name("polled")
    schema = unique_name("crm")
    run_postgres(
        postgres,
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.users (id bigint PRIMARY KEY, name text)",
        f"INSERT INTO {schema}.users SELECT n, 'user ' || n FROM generate_series(1, 1000) AS n",
    )
    produce(rig.kafka.bootstrap_servers, clicks, [click(7, 1), click(1001, 2)])
    with rig.job(statement(rig, postgres, clicks, schema, path)) as job:
        opened = job.wait_joining()
        (users,) = opened["dimensions"]
        assert (users["snapshot"]["rows_done"], users["generation"]) == (1000, 1)
        found = {(r["user_id"], r["name"]) for r in job.wait_output(path, 2)}
        assert found == {(7, "user 7"), (1001, None)}

        run_postgres(
            postgres,
            f"DELETE FROM {schema}.users WHERE id = 7",
            f"INSERT INTO {schema}.users VALUES (1001, 'new')",
        )
        changed_ms = time.time() * 1000
        job.wait_for(
            lambda s: (s["dimensions"][0]["freshness"]["as_of_ms"] or 0) > changed_ms,
            "a read that began after the change is committed",
        )
        job.wait_restarted(job.kill_runner())
        produce(rig.kafka.bootstrap_servers, clicks, [click(7, 3), click(1001, 4)])
        later = {(r["item_id"], r["name"]) for r in job.wait_output(path, 4)}
        assert later >= {(3, None), (4, "new")}
        assert job.status()["dimensions"][0]["generation"] == 1, "the same copy goes on"
