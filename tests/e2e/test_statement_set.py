"""A statement set on real parts: one stream into three outputs, killed between two commits."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.rig import Rig, RunningJob, cdc_table, kafka_table, running_rig
from tests.support.shop import USERS, USERS_DDL, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import consume, create_topic, produce, unique_name

pytestmark = pytest.mark.experiment
CLICKS = "user_id BIGINT, item_id BIGINT, note STRING, p AS PROCTIME()"
ONCE = ("'sink.delivery-guarantee'='exactly-once'", "'sink.transactional-id-prefix'='sized'")
UNPARSED, NO_NUMBER = 8, 9
RECORDS: list[dict[str, Any]] = [
    *({"user_id": n + 1, "item_id": n, "note": str(n)} for n in range(8)),
    {"user_id": 1, "item_id": "x", "note": "8"},
    {"user_id": 2, "item_id": 9, "note": "many"},
]


def sql(rig: Rig, schema: str, topic: str, path: str, sized: str) -> str:
    join = "LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.p AS u ON c.user_id = u.user_id"
    return (
        cdc_table(rig.mariadb, schema, "user_info", USERS_DDL)
        + kafka_table(rig.kafka, "clicks", topic, CLICKS)
        + f"CREATE TABLE named (user_id BIGINT, told STRING) "
        f"WITH ('connector'='delta', 'path'='{path}');"
        + kafka_table(rig.kafka, "sized", sized, "item_id BIGINT, size INT, name STRING", ONCE)
        + "EXECUTE STATEMENT SET BEGIN "
        f"INSERT INTO named SELECT c.user_id, u.name FROM clicks AS c {join};"
        f"INSERT INTO sized SELECT c.item_id, CAST(c.note AS INT), u.name FROM clicks c {join};"
        f"INSERT INTO named SELECT c.user_id, u.gender FROM clicks AS c {join} "
        "WHERE c.item_id > 5; END;"
    )


def test_all_outputs_have_each_batch_once_and_under_one_version(
    tmp_path: Path, kafka: KafkaBroker, mariadb: MariaDb, spark_jars: list[Path]
) -> None:
    servers, path = kafka.bootstrap_servers, unique_name("named")
    topic, sized = create_topic(servers), create_topic(servers)
    produce(servers, topic, RECORDS)
    with (
        running_rig(tmp_path, kafka, mariadb, failpoints="C14=kill#0", runners="shared") as rig,
        new_schema(mariadb, USERS, fill_users(20)) as schema,
        rig.job(sql(rig, schema, topic, path, sized)) as job,
    ):
        job.wait_for(lambda _: rig.rows(path), "the first output is committed", deadline_s=400)
        run_sql(mariadb, "UPDATE user_info SET name = 'changed'", schema=schema)
        joined = job.wait_for(has_joined_all, "all is joined", deadline_s=400)
        assert joined["epoch"] == 2, "it was killed once"
        assert [(s["table"], s["connector"]) for s in joined["sinks"]] == [
            ("named", "delta"),
            ("sized", "kafka"),
            ("named", "delta"),
        ]
        assert_outputs_agree(rig, path, sized)
        assert_letters_name_their_insert(rig, job)
        assert_each_insert_can_be_asked(rig, job, topic)
        assert_letters_get_the_rows_that_are_missing(rig, job, path, sized)
        assert rig.get(f"/v1/jobs/{job.id}/doctor")["ok"]
        job.stop()
        rig.remove(job, output=True)
        assert not rig.output(path).exists()


def has_joined_all(status: dict[str, Any]) -> bool:
    probe = status["probe"]
    return bool(probe and probe["batch"] is not None and probe["lag_records"] == 0)


def assert_outputs_agree(rig: Rig, path: str, sized: str) -> None:
    rows = rig.rows(path)
    named = {r["_offset"]: r["told"] for r in rows if r["told"] not in ("F", "M")}
    assert named == {n: f"user {RECORDS[n]['user_id']}" for n in (*range(8), NO_NUMBER)}
    assert sorted(r["_offset"] for r in rows if r["told"] in ("F", "M")) == [6, 7, NO_NUMBER]
    assert len(rows) == 12
    sent = {}
    for record in consume(rig.kafka.bootstrap_servers, sized):
        headers = dict(record.headers)
        sent[int(headers["sluice-src-offset"])] = json.loads(record.value)
        versions = headers["sluice-dim-version"].decode()
        assert {versions} == {row["_dimension_versions"] for row in rows}
    assert {n: row["name"] for n, row in sent.items()} == {n: named[n] for n in range(8)}
    assert [sent[n]["size"] for n in range(8)] == list(range(8))
    assert len(consume(rig.kafka.bootstrap_servers, sized)) == 8


def assert_letters_name_their_insert(rig: Rig, job: RunningJob) -> None:
    unparsed, no_number = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    assert (unparsed["offset"], no_number["offset"]) == (UNPARSED, NO_NUMBER)
    assert "INSERT" not in unparsed["reason"]
    assert no_number["reason"].startswith('INSERT 2 INTO "sized": ')


def assert_each_insert_can_be_asked(rig: Rig, job: RunningJob, topic: str) -> None:
    (batch,) = rig.get(f"/v1/jobs/{job.id}/batches")["items"]
    assert batch["committed"]
    assert [o["committed"] for o in batch["outputs"]] == [True, True, True]
    assert [o["counts"]["joined"] for o in batch["outputs"] if o["counts"]] == [9, 3]
    for sink in ("1", "sized", "3"):
        number = batch["batch"]
        url = f"/v1/jobs/{job.id}/batches/{number}:replay?diff=true&sink={sink}"
        found = rig.client.post(url).json()
        assert found["identical"], found
    place = f"/v1/jobs/{job.id}/rows/{topic}/0/{NO_NUMBER}"
    assert rig.get(place)["state"] == "joined"
    assert rig.get(f"{place}?sink=sized")["state"] == "dead-letter"
    preview = f"/v1/jobs/{job.id}/preview"
    assert (len(rig.get(preview)["items"]), len(rig.get(f"{preview}?sink=3")["items"])) == (9, 3)
    assert rig.client.get(f"{preview}?sink=sized").status_code == 409
    assert rig.client.get(f"{preview}?sink=named").status_code == 400


def assert_letters_get_the_rows_that_are_missing(
    rig: Rig, job: RunningJob, path: str, sized: str
) -> None:
    """Offset 8 has no row anywhere and fails once more in INSERT 2; offset 9 has none there."""
    before = rig.rows(path)
    first = replay(rig, job, [corrected(UNPARSED, note="still no number")])
    assert (first["rows"], first["still_bad"][0]["inserts"]) == (2, [2])
    letters = [corrected(UNPARSED, note="8"), corrected(NO_NUMBER, note="9")]
    assert (replay(rig, job, letters)["rows"], replay(rig, job, letters)["rows"]) == (2, 0)
    added = [row for row in rig.rows(path) if row not in before]
    gender, name = sorted(row["told"] for row in added)
    assert (gender in ("F", "M"), name) == (True, "user 1"), "as the batch's version has them"
    assert {row["_offset"] for row in added} == {UNPARSED}
    sent = [json.loads(r.value) for r in consume(rig.kafka.bootstrap_servers, sized)[8:]]
    assert sent == [{"item_id": n, "size": n, "name": "user 1"} for n in (UNPARSED, NO_NUMBER)]
    shown = rig.get(f"/v1/jobs/{job.id}/dead-letters")["items"]
    assert [(s["replayed_by"], s["replayed_inserts"]) for s in shown] == [(2, [1, 2, 3]), (2, [2])]
    place = f"/v1/jobs/{job.id}/rows/{shown[0]['topic']}/0/{UNPARSED}"
    for sink, number in (("1", 1), ("sized", 2), ("3", 1)):
        assert rig.get(f"{place}?sink={sink}")["reason"].endswith(f"; replay {number} joined it")
        again = f"/v1/jobs/{job.id}/batches/{shown[0]['batch']}:replay?sink={sink}"
        assert rig.client.post(again).json()["identical"], "rows of letters came later"


def corrected(offset: int, *, note: str) -> dict[str, Any]:
    value = json.dumps({"user_id": 1, "item_id": offset, "note": note})
    return {"partition": 0, "offset": offset, "value": value}


def replay(rig: Rig, job: RunningJob, records: list[dict[str, Any]]) -> dict[str, Any]:
    answer = rig.client.post(f"/v1/jobs/{job.id}/dead-letters:replay", json={"records": records})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
