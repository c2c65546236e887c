"""Columns of keys and of values, and rows that come of both."""

from dataclasses import replace

import pyarrow as pa
import pytest

from joins.kernels.formats.decoders import RecordColumns
from joins.plan.formats import JSON_FORMAT, KafkaFormat, RecordKey
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.formats import bad, form

FIELDS = tuple(
    Field(name, SqlType(kind))
    for name, kind in (
        ("k_id", TypeName.BIGINT),
        ("id", TypeName.STRING),
        ("k_part", TypeName.INT),
        ("n", TypeName.INT),
    )
)
KEY = RecordKey(("k_part", "k_id"), JSON_FORMAT, "k_", is_in_value=False)
COLUMNS = RecordColumns(FIELDS, JSON_FORMAT, KEY)


def records(*pairs):
    keys, values = zip(*pairs, strict=True)
    return pa.record_batch(
        [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"]
    )


READ = {
    "both": (("k_id", "id", "k_part", "n"), [(1, "a", 2, 3)]),
    "the_key_only": (("k_part",), [(2,)]),
    "the_value_only": (("n", "id"), [(3, "a")]),
    "in_another_order": (("n", "k_id"), [(3, 1)]),
}


@pytest.mark.parametrize(("names", "rows"), READ.values(), ids=READ)
def test_columns_are_read_where_they_are(names, rows):
    one = records((b'{"id":1,"part":2,"n":9}', b'{"id":"a","n":3,"k_id":7}'))
    parsed = COLUMNS.read(one, names)
    assert [tuple(row.values()) for row in parsed.batch.to_pylist()] == rows
    assert parsed.batch.schema.names == list(names)
    assert COLUMNS.are_in_key(names) == any(name.startswith("k_") for name in names)


def test_a_record_is_bad_if_its_key_or_its_value_is():
    whole = (b'{"id":1,"part":2}', b'{"n":3}')
    rows = records(
        whole,
        (None, whole[1]),
        (b"x", whole[1]),
        (whole[0], None),
        (None, b"x"),
        (whole[0], b'{"n":"x"}'),
        whole,
    )
    parsed = COLUMNS.read(rows, ("k_id", "n"))
    assert parsed.row_index.to_pylist() == [0, 6]
    assert bad(parsed) == [
        (1, "the key is null"),
        (2, "key: the value is not one JSON object"),
        (3, "the value is null"),
        (4, "the value is not one JSON object"),
        (5, 'field "n": expected number, found string'),
    ]
    assert bad(COLUMNS.read(rows, ("n",))) == [
        (3, "the value is null"),
        (4, "the value is not one JSON object"),
        (5, 'field "n": expected number, found string'),
    ]


def test_what_is_passed_over_in_either_is_so_in_both():
    lenient = form(KafkaFormat.JSON, ignore_parse_errors="true")
    columns = RecordColumns(FIELDS, JSON_FORMAT, replace(KEY, format=lenient))
    rows = records((b"x", b'{"n":1}'), (b'{"id":"x"}', b'{"n":2}'), (b"x", b"x"))
    parsed = columns.read(rows, ("k_id", "n"))
    assert parsed.batch.to_pylist() == [{"k_id": None, "n": 2}]
    assert [row for row, _ in bad(parsed)] == [2]


def test_a_value_that_has_all_columns_is_where_they_are_read():
    columns = replace(COLUMNS, key=RecordKey(("id",)))
    parsed = columns.read(records((b"x", b'{"id":"of the value","n":1}')), ("id", "n"))
    assert parsed.batch.to_pylist() == [{"id": "of the value", "n": 1}]


def test_a_format_may_need_columns_that_nothing_reads():
    strict = form(KafkaFormat.JSON, fail_on_missing_field="true")
    assert RecordColumns(FIELDS, strict, KEY).needed == {"id", "n"}
    assert replace(COLUMNS, key=replace(KEY, format=strict)).needed == {"k_id", "k_part"}
    assert COLUMNS.needed == set()
