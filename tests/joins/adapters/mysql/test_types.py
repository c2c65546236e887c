"""A row from the snapshot and the same row from the binlog are the same bytes, for every type."""

import json

import pytest

from joins.adapters.mysql.chunks import Chunk, read_chunk
from joins.adapters.mysql.events.transactions import Boundary, RowImages
from joins.adapters.mysql.position import take_high
from joins.adapters.mysql.row_images import wire_rows
from joins.adapters.mysql.source import check_source, choose_server_id
from joins.adapters.mysql.stream import BinlogStream, StreamStart
from joins.adapters.mysql.table import CapturedTable
from joins.kernels.json.encode import encode_objects
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.sql import cdc_connection, new_schema, run_sql

BIG = SqlType(TypeName.BIGINT)
INT = SqlType(TypeName.INT)
TEXT = SqlType(TypeName.STRING)
RAW = SqlType(TypeName.BYTES)
TIME6 = SqlType(TypeName.TIME, 6)
TS6 = SqlType(TypeName.TIMESTAMP, 6)
LTZ6 = SqlType(TypeName.TIMESTAMP_LTZ, 6)

# type in the database, declared type, literals, expected members (None: only equality is asserted)
TYPES = {
    "tinyint": ("TINYINT", SqlType(TypeName.TINYINT), ["-128", "127", "0"], [-128, 127, 0]),
    "tinyint_unsigned": ("TINYINT UNSIGNED", SqlType(TypeName.SMALLINT), ["0", "255"], [0, 255]),
    "boolean": ("TINYINT(1)", SqlType(TypeName.BOOLEAN), ["0", "1", "5"], [0, 1, 5]),
    "smallint": ("SMALLINT", SqlType(TypeName.SMALLINT), ["-32768", "32767"], [-32768, 32767]),
    "smallint_unsigned": ("SMALLINT UNSIGNED", INT, ["65535"], [65535]),
    "mediumint": ("MEDIUMINT", INT, ["-8388608", "8388607", "-1"], [-8388608, 8388607, -1]),
    "mediumint_unsigned": ("MEDIUMINT UNSIGNED", INT, ["16777215"], [16777215]),
    "int": ("INT", INT, ["-2147483648", "2147483647"], [-2147483648, 2147483647]),
    "int_unsigned": ("INT UNSIGNED", BIG, ["4294967295"], [4294967295]),
    "int_zerofill": ("INT(8) ZEROFILL", BIG, ["42"], [42]),
    "bigint": (
        "BIGINT",
        BIG,
        ["-9223372036854775808", "9223372036854775807"],
        [-(2**63), 2**63 - 1],
    ),
    "bigint_unsigned": (
        "BIGINT UNSIGNED",
        SqlType(TypeName.DECIMAL, 20, 0),
        ["18446744073709551615", "0"],
        [2**64 - 1, 0],
    ),
    "decimal": (
        "DECIMAL(10,2)",
        SqlType(TypeName.DECIMAL, 10, 2),
        ["-12345678.90", "0.05", "-0.01", "99999999.99", "0"],
        ["-12345678.90", "0.05", "-0.01", "99999999.99", "0.00"],
    ),
    "decimal_integral": ("DECIMAL(18,0)", SqlType(TypeName.DECIMAL, 18, 0), ["-7"], ["-7"]),
    "decimal_fraction": ("DECIMAL(9,9)", SqlType(TypeName.DECIMAL, 9, 9), ["0.5"], ["0.500000000"]),
    "decimal_zerofill": (
        "DECIMAL(10,2) ZEROFILL",
        SqlType(TypeName.DECIMAL, 10, 2),
        ["1.5"],
        ["1.50"],
    ),
    "decimal_65_30": (
        "DECIMAL(65,30)",
        TEXT,
        ["-99999999999999999999999999999999999.999999999999999999999999999999", "1e-30"],
        [
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "0.000000000000000000000000000001",
        ],
    ),
    "float": (
        "FLOAT",
        SqlType(TypeName.FLOAT),
        ["0.1", "3.4028234e38", "1.17549435e-38", "16777216", "-0.0", "1e-45"],
        None,
    ),
    "float_scaled": ("FLOAT(7,3)", SqlType(TypeName.FLOAT), ["1234.567", "0.1"], None),
    "double": (
        "DOUBLE",
        SqlType(TypeName.DOUBLE),
        ["0.1", "1.7976931348623157e308", "2.2250738585072014e-308", "1e22", "123456789.123456789"],
        [0.1, 1.7976931348623157e308, 2.2250738585072014e-308, 1e22, 123456789.123456789],
    ),
    "double_scaled": (
        "DOUBLE(9,4) ZEROFILL",
        SqlType(TypeName.DOUBLE),
        ["12345.12345", "0.1", "-0.0"],
        None,
    ),
    "bit_1": ("BIT(1)", SqlType(TypeName.BOOLEAN), ["b'0'", "b'1'"], [False, True]),
    "bit_10": ("BIT(10)", RAW, ["b'1000000001'"], ["AQI="]),
    "bit_64": ("BIT(64)", RAW, ["0xFEDCBA9876543210", "1"], ["EDJUdpi63P4=", "AQAAAAAAAAA="]),
    "char": ("CHAR(10)", TEXT, ["'a '", "'é😀'", "''", "'  x'"], ["a", "é😀", "", "  x"]),
    "char_wide": ("CHAR(255)", TEXT, ["REPEAT('€', 255)"], ["€" * 255]),
    "varchar": (
        "VARCHAR(300)",
        TEXT,
        ["'a '", "'\"\\\\\\n\\t\\0 /'", "'😀'", "REPEAT('é', 300)"],
        ["a ", '"\\\n\t\0 /', "😀", "é" * 300],
    ),
    "varchar_latin1": (
        "VARCHAR(20) CHARACTER SET latin1",
        TEXT,
        ["'é€'", "_latin1 0x818D8F909D80"],
        ["é€", "\x81\x8d\x8f\x90\x9d€"],
    ),
    "varchar_utf16": ("VARCHAR(20) CHARACTER SET utf16", TEXT, ["'é😀'"], ["é😀"]),
    "varchar_uca": ("VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci", TEXT, ["'é😀'"], ["é😀"]),
    "text": ("TEXT", TEXT, ["REPEAT('ab', 1000)", "'é'"], ["ab" * 1000, "é"]),
    "text_latin1": ("TEXT CHARACTER SET latin1", TEXT, ["'é'"], ["é"]),
    "longtext": ("LONGTEXT", TEXT, ["REPEAT('ab', 40000)"], ["ab" * 40000]),
    "enum": ("ENUM('a','it''s','é')", TEXT, ["'a'", "'it''s'", "'é'", "0"], ["a", "it's", "é", ""]),
    "enum_of_words": (
        "ENUM('COMPRESSED','unsigned','zerofill')",
        TEXT,
        ["'COMPRESSED'", "'unsigned'"],
        ["COMPRESSED", "unsigned"],
    ),
    "enum_escapes": (
        r"ENUM('a\\b','c\nd','\0','e,f')",
        TEXT,
        ["1", "2", "3", "4"],
        ["a\\b", "c\nd", "\0", "e,f"],
    ),
    "set_sjis": (r"SET('ソ','b\\c') CHARACTER SET sjis", TEXT, ["3"], ["ソ,b\\c"]),
    "varchar_sjis": ("VARCHAR(9) CHARACTER SET sjis", TEXT, ["x'815f'"], ["\\"]),
    "varchar_euckr": ("VARCHAR(9) CHARACTER SET euckr", TEXT, ["'똠'", "x'8c63'"], ["똠", "똠"]),
    "varchar_swe7": ("VARCHAR(9) CHARACTER SET swe7", TEXT, ["'Éa'"], ["Éa"]),
    "surrogate": ("VARCHAR(9)", TEXT, ["x'61EDA08062'"], ["a\ufffdb"]),
    "surrogate_ucs2": ("VARCHAR(9) CHARACTER SET ucs2", TEXT, ["x'D83DDE00'"], ["\ufffd\ufffd"]),
    "enum_latin1": ("ENUM('a','é') CHARACTER SET latin1", TEXT, ["'é'"], ["é"]),
    "set": ("SET('x','y','é')", TEXT, ["''", "'x,é'", "'y'"], ["", "x,é", "y"]),
    "json": ("JSON", TEXT, ['\'{"a": [1, 2.50], "é": null}\''], ['{"a": [1, 2.50], "é": null}']),
    "binary": (
        "BINARY(4)",
        RAW,
        ["0x00", "0xFF00FF00", "''"],
        ["AAAAAA==", "/wD/AA==", "AAAAAA=="],
    ),
    "varbinary": ("VARBINARY(300)", RAW, ["0x00", "''", "REPEAT(0xFF, 300)"], None),
    "blob": ("BLOB", RAW, ["0x0001FF", "REPEAT(0xAB, 60000)"], None),
    "date": ("DATE", SqlType(TypeName.DATE), ["'1000-01-01'", "'9999-12-31'"], [-354285, 2932896]),
    "date_zero": (
        "DATE",
        SqlType(TypeName.DATE),
        ["'0000-00-00'", "'2024-00-10'", "'2024-02-00'", "'1970-01-02'"],
        [None, None, None, 1],
    ),
    "time": (
        "TIME",
        TIME6,
        ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"],
        [-3020399000000, 3020399000000, 0, -1000000],
    ),
    "time_1": ("TIME(1)", TIME6, ["'-00:00:00.1'", "'25:00:00.9'"], [-100000, 90000900000]),
    "time_3": ("TIME(3)", TIME6, ["'-01:00:00.001'", "'01:00:00.999'"], [-3600001000, 3600999000]),
    "time_6": (
        "TIME(6)",
        TIME6,
        ["'-838:59:58.999999'", "'-00:00:00.000001'", "'11:22:33.444555'"],
        [-3020398999999, -1, 40953444555],
    ),
    "datetime": (
        "DATETIME",
        TS6,
        ["'0000-00-00'", "'1000-01-01'", "'9999-12-31 23:59:59'"],
        [None, -30610224000000000, 253402300799000000],
    ),
    "datetime_3": ("DATETIME(3)", TS6, ["'2026-11-21 06:07:08.009'"], [1795241228009000]),
    "datetime_5": ("DATETIME(5)", TS6, ["'1969-12-31 23:59:59.99999'"], [-10]),
    "datetime_6": ("DATETIME(6)", TS6, ["'1969-12-31 23:59:59.999999'"], [-1]),
    "timestamp": (
        "TIMESTAMP",
        LTZ6,
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00'"],
        ["1970-01-01T00:00:01Z", "2038-01-19T03:14:07Z", None],
    ),
    "timestamp_3": (
        "TIMESTAMP(3)",
        LTZ6,
        ["'2026-11-21 04:33:33.704'", "'2026-11-21 04:33:33'"],
        ["2026-11-21T04:33:33.704Z", "2026-11-21T04:33:33.000Z"],
    ),
    "timestamp_6": (
        "TIMESTAMP(6)",
        LTZ6,
        ["'2026-11-21 04:33:33.000001'"],
        ["2026-11-21T04:33:33.000001Z"],
    ),
    "timestamp_before_its_begin": (
        "TIMESTAMP(1)",
        LTZ6,
        ["'1970-01-01 00:00:00.5'"],
        ["1970-01-01T00:00:00.5Z"],
    ),
    "year": ("YEAR", SqlType(TypeName.SMALLINT), ["1901", "2155", "0000"], [1901, 2155, 0]),
}


