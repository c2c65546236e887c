"""A Delta table and a database as dimensions of one statement, behind one gate."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table
from tests.support.shop import CLICKS_DDL, USERS, USERS_DDL, click, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
MAKER_TYPE = "ROW<name STRING, prices MAP<STRING, DECIMAL(6, 2)>>"
PRODUCT_DDL = (
    f"id BIGINT, title STRING, maker {MAKER_TYPE}, tags ARRAY<STRING>, "
    "PRIMARY KEY (id) NOT ENFORCED"
)
PRICES = pa.map_(pa.string(), pa.decimal128(6, 2))
PRODUCTS = pa.schema(
    [
        ("id", pa.int64()),
        ("title", pa.string()),
        ("maker", pa.struct([("name", pa.string()), ("prices", PRICES)])),
        ("tags", pa.list_(pa.string())),
    ]
)


def products(*pairs: tuple[int, str]) -> pa.Table:
    rows = [
        {"id": id_, "title": title, "maker": maker(title), "tags": [None, title]}
        for id_, title in pairs
    ]
    return pa.Table.from_pylist(rows, PRODUCTS)


def maker(title: str) -> dict[str, Any]:
    return {"name": f"maker of {title}", "prices": [("EUR", Decimal(len(title)))]}


def chained_sql(rig: Rig, schema: str, topic: str, product: str, path: str) -> str:
    return (
        cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
        + f"CREATE TABLE product ({PRODUCT_DDL}) WITH ('connector'='delta', 'path'='{product}', "
        "'source.monitor-interval'='200 ms');"
        + kafka_table(rig.kafka, "click_event", topic, CLICKS_DDL)
        + f"CREATE TABLE enriched (item_id BIGINT, name STRING, title STRING, tag STRING, "
        f"price DECIMAL(6, 2), maker {MAKER_TYPE}) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        "INSERT INTO enriched SELECT c.item_id, u.name, p.title, p.tags[2], "
        "p.maker.prices['EUR'], p.maker FROM click_event AS c "
        "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id "
        "LEFT JOIN product FOR SYSTEM_TIME AS OF c.proctime AS p ON c.item_id = p.id;"
    )


def dimension(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next(d for d in status["dimensions"] if d["name"] == name)


def wait_followed(job: RunningJob, version: int, changes: int) -> dict[str, Any]:
    """The source table's `version` is sent; so many changes since the start are indexed."""

    def followed(status: dict[str, Any]) -> bool:
        found = [d for d in status["dimensions"] if d["name"] == "product"]
        return bool(found) and (
            found[0]["source_version"] == version
            and found[0]["streamed_records"] >= changes
            and found[0]["index_version"] == status["versions"]["product"]
        )

    return job.wait_for(followed, f"version {version} is followed")


def titles(rows: list[dict[str, Any]]) -> dict[int, tuple[str | None, str | None]]:
    """By item; what is nested must be of the same row of the table."""
    for row in rows:
        of = (row["title"] or "").lower() or None
        assert row["maker"] == (of and maker(of))
        assert (row["tag"], row["price"]) == (of, of and Decimal(len(of)))
    return {row["item_id"]: (row["name"], row["title"]) for row in rows}


