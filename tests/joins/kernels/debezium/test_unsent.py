"""Values that a database did not send, and infinite ones, by what real connectors write."""

import base64
import json
import uuid
from hashlib import md5

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.debezium.columns import ColumnReader
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.options import DebeziumOptions, SpecialValues, debezium_options
from joins.kernels.debezium.raw import RawValues
from joins.plan.plan import Field
from tests.joins.kernels.debezium.test_golden import decoded, tables
from tests.support.expressions import sql_type
from tests.support.laws import examples

MARKS = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=2, max_size=40)


def java_byte(byte):
    return int.from_bytes([byte], signed=True)


def encoded(data):
    return base64.b64encode(data).decode()


def of_bytes(made):
    return lambda mark: [made(byte) for byte in mark.encode()]


# By element type what a connector writes for a whole array; the last is of an unscaled NUMERIC.
ARRAYS = {
    "STRING": lambda mark: [mark],
    "STRING of uuid": lambda mark: [str(uuid.UUID(bytes=md5(mark.encode()).digest(), version=3))],
    "BYTES": lambda mark: [encoded(mark.encode())],
    "SMALLINT": of_bytes(java_byte),
    "INT": of_bytes(java_byte),
    "BIGINT": of_bytes(java_byte),
    "DATE": of_bytes(java_byte),
    "TIMESTAMP(6)": of_bytes(java_byte),
    "TIMESTAMP_LTZ(6)": lambda mark: [mark],
    "FLOAT": of_bytes(lambda byte: float(java_byte(byte))),
    "DOUBLE": of_bytes(lambda byte: float(java_byte(byte))),
    "BOOLEAN": of_bytes(lambda byte: byte != 0),
    "DECIMAL(10, 2)": of_bytes(lambda byte: encoded(bytes([byte]))),
    "DECIMAL(20, 2) of strings": of_bytes(lambda byte: str(java_byte(byte))),
    "STRING of numbers": of_bytes(lambda byte: str(java_byte(byte))),
    "DECIMAL(38, 10)": of_bytes(lambda byte: {"scale": 0, "value": encoded(bytes([byte]))}),
}


@pytest.mark.parametrize("element", ARRAYS)
@settings(max_examples=examples(60))
@given(mark=MARKS)
def test_an_array_that_was_not_sent_is_known_by_the_type_of_its_elements(element, mark):
    kind = sql_type(f"ARRAY<{element.partition(' of ')[0]}>")
    reader = ColumnReader(DebeziumOptions(unavailable_value=mark))
    unsent = json.dumps(ARRAYS[element](mark), ensure_ascii=False, separators=(",", ":"))
    values = RawValues.of_texts([b"[]", unsent.encode(), None])
    assert reader.unavailable(values, kind).tolist() == [False, True, False]


@settings(max_examples=examples(60))
@given(mark=MARKS, srid=st.none() | st.integers(0, 9999))
def test_a_row_one_of_whose_values_was_not_sent_is_unknown(mark, srid):
    """A geometry: its bytes stand for the whole."""
    reader = ColumnReader(DebeziumOptions(unavailable_value=mark))
    unsent = json.dumps({"wkb": encoded(mark.encode()), "srid": srid}).encode()
    values = RawValues.of_texts([unsent, b'{"wkb":"AQEAAAA=","srid":4326}', None])
    kind = sql_type("ROW<wkb BYTES, srid INT>")
    assert reader.unavailable(values, kind).tolist() == [True, False, False]


MODES = ("default", "decimal_string", "decimal_double", "time_connect", "time_isostring", "avro")
LAST = {
    "DATE": ("9999-12-31", "0001-01-01"),
    "TIMESTAMP(6)": ("9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"),
    "TIMESTAMP(3)": ("9999-12-31 23:59:59.999000", "0001-01-01 00:00:00"),
    "TIMESTAMP_LTZ(6)": ("9999-12-31 23:59:59.999999+00:00", "0001-01-01 00:00:00+00:00"),
    "DECIMAL(38, 10)": (None, None),
    "DECIMAL(10, 2)": (None, None),
}


@pytest.mark.parametrize("mode", MODES)
def test_infinite_values_fail_are_null_or_the_last_day(mode):
    met = set()
    for column in tables("postgres")["extremes"]["columns"]:
        sql = "TIMESTAMP(3)" if mode == "time_connect" and "TIMESTAMP(6" in column["sql"] else None
        column = {**column, "sql": sql or column["sql"]}
        if column["sql"] not in LAST:
            continue
        by_handling = {
            handling: list(decoded(f"postgres/{mode}", "extremes", column, special_values=handling))
            for handling in SpecialValues
        }
        for text, value, bad in by_handling[SpecialValues.FAIL]:
            if text in ("infinity", "-infinity"):
                assert bad, (column["name"], text, value)
                met.add((column["sql"], text))
        for text, value, bad in by_handling[SpecialValues.NULL]:
            if text in ("infinity", "-infinity", "NaN", "Infinity", "-Infinity"):
                assert (value, bad) == (None, None), (column["name"], text)
        for text, value, bad in by_handling[SpecialValues.LAST_DAY]:
            if text in ("infinity", "-infinity", "NaN", "Infinity", "-Infinity"):
                expected = LAST[column["sql"]][text.startswith("-")]
                assert bad is None, (column["name"], text)
                assert (value if value is None else str(value)) == expected, (column["name"], text)
    assert {text for _, text in met} == {"infinity", "-infinity"}


def test_the_option_of_a_script_is_that_of_the_reader():
    assert debezium_options({}).special_values is SpecialValues.FAIL
    assert debezium_options({"special.values": "null"}).special_values is SpecialValues.NULL


KEYS = st.one_of(st.none(), st.integers(0, 2))


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from("ud"), st.integers(0, 2), KEYS, st.booleans())))
def test_a_key_that_contradicts_the_row_before_is_bad(changes):
    """Else the row of the key before would stay for ever; what `before` does not say is no word."""
    columns, lines = [Field("id", sql_type("INT")), Field("v", sql_type("INT"))], []
    for op, key, old, has_member in changes:
        before = {"id": old, "v": 1} if has_member else {"v": 1}
        after = {"id": key, "v": 2} if op == "u" else None
        lines.append((key, {"op": op, "before": before, "after": after, "source": {}}))
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([json.dumps({"id": key}).encode() for key, _ in lines], pa.binary()),
            "value": pa.array([json.dumps(each).encode() for _, each in lines], pa.binary()),
        }
    )
    rows = DebeziumDecoder(columns, ["id"]).decode(records)
    expected = {
        row
        for row, (_, key, old, has_member) in enumerate(changes)
        if has_member and old is not None and old != key
    }
    assert {bad.row for bad in rows.bad} == expected
    assert all("the row before" in bad.reason for bad in rows.bad)
