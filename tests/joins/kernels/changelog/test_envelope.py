"""Records of a changelog topic: the exact bytes, and back."""

import datetime as dt
import decimal
import json
import zlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.envelope import (
    SOURCE_SCHEMA,
    BinlogPosition,
    CapturedColumn,
    Envelopes,
    changelog_schema,
    decode,
    encode_records,
    encode_snapshot,
    encode_watermark,
    partition_of,
)
from joins.kernels.json.encode import encode_objects
from joins.kernels.json.wire import Encoding
from joins.plan.errors import SourceError
from joins.plan.types import SqlType, TypeName
from tests.support.laws import examples

MIN = -(2**63)
LOW = BinlogPosition(0, 12, 3456)
COLUMNS = (
    CapturedColumn("id", SqlType(TypeName.BIGINT), Encoding.INTEGER),
    CapturedColumn("name", SqlType(TypeName.STRING), Encoding.STRING),
)


def source(*rows: tuple[int, int, int, int, int, int]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(v, f.type) for v, f in zip(columns, SOURCE_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def kafka_rows(records: list[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
    count = len(records)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in records], pa.binary()),
            pa.array([value for _, value in records], pa.binary()),
            pa.array([3] * count, pa.int32()),
            pa.array(range(100, 100 + count), pa.int64()),
        ],
        names=["key", "value", "partition", "offset"],
    )


def without_times(value: bytes) -> str:
    content = json.loads(value)
    content["ts_ms"] = content["source"]["ts_ms"] = 0
    return json.dumps(content, separators=(",", ":"))


def test_bytes_of_a_snapshot_row():
    rows = pa.record_batch({"id": pa.array([7]), "name": pa.array(["é"])})
    (record,) = encode_snapshot(rows, ("id",), LOW, generation=1, partitions=4).to_pylist()
    assert record["key"] == b'{"id":7}'
    assert record["partition"] == zlib.crc32(b'{"id":7}') % 4
    assert without_times(record["value"]) == (
        '{"before":null,"after":{"id":7,"name":"\\u00e9"},"op":"r","source":'
        '{"epoch":0,"file":12,"pos":3456,"row":-1,"gen":1,"ts_ms":0},"ts_ms":0}'
    )
    assert '"name":"é"'.encode() in record["value"]


def test_bytes_of_changes():
    changes = Envelopes(
        ops=pa.array(["c", "u", "d"]),
        source=source((0, 1, 5, 0, 2, 9), (0, 1, 5, 1, 2, 9), (0, 1, 8, 0, 2, 9)),
        before=pa.record_batch({"id": pa.array([None, 1, 2]), "name": ["", "a", "b"]}),
        after=pa.record_batch({"id": pa.array([1, 1, None]), "name": ["x", "y", ""]}),
    )
    records = encode_records(changes, ("id",), partitions=1).to_pylist()
    assert [r["key"] for r in records] == [b'{"id":1}', b'{"id":1}', b'{"id":2}']
    heads = [r["value"].decode().partition(',"op"')[0] for r in records]
    assert heads == [
        '{"before":null,"after":{"id":1,"name":"x"}',
        '{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"y"}',
        '{"before":{"id":2,"name":"b"},"after":null',
    ]
    assert '"op":"u","source":{"epoch":0,"file":1,"pos":5,"row":1,"gen":2,"ts_ms":9},"ts_ms":' in (
        records[1]["value"].decode()
    )


def test_bytes_of_a_watermark_record():
    assert without_times(encode_watermark(BinlogPosition(1, 2, 3), 4)) == (
        '{"before":null,"after":null,"op":"w","source":{"epoch":1,"file":2,"pos":3,"row":-1,'
        '"gen":4,"ts_ms":0},"ts_ms":0,"watermark":{"timestamp_ms":-9223372036854775808,'
        '"use_processing_time":true}}'
    )


def test_decoding_keeps_the_order_and_every_record():
    changes = Envelopes(
        ops=pa.array(["c", "d", "u"]),
        source=source((0, 1, 5, 0, 2, 9), (0, 1, 5, 1, 2, 9), (0, 1, 8, 0, 2, 10)),
        before=pa.record_batch({"id": pa.array([None, 2, 1]), "name": [None, "b", "a"]}),
        after=pa.record_batch({"id": pa.array([1, None, 1]), "name": ["a", None, None]}),
    )
    records = [
        (r["key"], r["value"]) for r in encode_records(changes, ("id",), partitions=1).to_pylist()
    ]
    records.insert(2, (None, encode_watermark(LOW, 6)))
    decoded = decode(kafka_rows(records), COLUMNS, topic="t")
    assert decoded.batch.schema == changelog_schema(COLUMNS)
    shown = decoded.batch.select(["id", "name", "_op", "_file", "_pos", "_row"]).to_pylist()
    assert [tuple(row.values()) for row in shown] == [
        (1, "a", "c", 1, 5, 0),
        (2, None, "d", 1, 5, 1),
        (None, None, "w", 12, 3456, -1),
        (1, None, "u", 1, 8, 0),
    ]
    assert decoded.batch.column("_offset").to_pylist() == [100, 101, 102, 103]
    assert decoded.batch.column("_partition").to_pylist() == [3] * 4
    assert decoded.batch.column("_generation").to_pylist() == [2, 2, 6, 2]
    assert decoded.batch.column("_source_ts").to_pylist()[3] == 10
    assert decoded.watermarks == ((3, 102, 6, MIN, True),)


