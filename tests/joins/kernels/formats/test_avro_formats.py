"""avro and avro-confluent: fastavro reads what is written, and what it writes is read."""

import io
import json
import struct
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.registry import shared_schemas
from joins.kernels.formats.avro_schema import NoAvroError, avro_schema, schema_to_write
from joins.kernels.formats.decoders import decoder_of
from joins.kernels.formats.encoders import encoder_of
from joins.plan.connections import RegistryOptions
from joins.plan.errors import SourceUnavailableError
from joins.plan.formats import KafkaFormat, RecordFormat
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, map_type, row_type
from tests.support.formats import ALL_TYPES, bad, batch_of, batches, read, written
from tests.support.laws import examples
from tests.support.registry import registry

AVRO = RecordFormat(KafkaFormat.AVRO, (("timestamp_mapping.legacy", "false"),))
REGISTRY = RegistryOptions("http://registry:8081")
CONFLUENT = RecordFormat(KafkaFormat.AVRO_CONFLUENT, AVRO.options, REGISTRY)
INT, STRING = SqlType(TypeName.INT), SqlType(TypeName.STRING)
NOT_NULL = tuple(Field(f"n{item.name}", item.type, nullable=False) for item in ALL_TYPES)
INNER = row_type(Member("x", INT, nullable=False), Member("d", SqlType(TypeName.DECIMAL, 9, 2)))
NESTED = (
    Field("l", array_type(STRING)),
    Field("m", map_type(SqlType(TypeName.BIGINT), nullable=False), nullable=False),
    Field("r", INNER),
    Field("rows", array_type(INNER, nullable=False)),
)


def of_fastavro(how, fields, rows, schema):
    texts = written(how, fields, rows).to_pylist()
    parsed = fastavro.parse_schema(json.loads(schema))
    return [fastavro.schemaless_reader(io.BytesIO(text), parsed) for text in texts]


@settings(max_examples=examples(120))
@given(batches((*ALL_TYPES, *NOT_NULL)))
def test_what_is_written_is_read_here_and_by_fastavro(rows):
    fields = (*ALL_TYPES, *NOT_NULL)
    parsed = read(AVRO, fields, written(AVRO, fields, rows))
    assert bad(parsed) == []
    assert parsed.batch.equals(rows)
    schema = avro_schema(fields, legacy=False)
    theirs = of_fastavro(AVRO, fields, rows, schema)
    again = [io.BytesIO() for _ in theirs]
    for out, row in zip(again, theirs, strict=True):
        fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), row)
    parsed = read(AVRO, fields, [out.getvalue() for out in again])
    assert bad(parsed) == []
    assert parsed.batch.equals(rows)


MADE = st.none() | st.fixed_dictionaries(
    {
        "x": st.integers(-(2**31), 2**31 - 1),
        "d": st.none() | st.integers(-999, 999).map(lambda n: Decimal(n) / 4),
    }
)


@settings(max_examples=examples(120))
@given(
    st.lists(
        st.tuples(
            st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
            st.dictionaries(st.text(max_size=2), st.integers(-(2**63), 2**63 - 1), max_size=3),
            MADE,
            st.none() | st.lists(MADE.filter(lambda row: row is not None), max_size=2),
        ),
        max_size=4,
    )
)
def test_nested_values_are_read_as_they_were_written(made):
    rows = batch_of(NESTED, [(a, list(b.items()), c, d) for a, b, c, d in made])
    parsed = read(AVRO, NESTED, written(AVRO, NESTED, rows))
    assert bad(parsed) == []
    assert parsed.batch.to_pylist() == rows.to_pylist()
    theirs = of_fastavro(AVRO, NESTED, rows, avro_schema(NESTED, legacy=False))
    assert [list(row.values()) for row in theirs] == [list(row) for row in made]


def test_the_schema_is_that_of_flink():
    fields = (
        Field("id", SqlType(TypeName.BIGINT), nullable=False),
        Field("at", SqlType(TypeName.TIMESTAMP, 3)),
        Field("r", row_type(Member("d", SqlType(TypeName.DECIMAL, 10, 2)))),
    )
    schema = json.loads(avro_schema(fields, legacy=True))
    assert (schema["namespace"], schema["name"]) == ("org.apache.flink.avro.generated", "record")
    at, row = (each["type"][1] for each in schema["fields"][1:])
    assert schema["fields"][0] == {"name": "id", "type": "long"}
    assert at == {"type": "long", "logicalType": "timestamp-millis"}
    assert schema["fields"][1]["default"] is None
    assert (row["name"], row["fields"][0]["type"][1]["logicalType"]) == ("record_r", "decimal")
    fastavro.parse_schema(schema)
    new = json.loads(avro_schema(fields[1:2], legacy=False))
    assert new["fields"][0]["type"][1]["logicalType"] == "local-timestamp-millis"


NONE_OF_AVRO = {
    "a_name": (Field("a b", INT), True, "a name that Avro does not have"),
    "an_instant": (Field("a", SqlType(TypeName.TIMESTAMP_LTZ, 3)), True, r"TIMESTAMP_LTZ\(3\)"),
    "microseconds": (Field("a", SqlType(TypeName.TIMESTAMP, 6)), True, r"TIMESTAMP\(6\)"),
    "a_time": (Field("a", SqlType(TypeName.TIME, 6)), False, r"TIME\(6\)"),
}


