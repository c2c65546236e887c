"""The stream's topic grows under a running job; `topic-loss` has what it must not survive.

And what a batch has pinned is gone when it is run again.
"""

import shutil
from collections.abc import Iterator

import pytest
from deltalake import DeltaTable

from joins.durable.pins import PinStore
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import add_partitions, create_topic, produce, unique_name

pytestmark = pytest.mark.experiment


@pytest.fixture(scope="module")
def rig(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaBroker, mariadb: MariaDb, prepared: None
) -> Iterator[Rig]:
    """Batch 1 of each job is killed behind its pin, and no fold is made."""
    settings = {
        "failpoints": "C6=kill#1",
        "fold_interval_s": 3600.0,
        "restart_backoff_min_s": 5.0,
        "runners": "shared",
    }
    with running_rig(tmp_path_factory.mktemp("rig"), kafka, mariadb, **settings) as running:
        yield running


def test_partitions_that_are_added_while_a_batch_is_uncommitted_are_joined(rig: Rig) -> None:
    """Batch 1 is planned on one partition and fails; when it is run again there are three."""
    servers = rig.kafka.bootstrap_servers
    topic, path = create_topic(servers), unique_name("grow")
    with (
        new_schema(rig.mariadb, USERS, fill_users(20)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [click(1, 0)])
        job.wait_output(path, 1)
        produce(servers, topic, [click(2, 1)])
        met = job.directory / "checkpoint" / "failpoints" / "C6=kill#1"
        job.wait_for(lambda _: met.exists(), "batch 1 has failed")
        add_partitions(servers, topic, 3)
        for partition in (1, 2):
            produce(servers, topic, [click(3, 10 + partition)], partition=partition)
        rows = job.wait_output(path, 4)
        assert sorted(row["item_id"] for row in rows) == [0, 1, 11, 12]
        pin = job.pins.read(1)
        assert pin is not None
        assert dict(pin.end_offsets) == {0: 2}, "the batch is what it was planned to be"
        status = job.wait_all_joined()
        assert status["acknowledgements"] == []
        assert sorted(status["probe"]["next_offsets"]) == ["0", "1", "2"]


def append_a_version(job: RunningJob, mariadb: MariaDb, schema: str) -> None:
    before = job.status()["dimensions"][0]["index_version"]
    run_sql(mariadb, "UPDATE user_info SET name = 'another' WHERE user_id = 20", schema=schema)
    job.wait_for(
        lambda s: s["dimensions"][0]["index_version"] > before, "a version behind the opening"
    )


def lose_the_versions_so_far(job: RunningJob) -> None:
    """Somebody compacts and vacuums a changelog; the newest version has all of its rows."""
    table = DeltaTable(job.directory / "tables" / "user_info" / "changelog")
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    shutil.rmtree(job.directory / "index")


def test_a_batch_whose_version_is_gone_waits_until_it_is_pinned_anew_and_has_its_rows_once(
    rig: Rig,
) -> None:
    """Batch 1 is killed behind its pin; there is no fold that its index could be made of."""
    servers = rig.kafka.bootstrap_servers
    topic, path = create_topic(servers), unique_name("expired")
    with (
        new_schema(rig.mariadb, USERS, fill_users(20)) as schema,
        rig.job(enrich_sql(rig, schema, topic, path)) as job,
    ):
        produce(servers, topic, [click(1, 0)])
        job.wait_output(path, 1)
        append_a_version(job, rig.mariadb, schema)
        produce(servers, topic, [click(2, 1)])
        met = job.directory / "checkpoint" / "failpoints" / "C6=kill#1"
        job.wait_for(lambda _: met.exists(), "batch 1 has failed")
        job.stop()
        lose_the_versions_so_far(job)
        job.start()
        stalled = job.wait_for(
            lambda s: s["state"] == "STALLED" and s["error"]["type"] == "pinned-version-expired",
            "the lost version is told",
        )
        assert "repin" in stalled["error"]["hint"]
        assert len(rig.rows(path)) == 1
        told = rig.client.post(
            f"/v1/jobs/{job.id}:acknowledge",
            json={"cause": "pinned-version-expired", "choice": "repin", "reason": "vacuumed"},
        )
        assert told.status_code == 200, told.text
        produce(servers, topic, [click(3, 2)])
        rows = sorted(job.wait_output(path, 3), key=lambda row: row["item_id"])
        assert [(row["item_id"], row["name"]) for row in rows] == [
            (0, "user 1"), (1, "user 2"), (2, "user 3"),
        ]  # fmt: skip
        pins = job.pins
        assert pins.read(1) is None
        lost = PinStore(job.directory / "checkpoint" / "pins" / "abandoned").read(1)
        again = pins.read(rows[1]["_batch"])
        assert lost is not None
        assert again is not None
        assert again.versions["user_info"] > lost.versions["user_info"]
        assert dict(again.start_offsets) == dict(lost.start_offsets)
        job.wait_state("JOINING")
