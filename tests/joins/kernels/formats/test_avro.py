"""Avro in Confluent's wire format: what fastavro writes is read, what it does not read is bad."""

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.debezium.changes import RecordFault
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.formats.avro_payloads import AvroMemory, AvroRows, warm_up
from joins.kernels.formats.avro_schema import Program
from joins.plan.plan import Field
from tests.support.expressions import sql_type
from tests.support.laws import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
PRICES = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2))
NARROW = st.floats(width=32, allow_nan=False)
MOMENTS = st.datetimes(timezones=st.just(UTC))
PART = {"type": "record", "name": "Part", "fields": [{"name": "n", "type": "int"}]}
COLUMNS = {
    "a_long": ("BIGINT", "long", LONGS),
    "an_int": ("INT", "int", INTS),
    "a_small_int": ("SMALLINT", {"type": "int", "connect.type": "int16"}, st.integers(-9, 9)),
    "a_text": ("STRING", "string", TEXTS),
    "a_switch": ("BOOLEAN", "boolean", st.booleans()),
    "a_double": ("DOUBLE", "double", st.floats(allow_nan=False)),
    "a_float": ("FLOAT", "float", NARROW),
    "a_wide_float": ("DOUBLE", "float", NARROW),
    "some_bytes": ("BYTES", "bytes", st.binary(max_size=9)),
    "four_bytes": (
        "BYTES",
        {"type": "fixed", "name": "Four", "size": 4},
        st.binary(min_size=4, max_size=4),
    ),
    "a_price": ("DECIMAL(10, 2)", DECIMAL, PRICES),
    "a_word": (
        "STRING",
        {"type": "enum", "name": "Word", "symbols": ["x", "y"]},
        st.sampled_from("xy"),
    ),
    "a_day": ("DATE", {"type": "int", "logicalType": "date"}, st.dates()),
    "an_instant": (
        "TIMESTAMP_LTZ(6)",
        {"type": "long", "logicalType": "timestamp-micros"},
        MOMENTS,
    ),
    "numbers": (
        "ARRAY<INT>",
        {"type": "array", "items": ["null", "int"]},
        st.lists(st.none() | INTS),
    ),
    "names": (
        "MAP<STRING, BIGINT>",
        {"type": "map", "values": "long"},
        st.dictionaries(TEXTS, LONGS, max_size=3),
    ),
    "a_part": ("ROW<n INT>", PART, st.fixed_dictionaries({"n": INTS})),
    "parts": (
        "ARRAY<ROW<n INT>>",
        {"type": "array", "items": "Part"},
        st.lists(st.fixed_dictionaries({"n": INTS}), max_size=3),
    ),
}
FIELDS = [Field(name, sql_type(kind)) for name, (kind, _, _) in COLUMNS.items()]
SCHEMA = {
    "type": "record",
    "name": "Row",
    "namespace": "test.rows",
    "fields": [{"name": name, "type": ["null", kind]} for name, (_, kind, _) in COLUMNS.items()],
}
ROWS = st.fixed_dictionaries({name: st.none() | each for name, (_, _, each) in COLUMNS.items()})
PARSED = fastavro.parse_schema(json.loads(json.dumps(SCHEMA)))
SCHEMAS = {7: json.dumps(SCHEMA)}


def written(row, parsed=PARSED, number=7):
    body = io.BytesIO()
    fastavro.schemaless_writer(body, parsed, row)
    return struct.pack(">bI", 0, number) + body.getvalue()


def as_read(row):
    maps = None if row["names"] is None else list(row["names"].items())
    return row | {"names": maps}


def comparable(row):
    return {name: "nan" if value != value else value for name, value in row.items()}


@settings(max_examples=examples(600))
@given(rows=st.lists(ROWS, max_size=4))
def test_what_is_written_is_read(rows):
    values = pa.array([written(row) for row in rows], pa.binary())
    read = AvroRows(FIELDS, SCHEMAS.get).parse(values)
    assert read.bad == ()
    assert read.batch.to_pylist() == [as_read(row) for row in rows]
    assert read.row_index.to_pylist() == list(range(len(rows)))


