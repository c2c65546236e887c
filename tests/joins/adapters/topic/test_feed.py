"""Somebody else's topic as a source: whatever its connector does, our records say what it shows."""

import json
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from joins.adapters.delta.source import captured_columns
from joins.adapters.kafka.cluster import KafkaCluster
from joins.adapters.kafka.groups import committed_offsets
from joins.adapters.process import sessions
from joins.adapters.topic import feed as topic_feed_module
from joins.adapters.topic.feed_state import (
    Decision,
    Decisions,
    TopicFeedConfig,
    abandon,
    read_journal,
    write_decisions,
    write_journal,
)
from joins.adapters.topic.key_memory import FILES_OF_KEYS
from joins.adapters.topic.producer import TopicProducer
from joins.durable.codec import as_json, from_json
from joins.durable.dead_rows import RESERVED_BYTES, left_out
from joins.kernels.changelog.envelope import decode
from joins.plan.errors import ForeignRecordError, SnapshotNeededError, SourceError
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import (
    COORDINATES,
    BoundedMode,
    Field,
    KafkaOptions,
    MetadataField,
    SnapshotEvidence,
    TopicSource,
)
from joins.plan.types import SqlType, TypeName
from tests.joins.adapters.kafka.test_groups import member
from tests.support.foreign_topics import FIELDS as USER_COLUMNS
from tests.support.foreign_topics import Connector, TopicFeed, envelope, heard, row, topic_feed
from tests.support.http_server import answering
from tests.support.lanes import some_of
from tests.support.topics import (
    add_partitions,
    consume,
    create_topic,
    delete_topics,
    produce,
    unique_name,
)
from tests.support.wait import wait_until

USERS = {n: f"n{n}" for n in range(1, 9)}


PARTITIONS = {"one_partition": 1, "three_partitions": 3}


@pytest.fixture(params=some_of(PARTITIONS, "three_partitions"))
def connector(request, kafka):
    made = Connector(kafka.bootstrap_servers, request.param)
    yield made
    made.close()


