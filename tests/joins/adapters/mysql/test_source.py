"""What is wrong with a source is found before anything starts, by name and with a fix."""

import re
from dataclasses import replace

import pytest

from joins.adapters.mysql.source import check_source, choose_server_id, computed_from, estimate_rows
from joins.adapters.mysql.table import CapturedTable
from joins.durable.codec import as_json, from_json
from joins.plan.errors import SourceError, SourceUnavailableError
from joins.plan.plan import Field, MetadataField
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from service.embedded.process import free_port
from service.embedded.server import DatabaseSettings
from tests.support.sql import cdc_connection, new_schema, run_sql

BIG, INT, TEXT, BOOL = (SqlType(TypeName(n)) for n in ("BIGINT", "INT", "STRING", "BOOLEAN"))
ID, NAME = Field("id", BIG), Field("name", TEXT)


def test_table_that_fits_is_described(mariadb):
    table = "CREATE TABLE t (Id BIGINT, name VARCHAR(9), more BLOB, k INT, PRIMARY KEY (k, Id))"
    with new_schema(mariadb, table, "INSERT INTO t VALUES (1, 'a', NULL, 2)") as schema:
        config = cdc_connection(mariadb, schema)
        fields = (NAME, ID, Field("k", BIG))
        found = check_source(config, fields, ("id", "k"), server_id=choose_server_id(config))
        assert [column.name for column in found.captured] == ["name", "id", "k"]
        assert found.primary_key == ("k", "id")
        assert [column.server.name for column in found.key_columns] == ["k", "Id"]
        assert from_json(CapturedTable, as_json(found)) == found
        assert estimate_rows(config) in (0, 1)


# statements, declared fields and key, what the message says, what the hint says
WRONG_TABLES = {
    "no_primary_key": (["CREATE TABLE t (id BIGINT)"], (ID,), ("id",), "no primary key", "Add a"),
    "prefix_key": (
        ["CREATE TABLE t (id BLOB, PRIMARY KEY (id(9)))"],
        (Field("id", SqlType(TypeName.BYTES)),),
        ("id",),
        "first characters",
        "whole columns",
    ),
    "another_key": (
        ["CREATE TABLE t (id BIGINT, name VARCHAR(9), PRIMARY KEY (id, name))"],
        (ID, NAME),
        ("id",),
        "primary key (id, name), declared (id)",
        "PRIMARY KEY (id, name) NOT ENFORCED",
    ),
    "float_key": (
        ["CREATE TABLE t (id FLOAT PRIMARY KEY)"],
        (Field("id", SqlType(TypeName.FLOAT)),),
        ("id",),
        'FLOAT column "id"',
        "exact type",
    ),
    "no_table": ([], (ID,), ("id",), "does not exist", "table-name"),
    "a_view": (["CREATE VIEW t AS SELECT 1 AS id"], (ID,), ("id",), "is a view", "table-name"),
    "missing_column": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, title INT)"],
        (ID, NAME),
        ("id",),
        'no column "name"',
        '"title"',
    ),
    "misspelt_column": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, nam VARCHAR(9))"],
        (ID, NAME),
        ("id",),
        'no column "name"',
        'Did you mean "nam"?',
    ),
    "wrong_type": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, name DATETIME)"],
        (ID, NAME),
        ("id",),
        'column "name" is datetime, declared STRING, expected TIMESTAMP',
        "declared types",
    ),
    "too_narrow": (
        ["CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, n INT UNSIGNED)"],
        (ID, Field("n", INT)),
        ("id",),
        "expected DECIMAL(20, 0)",
        "declared types",
    ),
    "boolean_over_int": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)"],
        (ID, Field("n", BOOL)),
        ("id",),
        "declared BOOLEAN, expected INT",
        "declared types",
    ),
    "compressed_column": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, x VARCHAR(99) COMPRESSED)"],
        (ID, Field("x", TEXT)),
        ("id",),
        'column "x" is varchar(99) /*M!100301 COMPRESSED*/, which cannot be captured',
        "declared types",
    ),
    "geometry": (
        ["CREATE TABLE t (id BIGINT PRIMARY KEY, p POINT)"],
        (ID, Field("p", TEXT)),
        ("id",),
        "cannot be captured",
        "declared types",
    ),
}


