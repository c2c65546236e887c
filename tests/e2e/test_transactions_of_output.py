"""An output in transactions, its runner killed before one commit and behind another."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import USERS, USERS_DDL, click, fill_users
from tests.support.sql import new_schema
from tests.support.topics import consume, create_topic, produce

pytestmark = pytest.mark.experiment
FAULTS = "C15=kill#0;C16=kill#1;C15=raise#2;C16=raise#3;C6=kill#4"
BATCHES, RECORDS = 6, 50


def sql(rig: Rig, schema: str, topic: str, output: str) -> str:
    once = ("'sink.delivery-guarantee'='exactly-once'", "'sink.transactional-id-prefix'='shop'")
    return (
        cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
        + kafka_table(rig.kafka, "clicks", topic, "user_id BIGINT, item_id BIGINT, p AS PROCTIME()")
        + kafka_table(rig.kafka, "named", output, "item_id BIGINT, name STRING", once)
        + "INSERT INTO named SELECT c.item_id, u.name FROM clicks AS c "
        "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.p AS u ON c.user_id = u.user_id;"
    )


def test_readers_of_committed_records_see_each_row_once_whatever_is_killed(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    servers = kafka.bootstrap_servers
    topic, output = create_topic(servers, partitions=2), create_topic(servers, partitions=3)
    settings = {"failpoints": FAULTS, "restart_backoff_max_s": 1.0, "runners": "shared"}
    with (
        running_rig(tmp_path, kafka, mariadb, **settings) as rig,
        new_schema(mariadb, USERS, fill_users(20)) as schema,
        rig.job(sql(rig, schema, topic, output)) as job,
    ):
        for number in range(BATCHES):
            first = number * RECORDS
            clicks = [click(1 + n % 20, n) for n in range(first, first + RECORDS)]
            produce(servers, topic, clicks)
            job.wait_for(partial(has_joined, first + RECORDS), "all is joined", deadline_s=120)
            assert sources(kafka, output) == once(topic, kafka)
        assert faults_met(job) == set(FAULTS.split(";"))
        status = job.status()
        assert status["epoch"] == 4, "it was killed three times"
        replayed = rig.get(f"/v1/jobs/{job.id}/batches")["items"]
        assert all(batch["committed"] for batch in replayed)


def has_joined(records: int, status: dict[str, Any]) -> bool:
    probe = status["probe"]
    return bool(probe and probe["joined_records"] == records)


def sources(kafka: KafkaBroker, output: str) -> Counter[tuple[bytes, bytes]]:
    headers = [dict(record.headers) for record in consume(kafka.bootstrap_servers, output)]
    return Counter((h["sluice-src-partition"], h["sluice-src-offset"]) for h in headers)


def once(topic: str, kafka: KafkaBroker) -> Counter[tuple[bytes, bytes]]:
    records = consume(kafka.bootstrap_servers, topic)
    return Counter((str(r.partition).encode(), str(r.offset).encode()) for r in records)


def faults_met(job: RunningJob) -> set[str]:
    return {path.name for path in (job.directory / "checkpoint" / "failpoints").iterdir()}
