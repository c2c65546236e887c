"""When a foreign topic was current: by its end offsets, or by what its connector passes on."""

import time
from dataclasses import replace

import pytest

from joins.adapters.topic.times import heartbeat_ms
from joins.plan.connections import RegistryOptions
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat
from joins.plan.plan import SnapshotEvidence
from tests.support.foreign_avro import KEY, KEY_NUMBER, VALUE, VALUE_NUMBER, register, writer
from tests.support.foreign_topics import Connector, topic_feed
from tests.support.registry import registry
from tests.support.topics import create_topic, delete_topics, produce
from watermark.freshness import ProofKind

USERS = {1: "a", 2: "b"}
HEARTBEAT_NUMBER = VALUE_NUMBER + 1
HEARTBEATS = {
    "plain_json": (b'{"serverName":"shop","ts_ms":17}', 17),
    "json_with_a_schema": (b'{"schema":{"type":"struct"},"payload":{"ts_ms":17}}', 17),
    "a_tombstone": (None, None),
    "avro": (b"\x00\x00\x00\x00\x07\x02", None),
    "no_time": (b'{"serverName":"shop"}', None),
    "a_time_that_is_no_number": (b'{"ts_ms":true}', None),
    "no_object": (b"17", None),
    "nested_too_deeply": (b"[" * 100_000, None),
}


@pytest.mark.parametrize("case", HEARTBEATS)
def test_heartbeats(case):
    value, expected = HEARTBEATS[case]

    assert heartbeat_ms(value) == expected


def proofs(feed):
    return [event for event in feed.told.events if event["event"] == "fresh"]


def asked_again(session):
    session._clock._next_at_s = session._clock._next_connect_s = float("-inf")


def settled(milliseconds=0, heartbeat_topic=None):
    return SnapshotEvidence(settle_ms=milliseconds, heartbeat_topic=heartbeat_topic)


PARTITIONS = 1


def test_end_offsets_prove_a_topic_without_a_connector(connector, tmp_path):
    connector.send({"id": 1}, {"id": 1, "name": "a"})
    feed = topic_feed(connector, tmp_path, None, value=JSON_FORMAT)
    with feed.session() as session:
        before_ms = time.time_ns() // 1_000_000
        asked_again(session)
        feed.run(session)
        first = proofs(feed)[0]
        assert before_ms <= first["time_ms"] <= time.time_ns() // 1_000_000
        assert (first["position"], first["kind"]) == ({"offsets": {"0": 1}}, "position")

        asked_again(session)
        feed.run(session)
        quiet = proofs(feed)[-1]

        assert quiet["time_ms"] >= first["time_ms"]
        assert quiet["position"] == {"offsets": {"0": 1}}


def test_a_quiet_connector_without_heartbeats_proves_nothing_new(connector, tmp_path):
    connector.snapshot(USERS)
    connector.change(1, "c")
    changed_ms = connector.at_ms - 10  # the time of the change; its record has the next tick
    feed = topic_feed(connector, tmp_path, settled())
    with feed.session() as session:
        for _ in range(3):
            asked_again(session)
            feed.run(session)

    assert {event["time_ms"] for event in proofs(feed)} == {changed_ms}
    assert {event["kind"] for event in proofs(feed)} == {ProofKind.CONNECTOR}
    waits_for = [e["freshness_waits_for"] for e in feed.told.events if "state" in e]
    assert "heartbeat" in waits_for[-1]


def test_a_snapshot_alone_is_no_time(connector, tmp_path):
    connector.snapshot(USERS)
    feed = topic_feed(connector, tmp_path, settled())
    with feed.session() as session:
        for _ in range(2):
            asked_again(session)
            state = feed.run(session)

    assert state["complete"]
    assert proofs(feed) == []


