"""The main job on real parts: Kafka, MariaDB, Spark and Delta, from submission to joined rows."""

import json
import subprocess
import sys
from typing import Any

import pytest
from kafka import KafkaAdminClient

from service.jobs.runner import EXIT_NOT_OWNER
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table
from tests.support.shop import (
    USERS,
    USERS_DDL,
    click,
    enrich_sql,
    fill_users,
)
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until


def test_records_sent_during_a_slow_snapshot_are_all_joined_after_it_and_none_before(
    rig: Rig,
) -> None:
    """B02: the table is locked while its copy runs; changes and deletes happen meanwhile."""
    path = unique_name("slow")
    topic = create_topic(rig.kafka.bootstrap_servers, partitions=2)
    with new_schema(rig.mariadb, USERS, fill_users(30_000)) as schema:
        chunked = ("'scan.incremental.snapshot.chunk.size'='20'",)  # the lock finds it at work
        produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in range(1, 501)])
        with (
            rig.mariadb.connect(schema) as lock,
            lock.cursor() as cursor,
            rig.job(enrich_sql(rig, schema, topic, path, chunked)) as job,
        ):
            job.wait_state("SNAPSHOT")
            cursor.execute("LOCK TABLES user_info WRITE")
            produce(rig.kafka.bootstrap_servers, topic, [click(n, n) for n in range(501, 1001)])
            cursor.execute("UPDATE user_info SET name = 'changed' WHERE user_id = 7")
            cursor.execute("DELETE FROM user_info WHERE user_id IN (8, 29999)")
            cursor.execute("INSERT INTO user_info VALUES (40000, 'F', 'late')")
            held = job.wait_for(
                lambda s: (s["probe"] or {}).get("held_records") == 1000, "1,000 are held"
            )
            assert held["phase"] == "LOAD"
            assert "user_info" in held["reason"]
            assert rig.rows(path) == []
            assert not list((job.directory / "checkpoint" / "pins").glob("*"))
            cursor.execute("UNLOCK TABLES")
            opened = job.wait_joining()
            produce(rig.kafka.bootstrap_servers, topic, [click(40000, 1001), click(8, 1002)])
            rows = {r["item_id"]: r for r in job.wait_output(path, 1002)}
            assert len(rows) == len(rig.rows(path)) == 1002
            unmatched = {i for i, row in rows.items() if row["gender"] is None}
            assert unmatched == {8, 1002}
            assert rows[7]["name"] == "changed"
            assert rows[1001]["name"] == "late"
            assert_never_early(job, opened, rows.values())


def assert_never_early(job: RunningJob, opened: dict[str, Any], rows: Any) -> None:
    """Each row's batch is pinned after the opening, to versions that are not older than it."""
    for batch in {row["_batch"] for row in rows}:
        pin = job.pins.read(batch)
        assert pin is not None
        assert pin.batch_timestamp_ms >= opened["opened_at_ms"]
        for name, version in opened["versions_at_open"].items():
            assert pin.versions[name] >= version


def test_updates_and_deletes_after_opening_are_seen_by_the_next_records(rig: Rig) -> None:
    path = unique_name("changes")
    topic = create_topic(rig.kafka.bootstrap_servers)
    with (
        new_schema(rig.mariadb, USERS, fill_users(100)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(rig.kafka.bootstrap_servers, topic, [click(1, 1), click(2, 2), click(None, 3)])
        job.wait_joining()
        first = {r["item_id"]: r["name"] for r in job.wait_output(path, 3)}
        assert first == {1: "user 1", 2: "user 2", 3: None}
        before = job.status()["versions"]
        run_sql(
            rig.mariadb,
            "UPDATE user_info SET name = 'renamed' WHERE user_id = 1",
            "DELETE FROM user_info WHERE user_id = 2",
            "UPDATE user_info SET user_id = 500 WHERE user_id = 3",
            schema=schema,
        )
        wait_for_changes(job, before, changes=4)
        produce(
            rig.kafka.bootstrap_servers,
            topic,
            [click(1, 11), click(2, 12), click(3, 13), click(500, 14)],
        )
        rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 7)}
        assert {i: rows[i] for i in (11, 12, 13, 14)} == {
            11: "renamed",
            12: None,
            13: None,
            14: "user 3",
        }
        assert rows | first == rows
        assert_current_equals_table(rig, job, schema)
        hidden = "SET STATEMENT max_statement_time=60 FOR RENAME TABLE user_info TO hidden"
        run_sql(rig.mariadb, hidden, schema=schema)
        job.wait_for(joins_old_rows, "it says what is joined meanwhile")
        run_sql(
            rig.mariadb,
            "RENAME TABLES hidden TO user_info",
            "TRUNCATE TABLE user_info",
            "INSERT INTO user_info VALUES (2, 'F', 'again')",
            schema=schema,
        )
        job.wait_for(is_copied_again, "the table is copied again")
        produce(rig.kafka.bootstrap_servers, topic, [click(1, 21), click(2, 22)])
        rows = {r["item_id"]: r["name"] for r in job.wait_output(path, 9)}
        assert (rows[21], rows[22]) == (None, "again")
        assert_current_equals_table(rig, job, schema)


