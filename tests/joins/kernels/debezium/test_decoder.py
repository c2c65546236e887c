"""What a decoder of Debezium's JSON does with each kind of record, and with what is wrong."""

import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from joins.kernels.debezium.changes import RecordFault
from joins.kernels.debezium.decoder import DebeziumDecoder, warm_up
from joins.kernels.debezium.options import (
    BigintUnsignedHandling,
    BinaryHandling,
    CapturedName,
    DebeziumOptions,
    DecimalHandling,
    TimePrecision,
    ValueLayout,
)
from joins.plan.plan import Field
from tests.support.expressions import sql_type

ID_NAME = (Field("id", sql_type("BIGINT"), nullable=False), Field("name", sql_type("STRING")))
SOURCE = {"ts_ms": 7, "snapshot": "first", "db": "shop", "schema": "public", "table": "items"}
FLAT = DebeziumOptions(layout=ValueLayout.FLAT)


def batch(*records):
    """Records of (key, value), Python values or bytes; None stays NULL."""

    def text(value):
        return (
            value
            if value is None or isinstance(value, bytes)
            else json.dumps(value, separators=(",", ":")).encode()
        )

    columns = zip(*((text(key), text(value)) for key, value in records), strict=True)
    arrays = [pa.array(column, pa.binary()) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=["key", "value"])


def decoded(*records, columns=ID_NAME, key=("id",), options=None, before=()):
    return DebeziumDecoder(columns, key, options, before=before).decode(batch(*records))


def change(op, before=None, after=None, source=SOURCE):
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 8}


ROW, OLD = {"id": 1, "name": "a"}, {"id": 1, "name": "z"}


def in_schema(payload, fields):
    return {"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": payload}


RECORDS = {
    "read": ((ROW | {}, change("r", None, ROW)), "r", 1, ROW),
    "create": ((ROW, change("c", None, ROW)), "bad", None, None),  # the key has other columns
    "create_with_its_key": (({"id": 1}, change("c", None, ROW)), "c", 1, ROW),
    "update": (({"id": 1}, change("u", OLD, ROW)), "u", 1, ROW),
    "delete": (({"id": 1}, change("d", OLD)), "d", 1, None),
    "delete_without_a_before": (({"id": 1}, change("d")), "d", 1, None),
    "tombstone": (({"id": 1}, None), "tombstone", 1, None),
    "tombstone_of_a_converter_with_schemas": (
        ({"id": 1}, {"schema": None, "payload": None}),
        "tombstone",
        1,
        None,
    ),
    "truncate": ((None, change("t")), "t", None, None),
    "message": ((None, {"source": SOURCE, "op": "m", "message": {}}), "m", None, None),
    "row_without_a_key": ((None, change("c", None, ROW)), "c", 1, ROW),
    "delete_without_a_key": ((None, change("d", OLD)), "d", 1, None),
    "key_that_is_the_value_itself": ((1, change("c", None, ROW)), "c", 1, ROW),
    "null_as_a_key": ((b"null", change("c", None, ROW)), "c", 1, ROW),
    "more_columns_than_declared": (
        ({"id": 1}, change("c", None, ROW | {"more": [{"x": 1.0}]})),
        "c",
        1,
        ROW,
    ),
    "names_with_escapes": (
        (b'{"\\u0069d":1}', b'{"op":"c","after":{"\\u0069d":1,"n\\u0061me":"a"}}'),
        "c",
        1,
        ROW,
    ),
    "blanks_between": (
        (b' { "id" : 1 } ', b' {"op" : "c" ,\n"after":\t{"id": 1,"name":"a"} } '),
        "c",
        1,
        ROW,
    ),
}
RECORDS["read"] = (({"id": 1}, change("r", None, ROW)), "r", 1, ROW)


@pytest.mark.parametrize(("record", "kind", "key", "row"), RECORDS.values(), ids=RECORDS)
def test_each_kind_of_record_is_told(record, kind, key, row):
    changes = decoded(record)
    assert changes.kind.to_pylist() == [kind]
    assert changes.key.column("id").to_pylist() == [key]
    nothing = {"id": None, "name": None}
    assert changes.after.to_pylist() == [nothing if row is None else row]
    assert bool(changes.bad) == (kind == "bad")


