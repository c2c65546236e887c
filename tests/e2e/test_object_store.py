"""A job whose tables are in an object store: it joins there, writes there, and is killed there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from joins.adapters.delta.versions import delta_options
from joins.adapters.store_path import StorePath
from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.object_store import ObjectStore, object_store
from tests.support.rig import Rig, kafka_table, running_rig
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
ITEMS = pa.schema([("id", pa.int64()), ("title", pa.string())])


def items(*pairs: tuple[int, str]) -> pa.Table:
    ids, titles = zip(*pairs, strict=True)
    return pa.table([list(ids), list(titles)], schema=ITEMS)


def write(path: StorePath, rows: pa.Table) -> None:
    write_deltalake(str(path), rows, mode="append", storage_options=delta_options(path))


def rows_of(path: StorePath) -> list[dict[str, Any]]:
    return loaded(path).to_pyarrow_table().to_pylist()


def loaded(path: StorePath) -> DeltaTable:
    return DeltaTable(str(path), storage_options=delta_options(path))


def sql(kafka: KafkaBroker, topic: str, store: ObjectStore, name: str) -> str:
    return (
        f"CREATE TABLE item (id BIGINT, title STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ("
        f"'connector'='delta', 'path'='s3://{store.bucket}/{name}/item', {store.with_options}, "
        "'source.monitor-interval'='200 ms');"
        + kafka_table(kafka, "orders", topic, "item_id BIGINT, proctime AS PROCTIME()")
        + f"CREATE TABLE enriched (item_id BIGINT, title STRING) WITH ("
        f"'connector'='delta', 'path'='s3://{store.bucket}/{name}/out', {store.with_options});"
        "INSERT INTO enriched SELECT o.item_id, i.title FROM orders AS o "
        "LEFT JOIN item FOR SYSTEM_TIME AS OF o.proctime AS i ON o.item_id = i.id;"
    )


def order(item: int) -> dict[str, Any]:
    return {"item_id": item}


def test_a_job_joins_and_writes_in_a_store_once_whoever_is_killed(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, store: ObjectStore
) -> None:
    name, topic = unique_name("stored"), create_topic(kafka.bootstrap_servers, partitions=1)
    item, out = store.path(f"{name}/item"), store.path(f"{name}/out")
    write(item, items((1, "one"), (2, "two")))
    produce(kafka.bootstrap_servers, topic, [order(1), order(3)])
    with running_rig(tmp_path, kafka, mariadb, failpoints="C8=kill@2") as rig:
        job = rig.submit(sql(kafka, topic, store, name))
        job.wait_joining()
        wait_until(lambda: len(rows_of(out)) == 2, what="the first rows")
        write(item, items((3, "three")))
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 1, "item 3 is known")
        produce(kafka.bootstrap_servers, topic, [order(3), order(2)])
        job.wait_for(lambda s: (s["probe"] or {}).get("next_offsets") == {"0": 4}, "4 joined")
        found = sorted((r["_offset"], r["item_id"], r["title"]) for r in rows_of(out))
        assert found == [(0, 1, "one"), (1, 3, None), (2, 3, "three"), (3, 2, "two")]
        assert_nothing_shows_the_key(rig, job.id)
        assert_looked_back(rig, job.id)
        assert_refused(rig, kafka, topic, store, name)
        rig.remove(job, output=True)
    assert store.keys(f"{name}/out") == []
    assert len(rows_of(item)) == 3


def assert_nothing_shows_the_key(rig: Rig, job: str) -> None:
    directory = rig.settings.jobs_dir / job
    for file in (directory / "plan.json", directory / "runner.log", directory / "status.json"):
        assert "ci-secret-key" not in file.read_text(errors="replace"), file.name
    assert "ci-secret-key" not in rig.client.get(f"/v1/jobs/{job}").text


def assert_looked_back(rig: Rig, job: str) -> None:
    shown = rig.get(f"/v1/jobs/{job}/preview?limit=10")
    assert {row["values"]["_offset"] for row in shown["items"]} == {0, 1, 2, 3}
    batch = shown["batches"][0]["batch"]
    replayed = rig.client.post(f"/v1/jobs/{job}/batches/{batch}:replay")
    assert (replayed.status_code, replayed.json()["identical"]) == (200, True), replayed.text


def assert_refused(rig: Rig, kafka: KafkaBroker, topic: str, store: ObjectStore, name: str) -> None:
    """Neither a store that does not keep conditional puts, nor a place in somebody's table."""
    script = sql(kafka, topic, store, name)
    inner = rig.post_job(script.replace(f"{name}/out", f"{name}/item/inner"))
    assert (inner.status_code, "is in dimension" in inner.text) == (422, True), inner.text
    foreign = sql(kafka, topic, store, name).replace(f"{name}/out", "foreign/inner")
    write(store.path("foreign"), items((1, "one")))
    inside = rig.post_job(foreign)
    assert (inside.status_code, "is in delta table" in inside.text) == (422, True), inside.text
    with object_store() as other:
        write(other.path(f"{name}/item"), items((1, "one")))
        other.forget_conditions()
        unkept = rig.post_job(sql(kafka, topic, other, name))
        assert unkept.status_code == 422, unkept.text
        assert "does not keep conditional puts" in unkept.text
        assert other.keys(f"{name}/out") == []