def joins_old_rows(status: dict[str, Any]) -> bool:
    return status["state"] == "STALLED" and "Meanwhile records are joined" in status["reason"]


def is_copied_again(status: dict[str, Any]) -> bool:
    """A second generation is complete, and the job never left JOIN."""
    (dimension,) = status["dimensions"]
    assert status["phase"] == "JOIN"
    return (
        dimension["generation"] == 2
        and dimension["evidence"] is not None
        and dimension["index_version"] == status["versions"]["user_info"]
        and dimension["lag_records"] == 0
    )


def wait_for_changes(job: RunningJob, before: dict[str, int], *, changes: int) -> None:
    def is_indexed(status: dict[str, Any]) -> bool:
        return all(
            status["versions"][found["name"]] > before[found["name"]]
            and found["index_version"] == status["versions"][found["name"]]
            and found["streamed_records"] >= changes
            and found["lag_records"] == 0
            for found in status["dimensions"]
        )

    job.wait_for(is_indexed, "the changes are committed")


def assert_current_equals_table(rig: Rig, job: RunningJob, schema: str) -> None:
    """The fold in the background makes `current` what `SELECT *` gives."""
    expected = {
        row[0]: row for row in run_sql(rig.mariadb, "SELECT * FROM user_info", schema=schema)
    }
    current = job.directory / "tables" / "user_info" / "current"

    def folded() -> bool:
        rows = rig.rows(str(current))
        found = {r["user_id"]: (r["user_id"], r["gender"], r["name"]) for r in rows}
        return len(rows) == len(found) and found == expected

    wait_until(folded, deadline_s=60.0, what="current equals SELECT *")


def test_the_example_of_flip_326_runs_as_it_is_written(rig: Rig) -> None:
    """B52: temporary tables, an inline key, a datagen probe and a print sink."""
    statements = [
        "CREATE TABLE user_info (user_id INT PRIMARY KEY, gender VARCHAR(8) NOT NULL)",
        "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M') FROM seq_0_to_9",
    ]
    with new_schema(rig.mariadb, *statements) as schema:
        sql = f"""
        CREATE TEMPORARY TABLE user_info (
            user_id INTEGER PRIMARY KEY NOT ENFORCED,
            gender STRING
        ) WITH ('connector' = 'mysql-cdc', 'database-name' = '{schema}', 'hostname' = 'localhost',
            'port' = '{rig.mariadb.port}', 'username' = '{rig.mariadb.cdc_user}',
            'password' = '{rig.mariadb.cdc_password}', 'table-name' = 'user_info');
        CREATE TEMPORARY TABLE click_event (
            user_id INTEGER,
            item_id INTEGER,
            proctime AS PROCTIME()
        ) WITH ('connector' = 'datagen', 'rows-per-second' = '20',
            'fields.user_id.min' = '0', 'fields.user_id.max' = '9');
        CREATE TEMPORARY TABLE print_sink (user_id INTEGER, item_id INTEGER, gender STRING)
        WITH ('connector' = 'print');
        INSERT INTO print_sink
        SELECT click_event.user_id AS user_id, item_id, gender FROM click_event
        LEFT JOIN user_info FOR SYSTEM_TIME AS OF click_event.proctime
        ON click_event.user_id = user_info.user_id;
        """
        with rig.job(sql) as job:
            job.wait_joining()
            job.wait_for(lambda s: s["probe"]["joined_records"] >= 40, "40 rows are joined")
            log = (job.directory / "runner.log").read_text()
            printed = [line for line in log.splitlines() if line.startswith("+I[")]
            rows = [line[3:-1].split(", ") for line in printed]
            assert len(rows) >= 40
            assert all(gender == ("F" if int(user) % 2 else "M") for user, _, gender in rows)
            assert {int(user) for user, _, _ in rows} <= set(range(10))
            assert job.probe()["topic"] == f"sluice.{job.id}.probe"
            explained = rig.get(f"/v1/jobs/{job.id}/rows/click_event/0/0")
            assert explained["state"] == "joined"
            assert explained["coordinates"]["topic"] == job.probe()["topic"]
            assert second_runner(job) == EXIT_NOT_OWNER
            assert topics_of(rig, job)
        assert not topics_of(rig, job)
        assert not job.directory.exists()