BAD = {
    "no_json": (({"id": 1}, b"{"), RecordFault.UNREADABLE, "invalid JSON"),
    "no_bytes": (({"id": 1}, b""), RecordFault.UNREADABLE, "invalid JSON"),
    "no_object": (({"id": 1}, [1]), RecordFault.UNREADABLE, "no JSON object"),
    "no_utf_8": (({"id": 1}, b'{"op":"\xff"}'), RecordFault.UNREADABLE, "not UTF-8"),
    "half_a_pair": (({"id": 1}, b'{"op":"\\ud800"}'), RecordFault.LAYOUT, "surrogate"),
    "something_behind": (({"id": 1}, b'{"op":"c"} x'), RecordFault.UNREADABLE, "extra data"),
    "a_member_twice": (({"id": 1}, b'{"op":"c","op":"d"}'), RecordFault.UNREADABLE, "twice"),
    "a_flat_row": (({"id": 1}, ROW), RecordFault.LAYOUT, 'no "op"'),
    "an_unknown_op": (({"id": 1}, change("x")), RecordFault.LAYOUT, '"x"'),
    "a_create_without_a_row": (({"id": 1}, change("c")), RecordFault.LAYOUT, '"after"'),
    "a_row_that_is_none": (({"id": 1}, change("c", None, 5)), RecordFault.LAYOUT, '"after"'),
    "a_before_that_is_none": (({"id": 1}, change("d", 5)), RecordFault.LAYOUT, '"before"'),
    "an_odd_mark": (
        ({"id": 1}, change("c", None, ROW, {"snapshot": 5})),
        RecordFault.LAYOUT,
        '5 for "snapshot"',
    ),
    "a_column_that_is_not_there": (
        ({"id": 1}, change("c", None, {"id": 1})),
        RecordFault.COLUMN,
        'no column "name"',
    ),
    "a_null_that_must_not_be": (
        (None, change("c", None, {"id": None, "name": "a"})),
        RecordFault.COLUMN,
        "NOT NULL",
    ),
    "a_value_of_another_type": (
        ({"id": 1}, change("c", None, {"id": 1, "name": 5})),
        RecordFault.COLUMN,
        'column "name": 5 is no STRING',
    ),
    "a_value_that_was_not_sent": (
        ({"id": 1}, change("c", None, {"id": 1, "name": "__debezium_unavailable_value"})),
        RecordFault.UNAVAILABLE,
        'column "name"',
    ),
    "the_key_of_another_row": (
        ({"id": 2}, change("c", None, ROW)),
        RecordFault.KEY,
        "not that of its row",
    ),
    "a_key_of_other_columns": (
        ({"no": 1}, change("c", None, ROW)),
        RecordFault.KEY,
        'no column "id"',
    ),
    "a_key_of_more_columns": (
        ({"id": 1, "no": 1}, change("c", None, ROW)),
        RecordFault.KEY,
        "other columns",
    ),
    "a_key_that_is_no_json": ((b"x", change("c", None, ROW)), RecordFault.KEY, "its key"),
    "a_delete_of_nobody": ((None, change("d")), RecordFault.KEY, "no key"),
    "a_tombstone_of_nobody": ((None, None), RecordFault.KEY, "no key"),
    "a_schema_that_is_none": (
        ({"id": 1}, {"schema": {"fields": []}, "payload": change("c", None, ROW)}),
        RecordFault.UNREADABLE,
        "schema",
    ),
}


@pytest.mark.parametrize(("record", "fault", "reason"), BAD.values(), ids=BAD)
def test_what_is_wrong_with_a_record_is_told(record, fault, reason):
    good = ({"id": 9}, change("c", None, {"id": 9, "name": "g"}))
    changes = decoded(good, record, good)
    (bad,) = changes.bad
    assert (bad.row, bad.fault) == (1, fault)
    assert reason in bad.reason
    assert changes.kind.to_pylist() == ["c", "bad", "c"]
    assert changes.after.column("id").to_pylist() == [9, None, 9]
    assert changes.key.column("id").to_pylist() == [9, None, 9]


