"""What a sample of a topic tells: layout, keys, tables, marks, and a table to declare."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.inspect import inspect_topic
from joins.kernels.debezium.options import DebeziumOptions, ValueLayout
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.plan import Field
from tests.support.expressions import sql_type

GOLDEN = Path(__file__).parents[3] / "golden" / "debezium"


def golden(mode, table="types"):
    lines = (GOLDEN / f"{mode}.jsonl").read_text().splitlines()[1:]
    own = [line for line in map(json.loads, lines) if line["topic"].endswith(f".{table}")]
    return batch([(line["key"], line["value"]) for line in own])


def batch(records, partitions=None):
    columns = zip(*records, strict=True) if records else ((), ())
    arrays = [
        pa.array([text if text is None else text.encode() for text in column], pa.binary())
        for column in columns
    ]
    arrays.append(pa.array(partitions or [0] * len(records), pa.int32()))
    return pa.RecordBatch.from_arrays(arrays, names=["key", "value", "partition"])


LAYOUTS = {
    "mariadb/default": (ValueLayout.ENVELOPE, False),
    "mariadb/with_schema": (ValueLayout.ENVELOPE, True),
    "postgres/flattened": (ValueLayout.FLAT, False),
    "postgres/flattened_with_schema": (ValueLayout.FLAT, True),
}


@pytest.mark.parametrize(("mode", "expected"), LAYOUTS.items(), ids=LAYOUTS)
def test_layout_and_schemas_are_seen(mode, expected):
    report = inspect_topic(golden(mode))
    assert (report.layout, report.with_schema > 0) == expected
    assert report.key == ("id",)


def test_operations_tables_and_marks_are_counted():
    report = inspect_topic(golden("postgres/default"))
    assert report.kinds == {"r": 6, "c": 6, "u": 3, "d": 2, "tombstone": 2}
    assert report.tables == {("golden", "public", "types"): 17}
    assert set(report.marks) == {0}
    assert report.marks[0]["false"] == 11
    assert sum(report.marks[0].values()) == 17


@pytest.mark.parametrize("database", ["mariadb", "postgres"])
def test_what_is_proposed_of_schemas_reads_the_records(database):
    records = golden(f"{database}/with_schema")
    report = inspect_topic(records)
    limits = {"c_decimal_widest", "c_numeric_any", "c_timestamptz", "c_point", "c_geometry"}
    columns = [
        Field(column.name, sql_type(column.sql))
        for column in report.columns
        if column.sql is not None and column.name not in limits
    ]
    assert len(columns) > 40
    changes = DebeziumDecoder(columns, report.key).decode(records)
    unsigned = [bad.reason for bad in changes.bad if "c_bigint_u" not in bad.reason]
    assert unsigned == []


def test_the_proposal_is_a_statement():
    for mode in ("mariadb/default", "mariadb/with_schema", "postgres/with_schema"):
        text = inspect_topic(golden(mode)).create_table(
            "it's", {"connector": "kafka", "topic": "a'b"}
        )
        assert "CREATE TABLE `it's` (" in text
        assert "'topic' = 'a''b'" in text
        assert re.search(r",\n\) WITH", text) is None


ROW = '{"user_id": 7, "at": "2026-01-01T00:00:00Z"}'
STREAMS = {
    "rows_without_key": ([(None, ROW), (None, ROW)], True),
    "key_that_is_no_object": ([("7", ROW)], True),
    "rows_with_a_key": ([('{"user_id": 7}', ROW)], False),
    "rows_with_members_of_debezium": ([(None, '{"user_id": 7, "__op": "c"}')], False),
    "rows_and_tombstones": ([(None, ROW), (None, None)], False),
    "changes": ([(None, '{"op": "c", "after": {"user_id": 7}}')], False),
    "nothing": ([], False),
}


@pytest.mark.parametrize(("records", "is_stream"), STREAMS.values(), ids=STREAMS)
def test_rows_without_key_and_marks_are_records_of_a_stream(records, is_stream):
    report = inspect_topic(batch(records))
    assert report.is_stream is is_stream
    statement = report.create_table("clicks", {})
    assert ("`user_id` BIGINT" in statement) is is_stream  # a sample of small numbers says little


COLUMNS = {
    "mixed_booleans": ([True, 1, False], "BOOLEAN", "true and false"),
    "zeros_and_ones": ([0, 1, 1], "INT", "BOOLEAN"),
    "large_numbers": ([1, 2**40], "BIGINT", ""),
    "millis": ([1_700_000_000_123], "BIGINT", "TIMESTAMP(3): 2023-11-14 22:13:20.123"),
    "micros": ([1_700_000_000_123_456], "BIGINT", "TIMESTAMP(6): 2023-11-14 22:13:20.123456"),
    "days": ([19_000], "INT", "DATE: 2022-01-08"),
    "unsigned": ([-1, 2**63 - 1], "BIGINT", "BIGINT UNSIGNED"),
    "instants": (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z"], "TIMESTAMP_LTZ(6)", ""),
    "base64": (["AQ==", "AQID"], "STRING", "base64"),
    "numbers_as_text": (["1.50", "-2"], "STRING", "DECIMAL(p, s)"),
    "words": (["a word", ""], "STRING", ""),
    "fractions": ([1.5, 2], "DOUBLE", "DECIMAL(p, s)"),
    "lists": ([[1, None], []], "ARRAY<INT>", ""),
    "variable_scale": ([{"scale": 3, "value": "AQ=="}], "DECIMAL(38, 3)", "its own scale"),
    "parts_of_a_date": ([{"year": 2024, "month": 1, "day": 1}], "DATE", ""),
    "objects": ([{"x": 1.5}], "ROW<`x` DOUBLE>", "MAP"),
    "nothing": ([None], "STRING", "NULL in the whole sample"),
    "of_several_kinds": ([1, "a"], None, "several"),
}


@pytest.mark.parametrize(("values", "sql", "note"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_without_a_schema_is_what_it_is_in_json(values, sql, note):
    records = [
        (json.dumps({"id": 1}), json.dumps({"op": "c", "after": {"x": value}, "source": {}}))
        for value in values
    ]
    (column,) = inspect_topic(batch(records)).columns
    assert column.sql == sql
    assert note in column.note


def test_a_topic_of_something_else_has_no_layout():
    report = inspect_topic(batch([(None, "5"), (None, "{"), ("x", None)], [0, 1, 1]))
    assert report.layout is None
    assert report.kinds == {"unreadable": 2, "tombstone": 1}
    assert (report.columns, report.key) == ((), ())


def test_encodings_that_change_are_told():
    row = '{"op":"c","after":{"x":%s},"source":{}}'
    (column,) = inspect_topic(batch([(None, row % "1"), (None, row % '"a"')])).columns
    assert column.encodings == ("integer", "string")
    assert "in several ways" in column.note


def test_no_records_tell_nothing():
    report = inspect_topic(batch([]))
    assert (report.records, report.layout, report.columns) == (0, None, ())


def test_avro_is_inspected_by_its_schemas():
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "long"}, {"name": "score", "type": ["null", "double"]}],
    }
    payloads = AvroMemory({1: json.dumps(schema)}.get), AvroMemory({1: json.dumps(schema)}.get)
    value = "\0\0\0\0\1" + "\2\0"
    report = inspect_topic(batch([(value, value)]), payloads)
    assert report.layout is ValueLayout.FLAT
    assert [(each.name, each.sql) for each in report.columns] == [
        ("id", "BIGINT"),
        ("score", "DOUBLE"),
    ]
    assert report.key == ("id", "score")


def test_options_of_flat_rows_are_not_columns():
    record = '{"id":1,"__op":"c","__deleted":"false","__table":"items","__source_snapshot":"last"}'
    report = inspect_topic(batch([('{"id":1}', record)]))
    assert [column.name for column in report.columns] == ["id"]
    assert report.tables == {(None, None, "items"): 1}
    assert report.marks == {0: {"last": 1}}
    assert DebeziumOptions(layout=report.layout).layout is ValueLayout.FLAT


ODD_VALUES = {
    "an_object_like_a_decimal": (
        {"scale": None, "value": "x"},
        "ROW<`scale` STRING, `value` STRING>",
    ),
    "a_decimal_of_thousands": ({"scale": -3, "value": "Dw=="}, "DECIMAL(38, 0)"),
    "more_than_64_bits": (1 << 64, "DECIMAL(38, 0)"),
    "more_than_a_double": (10**400, None),
}


@pytest.mark.parametrize(("value", "sql"), ODD_VALUES.values(), ids=ODD_VALUES)
def test_odd_values_have_a_proposal_too(value, sql):
    report = inspect_topic(batch([('{"id": 1}', json.dumps({"id": 1, "odd": value}))]))
    assert {column.name: column.sql for column in report.columns}["odd"] == sql
