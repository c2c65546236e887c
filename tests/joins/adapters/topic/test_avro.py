"""A topic in Avro as a source: its registry may be away, and may not have what records name."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from joins.adapters.topic.check import check_topic
from joins.adapters.topic.feed_state import TopicFeedConfig
from joins.durable.codec import as_json, from_json
from joins.durable.requests import Stalls
from joins.plan.connections import RegistryOptions
from joins.plan.errors import (
    DefinitionError,
    ForeignRecordError,
    SourceError,
    SourceUnavailableError,
)
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field, KafkaOptions, SnapshotEvidence, TopicSource
from joins.plan.types import SqlType, TypeName
from joins.source.feed_coordinator import TopicCoordinator
from service.embedded.broker import KafkaBroker
from service.embedded.connect import KafkaConnect
from service.embedded.postgres import PostgreSql
from tests.support.apicurio import ApicurioRegistry
from tests.support.debezium import postgres_source
from tests.support.foreign_avro import KEY, KEY_NUMBER, VALUE, VALUE_NUMBER, register, writer
from tests.support.foreign_topics import FIELDS, Connector, envelope, heard, row, topic_feed
from tests.support.registry import registry as answering
from tests.support.topics import create_topic, produce
from tests.support.wait import wait_until

USERS = {n: f"n{n}" for n in range(1, 6)}
AGE = (*FIELDS, Field("age", SqlType(TypeName.INT)))


@pytest.fixture
def own_registry(processes):
    with answering() as own:
        register(own)
        yield own


@pytest.fixture
def connector(kafka):
    made = Connector(
        kafka.bootstrap_servers,
        key_bytes=writer(KEY_NUMBER, KEY),
        value_bytes=writer(VALUE_NUMBER, VALUE),
    )
    yield made
    made.close()


def avro_feed(connector, directory, own, evidence=None):
    return topic_feed(
        connector,
        directory,
        evidence or SnapshotEvidence(settle_ms=0),
        value=RecordFormat(KafkaFormat.DEBEZIUM_AVRO_CONFLUENT, registry=RegistryOptions(own.url)),
    )


def test_records_are_read_to_the_end_and_followed(connector, own_registry, tmp_path):
    connector.notify("STARTED")
    connector.snapshot(USERS)
    connector.scanned(len(USERS))
    source = avro_feed(connector, tmp_path, own_registry, heard(connector))
    assert from_json(TopicFeedConfig, as_json(source.config)) == source.config
    with source.session() as session:
        assert source.run(session)["complete"]
        assert source.rows() == USERS
        connector.change(2, "two")
        connector.change(3, None)
        source.run(session)
    expected = {**USERS, 2: "two"}
    del expected[3]
    assert source.rows() == expected


def test_while_the_registry_is_away_nothing_is_lost(connector, own_registry, tmp_path):
    connector.snapshot(USERS)
    source = avro_feed(connector, tmp_path, own_registry)
    own_registry.refusals = [503]
    with pytest.raises(SourceUnavailableError, match="schema registry"):
        source.run()
    assert source.copy().generation == 0
    assert source.run()["complete"]
    assert source.rows() == USERS


def test_a_schema_that_nobody_has_stalls_until_it_is_there(connector, own_registry, tmp_path):
    connector.snapshot(USERS, is_whole=False)
    later = writer(9, VALUE)(envelope("u", None, row(1, "new"), "false", connector.tick()))
    connector.send({"id": 1}, later)
    connector.snapshot(USERS | {1: "new"})
    source = avro_feed(connector, tmp_path, own_registry)
    with pytest.raises(
        ForeignRecordError, match=r"record 0/5 .* the registry does not have schema 9"
    ):
        source.run()
    own_registry.add(9, VALUE)
    assert source.run()["complete"]
    assert source.rows() == USERS | {1: "new"}


UNREADABLE = {
    "recursive": (
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]},
        {},
        (ForeignRecordError, "schema 9 cannot be read"),
    ),
    "of_another_type": (VALUE, {"schemaType": "JSON"}, (SourceError, 'of type "JSON"')),
    "made_of_others": (VALUE, {"references": [{"name": "a"}]}, (SourceError, "refers to")),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_a_schema_that_is_not_read_stalls_until_it_is(connector, own_registry, tmp_path, case):
    schema, more, (kind, text) = case
    value = writer(9, VALUE)(envelope("r", None, row(1, "a"), "last", connector.tick()))
    connector.send({"id": 1}, value)
    own_registry.add(9, schema, **more)
    source = avro_feed(connector, tmp_path, own_registry)
    with pytest.raises(kind, match=text):
        source.run()
    own_registry.add(9, VALUE)
    source.run()
    assert source.rows() == {1: "a"}


def kinds_of(stalls):
    return [fault.type for _, fault in stalls.all()]


def test_a_registry_that_is_away_is_a_stall_that_ends_by_itself(connector, tmp_path):
    connector.snapshot(USERS)
    with answering() as own:
        register(own)
        port = urlsplit(own.url).port
        source = avro_feed(connector, tmp_path, own)
    stalls = Stalls()
    coordinator = TopicCoordinator("users", source.config, stalls, tmp_path / "decisions.jsonl")
    coordinator.start()
    try:
        wait_until(lambda: "source-unavailable" in kinds_of(stalls), what="the stall")
        with answering(port=port) as own:
            register(own)
            wait_until(lambda: (view := coordinator.view()) and view.is_copied, what="its rows")
            assert not kinds_of(stalls)
    finally:
        coordinator.stop()
    assert source.rows() == USERS


def test_json_among_avro_stalls(connector, own_registry, tmp_path):
    connector.send({"id": 1}, b'{"id":1}')
    with pytest.raises(ForeignRecordError, match="wire format"):
        avro_feed(connector, tmp_path, own_registry).run()


# What is known before it is read
# ----------------------------------------------------------------------------------------------


def avro_source(kafka, own, *options):
    return TopicSource(
        KafkaOptions(kafka.bootstrap_servers, create_topic(kafka.bootstrap_servers)),
        RecordFormat(KafkaFormat.DEBEZIUM_AVRO_CONFLUENT, options, RegistryOptions(own.url)),
        SnapshotEvidence(),
    )


def look(source, *records, fields=FIELDS):
    keys, values = zip(*records, strict=True) if records else ((), ())
    produce(source.kafka.bootstrap_servers, source.kafka.topic, values, keys=keys)
    check_topic(source, fields, ("id",))


KEY_ONE = writer(KEY_NUMBER, KEY)({"id": 1})
WRITTEN = writer(VALUE_NUMBER, VALUE)(envelope("u", None, row(1, "a"), "false", 1))
UNFIT = {
    "json": (KEY_ONE, b'{"op":"c"}', "is not Avro"),
    "a_key_in_json": (b"{}", WRITTEN, "has a key that is not"),
    "no_schema": (KEY_ONE, b"\0\0\0\0\x09", "does not have"),
    "odd_schema": (KEY_ONE, b"\0\0\0\0\x08", "cannot be read"),
    "no_record": (KEY_ONE, b"\0\0\0\0\x07", "is no record"),
}


@pytest.mark.parametrize(("key", "value", "message"), UNFIT.values(), ids=UNFIT)
def test_a_record_that_is_not_read_is_told(kafka, own_registry, key, value, message):
    own_registry.add(7, "int")
    own_registry.add(8, "odd")
    with pytest.raises(SourceError, match=message):
        look(avro_source(kafka, own_registry), (key, value))


def test_what_schemas_of_records_lack_is_told(kafka, own_registry):
    look(avro_source(kafka, own_registry), (KEY_ONE, WRITTEN), (KEY_ONE, None))
    with pytest.raises(DefinitionError, match='has no column "age"'):
        look(avro_source(kafka, own_registry), (KEY_ONE, WRITTEN), fields=AGE)
    with pytest.raises(SourceError, match="of a snapshot"):
        look(avro_source(kafka, own_registry, ("layout", "flat")), (KEY_ONE, WRITTEN))


def test_the_registry_of_an_empty_topic_is_asked_for_its_subject(kafka, own_registry):
    source = avro_source(kafka, own_registry)
    look(source)
    subject = f"{source.kafka.topic}-value"
    assert own_registry.paths == [f"/subjects/{subject}/versions/latest"]
    own_registry.refusals = [503]
    with pytest.raises(SourceUnavailableError, match="schema registry"):
        look(source)
    own_registry.subjects[subject] = 8
    own_registry.add(8, "odd")
    with pytest.raises(SourceError, match=f'schema of "{subject}" cannot be read'):
        look(source)
    own_registry.add(8, VALUE)
    look(source)


# A real connector, and a real registry
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """A topic that somebody else writes, of one partition."""

    servers: str
    topic: str
    partitions: int = 1


def test_what_a_real_connector_has_written_is_read_to_completion(
    connect: KafkaConnect,
    kafka: KafkaBroker,
    postgres: PostgreSql,
    registry: ApicurioRegistry,
    tmp_path,
):
    settings = {
        **registry.converter("key"),
        **registry.converter("value"),
        "schema.name.adjustment.mode": "avro",
        "topic.creation.default.partitions": "1",
    }
    made = "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(20))"
    filled = "INSERT INTO users VALUES (1, 'Ada'), (2, 'Bob'), (3, NULL)"
    with postgres_source(connect, kafka, postgres, made, filled, settings=settings) as source:
        source.start()
        source.await_records("users", 3)
        evidence = SnapshotEvidence(
            notifications_topic=source.notification_topic, settle_ms=3_600_000
        )
        written = Written(kafka.bootstrap_servers, source.topic("users"))
        feed = avro_feed(written, tmp_path, registry, evidence)
        check_topic(feed.config.source, FIELDS, ("id",))
        with feed.session() as session:
            state = wait_until(
                lambda: (told := feed.run(session))["complete"] and told,
                what="the snapshot is whole",
                deadline_s=20,
            )
            assert (state["evidence"], state["rows_total"]) == ("last_snapshot_row", 3)
            source.sql(
                "UPDATE users SET name = 'Eve' WHERE id = 2", "DELETE FROM users WHERE id = 1"
            )
            wait_until(
                lambda: feed.run(session) and feed.rows() == {2: "Eve", 3: None},
                what="its changes are there",
                deadline_s=20,
            )