MARKS = {
    "first": ("first", "first"),
    "true": ("true", "true"),
    "last_in_data_collection": ("last_in_data_collection", "last_in_data_collection"),
    "incremental": ("incremental", "incremental"),
    "false_as_text": ("false", "false"),
    "false": (False, "false"),
    "true_without_quotes": (True, "true"),
    "null": (None, "false"),
}


POSITIONS = {
    "postgres": ({"lsn": 26794752, "txId": 748}, b"26794752"),
    "mariadb": ({"file": "binlog.000001", "pos": 22196, "row": 0}, b'"binlog.000001":22196'),
    "half_of_one": ({"file": "binlog.000001", "pos": None}, None),
    "nothing": ({"lsn": None}, None),
}


@pytest.mark.parametrize(("source", "expected"), POSITIONS.values(), ids=POSITIONS)
def test_a_row_of_a_snapshot_tells_where_it_was_read(source, expected):
    read, changed = (change(op, None, ROW, source) for op in "rc")
    changes = decoded(({"id": 1}, read), ({"id": 1}, changed))
    assert changes.position.to_pylist() == [expected, None]


@pytest.mark.parametrize(("mark", "expected"), MARKS.values(), ids=MARKS)
def test_a_mark_of_a_snapshot_is_a_word(mark, expected):
    changes = decoded(({"id": 1}, change("r", None, ROW, {"snapshot": mark, "ts_ms": 7})))
    assert changes.snapshot.to_pylist() == [expected]
    assert changes.source_ts_ms.to_pylist() == [7]


def test_a_source_without_a_mark_is_streamed():
    changes = decoded(({"id": 1}, change("r", None, ROW, {"db": "shop"})))
    assert changes.snapshot.to_pylist() == ["false"]


def test_a_record_of_another_table_is_left():
    options = DebeziumOptions(table=CapturedName("items", schema="public", database="shop"))
    others = [SOURCE | {"table": "users"}, SOURCE | {"schema": "x"}, SOURCE | {"db": "y"}]
    records = [({"no": 1}, change("c", None, {"no": 1}, source)) for source in others]
    changes = decoded(*records, ({"id": 1}, change("c", None, ROW)), options=options)
    assert changes.kind.to_pylist() == ["other", "other", "other", "c"]
    assert changes.table.to_pylist() == ["users", "items", "items", "items"]
    assert not changes.bad


NAMELESS = {
    "an_envelope": (change("c", None, ROW, {"db": "shop"}), DebeziumOptions()),
    "an_envelope_without_a_source": (change("c", None, ROW, None), DebeziumOptions()),
    "a_flat_row": (ROW, FLAT),
}


@pytest.mark.parametrize(("value", "options"), NAMELESS.values(), ids=NAMELESS)
def test_a_record_that_does_not_tell_its_table_is_bad_where_one_is_wanted(value, options):
    only = replace(options, table=CapturedName("items"))
    changes = decoded(({"id": 1}, value), ({"id": 1}, None), options=only)
    assert changes.kind.to_pylist() == ["bad", "tombstone"]
    assert "does not name its table" in changes.bad[0].reason
    assert decoded(({"id": 1}, value), options=options).bad == ()


def test_old_columns_are_there_where_they_are_asked_for():
    records = [({"id": 1}, change("u", OLD, ROW)), ({"id": 1}, change("d", OLD))]
    records.append(({"id": 1}, change("c", None, ROW)))
    changes = decoded(*records, before=["name"])
    assert changes.before.to_pylist() == [{"name": "z"}, {"name": "z"}, {"name": None}]


