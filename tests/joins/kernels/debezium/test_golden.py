"""Records that real connectors wrote, decoded: each value is what the database showed, or is bad.

Those of the modes `avro` are in Confluent's wire format, with the schemas that a registry had.
Where a connector has lost a value, so that nobody can tell, is written down in `LOST`.
"""

import base64
import csv
import json
import re
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from joins.kernels.debezium.changes import RecordFault, RecordKind
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.notifications import (
    SnapshotEvent,
    SnapshotNotification,
    read_notification,
)
from joins.kernels.debezium.options import (
    BigintUnsignedHandling,
    BinaryHandling,
    CapturedName,
    DebeziumOptions,
    DecimalHandling,
    TimePrecision,
    ValueLayout,
)
from joins.kernels.debezium.raw import RawValues
from joins.kernels.expressions.conversion import INTEGERS
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.plan.plan import Field
from joins.plan.types import TypeName
from tests.support.expressions import sql_type
from tests.support.lanes import some_of

# What a connector writes is not what the database has, and nobody can tell: by table and column the
# texts of the database, as a pattern.
LOST = {
    "mariadb": {
        ("types", "c_enum"): "large, extra",  # with a backslash before the comma
        ("types", "c_uuid"): "123e4567-.*",  # bytes are shifted when it is changed
        ("extremes", "c_zero_timestamp"): "0000-.*",  # 1970
        ("extremes", "c_partial_date"): ".*",  # NULL
        ("extremes", "c_datetime6"): "000[01]-.*",  # in 2001
        ("extremes", "c_time"): "(-|838|24).*",  # NULL, or cut to a day
        ("zero", "c_date"): "0000-.*",  # 1970 of a NOT NULL column
        ("zero", "c_datetime"): "0000-.*",
        ("zero", "c_timestamp"): "0000-.*",
    },
    "postgres": {
        ("types", "c_inet"): ".*",  # without the length of the network
        ("types", "c_money"): ".*92,233,720,368,547,758.*",  # has been a double
        ("types", "c_timetz"): ".*",  # in UTC
        ("types", "c_timestamptz3"): "1000-.*",  # by the Julian calendar
        ("extremes", "c_date"): ".* BC",
        ("extremes", "c_numeric"): "NaN",  # NULL
        ("extremes", "c_numeric_any"): "NaN|-?Infinity",
        ("extremes", "c_time"): "24:00:00",
        ("extremes", "c_timestamp"): "-?infinity|294276-.*",  # goes round as nanoseconds
    },
}
# What is refused because its digits, its mode or its limits do not allow to tell what it was.
_BY_MODE = {
    "decimal_double": {"c_decimal_whole", "c_decimal_wide", "c_money", "c_numeric_any"}
    | {"c_numeric_whole", "c_numeric_wide"},
    "decimal_number": {"c_decimal_whole", "c_numeric_whole"},
    "decimal_string": {"c_decimal_whole", "c_numeric_whole"},
    "unsigned_precise_string": {"c_decimal_whole"},
    "time_connect": {"c_datetime6", "c_time6", "c_time", "c_timestamp", "c_timestamp_array"},
    "time_nanoseconds": {"c_datetime", "c_datetime3"},
}
_ALWAYS = {"mariadb": {"c_bigint_u"}, "postgres": {"c_timestamptz"}}
_NOT_UNSIGNED = {
    "mariadb/unsigned_precise": {"c_bigint_u"},
    "mariadb/all_strings_with_schema": {"c_bigint_u"},  # the schema has the database's type
}
_ONLY = {
    "mariadb/time_connect": {"c_time", "c_timestamp"},  # without a fraction there
}

GOLDEN = Path(__file__).parents[3] / "golden" / "debezium"
MODES = sorted(f"{path.parent.name}/{path.stem}" for path in GOLDEN.glob("*/*.jsonl"))
IN_EVERY_RUN = [
    f"{database}/{mode}"
    for database in ("mariadb", "postgres")
    for mode in ("default", "avro", "decimal_string", "flattened", "time_connect")
]
_ENUMS = {
    "decimal_handling": ("decimal.handling.mode", DecimalHandling),
    "bigint_unsigned": ("bigint.unsigned.handling.mode", BigintUnsignedHandling),
    "time_precision": ("time.precision.mode", TimePrecision),
    "binary_handling": ("binary.handling.mode", BinaryHandling),
}


@cache
def tables(database):
    return json.loads((GOLDEN / database / "tables.json").read_text())


@cache
def recorded(mode):
    head, *lines = (GOLDEN / f"{mode}.jsonl").read_text().splitlines()
    return json.loads(head), [json.loads(line) for line in lines]


def records(mode):
    head, lines = recorded(mode)
    return head["config"], lines


@cache
def avro_of(mode):
    """Of a mode in Avro: what takes keys or values apart; else None."""
    schemas = recorded(mode)[0].get("schemas")
    if schemas is None:
        return None
    texts = {int(number): json.dumps(schema) for number, schema in schemas.items()}
    return AvroMemory(texts.get)


