"""Queries of the shapes that people have, on real parts: no dimension, no window and the like."""

import json

import pytest

from tests.support.rig import Rig, kafka_table
from tests.support.topics import consume, create_topic, produce, unique_name

pytestmark = pytest.mark.timeout(400)
ORDERS = "id BIGINT, price DECIMAL(10, 2), item STRING, cost AS price * 2"
SENT = [{"id": n, "price": n, "item": f"item {n}"} for n in range(10)]


def test_a_stream_without_a_dimension_is_projected_and_filtered(rig: Rig) -> None:
    servers, path = rig.kafka.bootstrap_servers, unique_name("projected")
    topic, dear = create_topic(servers), create_topic(servers)
    produce(servers, topic, [*SENT, b"no json"])
    sql = (
        kafka_table(rig.kafka, "orders", topic, ORDERS)
        + f"CREATE TABLE o (id BIGINT, cost DECIMAL(12, 2), item STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        + kafka_table(rig.kafka, "dear", dear, "id BIGINT")
        + "EXECUTE STATEMENT SET BEGIN "
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
        (letter,) = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
        assert letter["offset"] == 10
        assert rig.get(f"/v1/jobs/{job.id}/doctor")["ok"]
        assert rig.get(f"/v1/jobs/{job.id}/rows/{topic}/0/3")["state"] == "joined"
