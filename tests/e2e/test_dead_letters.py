"""Dead letters of a real job over REST: seen, corrected, joined under their own batch, once."""

import pytest

from tests.support.poison import KINDS, PROBE_COLUMNS, REASONS
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

USERS = "CREATE TABLE users (user_id BIGINT PRIMARY KEY, name VARCHAR(40))"
FILL = "INSERT INTO users VALUES (1, 'one'), (2, 'two')"
SMALL = [kind for kind in KINDS if len(kind.value or b"") < 1 << 16]
BAD = [kind.name for kind in SMALL if kind.verdict == "bad"]


def letters(rig: Rig, job_id: str) -> list[dict]:
    found, query = [], "limit=7"
    while True:
        page = rig.get(f"/v1/jobs/{job_id}/dead-letters?{query}")
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        query = f"limit=7&cursor={page['next_cursor']}"


def replay(rig: Rig, job_id: str, body: dict) -> dict:
    answer = rig.client.post(f"/v1/jobs/{job_id}/dead-letters:replay", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def healthy(rig: Rig, job_id: str) -> None:
    report = rig.get(f"/v1/jobs/{job_id}/doctor")
    assert report["ok"], [c for c in report["checks"] if c["ok"] is False]


# Columns that a statement does not read are not checked, so it reads all of them.
def statement(rig: Rig, schema: str, topic: str, path: str) -> str:
    columns = "user_id BIGINT NOT NULL, name STRING, PRIMARY KEY (user_id) NOT ENFORCED"
    return (
        cdc_table(rig.mariadb, schema, "users", columns)
        + kafka_table(rig.kafka, "clicks", topic, f"{PROBE_COLUMNS}, at AS PROCTIME()")
        + f"CREATE TABLE enriched ({PROBE_COLUMNS}, name STRING) WITH "
        f"('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.user_id, c.url, c.score, c.active, u.name FROM clicks AS c "
        "LEFT JOIN users FOR SYSTEM_TIME AS OF c.at AS u ON c.user_id = u.user_id;"
    )


def poisoned(rig: Rig, job: RunningJob, topic: str, path: str) -> list[dict]:
    """Send every kind; the dead letters, when all are there."""
    keys = ["k"] * len(SMALL)
    produce(rig.kafka.bootstrap_servers, topic, [k.value for k in SMALL], keys=keys)
    job.wait_output(path, len(SMALL) - len(BAD))
    job.wait_all_joined()
    found = letters(rig, job.id)
    assert [letter["offset"] for letter in found] == list(range(len(BAD)))
    for letter, kind in zip(found, SMALL, strict=False):
        assert REASONS[kind.name] in letter["reason"]
    return found


@pytest.mark.experiment
def test_after_a_fix_exactly_the_missing_rows_appear(rig: Rig) -> None:
    topic, path = create_topic(rig.kafka.bootstrap_servers), unique_name("letters")
    fixed = [
        {"partition": 0, "offset": at, "value": '{"user_id":1,"url":"/fixed"}'}
        for at in range(len(BAD) - 1)
    ]
    with (
        new_schema(rig.mariadb, USERS, FILL) as schema,
        rig.job(statement(rig, schema, topic, path)) as job,
    ):
        job.wait_joining()
        found = poisoned(rig, job, topic, path)
        healthy(rig, job.id)
        before = rig.rows(path)
        run_sql(rig.mariadb, "UPDATE users SET name = 'later'", schema=schema)
        done = replay(rig, job.id, {"records": fixed})
        assert (done["replay"], done["rows"], done["still_bad"]) == (1, len(fixed), [])
        again = replay(rig, job.id, {"records": fixed})
        assert (again["rows"], again["already_replayed"]) == (0, len(fixed))
        rest = replay(rig, job.id, {"all": True})
        assert [bad["offset"] for bad in rest["still_bad"]] == [len(BAD) - 1]
        counted = job.wait_for(lambda s: s["probe"]["open_dead_letters"] == 1, "one is open")
        assert counted["probe"]["replayed_dead_letters"] == len(fixed)

        after = rig.rows(path)
        batches = {letter["offset"]: letter["batch"] for letter in found}
        added = [row for row in after if row not in before]
        assert len(after) == len(before) + len(fixed)
        assert sorted((r["_offset"], r["_batch"], r["name"], r["url"]) for r in added) == [
            (at, batches[at], "one", "/fixed") for at in range(len(fixed))
        ]
        replayed_by = [letter["replayed_by"] for letter in letters(rig, job.id)]
        assert replayed_by == [*[1] * len(fixed), None]

        job.wait_restarted(job.kill_runner())
        job.wait_joining()
        assert len(rig.rows(path)) == len(after)
        job.stop()
        healthy(rig, job.id)
