"""PostgreSQL as a source that is read by queries: what its values are, and what is refused."""

import datetime
from decimal import Decimal

import pytest

from joins.adapters.delta.source import captured_columns
from joins.adapters.mysql.connection import MysqlConnectionConfig
from joins.adapters.polled.feed import PolledSession
from joins.adapters.polled.postgres import check_table
from joins.kernels.changelog.envelope import decode
from joins.plan.errors import DefinitionError, SourceError, SourceUnavailableError
from joins.plan.plan import Field, MysqlTls, TlsMode
from joins.plan.types import SqlType, TypeName
from service.embedded.process import free_port
from tests.support.debezium import run_postgres
from tests.support.polled import postgres_table

ID = Field("id", SqlType(TypeName.BIGINT), nullable=False)
UTC = datetime.UTC
# type of the column, literal, declared type, value
VALUES = {
    "smallint": ("-32768", TypeName.SMALLINT, -32768),
    "int": ("2147483647", TypeName.BIGINT, 2147483647),
    "bigint": ("-9223372036854775808", TypeName.BIGINT, -(2**63)),
    "numeric(12,3)": ("-12345.678", (TypeName.DECIMAL, 12, 3), Decimal("-12345.678")),
    "numeric": ("0.1", (TypeName.DECIMAL, 38, 18), Decimal("0.1").quantize(Decimal("1e-18"))),
    "real": ("0.1", TypeName.FLOAT, pytest.approx(0.1)),
    "double precision": ("1e300", TypeName.DOUBLE, 1e300),
    "boolean": ("true", TypeName.BOOLEAN, True),
    "text": ("E'a,\"b\"\\n\\\\é'", TypeName.STRING, 'a,"b"\n\\é'),
    "varchar(9)": ("''", TypeName.STRING, ""),
    "char(4)": ("'ab'", TypeName.STRING, "ab  "),
    "uuid": (
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        TypeName.STRING,
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "jsonb": ("'{\"a\": [1]}'", TypeName.STRING, '{"a": [1]}'),
    "int[]": ("'{1,2}'", TypeName.STRING, "{1,2}"),
    "bytea": ("'\\x00ff'", TypeName.BYTES, b"\x00\xff"),
    "date": ("'1900-02-28'", TypeName.DATE, datetime.date(1900, 2, 28)),
    "time": ("'23:59:59.123456'", (TypeName.TIME, 6), 86399123456),
    "timestamp": (
        "'2026-03-29 02:30:00.5'",
        (TypeName.TIMESTAMP, 6),
        datetime.datetime(2026, 3, 29, 2, 30, 0, 500000),  # noqa: DTZ001
    ),
    "timestamptz": (
        "'2026-03-29 02:30:00+05:30'",
        (TypeName.TIMESTAMP_LTZ, 6),
        datetime.datetime(2026, 3, 28, 21, 0, tzinfo=UTC),
    ),
}


def sql_type(declared):
    return SqlType(*declared) if isinstance(declared, tuple) else SqlType(declared)


def copied(one, fields):
    """The declared values of the table's rows by key, as the build side decodes them."""
    one.sent(PolledSession(one.config(fields), one.told))
    decoded = decode(one.topic.topic.batch(), captured_columns(fields), topic="t").batch
    return {row["id"]: row for row in decoded.to_pylist() if row["_op"] != "w"}


def test_values_of_each_type_are_those_of_the_database(postgres, tmp_path):
    columns = [f"c{number}" for number in range(len(VALUES))]
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(columns, VALUES, strict=True))
    given = ", ".join(literal for literal, _, _ in VALUES.values())
    fields = (
        ID,
        *(Field(n, sql_type(t)) for n, (_, t, _) in zip(columns, VALUES.values(), strict=True)),
    )
    statements = (
        f"CREATE TABLE t (id bigint PRIMARY KEY, {declared})",
        f"INSERT INTO t VALUES (1, {given})",
        "INSERT INTO t (id) VALUES (2)",
    )
    with postgres_table(postgres, tmp_path, *statements) as one:
        run_postgres(postgres, "ALTER ROLE cdc SET datestyle = 'SQL, DMY'")
        try:
            rows = copied(one, fields)
        finally:
            run_postgres(postgres, "ALTER ROLE cdc RESET datestyle")
    expected = {name: value for name, (_, _, value) in zip(columns, VALUES.values(), strict=True)}
    assert {name: rows[1][name] for name in columns} == expected
    assert {rows[2][name] for name in columns} == {None}