def test_a_delta_table_is_joined_beside_a_database_and_followed_over_a_pause(rig: Rig) -> None:
    path, product = unique_name("chained"), unique_name("product")
    table = rig.output(product)
    write_deltalake(table, products((1, "one"), (2, "two"), (3, "three")))
    topic = create_topic(rig.kafka.bootstrap_servers)
    with new_schema(rig.mariadb, USERS, fill_users(100)) as schema:
        produce(rig.kafka.bootstrap_servers, topic, [click(7, 1), click(8, 2), click(9, 4)])
        with rig.job(chained_sql(rig, schema, topic, product, path)) as job:
            seen = assert_opened(job, path)
            DeltaTable(table).update(updates={"title": "'ONE'"}, predicate="id = 1")
            DeltaTable(table).delete("id = 2")
            write_deltalake(table, products((5, "five")), mode="append")
            run_sql(rig.mariadb, "UPDATE user_info SET name = 'x' WHERE user_id = 7", schema=schema)
            job.wait_for(lambda s: dimension(s, "user_info")["streamed_records"], "a user changed")
            wait_followed(job, DeltaTable(table).version(), changes=3)
            produce(rig.kafka.bootstrap_servers, topic, [click(8, 1), click(8, 2), click(8, 5)])
            found = [r for r in job.wait_output(path, 6) if r["_offset"] >= 3]
            assert titles(found) == {
                1: ("user 8", "ONE"),
                2: ("user 8", None),
                5: ("user 8", "five"),
            }
            shown = rig.get(f"/v1/jobs/{job.id}/dimensions/product?limit=1")["items"][0]["values"]
            assert (shown["maker"]["prices"], shown["tags"]) == ({"EUR": "3.00"}, [None, "one"])
            assert all(version_of_product(row) > seen for row in found)

            pause(rig, job)
            produce(rig.kafka.bootstrap_servers, topic, [click(9, 4)])
            write_deltalake(table, products((1, "uno"), (9, "nine")), mode="overwrite")
            rig.client.post(f"/v1/jobs/{job.id}:resume").raise_for_status()
            followed = wait_followed(job, DeltaTable(table).version(), changes=4)
            assert dimension(followed, "product")["generation"] == 1
            produce(rig.kafka.bootstrap_servers, topic, [click(7, 1), click(7, 3), click(7, 9)])
            rows = job.wait_output(path, 10)
            assert len(rows) == 10
            assert titles([row for row in rows if row["_offset"] >= 6]) == {
                4: ("user 9", None),
                1: ("x", "uno"),
                3: ("x", None),
                9: ("x", "nine"),
            }


def pause(rig: Rig, job: RunningJob) -> None:
    """Pause the job, whose records are all joined, and see what it says of itself."""
    newest = rig.get(f"/v1/jobs/{job.id}/batches?limit=1")["items"][0]
    assert (newest["committed"], newest["pin"]["end_offsets"]) == (True, {"0": 6})
    job.wait_for(lambda s: s["probe"]["next_offsets"] == {"0": 6}, "all is joined")
    wait = rig.get(f"/v1/jobs/{job.id}/explain-wait")
    assert wait["sentence"].startswith("Every record of topic"), wait
    rig.client.post(f"/v1/jobs/{job.id}:pause").raise_for_status()
    job.wait_state("PAUSED")
    assert job.runner() is None
    wait = rig.get(f"/v1/jobs/{job.id}/explain-wait")
    assert wait["sentence"].startswith("It was paused by request")


def assert_opened(job: RunningJob, path: str) -> int:
    """The first three rows saw the whole copy; returns the version that they saw."""
    opened = job.wait_joining()
    copied = dimension(opened, "product")
    assert (copied["source"], copied["source_version"]) == ("delta", 0)
    assert copied["evidence"] == "in_band_watermark"
    assert (copied["snapshot"]["rows_done"], copied["snapshot"]["rows_total"]) == (3, 3)
    assert copied["emitted"]["watermark"]["use_processing_time"] is True
    assert copied["emitted"]["offsets"].keys() == {"0", "1"}
    rows = job.wait_output(path, 3)
    assert titles(rows) == {1: ("user 7", "one"), 2: ("user 8", "two"), 4: ("user 9", None)}
    seen = version_of_product(rows[0])
    assert seen >= opened["versions_at_open"]["product"]
    return seen


def version_of_product(row: dict[str, Any]) -> int:
    pairs = (pair.split("=") for pair in row["_dimension_versions"].split(","))
    return int(dict(pairs)["product"])


def test_a_submission_says_what_is_wrong_with_the_delta_table(rig: Rig) -> None:
    product = unique_name("product")
    topic = create_topic(rig.kafka.bootstrap_servers)
    with new_schema(rig.mariadb, USERS) as schema:
        sql = chained_sql(rig, schema, topic, product, unique_name("never"))
        refused = rig.post_job(sql)
        assert refused.status_code >= 400
        assert f'there is no delta table at "{rig.output(product)}"' in refused.json()["detail"]
        write_deltalake(
            rig.output(product), products((1, "y")).set_column(0, "id", pa.array(["x"]))
        )
        refused = rig.post_job(sql)
        assert 'column "id" is string, declared BIGINT' in refused.json()["detail"]
        assert refused.json()["hint"] == "Declare id STRING."
