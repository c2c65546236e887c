"""Joined rows as records of a topic: the same as written row by row."""

import json
import math
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.json.encode import encode_objects
from joins.kernels.probe.probe import COORDINATES, JoinedBatch
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SinkError, SourceUnavailableError
from joins.plan.formats import KafkaFormat, RecordFormat, RecordKey
from joins.plan.plan import KafkaOptions, KafkaSink, OutputColumn
from joins.plan.stream_topics import SPAN
from joins.plan.types import Column, SqlType, TypeName, arrow_type
from joins.sinks.kafka import RecordEncoding
from tests.support.laws import examples
from tests.support.probe import PIN
from tests.support.registry import registry

TYPES = {
    "id": SqlType(TypeName.BIGINT),
    'na"me': SqlType(TypeName.STRING),
    "größe": SqlType(TypeName.DOUBLE),
    "ok": SqlType(TypeName.BOOLEAN),
}
OUTPUT = tuple(OutputColumn(name, Column("c", name, kind)) for name, kind in TYPES.items())
SCHEMA = pa.schema([(name, arrow_type(kind)) for name, kind in TYPES.items()])
SINK = KafkaSink(KafkaOptions("", ""), key=RecordKey(('na"me', "id")))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
WITH_ESCAPES = st.text('ab"\\\b\f\n\r\t\x00\x1f/é', max_size=6)
ROW = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | TEXT | WITH_ESCAPES,
    st.none() | st.integers(-1000, 1000).map(lambda number: number / 8),
    st.none() | st.booleans(),
)
PLACE = st.tuples(TEXT, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))


def column_batch(rows, schema):
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(ROW, PLACE), max_size=8), st.integers(0, 8))
def test_each_record_has_the_bytes_and_the_place_of_its_own_row(rows, first):
    joined = JoinedBatch(
        rows=column_batch([row for row, _ in rows], SCHEMA).slice(first),
        coordinates=column_batch([place for _, place in rows], COORDINATES).slice(first),
        dead_letters=pa.record_batch([]),
        matched=0,
        unmatched=0,
    )
    encoding = RecordEncoding.of(SINK, OUTPUT)
    records = encoding(joined, PIN)
    records.validate(full=True)
    assert records.num_rows == len(rows[first:])
    for record, (row, place) in zip(records.to_pylist(), rows[first:], strict=True):
        values = dict(zip(TYPES, row, strict=True))
        assert json.loads(record["value"]) == values
        assert list(json.loads(record["value"])) == list(TYPES)
        assert json.loads(record["key"]) == {name: values[name] for name in ('na"me', "id")}
        assert (int(record["partition"]), int(record["offset"])) == (place[1] % SPAN, place[2])
        assert record["topic"] is None, "it is the same for all records of the batch"
    of_several = encoding(joined, replace(PIN, end_offsets={SPAN: 1}))
    assert of_several.drop_columns("topic").equals(records.drop_columns("topic"))
    topics = [place[0].encode() for _, place in rows[first:]]
    assert of_several.column("topic").to_pylist() == topics


def test_the_text_is_that_of_json_without_blanks():
    columns = {
        "s": pa.array(['a"\\/', "\x00\x1f\x7f\n", None, "é😀"]),
        "i": pa.array([1, -(2**63), None, 0]),
        "d": pa.array([0.1, math.nan, math.inf, -0.0]),
        "t": pa.array([0, None, 86_400_000_001, 1], pa.timestamp("us", tz="UTC")),
    }
    batch = pa.record_batch(columns)
    assert encode_objects(batch).to_pylist() == [
        '{"s":"a\\"\\\\/","i":1,"d":0.1,"t":"1970-01-01 00:00:00.000000Z"}',
        '{"s":"\\u0000\\u001f\x7f\\n","i":-9223372036854775808,"d":null,"t":null}',
        '{"s":null,"i":null,"d":null,"t":"1970-01-02 00:00:00.000001Z"}',
        '{"s":"é😀","i":0,"d":-0,"t":"1970-01-01 00:00:00.000001Z"}',
    ]
    plain = batch.slice(2, 1).select(["s"])
    assert encode_objects(plain).to_pylist() == ['{"s":null}']


def test_schemas_of_rows_are_registered_before_any_row():
    output = tuple(each for each in OUTPUT if each.name in ("id", "ok"))
    with registry() as own:
        avro = RecordFormat(KafkaFormat.AVRO_CONFLUENT, registry=RegistryOptions(own.url))
        sink = KafkaSink(KafkaOptions("", "t"), avro, RecordKey(("id",), avro))
        own.refusals.append(503)
        with pytest.raises(SourceUnavailableError):  # which a job waits for
            RecordEncoding.of(sink, output)
        own.closed.add("t-value")
        with pytest.raises(SinkError, match="Incompatible schema"):
            RecordEncoding.of(sink, output)
        own.closed.clear()
        encoding = RecordEncoding.of(sink, output)
        assert sorted(own.subjects) == ["t-key", "t-value"]
        rows = column_batch([(1, True)], pa.schema([SCHEMA.field("id"), SCHEMA.field("ok")]))
        places = column_batch([("t", 0, 0)], COORDINATES)
        (record,) = encoding(
            JoinedBatch(rows, places, pa.record_batch([]), matched=0, unmatched=0), PIN
        ).to_pylist()
        assert record["key"] == b"\0" + own.subjects["t-key"].to_bytes(4) + b"\2\2"
        assert record["value"] == b"\0" + own.subjects["t-value"].to_bytes(4) + b"\2\2\2\1"
