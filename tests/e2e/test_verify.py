"""A table with `verify.interval` is compared by itself; a repair mends it while the job joins."""

import pytest

from tests.support.file_feeds import write_json_lines
from tests.support.rig import kafka_table, upsert_table
from tests.support.shop import CLICKS_DDL, USERS, USERS_DDL, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

SILENT = "SET sql_log_bin = 0"
EVERY = "'verify.interval'='1 s'"


def differs(status):
    return [each for each in status["warnings"] if each["type"] == "copy-differs"]


def verified(rig, job):
    answer = rig.client.post(f"/v1/jobs/{job.id}:verify", json={}, timeout=300.0)
    answer.raise_for_status()
    return {table["table"]: table for table in answer.json()["tables"]}


def test_a_difference_is_found_shown_and_repaired_while_the_job_joins(rig):
    path, topic = unique_name("enriched"), create_topic(rig.kafka.bootstrap_servers, partitions=1)
    with new_schema(rig.mariadb, USERS, fill_users(50)) as schema:
        sql = enrich_sql(rig, schema, topic, path, (EVERY,))
        with rig.job(sql) as job:
            job.wait_state("JOINING")
            first = job.wait_for(lambda s: s["dimensions"][0]["verified"], "it is compared")
            assert first["dimensions"][0]["verified"]["differences"] == 0
            assert differs(first) == []

            run_sql(
                rig.mariadb,
                SILENT,
                "UPDATE user_info SET name = 'silent' WHERE user_id = 7",
                "DELETE FROM user_info WHERE user_id = 8",
                "INSERT INTO user_info VALUES (77, 'F', 'silent')",
                schema=schema,
            )
            run_sql(
                rig.mariadb, "UPDATE user_info SET name = 'new' WHERE user_id = 1", schema=schema
            )
            wrong = job.wait_for(differs, "the difference is shown")
            (warning,) = differs(wrong)
            assert wrong["state"] == "JOINING"
            assert f"sluice verify {job.id} --table user_info --repair" in warning["hint"]

            found = verified(rig, job)["user_info"]
            since = {item["key"]["user_id"]: item["since_version"] for item in found["items"]}
            copied = first["dimensions"][0]["changelog_version"]
            assert since.keys() == {7, 8, 77}
            assert since[77] is None
            assert max(since[7], since[8]) <= copied < found["version"]

            answer = rig.client.post(f"/v1/jobs/{job.id}:verify", json={"repair": True})
            answer.raise_for_status()
            (table,) = answer.json()["tables"]
            assert table["not_repaired"] is None
            sent = table["repaired"]["written"], table["repaired"]["deleted"]
            assert (table["state"], sent) == ("equal", (2, 1))

            produce(rig.kafka.bootstrap_servers, topic, [click(7, 1), click(8, 2), click(77, 3)])
            rows = job.wait_output(path, 3)
            assert {row["user_id"]: row["name"] for row in rows} == {
                7: "silent",
                8: None,
                77: "silent",
            }
            told = [each["cause"] for each in job.events()]
            assert any('table "user_info" was repaired: 2 rows' in each for each in told), told
            assert job.wait_for(lambda s: not differs(s), "it is equal")["phase"] == "JOIN"


@pytest.mark.matrix
def test_copies_of_a_topic_and_of_files_are_compared_while_the_job_joins(rig):
    servers, path, name = rig.kafka.bootstrap_servers, unique_name("out"), unique_name("levels")
    clicks, users = create_topic(servers, partitions=1), create_topic(servers, partitions=2)
    levels = rig.output(name)
    levels.mkdir(parents=True)
    write_json_lines(levels / "a.json", [{"user_id": n, "level": f"l{n}"} for n in range(20)])
    rows = [{"user_id": n, "gender": "F", "name": f"n{n}"} for n in range(50)]
    produce(servers, users, rows, keys=[{"user_id": row["user_id"]} for row in rows])
    sql = (
        upsert_table(rig.kafka, "user_info", users, USERS_DDL, (EVERY,))
        + "CREATE TABLE levels (user_id BIGINT NOT NULL, level STRING, PRIMARY KEY (user_id) "
        f"NOT ENFORCED) WITH ('connector'='filesystem', 'path'='{name}', 'format'='json', {EVERY});"
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + "CREATE TABLE enriched (item_id BIGINT, name STRING, level STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, l.level FROM click_event AS c "
        "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id "
        "LEFT JOIN levels FOR SYSTEM_TIME AS OF c.proctime AS l ON c.user_id = l.user_id;"
    )
    with rig.job(sql) as job:
        job.wait_state("JOINING")
        by_itself = job.wait_for(
            lambda s: all(d["verified"] for d in s["dimensions"]), "both are compared by themselves"
        )
        assert [d["verified"]["differences"] for d in by_itself["dimensions"]] == [0, 0]
        produce(servers, users, [None], keys=[{"user_id": 7}])
        first = verified(rig, job)
        assert {table: t["state"] for table, t in first.items()} == {
            "user_info": "equal",
            "levels": "equal",
        }, first
        assert {table: t["rows"] for table, t in first.items()} == {"user_info": 49, "levels": 20}
        shown = job.wait_for(
            lambda s: all(d["verified"] for d in s["dimensions"]), "the status has both"
        )
        assert [d["verified"]["differences"] for d in shown["dimensions"]] == [0, 0]

        write_json_lines(levels / "a.json", [{"user_id": 1, "level": "later"}])
        second = verified(rig, job)
        assert second["levels"]["state"] == "not-compared"
        assert "have changed since they were copied" in second["levels"]["reason"]
        left = job.directory / "verifications"
        wait_until(lambda: not list(left.glob("read-*")), what="nothing is left of a read")
