"""`join.late-rows.correct` on real servers: rows that come after the bound, over kills."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import CLICKS_DDL, USERS, USERS_DDL, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, produce, unique_name

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(900)]
WAIT_S = 2
OPTIONS = (f"'join.late-rows.wait'='{WAIT_S} s'", "'join.late-rows.correct'='1 d'")
EXPECTED = {n: f"user {n}" if n < 20 else None for n in range(1, 30)}
# Each fifth batch dies between the commit of the state and that of the output. A runner that starts
# again makes versions of the table, and batches for them, so that not each batch may die.
EACH = 5
KILLS = [f"C13=kill#{batch}" for batch in range(EACH, 100, EACH)]


def _more(first: int, last: int) -> str:
    users = f"seq_{first}_to_{last}"
    return f"INSERT INTO user_info SELECT seq, 'F', CONCAT('user ', seq) FROM {users}"


def _late(job: RunningJob, **counts: int) -> dict[str, Any]:
    def is_there(status: dict[str, Any]) -> bool:
        late = (status["event_time"] or {}).get("late_rows")
        return late is not None and all(late[name] == count for name, count in counts.items())

    return job.wait_for(is_there, f"late rows are {counts}", deadline_s=240.0)


def _by_user(rig: Rig, path: str) -> dict[int, dict[str, Any]]:
    rows = rig.rows(path)
    assert len({row["_offset"] for row in rows}) == len(rows), "no record has two rows"
    return {row["user_id"]: row for row in rows}


def _newest(job: RunningJob) -> int:
    pin = job.pins.newest()
    assert pin is not None, "the job has joined a batch"
    return pin.batch


def _corrected_by_a_batch_that_dies(
    rig: Rig, job: RunningJob, mariadb: MariaDb, schema: str, topic: str, path: str
) -> int:
    """Let rows come when the next batch dies, until one of them was in it; returns its user."""
    for user in range(10, 19):
        while (_newest(job) + 1) % EACH:
            number = _newest(job)
            produce(rig.kafka.bootstrap_servers, topic, [click(1, number)])
            job.wait_for(lambda _, seen=number: _newest(job) > seen, "another batch")
        run_sql(mariadb, _more(user, user), schema=schema)
        job.wait_for(lambda _, n=user: _by_user(rig, path)[n]["name"], "its name")
        batch = _by_user(rig, path)[user]["_batch"]
        if (job.directory / "checkpoint" / "failpoints" / f"C13=kill#{batch}").exists():
            return user
    raise AssertionError("no batch with a correction has died")


def test_rows_of_a_delta_table_are_corrected_over_kills(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """Users 1 to 9 are there, 10 to 19 come after the bound, 20 to 29 never."""
    servers = kafka.bootstrap_servers
    topic, path = create_topic(servers), unique_name("late_corrections")
    faults = {"failpoints": ";".join(KILLS), "runners": "shared"}
    with (
        running_rig(tmp_path, kafka, mariadb, **faults) as rig,
        new_schema(mariadb, USERS, fill_users(9)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path, OPTIONS)) as job,
    ):
        job.wait_joining()
        produce(servers, topic, [click(n, n) for n in range(1, 30)])
        _late(job, expired=20, corrected=0)
        job.wait_output(path, 29)
        before = {user: row["name"] for user, row in _by_user(rig, path).items()}
        assert before == {n: f"user {n}" if n < 10 else None for n in range(1, 30)}
        died = _corrected_by_a_batch_that_dies(rig, job, mariadb, schema, topic, path)
        run_sql(mariadb, _more(died + 1, 19), schema=schema)
        _late(job, expired=20, corrected=10)
        job.wait_for(lambda _: _by_user(rig, path)[19]["name"], "the last name")
        rows = _by_user(rig, path)
        assert {user: row["name"] for user, row in rows.items()} == EXPECTED

        for batch in sorted({row["_batch"] for row in rows.values()}):
            url = f"/v1/jobs/{job.id}/batches/{batch}:replay?diff=true"
            answer = rig.client.post(url).json()
            assert answer["verdict"] == "identical", answer
        explained = {
            user: rig.get(f"/v1/jobs/{job.id}/rows/{topic}/0/{rows[user]['_offset']}")
            for user in (1, died, 20)
        }
        assert "waited" not in explained[1]["reason"], explained[1]
        text = explained[died]["reason"]
        assert "went out with NULL, and was corrected" in text, explained[died]
        assert explained[20]["state"] == "unmatched", explained[20]
        assert explained[20]["event_time"]["late_rows"]["corrected_ms"] is None


def test_the_newest_record_of_a_key_is_the_corrected_one(rig: Rig) -> None:
    servers = rig.kafka.bootstrap_servers
    topic, output = create_topic(servers), create_topic(servers)
    with (
        new_schema(rig.mariadb, USERS, fill_users(9)) as schema,
        rig.job(
            cdc_table(rig.mariadb, schema, "user_info", USERS_DDL, OPTIONS)
            + kafka_table(rig.kafka, "click_event", topic, CLICKS_DDL)
            + "CREATE TABLE enriched (user_id BIGINT PRIMARY KEY NOT ENFORCED, item_id BIGINT, "
            f"name STRING) WITH ('connector'='upsert-kafka', 'topic'='{output}', "
            f"'properties.bootstrap.servers'='{servers}', 'key.format'='json', "
            "'value.format'='json');"
            "INSERT INTO enriched SELECT c.user_id, c.item_id, u.name FROM click_event AS c "
            "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;"
        ) as job,
    ):
        job.wait_joining()
        produce(servers, topic, [click(n, item) for item in (1, 2) for n in range(1, 30)])
        _late(job, expired=40, corrected=0)
        run_sql(rig.mariadb, _more(10, 19), schema=schema)
        _late(job, expired=40, corrected=20)
        newest = {record.key: record.value for record in consume(servers, output)}
        values = [json.loads(value) for value in newest.values()]
        assert {row["user_id"]: row["name"] for row in values} == EXPECTED
        assert {row["item_id"] for row in values} == {2}