def from_snapshot(config, table: CapturedTable) -> dict[int, bytes]:
    objects = {}
    for batch in read_chunk(config, table, Chunk(None, None)):
        texts = encode_objects(batch).to_pylist()
        objects.update(zip(batch.column("id").to_pylist(), texts, strict=True))
    return objects


def from_binlog(config, table: CapturedTable, low, high) -> dict[int, bytes]:
    start = StreamStart(choose_server_id(config), low.file_name, low.position.pos)
    stream = BinlogStream(config, table, start)
    rows = []
    try:
        for event in stream.events():
            if isinstance(event, RowImages):
                rows += [after or before for before, after in event.changes()]
            end = (high.position.file, high.position.pos)
            if isinstance(event, Boundary) and (event.file, event.pos) >= end:
                break
    finally:
        stream.close()
    batch = wire_rows(rows, table)
    return dict(zip(batch.column("id").to_pylist(), encode_objects(batch).to_pylist(), strict=True))


@pytest.mark.parametrize(("kind", "declared", "literals", "expected"), TYPES.values(), ids=TYPES)
def test_snapshot_and_binlog_write_the_same_bytes(mariadb, kind, declared, literals, expected):
    with new_schema(mariadb) as schema:
        nullable = f"{kind} NULL DEFAULT NULL"
        run_sql(
            mariadb,
            f"CREATE TABLE t (id INT PRIMARY KEY, unused VARCHAR(9) DEFAULT 'x', v {nullable}, "
            "last BIT(3))",
            schema=schema,
        )
        config = cdc_connection(mariadb, schema, "t")
        fields = (Field("id", INT), Field("v", declared))
        table = check_source(config, fields, ("id",))
        low = take_high(config, 0)
        values = ", ".join(f"({n}, {text})" for n, text in enumerate([*literals, "NULL"]))
        run_sql(
            mariadb,
            "SET SESSION sql_mode='', time_zone='+00:00'",
            f"INSERT INTO t (id, v) VALUES {values}",
            schema=schema,
        )
        high = take_high(config, 0)
        snapshot = from_snapshot(config, table)
        assert len(snapshot) == len(literals) + 1
        assert from_binlog(config, table, low, high) == snapshot
        if expected is not None:
            members = [json.loads(snapshot[n])["v"] for n in range(len(literals))]
            assert members == expected


