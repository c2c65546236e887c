"""Windows into a Delta table by its primary key, end to end: each has its newest row, once."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from joins.durable.checkpoint import read_json
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
FAULTS = ("C8=kill@2",)  # experiment `event-time` has the other points


def sql(rig: Rig, topic: str, path: str) -> str:
    return f"""SET 'table.exec.emit.allow-lateness' = '1 h';
CREATE TABLE clicks (item STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector'='kafka', 'topic'='{topic}', 'format'='json',
    'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}',
    'scan.startup.mode'='earliest-offset');
CREATE TABLE counts (start TIMESTAMP(3), item STRING, n BIGINT,
    PRIMARY KEY (start, item) NOT ENFORCED) WITH ('connector'='delta', 'path'='{path}');
INSERT INTO counts SELECT window_start, item, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, item;
"""


def found(rig: Rig, path: str) -> list[tuple[str, str, int]]:
    rows = rig.rows(path)
    return sorted((f"{row['start']:%H:%M}", row["item"], row["n"]) for row in rows)


def watermark(job: RunningJob) -> str | None:
    status = read_json(job.directory / "status.json") or {}
    at_ms = (status.get("event_time") or {}).get("watermark_ms")
    return None if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"


def test_late_records_replace_the_row_of_their_window_and_kills_change_none(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("counts")
    topic = create_topic(servers, partitions=1)
    with (
        running_rig(tmp_path, kafka, mariadb, failpoints=";".join(FAULTS)) as rig,
        rig.job(sql(rig, topic, path)) as job,
    ):

        def click(*clicks: tuple[str, str]) -> None:
            values = [{"item": item, "ts": f"2024-01-01 {at}"} for item, at in clicks]
            produce(servers, topic, values, partition=0)

        def wait_for(*rows: tuple[str, str, int]) -> None:
            job.wait_for(lambda _: found(rig, path) == list(rows), f"{rows}", deadline_s=600)

        click(("a", "10:00:01"), ("b", "10:00:59"), ("a", "10:01:30"))
        wait_for(("10:00", "a", 1), ("10:00", "b", 1))
        click(("a", "10:00:30"), ("a", "10:02:30"))
        wait_for(("10:00", "a", 2), ("10:00", "b", 1), ("10:01", "a", 1))
        click(("c", "10:00:02"), ("a", "10:00:02"), ("a", "10:01:02"))
        rows = [("10:00", "a", 3), ("10:00", "b", 1), ("10:00", "c", 1), ("10:01", "a", 2)]
        wait_for(*rows)
        job.wait_for(lambda _: watermark(job) == "10:02:30", "the watermark stays")
        assert found(rig, path) == rows
        markers = job.directory / "checkpoint" / "failpoints"
        assert {marker.name for marker in markers.iterdir()} == set(FAULTS)
        assert not list((job.directory / "staged_rows").iterdir())
