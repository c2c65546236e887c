"""A table with `verify.interval` is compared by itself; a repair mends it while the job joins."""

from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

SILENT = "SET sql_log_bin = 0"
EVERY = "'verify.interval'='1 s'"


def differs(status):
    return [each for each in status["warnings"] if each["type"] == "copy-differs"]


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