@pytest.mark.parametrize("case", WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_table_that_does_not_do_is_refused(mariadb, case):
    statements, fields, key, message, hint = case
    with new_schema(mariadb, *statements) as schema:
        with pytest.raises(SourceError) as caught:
            check_source(cdc_connection(mariadb, schema), fields, key)
        assert message in caught.value.message
        assert hint in caught.value.hint
        assert not isinstance(caught.value, SourceUnavailableError)


def test_a_column_in_a_format_that_does_not_tell_its_length_is_refused(database_dir, database_home):
    settings = DatabaseSettings(options={"mysql56-temporal-format": "OFF"})
    table = "CREATE TABLE t (id BIGINT PRIMARY KEY, ts TIMESTAMP(1) NULL, name TEXT)"
    with (
        MariaDb(database_dir, database_home, settings) as database,
        new_schema(database, table) as schema,
    ):
        config = cdc_connection(database, schema)
        with pytest.raises(SourceError, match=r'column "ts" of type timestamp\(1\)') as caught:
            check_source(config, (ID, NAME), ("id",))
        for statement in re.findall(r"(?:SET|ALTER) [^,.]+(?:\.t \w+)?", caught.value.hint):
            run_sql(database, statement)
        assert check_source(config, (ID, NAME), ("id",)).primary_key == ("id",)


def test_columns_are_computed_from_others_by_way_of_others():
    expressions = {"id": "", "o": "", "a": "`o` * 2", "b": "round(`A`,0)", "c": "'o"}
    assert computed_from(expressions) == {
        "id": (),
        "o": (),
        "a": ("o",),
        "b": ("a", "o"),
        "c": ("a", "b", "c", "id", "o"),
    }


def test_wrong_password_is_refused_without_showing_it(mariadb):
    config = cdc_connection(mariadb, "shop", password="not-the-secret")
    with pytest.raises(SourceError, match="refused user") as caught:
        check_source(config, (ID,), ("id",))
    assert "not-the-secret" not in caught.value.message + caught.value.hint + repr(config)
    assert not isinstance(caught.value, SourceUnavailableError)


def test_missing_database_is_named(mariadb):
    with pytest.raises(SourceError, match='database "nowhere"'):
        check_source(cdc_connection(mariadb, "nowhere"), (ID,), ("id",))


def test_a_misspelt_database_or_table_is_told_the_one_that_is_there(mariadb):
    with new_schema(mariadb, "CREATE TABLE user_info (id BIGINT PRIMARY KEY)") as schema:
        right = cdc_connection(mariadb, schema, table="user_info")
        for what, misspelt in (("database", f"{schema}x"), ("table", "user_inof")):
            with pytest.raises(SourceError) as caught:
                check_source(replace(right, **{what: misspelt}), (ID,), ("id",))
            assert caught.value.hint == f'Did you mean "{getattr(right, what)}"?'
            assert f'user "{right.username}" may not ' in caught.value.message
        check_source(right, (ID,), ("id",))


def test_a_changed_password_is_told_how_it_reaches_a_job(mariadb):
    with pytest.raises(SourceError) as caught:
        check_source(cdc_connection(mariadb, "shop", password="old"), (ID,), ("id",))
    for step in ("remove the job", "submit its script with the new one"):
        assert step in caught.value.hint


def test_server_that_is_down_is_unavailable(mariadb):
    config = cdc_connection(mariadb, "shop", port=free_port())
    with pytest.raises(SourceUnavailableError, match="cannot be reached"):
        check_source(config, (ID,), ("id",))


def test_server_id_of_the_server_itself_is_in_use(mariadb):
    with (
        new_schema(mariadb, "CREATE TABLE t (id BIGINT PRIMARY KEY)") as schema,
        pytest.raises(SourceError, match="server id 1 is in use"),
    ):
        check_source(cdc_connection(mariadb, schema), (ID,), ("id",), server_id=1)


GRANTS = {
    "no_select": (["REPLICATION SLAVE", "BINLOG MONITOR"], "shop_other.*", "database"),
    "no_binlog_monitor": (["SELECT", "REPLICATION SLAVE"], "*.*", "lacks BINLOG MONITOR"),
    "no_replication": (["SELECT", "BINLOG MONITOR"], "*.*", "lacks REPLICATION SLAVE"),
}


@pytest.mark.parametrize(("grants", "target", "message"), GRANTS.values(), ids=GRANTS)
def test_missing_grant_is_named(mariadb, grants, target, message):
    with new_schema(mariadb, "CREATE TABLE t (id BIGINT PRIMARY KEY)") as schema:
        user = f"u_{schema}"[:60]
        run_sql(mariadb, f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'pw'")
        for grant in grants:
            place = "*.*" if grant != "SELECT" else target
            run_sql(mariadb, f"GRANT {grant} ON {place} TO {user}@'127.0.0.1'")
        try:
            with pytest.raises(SourceError, match=message) as caught:
                check_source(
                    cdc_connection(mariadb, schema, username=user, password="pw"), (ID,), ("id",)
                )
            assert "grant" in caught.value.hint.lower()
        finally:
            run_sql(mariadb, f"DROP USER {user}@'127.0.0.1'")


def test_the_check_needs_one_connection(mariadb):
    """A creation waits for it, and each connection is a handshake with TLS."""
    with new_schema(mariadb, "CREATE TABLE t (id BIGINT PRIMARY KEY)") as schema:
        user = f"u_{schema}"[:60]
        grants = "SELECT, REPLICATION SLAVE, BINLOG MONITOR"
        create = f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'pw' WITH MAX_CONNECTIONS_PER_HOUR"
        run_sql(mariadb, f"{create} 1", f"GRANT {grants} ON *.* TO {user}@'127.0.0.1'")
        config = cdc_connection(mariadb, schema, username=user, password="pw")
        try:
            check_source(config, (ID,), ("id",), server_id=4_000_000_000)
            with pytest.raises(SourceError, match="max_connections_per_hour"):
                check_source(config, (ID,), ("id",))
        finally:
            run_sql(mariadb, f"DROP USER {user}@'127.0.0.1'")


SETTINGS = {
    "binlog_off": ({"skip-log-bin": None}, '"log_bin" = OFF, expected ON'),
    "statement_format": (
        {"binlog-format": "STATEMENT"},
        '"binlog_format" = STATEMENT, expected ROW',
    ),
    "minimal_image": (
        {"binlog-row-image": "MINIMAL"},
        '"binlog_row_image" = MINIMAL, expected FULL',
    ),
    "no_metadata": (
        {"binlog-row-metadata": "NO_LOG"},
        '"binlog_row_metadata" = NO_LOG, expected FULL',
    ),
}


@pytest.fixture(scope="module")
def database_dir(tmp_path_factory):
    """One directory for all settings: a second start on it is quick."""
    return tmp_path_factory.mktemp("settings") / "db"


@pytest.mark.parametrize(("options", "message"), SETTINGS.values(), ids=SETTINGS)
def test_setting_that_hides_changes_is_refused(database_dir, database_home, options, message):
    settings = DatabaseSettings(options=options)
    with (
        MariaDb(database_dir, database_home, settings) as database,
        new_schema(database, "CREATE TABLE t (id BIGINT PRIMARY KEY)") as schema,
        pytest.raises(SourceError) as caught,
    ):
        check_source(cdc_connection(database, schema), (ID,), ("id",))
    assert message in caught.value.message
    assert caught.value.hint


UNLIKE = {
    "type": ("(id BIGINT PRIMARY KEY, v DATE)", ("t_2", "expected")),
    "kind": ("(id BIGINT PRIMARY KEY, v INT)", ("t_2 has v int", "t_1 has v varchar(50)")),
    "key": ("(id BIGINT, v VARCHAR(9), PRIMARY KEY (v))", ("t_2", "primary key")),
    "no_key": ("(id BIGINT, v VARCHAR(9))", ("t_2", "no primary key")),
    "column": ("(id BIGINT PRIMARY KEY, w VARCHAR(9))", ("t_2", '"v"')),
    "engine": ("(id BIGINT PRIMARY KEY, v VARCHAR(9)) ENGINE=MEMORY", ("t_2", "MEMORY")),
}


@pytest.mark.parametrize(("columns", "parts"), UNLIKE.values(), ids=UNLIKE)
def test_tables_that_match_and_are_not_alike_are_refused_by_name(mariadb, columns, parts):
    with new_schema(mariadb, "CREATE TABLE t_1 (id BIGINT PRIMARY KEY, v VARCHAR(50))") as schema:
        config = shards_of(mariadb, schema)
        assert len(check_source(config, SHARDED, ("t", "id")).shards) == 1
        run_sql(mariadb, f"CREATE TABLE t_2 {columns}", schema=schema)
        with pytest.raises(SourceError) as caught:
            check_source(config, SHARDED, ("t", "id"))
    message = caught.value.message.replace('"', "")
    assert all(part.replace('"', "") in message for part in parts), message


def test_tables_that_differ_in_what_makes_no_difference_are_one(mariadb):
    """Lengths, character sets, the order of columns, and columns that are not declared."""
    with new_schema(
        mariadb,
        "CREATE TABLE t_1 (id BIGINT PRIMARY KEY, v VARCHAR(50))",
        "CREATE TABLE t_2 (w INT, v CHAR(9) CHARACTER SET latin1, id INT PRIMARY KEY)",
    ) as schema:
        table = check_source(shards_of(mariadb, schema), SHARDED, ("t", "id"))
        assert [(part.table, part.primary_key) for part in table.parts] == [
            ("t_1", ("t", "id")),
            ("t_2", ("t", "id")),
        ]
        assert estimate_rows(shards_of(mariadb, schema)) in (0, 1, 2)


def test_no_table_that_matches(mariadb):
    with (
        new_schema(mariadb, "CREATE VIEW t_1 AS SELECT 1 AS id") as schema,
        pytest.raises(SourceError, match="no table of server"),
    ):
        check_source(shards_of(mariadb, schema), SHARDED, ("t", "id"))


SHARDED = (
    Field("t", SqlType(TypeName.STRING)),
    Field("id", SqlType(TypeName.BIGINT)),
    Field("v", SqlType(TypeName.STRING)),
)


def shards_of(mariadb, schema):
    name = MetadataField("t", "table_name", SqlType(TypeName.STRING))
    return cdc_connection(mariadb, schema, "t_[0-9]+", metadata=(name,))
