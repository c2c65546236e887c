"""Rows as Flink's print connector shows them."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from joins.kernels.json.encode import render_rows

ROW = pa.RecordBatch.from_pydict({"a": [1], "b": ["x"]})
SHOWN = {
    "a_row": (ROW, "", "+I[1, x]"),
    "with_identifier": (ROW, "out", "out> +I[1, x]"),
    "one_column": (ROW.select(["b"]), "", "+I[x]"),
    "null": (pa.RecordBatch.from_pydict({"a": pa.array([None], pa.int32())}), "", "+I[null]"),
    "text_is_not_escaped": (pa.RecordBatch.from_pydict({"a": ["a, ]"]}), "", "+I[a, ]]"),
    "line_breaks_of_a_text": (
        pa.RecordBatch.from_pydict({"a": ["two\nlines\r\n+I[3]"]}),
        "",
        r"+I[two\nlines\r\n+I[3]]",
    ),
    "empty_text": (pa.RecordBatch.from_pydict({"a": ["", ""]}).slice(1), "", "+I[]"),
    "boolean": (pa.RecordBatch.from_pydict({"a": [True]}), "", "+I[true]"),
    "decimal": (pa.RecordBatch.from_pydict({"a": [Decimal("1.50")]}), "", "+I[1.50]"),
    "date": (pa.RecordBatch.from_pydict({"a": [dt.date(2024, 2, 29)]}), "", "+I[2024-02-29]"),
    "bytes": (pa.RecordBatch.from_pydict({"a": [b"\x00\xff"]}), "", "+I[x'00ff']"),
    "null_bytes": (
        pa.RecordBatch.from_pydict({"a": pa.array([None], pa.binary())}),
        "",
        "+I[null]",
    ),
    "timestamp": (
        pa.RecordBatch.from_pydict(
            {"a": pa.array([1_500_000], pa.timestamp("us"))},
        ),
        "",
        "+I[1970-01-01 00:00:01.500000]",
    ),
}


@pytest.mark.parametrize(("rows", "identifier", "line"), SHOWN.values(), ids=SHOWN)
def test_a_row_is_one_line(rows, identifier, line):
    shown = render_rows(rows, identifier)
    assert (shown.type, shown.to_pylist()) == (pa.string(), [line])


def test_rows_keep_their_order():
    rows = pa.RecordBatch.from_pydict({"a": [3, None, 1]})
    assert render_rows(rows, "").to_pylist() == ["+I[3]", "+I[null]", "+I[1]"]


def test_a_row_shows_its_kind():
    rows = pa.RecordBatch.from_pydict({"a": [1, 1, 2, 2]})
    lines = render_rows(rows, "out", pa.array([0, 1, 2, 3], pa.int8())).to_pylist()
    assert lines == ["out> +I[1]", "out> -U[1]", "out> +U[2]", "out> -D[2]"]


def test_no_rows_no_lines():
    assert render_rows(ROW.slice(0, 0), "x").to_pylist() == []