def test_a_preview_prints_its_first_rows_and_ends(rig: Rig) -> None:
    """A bare SELECT over a view of the stream: no sink, and nobody stops it."""
    statements = [
        "CREATE TABLE user_info (user_id INT PRIMARY KEY, gender VARCHAR(8) NOT NULL)",
        "INSERT INTO user_info SELECT seq, IF(seq % 2, 'F', 'M') FROM seq_0_to_9",
    ]
    with new_schema(rig.mariadb, *statements) as schema:
        sql = f"""
        CREATE TABLE user_info (user_id INTEGER PRIMARY KEY NOT ENFORCED, gender STRING)
        WITH ('connector' = 'mysql-cdc', 'database-name' = '{schema}', 'hostname' = 'localhost',
            'port' = '{rig.mariadb.port}', 'username' = '{rig.mariadb.cdc_user}',
            'password' = '{rig.mariadb.cdc_password}', 'table-name' = 'user_info');
        CREATE TABLE click_event (user_id INTEGER, proctime AS PROCTIME())
        WITH ('connector' = 'datagen', 'rows-per-second' = '200', 'number-of-rows' = '100',
            'fields.user_id.min' = '0', 'fields.user_id.max' = '9');
        CREATE VIEW odd AS SELECT * FROM click_event WHERE MOD(user_id, 2) = 1;
        SELECT odd.user_id, gender FROM odd, LATERAL TABLE(user_info(odd.proctime)) AS u
        WHERE odd.user_id = u.user_id LIMIT 5;
        """
        with rig.job(sql, is_named=False) as job:
            status = job.wait_for(
                lambda s: s["state"] == "FINISHED", "the preview ends", deadline_s=300
            )
            assert status["name"] == "preview"
            told = " ".join(warning["message"] for warning in status["warnings"])
            assert "This is a preview" in told
            log = (job.directory / "runner.log").read_text()
            lines = [line for line in log.splitlines() if line.startswith("+I{")]
            rows = [json.loads(line.removeprefix("+I")) for line in lines]
            assert len(rows) == 5
            assert all(int(row["user_id"]) % 2 and row["gender"] == "F" for row in rows)


def second_runner(job: RunningJob) -> int:
    command = [sys.executable, "-m", "service.jobs.runner", "--job-dir", str(job.directory)]
    return subprocess.run(command, capture_output=True, timeout=600, check=False).returncode


def topics_of(rig: Rig, job: RunningJob) -> list[str]:
    """The topics that Sluice made for the job; `rm` deletes them."""
    admin = KafkaAdminClient(bootstrap_servers=rig.kafka.bootstrap_servers)
    try:
        return [name for name in admin.list_topics() if job.id in name]
    finally:
        admin.close()


@pytest.mark.experiment
def test_an_empty_table_and_an_idle_one_beside_a_busy_one_open_the_gate(rig: Rig) -> None:
    """Two dimensions behind one gate, one of them never written to; composite and string keys."""
    path = unique_name("two")
    topic = create_topic(rig.kafka.bootstrap_servers)
    statements = [
        "CREATE TABLE price (region VARCHAR(20), item INT, price DECIMAL(10,2),"
        " PRIMARY KEY (region, item))",
        "INSERT INTO price VALUES ('eu', 1, 1.50), ('us', 1, 2.50), ('eu', 2, 3.00)",
        "CREATE TABLE empty_one (code VARCHAR(20) PRIMARY KEY, label VARCHAR(20))",
        "CREATE TABLE busy (id INT PRIMARY KEY, n INT)",
        "INSERT INTO busy SELECT seq, 0 FROM seq_1_to_500",
    ]
    with new_schema(rig.mariadb, *statements) as schema:
        sql = (
            cdc_table(
                rig.mariadb,
                schema,
                "price",
                "region STRING, item INT, price DECIMAL(10, 2),"
                " PRIMARY KEY (region, item) NOT ENFORCED",
            )
            + cdc_table(
                rig.mariadb,
                schema,
                "empty_one",
                "code STRING, label STRING, PRIMARY KEY (code) NOT ENFORCED",
            )
            + kafka_table(
                rig.kafka,
                "orders",
                topic,
                "id BIGINT, region STRING, line ROW<item INT, code STRING, tags ARRAY<STRING>>, "
                "p AS PROCTIME()",
            )
            + "CREATE TABLE priced (id BIGINT, total DECIMAL(10, 2), label STRING, size STRING, "
            "line ROW<item INT, code STRING, tags ARRAY<STRING>>) "
            f"WITH ('connector'='delta', 'path'='{path}');"
            "INSERT INTO priced SELECT o.id, p.price, e.label, "
            "CASE WHEN p.price >= 2 THEN UPPER('big') ELSE 'small' END, o.line "
            "FROM orders AS o JOIN price FOR SYSTEM_TIME AS OF o.p AS p "
            "ON o.region = p.region AND o.line.item = p.item "
            "LEFT JOIN empty_one FOR SYSTEM_TIME AS OF o.p AS e ON o.line.code = e.code;"
        )
        records = [
            {"id": 1, "region": "eu", "line": {"item": 1, "code": "x", "tags": ["a", None]}},
            {"id": 2, "region": "us", "line": {"item": 1}},
            {"id": 3, "region": "eu", "line": {"item": 9, "code": "x"}},
            {"id": 4, "region": None, "line": {"item": 1, "code": "x"}},
            {"id": 5, "region": "eu", "line": {"item": 2, "code": "y", "tags": []}},
        ]
        produce(rig.kafka.bootstrap_servers, topic, records)
        with rig.job(sql) as job:
            run_sql(rig.mariadb, "UPDATE busy SET n = n + 1", schema=schema)
            opened = job.wait_joining()
            assert {c["channel"].split("/")[0] for d in opened["dimensions"] for c in d["channels"]}
            rows = sorted(job.wait_output(path, 3), key=lambda r: r["id"])
            assert [(r["id"], str(r["total"]), r["label"], r["size"]) for r in rows] == [
                (1, "1.50", None, "small"),
                (2, "2.50", None, "BIG"),
                (5, "3.00", None, "BIG"),
            ]
            assert [r["line"] for r in rows] == [
                {"item": 1, "code": "x", "tags": ["a", None]},
                {"item": 1, "code": None, "tags": None},
                {"item": 2, "code": "y", "tags": []},
            ]
            counts = job.wait_all_joined()
            assert counts["probe"]["unmatched"] == 5
        assert len(rig.rows(path)) == 3, "rm keeps the output unless asked"