UNREAD = {
    "uuid": ("UUID", "UUID()"),
    "inet6": ("INET6", "'::1'"),
    "inet4": ("INET4", "'1.2.3.4'"),
    "point": ("POINT", "POINT(1, 2)"),
    "bit": ("BIT(20)", "b'1'"),
    "decimal": ("DECIMAL(30,10)", "-1.5"),
    "long_blob": ("LONGBLOB", "REPEAT('x', 70000)"),
    "time": ("TIME(3)", "'-10:00:00.5'"),
    "enum": ("ENUM('a','b')", "'b'"),
    "stored": ("INT AS (id + 1) STORED", "DEFAULT"),
    "virtual": ("INT AS (id + 1) VIRTUAL", "DEFAULT"),
    "invisible": ("INT INVISIBLE", "5"),
    "compressed": ("VARCHAR(99) COMPRESSED", "REPEAT('x', 90)"),
    "compressed_text": ("TEXT COMPRESSED", "REPEAT('x', 60000)"),
    "row_hash": ("TEXT UNIQUE", "UUID()"),
}


def test_columns_that_are_not_captured_do_not_disturb(mariadb):
    others = ", ".join(f"o_{name} {kind}" for name, (kind, _) in UNREAD.items())
    names = ", ".join(f"o_{name}" for name in UNREAD)
    literals = ", ".join(literal for _, literal in UNREAD.values())
    with new_schema(mariadb) as schema:
        run_sql(
            mariadb,
            f"CREATE TABLE t (id INT PRIMARY KEY, {others}, v VARCHAR(9))",
            schema=schema,
        )
        config = cdc_connection(mariadb, schema, "t")
        table = check_source(config, (Field("id", INT), Field("v", TEXT)), ("id",))
        low = take_high(config, 0)
        rows = f"(1, {literals}, 'a'), (2, {literals}, 'b')"
        run_sql(mariadb, f"INSERT INTO t (id, {names}, v) VALUES {rows}", schema=schema)
        assert from_binlog(config, table, low, take_high(config, 0)) == {
            1: '{"id":1,"v":"a"}',
            2: '{"id":2,"v":"b"}',
        }