def test_no_records_decode_to_no_rows():
    decoded = decode(kafka_rows([]), COLUMNS, topic="t")
    assert decoded.batch.num_rows == 0
    assert decoded.batch.schema == changelog_schema(COLUMNS)


def record(value: str, key: bytes | None = b'{"id":1}') -> tuple[bytes | None, bytes]:
    return key, value.encode()


SOURCE = '"source":{"epoch":0,"file":1,"pos":5,"row":0,"gen":1,"ts_ms":1}'
GOOD = f'{{"before":null,"after":{{"id":1,"name":"a"}},"op":"c",{SOURCE},"ts_ms":1}}'
FOREIGN = {
    "tombstone": (b'{"id":1}', None),
    "not_json": record("hello"),
    "two_documents": record(GOOD + "\n" + GOOD),
    "no_source": record('{"after":{"id":1},"op":"c"}'),
    "unknown_op": record(GOOD.replace('"c"', '"t"')),
    "no_after": record(GOOD.replace('{"id":1,"name":"a"}', "null")),
    "wrong_type": record(GOOD.replace('"id":1,', '"id":"x",')),
    "no_key": record(GOOD, key=None),
    "key_of_a_delete_is_damaged": record(
        GOOD.replace('"c"', '"d"').replace('{"id":1,"name":"a"}', "null"), key=b"{"
    ),
    "watermark_of_event_time": record(
        f'{{"before":null,"after":null,"op":"w",{SOURCE},"ts_ms":1,'
        '"watermark":{"timestamp_ms":5,"use_processing_time":false}}',
        key=None,
    ),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_record_that_is_not_ours_is_named_by_its_coordinates(foreign):
    with pytest.raises(SourceError, match='record 3/101 of changelog topic "dim"'):
        decode(kafka_rows([record(GOOD), foreign, record(GOOD)]), COLUMNS, topic="dim")


DECLARED = {
    "boolean": (Encoding.INTEGER, SqlType(TypeName.BOOLEAN), "2", True),
    "int_as_bigint": (Encoding.INTEGER, SqlType(TypeName.BIGINT), "5", 5),
    "int_as_decimal": (Encoding.INTEGER, SqlType(TypeName.DECIMAL, 5, 2), "5", decimal.Decimal(5)),
    "unsigned": (
        Encoding.UNSIGNED,
        SqlType(TypeName.DECIMAL, 20, 0),
        "18446744073709551615",
        decimal.Decimal(2**64 - 1),
    ),
    "decimal": (
        Encoding.DECIMAL,
        SqlType(TypeName.DECIMAL, 9, 3),
        '"-1.50"',
        decimal.Decimal("-1.5"),
    ),
    "decimal_as_text": (Encoding.DECIMAL, SqlType(TypeName.STRING), '"-1.50"', "-1.50"),
    "bytes": (Encoding.BYTES, SqlType(TypeName.BYTES), '"AP8="', b"\x00\xff"),
    "float": (Encoding.FLOAT, SqlType(TypeName.FLOAT), "0.5", 0.5),
    "date": (Encoding.DATE, SqlType(TypeName.DATE), "-1", dt.date(1969, 12, 31)),
    "time_cut": (Encoding.TIME, SqlType(TypeName.TIME, 0), "-1500000", -1_000_000),
    "datetime": (
        Encoding.DATETIME,
        SqlType(TypeName.TIMESTAMP, 6),
        "-1",
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 (a wall clock)
    ),
    "datetime_cut": (
        Encoding.DATETIME,
        SqlType(TypeName.TIMESTAMP, 3),
        "1999",
        dt.datetime(1970, 1, 1, 0, 0, 0, 1000),  # noqa: DTZ001 (a wall clock)
    ),
    "instant": (
        Encoding.TIMESTAMP,
        SqlType(TypeName.TIMESTAMP_LTZ, 6),
        '"2026-11-21T04:33:33.704Z"',
        dt.datetime(2026, 11, 21, 4, 33, 33, 704000, tzinfo=dt.UTC),
    ),
}


@pytest.mark.parametrize(("encoding", "declared", "text", "value"), DECLARED.values(), ids=DECLARED)
def test_values_become_their_declared_type(encoding, declared, text, value):
    columns = (*COLUMNS, CapturedColumn("v", declared, encoding))
    after = GOOD.replace('"name":"a"', f'"name":"a","v":{text}')
    decoded = decode(kafka_rows([record(after), record(GOOD)]), columns, topic="t")
    assert decoded.batch.column("v").to_pylist() == [value, None]


def test_value_beyond_its_declared_type_is_named():
    columns = (CapturedColumn("id", SqlType(TypeName.TINYINT), Encoding.INTEGER), *COLUMNS[1:])
    with pytest.raises(SourceError, match='column "id" is not TINYINT'):
        decode(kafka_rows([record(GOOD.replace('"id":1', '"id":300'))]), columns, topic="t")


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(MIN, 2**63 - 1), st.none() | st.text(max_size=8)), max_size=6)
)
def test_what_is_encoded_is_what_is_decoded(rows):
    ids, names = [r[0] for r in rows], [r[1] for r in rows]
    batch = pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})
    records = encode_snapshot(batch, ("id", "name"), LOW, generation=1, partitions=3)
    assert [json.loads(key) for key in records.column("key").to_pylist()] == batch.to_pylist()
    pairs = [(r["key"], r["value"]) for r in records.to_pylist()]
    decoded = decode(kafka_rows(pairs), COLUMNS, topic="t")
    assert decoded.batch.select(["id", "name"]).to_pylist() == batch.to_pylist()


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(st.integers(MIN, 2**63 - 1), st.none() | st.text(max_size=8)),
        min_size=1,
        max_size=6,
    )
)
def test_a_copy_writes_what_changes_that_read_would_write(rows):
    ids, names = [r[0] for r in rows], [r[1] for r in rows]
    batch = pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})
    about = source(*[(LOW.epoch, LOW.file, LOW.pos, -1, 3, 9)] * len(rows))
    reads = Envelopes(pa.array(["r"] * len(rows)), about, None, batch)
    copied = encode_snapshot(batch, ("name", "id"), LOW, generation=3, partitions=3)
    changed = encode_records(reads, ("name", "id"), partitions=3)
    assert copied.column("key") == changed.column("key")
    assert copied.column("partition") == changed.column("partition")
    values = (records.column("value").to_pylist() for records in (copied, changed))
    assert [*map(without_times, next(values))] == [*map(without_times, next(values))]