NESTED_DDL = (
    "payload ROW<id BIGINT, tags ARRAY<STRING>, seen MAP<STRING, INT>>, "
    "`at` ROW<x INT, last STRING>, proctime AS PROCTIME()"
)


def test_rows_go_to_a_topic_with_their_coordinates_and_bad_records_to_the_dead_letters(
    rig: Rig,
) -> None:
    source = create_topic(rig.kafka.bootstrap_servers)
    target = create_topic(rig.kafka.bootstrap_servers)
    with new_schema(rig.mariadb, USERS, fill_users(10)) as schema:
        sql = (
            cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
            + kafka_table(rig.kafka, "click_event", source, NESTED_DDL)
            + "CREATE TABLE enriched (user_id BIGINT, name STRING, tags ARRAY<STRING>, "
            "seen MAP<STRING, INT>, at ROW<x INT, last STRING>) WITH ('connector'='kafka', "
            f"'topic'='{target}', 'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}', "
            "'format'='json', 'key.format'='json', 'key.fields'='user_id');"
            "INSERT INTO enriched "
            "SELECT c.payload.id, u.name, payload.tags, c.payload.seen, `at` FROM click_event AS c "
            "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.payload.id = u.user_id "
            "WHERE payload.tags[1] = 'web';"
        )
        full = {"id": 1, "tags": ["web", None], "seen": {"x": 1}}
        unfit = b'{"payload":{"id":"x"}}'
        values: list[Any] = [
            {"payload": full, "at": {"x": 7, "last": "n"}},
            b"{not json",
            {"payload": {"id": 99, "tags": ["web"]}},
            unfit,
            None,
        ]
        keys = [None, None, None, None, "tombstone"]
        produce(rig.kafka.bootstrap_servers, source, values, keys=keys)
        with rig.job(sql) as job:
            job.wait_joining()
            wait_until(
                lambda: sum(end_offsets(rig.kafka.bootstrap_servers, target).values()) >= 2,
                what="two records come out",
            )
            out = consume(rig.kafka.bootstrap_servers, target, count=2)
            assert [json.loads(r.value) for r in out] == [
                {
                    "user_id": 1,
                    "name": "user 1",
                    "tags": ["web", None],
                    "seen": {"x": 1},
                    "at": {"x": 7, "last": "n"},
                },
                {"user_id": 99, "name": None, "tags": ["web"], "seen": None, "at": None},
            ]
            assert [json.loads(r.key) for r in out] == [{"user_id": 1}, {"user_id": 99}]
            headers = [{k: v.decode() for k, v in r.headers} for r in out]
            assert [h["sluice-src-offset"] for h in headers] == ["0", "2"]
            assert {h["sluice-src-topic"] for h in headers} == {source}
            assert all(h["sluice-dim-version"].startswith("user_info=") for h in headers)
            dead = job.wait_for(lambda s: s["probe"]["dead_letters"] == 3, "three dead letters")
            assert dead["probe"]["joined_records"] == 2
            letters = rig.rows(str(job.directory / "dead_letters"))
            assert sorted(letter["offset"] for letter in letters) == [1, 3, 4]
            assert all(letter["reason"] for letter in letters)
            assert {bytes(letter["value"] or b"") for letter in letters} == {
                b"{not json",
                unfit,
                b"",
            }
