"""What is known of a topic at submission: it is there, and its newest records fit."""

import pyarrow as pa
import pytest

from joins.adapters.topic.check import NewestRecord, _RecordCheck, check_topic, newest_records
from joins.adapters.topic.decoding import decoder_of
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field, KafkaOptions, SnapshotEvidence, TopicSource
from joins.plan.types import SqlType, TypeName
from tests.support.foreign_topics import FIELDS, envelope, row
from tests.support.topics import create_topic, produce, unique_name

MORE = (*FIELDS, Field("age", SqlType(TypeName.INT)))
FLAT = (("layout", "flat"),)
ENVELOPE = envelope("u", None, row(1, "a"), "false", 1)


def source(kafka, topic, *options, format_=KafkaFormat.DEBEZIUM_JSON, **evidence):
    shown = SnapshotEvidence(**evidence) if format_ is KafkaFormat.DEBEZIUM_JSON else None
    where = KafkaOptions(kafka.bootstrap_servers, topic)
    return TopicSource(where, RecordFormat(format_, options), shown)


FITS = {
    "an_envelope": ([ENVELOPE], (), FIELDS),
    "an_envelope_with_its_schema": ([{"schema": {}, "payload": ENVELOPE}], (), FIELDS),
    "a_delete_of_a_key": ([envelope("d", {"id": 1}, None, "false", 1)], (), FIELDS),
    "a_flat_row": ([{**row(1, "a"), "__snapshot": "true"}], FLAT, FIELDS),
    "a_column_that_may_be_missing": ([ENVELOPE], (("fail-on-missing-field", "false"),), MORE),
    "nothing_at_all": ([], (), FIELDS),
}
FAULTS = {
    "no_json": ([b"{x"], (), FIELDS, (SourceError, "is not JSON")),
    "avro": ([b"\x00\x00\x00\x00\x01abc"], (), FIELDS, (SourceError, "Avro")),
    "no_object": ([[1]], (), FIELDS, (SourceError, "is no object")),
    "a_row_by_itself": ([row(1, "a")], (), FIELDS, (SourceError, "is no envelope")),
    "a_missing_column": ([ENVELOPE], (), MORE, (DefinitionError, 'has no column "age"')),
    "a_flat_row_without_evidence": ([row(1, "a")], FLAT, FIELDS, (SourceError, "of a snapshot")),
}


@pytest.mark.parametrize(("values", "options", "fields"), FITS.values(), ids=FITS)
def test_a_topic_fits(kafka, values, options, fields):
    topic = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, values)
    check_topic(source(kafka, topic, *options), fields, ("id",))


@pytest.mark.parametrize(("values", "options", "fields", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_topic_does_not_fit(kafka, values, options, fields, fault):
    topic = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, values)
    kind, text = fault
    with pytest.raises(kind, match=text):
        check_topic(source(kafka, topic, *options), fields, ("id",))


READ = {
    "an_array_of_one_row": b'[{"id":1,"name":"a"}]',
    "a_byte_order_mark": b'\xef\xbb\xbf{"id":1}',
    "utf_16": '{"id":1}'.encode("utf-16"),
    "a_control_character": b'{"id":1,"name":"a\x01\tb"}',
    "a_number_without_bound": b'{"id":1,"x":1e999,"y":NaN}',
    "half_a_pair_that_is_not_read": b'{"id":1,"x":"\\ud800"}',
    "members_of_an_envelope": b'{"id":1,"schema":2,"payload":{"id":"x"}}',
    "texts_for_numbers": b'{"id":"1","name":5}',
}


@pytest.mark.parametrize("value", READ.values(), ids=READ)
def test_a_submission_takes_what_is_read_later(value):
    of_rows = TopicSource(KafkaOptions("b:1", "t"), RecordFormat(KafkaFormat.JSON), None)
    record = {"key": b"k", "value": value, "partition": 0, "offset": 0, "timestamp": None}
    decoder = decoder_of(of_rows, FIELDS, ("id",), None)
    batch = pa.RecordBatch.from_pylist([record])
    decoded = decoder.decode(batch.set_column(4, "timestamp", pa.nulls(1, pa.timestamp("ms"))))
    assert (decoded.bad, decoded.after.column("id").to_pylist()) == ((), [1])
    _RecordCheck(of_rows, FIELDS, ("id",)).look(NewestRecord(0, 0, b"k", value))


def test_a_tombstone_tells_nothing(kafka):
    topic = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [None], keys=[{"id": 1}])
    check_topic(source(kafka, topic), FIELDS, ("id",))


def test_what_the_evidence_needs_is_there(kafka):
    topic = create_topic(kafka.bootstrap_servers)
    with pytest.raises(SourceError, match="does not exist"):
        check_topic(source(kafka, unique_name("none")), FIELDS, ("id",))
    missing = source(kafka, topic, notifications_topic=unique_name("none"))
    with pytest.raises(SourceError, match="does not exist"):
        check_topic(missing, FIELDS, ("id",))
    away = source(kafka, topic, connect_url="http://127.0.0.1:9", connector="shop")
    with pytest.raises(SourceUnavailableError, match="Kafka Connect"):
        check_topic(away, FIELDS, ("id",))


def test_rows_by_key_need_their_key_only(kafka):
    topic = create_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [{"id": 1}])
    check_topic(source(kafka, topic, format_=KafkaFormat.JSON), FIELDS, ("id",))
    produce(kafka.bootstrap_servers, topic, [{"name": "a"}])
    with pytest.raises(DefinitionError, match='has no column "id"'):
        check_topic(source(kafka, topic, format_=KafkaFormat.JSON), FIELDS, ("id",))


def test_the_newest_records_of_all_partitions_are_looked_at(kafka):
    topic = create_topic(kafka.bootstrap_servers, partitions=2)
    for partition in (0, 1):
        produce(kafka.bootstrap_servers, topic, range(9), partition=partition)
    where = KafkaOptions(kafka.bootstrap_servers, topic)
    read = {(each.partition, each.offset) for each in newest_records(where, 2)}
    assert {(0, 8), (1, 8)} <= read
    assert len(read) <= 4


def test_a_cluster_that_is_not_there_may_come_back():
    with pytest.raises(SourceUnavailableError, match="cannot be reached"):
        newest_records(KafkaOptions("127.0.0.1:9", "t"), 1)