def test_nul_characters_survive():
    batch = pa.record_batch({"id": pa.array([1]), "name": pa.array(["a\0b"])})
    records = encode_snapshot(batch, ("id",), LOW, generation=1, partitions=1).to_pylist()
    decoded = decode(kafka_rows([(r["key"], r["value"]) for r in records]), COLUMNS, topic="t")
    assert decoded.batch.column("name").to_pylist() == ["a\0b"]


def test_partition_is_crc32_of_the_key():
    keys = [b'{"id":1}', b'{"id":2}', b""]
    found = partition_of(pa.array(keys, pa.binary()), 7).to_pylist()
    assert found == [zlib.crc32(key) % 7 for key in keys]


VALUES = {
    "text": (pa.array(['"\\\n\t\x01/é😀', "", None]), ['"\\\n\t\x01/é😀', "", None]),
    "integers": (pa.array([-5, None], pa.int8()), [-5, None]),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    "booleans": (pa.array([True, False, None]), [True, False, None]),
    "doubles": (pa.array([0.1, 1e300, -5e-324]), [0.1, 1e300, -5e-324]),
    "not_numbers": (pa.array([float("nan"), float("inf")]), [None, None]),
    "floats": (pa.array([0.1], pa.float32()), [0.1]),
    "decimals": (pa.array([decimal.Decimal("1E-7")], pa.decimal128(9, 7)), [1e-7]),
    "bytes": (pa.array([b"\x00\xff", None]), ["AP8=", None]),
    "dates": (pa.array([dt.date(2026, 11, 21)]), ["2026-11-21"]),
    "timestamps": (pa.array([9], pa.timestamp("us")), ["1970-01-01 00:00:00.000009"]),
    "instants": (pa.array([9], pa.timestamp("us", "UTC")), ["1970-01-01 00:00:00.000009Z"]),
}


@pytest.mark.parametrize(("column", "expected"), VALUES.values(), ids=VALUES)
def test_columns_as_json(column, expected):
    batch = pa.RecordBatch.from_arrays([column, column], names=["a", 'q"\\'])
    texts = encode_objects(batch).to_pylist()
    assert [json.loads(text) for text in texts] == [{"a": v, 'q"\\': v} for v in expected]
    sliced = encode_objects(batch.slice(len(column) - 1, 1)).to_pylist()
    assert sliced == texts[-1:]


def test_decimals_are_written_with_all_digits():
    column = pa.array([decimal.Decimal("1E-7"), decimal.Decimal("2.5")], pa.decimal128(9, 7))
    batch = pa.RecordBatch.from_arrays([column], names=["d"])
    assert encode_objects(batch).to_pylist() == ['{"d":0.0000001}', '{"d":2.5000000}']