@pytest.mark.parametrize(("field", "legacy", "message"), NONE_OF_AVRO.values(), ids=NONE_OF_AVRO)
def test_what_avro_does_not_have_is_said(field, legacy, message):
    with pytest.raises(NoAvroError, match=message):
        avro_schema([field], legacy=legacy)


NAMED = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "doc": "theirs",
    "fields": [
        {"name": "a", "type": {"type": "int", "doc": "x"}, "default": 7, "aliases": ["b"]},
        {
            "name": "r",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Part",
                    "fields": [{"name": "t", "type": ["null", "string"]}],
                },
            ],
        },
        {"name": "s", "type": ["null", "Part"]},
    ],
}
PART = row_type(Member("t", STRING))
OF_NAMED = (Field("a", INT, nullable=False), Field("r", PART), Field("s", PART))


def test_a_schema_that_is_given_is_registered_and_its_records_are_written():
    text, numbers = json.dumps(NAMED), []
    form = RecordFormat(KafkaFormat.AVRO_CONFLUENT, (("schema", text),), REGISTRY)

    def number_of(_, schema):
        numbers.append(schema)
        return 5

    rows = batch_of(OF_NAMED, [(1, {"t": "x"}, None), (-2, None, {"t": None})])
    sent = encoder_of(form, OF_NAMED, number_of).encode(rows, None).to_pylist()
    assert numbers == [text]
    schema = fastavro.parse_schema(NAMED)
    read_back = [fastavro.schemaless_reader(io.BytesIO(each[5:]), schema) for each in sent]
    assert read_back == rows.to_pylist()


OF_OTHER_ROWS = {
    "another_type": ("int", "long"),
    "nullable": ('{"type": "int", "doc": "x"}', '["null", "int"]'),
    "not_nullable": ('["null", "Part"]', '"Part"'),
    "null_behind": ('["null", "Part"]', '["Part", "null"]'),
    "another_name": ('"name": "s"', '"name": "z"'),
    "an_enum": ('"string"', '{"type": "enum", "name": "E", "symbols": ["a"]}'),
    "a_time": ('"type": "int"', '"type": "int", "logicalType": "date"'),
    "nothing": ('"Part"]', '"Nobody"]'),
    "no_json": ('"type"', "type"),
}


@pytest.mark.parametrize(("old", "new"), OF_OTHER_ROWS.values(), ids=OF_OTHER_ROWS)
def test_a_schema_of_other_rows_is_refused(old, new):
    text = json.dumps(NAMED)
    assert old in text
    form = RecordFormat(KafkaFormat.AVRO_CONFLUENT, (("schema", text.replace(old, new)),), REGISTRY)
    with pytest.raises(NoAvroError, match="the schema"):
        schema_to_write(form, OF_NAMED)


def test_broken_records_are_bad():
    fields = (Field("a", INT, nullable=False), Field("b", STRING))
    (whole,) = written(AVRO, fields, batch_of(fields, [(5, "x")])).to_pylist()
    parsed = read(AVRO, fields, [whole, whole[:-1], whole + b"\0", None, b"", whole], "b")
    assert parsed.row_index.to_pylist() == [0, 5]
    assert [row for row, _ in bad(parsed)] == [1, 2, 3, 4]
    assert parsed.batch.to_pylist() == [{"b": "x"}] * 2


def test_a_schema_has_its_number_and_the_reader_asks_for_it():
    fields, numbers = (Field("a", INT), Field("b", STRING)), {}

    def number_of(how, schema):
        assert how is CONFLUENT
        numbers[300] = schema
        return 300

    def schemas(options):
        assert options == REGISTRY
        return numbers.get

    rows = batch_of(fields, [(1, "x"), (None, None)])
    texts = encoder_of(CONFLUENT, fields, number_of).encode(rows, None)
    assert [text.as_py()[:5] for text in texts] == [struct.pack(">bI", 0, 300)] * 2
    other = (Field("b", STRING), Field("new", INT), Field("a", SqlType(TypeName.BIGINT)))
    decoder = decoder_of(CONFLUENT, other, ("a", "new", "b"), schemas)
    parsed = decoder.parse(pa.concat_arrays([texts, pa.array([b"\0\0\0\0\1x", b"{}"])]))
    assert parsed.batch.to_pylist() == [
        {"a": 1, "new": None, "b": "x"},
        {"a": None, "new": None, "b": None},
    ]
    assert [(row, reason.partition(",")[0]) for row, reason in bad(parsed)] == [
        (2, "the registry does not have schema 1"),
        (3, "it is not in Confluent's wire format"),
    ]


def test_a_schema_that_is_not_of_avro_makes_its_records_bad():
    fields = (Field("a", INT),)
    with registry() as own:
        own.add(1, {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
        own.add(2, "syntax = …", schemaType="PROTOBUF")
        own.add(3, "int", references=[{"name": "other"}])
        confluent = RecordFormat(KafkaFormat.AVRO_CONFLUENT, (), RegistryOptions(own.url))
        decoder = decoder_of(confluent, fields, ("a",), shared_schemas)
        parsed = decoder.parse(pa.array([struct.pack(">bI", 0, n) + b"\x02" for n in (1, 2, 3)]))
        assert parsed.batch.to_pylist() == [{"a": 1}]
        assert [row for row, _ in bad(parsed)] == [1, 2]
        assert 'of type "PROTOBUF"' in bad(parsed)[0][1]
        assert "refers to other schemas" in bad(parsed)[1][1]
        own.refusals.append(503)
        with pytest.raises(SourceUnavailableError):
            decoder.parse(pa.array([struct.pack(">bI", 0, 4)]))
