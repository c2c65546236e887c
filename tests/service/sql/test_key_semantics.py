"""What a key of ON matches, from SQL to joined rows, for sides of equal and of different types."""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joins.kernels.index.index import DimensionIndex, advance, build
from joins.kernels.probe.probe import BatchContext, index_spec, join_batch, kernel_spec
from joins.plan.errors import IndexBuildError
from joins.plan.types import SqlType, TypeName, arrow_type
from service.jobs.store import plan_codec
from service.sql.planner.planner import plan

SCRIPT = """
CREATE TABLE d (id INT PRIMARY KEY NOT ENFORCED, x {column}) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (v {probe}, w INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (w INT, id INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT w, d.id FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON {on};
"""
CONTEXT = BatchContext(proctime_ms=0, batch_id=0, versions=(("d", 0),))
POSITION = ("_epoch", "_file", "_pos", "_row", "_partition", "_offset", "_generation")


def itself(value):
    return value


@dataclass(frozen=True)
class Pair:
    """A probe column and a dimension column: their SQL types, and values as Python has them.

    Attributes:
        read: the exact value that a value of the probe stands for, None where there is none.
    """

    probe: str
    column: str
    values: tuple[Any, ...]
    rows: tuple[Any, ...]
    read: Callable[[Any], Any] = itself


def as_date(text):
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def as_instant(text):
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def midnight(day):
    return datetime(day.year, day.month, day.day)


DAY, LATER = date(2024, 2, 29), date(1969, 12, 31)
MILLIS, MICROS = datetime(2024, 2, 29, 1, 2, 3, 123_000), datetime(2024, 2, 29, 1, 2, 3, 123_456)
PAIRS = {
    "text": Pair("STRING", "STRING", ("", "ä", "a", "a "), ("", "ä", "a", "A")),
    "bytes": Pair("BYTES", "BYTES", (b"", b"\0", b"\xff"), (b"", b"\0\0", b"\xff")),
    "boolean": Pair("BOOLEAN", "BOOLEAN", (True, False), (True, False)),
    "narrower_integer": Pair("INT", "BIGINT", (3, -1), (3, -1, 2**40)),
    "wider_integer": Pair("BIGINT", "INT", (3, -1, 2**31, 2**32 + 3), (3, -1, 0)),
    "integer_with_tinyint": Pair("INT", "TINYINT", (3, 128, 259, -128), (3, -128)),
    "decimal_with_integer": Pair(
        "DECIMAL(8, 3)", "INT", (Decimal("3.000"), Decimal("3.500"), Decimal("-1")), (3, 4, -1)
    ),
    "decimal_with_tinyint": Pair(
        "DECIMAL(8, 3)", "TINYINT", (Decimal("3.000"), Decimal("300.000")), (3, 44)
    ),
    "decimal_with_fewer_digits": Pair(
        "DECIMAL(8, 3)",
        "DECIMAL(6, 2)",
        (Decimal("1.230"), Decimal("1.234"), Decimal("12345.000"), Decimal("-0.01")),
        (Decimal("1.23"), Decimal("-0.01"), Decimal("2345.00")),
    ),
    "integer_with_decimal": Pair(
        "BIGINT", "DECIMAL(6, 0)", (7, 10**6, 10**12), (Decimal(7), Decimal(0))
    ),
    "integer_with_double": Pair(
        "BIGINT", "DOUBLE", (1, 2**53, 2**53 + 1), (1.0, float(2**53), 0.5), read=float
    ),
    "double_with_float": Pair(
        "DOUBLE", "FLOAT", (0.5, 0.1, 1e300, -0.0), (0.5, float(np.float32(0.1)), 0.0)
    ),
    "float_with_double": Pair("FLOAT", "DOUBLE", (0.5, 0.25), (0.5, 0.1)),
    "text_with_date": Pair(
        "STRING", "DATE", ("2024-02-29", "2023-02-29", "rubbish", ""), (DAY, LATER), as_date
    ),
    "text_with_timestamp": Pair(
        "STRING", "TIMESTAMP(3)", (str(MILLIS), "2024-02-30 00:00:00", "?"), (MILLIS,), as_instant
    ),
    "timestamp_with_fewer_digits": Pair(
        "TIMESTAMP(6)", "TIMESTAMP(3)", (MILLIS, MICROS), (MILLIS,)
    ),
    "timestamp_with_more_digits": Pair("TIMESTAMP(3)", "TIMESTAMP(6)", (MILLIS,), (MILLIS, MICROS)),
    "date_with_timestamp": Pair(
        "DATE", "TIMESTAMP(3)", (DAY, LATER), (midnight(DAY), MILLIS, midnight(LATER)), midnight
    ),
}
OPERATORS = {
    "equals": ("s.v = d.x", False),
    "column_first": ("d.x = s.v", False),
    "not_distinct": ("s.v IS NOT DISTINCT FROM d.x", True),
    "column_first_not_distinct": ("d.x IS NOT DISTINCT FROM s.v", True),
}