FLAT_ROWS = {
    "a_row_alone_is_an_update": (ROW, "u"),
    "with_its_operation": (ROW | {"__op": "r"}, "r"),
    "rewritten_delete": (ROW | {"__deleted": "true", "__op": "d"}, "d"),
    "rewritten_delete_without_operation": (ROW | {"__deleted": "true"}, "d"),
    "not_deleted": (ROW | {"__deleted": "false"}, "u"),
    "tombstone": (None, "tombstone"),
    "odd_operation": (ROW | {"__op": "zz"}, "bad"),
    "odd_deleted": (ROW | {"__deleted": "maybe"}, "bad"),
}


@pytest.mark.parametrize(("value", "kind"), FLAT_ROWS.values(), ids=FLAT_ROWS)
def test_flat_rows_tell_what_they_are(value, kind):
    changes = decoded(({"id": 1}, value), options=FLAT)
    assert changes.kind.to_pylist() == [kind]
    assert changes.key.column("id").to_pylist() == [None if kind == "bad" else 1]


def test_a_flat_row_tells_its_table():
    marks = {"__table": "items", "__source_snapshot": "last", "__source_ts_ms": 7}
    changes = decoded(({"id": 1}, ROW | marks), options=FLAT)
    told = [changes.table, changes.snapshot, changes.source_ts_ms, changes.database]
    assert [each.to_pylist() for each in told] == [["items"], ["last"], [7], [None]]


def test_a_flat_row_tells_its_source_with_or_without_its_prefix():
    told = {"snapshot": "last", "name": "shop", "db": "d", "table": "items", "file": "f", "pos": 3}
    sources = []
    for prefix in ("__source_", "__"):
        added = {f"{prefix}{name}": value for name, value in told.items()}
        changes = decoded(({"id": 1}, ROW | {"__op": "r"} | added), options=FLAT)
        source = (changes.snapshot, changes.connector, changes.database, changes.table)
        sources.append([each[0].as_py() for each in (*source, changes.position)])
    assert sources == [["last", "shop", "d", "items", b'"f":3']] * 2


MARK = b"\xef\xbb\xbf"  # the byte order mark, which Flink's parser skips


