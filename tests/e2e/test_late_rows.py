"""`join.late-rows.wait` on real servers: rows in time, the bound, and a kill in between."""

from pathlib import Path

import pytest

from joins.durable.pins import Pin
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(900)]
WAIT_S = 120
WAIT = f"'join.late-rows.wait'='{WAIT_S} s'"


def _covers(pin: Pin, partition: int, offset: int) -> bool:
    first, end = pin.ranges().get(partition, (0, 0))
    return first <= offset < end


def test_records_wait_for_their_row_over_a_kill_and_leave_once(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """Users 1 to 9 are there, 10 to 19 come while their records wait, 20 to 29 never."""
    servers = kafka.bootstrap_servers
    topic, path = create_topic(servers), unique_name("late_rows")
    faults = {"failpoints": "C13=kill#1", "restart_backoff_min_s": 0.1}
    with (
        running_rig(tmp_path, kafka, mariadb, **faults) as rig,
        new_schema(mariadb, USERS, fill_users(9)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path, (WAIT,))) as job,
    ):
        job.wait_joining()
        produce(servers, topic, [click(n, n) for n in range(1, 30)])
        first = job.wait_output(path, 9)
        assert {(row["user_id"], row["name"]) for row in first} == {
            (n, f"user {n}") for n in range(1, 10)
        }
        waiting = job.wait_for(
            lambda s: s["event_time"] and s["event_time"]["waiting_rows"] == 20, "20 rows wait"
        )
        assert waiting["event_time"]["late_rows"]["tables"] == ["user_info"]
        assert waiting["event_time"]["late_rows"]["wait_ms"] == WAIT_S * 1000
        more = "INSERT INTO user_info SELECT seq, 'F', CONCAT('user ', seq) FROM seq_10_to_19"
        run_sql(mariadb, more, schema=schema)
        job.wait_output(path, 19)
        met = job.directory / "checkpoint" / "failpoints" / "C13=kill#1"
        assert met.exists(), "the runner died between the state's commit and the output's"
        rows = job.wait_output(path, 29, deadline_s=WAIT_S + 120.0)
        expected = {n: f"user {n}" if n < 20 else None for n in range(1, 30)}
        assert sorted(row["user_id"] for row in rows) == sorted(expected)
        assert {row["user_id"]: row["name"] for row in rows} == expected
        pins = [pin for n in range(max(r["_batch"] for r in rows) + 1) if (pin := job.pins.read(n))]
        for row in rows:
            (arrived,) = (p for p in pins if _covers(p, row["_partition"], row["_offset"]))
            waited_ms = pins[row["_batch"]].batch_timestamp_ms - arrived.batch_timestamp_ms
            assert (row["user_id"] >= 20) == (waited_ms >= WAIT_S * 1000)
        status = job.wait_for(lambda s: s["event_time"]["waiting_rows"] == 0, "no row waits")
        late = status["event_time"]["late_rows"]
        assert (late["matched"], late["expired"]) == (10, 10)

        for batch in sorted({row["_batch"] for row in rows}):
            url = f"/v1/jobs/{job.id}/batches/{batch}:replay?diff=true"
            answer = rig.client.post(url).json()
            assert answer["verdict"] == "identical", answer
        offsets = {row["user_id"]: row["_offset"] for row in rows}
        explained = {
            user: rig.get(f"/v1/jobs/{job.id}/rows/{topic}/0/{offsets[user]}")
            for user in (1, 10, 20)
        }
        assert "waited" not in explained[1]["reason"], explained[1]
        assert "s for user_info" in explained[10]["reason"], explained[10]
        assert explained[20]["state"] == "unmatched", explained[20]
        assert explained[20]["event_time"]["late_rows"]["waited_ms"] >= WAIT_S * 1000
