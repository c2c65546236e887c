"""The schema registry: answers as Confluent's does, and what a real converter writes with it."""

import httpx

from service.embedded.broker import KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.postgres import PostgreSql
from tests.support.apicurio import ApicurioRegistry
from tests.support.debezium import postgres_source

USERS = (
    "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO users VALUES (1, 'Ada')",
)


def test_a_connector_writes_avro_whose_schema_the_registry_has(
    connect: KafkaConnect, kafka: KafkaBroker, postgres: PostgreSql, registry: ApicurioRegistry
) -> None:
    settings = {
        **registry.converter("key"),
        **registry.converter("value"),
        "schema.name.adjustment.mode": "avro",
    }
    with postgres_source(connect, kafka, postgres, *USERS, settings=settings) as source:
        source.start()
        (record,) = source.await_records("users", 1)
    for part, name in ((record.key, "Key"), (record.value, "Envelope")):
        assert part[0] == 0
        number = int.from_bytes(part[1:5], "big")
        schema = (
            httpx.get(f"{registry.url}/schemas/ids/{number}").raise_for_status().json()["schema"]
        )
        assert f'"name":"{name}"' in schema.replace(" ", "")
    subjects = httpx.get(f"{registry.url}/subjects").raise_for_status().json()
    assert f"{record.topic}-value" in subjects