@pytest.mark.parametrize("include", [None, True, False])
@pytest.mark.parametrize("marks", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_byte_order_mark_changes_nothing(marks, include):
    key, value = {"id": 1}, change("c", after=ROW)
    if include is not False:
        fields = [{"field": "id", "type": "int64"}, {"field": "name", "type": "string"}]
        key = in_schema(key, fields[:1])
        value = in_schema(value, [{"field": "after", "type": "struct", "fields": fields}])
    texts = (json.dumps(each).encode() for each in (key, value))
    record = tuple(MARK * count + text for count, text in zip(marks, texts, strict=True))
    changes = decoded(record, record, options=DebeziumOptions(schema_include=include))
    assert (changes.bad, changes.after.to_pylist()) == ((), [ROW, ROW])


def test_schemas_may_change_from_record_to_record():
    def record(number, kind, value, name=None):
        item = {"type": kind, "field": "name"} | ({"name": name} if name else {})
        key_field = {"type": "int64", "field": "id"}
        row = {"type": "struct", "fields": [key_field, item], "field": "after"}
        whole = change("c", None, {"id": number, "name": value})
        return in_schema({"id": number}, [key_field]), in_schema(whole, [row])

    records = [
        record(1, "string", "a"),
        record(2, "bytes", "AA==", "org.apache.kafka.connect.data.Decimal"),
        ({"id": 3}, change("c", None, {"id": 3, "name": "bare"})),
        record(4, "string", "AA==", "io.debezium.data.Enum"),
        record(5, "string", "e"),
    ]
    changes = decoded(*records)
    assert changes.after.column("name").to_pylist() == ["a", None, "bare", "AA==", "e"]
    assert [bad.row for bad in changes.bad] == [1]
    assert "org.apache.kafka.connect.data.Decimal is no STRING" in changes.bad[0].reason


def test_many_different_schemas_are_read_too():
    def record(number):
        fields = [{"type": "int64", "field": "id"}, {"type": "string", "field": "name"}]
        row = {"type": "struct", "fields": fields, "field": "after", "version": number}
        return {"id": number}, in_schema(change("c", None, {"id": number, "name": "n"}), [row])

    changes = decoded(*(record(number) for number in range(100)))
    assert changes.after.column("id").to_pylist() == list(range(100))


def test_schemas_are_required_or_refused_as_the_options_say():
    key_field = {"type": "int64", "field": "id"}
    row = {"type": "struct", "fields": [key_field], "field": "after"}
    wrapped = ({"id": 1}, in_schema(change("c", None, {"id": 1}), [row]))
    bare = ({"id": 1}, change("c", None, {"id": 1}))
    columns = ID_NAME[:1]
    must, must_not = (DebeziumOptions(schema_include=each) for each in (True, False))
    assert "no schema" in decoded(bare, columns=columns, options=must).bad[0].reason
    refused = decoded(wrapped, columns=columns, options=must_not)
    assert refused.bad[0].fault is RecordFault.LAYOUT


def test_a_record_with_more_than_schema_and_payload_is_no_wrapped_one():
    value = {"schema": None, "payload": change("c", None, ROW), "more": 1}
    assert decoded(({"id": 1}, value)).bad[0].fault is RecordFault.LAYOUT


def one(kind, value, options=None, schema=None):
    """The value of a column `x`, or why it is bad."""
    row = {"x": value}
    whole = change("c", None, row)
    if schema is not None:
        fields = [schema | {"field": "x"}]
        whole = in_schema(whole, [{"type": "struct", "fields": fields, "field": "after"}])
    changes = decoded((None, whole), columns=[Field("x", sql_type(kind))], key=(), options=options)
    if changes.bad:
        return changes.bad[0].reason
    return changes.after.column("x")[0].as_py()


def named(kind, name, **more):
    return {"type": kind, "name": name, **more}


LONG = DebeziumOptions(bigint_unsigned=BigintUnsignedHandling.LONG)
PRECISE = DebeziumOptions(bigint_unsigned=BigintUnsignedHandling.PRECISE)
TEXTS = DebeziumOptions(decimal_handling=DecimalHandling.STRING)
DOUBLES = DebeziumOptions(decimal_handling=DecimalHandling.DOUBLE)
HEX = DebeziumOptions(binary_handling=BinaryHandling.HEX)
BITS = DebeziumOptions(binary_handling=BinaryHandling.HEX, bit_columns=frozenset({"x"}))
CONNECT = DebeziumOptions(time_precision=TimePrecision.CONNECT)
ISO = DebeziumOptions(time_precision=TimePrecision.ISOSTRING)
DECIMAL = "org.apache.kafka.connect.data.Decimal"
T = "io.debezium.time"
VALUES = {
    "tinyint_1_as_boolean": ("BOOLEAN", 1, None, None, True),
    "boolean_as_tinyint": ("TINYINT", True, None, None, 1),
    "two_is_no_boolean": ("BOOLEAN", 2, None, None, "is no BOOLEAN"),
    "too_large_for_tinyint": ("TINYINT", 128, None, None, "is no TINYINT"),
    "least_bigint": ("BIGINT", -(2**63), None, None, -(2**63)),
    "too_large_for_bigint": ("BIGINT", 2**63, None, None, "is no BIGINT"),
    "fraction_is_no_integer": ("INT", 1.5, None, None, "is no INT"),
    "text_is_no_integer": ("INT", "1", None, None, "is no INT"),
    "year": ("INT", 2024, None, named("int32", f"{T}.Year"), 2024),
    "a_time_as_its_number": ("BIGINT", 5, None, named("int64", f"{T}.MicroTime"), 5),
    "interval_as_micros": ("BIGINT", 5, None, named("int64", f"{T}.MicroDuration"), 5),
    "interval_as_text": ("STRING", "P1D", None, named("string", f"{T}.Interval"), "P1D"),
    "negative_may_be_unsigned": ("DECIMAL(20, 0)", -1, None, None, "BIGINT UNSIGNED"),
    "unsigned_as_long": ("DECIMAL(20, 0)", -1, LONG, None, Decimal(2**64 - 1)),
    "unsigned_as_long_in_schema": (
        "DECIMAL(20, 0)",
        -1,
        LONG,
        {"type": "int64"},
        Decimal(2**64 - 1),
    ),
    "negative_decimal_where_unsigned_is_precise": (
        "DECIMAL(20, 0)",
        -1,
        PRECISE,
        None,
        Decimal(-1),
    ),
    "source_type_tells_unsigned": (
        "DECIMAL(20, 0)",
        -1,
        None,
        {"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}},
        Decimal(2**64 - 1),
    ),
    "source_type_tells_what_bigint_cannot_have": (
        "BIGINT",
        -1,
        None,
        {"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}},
        "is no BIGINT",
    ),
    "precise_decimal": ("DECIMAL(10, 2)", "Dg==", None, None, Decimal("0.14")),
    "scale_of_the_schema": (
        "DECIMAL(10, 2)",
        "Dg==",
        None,
        named("bytes", DECIMAL, parameters={"scale": "1"}),
        Decimal("1.40"),
    ),
    "digits_beyond_the_scale": (
        "DECIMAL(10, 2)",
        "Dg==",
        None,
        named("bytes", DECIMAL, parameters={"scale": "3"}),
        "is no DECIMAL(10, 2)",
    ),
    "zeros_beyond_the_scale": (
        "DECIMAL(10, 2)",
        "ZA==",
        None,
        named("bytes", DECIMAL, parameters={"scale": "4"}),
        Decimal("0.01"),
    ),
    "too_many_digits": ("DECIMAL(3, 2)", "A+g=", None, None, "is no DECIMAL(3, 2)"),
    "odd_base64": ("DECIMAL(10, 2)", "Dh==", None, None, "is no DECIMAL"),
    "no_bytes_are_no_decimal": ("DECIMAL(10, 2)", "", None, None, "is no DECIMAL"),
    "decimal_as_text": ("DECIMAL(10, 2)", "1234", TEXTS, None, Decimal("1234.00")),
    "scientific_text": ("DECIMAL(10, 2)", "1E+3", TEXTS, None, Decimal("1000.00")),
    "text_loses_digits": ("DECIMAL(10, 2)", "0.001", TEXTS, None, "is no DECIMAL"),
    "nan": ("DECIMAL(10, 2)", "NaN", TEXTS, None, "is no DECIMAL"),
    "text_in_schema": ("DECIMAL(10, 2)", "1234", None, {"type": "string"}, Decimal("1234.00")),
    "text_that_may_be_unsigned": ("DECIMAL(20, 0)", "1234", TEXTS, None, "BIGINT UNSIGNED"),
    "double": ("DECIMAL(10, 2)", 0.1, DOUBLES, None, Decimal("0.10")),
    "double_of_too_many_digits": ("DECIMAL(20, 2)", 1e17, DOUBLES, None, "is no DECIMAL"),
    "double_of_too_many_digits_in_schema": (
        "DECIMAL(20, 2)",
        1e17,
        None,
        {"type": "double"},
        "as double is no DECIMAL",
    ),
    "variable_scale": (
        "DECIMAL(10, 2)",
        {"scale": 1, "value": "Dg=="},
        None,
        named("struct", "io.debezium.data.VariableScaleDecimal"),
        Decimal("1.40"),
    ),
    "variable_scale_without_value": ("DECIMAL(10, 2)", {"scale": 1}, None, None, "is no DECIMAL"),
    "decimal_is_no_text": (
        "STRING",
        "Dg==",
        None,
        named("bytes", DECIMAL, parameters={"scale": "1"}),
        "is no STRING",
    ),
    "float_in_its_digits": ("FLOAT", 1.1, None, None, 1.100000023841858),
    "float_as_a_double": ("FLOAT", 1.100000023841858, None, None, 1.100000023841858),
    "double_is_no_float": ("FLOAT", 1.23456789, None, None, "is no FLOAT"),
    "infinity": ("DOUBLE", "-Infinity", None, {"type": "double"}, float("-inf")),
    "bigint_is_no_double": ("DOUBLE", 2**53 + 1, None, None, "is no DOUBLE"),
    "days": ("DATE", 19782, None, None, date(2024, 2, 29)),
    "iso_date": ("DATE", "2024-02-29Z", None, None, date(2024, 2, 29)),
    "february_30": ("DATE", "2024-02-30", None, None, "is no DATE"),
    "day_beyond_9999": ("DATE", 2932897, None, None, "is no DATE"),
    "zero_date_in_parts": ("DATE", {"year": 0, "month": 0, "day": 0}, None, None, None),
    "partial_date_in_parts": ("DATE", {"year": 2024, "month": 0, "day": 1}, None, None, "no DATE"),
    "infinite_date": ("DATE", {"specialValue": "POSITIVE_INFINITY"}, None, None, "is no DATE"),
    "picoseconds": ("TIME(6)", {"second": 1, "picoseconds": 2_000_000}, None, None, 1_000_002),
    "finer_than_a_microsecond": ("TIME(6)", {"second": 1, "picoseconds": 2}, None, None, "no TIME"),
    "duration_below_zero": (
        "TIME(0)",
        {"hours": -838, "minutes": -59},
        None,
        None,
        -3_020_340_000_000,
    ),
    "micros": ("TIME(3)", 1_000, None, None, 1_000),
    "finer_than_declared": ("TIME(3)", 1_001, None, None, "is no TIME(3)"),
    "beyond_838_hours": ("TIME(6)", 3_020_400_000_000, None, None, "is no TIME(6)"),
    "zoned_time": (
        "TIME(6)",
        "04:05:11.789Z",
        None,
        named("string", f"{T}.ZonedTime"),
        14_711_789_000,
    ),
    "time_with_another_offset": ("TIME(6)", "04:05:11+01:00", None, None, "is no TIME"),
    "millis": ("TIMESTAMP(3)", 1_000, None, None, datetime.fromisoformat("1970-01-01T00:00:01")),
    "micros_of_a_timestamp": (
        "TIMESTAMP(6)",
        1_000,
        None,
        None,
        datetime.fromisoformat("1970-01-01T00:00:00.001"),
    ),
    "unit_of_the_schema": (
        "TIMESTAMP(6)",
        1_000,
        None,
        named("int64", f"{T}.Timestamp"),
        datetime.fromisoformat("1970-01-01T00:00:01"),
    ),
    "connect_has_cut_it": ("TIMESTAMP(6)", 1_000, CONNECT, None, "cut it to milliseconds"),
    "micros_in_mode_isostring": ("TIMESTAMP(3)", 1_000, ISO, None, "is no TIMESTAMP(3)"),
    "micros_are_no_millis": ("TIMESTAMP(3)", 1_700_000_000_000_000, None, None, "is no TIMESTAMP"),
    "number_has_no_zone": ("TIMESTAMP_LTZ(3)", 1_000, None, None, "is no TIMESTAMP_LTZ(3)"),
    "instant_with_an_offset": (
        "TIMESTAMP(0)",
        "2024-02-29T01:00:00+02:00",
        None,
        None,
        datetime.fromisoformat("2024-02-28T23:00:00"),
    ),
    "text_without_an_offset": (
        "TIMESTAMP(0)",
        "2024-02-29T01:00:00",
        None,
        None,
        "is no TIMESTAMP",
    ),
    "year_of_five_digits": ("TIMESTAMP(0)", "+12024-02-29T01:00:00Z", None, None, "no TIMESTAMP"),
    "bytes": ("BYTES", "AQI=", None, None, b"\x01\x02"),
    "no_base64": ("BYTES", "AQI", None, None, "is no BYTES"),
    "hex": ("BYTES", "0aff", HEX, None, b"\x0a\xff"),
    "base64_is_no_hex": ("BYTES", "AAAA", HEX, None, "is no BYTES"),
    "bits_are_always_base64": ("BYTES", "AAAA", BITS, None, b"\0\0\0"),
    "text_is_no_bytes_in_schema": ("BYTES", "AQI=", None, {"type": "string"}, "is no BYTES"),
    "unavailable_bytes": (
        "BYTES",
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        None,
        None,
        "did not send",
    ),
    "unavailable_array": (
        "ARRAY<STRING>",
        ["__debezium_unavailable_value"],
        None,
        None,
        "not send",
    ),
    "unavailable_numbers": (
        "ARRAY<INT>",
        list(b"__debezium_unavailable_value"),
        None,
        None,
        "did not send",
    ),
    "geometry": (
        "STRING",
        {"srid": 1, "wkb": "AA=="},
        None,
        named("struct", "io.debezium.data.geometry.Geometry"),
        "io.debezium.data.geometry.Geometry is no STRING",
    ),
    "geometry_in_parts": (
        "ROW<srid INT, wkb BYTES>",
        {"srid": 1, "wkb": "AA=="},
        None,
        None,
        {"srid": 1, "wkb": b"\0"},
    ),
    "vector": ("ARRAY<FLOAT>", [1.5, 2.0], None, None, [1.5, 2.0]),
    "small_number_in_an_array": ("ARRAY<DOUBLE>", [1e-300], None, None, [1e-300]),
    "array_with_a_bad_element": ("ARRAY<INT>", [1, "2"], None, None, "is no ARRAY<INT>"),
    "array_with_null_where_none_may_be": ("ARRAY<INT NOT NULL>", [None], None, None, "is no ARRAY"),
    "array_of_arrays": ("ARRAY<ARRAY<INT>>", [[1], [], None], None, None, [[1], [], None]),
    "hstore_as_json": ("MAP<STRING, STRING>", '{"a":null}', None, None, [("a", None)]),
    "hstore_as_map": ("MAP<STRING, STRING>", {"a": "b"}, None, None, [("a", "b")]),
    "text_that_is_no_map": ("MAP<STRING, STRING>", "null", None, None, "is no MAP"),
    "json_is_text": (
        "STRING",
        '{"a": 1}',
        None,
        named("string", "io.debezium.data.Json"),
        '{"a": 1}',
    ),
}


@pytest.mark.parametrize(
    ("kind", "value", "options", "schema", "expected"), VALUES.values(), ids=VALUES
)
def test_a_value_is_what_its_type_its_schema_and_the_options_say(
    kind, value, options, schema, expected
):
    read_value = one(kind, value, options, schema)
    is_reason = isinstance(expected, str) and sql_type(kind) != sql_type("STRING")
    is_reason |= isinstance(expected, str) and isinstance(value, dict)
    if is_reason or (isinstance(expected, str) and "is no" in expected):
        assert expected in read_value
    else:
        assert read_value == expected
        assert type(read_value) is type(expected)


def test_nothing_is_decoded_of_no_records():
    empty = pa.RecordBatch.from_pydict(
        {"key": pa.array([], pa.binary()), "value": pa.array([], pa.binary())}
    )
    changes = DebeziumDecoder(ID_NAME, ["id"], before=["name"]).decode(empty)
    assert (len(changes.kind), changes.after.num_rows, changes.bad) == (0, 0, ())


def test_a_part_of_a_batch_is_decoded_as_it_is():
    records = [({"id": n}, change("c", None, {"id": n, "name": str(n)})) for n in range(5)]
    part = batch(*records).slice(2, 2)
    assert DebeziumDecoder(ID_NAME, ["id"]).decode(part).after.column("id").to_pylist() == [2, 3]


def test_what_is_decoded_to_warm_up_is_right(monkeypatch):
    seen = []
    monkeypatch.setattr(DebeziumDecoder, "decode", _noting(DebeziumDecoder.decode, seen))
    warm_up()
    assert [changes.bad for changes in seen] == [()]


def _noting(decode, seen):
    def noted(self, records):
        seen.append(decode(self, records))
        return seen[-1]

    return noted
