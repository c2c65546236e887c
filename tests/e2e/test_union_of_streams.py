"""UNION ALL of two topics of different columns and formats, on real parts, killed in a batch."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, kafka_table, keyed_table, running_rig
from tests.support.topics import consume, create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
USERS = 5
ORDERS = "order_id BIGINT, user_id BIGINT, p AS PROCTIME()"
REFUNDS = "user_id STRING, amount INT, `from` STRING METADATA FROM 'topic' VIRTUAL, p AS PROCTIME()"
ORDERED = [*({"order_id": n, "user_id": n % USERS} for n in range(20)), b"no order"]
REFUNDED = [*(f"{n % USERS},{n}".encode() for n in range(12)), b"1,many"]


def users(rig: Rig) -> str:
    rows = [{"user_id": n, "name": f"user {n}"} for n in range(USERS)]
    return keyed_table(rig.kafka, "users", "user_id BIGINT, name STRING", rows)


def sql(rig: Rig, orders: str, refunds: str, path: str, moves: str) -> str:
    join = "JOIN users FOR SYSTEM_TIME AS OF {0}.p AS u ON {0}.user_id = u.user_id"
    csv = kafka_table(rig.kafka, "refunds", refunds, REFUNDS).replace("'json'", "'csv'")
    return (
        users(rig)
        + kafka_table(rig.kafka, "orders", orders, ORDERS)
        + csv
        + f"CREATE TABLE o (id BIGINT, name STRING, `of` STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        + kafka_table(rig.kafka, "moves", moves, "id BIGINT")
        + "EXECUTE STATEMENT SET BEGIN "
        f"INSERT INTO o SELECT s.order_id, u.name, 'order' FROM orders AS s {join.format('s')} "
        "UNION ALL SELECT r.amount, u.name, r.`from` FROM refunds AS r "
        f"{join.format('r').replace('r.user_id', 'CAST(r.user_id AS BIGINT)')};"
        "INSERT INTO moves SELECT order_id FROM orders UNION ALL SELECT amount FROM refunds; END;"
    )


def test_two_streams_are_joined_into_one_table_over_a_kill_between_the_commits_of_a_batch(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("united")
    orders, refunds = create_topic(servers), create_topic(servers, partitions=2)
    moves = create_topic(servers)
    produce(servers, orders, ORDERED)
    produce(servers, refunds, REFUNDED, partition=1)
    with (
        running_rig(tmp_path, kafka, mariadb, failpoints="C14=kill#0", runners="shared") as rig,
        rig.job(sql(rig, orders, refunds, path, moves)) as job,
    ):
        status = job.wait_for(has_read_all, "all is joined", deadline_s=120)
        assert status["epoch"] == 2, "it was killed once"
        see_each_row_once(rig, path, orders, refunds)
        see_moves(servers, moves, orders, refunds)
        probe = status["probe"]
        assert probe["topics"] == [orders, refunds]
        assert probe["end_offsets"] == {f"{orders}/0": 21, f"{refunds}/0": 0, f"{refunds}/1": 13}
        assert probe["dead_letters"] == 2
        see_each_insert_asked(rig, job, orders, refunds)
        see_a_letter_joined_again(rig, job, refunds, path)
        produce(servers, orders, [{"order_id": 99, "user_id": 1}])
        rows = job.wait_output(path, 34)
        assert [r["name"] for r in rows if r["id"] == 99] == ["user 1"], "the others have no record"
        assert rig.get(f"/v1/jobs/{job.id}/doctor")["ok"]


def has_read_all(status: dict[str, Any]) -> bool:
    probe = status["probe"]
    return bool(probe and probe["batch"] is not None and probe["lag_records"] == 0)


def see_each_row_once(rig: Rig, path: str, orders: str, refunds: str) -> None:
    rows = Counter((r["_topic"], r["_offset"], r["id"], r["name"], r["of"]) for r in rig.rows(path))
    expected = Counter((orders, n, n, f"user {n % USERS}", "order") for n in range(20))
    expected.update((refunds, n, n, f"user {n % USERS}", refunds) for n in range(12))
    assert rows == expected


def see_moves(servers: str, moves: str, orders: str, refunds: str) -> None:
    """Repeats of a record have the same coordinates, which no record of the other stream has."""
    sent = {}
    for record in consume(servers, moves):
        headers = {name: value.decode() for name, value in record.headers}
        place = (headers["sluice-src-topic"], int(headers["sluice-src-offset"]))
        assert sent.setdefault(place, record.value) == record.value
    values = {place: json.loads(value)["id"] for place, value in sent.items()}
    assert values == {
        **{(orders, n): n for n in range(20)},
        **{(refunds, n): n for n in range(12)},
    }


def see_each_insert_asked(rig: Rig, job: RunningJob, orders: str, refunds: str) -> None:
    """A record is explained by the first INSERT that reads its topic; each replays its own."""
    for topic, partition, insert, row in ((orders, 0, 1, 7), (refunds, 1, 2, 7)):
        place = f"/v1/jobs/{job.id}/rows/{topic}/{partition}/{row}"
        explained = rig.get(place)
        assert (explained["state"], explained["insert"]) == ("joined", insert)
        assert explained["dimensions"][0]["rows"][0]["name"] == f"user {row % USERS}"
    other = rig.client.get(f"/v1/jobs/{job.id}/rows/{refunds}/1/7?sink=1")
    assert other.status_code == 404
    assert other.json()["detail"].endswith('is not read by INSERT 1 INTO "o"')
    assert orders in other.json()["hint"]
    letters = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    assert {(e["topic"], e["offset"]) for e in letters} == {(orders, 20), (refunds, 12)}
    assert not any(each["reason"].startswith("INSERT") for each in letters)
    for sink, rows in ((2, 12), (3, 20)):  # of the table and of the topic, which others write, too
        url = f"/v1/jobs/{job.id}/batches/0:replay?diff=true&sink={sink}"
        again = rig.client.post(url).json()
        assert (again["verdict"], again["rows"]) == ("identical", rows), again
        assert again["expected_dead_letters"] == again["dead_letters"] == 1


def see_a_letter_joined_again(rig: Rig, job: RunningJob, refunds: str, path: str) -> None:
    """Corrected, it has rows where its topic is read, and only there."""
    fixed = {"topic": refunds, "partition": 1, "offset": 12, "value": "4,12"}
    url = f"/v1/jobs/{job.id}/dead-letters:replay"
    outcome = rig.client.post(url, json={"records": [fixed]}).json()
    assert (outcome["rows"], outcome["still_bad"]) == (2, [])
    rows = job.wait_output(path, 33)
    (row,) = (r for r in rows if (r["_topic"], r["_offset"]) == (refunds, 12))
    assert (row["id"], row["name"], row["of"]) == (12, "user 4", refunds)
