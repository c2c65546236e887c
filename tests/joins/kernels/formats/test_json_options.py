"""Flink's options of json: what becomes of records that do not fit, and how rows are written."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings

from joins.plan.formats import KafkaFormat
from joins.plan.plan import Field
from joins.plan.types import (
    Member,
    SqlType,
    TypeName,
    array_type,
    map_type,
    row_type,
)
from tests.support.formats import ALL_TYPES, bad, batch_of, batches, form, read, written
from tests.support.laws import examples

INT, STRING = SqlType(TypeName.INT), SqlType(TypeName.STRING)
POINT = row_type(Member("x", INT), Member("at", SqlType(TypeName.TIMESTAMP, 3)))
FIELDS = (
    Field("id", INT),
    Field("name", STRING),
    Field("p", POINT),
    Field("l", array_type(INT)),
    Field("m", map_type(INT)),
)
JSON = form(KafkaFormat.JSON)
LENIENT = form(KafkaFormat.JSON, ignore_parse_errors="true")
STRICT = form(KafkaFormat.JSON, fail_on_missing_field="true")
WHOLE = '{"id":1,"name":"a","p":{"x":2,"at":"2026-01-02 03:04:05.006"},"l":[3],"m":{"k":4}}'

MENDED = {
    "a_column": ('{"id":"x","name":"a"}', {"name": "a"}),
    "a_number_that_is_too_large": ('{"id":3000000000,"name":"a"}', {"name": "a"}),
    "a_number_that_no_double_holds": ('{"id":1e999,"name":"a"}', {"name": "a"}),
    "a_field_of_a_row": ('{"p":{"x":"no","at":"2026-01-02T03:04:05"}}', {"p": {"x": None}}),
    "a_time_in_a_row": ('{"p":{"x":1,"at":"yesterday"}}', {"p": {"x": 1, "at": None}}),
    "an_element": ('{"l":[1,"x",3]}', {"l": [1, None, 3]}),
    "a_value_of_a_map": ('{"m":{"a":1,"b":{}}}', {"m": [("a", 1), ("b", None)]}),
    "a_row_that_is_an_array": ('{"id":1,"p":[]}', {"id": 1}),
    "the_last_of_two": ('{"id":1,"id":2}', {"id": 2}),
    "half_a_character": ('{"id":1,"name":"\\ud800"}', {"id": 1}),
    "half_a_character_beside_it": ('{"m":{"\\ud800":1,"a":"x"}}', {"m": [("a", None)]}),
    "nothing_that_is_read": ('{"id":1,"other":1e999}', {"id": 1}),
    "a_constant_that_is_no_json": ('{"id":NaN,"name":"a"}', {"name": "a"}),
    "a_row_that_is_nested_too_deeply": (
        '{"id":1,"p":' + '{"x":' * 3000 + "1" + "}" * 3001,
        {"id": 1},
    ),
    "text_behind": ('{"id":1}{"id":2}', {"id": 1}),
    "half_of_it_behind": ('{"id":1}{"id":', {"id": 1}),
    "an_array": ('[1,{"id":1},null]', {"id": 1}),
}


@pytest.mark.parametrize(("text", "expected"), MENDED.values(), ids=MENDED)
def test_what_does_not_fit_is_null(text, expected):
    parsed = read(LENIENT, FIELDS, [WHOLE.encode(), text.encode(), WHOLE.encode()])
    assert parsed.bad == ()
    assert parsed.row_index.to_pylist() == [0, 1, 2]
    (row,) = parsed.batch.slice(1, 1).to_pylist()
    for name, value in expected.items():
        shown = row[name]
        assert {**shown, **value} == shown if isinstance(value, dict) else shown == value
    assert [name for name in row if name not in expected and row[name] is not None] == []


SKIPPED = (b"", b"nothing", b"[1]", b"{", b"\xff", b'{"id":nan}', b'"a"', None)


def test_what_is_no_object_is_passed_over():
    parsed = read(LENIENT, FIELDS, [WHOLE.encode(), *SKIPPED, WHOLE.encode()])
    assert (parsed.bad, parsed.row_index.to_pylist()) == ((), [0, len(SKIPPED) + 1])
    assert len(bad(read(JSON, FIELDS, list(SKIPPED)))) == len(SKIPPED)


MISSING = {
    "nothing": (WHOLE, None),
    "a_column_that_is_null": (WHOLE.replace("[3]", "null"), None),
    "a_column": ('{"id":1,"name":"a","p":null,"l":null}', 'field "m" is missing'),
    "a_field_of_a_row": (
        WHOLE.replace('"x":2,', ""),
        'field "p.x" is missing',
    ),
    "a_field_that_is_null": (WHOLE.replace('"x":2', '"x":null'), None),
}


@pytest.mark.parametrize(("text", "reason"), MISSING.values(), ids=MISSING)
def test_a_record_without_a_column_is_dead_if_it_is_asked_for(text, reason):
    parsed = read(STRICT, FIELDS, [WHOLE.encode(), text.encode(), b"5"])
    expected = [] if reason is None else [(1, reason)]
    assert bad(parsed) == [*expected, (2, "the value is not one JSON object")]
    assert bad(read(JSON, FIELDS, [text.encode()])) == []


def test_a_row_in_an_array_lacks_a_field():
    fields = (Field("rows", array_type(POINT)), Field("by", map_type(POINT)))
    whole = b'{"rows":[{"x":null,"at":null}],"by":{"a":{"x":1,"at":null}}}'
    texts = [whole, whole.replace(b'"x":null,', b""), whole.replace(b'"x":1,', b"")]
    assert bad(read(STRICT, fields, texts)) == [
        (1, 'field "rows[].x" is missing'),
        (2, 'field "by[].value.x" is missing'),
    ]


def test_times_are_written_with_a_t_and_read_with_either():
    kinds = (SqlType(TypeName.TIMESTAMP, 3), SqlType(TypeName.TIMESTAMP_LTZ, 3))
    fields = (Field("a", kinds[0]), Field("b", kinds[1]), Field("l", array_type(kinds[0])))
    iso = form(KafkaFormat.JSON, timestamp_format__standard="ISO-8601")
    texts = read(JSON, fields, [b'{"a":"2026-01-02 03:04:05","b":"2026-01-02 03:04:05Z"}'])
    rows = texts.batch.set_column(2, "l", pa.array([[None]], texts.batch.schema.field("l").type))
    assert json.loads(written(iso, fields, rows)[0].as_py()) == {
        "a": "2026-01-02T03:04:05.000000",
        "b": "2026-01-02T03:04:05.000000Z",
        "l": [None],
    }
    for how in (iso, JSON):
        assert read(JSON, fields, written(how, fields, rows)).batch.equals(rows)


NULLS = {
    "all": ((None, None, None), "{}"),
    "the_first": ((None, "a", {"x": None, "at": None}), '{"name":"a","p":{}}'),
    "the_last": ((1, ",", None), '{"id":1,"name":","}'),
    "none": ((1, "", {"x": 2, "at": None}), '{"id":1,"name":"","p":{"x":2}}'),
}


@pytest.mark.parametrize(("row", "text"), NULLS.values(), ids=NULLS)
def test_nulls_are_left_out_if_it_is_asked_for(row, text):
    how = form(KafkaFormat.JSON, encode__ignore_null_fields="true")
    rows = batch_of(FIELDS[:3], [row])
    assert written(how, FIELDS[:3], rows).to_pylist() == [text.encode()]
    assert read(how, FIELDS[:3], [text.encode()]).batch.equals(rows)


@settings(max_examples=examples(200))
@given(batches(ALL_TYPES))
def test_what_is_written_is_read(rows):
    iso = form(KafkaFormat.JSON, timestamp_format__standard="ISO-8601")
    bare = form(KafkaFormat.JSON, encode__ignore_null_fields="true")
    for how in (JSON, iso, bare):
        parsed = read(JSON, ALL_TYPES, written(how, ALL_TYPES, rows))
        assert bad(parsed) == []
        assert parsed.batch.equals(rows)