def decoder_of(mode, fields, primary_key, options):
    payloads = None if avro_of(mode) is None else (avro_of(mode), avro_of(mode))
    return DebeziumDecoder(fields, primary_key, options, payloads=payloads)


def options_of(config, table):
    known = {name: kind(config[key]) for name, (key, kind) in _ENUMS.items() if key in config}
    if "Postgres" in config["connector.class"]:
        known.setdefault("time_precision", TimePrecision.ADAPTIVE)
    layout = ValueLayout.FLAT if "transforms" in config else ValueLayout.ENVELOPE
    name = CapturedName(table) if "transforms" not in config else None
    bits = frozenset({"c_bit17", "c_bit64", "c_varbit"})
    return DebeziumOptions(
        layout=layout, table=name, null_if_missing=True, bit_columns=bits, **known
    )


def lines_of(mode, table):
    return [line for line in records(mode)[1] if line["topic"].endswith(f".{table}")]


@cache
def batch_of_table(mode, table):
    return batch_of(mode, lines_of(mode, table))


def batch_of(mode, lines):
    read = str.encode if avro_of(mode) is None else base64.b64decode
    columns = {}
    for name in ("key", "value"):
        texts = [None if line[name] is None else read(line[name]) for line in lines]
        columns[name] = pa.array(texts, pa.binary())
    return pa.RecordBatch.from_pydict(columns)


def as_json(mode, batch, name):
    avro, values = avro_of(mode), batch.column(name)
    texts = values if avro is None else avro.unwrapped(RawValues.of(values)).values.copied()
    return texts.to_pylist()


def truth(text, kind, declared):
    return None if text is None else TRUTHS[kind.name](text, kind, declared)


def bytes_of(text, declared):
    bits = re.fullmatch(r"(VAR)?BIT\((\d+)\)", declared)
    if bits is None:
        return bytes.fromhex(text.removeprefix("\\x"))
    is_digits = bits[1] or len(text) == int(bits[2])  # of PostgreSQL
    number = int(text or "0", 2 if is_digits else 10)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def micros_of(text):
    hours, minutes, seconds = text.lstrip("-").split(":")
    micros = round((int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)) * 1_000_000)
    return -micros if text.startswith("-") else micros


def moment_of(text):
    is_zero = text.startswith("0000-00-00")
    return None if is_zero else datetime.fromisoformat(text.removesuffix("+00"))


def list_of(text, element):
    items = next(csv.reader([text[1:-1]], escapechar="\\"), []) if text != "{}" else []
    return [None if item == "NULL" else plain(truth(item, element, "")) for item in items]


def map_of(text):
    pairs = re.findall(r'"([^"]*)"=>(?:"([^"]*)"|NULL)', text)
    return [(name, value or None) for name, value in pairs]


TRUTHS = {
    **dict.fromkeys(INTEGERS, lambda text, _, __: int(text)),
    TypeName.BOOLEAN: lambda text, _, __: text in ("1", "t", "true"),
    TypeName.DECIMAL: lambda text, _, __: Decimal(re.sub("[$,]", "", text)),
    TypeName.FLOAT: lambda text, _, __: float(np.float32(float(text))),
    TypeName.DOUBLE: lambda text, _, __: float(text),
    TypeName.STRING: lambda text, _, __: text,
    TypeName.BYTES: lambda text, _, declared: bytes_of(text, declared),
    TypeName.DATE: lambda text, _, __: None if text[:4] == "0000" else date.fromisoformat(text),
    TypeName.TIME: lambda text, _, __: micros_of(text),
    TypeName.TIMESTAMP: lambda text, _, __: moment_of(text),
    TypeName.TIMESTAMP_LTZ: lambda text, _, __: moment_of(text),
    TypeName.ARRAY: lambda text, kind, _: list_of(text, kind.members[0].type),
    TypeName.MAP: lambda text, _, __: map_of(text),
}


def plain(value):
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def decoded(mode, table, column, **more):
    """Of the column of a table: the text of the database, the value, and why it is bad, by row."""
    return _decoded(mode, table, column["name"], column["sql"], **more)


@cache  # several tests look at a column
def _decoded(mode, table, name, declared, **more):
    described = tables(mode.split("/")[0])[table]
    own = lines_of(mode, table)
    fields = [Field(name, sql_type(declared))]
    options = replace(options_of(records(mode)[0], table), **more)
    rows = decoder_of(mode, fields, [], options).decode(batch_of_table(mode, table))
    bad = {each.row: each for each in rows.bad}
    return [
        (described["rows"][own[row]["after"]].get(name), value, bad.get(row))
        for row, value in enumerate(rows.after.column(0).to_pylist())
        if own[row]["after"] is not None
    ]


def typed_columns(mode):
    for table, described in tables(mode.split("/")[0]).items():
        for column in described["columns"]:
            if column["sql"]:
                yield table, column


def is_lost(database, table, column, text):
    pattern = LOST[database].get((table, column["name"]))
    return pattern is not None and text is not None and re.fullmatch(pattern, text) is not None


