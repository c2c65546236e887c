"""Every column type of PostgreSQL, with values that have been trouble before."""

from tests.golden.columns import Column, Table, pairs, typed

_TEXT = "{}::text"
PREPARATION = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy, very')",
    "CREATE TYPE place AS (x INT, y TEXT)",
    "CREATE DOMAIN positive AS INT CHECK (VALUE > 0)",
)


def _column(name: str, kind: str, sql: str, *literals: str) -> Column:
    first, second, third, fourth = literals
    return Column(name, kind, sql, (first, second, third, fourth), _TEXT)


_ID = _column("id", "INT NOT NULL", "INT", *("0",) * 4)
_TYPES = (
    _ID,
    _column("c_smallint", "SMALLINT", "SMALLINT", "1", "-32768", "32767", "0"),
    _column("c_int", "INT", "INT", "1", "-2147483648", "2147483647", "0"),
    _column("c_bigint", "BIGINT", "BIGINT", "1", str(-(2**63)), str(2**63 - 1), "0"),
    _column("c_oid", "OID", "BIGINT", "1", "0", "4294967295", "17"),
    _column(
        "c_numeric",
        "NUMERIC(10,2)",
        "DECIMAL(10, 2)",
        "1.50",
        "-99999999.99",
        "99999999.99",
        "-0.01",
    ),
    _column(
        "c_numeric_wide",
        "NUMERIC(38,10)",
        "DECIMAL(38, 10)",
        "12.34",
        f"-{'9' * 28}.{'9' * 10}",
        f"{'9' * 28}.{'9' * 10}",
        "0.0000000001",
    ),
    _column(
        "c_numeric_whole", "NUMERIC(20)", "DECIMAL(20, 0)", "128", f"-{'9' * 20}", "9" * 20, "-128"
    ),
    _column(
        "c_numeric_any",
        "NUMERIC",
        "DECIMAL(38, 10)",
        "1.5",
        "-12345678901234567890.0123456789",
        "12345678901234567890",
        "0.000",
    ),
    _column("c_real", "REAL", "FLOAT", "1.5", "-3.4e38", "3.4e38", "1.1"),
    _column("c_double", "DOUBLE PRECISION", "DOUBLE", "1.5", "-1.7e308", "1.7e308", "5e-324"),
    _column(
        "c_money",
        "MONEY",
        "DECIMAL(19, 2)",
        "'1.50'",
        "'-92233720368547758.08'",
        "'92233720368547758.07'",
        "'0'",
    ),
    _column("c_boolean", "BOOLEAN", "BOOLEAN", "TRUE", "FALSE", "TRUE", "FALSE"),
    _column("c_bit1", "BIT(1)", "BOOLEAN", "B'1'", "B'0'", "B'1'", "B'0'"),
    _column(
        "c_bit17",
        "BIT(17)",
        "BINARY(3)",
        "B'00000000000000101'",
        "B'00000000000000000'",
        "B'11111111111111111'",
        "B'10000000000000000'",
    ),
    _column("c_varbit", "VARBIT(20)", "BYTES", "B'101'", "B''", f"B'{'1' * 20}'", "B'1'"),
    _column(
        "c_date", "DATE", "DATE", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'1969-12-31'"
    ),
    _column(
        "c_time",
        "TIME",
        "TIME(6)",
        "'10:11:12.131415'",
        "'00:00'",
        "'23:59:59.999999'",
        "'00:00:00.000001'",
    ),
    _column("c_time0", "TIME(0)", "TIME(0)", "'10:11:12'", "'00:00'", "'23:59:59'", "'00:00:01'"),
    _column(
        "c_time3",
        "TIME(3)",
        "TIME(3)",
        "'10:11:12.130'",
        "'00:00'",
        "'23:59:59.999'",
        "'00:00:00.001'",
    ),
    _column(
        "c_timetz",
        "TIMETZ",
        "STRING",
        "'10:11:12.131415+02'",
        "'00:00Z'",
        "'23:59:59-08'",
        "'01:00+02'",
    ),
    _column(
        "c_timestamp",
        "TIMESTAMP",
        "TIMESTAMP(6)",
        "'2024-02-29 10:11:12.131415'",
        "'1677-09-22 00:00:00'",
        "'2262-04-11 23:47:16.854775'",
        "'1969-12-31 23:59:59.999999'",
    ),
    _column(
        "c_timestamp0",
        "TIMESTAMP(0)",
        "TIMESTAMP(0)",
        "'2024-02-29 10:11:12'",
        "'1677-09-22 00:00:00'",
        "'2262-04-11 23:47:16'",
        "'1969-12-31 23:59:59'",
    ),
    _column(
        "c_timestamp3",
        "TIMESTAMP(3)",
        "TIMESTAMP(3)",
        "'2024-02-29 10:11:12.130'",
        "'1677-09-22 00:00:00'",
        "'2262-04-11 23:47:16.854'",
        "'1969-12-31 23:59:59.999'",
    ),
    _column(
        "c_timestamptz",
        "TIMESTAMPTZ",
        "TIMESTAMP_LTZ(6)",
        "'2024-02-29 10:11:12.131415+01'",
        "'0001-01-01 00:00:00Z'",
        "'9999-12-31 23:59:59.999999Z'",
        "'1969-12-31 23:59:59.999999Z'",
    ),
    _column(
        "c_timestamptz3",
        "TIMESTAMPTZ(3)",
        "TIMESTAMP_LTZ(3)",
        "'2024-02-29 10:11:12.130Z'",
        "'1000-01-01 00:00:00Z'",
        "'9999-12-31 23:59:59.999Z'",
        "'2000-01-01 00:00:00.1Z'",
    ),
    _column(
        "c_interval",
        "INTERVAL",
        "",
        "'1 year 2 mons 3 days 04:05:06.789'",
        "'-1 day'",
        "'100 years'",
        "'0'",
    ),
    _column("c_char", "CHAR(5)", "CHAR(5)", "'abc'", "''", "'zzzzz'", "'é€😀'"),
    _column(
        "c_varchar",
        "VARCHAR(20)",
        "VARCHAR(20)",
        "'abc'",
        "''",
        "repeat('z', 20)",
        "E'\"quoted\" \\\\ \\n end '",
    ),
    _column("c_text", "TEXT", "STRING", "'abc'", "''", "repeat('t', 300)", "'null'"),
    _column("c_bytea", "BYTEA", "BYTES", r"'\x0102'", r"'\x'", r"'\xffffffff'", r"'\xfbefbe'"),
    _column(
        "c_json", "JSON", "STRING", "'{\"a\": 1}'", "'[]'", '\'{"b": [1, null, "é"]}\'', "'null'"
    ),
    _column(
        "c_jsonb", "JSONB", "STRING", "'{\"a\": 1}'", "'[]'", '\'{"b": [1, null, "é"]}\'', "'null'"
    ),
    _column("c_xml", "XML", "STRING", "'<a>1</a>'", "'<a/>'", "'<a b=\"c\"/>'", "'<z/>'"),
    _column(
        "c_uuid",
        "UUID",
        "STRING",
        "'123e4567-e89b-12d3-a456-426614174000'",
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'00112233-4455-6677-8899-aabbccddeeff'",
    ),
    _column("c_enum", "mood", "STRING", "'sad'", "'ok'", "'happy, very'", "'ok'"),
    _column("c_domain", "positive", "INT", "1", "2", "2147483647", "3"),
    _column(
        "c_inet", "INET", "STRING", "'192.168.0.1'", "'0.0.0.0'", "'2001:db8::1'", "'10.0.0.0/8'"
    ),
    _column(
        "c_cidr",
        "CIDR",
        "STRING",
        "'192.168.0.0/16'",
        "'0.0.0.0/0'",
        "'2001:db8::/32'",
        "'10.0.0.0/8'",
    ),
    _column(
        "c_macaddr",
        "MACADDR",
        "STRING",
        "'08:00:2b:01:02:03'",
        "'00:00:00:00:00:00'",
        "'ff:ff:ff:ff:ff:ff'",
        "'08:00:2b:01:02:03'",
    ),
    _column(
        "c_macaddr8",
        "MACADDR8",
        "STRING",
        "'08:00:2b:01:02:03:04:05'",
        "'00:00:00:00:00:00:00:00'",
        "'ff:ff:ff:ff:ff:ff:ff:ff'",
        "'08:00:2b:01:02:03:04:05'",
    ),
    _column("c_point", "POINT", "", "'(1,2)'", "'(0,0)'", "'(-1.5,2.5)'", "'(1,1)'"),
    _column("c_int4range", "INT4RANGE", "STRING", "'[1,5)'", "'empty'", "'(,)'", "'[3,]'"),
    _column("c_numrange", "NUMRANGE", "STRING", "'[1.5,2.5)'", "'empty'", "'(,)'", "'[3,]'"),
    _column(
        "c_daterange",
        "DATERANGE",
        "STRING",
        "'[2024-01-01,2024-02-01)'",
        "'empty'",
        "'(,)'",
        "'[2024-01-01,]'",
    ),
    _column(
        "c_tsrange",
        "TSRANGE",
        "STRING",
        "'[2024-01-01 00:00,2024-02-01 00:00)'",
        "'empty'",
        "'(,)'",
        "'[2024-01-01 00:00,]'",
    ),
    _column(
        "c_int_array", "INT[]", "ARRAY<INT>", "'{1,2}'", "'{}'", "'{2147483647,NULL}'", "'{0}'"
    ),
    _column(
        "c_bigint_array",
        "BIGINT[]",
        "ARRAY<BIGINT>",
        "'{1,2}'",
        "'{}'",
        "'{9223372036854775807,NULL}'",
        "'{0}'",
    ),
    _column(
        "c_text_array", "TEXT[]", "ARRAY<STRING>", "'{a,b}'", "'{}'", "'{NULL,\"x,y\"}'", "'{\"\"}'"
    ),
    _column(
        "c_boolean_array", "BOOLEAN[]", "ARRAY<BOOLEAN>", "'{t,f}'", "'{}'", "'{NULL,t}'", "'{f}'"
    ),
    _column(
        "c_numeric_array",
        "NUMERIC(10,2)[]",
        "ARRAY<DECIMAL(10, 2)>",
        "'{1.50,2}'",
        "'{}'",
        "'{99999999.99,NULL}'",
        "'{-0.01}'",
    ),
    _column(
        "c_double_array",
        "DOUBLE PRECISION[]",
        "ARRAY<DOUBLE>",
        "'{1.5,2}'",
        "'{}'",
        "'{1.7e308,NULL}'",
        "'{-0.5}'",
    ),
    _column(
        "c_date_array",
        "DATE[]",
        "ARRAY<DATE>",
        "'{2024-02-29}'",
        "'{}'",
        "'{9999-12-31,NULL}'",
        "'{1969-12-31}'",
    ),
    _column(
        "c_timestamp_array",
        "TIMESTAMP[]",
        "ARRAY<TIMESTAMP(6)>",
        "'{2024-02-29 10:11:12.131415}'",
        "'{}'",
        "'{2262-04-11 23:47:16.854775,NULL}'",
        "'{1969-12-31 23:59:59.999999}'",
    ),
    _column(
        "c_timestamptz_array",
        "TIMESTAMPTZ[]",
        "ARRAY<TIMESTAMP_LTZ(6)>",
        "'{2024-02-29 10:11:12.131415+01}'",
        "'{}'",
        "'{2262-04-11 23:47:16.854775Z,NULL}'",
        "'{1969-12-31 23:59:59.999999Z}'",
    ),
    _column(
        "c_uuid_array",
        "UUID[]",
        "ARRAY<STRING>",
        "'{123e4567-e89b-12d3-a456-426614174000}'",
        "'{}'",
        "'{00000000-0000-0000-0000-000000000000,NULL}'",
        "'{00112233-4455-6677-8899-aabbccddeeff}'",
    ),
    _column("c_tsvector", "TSVECTOR", "STRING", "'a fat cat'", "''", "'z:1'", "'b'"),
    _column("c_composite", "place", "", "'(1,a)'", "'(0,)'", "'(2147483647,\"x,y\")'", "'(,)'"),
)
_EXTREMES = (
    _ID,
    _column("c_numeric", "NUMERIC(10,2)", "DECIMAL(10, 2)", "'NaN'", "1", "'NaN'", "2"),
    _column(
        "c_numeric_any", "NUMERIC", "DECIMAL(38, 10)", "'NaN'", "'-Infinity'", "'Infinity'", "1e-7"
    ),
    _column("c_real", "REAL", "FLOAT", "'NaN'", "'-Infinity'", "'Infinity'", "'-0'"),
    _column("c_double", "DOUBLE PRECISION", "DOUBLE", "'NaN'", "'-Infinity'", "'Infinity'", "'-0'"),
    _column(
        "c_date", "DATE", "DATE", "'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'"
    ),
    _column("c_time", "TIME", "TIME(6)", "'24:00:00'", "'00:00'", "'24:00:00'", "'00:00'"),
    _column(
        "c_timestamp",
        "TIMESTAMP",
        "TIMESTAMP(6)",
        "'infinity'",
        "'-infinity'",
        "'294276-12-31 23:59:59.999999'",
        "'4713-01-01 00:00:00 BC'",
    ),
    _column(
        "c_timestamptz",
        "TIMESTAMPTZ",
        "TIMESTAMP_LTZ(6)",
        "'infinity'",
        "'-infinity'",
        "'294276-12-31 23:59:59Z'",
        "'4713-01-02 00:00:00Z BC'",
    ),
    _column("c_nested_array", "INT[][]", "", "'{{1,2},{3,4}}'", "'{}'", "'{{1},{2}}'", "'{1}'"),
)
_TOAST = (
    _ID,
    _column("c_number", "INT", "INT", *("1",) * 4),
    _column("c_large", "TEXT", "STRING", *("''",) * 4),
    _column("c_large_bytes", "BYTEA", "BYTES", *("''",) * 4),
    _column("c_large_array", "TEXT[]", "ARRAY<STRING>", *("'{}'",) * 4),
    _column("c_large_json", "JSONB", "STRING", *("'{}'",) * 4),
)
_LARGE = (
    "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 120) AS n)",
    "(SELECT decode(string_agg(md5(n::text), ''), 'hex') FROM generate_series(1, 240) AS n)",
    "(SELECT array_agg(md5(n::text)) FROM generate_series(1, 120) AS n)",
    "(SELECT jsonb_agg(md5(n::text)) FROM generate_series(1, 120) AS n)",
)
TABLES: tuple[Table, ...] = (
    typed("types", _TYPES),
    typed("extremes", _EXTREMES),
    Table(
        "toast",
        _TOAST,
        "id",
        (f"1, 1, {', '.join(_LARGE)}", "2, 1, 'short', 'short', '{short}', '\"short\"'"),
        (
            "UPDATE toast SET c_number = 2 WHERE id = 1",  # the large values are not in the log
            "UPDATE toast SET c_number = 2 WHERE id = 2",
            "UPDATE toast SET c_large = 'short' WHERE id = 1",
            "DELETE FROM toast WHERE id = 1",
        ),
    ),
    Table(
        "toast_full",  # REPLICA IDENTITY FULL
        _TOAST,
        "id",
        (f"1, 1, {', '.join(_LARGE)}",),
        ("UPDATE toast_full SET c_number = 2 WHERE id = 1",),
    ),
    *pairs("shape", _ID, _column("label", "VARCHAR(20)", "VARCHAR(20)", *("''",) * 4)),
)
AFTERWARDS = (
    "ALTER TABLE toast_full REPLICA IDENTITY FULL",
    "ALTER TABLE toast ALTER COLUMN c_large SET STORAGE EXTERNAL",
    "ALTER TABLE shape_no_key REPLICA IDENTITY FULL",
    "ALTER TABLE extremes REPLICA IDENTITY FULL",
)