def as_json(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def records(values):
    count = len(values)
    rows = [json.dumps({"v": as_json(v), "w": at}).encode() for at, v in enumerate(values)]
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(rows, pa.binary()),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


def changelog(rows, kind):
    count = len(rows)
    columns = {name: pa.array([1] * count) for name in POSITION}
    columns["_offset"] = pa.array(range(count))
    columns |= {"_op": pa.array(["c"] * count), "id": pa.array(range(count), pa.int32())}
    return pa.RecordBatch.from_pydict({**columns, "x": pa.array(rows, kind)})


def joined(directory, pair, on, values, rows):
    """(number of the record, id of its match or None) as the kernel gives them."""
    made = plan_codec.load(
        plan_codec.dump(plan(SCRIPT.format(probe=pair.probe, column=pair.column, on=on)))
    )
    spec = index_spec(made, made.joins[0], 1)
    build(directory, 0, spec, [changelog(rows, arrow_type(made.dimensions[0].fields[1].type))])
    index = DimensionIndex.attach(directory, 0, spec)
    answer = join_batch(kernel_spec(made), records(values), {"d": index}, CONTEXT)
    assert answer.dead_letters.to_pylist() == []
    return [tuple(row.values()) for row in answer.rows.to_pylist()]


def expected(pair, values, rows, *, null_safe):
    found = []
    for at, value in enumerate(values):
        mine = []
        for id_, row in enumerate(rows):
            if value is None or row is None:
                equal = null_safe and value is None and row is None
            else:
                equal = pair.read(value) is not None and pair.read(value) == row
            mine += [(at, id_)] if equal else []
        found += mine or [(at, None)]
    return found


@pytest.mark.parametrize(("on", "null_safe"), OPERATORS.values(), ids=OPERATORS)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_key_matches_equal_values_and_null_only_where_it_is_null_safe(
    tmp_path, pair, on, null_safe
):
    values = (None, *pair.values, None, *pair.values)
    rows = (*pair.rows, None, *pair.rows, None)
    assert joined(tmp_path, pair, on, values, rows) == expected(
        pair, values, rows, null_safe=null_safe
    )


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_value_that_the_column_cannot_have_does_not_meet_its_nulls(tmp_path, pair):
    """A dimension of nothing but NULL: its rows are for NULL only, whatever a cast makes NULL."""
    on = "s.v IS NOT DISTINCT FROM d.x AND s.w >= 0"
    values = (*pair.values, None)
    found = joined(tmp_path, pair, on, values, (None, None))
    last = len(pair.values)
    assert found == [*((at, None) for at in range(last)), (last, 0), (last, 1)]


# ON without a bare equality, a type of the probe and of the column, and what matches
OTHER_KEYS = {
    "constant": ("d.x = 3", "BIGINT", "INT", lambda value, row: row == 3),
    "constant_first": (
        "3 = d.x AND s.v > 1",
        "BIGINT",
        "INT",
        lambda v, r: r == 3 and (v or 0) > 1,
    ),
    "two_constants": ("d.x = 3 AND d.x = 4", "BIGINT", "INT", lambda value, row: False),
    "constant_text": ("d.x = 'a'", "BIGINT", "STRING", lambda value, row: row == "a"),
    "text_of_an_integer": (
        "CAST(d.x AS STRING) = s.v",
        "STRING",
        "INT",
        lambda value, row: row is not None and str(row) == value,
    ),
    "wider_integer": (
        "s.v = CAST(d.x AS BIGINT)",
        "BIGINT",
        "INT",
        lambda v, r: v == r is not None,
    ),
    "function": (
        "LOWER(d.x) = s.v",
        "STRING",
        "STRING",
        lambda value, row: row is not None and row.lower() == value,
    ),
    "function_and_a_condition": (
        "LOWER(d.x) = s.v AND d.x <> 'a'",
        "STRING",
        "STRING",
        lambda value, row: row is not None and row.lower() == value and row != "a",
    ),
    "two_functions": (
        "LOWER(d.x) = s.v AND d.x || 'b' = s.v || 'b'",
        "STRING",
        "STRING",
        lambda value, row: row is not None and row.lower() == value == row,
    ),
    "null_safe_function": (
        "NULLIF(d.x, 'a') IS NOT DISTINCT FROM s.v",
        "STRING",
        "STRING",
        lambda value, row: (None if row == "a" else row) == value,
    ),
    "sum": ("d.x + 1 = s.v", "BIGINT", "INT", lambda v, r: r is not None and r + 1 == v),
    "sum_compared_with_a_decimal": (
        "s.v = d.x + 0",
        "DECIMAL(8, 3)",
        "INT",
        lambda value, row: row is not None and value == row,
    ),
    "decimal_of_an_integer": (
        "s.v = CAST(d.x AS DECIMAL(10, 0))",
        "DECIMAL(8, 3)",
        "INT",
        lambda value, row: row is not None and value == row,
    ),
}
PROBES = {
    "BIGINT": (3, -1, 2**40, None, 4),
    "STRING": ("a", "A", "3", " 3", "03", "+3", "3.0", "-1", "", None, "99999999999", "x"),
    "DECIMAL(8, 3)": (Decimal("3.000"), Decimal("3.500"), Decimal("-1.000"), None),
}
ROWS = {"INT": (3, -1, None, 3, 0, 4), "STRING": ("a", "A", None, "a")}


@pytest.mark.parametrize(("on", "probe", "column", "matches"), OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_an_expression_over_the_dimension_matches_as_its_condition_does(
    tmp_path, on, probe, column, matches
):
    values, rows = PROBES[probe], ROWS[column]
    wanted = []
    for at, value in enumerate(values):
        mine = [(at, id_) for id_, row in enumerate(rows) if matches(value, row)]
        wanted += mine or [(at, None)]
    assert joined(tmp_path, Pair(probe, column, values, rows), on, values, rows) == wanted


def test_a_changed_row_is_found_by_its_new_computed_key_alone(tmp_path):
    text = arrow_type(SqlType(TypeName.STRING))
    made = plan(SCRIPT.format(probe="STRING", column="STRING", on="LOWER(d.x) = s.v"))
    spec = index_spec(made, made.joins[0], 1)
    build(tmp_path, 0, spec, [changelog(["A", "B", "C"], text)])
    later = changelog(["B", None, "C"], text)
    later = later.set_column(
        later.schema.get_field_index("_offset"), "_offset", pa.array([3, 4, 5])
    ).set_column(later.schema.get_field_index("_op"), "_op", pa.array(["u", "d", "u"]))
    advance(tmp_path, 0, 1, spec, [later])
    found = []
    for version in (0, 1):
        index = DimensionIndex.attach(tmp_path, version, spec)
        answer = join_batch(kernel_spec(made), records(("a", "b", "c")), {"d": index}, CONTEXT)
        found.append([row["id"] for row in answer.rows.to_pylist()])
    assert found == [[0, 1, 2], [None, 0, 2]]


def test_a_row_whose_key_cannot_be_computed_is_told_unless_it_is_deleted(tmp_path):
    made = plan(SCRIPT.format(probe="BIGINT", column="STRING", on="CAST(d.x AS BIGINT) = s.v"))
    spec = index_spec(made, made.joins[0], 1)
    rows = changelog(["3", "x"], arrow_type(SqlType(TypeName.STRING)))
    with pytest.raises(IndexBuildError, match="cannot be computed for a row"):
        build(tmp_path, 0, spec, [rows])
    gone = rows.set_column(rows.schema.get_field_index("_op"), "_op", pa.array(["c", "d"]))
    build(tmp_path, 1, spec, [gone])
    assert index_rows(tmp_path, 1, spec) == 1


def index_rows(directory, version, spec):
    index = DimensionIndex.attach(directory, version, spec)
    _, rows = index.lookup([pa.array([3], pa.int64())])
    return len(rows)
