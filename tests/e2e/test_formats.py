"""A stream of CSV with a key of CSV, dimension and sink of Avro; a real registry, and one away."""

import io
import json
import struct
from typing import Any

import fastavro
import httpx

from service.jobs.inspect.past import open_replayer
from tests.support.apicurio import ApicurioRegistry
from tests.support.registry import registry as small_registry
from tests.support.rig import Rig, RunningJob
from tests.support.topics import consume, create_topic, end_offsets, produce, unique_name
from tests.support.wait import wait_until

OF_NAMES = {
    "type": "record",
    "name": "Named",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "since", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
OF_KEYS = {"type": "record", "name": "Id", "fields": [OF_NAMES["fields"][0]]}


def registered(registry: ApicurioRegistry, subject: str, schema: dict[str, Any]) -> int:
    url = f"{registry.url}/subjects/{subject}/versions"
    return httpx.post(url, json={"schema": json.dumps(schema)}).raise_for_status().json()["id"]


def wire(number: int, schema: dict[str, Any], value: Any) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(dict(schema)), value)
    return struct.pack(">bI", 0, number) + body.getvalue()


def unwired(registry: ApicurioRegistry, data: bytes) -> Any:
    (number,) = struct.unpack(">I", data[1:5])
    answer = httpx.get(f"{registry.url}/schemas/ids/{number}").raise_for_status().json()
    schema = fastavro.parse_schema(json.loads(answer["schema"]))
    return fastavro.schemaless_reader(io.BytesIO(data[5:]), schema)


def statement(rig: Rig, registry: ApicurioRegistry, clicks: str, names: str, out: str) -> str:
    servers = f"'properties.bootstrap.servers'='{rig.kafka.bootstrap_servers}'"
    avro = f"avro-confluent.url'='{registry.url}'"
    return (
        "CREATE TABLE clicks (k_user BIGINT, k_shop STRING, amount DECIMAL(10, 2), "
        "tags ARRAY<INT>, note STRING, stamped STRING METADATA FROM 'timestamp-type' VIRTUAL, "
        "headers MAP<STRING, BYTES> METADATA VIRTUAL, proctime AS PROCTIME()) WITH ("
        f"'connector'='kafka', 'topic'='{clicks}', {servers}, 'scan.startup.mode'="
        "'earliest-offset', 'value.format'='csv', 'value.csv.null-literal'='-', "
        "'value.csv.field-delimiter'=';', 'value.csv.array-element-delimiter'='|', "
        "'key.format'='csv', 'key.fields'='k_user;k_shop', 'key.fields-prefix'='k_', "
        "'key.csv.null-literal'='', "
        "'value.fields-include'='EXCEPT_KEY');"
        "CREATE TABLE named (id BIGINT, name STRING, since TIMESTAMP(6), "
        f"PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='upsert-kafka', 'topic'='{names}', "
        f"{servers}, 'key.format'='avro-confluent', 'key.{avro}, "
        f"'value.format'='avro-confluent', 'value.{avro});"
        "CREATE TABLE enriched (id BIGINT, shop STRING, name STRING, amount DECIMAL(10, 2), "
        "tags ARRAY<INT>, since TIMESTAMP(6), stamped STRING, note STRING) WITH ("
        f"'connector'='kafka', 'topic'='{out}', {servers}, "
        f"'value.format'='avro-confluent', 'value.{avro}, "
        f"'value.avro-confluent.subject'='{out}-rows', "
        "'value.avro-confluent.timestamp_mapping.legacy'='false', 'key.format'='avro', "
        "'key.fields'='id');"
        "INSERT INTO enriched SELECT k_user, k_shop, n.name, amount, tags, since, stamped, note "
        "FROM clicks AS c LEFT JOIN named FOR SYSTEM_TIME AS OF c.proctime AS n ON c.k_user = n.id "
        "WHERE headers['x'] IS NULL;"
    )


def test_rows_pass_through_the_formats(rig: Rig, registry: ApicurioRegistry) -> None:
    servers = rig.kafka.bootstrap_servers
    clicks, names, out = (create_topic(servers) for _ in range(3))
    feed_names(servers, registry, names)
    keys = [b'1,"a,b"', b"2,", b"3,x", b"1,c", b"1;d", b"1,e"]
    lines = [b'1.5;1|2;"a;""b"""', b"-;-;-", b"2;;x\r\n", b"2;x;y", b"3;;z", None]
    produce(servers, clicks, lines, keys=keys)
    with rig.job(statement(rig, registry, clicks, names, out)) as job:
        job.wait_joining()
        wait_until(lambda: sum(end_offsets(servers, out).values()) >= 3, what="rows come out")
        assert_rows(registry, consume(servers, out, count=3))
        subjects = httpx.get(f"{registry.url}/subjects").raise_for_status().json()
        assert (f"{out}-rows" in subjects, f"{out}-value" in subjects) == (True, False)
        assert_letters(rig, job)
        corrected = [{"partition": 0, "offset": 3, "value": "2;4;y"}]
        url = f"/v1/jobs/{job.id}/dead-letters:replay"
        done = rig.client.post(url, json={"records": corrected}).raise_for_status().json()
        assert (done["rows"], done["still_bad"]) == (1, [])
        last = unwired(registry, consume(servers, out, count=4)[-1].value)
        assert (last["id"], last["shop"], last["tags"]) == (1, "c", [4])
        assert_batches_are_as_they_were(job, rows=3)