def same(value, expected, declared):
    if isinstance(value, float) and isinstance(expected, float) and value != value:
        return expected != expected
    if declared.startswith("CHAR(") and value is not None:
        return value.rstrip() == expected  # PostgreSQL pads them, its texts are not
    if declared.startswith("BIT(") and isinstance(value, bytes):
        return value.rstrip(b"\0") == expected.rstrip(b"\0")  # as few bytes as it needs
    return value == expected


@pytest.mark.parametrize("mode", some_of(MODES, *IN_EVERY_RUN))
def test_a_value_is_what_the_database_showed_or_bad(mode):
    database = mode.split("/")[0]
    for table, column in typed_columns(mode):
        kind = sql_type(column["sql"])
        for text, value, bad in decoded(mode, table, column):
            if bad is None and not is_lost(database, table, column, text):
                expected = truth(text, kind, column["type"])
                assert same(plain(value), expected, column["type"]), (table, column, text)


@pytest.mark.parametrize("mode", some_of(MODES, *IN_EVERY_RUN))
def test_all_types_are_read_but_for_what_a_mode_has_lost(mode):
    database, name = mode.split("/")
    refused = set()
    for table, column in typed_columns(mode):
        if table == "types" and any(bad for _, _, bad in decoded(mode, table, column)):
            refused.add(column["name"])
    columns = {column["name"] for table, column in typed_columns(mode) if table == "types"}
    expected = _ALWAYS[database] - _NOT_UNSIGNED.get(mode, set())
    expected |= _BY_MODE.get(name, set()) - _ONLY.get(mode, set())
    assert refused == expected & columns


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.startswith("mariadb")])
def test_a_bigint_unsigned_is_read_where_it_is_known_how_it_is_written(mode):
    config, _ = records(mode)
    known = BigintUnsignedHandling(config.get("bigint.unsigned.handling.mode", "long"))
    column = {"name": "c_bigint_u", "type": "BIGINT UNSIGNED", "sql": "DECIMAL(20, 0)"}
    for text, value, bad in decoded(mode, "types", column, bigint_unsigned=known):
        is_ambiguous = mode.endswith("/unsigned_precise_string") and text is not None
        assert bool(bad) == is_ambiguous
        assert bad or value == truth(text, sql_type(column["sql"]), "")


def test_a_value_that_the_database_did_not_send_is_no_value():
    names = ("c_large", "c_large_bytes", "c_large_array", "c_large_json")
    columns = {c["name"]: c for c in tables("postgres")["toast"]["columns"]}
    for mode in ("default", "with_schema", "flattened", "avro"):
        for name in names:
            faults = [
                bad.fault
                for _, _, bad in decoded(f"postgres/{mode}", "toast", columns[name])
                if bad
            ]
            assert faults
            assert set(faults) == {RecordFault.UNAVAILABLE}


KINDS = {
    "mariadb/default": "rrrrrr ccccc uuu d tombstone c d tombstone",
    "mariadb/with_schema": "rrrrrr ccccc uuu d tombstone c d tombstone",
    "mariadb/avro": "rrrrrr ccccc uuu d tombstone c d tombstone",
    "mariadb/flattened_rewrite": "rrrrrr ccccc uuu d c d",
}


@pytest.mark.parametrize(("mode", "kinds"), KINDS.items(), ids=KINDS)
def test_a_changed_key_is_a_delete_and_a_create(mode, kinds):
    config, lines = records(mode)
    own = [line for line in lines if line["topic"].endswith(".types")]
    options = options_of(config, "types")
    rows = decoder_of(mode, [Field("id", sql_type("INT"))], ["id"], options)
    changes = rows.decode(batch_of(mode, own))
    words = [w if w == "tombstone" else list(w) for w in kinds.split()]
    assert changes.kind.to_pylist() == [k for w in words for k in ([w] if w == "tombstone" else w)]
    assert not changes.bad
    keys = [json.loads(key) for key in as_json(mode, batch_of(mode, own), "key")]
    keys = [key.get("payload", key)["id"] for key in keys]
    assert changes.key.column(0).to_pylist() == keys


@pytest.mark.parametrize("mode", MODES)
def test_all_notifications_are_understood(mode):
    _, lines = records(mode)
    own = [line for line in lines if line["topic"].endswith(".notifications")]
    batch = batch_of(mode, own)
    assert own or not mode.endswith(("/default", "/avro"))
    for key, value in zip(*(as_json(mode, batch, name) for name in ("key", "value")), strict=True):
        read = read_notification(key, value)
        assert isinstance(read, SnapshotNotification), read
        assert read.event is not SnapshotEvent.TABLE_SCAN_COMPLETED or read.rows is not None


@pytest.mark.parametrize("mode", [mode for mode in MODES if "truncate" in mode])
def test_a_truncate_is_told(mode):
    config, lines = records(mode)
    own = [line for line in lines if line["topic"].endswith(".shape_truncated")]
    options = options_of(config, "shape_truncated")
    decoder = decoder_of(mode, [Field("id", sql_type("INT"))], ["id"], options)
    changes = decoder.decode(batch_of(mode, own))
    assert RecordKind.TRUNCATE in changes.kind.to_pylist()
    assert not changes.bad
