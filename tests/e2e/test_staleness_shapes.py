"""`join.max-staleness` of every shape of a job: shared tables, event time, stores, failover.

In each case a source stands still while it is changed and records come. The gate holds, lets go by
itself, and no record has met a row that was too old for it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from joins.adapters.delta.versions import delta_options
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.object_store import object_store
from tests.support.replicas import replicas
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import USERS, USERS_DDL, enrich_by, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.staleness import KEY, Load, halted
from tests.support.topics import create_topic, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
BOUND_MS = 6_000
OPTION = f"'join.max-staleness'='{BOUND_MS} ms'"
CDC = "joins.adapters.mysql.binlog"
Rows = Callable[[], list[dict[str, Any]]]


def update(database: MariaDb, schema: str) -> Callable[[int], None]:
    def change(number: int) -> None:
        statement = f"UPDATE user_info SET name = '{number}' WHERE user_id = {KEY}"
        run_sql(database, statement, schema=schema)

    return change


def processes_of(job: RunningJob) -> list[psutil.Process]:
    found = wait_until(lambda: job.children(CDC), what="the source's process")
    assert found
    return found


def server_process(database: MariaDb) -> list[psutil.Process]:
    port = f"--port={database.port}"
    every = psutil.process_iter(["name", "cmdline"])
    return [p for p in every if p.info["name"] == "mariadbd" and port in p.info["cmdline"]]


def begins(load: Load, rows: Rows) -> None:
    """Some records are joined with rows that have changed."""
    wait_until(lambda: load.acknowledged_ms and len(rows()) >= 20, deadline_s=40, what="20 rows")


def holds(job: RunningJob) -> dict[str, Any]:
    held = job.wait_for(lambda s: s["holding"], "the gate holds")
    assert (held["phase"], held["holding"]["state"]) == ("JOIN", "HOLDING")
    assert 'table "user_info" is as of' in held["reason"]
    assert [each["table"] for each in held["holding"]["tables"]] == ["user_info"]
    return held


def lets_go(job: RunningJob, load: Load, rows: Rows) -> None:
    """All that was sent until now comes out, each record once, none with a row that is too old."""
    job.wait_for(lambda s: not s["holding"] and s["state"] == "JOINING", "it lets go")
    sent = load.sent
    wait_until(lambda: len(rows()) >= sent, deadline_s=40, what=f"{sent} rows")
    found = rows()
    places = {(row["_partition"], row["_offset"]) for row in found}
    assert len(places) == len(found), "a record was joined twice"
    assert load.stale_rows(found) == []
    assert max(int(row["name"]) for row in found if row["name"].isdigit()) > 0


def waits_longer_than_the_bound() -> None:
    time.sleep(BOUND_MS / 1000)  # what waits is more than the bound


@pytest.fixture(scope="module")
def rig(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaBroker, mariadb: MariaDb, prepared: None
) -> Iterator[Rig]:
    settings = {"freshness_interval_s": 0.5, "runners": "shared"}
    with running_rig(tmp_path_factory.mktemp("rig"), kafka, mariadb, **settings) as found:
        yield found


def test_a_job_that_reads_a_shared_table_has_a_bound_of_its_own(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs read one copy; the one with a bound holds while the table's own job stands still."""
    monkeypatch.setenv("SLUICE_SECRET_CDC", rig.mariadb.cdc_password)
    servers, paths = rig.kafka.bootstrap_servers, [unique_name("shared") for _ in range(2)]
    topics = [create_topic(servers, partitions=2) for _ in paths]
    with new_schema(rig.mariadb, USERS, fill_users(5)) as schema:
        sql = cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
        sql = sql.replace("CREATE TABLE", "CREATE SHARED TABLE")
        sql = sql.replace(f"'{rig.mariadb.cdc_password}'", "'${secret:cdc}'")
        rig.client.post("/v1/tables", json={"sql": sql}).raise_for_status()
        table = RunningJob(rig, rig.get("/v1/tables/user_info")["job_id"])
        free, bound = (enrich_by(rig, "", *each) for each in zip(topics, paths, strict=True))
        bound = bound.replace("JOIN user_info", f"JOIN user_info /*+ OPTIONS({OPTION}) */")
        load = Load(update(rig.mariadb, schema), servers, topics[1], BOUND_MS)
        with rig.job(free) as other, rig.job(bound) as job, load.running():
            other.wait_joining()
            job.wait_joining()
            begins(load, lambda: rig.rows(paths[1]))
            with halted(processes_of(table)):
                holds(job)
                waits_longer_than_the_bound()
                assert other.status()["holding"] is None
            lets_go(job, load, lambda: rig.rows(paths[1]))
        wait_until(
            lambda: rig.client.delete("/v1/tables/user_info").status_code == 204,
            what="the shared table is removed",
        )


TIMED = (
    "CREATE TABLE user_info (user_id BIGINT PRIMARY KEY, name VARCHAR(40), since DATETIME(3))",
    f"INSERT INTO user_info VALUES ({KEY}, 'first', '2024-01-01 00:00:00')",
)