def feed_names(servers: str, registry: ApicurioRegistry, topic: str) -> None:
    """Three rows, of which the last one goes."""
    of_value = registered(registry, f"{topic}-value", OF_NAMES)
    of_key = registered(registry, f"{topic}-key", OF_KEYS)
    values = [
        wire(of_value, OF_NAMES, {"id": n, "name": f"n{n}", "since": n * 1_000_001})
        for n in (1, 2, 3)
    ]
    keys = [wire(of_key, OF_KEYS, {"id": n}) for n in (1, 2, 3, 3)]
    produce(servers, topic, [*values, None], keys=keys)


def assert_rows(registry: ApicurioRegistry, sent: list[Any]) -> None:
    rows = [unwired(registry, record.value) for record in sent]
    assert [(r["id"], r["name"], r["amount"] and float(r["amount"])) for r in rows] == [
        (1, "n1", 1.5),
        (2, "n2", None),
        (3, None, 2.0),
    ]
    assert [r["shop"] for r in rows] == ["a,b", None, "x"]
    assert [r["tags"] for r in rows] == [[1, 2], None, []]
    assert [r["note"] for r in rows] == ['a;"b"', None, "x"]
    assert [r["since"] and r["since"].microsecond for r in rows] == [1, 2, None]
    assert {r["stamped"] for r in rows} == {"CreateTime"}
    assert [record.key for record in sent] == [b"\x02\x02", b"\x02\x04", b"\x02\x06"]


def assert_letters(rig: Rig, job: RunningJob) -> None:
    job.wait_for(lambda s: s["probe"]["dead_letters"] == 3, "three dead letters")
    letters = rig.rows(str(job.directory / "dead_letters"))
    assert {letter["offset"]: letter["reason"] for letter in letters} == {
        3: 'field "tags": "x" is not an ARRAY<INT>',
        4: "key: it has 1 cell, expected 2",
        5: "the value is null",
    }
    assert {letter["offset"]: letter["key"] for letter in letters}[4] == b"1;d"


def assert_batches_are_as_they_were(job: RunningJob, *, rows: int) -> None:
    newest = job.pins.newest()
    assert newest is not None
    with open_replayer(job.directory) as replayer:
        past = [replayer.replay(batch, diff=True) for batch in range(newest.batch + 1)]
    assert [each["differences"] for each in past] == [[]] * len(past)
    assert sum(each["expected_rows"] for each in past) == rows


def test_a_stream_waits_for_its_registry_and_keeps_what_is_not_of_avro(rig: Rig) -> None:
    servers, path = rig.kafka.bootstrap_servers, unique_name("formats")
    topic = create_topic(servers)
    bodies = [wire(number, OF_KEYS, {"id": number}) for number in (1, 2, 3, 1)]
    with small_registry() as own:
        own.add(1, OF_KEYS)
        own.add(2, "syntax", schemaType="PROTOBUF")
        statement = (
            "CREATE TABLE ids (id BIGINT NOT NULL) WITH ('connector'='kafka', "
            f"'topic'='{topic}', 'properties.bootstrap.servers'='{servers}', "
            "'scan.startup.mode'='earliest-offset', 'format'='avro-confluent', "
            f"'avro-confluent.url'='{own.url}');"
            f"CREATE TABLE kept (id BIGINT) WITH ('connector'='delta', 'path'='{path}');"
            "INSERT INTO kept SELECT id FROM ids;"
        )
        with rig.job(statement) as job:
            job.wait_joining()
            own.refusals += [503] * 1_000
            produce(servers, topic, bodies)
            stalled = job.wait_state("STALLED")
            assert "answers with status 503" in stalled["reason"]
            assert stalled["error"]["type"] == "source-unavailable"
            own.refusals.clear()
            assert [row["id"] for row in job.wait_output(path, 2)] == [1, 1]
            job.wait_for(lambda s: s["probe"]["dead_letters"] == 2, "two dead letters")
            letters = rig.rows(str(job.directory / "dead_letters"))
            reasons = {letter["offset"]: letter["reason"] for letter in letters}
            assert 'of type "PROTOBUF"' in reasons[1]
            assert "the registry does not have schema 3" in reasons[2]
