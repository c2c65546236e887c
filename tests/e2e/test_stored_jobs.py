"""Jobs in Azure whose machine is lost with their checkpoints: a shared table, and its reader."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from joins.adapters.delta.versions import delta_options
from joins.adapters.store_path import StorePath
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.azurite import Azurite, azurite
from tests.support.foreign_topics import row
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig, upsert_table
from tests.support.shop import CLICKS_DDL, USERS, USERS_DDL, click, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
TITLES_DDL = "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"


def create_table(rig: Rig, schema: str) -> RunningJob:
    sql = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
    sql = sql.replace("CREATE TABLE", "CREATE SHARED TABLE")
    sql = sql.replace(f"'{rig.mariadb.cdc_password}'", "'${secret:cdc}'")
    created = rig.client.post("/v1/tables", json={"sql": sql})
    assert created.is_success, created.text
    return RunningJob(rig, rig.get("/v1/tables/user_info")["job_id"])


def statement(rig: Rig, titles: str, clicks: str, path: str) -> str:
    return (
        upsert_table(rig.kafka, "titles", titles, TITLES_DDL)
        + kafka_table(rig.kafka, "click_event", clicks, CLICKS_DDL)
        + f"CREATE TABLE enriched (item_id BIGINT, name STRING, title STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, t.name FROM click_event AS c "
        "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id "
        "LEFT JOIN titles FOR SYSTEM_TIME AS OF c.proctime AS t ON c.item_id = t.id;"
    )


def lose(*jobs: RunningJob) -> None:
    """What a machine had of the jobs beside what says where the rest is."""
    for job in jobs:
        job.rig.client.post(f"/v1/jobs/{job.id}:pause").raise_for_status()
    for job in jobs:
        job.wait_state("PAUSED")
        for name in ("checkpoint", "requests", "index"):
            shutil.rmtree(job.directory / name, ignore_errors=True)
    for job in jobs:
        job.rig.client.post(f"/v1/jobs/{job.id}:resume").raise_for_status()


def as_of(dimension: dict[str, Any]) -> int:
    """T of the version that the next batch meets."""
    return (dimension["freshness"] or {}).get("as_of_ms") or 0


def generations(job: RunningJob) -> dict[str, int]:
    return {each["name"]: each["generation"] for each in job.status()["dimensions"]}


@pytest.fixture
def store(tmp_path: Path, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azurite]:
    """Whoever starts now has its login, and the database's, in the environment."""
    monkeypatch.setenv("SLUICE_SECRET_CDC", mariadb.cdc_password)
    with azurite(tmp_path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def rig(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, prepared: None, store: Azurite
) -> Iterator[Rig]:
    """A control plane whose jobs have all in the store, and keep house every second."""
    given: dict[str, Any] = {"warehouse": store.warehouse, "maintenance_interval_s": 1.0}
    with running_rig(tmp_path / "rig", kafka, mariadb, **given) as running:
        yield running


def rows_of(place: StorePath) -> dict[int, Any]:
    """Item → name and title; each item is there once."""
    with suppress(TableNotFoundError):
        table = DeltaTable(str(place), storage_options=delta_options(place)).to_pyarrow_table()
        found = [(r["item_id"], (r["name"], r["title"])) for r in table.to_pylist()]
        assert len(dict(found)) == len(found), "a record was joined twice"
        return dict(found)
    return {}


def test_a_shared_table_and_its_reader_go_on_without_what_their_machine_had(
    rig: Rig, store: Azurite
) -> None:
    path, servers = unique_name("stored"), rig.kafka.bootstrap_servers
    out = store.path(f"lake/{path}")
    clicks = create_topic(servers, partitions=1)
    titles = create_topic(servers, partitions=2, config={"cleanup.policy": "compact"})
    keys = [{"id": n} for n in range(9)]
    produce(servers, titles, [row(n, f"title {n}") for n in range(9)], keys=keys)
    produce(servers, clicks, [click(1, 1), click(2, 2)])
    with new_schema(rig.mariadb, USERS, fill_users(100)) as schema:
        table = create_table(rig, schema)
        job = rig.submit(statement(rig, titles, clicks, path))
        job.wait_joining()
        job.wait_for(lambda _: len(rows_of(out)) == 2, "the first rows")
        before = generations(job)
        lease = f"lake/_sluice/jobs/{table.id}/files/shared/checkpoint/leases/{job.id}.json"
        assert store.keys(lease) == [lease]
        lose(table, job)
        job.wait_joining()
        run_sql(rig.mariadb, "UPDATE user_info SET name = 'new' WHERE user_id = 3", schema=schema)
        produce(servers, titles, [row(3, "changed")], keys=[{"id": 3}])
        # a reader that comes later than its table's commit does not count the commit's changes
        changed_ms = time.time_ns() // 1_000_000
        job.wait_for(lambda s: all(as_of(d) > changed_ms for d in s["dimensions"]), "T is newer")
        produce(servers, clicks, [click(3, 3), click(4, 4)])
        job.wait_for(lambda _: len(rows_of(out)) == 4, "what came behind")
        rows = rows_of(out)
        assert (rows[3], rows[4][1]) == (("new", "changed"), "title 4")
        assert generations(job) == before, "no table was copied again"
        rig.remove(job, output=True)
        assert store.keys(lease) == []
