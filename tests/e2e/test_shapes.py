"""Queries of the shapes that people have, on real parts: without a dimension, of many parts."""

import json

from tests.support.rig import Rig, cdc_table, kafka_table
from tests.support.shop import USERS, fill_users
from tests.support.sql import new_schema
from tests.support.topics import consume, create_topic, produce, unique_name

CARTS = "id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, p AS PROCTIME()"
FILLED = [
    {"id": 1, "tags": ["a", "b"], "items": [{"sku": "x", "size": 3}]},
    {"id": 2, "tags": [], "items": [{"sku": "y", "size": 1}, {"sku": "z", "size": 9}]},
    {"id": 3},
]
ORDERS = (
    "id BIGINT, price DECIMAL(10, 2), item STRING, cost AS price * 2, at TIMESTAMP(3), "
    "WATERMARK FOR at AS at"
)
SENT = [
    {"id": n, "price": n, "item": f"item {n}", "at": f"2026-01-01 00:0{n}:30"} for n in range(10)
]


def test_a_stream_without_a_dimension_is_projected_and_filtered(rig: Rig) -> None:
    servers, path = rig.kafka.bootstrap_servers, unique_name("projected")
    topic, dear, assigned = create_topic(servers), create_topic(servers), unique_name("assigned")
    hops = unique_name("hops")
    produce(servers, topic, [*SENT, b"no json"])
    sql = (
        kafka_table(rig.kafka, "orders", topic, ORDERS)
        + f"CREATE TABLE o (id BIGINT, cost DECIMAL(12, 2), item STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        + kafka_table(rig.kafka, "dear", dear, "id BIGINT")
        + f"CREATE TABLE assigned (id BIGINT, since TIMESTAMP(3), until TIMESTAMP(3)) "
        f"WITH ('connector'='delta', 'path'='{assigned}');"
        f"CREATE TABLE hops (id BIGINT, since TIMESTAMP(3), until TIMESTAMP(3)) "
        f"WITH ('connector'='delta', 'path'='{hops}');"
        "EXECUTE STATEMENT SET BEGIN "
        "INSERT INTO hops SELECT id, window_start, window_end FROM HOP(TABLE orders, "
        "DESCRIPTOR(at), INTERVAL '2' MINUTES, INTERVAL '4' MINUTES) AS w WHERE price < 4;"
        "INSERT INTO assigned SELECT id, window_start, window_end FROM TABLE(TUMBLE(TABLE orders, "
        "DESCRIPTOR(at), INTERVAL '4' MINUTES));"
        "INSERT INTO o SELECT id, cost, UPPER(item) FROM orders WHERE id <> 4;"
        "INSERT INTO dear SELECT id FROM orders WHERE price > 6; END;"
    )
    with rig.job(sql) as job:
        rows = job.wait_output(path, 9)
        status = job.wait_for(lambda s: (s["probe"] or {}).get("lag_records") == 0, "all is read")
        assert (status["phase"], status["dimensions"]) == ("JOIN", [])
        assert {r["id"]: (float(r["cost"]), r["item"]) for r in rows} == {
            n: (2.0 * n, f"ITEM {n}") for n in range(10) if n != 4
        }
        assert [json.loads(r.value)["id"] for r in consume(servers, dear)] == [7, 8, 9]
        windows = {r["id"]: (r["since"].minute, r["until"].minute) for r in rig.rows(assigned)}
        assert windows == {n: (n // 4 * 4, n // 4 * 4 + 4) for n in range(10)}
        hopping = sorted((r["id"], r["since"].minute, r["until"].minute) for r in rig.rows(hops))
        assert len(hopping) == 8
        assert hopping[4:] == [(2, 0, 4), (2, 2, 6), (3, 0, 4), (3, 2, 6)]
        (letter,) = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
        assert letter["offset"] == 10
        assert rig.get(f"/v1/jobs/{job.id}/doctor")["ok"]
        assert rig.get(f"/v1/jobs/{job.id}/rows/{topic}/0/3")["state"] == "joined"


def test_parts_of_a_query_and_elements_of_arrays_are_one_job(rig: Rig) -> None:
    """UNION ALL of what comes of UNNEST and of a query by name, into a table that it creates."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("united")
    topic = create_topic(servers)
    produce(servers, topic, FILLED)
    sql = (
        "SET parallelism.default = 4; CREATE DATABASE shop; USE shop;"
        + kafka_table(rig.kafka, "carts", topic, CARTS)
        + f"CREATE TABLE united WITH ('connector'='delta', 'path'='{path}') AS "
        "WITH tagged AS (SELECT c.id, t.tag FROM carts AS c LEFT JOIN UNNEST(tags) AS t (tag) "
        "ON TRUE) "
        "SELECT id, tag AS what FROM tagged WHERE id < 3 UNION ALL "
        "SELECT id, sku FROM (SELECT * FROM shop.carts CROSS JOIN UNNEST(items)) WHERE size > 1;"
    )
    with rig.job(sql) as job:
        rows = job.wait_output(path, 5)
        assert sorted((r["id"], r["what"] or "", r["_offset"]) for r in rows) == [
            (1, "a", 0),
            (1, "b", 0),
            (1, "x", 0),
            (2, "", 1),
            (2, "z", 1),
        ]
        assert rig.get(f"/v1/jobs/{job.id}/rows/{topic}/0/2")["state"] == "filtered"
        url = f"/v1/jobs/{job.id}/batches/0:replay?diff=true&sink=1"
        assert rig.client.post(url).json()["identical"]


def test_a_table_is_joined_as_people_write_it_into_partitions(rig: Rig) -> None:
    """Its key is what ON compares, its columns are computed; files are cut by a column."""
    servers, path = rig.kafka.bootstrap_servers, unique_name("cut")
    topic = create_topic(servers)
    produce(servers, topic, [{"id": n, "user_id": n % 5} for n in range(10)])
    columns = "user_id BIGINT, gender STRING, name STRING, loud AS UPPER(name)"
    with new_schema(rig.mariadb, USERS, fill_users(3)) as schema:
        sql = (
            cdc_table(rig.mariadb, schema, "user_info", columns)
            + kafka_table(rig.kafka, "orders", topic, "id BIGINT, user_id BIGINT")
            + f"CREATE TABLE cut (id BIGINT, loud STRING, who STRING) PARTITIONED BY (who) "
            f"WITH ('connector'='delta', 'path'='{path}');"
            "INSERT INTO cut WITH named AS (SELECT user_id, loud FROM user_info WHERE user_id < 3) "
            "SELECT /*+ LOOKUP('table'='n') */ o.id, n.loud, COALESCE(n.loud, 'nobody') "
            "FROM (SELECT *, PROCTIME() AS now_time FROM orders) AS o "
            "LEFT JOIN named FOR SYSTEM_TIME AS OF o.now_time AS n ON o.user_id = n.user_id;"
        )
        with rig.job(sql) as job:
            rows = job.wait_output(path, 10)
            known = {1: "USER 1", 2: "USER 2"}
            assert {r["id"]: r["loud"] for r in rows} == {n: known.get(n % 5) for n in range(10)}
            cut = {place.name for place in rig.output(path).glob("who=*")}
            assert len(cut) == 3
            url = f"/v1/jobs/{job.id}/batches/0:replay?diff=true"
            assert rig.client.post(url).json()["identical"]
