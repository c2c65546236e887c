"""The stream's topic grows under a running job; `topic-loss` has what it must not survive."""

from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from joins.pins import PinStore
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema
from tests.support.topics import create_topic, produce, unique_name

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]


def grow(servers: str, topic: str, partitions: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.create_partitions({topic: partitions})
    finally:
        admin.close()


@pytest.mark.parametrize("action", ["kill", "raise"])
def test_partitions_that_are_added_while_a_batch_is_uncommitted_are_joined(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path], action: str
) -> None:
    """Batch 1 is planned on one partition and fails; when it is run again there are three."""
    servers = kafka.bootstrap_servers
    topic, path = create_topic(servers), unique_name("grow")
    faults = {"failpoints": f"C6={action}#1", "restart_backoff_min_s": 5.0}
    with (
        running_rig(tmp_path, kafka, mariadb, **faults) as rig,
        new_schema(mariadb, USERS, fill_users(20)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [click(1, 0)])
        job.wait_output(path, 1)
        produce(servers, topic, [click(2, 1)])
        met = job.directory / "checkpoint" / "failpoints" / f"C6={action}#1"
        job.wait_for(lambda _: met.exists(), "batch 1 has failed")
        grow(servers, topic, 3)
        for partition in (1, 2):
            produce(servers, topic, [click(3, 10 + partition)], partition=partition)
        rows = job.wait_output(path, 4)
        assert sorted(row["item_id"] for row in rows) == [0, 1, 11, 12]
        pin = PinStore(job.directory / "checkpoint" / "pins").read(1)
        assert pin is not None
        assert dict(pin.end_offsets) == {0: 2}, "the batch is what it was planned to be"
        status = job.wait_for(lambda s: s["probe"]["lag_records"] == 0, "all is joined")
        assert status["acknowledgements"] == []
        assert sorted(status["probe"]["next_offsets"]) == ["0", "1", "2"]