WRONG = {
    "there is no such table": ("SELECT 1", (ID,), "does not exist", "schema.table"),
    "no such column": (
        "CREATE TABLE t (id bigint PRIMARY KEY, nmae text)",
        (ID, Field("name", SqlType(TypeName.STRING))),
        'has no column "name"',
        'Did you mean "nmae"',
    ),
    "another type": (
        "CREATE TABLE t (id bigint PRIMARY KEY, name text)",
        (ID, Field("name", SqlType(TypeName.INT))),
        "is text, declared INT",
        "Declare the column as STRING",
    ),
    "a narrower type": (
        "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)",
        (ID, Field("n", SqlType(TypeName.INT))),
        "is bigint, declared INT",
        "Declare the column as BIGINT",
    ),
    "no key": ("CREATE TABLE t (id bigint)", (ID,), "no primary key", "Add a primary key"),
    "another key": (
        "CREATE TABLE t (id bigint, n int, PRIMARY KEY (id, n))",
        (ID,),
        "has key (id, n), declared (id)",
        "PRIMARY KEY (id, n) NOT ENFORCED",
    ),
    "a unique index of some rows": (
        "CREATE TABLE t (id bigint); CREATE UNIQUE INDEX ON t (id) WHERE id > 0",
        (ID,),
        "no primary key",
        "Add a primary key",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_named_with_what_would(case, postgres, tmp_path):
    statements, fields, message, hint = WRONG[case]
    with postgres_table(postgres, tmp_path, *statements.split(";")) as one:
        with pytest.raises(SourceError) as caught:
            check_table(one.connection, fields, ("id",))
        assert message in caught.value.message
        assert hint in caught.value.hint


FITTING = {
    "a unique index": "CREATE TABLE t (id bigint NOT NULL UNIQUE)",
    "a view": "CREATE VIEW t AS SELECT 1::bigint AS id",
    "partitions": "CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY HASH (id)",
    "another case": 'CREATE TABLE T ("id" bigint PRIMARY KEY)',
}


@pytest.mark.parametrize("case", FITTING)
def test_whatever_has_rows_with_a_key_is_accepted(case, postgres, tmp_path):
    with postgres_table(postgres, tmp_path, FITTING[case]) as one:
        assert check_table(one.connection, (ID,), ("id",)).name == "t"


def of(postgres, **changes):
    given = {
        "hostname": "127.0.0.1",
        "port": postgres.port,
        "username": "cdc",
        "password": postgres.cdc_password,
        "database": "postgres",
        "table": "pg_class",
    }
    return MysqlConnectionConfig(**{**given, **changes})


def test_a_server_that_refuses_or_is_not_there_is_told_apart(postgres):
    with pytest.raises(SourceUnavailableError, match="cannot be reached"):
        check_table(of(postgres, port=free_port()), (ID,), ("id",))
    for changes, message in (
        ({"password": "wrong"}, "refused user"),
        ({"database": "nowhere"}, "answered error 3D000"),
        ({"tls": MysqlTls(TlsMode.REQUIRED)}, "does not offer TLS"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            check_table(of(postgres, **changes), (ID,), ("id",))
        assert not isinstance(caught.value, SourceUnavailableError)


def test_a_user_without_select_is_told_the_grant(postgres, tmp_path):
    run_postgres(postgres, "DROP ROLE IF EXISTS blind", "CREATE ROLE blind LOGIN PASSWORD 'b'")
    with postgres_table(postgres, tmp_path, "CREATE TABLE t (id bigint PRIMARY KEY)") as one:
        schema = one.connection.table.partition(".")[0]
        run_postgres(postgres, f"GRANT USAGE ON SCHEMA {schema} TO blind")
        config = of(postgres, username="blind", password="b", table=one.connection.table)
        with pytest.raises(SourceError, match="may not read") as caught:
            check_table(config, (ID,), ("id",))
        assert "GRANT SELECT ON" in caught.value.hint


def test_a_password_is_never_sent_in_plain_text(own_postgres):
    hba = next(own_postgres.log.parent.rglob("pg_hba.conf"))
    ways = (("postgres", "scram-sha-256"), ("cdc", "password"))
    hba.write_text("".join(f"host all {user} 127.0.0.1/32 {way}\n" for user, way in ways))
    run_postgres(own_postgres, "SELECT pg_reload_conf()")

    with pytest.raises(SourceError, match="asks for the password itself, over a plain"):
        check_table(of(own_postgres), (ID,), ("id",))


@pytest.mark.parametrize(
    ("kind", "literal", "declared"),
    [
        ("timestamp", "'infinity'", (TypeName.TIMESTAMP, 3)),
        ("date", "'0044-03-15 BC'", TypeName.DATE),
        ("numeric", "'NaN'", (TypeName.DECIMAL, 10, 2)),
        ("numeric", "1.234", (TypeName.DECIMAL, 10, 2)),
        ("float8", "'-Infinity'", TypeName.DOUBLE),
        ("real", "'NaN'", TypeName.FLOAT),
    ],
)
def test_a_value_that_the_declared_type_lacks_stalls(kind, literal, declared, postgres, tmp_path):
    statements = (
        f"CREATE TABLE t (id bigint PRIMARY KEY, v {kind})",
        f"INSERT INTO t VALUES (1, {literal})",
    )
    with postgres_table(postgres, tmp_path, *statements) as one:
        session = PolledSession(one.config((ID, Field("v", sql_type(declared)))), one.told)
        with pytest.raises(DefinitionError, match='a value of column "v" is no'):
            session.read(one.topic)


def test_a_null_in_a_column_that_is_declared_not_null_stalls(postgres, tmp_path):
    table = "CREATE TABLE t (id bigint PRIMARY KEY, v int)"
    with postgres_table(postgres, tmp_path, table, "INSERT INTO t VALUES (1, NULL)") as one:
        fields = (ID, Field("v", SqlType(TypeName.INT), nullable=False))
        with pytest.raises(DefinitionError, match="has a NULL, declared NOT NULL"):
            PolledSession(one.config(fields), one.told).read(one.topic)