def test_heartbeats_carry_the_time_of_a_quiet_table(connector, tmp_path):
    topic = create_topic(connector.servers, partitions=1)
    try:
        connector.snapshot(USERS)
        feed = topic_feed(connector, tmp_path, settled(heartbeat_topic=topic))
        with feed.session() as session:
            for ts_ms in (1_000_000, 2_000_000):
                produce(connector.servers, topic, [{"ts_ms": ts_ms}])
                for _ in range(2):
                    asked_again(session)
                    feed.run(session)
        times = [event["time_ms"] for event in proofs(feed)]
        assert times == sorted(times)
        assert times[-1] == 2_000_000
        assert [e["freshness_waits_for"] for e in feed.told.events if "state" in e][-1] is None
    finally:
        delete_topics(connector.servers, topic)


def test_a_heartbeat_counts_only_once_records_before_it_must_have_arrived(connector, tmp_path):
    topic = create_topic(connector.servers, partitions=1)
    try:
        connector.snapshot(USERS)
        connector.change(1, "c")
        changed_ms = connector.at_ms - 10
        evidence = settled(3_600_000, heartbeat_topic=topic)
        feed = topic_feed(connector, tmp_path, evidence)
        produce(connector.servers, topic, [{"ts_ms": 1_700_000_000_000}])
        with feed.session() as session:
            for _ in range(2):
                asked_again(session)
                feed.run(session)

        assert {event["time_ms"] for event in proofs(feed)} <= {changed_ms}
    finally:
        delete_topics(connector.servers, topic)


HEARTBEAT = {
    "type": "record",
    "name": "Heartbeat",
    "fields": [{"name": "ts_ms", "type": "long"}],
}


def test_heartbeats_in_avro_carry_the_time_of_a_quiet_table(kafka, processes, tmp_path):
    """As the table's records; a heartbeat in JSON beside them counts, too."""
    key, value = writer(KEY_NUMBER, KEY), writer(VALUE_NUMBER, VALUE)
    connector = Connector(kafka.bootstrap_servers, key_bytes=key, value_bytes=value)
    topic = create_topic(connector.servers, partitions=1)
    beat = writer(HEARTBEAT_NUMBER, HEARTBEAT)
    with registry() as own:
        register(own)
        own.add(HEARTBEAT_NUMBER, HEARTBEAT)
        connector.snapshot(USERS)
        kind = KafkaFormat.DEBEZIUM_AVRO_CONFLUENT
        form = RecordFormat(kind, registry=RegistryOptions(own.url))
        feed = topic_feed(connector, tmp_path, settled(heartbeat_topic=topic), value=form)
        with feed.session() as session:
            for heartbeat in (beat({"ts_ms": 1_000_000}), {"ts_ms": 2_000_000}):
                produce(connector.servers, topic, [heartbeat])
                for _ in range(2):
                    asked_again(session)
                    feed.run(session)
    connector.close()
    times = [event["time_ms"] for event in proofs(feed)]
    assert (times[0], times[-1]) == (1_000_000, 2_000_000)


def test_an_error_of_connect_is_shown_until_connect_is_asked_again(connector, tmp_path):
    connector.snapshot(USERS)
    connector.change(1, "c")
    changed_ms = connector.at_ms - 10
    evidence = replace(settled(), connect_url="http://127.0.0.1:1", connector="shop")
    feed = topic_feed(connector, tmp_path, evidence)
    with feed.session() as session:
        asked_again(session)
        feed.run(session)
        session._clock._next_at_s = float("-inf")  # the interval is over, Connect's is not
        feed.run(session)
        assert "Kafka Connect" in session._clock.waits_for()

    assert [event["time_ms"] for event in proofs(feed)] == [changed_ms]


def test_a_topic_of_heartbeats_that_is_missing_is_told(connector, tmp_path):
    connector.snapshot(USERS)
    feed = topic_feed(connector, tmp_path, settled(heartbeat_topic="no.such.topic"))
    with feed.session() as session:
        asked_again(session)
        feed.run(session)

    waits_for = [e["freshness_waits_for"] for e in feed.told.events if "state" in e][-1]
    assert "no.such.topic" in waits_for
