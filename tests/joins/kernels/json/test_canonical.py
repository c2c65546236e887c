"""Canonical rows: equal rows in any order have one digest, and no two values look the same."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from joins.kernels.json.exact import CanonicalRows, differences, row_texts

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows_of(*rows):
    """(offset, id, name) of partition 0."""
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    values = pa.RecordBatch.from_arrays(
        [pa.array(columns[1], pa.int64()), pa.array(columns[2], pa.string())], schema=SCHEMA
    )
    places = pa.record_batch(
        {
            "partition": pa.array([0] * len(rows), pa.int32()),
            "offset": pa.array(columns[0], pa.int64()),
        }
    )
    return CanonicalRows.of([(values, places)])


A, B = (0, 1, "a"), (1, 2, "b")


def test_order_does_not_matter_and_number_does():
    assert rows_of(A, B).digest() == rows_of(B, A).digest()
    assert rows_of(A, B).digest() != rows_of(A, B, B).digest() != rows_of(A).digest()
    assert differences(rows_of(A, B), rows_of(B, A)) == []
    merged = CanonicalRows.merged([rows_of(B), rows_of(A)])
    assert merged.digest() == rows_of(A, B).digest()
    assert CanonicalRows.merged([]).digest() == rows_of().digest()


DIFFERENT = {
    "a_changed_value": ([A], [(0, 1, "x")], [("changed", 0)]),
    "a_missing_row": ([A, B], [A], [("missing", 1)]),
    "an_extra_row": ([A], [A, B], [("extra", 1)]),
    "a_row_twice": ([A], [A, A], [("extra", 0)]),
    "one_row_of_a_fan_out": ([A, (0, 2, "c")], [A], [("missing", 0)]),
    "another_record": ([A], [(7, 1, "a")], [("missing", 0), ("extra", 7)]),
    "null_and_the_word": ([(0, 1, None)], [(0, 1, "null")], [("changed", 0)]),
}


@pytest.mark.parametrize(("expected", "found", "told"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_is_told_by_record(expected, found, told):
    answer = differences(rows_of(*expected), rows_of(*found))
    assert [(d.kind, d.offset) for d in answer] == told


def test_without_places_rows_are_not_paired():
    answer = differences(
        rows_of(A, B).without_places(), rows_of((0, 1, "x"), (5, 2, "b")).without_places()
    )
    assert [(d.kind, d.partition, d.offset) for d in answer] == [
        ("missing", None, None),
        ("extra", None, None),
    ]


def test_rows_of_some_records_can_be_left_out():
    assert rows_of(A, B).outside({(0, 0)}).digest() == rows_of(B).digest()
    assert rows_of(A, B).outside(set()).digest() == rows_of(A, B).digest()


def instant(microsecond):
    return datetime.datetime(2026, 1, 1, microsecond=microsecond, tzinfo=datetime.UTC)


UNLIKE = {
    "zeros": ([0.0, -0.0], pa.float64()),
    "nan_infinity_null": ([math.nan, math.inf, -math.inf, None], pa.float64()),
    "neighbours": ([0.1, math.nextafter(0.1, 1)], pa.float64()),
    "scales": ([Decimal("1.0"), Decimal("1.1"), None], pa.decimal128(10, 1)),
    "bytes": ([b"", b"\x00", b"\x00\x00", None], pa.binary()),
    "texts": (["", "null", '"', "\\", "\n", "\t", None], pa.string()),
    "instants": ([instant(0), instant(1), None], pa.timestamp("us", tz="UTC")),
    "truth": ([True, False, None], pa.bool_()),
    "integers": ([2**63 - 1, -(2**63), 0, None], pa.int64()),
}


@pytest.mark.parametrize(("values", "kind"), UNLIKE.values(), ids=UNLIKE)
def test_different_values_have_different_texts(values, kind):
    texts = row_texts(pa.record_batch({"v": pa.array(values, kind)})).to_pylist()
    assert len(set(texts)) == len(values)


def test_names_with_quotes_and_rows_without_columns():
    named = pa.record_batch({'a"b': pa.array([1])})
    assert row_texts(named).to_pylist() == ['{"a\\"b":1}']
    assert row_texts(named.select([])).to_pylist() == ["{}"]
