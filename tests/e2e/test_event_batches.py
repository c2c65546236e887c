"""Event time end to end: records wait for both watermarks, and a kill changes no row."""

import re
from pathlib import Path
from typing import Any

import pytest

from joins.durable.checkpoint import read_json
from joins.lookback.explain_row import Coordinates
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from service.jobs.inspect.past import open_explainer
from tests.support.rig import Rig, RunningJob, cdc_table, running_rig
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

RATES = (
    "CREATE TABLE rates (currency VARCHAR(3) PRIMARY KEY, rate INT, since DATETIME(3))",
    "INSERT INTO rates VALUES ('USD', 1, '2024-01-01 10:00:00'), ('EUR', 7, '2024-01-01 10:00:00')",
)
RATES_DDL = (
    "currency STRING, rate INT, since TIMESTAMP(3), PRIMARY KEY (currency) NOT ENFORCED, "
    "WATERMARK FOR since AS since"
)


def order(number: int, currency: str, at: str) -> dict[str, Any]:
    return {"number": number, "currency": currency, "ts": f"2024-01-01 {at}"}


def sql(rig: Rig, schema: str, topic: str, path: str) -> str:
    rates = cdc_table(rig.mariadb, schema, "rates", RATES_DDL)
    return f"""{rates}
CREATE TABLE orders (number INT, currency STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector'='kafka', 'topic'='{topic}', 'format'='json',
    'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}',
    'scan.startup.mode'='earliest-offset');
CREATE TABLE priced (number INT, currency STRING, rate INT) WITH (
    'connector'='delta', 'path'='{path}');
INSERT INTO priced SELECT o.number, o.currency, r.rate
FROM orders AS o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency;
"""


def told(job: RunningJob) -> dict[str, Any]:
    status = read_json(job.directory / "status.json") or {}
    return status.get("event_time") or {}


def change(rig: Rig, schema: str, currency: str, rate: int, since: str) -> None:
    new = f"rate = {rate}, since = '2024-01-01 {since}'"
    run_sql(rig.mariadb, f"UPDATE rates SET {new} WHERE currency = '{currency}'", schema=schema)


@pytest.mark.experiment
def test_records_wait_for_both_watermarks_and_a_kill_changes_no_row(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    """Batch 1 is killed when its state is committed and its output is not."""
    servers, path = kafka.bootstrap_servers, unique_name("asof")
    topic = create_topic(servers, partitions=2)
    faults, one_partition = "C13=kill#1", 1
    with (
        running_rig(
            tmp_path, kafka, mariadb, failpoints=faults, changelog_partitions=one_partition
        ) as rig,
        new_schema(mariadb, *RATES) as schema,
        rig.job(sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [order(1, "USD", "10:05:00")], partition=0)
        early = [order(2, "EUR", "10:06:00"), order(3, "XXX", "10:00:00")]
        produce(servers, topic, early, partition=1)
        job.wait_for(lambda _: told(job).get("waiting_rows") == 2, "two wait for the rates")
        assert 'table "rates", partition 0' in told(job)["waits_for"]["text"]
        change(rig, schema, "USD", 2, "10:10:00")
        later = [order(4, "USD", "10:10:00"), order(5, "USD", "10:09:59.999")]
        produce(servers, topic, later, partition=0)
        produce(servers, topic, [order(6, "EUR", "10:20:00")], partition=1)
        change(rig, schema, "EUR", 8, "10:20:00")
        produce(servers, topic, [order(7, "USD", "10:30:00")], partition=0)
        rows = job.wait_output(path, 6)
        produce(servers, topic, [order(8, "USD", "10:01:00")], partition=0)
        job.wait_for(lambda _: told(job).get("late_records") == 1, "one is late")
        assert sorted((row["number"], row["currency"], row["rate"]) for row in rows) == [
            (1, "USD", 1),
            (2, "EUR", 7),
            (3, "XXX", None),
            (4, "USD", 2),
            (5, "USD", 1),
            (6, "EUR", 8),
        ]
        assert len(rig.rows(path)) == 6
        assert told(job)["waiting_rows"] == 1, "the one beyond both watermarks"
        assert (job.directory / "checkpoint" / "failpoints" / faults).exists()
        assert_batches_can_be_replayed(job)
        assert_records_can_be_explained(job, topic)


def assert_batches_can_be_replayed(job: RunningJob) -> None:
    """All, the killed one among them, while the runner lives; another state is noticed."""
    found = job.replays()
    assert [each["differences"] for each in found] == [[]] * len(found)
    assert {each["verdict"] for each in found} <= {"identical", "nothing-to-compare"}
    assert {each["compared_with"] for each in found} == {"commit"}
    assert sum(each["expected_rows"] for each in found) == 6
    released = next(
        each for each in found if each["expected_rows"] and each["pin"]["event"]["waiting"] > 1
    )
    path = job.directory / "checkpoint" / "pins" / f"{released['batch']:010d}.json"
    kept = path.read_text()
    try:
        path.write_text(re.sub(r'("waiting":)\d+}', r"\g<1>0}", kept))
        other = job.replays()[released["batch"]]
    finally:
        path.write_text(kept)
    told = {(each["kind"], each["table"]) for each in other["differences"]}
    assert told == {("extra", "output"), ("changed", "state")}


def assert_records_can_be_explained(job: RunningJob, topic: str) -> None:
    """One that waited, one that is unmatched, one that waits, and one that came too late."""
    with open_explainer(job.directory) as explainer:
        places = {"waited": (0, 0), "unmatched": (1, 1), "waits": (0, 3), "late": (0, 4)}
        found = {n: explainer.explain(Coordinates(topic, *p)) for n, p in places.items()}
    states = [each["state"] for each in found.values()]
    assert states == ["joined", "unmatched", "waiting", "late"]
    waited = found["waited"]
    way = waited["event_time"]
    assert way["arrived_in_batch"] < way["released_in_batch"] == waited["batch"]
    assert way["released_by_watermark_ms"] >= way["rowtime_ms"]
    (row,) = waited["output_rows"]
    assert (row["number"], row["rate"], row["_batch"]) == (1, 1, waited["batch"])
    (rates,) = waited["dimensions"]
    assert rates["version"] == waited["pin"]["versions"]["rates"]
    assert [(each["rate"], each["since"]) for each in rates["rows"]] == [
        (1, "2024-01-01 10:00:00.000000")
    ]
    assert found["waits"]["event_time"]["released_in_batch"] is None
    assert found["late"]["event_time"]["late"]["reason"] == "join"