# The warehouse in a store
# ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rig(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    store: ObjectStore,
    prepared: None,
) -> Iterator[Rig]:
    """A control plane whose warehouse is in the store; each runner is killed once."""
    given = {"failpoints": "C8=kill@2", "runners": "shared"}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in store.environment.items():
            environment.setenv(name, value)
        place = tmp_path_factory.mktemp("rig")
        with running_rig(place, kafka, mariadb, warehouse=store.warehouse, **given) as made:
            yield made


WINDOWS = """SET 'table.exec.emit.allow-lateness' = '1 h';
CREATE TABLE clicks (item STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
    'connector'='kafka', 'topic'='{topic}', 'format'='json',
    'properties.bootstrap.servers'='{servers}', 'scan.startup.mode'='earliest-offset');
CREATE TABLE counts (start TIMESTAMP(3), item STRING, n BIGINT,
    PRIMARY KEY (start, item) NOT ENFORCED) WITH ('connector'='delta', 'path'='{path}');
INSERT INTO counts SELECT window_start, item, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, item;
"""


def test_a_jobs_own_tables_are_in_the_warehouse_and_go_with_it(
    rig: Rig, kafka: KafkaBroker, store: ObjectStore
) -> None:
    name, topic = unique_name("own"), create_topic(kafka.bootstrap_servers, partitions=1)
    item, out = store.path(f"lake/{name}/item"), store.path(f"lake/{name}/out")
    write(item, items((1, "one"), (2, "two")))
    produce(kafka.bootstrap_servers, topic, [order(1), "no JSON object", order(3)])
    script = sql(kafka, topic, store, name).replace(f"s3://{store.bucket}/{name}", name)
    script = script.replace(f", {store.with_options}", "")
    with rig.job(script) as job:
        job.wait_joining()
        wait_until(lambda: len(rows_of(out)) == 2, what="the first rows")
        write(item, items((3, "three")))
        job.wait_for(lambda s: s["dimensions"][0]["streamed_records"] >= 1, "item 3 is known")
        job.wait_for(lambda s: s["dimensions"][0]["fold_version"], "it is folded")
        produce(kafka.bootstrap_servers, topic, [order(3)])
        job.wait_for(lambda s: (s["probe"] or {}).get("next_offsets") == {"0": 4}, "4 joined")
        assert {(r["item_id"], r["title"]) for r in rows_of(out)} == {
            *((1, "one"), (3, None), (3, "three"))
        }
        own = f"lake/_sluice/jobs/{job.id}"
        tables = {key.removeprefix(f"{own}/").split("/_delta_log")[0] for key in store.keys(own)}
        assert {"tables/item/changelog", "tables/item/current", "dead_letters"} <= tables
        assert not list(job.directory.rglob("_delta_log"))
        shown = rig.get(f"/v1/jobs/{job.id}/dimensions/item?limit=5")["items"]
        assert sorted(row["values"]["title"] for row in shown) == ["one", "three", "two"]
        letters = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
        assert [letter["offset"] for letter in letters] == [1]
        checks = rig.get(f"/v1/jobs/{job.id}/doctor")["checks"]
        assert [c for c in checks if c["name"].startswith("table ") and not c["ok"]] == []
        rig.remove(job)
        assert store.keys(own) == []


def test_windows_are_kept_and_replaced_in_the_warehouse(
    rig: Rig, kafka: KafkaBroker, store: ObjectStore
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("counts")
    topic, counts = create_topic(servers, partitions=1), store.path(f"lake/{path}")
    script = WINDOWS.format(topic=topic, servers=servers, path=path)
    with rig.job(script) as job:

        def click(*clicks: tuple[str, str]) -> None:
            values = [{"item": item, "ts": f"2024-01-01 {at}"} for item, at in clicks]
            produce(servers, topic, values, partition=0)

        def found() -> list[tuple[str, str, int]]:
            try:
                rows = rows_of(counts)
            except TableNotFoundError:
                return []
            return sorted((f"{row['start']:%H:%M}", row["item"], row["n"]) for row in rows)

        def wait_for(*rows: tuple[str, str, int]) -> None:
            job.wait_for(lambda _: found() == list(rows), f"{rows}", deadline_s=300)

        click(("a", "10:00:01"), ("b", "10:00:59"), ("a", "10:01:30"))
        wait_for(("10:00", "a", 1), ("10:00", "b", 1))
        click(("a", "10:00:30"), ("a", "10:02:30"))
        wait_for(("10:00", "a", 2), ("10:00", "b", 1), ("10:01", "a", 1))
        click(("c", "10:00:02"), ("a", "10:00:02"), ("a", "10:01:02"))
        wait_for(("10:00", "a", 3), ("10:00", "b", 1), ("10:00", "c", 1), ("10:01", "a", 2))
        batch = rig.get(f"/v1/jobs/{job.id}/batches?limit=1")["items"][0]["pin"]["batch"]
        replayed = rig.client.post(f"/v1/jobs/{job.id}/batches/{batch}:replay")
        assert (replayed.status_code, replayed.json()["identical"]) == (200, True), replayed.text
