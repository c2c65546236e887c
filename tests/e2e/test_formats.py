"""A stream of CSV whose key has columns, a dimension and a sink of Avro with a real registry."""

import io
import json
import struct
from typing import Any

import fastavro
import httpx
import pytest

from service.embedded.registry import ApicurioRegistry
from tests.support.rig import Rig
from tests.support.topics import consume, create_topic, end_offsets, produce
from tests.support.wait import wait_until

pytestmark = pytest.mark.timeout(600)
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
        "CREATE TABLE clicks (k_user BIGINT, amount DECIMAL(10, 2), tags ARRAY<INT>, "
        "note STRING, stamped STRING METADATA FROM 'timestamp-type' VIRTUAL, "
        "headers MAP<STRING, BYTES> METADATA VIRTUAL, proctime AS PROCTIME()) WITH ("
        f"'connector'='kafka', 'topic'='{clicks}', {servers}, 'scan.startup.mode'="
        "'earliest-offset', 'value.format'='csv', 'value.csv.null-literal'='-', "
        "'value.csv.field-delimiter'=';', 'value.csv.array-element-delimiter'='|', "
        "'key.format'='raw', 'key.fields'='k_user', 'key.fields-prefix'='k_', "
        "'value.fields-include'='EXCEPT_KEY');"
        "CREATE TABLE named (id BIGINT, name STRING, since TIMESTAMP(6), "
        f"PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='upsert-kafka', 'topic'='{names}', "
        f"{servers}, 'key.format'='avro-confluent', 'key.{avro}, "
        f"'value.format'='avro-confluent', 'value.{avro});"
        "CREATE TABLE enriched (id BIGINT, name STRING, amount DECIMAL(10, 2), tags ARRAY<INT>, "
        "since TIMESTAMP(6), stamped STRING, note STRING) WITH ('connector'='kafka', "
        f"'topic'='{out}', {servers}, 'value.format'='avro-confluent', 'value.{avro}, "
        "'value.avro-confluent.timestamp_mapping.legacy'='false', 'key.format'='avro', "
        "'key.fields'='id');"
        "INSERT INTO enriched SELECT k_user, n.name, amount, tags, since, stamped, note "
        "FROM clicks AS c LEFT JOIN named FOR SYSTEM_TIME AS OF c.proctime AS n ON c.k_user = n.id "
        "WHERE headers['x'] IS NULL;"
    )


def test_rows_pass_through_the_formats(rig: Rig, registry: ApicurioRegistry) -> None:
    servers = rig.kafka.bootstrap_servers
    clicks, names, out = (create_topic(servers) for _ in range(3))
    of_value = registered(registry, f"{names}-value", OF_NAMES)
    of_key = registered(registry, f"{names}-key", OF_KEYS)
    produce(
        servers,
        names,
        [
            *(
                wire(of_value, OF_NAMES, {"id": n, "name": f"n{n}", "since": n * 1_000_001})
                for n in (1, 2, 3)
            ),
            None,
        ],
        keys=[wire(of_key, OF_KEYS, {"id": n}) for n in (1, 2, 3, 3)],
    )
    keys = [struct.pack(">q", n) for n in (1, 2, 3, 1)]
    lines = [b'1.5;1|2;"a;""b"""', b"-;-;-", b"2;;x\r\n", b"2;x;y"]
    produce(servers, clicks, [*lines, b"3;;z", None], keys=[*keys, b"short", keys[0]])
    with rig.job(statement(rig, registry, clicks, names, out)) as job:
        job.wait_joining()
        wait_until(lambda: sum(end_offsets(servers, out).values()) >= 3, what="rows come out")
        sent = consume(servers, out, count=3)
        rows = [unwired(registry, record.value) for record in sent]
        assert [(r["id"], r["name"], r["amount"] and float(r["amount"])) for r in rows] == [
            (1, "n1", 1.5),
            (2, "n2", None),
            (3, None, 2.0),
        ]
        assert [r["tags"] for r in rows] == [[1, 2], None, []]
        assert [r["note"] for r in rows] == ['a;"b"', None, "x"]
        assert [r["since"] and r["since"].microsecond for r in rows] == [1, 2, None]
        assert {r["stamped"] for r in rows} == {"CreateTime"}
        assert [record.key for record in sent] == [b"\x02\x02", b"\x02\x04", b"\x02\x06"]
        subjects = httpx.get(f"{registry.url}/subjects").raise_for_status().json()
        assert f"{out}-value" in subjects
        job.wait_for(lambda s: s["probe"]["dead_letters"] == 3, "three dead letters")
        letters = rig.rows(str(job.directory / "dead_letters"))
        assert {letter["offset"]: letter["reason"] for letter in letters} == {
            3: 'field "tags": "x" is not an ARRAY<INT>',
            4: 'key: field "user": it has 5 bytes, expected 8 of BIGINT',
            5: "the value is null",
        }
        assert {letter["offset"]: letter["key"] for letter in letters}[4] == b"short"
        replayed = rig.get(f"/v1/jobs/{job.id}/batches")["items"]
        assert replayed