@pytest.fixture
def single(kafka):
    made = Connector(kafka.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture
def connect_offsets(processes):
    """Offsets that a server tells as Connect does, once there are some."""
    offsets = []

    def answer(_):
        return 200 if offsets else 404, {}, json.dumps({"offsets": offsets}).encode()

    with answering(answer) as url:
        yield offsets, url


def word(generation, reason):
    return Decisions((Decision({"reason": reason}, generation=generation),))


def skipped(source, *place):
    topic_id = read_journal(source.config.state_file).position.topic_id
    return Decisions((Decision({"reason": "known"}, place=place, topic_id=topic_id),))


def test_a_snapshot_is_complete_and_followed(connector, tmp_path):
    connector.snapshot(USERS)
    source = topic_feed(connector, tmp_path)
    with source.session() as session:
        state = source.run(session)
        assert (state["complete"], state["evidence"]) == (True, "last_snapshot_row")
        assert source.copy().generation == 1
        assert source.rows() == USERS
        connector.change(2, "two")
        connector.change(3, None)
        connector.change(20, "twenty")
        connector.incremental(4, "four")
        source.run(session)
    expected = {**USERS, 2: "two", 4: "four", 20: "twenty"}
    del expected[3]
    assert source.rows() == expected
    assert source.copy().generation == 1


def test_nothing_is_complete_before_the_last_row(connector, tmp_path):
    connector.snapshot(USERS, is_whole=False)
    source = topic_feed(connector, tmp_path)
    state = source.run()
    assert (state["complete"], state["missing"]) == (False, "evidence")
    assert source.copy().generation == 0


def test_rows_are_counted_against_the_scan(connector, tmp_path):
    connector.notify("STARTED")
    connector.snapshot({1: "a", 2: "b", 3: "c"})
    connector.scanned(4)
    source = topic_feed(connector, tmp_path, heard(connector, settle_ms=3_600_000))
    with source.session() as session:
        state = source.run(session)
        assert (state["complete"], state["missing"]) == (False, "rows")
        assert state["text"] == "3 of 4 snapshot rows are here"
        connector.at_ms -= 40  # it was on its way
        connector.send({"id": 4}, envelope("r", None, row(4, "d"), "true", connector.at_ms - 3_000))
        state = source.run(session)
    assert state["rows"] == 4 or state["generation"] == 2


def test_notifications_are_of_the_table_that_records_tell_whatever_the_topic_is(kafka, tmp_path):
    """A transformation has given the topic the name that another connector would."""
    other = Connector(kafka.bootstrap_servers)
    own = Connector(kafka.bootstrap_servers, topic=f"{other.prefix}.shop.all")
    source = topic_feed(own, tmp_path, heard(other, settle_ms=3_600_000))
    own.notices = other.notices
    other.notify("STARTED")
    other.notify(
        "TABLE_SCAN_COMPLETED",
        scanned_collection="shop.all",
        total_rows_scanned="2",
        status="EMPTY",
    )
    own.notify("STARTED")
    own.snapshot({1: "a", 2: "b"}, is_whole=False)
    with source.session() as session:
        state = source.run(session)
        assert (state["complete"], state["text"]) == (
            False,
            "2 snapshot rows, and no sign of its end",
        )
        own.scanned(3)
        assert source.run(session)["text"] == "2 of 3 snapshot rows are here"
        other.notify("ABORTED")
        own.scanned(2)
        own.change(2, "B")
    state = source.run()
    assert (state["complete"], state["evidence"]) == (True, "table_scan_completed")
    assert (state["rows"], state["rows_total"]) == (2, 2)
    assert source.rows() == {1: "a", 2: "B"}
    for each in (own, other):
        each.close()


def test_records_of_a_second_connector_stall_where_evidence_is_of_the_first(single, tmp_path):
    single.snapshot({1: "a", 2: "b"})
    record = envelope("c", None, row(3, "other"), "false", single.tick())
    record["source"]["name"] = "another"
    single.send({"id": 3}, record)
    with pytest.raises(SourceError, match=f'connector "another" beside .* "{single.prefix}"'):
        topic_feed(single, tmp_path).run()
    (tmp_path / "bounded").mkdir()
    bounded = topic_feed(single, tmp_path / "bounded", None, bounded_mode=BoundedMode.LATEST)
    assert bounded.run()["complete"]
    assert bounded.rows() == {1: "a", 2: "b", 3: "other"}


def test_an_empty_table_is_complete_by_its_scan_only(connector, tmp_path):
    source = topic_feed(connector, tmp_path, heard(connector))
    with source.session() as session:
        assert source.run(session)["missing"] == "evidence"
        connector.notify("STARTED")
        connector.scanned(0)
        state = source.run(session)
    assert (state["complete"], state["evidence"]) == (True, "table_scan_completed")
    assert source.copy().generation == 1


def test_an_aborted_snapshot_waits_for_another_one_or_a_word(connector, tmp_path):
    connector.notify("STARTED")
    connector.snapshot({1: "a", 2: "b", 3: "c"}, is_whole=False)
    connector.notify("ABORTED")
    source = topic_feed(connector, tmp_path, heard(connector))
    assert source.run()["missing"] == "aborted"
    write_decisions(source.config.decisions_file, word(1, "it was all"))
    state = source.run()
    assert (state["evidence"], state["text"]) == ("operator_override", "it was all")
    assert source.copy().generation == 1


def test_a_later_snapshot_replaces_the_rows(connector, tmp_path):
    connector.snapshot(USERS)
    source = topic_feed(connector, tmp_path)
    with source.session() as session:
        source.run(session)
        connector.change(1, "changed")
        source.run(session)
        connector.snapshot({2: "n2", 9: "new", 12: "also"}, is_whole=False)
        assert source.run(session)["generation"] == 2
        assert source.rows() == {**USERS, 1: "changed", 9: "new", 12: "also"}
        connector.snapshot({2: "n2", 9: "new", 12: "also"})
        state = source.run(session)
    assert (state["generation"], state["complete"]) == (3, True)
    assert source.rows() == {2: "n2", 9: "new", 12: "also"}


def test_no_report_calls_a_later_snapshot_complete_before_it_is(single, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "_PROGRESS_S", 0.0)
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    with source.session() as session:
        assert source.run(session)["complete"]
        single.snapshot({2: "n2", 9: "new"}, is_whole=False)
        source.run(session)
    later = [e["state"] for e in source.told.events if e.get("state", {}).get("generation") == 2]
    assert later
    assert not any(state["complete"] for state in later)


def test_a_row_that_no_message_can_hold_is_left_out_by_its_key(single, tmp_path):
    large = "x" * 2_000
    single.snapshot({1: "a", 2: large, 3: "c"})
    source = topic_feed(single, tmp_path)
    limits = {"max.message.bytes": str(RESERVED_BYTES + 1_000)}
    changelog = create_topic(single.servers, config=limits)
    source.config = replace(source.config, kafka=KafkaOptions(single.servers, changelog))
    dead = tmp_path / "source.dead.json"
    with source.session() as session:
        assert source.run(session)["complete"], "the rest of the table is there"
        assert (source.rows(), [*left_out([dead], 1).rows]) == ({1: "a", 3: "c"}, ['{"id":2}'])
        single.change(1, large)
        single.change(2, "fits")
        source.run(session)
        assert (source.rows(), [*left_out([dead], 1).rows]) == ({2: "fits", 3: "c"}, ['{"id":1}'])
        single.snapshot({2: "two", 4: large})
        source.run(session)
    assert (source.rows(), [*left_out([dead], 2).rows]) == ({2: "two"}, ['{"id":4}'])


def test_history_is_read_like_the_present(connector, tmp_path):
    connector.snapshot(USERS)
    for key in USERS:
        connector.change(key, "old")
    connector.snapshot({1: "a", 2: "b"}, is_whole=False)
    connector.snapshot({1: "a", 5: "e", 6: "f"})
    connector.change(6, None)
    connector.change(7, "g")
    source = topic_feed(connector, tmp_path)
    state = source.run()
    assert (state["generation"], state["complete"]) == (3, True)
    assert source.rows() == {1: "a", 5: "e", 7: "g"}


def test_rows_that_were_there_before_their_snapshots_first_one_are_read_again(kafka, tmp_path):
    """Partitions are not equally fast; of an aborted snapshot nothing else tells."""
    connector = Connector(kafka.bootstrap_servers, 2)
    connector.snapshot({1: "gone", 2: "old"}, is_whole=False)
    source = topic_feed(connector, tmp_path)
    began = connector.tick(5_000)
    with source.session() as session:
        source.run(session)
        connector.at_ms = began + 20
        connector.send({"id": 3}, envelope("r", None, row(3, "three"), "true", began))
        assert source.run(session)["generation"] == 1
        connector.at_ms = began
        first = envelope("r", None, row(2, "two"), "first_in_data_collection", began)
        connector.send({"id": 2}, first)
        assert source.run(session)["generation"] == 2
        connector.at_ms = began + 100
        last = envelope("r", None, row(4, "four"), "last_in_data_collection", began)
        connector.send({"id": 4}, last)
        assert source.run(session)["complete"]
    assert source.rows() == {2: "two", 3: "three", 4: "four"}
    connector.close()


def test_what_is_committed_in_connect_is_evidence(single, tmp_path, connect_offsets):
    source_ms = single.snapshot({1: "a", 2: "b"}, is_whole=False)
    offsets, url = connect_offsets
    evidence = SnapshotEvidence(settle_ms=3_600_000, connect_url=url, connector="shop")
    source = topic_feed(single, tmp_path, evidence)
    assert "no sign of its end; Kafka Connect at" in source.run()["text"]
    offsets.append({"offset": {"ts_sec": source_ms // 1000, "snapshot": "INITIAL"}})
    assert source.run()["missing"] == "evidence"
    del offsets[0]["offset"]["snapshot"]
    state = source.run()
    assert (state["complete"], state["quiet"]) == (True, "connector_offsets")


def test_a_truncated_table_has_only_what_comes_behind(connector, tmp_path):
    connector.snapshot(USERS)
    source = topic_feed(connector, tmp_path)
    with source.session() as session:
        source.run(session)
        connector.truncate()
        connector.change(3, "again")
        state = source.run(session)
    assert (state["complete"], state["evidence"]) == (True, "table_truncated")
    assert source.rows() == {3: "again"}


def test_a_row_is_gone_that_was_written_in_the_millisecond_of_its_truncation(single, tmp_path):
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    single.change(20, "before")
    for write in (
        single.truncate,
        lambda: single.change(21, "between"),
        single.truncate,
        lambda: single.change(3, "behind"),
    ):
        single.at_ms -= 20  # all have one time
        write()
    state = source.run()
    assert (state["complete"], state["evidence"]) == (True, "table_truncated")
    assert source.rows() == {3: "behind"}
    source.run()
    assert source.rows() == {3: "behind"}


def test_a_connector_with_the_begin_of_the_topics_name_proves_nothing(kafka, tmp_path):
    other = Connector(kafka.bootstrap_servers)
    own = Connector(kafka.bootstrap_servers, prefix=f"{other.prefix}.eu")
    own.snapshot(USERS, is_whole=False)
    other.notices, other.at_ms = own.notices, own.at_ms
    other.notify("COMPLETED")
    state = topic_feed(own, tmp_path, heard(own)).run()
    assert (state["complete"], state["missing"]) == (False, "evidence")
    own.close()
    other.close()


def test_a_tombstone_of_another_table_deletes_no_row(connector, tmp_path):
    connector.snapshot(USERS)
    gone = envelope("d", row(2, "?"), None, "false", connector.tick())
    gone["source"]["table"] = "items"
    connector.send({"id": 2}, gone)
    connector.send({"id": 2}, None)
    connector.change(3, None)
    value = RecordFormat(KafkaFormat.DEBEZIUM_JSON, (("source.table", "users"),))
    source = topic_feed(connector, tmp_path, value=value)
    source.run()
    assert source.rows() == {key: name for key, name in USERS.items() if key != 3}


def test_a_connector_that_only_streams_opens_by_option(connector, tmp_path):
    for key in range(6):
        connector.change(key, "x")
    assert topic_feed(connector, tmp_path).run()["missing"] == "skipped"
    evidence = SnapshotEvidence(settle_ms=0, opens_when_skipped=True)
    source = topic_feed(connector, tmp_path / "other", evidence)
    (tmp_path / "other").mkdir()
    state = source.run()
    assert (state["complete"], state["evidence"]) == (True, "snapshot_skipped")


def test_a_restart_goes_on_where_it_was_and_tells_again(connector, tmp_path):
    connector.snapshot(USERS)
    source = topic_feed(connector, tmp_path)
    source.run()
    sent = len(consume(connector.servers, source.config.kafka.topic))
    connector.change(2, "two")
    source.run()
    later = consume(connector.servers, source.config.kafka.topic)
    ops = sorted(json.loads(r.value)["op"] for r in later)
    assert len(later) == sent + 1 + connector.partitions
    assert ops.count("c") == 1
    assert source.rows()[2] == "two"


@pytest.mark.parametrize("part", [3, 6])
def test_a_restart_in_the_middle_loses_and_opens_nothing(connector, tmp_path, part, monkeypatch):
    connector.notify("STARTED")
    connector.snapshot(USERS)
    connector.scanned(len(USERS))
    monkeypatch.setattr(topic_feed_module, "_READ_AHEAD", part)
    source = topic_feed(connector, tmp_path, heard(connector))
    for _ in range(4):
        with source.session() as session:
            producer = topic_feed_module.TopicProducer(
                source.config.kafka, source.config.partitions, "t"
            )
            session.step(producer)
            session._store()
            producer.close()
    assert source.run()["complete"]
    assert source.rows() == USERS


def test_a_bad_record_stalls_until_it_is_skipped(single, tmp_path):
    single.snapshot({1: "a", 2: "b"}, is_whole=False)
    single.send({"id": 3}, b"{not json")
    single.snapshot({1: "a", 2: "b"})
    source = topic_feed(single, tmp_path)
    with pytest.raises(ForeignRecordError, match="record 0/2"):
        source.run()
    write_decisions(source.config.decisions_file, skipped(source, 0, 2))
    assert source.run()["complete"]
    assert source.rows() == {1: "a", 2: "b"}


def test_a_key_that_changes_its_partition_stalls(kafka, tmp_path):
    connector = Connector(kafka.bootstrap_servers, 2)
    connector.snapshot({1: "a", 2: "b"}, is_whole=False)
    value = envelope("u", None, row(1, "elsewhere"), "false", connector.tick())
    connector.send({"id": 1}, value, partition=0)
    with pytest.raises(ForeignRecordError, match="whose records were in partition"):
        topic_feed(connector, tmp_path).run()
    connector.close()


def test_records_of_another_table_stall_or_are_left_out(single, tmp_path):
    single.snapshot({1: "a", 2: "b"}, is_whole=False)
    other = envelope("c", None, row(1, "other"), "false", single.tick())
    other["source"]["table"] = "others"
    single.send({"id": 1}, other)
    with pytest.raises(SourceError, match=r'table "shop.others" beside those of "shop.users"'):
        topic_feed(single, tmp_path).run()
    options = (("source.table", "users"),)
    (tmp_path / "other").mkdir()
    source = topic_feed(
        single, tmp_path / "other", value=RecordFormat(KafkaFormat.DEBEZIUM_JSON, options)
    )
    source.run()
    single.snapshot({1: "a", 2: "b"})
    assert source.run()["complete"]
    assert source.rows() == {1: "a", 2: "b"}


def test_a_topic_that_was_created_anew_is_read_anew(single, tmp_path):
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    source.run()
    delete_topics(single.servers, single.topic)
    cluster = KafkaCluster(KafkaOptions(single.servers, ""))
    wait_until(lambda: cluster.describe(single.topic) is None, what="the topic is gone")
    create_topic(single.servers, single.topic)
    single.snapshot({3: "three", 4: "four"})
    with pytest.raises(SnapshotNeededError, match="deleted and created again") as caught:
        source.run()
    abandon(source.config.state_file, caught.value.message)
    state = source.run()
    assert (state["generation"], state["complete"]) == (2, True)
    assert source.rows() == {3: "three", 4: "four"}


def test_records_that_are_gone_before_they_were_read_are_told(single, tmp_path):
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    source.run()
    for key in USERS:
        single.change(key, "x")
    cluster = KafkaCluster(KafkaOptions(single.servers, ""))
    cluster.delete_records_before(single.topic, {0: 12})
    with pytest.raises(SnapshotNeededError, match="lost records") as caught:
        source.run()
    abandon(source.config.state_file, caught.value.message)
    assert source.run()["missing"] in ("skipped", "truncated")
    single.snapshot({1: "a", 2: "b"})
    state = source.run()
    assert (state["complete"], state["generation"]) == (True, 3)
    assert source.rows() == {1: "a", 2: "b"}


def test_a_compacted_topic_is_read_again_if_deletions_may_be_gone(kafka, tmp_path):
    """A job stands still for longer than tombstones are kept; rows behind them would stay."""
    kept = {"cleanup.policy": "compact", "delete.retention.ms": "300000"}
    topic = Connector(kafka.bootstrap_servers, config=kept)
    try:
        topic.send({"id": 1}, row(1, "a"))
        by_key = {"value": JSON_FORMAT, "key": RecordKey(("id",))}
        source = topic_feed(topic, tmp_path, None, **by_key)
        assert source.run()["complete"]
        topic.send({"id": 2}, row(2, "b"))
        assert source.run()["generation"] == 1, "its beginning was read a moment ago"

        file = source.config.state_file
        write_journal(file, replace(read_journal(file), begun_ms=topic.at_ms))
        assert source.run()["generation"] == 1, "no record is unread"
        topic.send({"id": 1}, None)
        with pytest.raises(SnapshotNeededError, match="removed deletions of partition 0") as caught:
            source.run()
        abandon(file, caught.value.message)
        assert source.run()["generation"] == 2
        assert source.rows() == {2: "b"}
    finally:
        topic.close()


def test_more_partitions_than_before_stall(single, tmp_path):
    """At once, while it is followed, and at each later start, until the job is submitted anew."""
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    config = source.config
    assert from_json(TopicFeedConfig, json.loads(json.dumps(as_json(config)))) == config
    with source.session() as session:
        assert source.run(session)["complete"]
        add_partitions(single.servers, single.topic, 2)
        with pytest.raises(SourceError, match="has 2 partitions, and had 1") as caught:
            source.run(session)
    assert "submit it again" in caught.value.hint
    with pytest.raises(SourceError, match="has 2 partitions, and had 1"):
        source.run()
    assert source.rows() == USERS, "what was read before is there"
    single.partitions = 2
    (tmp_path / "anew").mkdir()
    anew = topic_feed(single, tmp_path / "anew")
    assert anew.run()["complete"]
    assert anew.rows() == USERS


def test_a_consumer_group_is_told_how_far_the_topic_is_sent_on(single, tmp_path):
    single.snapshot(USERS)
    source = topic_feed(single, tmp_path)
    group = unique_name("group")
    kafka = KafkaOptions(single.servers, single.topic, (("group.id", group),))
    source.config = replace(source.config, source=replace(source.config.source, kafka=kafka))
    cluster = KafkaCluster(kafka)
    ends = cluster.end_offsets(single.topic)
    source.run()
    assert committed_offsets(cluster.connection, group, single.topic) == ends
    assert source.told.events[-1]["group_offsets"] is None
    single.change(1, "other")
    with member(single.servers, group, single.topic), source.session() as session:
        source.run(session)
        wait_until(lambda: session._group.warning() is not None, what="it is known")
        session._report("progress")
        assert "has members" in source.told.events[-1]["group_offsets"]["message"]
    assert source.rows()[1] == "other", "the rows do not wait for it"


def test_rows_by_key_are_complete_at_the_ends_of_submission(connector, tmp_path):
    for key, name in USERS.items():
        connector.send({"id": key}, row(key, name))
    connector.send({"id": 2}, None)
    source = topic_feed(connector, tmp_path, None, value=JSON_FORMAT, key=RecordKey(("id",)))
    with source.session() as session:
        state = source.run(session)
        assert (state["complete"], state["evidence"]) == (True, "end_offsets")
        connector.send({"id": 3}, row(3, "three"))
        source.run(session)
    expected = {**USERS, 3: "three"}
    del expected[2]
    assert source.rows() == expected
    assert read_journal(source.config.state_file).generation == 1


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole_snapshot", "no_end_of_it"])
def test_a_table_with_an_end_is_whole_there_and_has_nothing_behind_it(
    connector, tmp_path, is_whole
):
    connector.snapshot(USERS, is_whole=is_whole)
    connector.change(2, "two")
    source = topic_feed(connector, tmp_path, None, bounded_mode=BoundedMode.LATEST)
    connector.change(3, "behind the end")
    state = source.run()
    assert (state["complete"], state["evidence"]) == (True, "bounded_input_ended")
    assert (source.rows(), source.copy().generation) == ({**USERS, 2: "two"}, 1)


def test_a_table_that_has_ended_needs_its_topic_no_more(connector, tmp_path):
    connector.snapshot(USERS)
    source = topic_feed(connector, tmp_path, None, bounded_mode=BoundedMode.LATEST)
    assert topic_feed_module.run(source.config, source.told) == 0
    events = [event["event"] for event in source.told.events]
    assert (events.count("watermark"), events[-1]) == (1, "ended")
    delete_topics(connector.servers, connector.topic)
    again = TopicFeed(source.config)
    assert topic_feed_module.run(again.config, again.told) == 0
    assert [event["event"] for event in again.told.events] == ["streaming", "watermark", "ended"]
    assert again.told.state == source.told.state
    assert (source.rows(), source.copy().generation) == (USERS, 1)


def test_a_table_whose_end_is_not_there_yet_is_waited_for(single, tmp_path):
    single.snapshot({1: "a", 2: "b"})
    bound = {"bounded_mode": BoundedMode.SPECIFIC, "end_offsets": ((0, 3),)}
    source = topic_feed(single, tmp_path, None, **bound)
    with source.session() as session:
        assert source.run(session)["missing"] == "applied"
        single.change(1, "last")
        single.change(2, "behind the end")
        assert source.run(session)["complete"]
    assert source.rows() == {1: "last", 2: "b"}


def test_rows_without_a_key_are_known_by_their_places(kafka, tmp_path):
    topic = create_topic(kafka.bootstrap_servers, partitions=2)
    same = row(1, "a")
    produce(kafka.bootstrap_servers, topic, [same, same, row(2, "b")], partition=0)
    produce(kafka.bootstrap_servers, topic, [same], partition=1)
    source = placed_feed(kafka.bootstrap_servers, topic, tmp_path)
    with source.session() as session:
        state = source.run(session)
        assert (state["complete"], state["evidence"]) == (True, "end_offsets")
        assert sorted(r["name"] for r in source.copy().rows.values()) == ["a", "a", "a", "b"]
        produce(kafka.bootstrap_servers, topic, [row(2, "c")], partition=1)
        source.run(session)
    places = {key: r["name"] for key, r in source.copy().rows.items()}
    assert places == {(0, 0): "a", (0, 1): "a", (0, 2): "b", (1, 0): "a", (1, 1): "c"}
    produce(kafka.bootstrap_servers, topic, [None], keys=[{"id": 1}], partition=0)
    with pytest.raises(ForeignRecordError, match=r"record 0/3 .*its value is null"):
        source.run()
    write_decisions(source.config.decisions_file, skipped(source, 0, 3))
    source.run()  # there is nothing but the record that is left out
    assert {key: r["name"] for key, r in source.copy().rows.items()} == places


def placed_feed(servers, topic, directory):
    """A feed of the rows of `topic`, whose table has no key."""
    kafka = KafkaOptions(servers, topic)
    ends = tuple(sorted(KafkaCluster(kafka).end_offsets(topic).items()))
    made = TopicSource(kafka, JSON_FORMAT, end_offsets=ends, changelog_partitions=2)
    config = TopicFeedConfig(
        source=made,
        fields=(*USER_COLUMNS, *COORDINATES),
        primary_key=tuple(field.name for field in COORDINATES),
        kafka=KafkaOptions(servers, create_topic(servers, partitions=2)),
        state_file=directory / "source.json",
        decisions_file=directory / "decisions.json",
    )
    return TopicFeed(from_json(TopicFeedConfig, as_json(config)))


# Versions
# --------------------------------------------------------------------------------------------------

AT = Field("at", SqlType(TypeName.TIMESTAMP, 3))
DAY_MS = 1_700_000_000_000


def versioned_feed(source, metadata=()):
    config = source.config
    made = replace(config.source, metadata=metadata)
    return TopicFeed(replace(config, source=made, fields=(*USER_COLUMNS, AT), rowtime="at"))


def by_metadata(source, key):
    metadata = (MetadataField("at", key, AT.type),)
    return versioned_feed(source, metadata=metadata)


def told_changes(source):
    """What its changelog says of each change: op, key, and the time in milliseconds."""
    return [change for _, change in told_with_places(source)]


def told_with_places(source):
    """The same with partition and offset of the record that each is of; repeats are left out."""
    kafka = source.config.kafka
    captured = captured_columns(source.config.fields)
    records = sorted(consume(kafka.bootstrap_servers, kafka.topic), key=lambda r: r.offset)
    columns = {
        "key": pa.array([r.key for r in records], pa.binary()),
        "value": pa.array([r.value for r in records], pa.binary()),
        "partition": pa.array([r.partition for r in records], pa.int32()),
        "offset": pa.array([r.offset for r in records], pa.int64()),
    }
    rows = decode(pa.RecordBatch.from_pydict(columns), captured, topic="t", before=("at",)).batch
    times = [None if t is None else t // 1000 for t in rows["at"].cast(pa.int64()).to_pylist()]
    told = zip(rows["_op"].to_pylist(), rows["id"].to_pylist(), times, strict=True)
    places = zip(rows["_partition"].to_pylist(), rows["_pos"].to_pylist(), strict=True)
    first = {}
    for place, change in zip(places, told, strict=True):
        if change[0] != "w":
            first.setdefault(place, change)
    return list(first.items())


def dated(key, ms):
    return {"id": key, "name": f"n{key}", "at": DAY_MS + ms}


def test_a_deletion_ends_the_newest_row_of_its_key_also_behind_a_restart(single, tmp_path):
    source = versioned_feed(topic_feed(single, tmp_path))
    for key, mark in ((1, "first_in_data_collection"), (2, "last_in_data_collection")):
        single.send({"id": key}, envelope("r", None, dated(key, key), mark, DAY_MS))
    source.run()
    single.send({"id": 1}, envelope("u", None, dated(1, 5), "false", single.tick()))
    single.change(2, None)  # the connector's record of it has another image, and no time
    source.run()
    single.send({"id": 1}, None)
    single.send({"id": 3}, None)
    source.run()
    expected = [("r", 1, 1), ("r", 2, 2), ("c", 1, 5), ("d", 2, 2), ("d", 1, 5)]
    assert told_changes(source) == [(op, key, DAY_MS + ms) for op, key, ms in expected]


def test_a_deletion_that_is_read_again_does_not_end_a_later_row(kafka, tmp_path):
    connector = Connector(kafka.bootstrap_servers, 2)
    source = versioned_feed(topic_feed(connector, tmp_path))
    first = envelope("r", None, dated(1, 1), "first_in_data_collection", DAY_MS)
    connector.send({"id": 1}, first)
    began = connector.tick(5_000)
    with source.session() as session:
        source.run(session)
        connector.send({"id": 3}, envelope("r", None, dated(3, 3), "true", began))
        connector.change(1, None)
        connector.send({"id": 1}, envelope("u", None, dated(1, 7), "false", connector.tick()))
        assert source.run(session)["generation"] == 1
        connector.at_ms = began
        second = envelope("r", None, dated(2, 2), "first_in_data_collection", began)
        connector.send({"id": 2}, second)
        assert source.run(session)["generation"] == 2
    connector.close()
    records = consume(connector.servers, source.config.kafka.topic)
    told = [json.loads(record.value) for record in records]
    gone = [(v["source"]["gen"], v["before"]["at"]) for v in told if v["op"] == "d"]
    assert [generation for generation, _ in gone] == [1], "the later snapshot has no such row"


@pytest.mark.parametrize("step", ["abandoned", "another_topic"])
def test_what_earlier_generations_kept_goes_when_a_topic_begins_anew(single, tmp_path, step):
    for key, mark in ((1, "first_in_data_collection"), (2, "last_in_data_collection")):
        single.send({"id": key}, envelope("r", None, dated(key, key), mark, DAY_MS))
    feed = topic_feed(single, tmp_path, heard(single))
    if step == "abandoned":
        feed.run()
        abandon(feed.config.state_file, "its changelog topic is gone")
    left = [f"source.{kind}-{n}" for kind in FILES_OF_KEYS for n in (0, 7)]
    for name in (*left, "source.owners-1-3", "source.values-places-2", "sources.values-1"):
        (tmp_path / name).write_bytes(b"left over")
    source = versioned_feed(feed)
    source.run()
    there = {path.name for path in tmp_path.iterdir()}
    number = read_journal(source.config.state_file).generation
    kept = {f"source.row-keys-{number}", f"source.place-keys-{number}"} & there
    kept |= {"source.row-times-0", "source.row-offsets-0", "sources.values-1", "source.json"}
    assert there - kept == set()


def test_a_change_of_a_connector_may_be_known_by_its_time_in_the_database(single, tmp_path):
    source = by_metadata(topic_feed(single, tmp_path), "value.source.timestamp")
    read_ms = single.snapshot({1: "a", 2: "b"})
    source.run()
    single.change(1, "other")
    changed_ms = single.at_ms - 10
    single.change(1, None)
    gone_ms = single.at_ms - 20
    source.run()
    expected = [("r", 1, read_ms), ("r", 2, read_ms), ("c", 1, changed_ms), ("d", 1, gone_ms)]
    assert told_changes(source) == expected, "its tombstone is no deletion of its own"
    single.send({"id": 2}, None)
    with pytest.raises(ForeignRecordError, match=r"0/5 .*deletes a row and does not say when"):
        source.run()
    write_decisions(source.config.decisions_file, skipped(source, 0, 5))
    single.change(2, "back")
    source.run()
    assert [(op, key) for op, key, _ in told_changes(source)[4:]] == [("c", 2)]


def test_rows_by_key_may_have_the_time_of_their_records(single, tmp_path):
    single.send({"id": 1}, row(1, "a"))
    single.send({"id": 1}, None)
    single.send({"id": 2}, None)
    feed = topic_feed(single, tmp_path, None, value=JSON_FORMAT, key=RecordKey(("id",)))
    source = by_metadata(feed, "timestamp")
    source.run()
    at = [single.at_ms - 20, single.at_ms - 10, single.at_ms]
    expected = [("c", 1, at[0]), ("d", 1, at[1]), ("d", 2, at[2])]
    assert told_changes(source) == expected
    assert not list(tmp_path.glob("*.times-*")), "each record has a time itself"


def test_rows_by_key_end_with_the_time_of_the_row(single, tmp_path):
    for ms in (7, 3):  # out of order
        single.send({"id": 1}, {"id": 1, "name": "a", "at": f"2024-01-01 00:00:00.00{ms}"})
    single.send({"id": 1}, None)
    feed = topic_feed(single, tmp_path, None, value=JSON_FORMAT, key=RecordKey(("id",)))
    source = versioned_feed(feed)
    source.run()
    day = 1_704_067_200_000
    assert told_changes(source) == [("c", 1, day + 7), ("c", 1, day + 3), ("d", 1, day + 3)]


@pytest.mark.parametrize("seed", range(3))
def test_deletions_end_the_same_rows_wherever_the_process_dies(connector, tmp_path, seed):
    """What was sent twice is told by its position, as the build side tells it."""
    rng, rows, expected = random.Random(seed), {}, {}
    feed = topic_feed(connector, tmp_path, None, value=JSON_FORMAT, key=RecordKey(("id",)))
    source, offsets = versioned_feed(feed), dict.fromkeys(range(connector.partitions), 0)
    for _ in range(6):
        for _ in range(rng.randrange(12)):
            key, ms = rng.randrange(5), rng.randrange(1_000)
            partition = key % connector.partitions
            place = (partition, offsets[partition])
            offsets[partition] += 1
            if rng.random() < 0.6:
                at = f"2023-11-14 22:13:20.{ms:03}"
                connector.send({"id": key}, {"id": key, "name": "n", "at": at})
                rows[key] = DAY_MS + ms
                expected[place] = ("c", key, rows[key])
            else:
                connector.send({"id": key}, None)
                if key in rows:
                    expected[place] = ("d", key, rows.pop(key))
        with source.session() as session:
            if rng.random() < 0.5:
                source.run(session)
            else:
                dies_before_it_keeps(source, session)
    source.run()
    assert dict(told_with_places(source)) == expected


def dies_before_it_keeps(source, session):
    config = source.config
    producer = TopicProducer(config.kafka, config.partitions, config.source.kafka.topic)
    session.step(producer)
    producer.close()