@settings(max_examples=examples(1_500))
@given(row=ROWS, data=st.data())
def test_damaged_bytes_are_bad_or_what_the_reference_reads(row, data):
    value = bytearray(written(row))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(5, len(value)))
        if data.draw(st.booleans()):
            value[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        else:
            del value[at : at + data.draw(st.integers(1, 4))]
    read = AvroRows(FIELDS, SCHEMAS.get).parse(pa.array([bytes(value)], pa.binary()))
    if read.bad:
        return
    body = io.BytesIO(bytes(value[5:]))
    expected = fastavro.schemaless_reader(body, PARSED, None)
    assert body.read() == b""
    (got,) = read.batch.to_pylist()
    assert comparable(got) == comparable(as_read(expected))


@settings(max_examples=examples(1_000))
@given(values=st.lists(st.none() | st.binary(max_size=30), max_size=4))
def test_no_bytes_raise(values):
    starts = [None if each is None else b"\0\0\0\0\7" + each for each in values]
    read = AvroRows(FIELDS, SCHEMAS.get).parse(pa.array([*values, *starts], pa.binary()))
    assert read.batch.num_rows + len(read.bad) == 2 * len(values)


def of_schema(schema, value, kind):
    """Of a column `x`: its value, or why it is bad."""
    whole = {"type": "record", "name": "R", "fields": [{"name": "x", "type": schema}]}
    number = written({"x": value}, fastavro.parse_schema(json.loads(json.dumps(whole))), 3)
    reader = AvroRows([Field("x", sql_type(kind))], {3: json.dumps(whole)}.get)
    read = reader.parse(pa.array([number], pa.binary()))
    return read.bad[0].reason if read.bad else read.batch.column(0)[0].as_py()


def of_connect(kind, name, **more):
    return {"type": kind, "connect.name": name, **more}


CASES = {
    "a_date_of_debezium": (
        of_connect("int", "io.debezium.time.Date"),
        19782,
        "DATE",
        date(2024, 2, 29),
    ),
    "a_year": (of_connect("int", "io.debezium.time.Year"), 2024, "INT", 2024),
    "millis_of_debezium": (
        of_connect("long", "io.debezium.time.Timestamp"),
        1000,
        "TIMESTAMP(6)",
        datetime.fromisoformat("1970-01-01T00:00:01"),
    ),
    "millis_of_avro_are_an_instant": (
        {"type": "long", "logicalType": "timestamp-millis"},
        datetime.fromtimestamp(1, UTC),
        "TIMESTAMP_LTZ(3)",
        datetime.fromtimestamp(1, UTC),
    ),
    "a_union_of_two_types": (["null", "int", "string"], 5, "INT", 5),
    "a_union_of_two_types_is_null": (["null", "int", "string"], None, "INT", None),
    "the_other_type_of_a_union": (["int", "string"], "x", "INT", '{"string":"x"} as union is no'),
    "the_other_type_of_a_union_as_text": (["int", "string"], "5", "STRING", "5"),
    "a_double_of_a_union": (["int", "double"], 0.5, "DOUBLE", 0.5),
    "an_int_of_a_union_as_a_double": (["int", "double"], 2, "DOUBLE", 2.0),
    "a_record_of_a_union": (["string", PART], {"n": 3}, "ROW<n INT>", {"n": 3}),
    "an_array_of_unions": (
        {"type": "array", "items": ["null", "long", "string"]},
        [1, None, 2],
        "ARRAY<BIGINT>",
        [1, None, 2],
    ),
    "a_union_of_times": (
        [{"type": "long", "logicalType": "timestamp-millis"}, "string"],
        datetime.fromtimestamp(1, UTC),
        "TIMESTAMP_LTZ(3)",
        datetime.fromtimestamp(1, UTC),
    ),
    "nanoseconds_of_avro": (
        {"type": "long", "logicalType": "timestamp-nanos"},
        1_000_000_000,
        "TIMESTAMP_LTZ(3)",
        datetime.fromtimestamp(1, UTC),
    ),
    "a_decimal_without_a_precision_is_bytes": (
        {"type": "bytes", "logicalType": "decimal"},
        b"\1",
        "BYTES",
        b"\1",
    ),
    "a_date_on_a_long_is_a_number": (
        {"type": "long", "logicalType": "date"},
        20_000,
        "BIGINT",
        20_000,
    ),
    "a_decimal_on_a_text_is_a_text": (
        {"type": "string", "logicalType": "decimal", "precision": 4, "scale": 2},
        "1.25",
        "STRING",
        "1.25",
    ),
    "a_union_of_null_alone": (["null"], None, "INT", "union is no INT"),
    "large_long_is_no_int": ("long", 2**31, "INT", "is no INT"),
    "double_is_no_decimal_beyond_its_digits": ("double", 1e17, "DECIMAL(20, 2)", "is no DECIMAL"),
    "double_as_a_decimal": ("double", 0.1, "DECIMAL(10, 2)", Decimal("0.10")),
    "controls_and_quotes": ("string", '\0\n"\\é', "STRING", '\0\n"\\é'),
    "bytes_are_no_text": ("bytes", b"a", "STRING", "is no STRING"),
}


@pytest.mark.parametrize(("schema", "value", "kind", "expected"), CASES.values(), ids=CASES)
def test_a_value_is_what_its_schema_says(schema, value, kind, expected):
    read = of_schema(schema, value, kind)
    is_reason = isinstance(expected, str) and kind != "STRING"
    is_reason |= isinstance(expected, str) and "is no" in expected
    if schema == ["null"]:
        assert read is None
    elif is_reason:
        assert expected in read
    else:
        assert read == expected


GUID = UUID("9b2f0c5e-1111-4222-8333-444455556666")
BAD = {
    "nothing": (None, "no value"),
    "too_short": (b"\0\0\0", "wire format"),
    "another_first_byte": (b"\1\0\0\0\7\0", "begins with 01 00 00 00 07"),
    "no_header": (b"\2\6abc", "ids in a header of the record are not read"),
    "aws_glue": (b"\3\0" + GUID.bytes + b"\2", f"AWS Glue, with schema version {GUID}"),
    "aws_glue_compressed": (b"\3\5" + GUID.bytes + b"\2", "AWS Glue"),
    "a_guid_of_confluent": (b"\1" + GUID.bytes + b"\2", f"by the GUID {GUID}"),
    "apicurio": (b"\0" + bytes(7) + b"\x09\2", "by the id 9 of eight bytes, as Apicurio's"),
    "azure": (bytes(4) + GUID.hex.encode() + b"\2", f"Azure's registry, with schema {GUID}"),
    "an_unknown_schema": (b"\0\0\0\0\x08\0", "the registry does not have schema 8"),
    "a_schema_that_is_none": (b"\0\0\0\0\x09\0", "its schema 9 cannot be read"),
    "cut_off": (written(dict.fromkeys(COLUMNS))[:-1], "not what its schema 7 says"),
    "more_behind": (written(dict.fromkeys(COLUMNS)) + b"\0", "not what its schema 7 says"),
}


@pytest.mark.parametrize(("value", "reason"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_told(value, reason):
    schemas = {**SCHEMAS, 9: '{"type":"nobody"}'}
    values = pa.array([written(dict.fromkeys(COLUMNS)), value], pa.binary())
    read = AvroRows(FIELDS, schemas.get).parse(values)
    assert read.row_index.to_pylist() == [0]
    assert [(bad.row, reason in bad.reason) for bad in read.bad] == [(1, True)]


CARRIERS = ("int", "long", "string", "bytes", "float", "double", "boolean")
ANNOTATIONS = (
    *("decimal", "date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros"),
    *("timestamp-nanos", "local-timestamp-millis", "local-timestamp-micros", "uuid", "duration"),
    *("local-timestamp-nanos", "nobody-knows"),
)
DECLARED = {
    "int": ("INT", INTS),
    "long": ("BIGINT", LONGS),
    "string": ("STRING", TEXTS),
    "bytes": ("BYTES", st.binary(max_size=9)),
    "float": ("FLOAT", NARROW),
    "double": ("DOUBLE", st.floats(allow_nan=False)),
    "boolean": ("BOOLEAN", st.booleans()),
}


@settings(max_examples=examples(500))
@given(
    data=st.data(),
    carrier=st.sampled_from(CARRIERS),
    annotation=st.sampled_from(ANNOTATIONS),
    others=st.sets(st.sampled_from(CARRIERS), max_size=3),
    is_wide=st.booleans(),
)
def test_a_value_is_that_of_the_type_below_its_annotation(
    data, carrier, annotation, others, is_wide
):
    """Written without the annotation by fastavro; alone and as a branch of a union."""
    kind, values = DECLARED[carrier]
    if carrier == "int" and is_wide:
        kind = "BIGINT"
    value = data.draw(values)
    annotated = {"type": carrier, "logicalType": annotation, "precision": 4, "scale": 2}
    rest = [other for other in sorted(others) if other != carrier]
    shapes = [(annotated, carrier), (["null", annotated], ["null", carrier])]
    shapes.append(([*rest, annotated, "null"], [*rest, carrier, "null"]))
    for told, plain in shapes:
        whole = {"type": "record", "name": "R", "fields": [{"name": "x", "type": plain}]}
        chosen = (carrier, value) if isinstance(plain, list) else value
        text = written({"x": chosen}, fastavro.parse_schema(json.loads(json.dumps(whole))), 3)
        whole["fields"][0]["type"] = told
        reader = AvroRows([Field("x", sql_type(kind))], {3: json.dumps(whole)}.get)
        read = reader.parse(pa.array([text], pa.binary()))
        if (carrier, annotation) == ("bytes", "decimal"):
            assert len(read.bad) == 1  # it is a number, not bytes
        else:
            assert read.bad == ()
            assert read.batch.column(0).to_pylist() == [value]


NO_SCHEMAS = {
    "no_json": "{",
    "a_number": "5",
    "an_unknown_type": '{"type":"nobody"}',
    "without_fields": '{"type":"record","name":"R"}',
    "a_part_of_itself": json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}
    ),
    "too_deep": '{"type":"array","items":' * 40 + '"int"' + "}" * 40,
}


@pytest.mark.parametrize("schema", NO_SCHEMAS.values(), ids=NO_SCHEMAS)
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(ValueError, match=r"\w"):
        Program.of(schema)


def test_parts_without_bytes_do_not_fill_the_memory():
    nothing = {"type": "array", "items": "null"}
    whole = {"type": "record", "name": "R", "fields": [{"name": "x", "type": nothing}]}
    value = b"\0\0\0\0\3" + b"\xfe\xff\xff\xff\xff\xff\x7f" + b"\0"
    reader = AvroRows([Field("x", sql_type("ARRAY<INT>"))], {3: json.dumps(whole)}.get)
    read = reader.parse(pa.array([value, value], pa.binary()))
    assert [bad.row for bad in read.bad] == [0, 1]


def test_changes_of_debezium_are_read():
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "table", "type": "string"}]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
        ],
    }
    schemas = {1: json.dumps(row), 2: json.dumps(envelope)}
    key, value = (fastavro.parse_schema(json.loads(each)) for each in schemas.values())
    changes = [
        {"before": None, "after": {"id": 5}, "source": {"table": "items"}, "op": "c"},
        {"before": {"id": 5}, "after": None, "source": {"table": "items"}, "op": "d"},
    ]
    values = [*(written(each, value, 2) for each in changes), None, b"\0\0\0\0\2"]
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([written({"id": 5}, key, 1)] * 4, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    payloads = AvroMemory(schemas.get), AvroMemory(schemas.get)
    decoder = DebeziumDecoder([Field("id", sql_type("BIGINT"))], ["id"], payloads=payloads)
    read = decoder.decode(batch)
    assert read.kind.to_pylist() == ["c", "d", "tombstone", "bad"]
    assert read.key.column(0).to_pylist() == [5, 5, 5, None]
    assert read.bad[0].fault is RecordFault.UNREADABLE


def test_what_is_read_to_warm_up_is_right(monkeypatch):
    seen, unwrapped = [], AvroMemory.unwrapped

    def noted(self, values):
        seen.append(unwrapped(self, values))
        return seen[-1]

    monkeypatch.setattr(AvroMemory, "unwrapped", noted)
    warm_up()
    assert [payloads.values.copied().to_pylist() for payloads in seen] == [[b"0"]]