def at_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def test_records_in_event_time_wait_for_the_table_before_they_wait_for_watermarks(
    rig: Rig,
) -> None:
    """A version belongs to a record by their times; a table that stands still lets none pass."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("timed")
    topic = create_topic(servers, partitions=2)
    with new_schema(rig.mariadb, *TIMED) as schema:

        def change(number: int) -> None:
            run_sql(
                rig.mariadb,
                f"UPDATE user_info SET name = '{number}', since = '{at_now()}' "
                f"WHERE user_id = {KEY}",
                schema=schema,
            )

        columns = (
            "user_id BIGINT, name STRING, since TIMESTAMP(3), PRIMARY KEY (user_id) NOT ENFORCED, "
            "WATERMARK FOR since AS since"
        )
        timed = "user_id BIGINT, item_id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
        idle = ("'scan.watermark.idle-timeout'='5 s'",)
        one_channel = (OPTION, "'changelog.partitions'='1'")  # each row moves its watermark
        sql = (
            cdc_table(rig.mariadb, schema, "user_info", columns, one_channel)
            + kafka_table(rig.kafka, "clicks", topic, timed, idle)
            + f"CREATE TABLE enriched (item_id BIGINT, name STRING) WITH ('connector'='delta', "
            f"'path'='{path}'); INSERT INTO enriched SELECT c.item_id, u.name FROM clicks AS c "
            "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.ts AS u ON c.user_id = u.user_id;"
        )
        load = Load(
            change,
            servers,
            topic,
            BOUND_MS,
            lambda number: {"user_id": KEY, "item_id": number, "ts": at_now()},
        )
        with rig.job(sql) as job, ExitStack() as at_end:
            job.wait_joining()
            at_end.enter_context(load.running())  # the copy has the first version
            begins(load, lambda: rig.rows(path))
            with halted(processes_of(job)):
                holds(job)
                waits_longer_than_the_bound()
            lets_go(job, load, lambda: rig.rows(path))
            assert job.status()["event_time"]["late_records"] == 0, "a hold makes no record late"


def test_a_runner_that_begins_while_records_wait_holds_them_by_what_the_store_has(
    tmp_path: Path,
    kafka: KafkaBroker,
    own_database: MariaDb,
    prepared: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everything of the job is in an object store, and its runner is killed while it holds."""
    servers, path = kafka.bootstrap_servers, unique_name("stored")
    topic, mariadb = create_topic(servers, partitions=2), own_database
    with ExitStack() as at_end:
        store = at_end.enter_context(object_store())
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        out = store.path(f"lake/{path}")

        def rows() -> list[dict[str, Any]]:
            try:
                table = DeltaTable(str(out), storage_options=delta_options(out))
                return list(table.to_pyarrow_table().to_pylist())
            except TableNotFoundError:
                return []

        schema = at_end.enter_context(new_schema(mariadb, USERS, fill_users(5)))
        settings = {"warehouse": store.warehouse, "freshness_interval_s": 0.5}
        rig = at_end.enter_context(running_rig(tmp_path, kafka, mariadb, **settings))
        job = at_end.enter_context(rig.job(enrich_sql(rig, schema, topic, path, (OPTION,))))
        job.wait_joining()
        load = Load(update(mariadb, schema), servers, topic, BOUND_MS)
        at_end.enter_context(load.running())
        begins(load, rows)
        with halted(server_process(mariadb)):
            holds(job)
            pinned = job.pins.newest()
            assert pinned is not None
            assert pinned.looked_up is not None
            another_runner(job, job.kill_runner())
            waits_longer_than_the_bound()
            assert load.stale_rows(rows()) == []
        lets_go(job, load, rows)


def another_runner(job: RunningJob, killed: int) -> None:
    """It may be stalled: the database does not answer."""
    job.wait_for(lambda s: s["runner"]["pid"] not in (None, killed), "another runner")


def test_a_failover_of_the_database_holds_and_tokens_go_on(
    tmp_path: Path, rig: Rig, database_home: Path
) -> None:
    """A replica with every transaction answers in its place; GTIDs name the same writes there."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("moved")
    topic = create_topic(servers, partitions=2)
    with ExitStack() as at_end:
        pair = at_end.enter_context(replicas(tmp_path, database_home))
        primary, replica = pair.primary, pair.replica
        run_sql(primary, "CREATE DATABASE shop")
        run_sql(primary, USERS, fill_users(5), schema="shop")
        rig = replace(rig, mariadb=primary)
        sql = enrich_sql(rig, "shop", topic, path, (OPTION,))
        sql = sql.replace(f"'port'='{primary.port}'", f"'port'='{pair.address}'")
        job = at_end.enter_context(rig.job(sql))
        job.wait_joining()
        moving = threading.Lock()

        def change(number: int) -> None:
            with moving:
                update(pair.answering, "shop")(number)

        load = Load(change, servers, topic, BOUND_MS)
        at_end.enter_context(load.running())
        begins(load, lambda: rig.rows(path))

        def waited(position: str) -> int:
            def look() -> dict[str, Any] | None:
                body = {"table": "user_info", "position": position, "timeout_s": 10}
                answer = rig.client.post(f"/v1/jobs/{job.id}/freshness/wait", json=body)
                assert answer.is_success, answer.text
                return answer.json() if answer.json()["batch"] is not None else None

            return int(wait_until(look, what=f"{position} is in a batch")["batch"])

        def place_and_gtid(database: MariaDb) -> tuple[str, str]:
            file, pos = run_sql(database, "SHOW MASTER STATUS")[0][:2]
            return f"{file}:{pos}", str(run_sql(database, "SELECT @@GLOBAL.gtid_binlog_pos")[0][0])

        place, before = place_and_gtid(primary)
        first = waited(before)
        assert waited(place) <= first
        with moving:
            pair.wait_replicated()
            with halted(server_process(primary)):
                holds(job)
            pair.fail_over()
        _, after = place_and_gtid(replica)
        assert first < waited(after)
        assert waited(before) == first, "the same write by its GTID, on either server"
        lets_go(job, load, lambda: rig.rows(path))
        (table,) = job.status()["dimensions"]
        assert table["generation"] == 1, "it goes on without a new copy"
