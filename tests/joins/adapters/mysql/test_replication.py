"""A server whose binlog does not carry all changes of a table is refused, and followed hints help.

`tests/reliability foreign-servers` has many more servers.
"""

from dataclasses import replace

import pymysql
import pytest

from joins.adapters.mysql.connection import connected, rows
from joins.adapters.mysql.replication import check_logged, logs_cascades
from joins.adapters.mysql.source import check_source
from joins.adapters.mysql.table import advice
from joins.plan.errors import SnapshotNeededError, SourceError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.embedded.database import MariaDb
from service.embedded.server import DatabaseSettings
from tests.support.sql import cdc_connection, new_schema, run_sql

ID = Field("id", SqlType(TypeName.BIGINT))
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY)"


@pytest.fixture(scope="module")
def database_dir(tmp_path_factory):
    """One directory for all servers: a second start on it is quick."""
    return tmp_path_factory.mktemp("rules") / "db"


@pytest.fixture
def refused(database_dir, database_home):
    """Starts a server with options and gives why it is refused; its statements come first."""

    def start(options, *statements, table="t", schema=None):
        with (
            MariaDb(database_dir, database_home, DatabaseSettings(options=options)) as database,
            new_schema(database, TABLE) as own,
        ):
            run_sql(database, *statements)
            try:
                with pytest.raises(SourceError) as caught:
                    check_source(cdc_connection(database, schema or own, table), (ID,), ("id",))
            finally:
                run_sql(database, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL gtid_slave_pos=''")
        return caught.value

    return start


@pytest.mark.parametrize("option", ["binlog-do-db", "binlog-ignore-db"])
@pytest.mark.parametrize("name", ["shop", "other"])
def test_a_filter_is_refused_whatever_it_names(refused, option, name):
    error = refused({option: name})
    assert f'{option} is "{name}"' in error.message
    assert f"without --{option}" in error.hint


NOWHERE = "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='nobody'"


def test_a_replica_that_does_not_log_what_it_replicates_is_refused(refused):
    error = refused({}, NOWHERE, "START SLAVE SQL_THREAD")
    assert "is a replica that does not log" in error.message
    assert "--log-slave-updates" in error.hint


def test_a_server_that_may_be_a_replica_asks_for_the_right_to_see_it(refused):
    error = refused({}, "SET GLOBAL gtid_slave_pos='0-7-1'")
    assert "may not see whether it still is" in error.message
    assert "GRANT SLAVE MONITOR" in error.hint


def test_names_that_the_server_folds_are_told(refused):
    error = refused({"lower-case-table-names": "1"}, table="T")
    assert 'other names in the binlog: "' in error.message
    assert "'table-name' = 't'" in error.hint


def test_triggers_that_only_a_replica_runs_are_logged(refused):
    error = refused({"slave-run-triggers-for-rbr": "YES"})
    assert '"slave_run_triggers_for_rbr" = YES, expected NO, LOGGING or ENFORCE' in error.message
    assert "slave_run_triggers_for_rbr=LOGGING" in error.hint


def engines(database):
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT <> 'NO'")
        return [name for (name,) in cursor.fetchall()]


def refusal(database, schema):
    try:
        check_source(cdc_connection(database, schema), (ID,), ("id",))
    except SourceError as error:
        return error.message
    return None


def test_of_all_engines_of_a_server_only_those_that_log_all_changes_are_taken(mariadb):
    taken, refused = set(), set()
    for engine in engines(mariadb):
        with new_schema(mariadb) as schema:
            options = " UNION=(u)" if engine == "MRG_MyISAM" else ""
            try:
                run_sql(mariadb, f"CREATE TABLE {schema}.u (id BIGINT PRIMARY KEY) ENGINE=MyISAM")
                run_sql(
                    mariadb,
                    f"CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY) ENGINE={engine}"
                    + options.replace("(u)", f"({schema}.u)"),
                )
            except pymysql.MySQLError:
                continue  # it holds no tables of ours
            why = refusal(mariadb, schema)
            if why is None:
                taken.add(engine)
                continue
            assert f"has engine {engine}" in why
            refused.add(engine)
            run_sql(mariadb, f"ALTER TABLE {schema}.t ENGINE=InnoDB")  # as the hint says
            assert refusal(mariadb, schema) is None
    assert taken == {"InnoDB", "MyISAM", "Aria"}
    assert {"MEMORY", "MRG_MyISAM"} <= refused


def test_what_becomes_true_while_a_table_is_followed_means_another_copy(mariadb):
    with new_schema(mariadb, TABLE) as schema:
        check_logged(cdc_connection(mariadb, schema))
        run_sql(mariadb, f"ALTER TABLE {schema}.t ENGINE=MEMORY")
        with pytest.raises(SnapshotNeededError, match="has engine MEMORY") as caught:
            check_logged(cdc_connection(mariadb, schema))
        assert caught.value.hint.endswith("The table is then copied again by itself.")


def test_a_server_that_refuses_the_user_meanwhile_means_no_copy(mariadb):
    """A password that was changed is no reason to copy a table, which the next session follows."""
    with new_schema(mariadb, TABLE) as schema:
        with pytest.raises(SourceError, match="refused user") as caught:
            check_logged(replace(cdc_connection(mariadb, schema), password="changed"))
        assert caught.type is SourceError


CASCADE = (
    "CREATE TABLE p (id BIGINT PRIMARY KEY)",
    "CREATE TABLE t (id BIGINT PRIMARY KEY, p BIGINT, FOREIGN KEY (p) REFERENCES p(id)"
    " ON DELETE CASCADE)",
)


def test_a_cascade_is_found_however_the_server_quotes_names(own_database):
    with new_schema(own_database, *CASCADE) as schema:
        run_sql(own_database, "SET GLOBAL sql_quote_show_create=0")
        try:
            with pytest.raises(SourceError, match="ON DELETE CASCADE"):
                check_source(cdc_connection(own_database, schema), (ID,), ("id",))
        finally:
            run_sql(own_database, "SET GLOBAL sql_quote_show_create=1")
        run_sql(
            own_database,
            f"ALTER TABLE {schema}.t DROP FOREIGN KEY t_ibfk_1,"
            f" ADD FOREIGN KEY (p) REFERENCES {schema}.p(id) ON DELETE RESTRICT",
        )
        check_source(cdc_connection(own_database, schema), (ID,), ("id",))


@pytest.mark.parametrize(
    ("settings", "logs"),
    [
        ({"version": "9.6.0"}, True),
        ({"version": "9.6.0", "innodb_native_foreign_keys": "OFF"}, True),
        ({"version": "10.0.1-debug"}, True),
        ({"version": "9.6.0", "innodb_native_foreign_keys": "ON"}, False),
        ({"version": "9.5.2"}, False),
        ({"version": "8.4.7"}, False),
        ({"version": "11.4.5-MariaDB-log"}, False),
        ({"version": "unknown"}, False),
    ],
)
def test_foreign_keys_are_logged_by_mysql_from_9_6_on(settings, logs):
    assert logs_cascades(settings) is logs


SESSION = {
    "sql_select_limit": ("1", "DEFAULT"),
    "system_versioning_asof": ("'2020-01-01 00:00:00'", "DEFAULT"),
    "max_statement_time": ("0.5", "0"),
    "sql_quote_show_create": ("0", "1"),
    "transaction_isolation": ("'READ-UNCOMMITTED'", "'REPEATABLE-READ'"),
    "sql_mode": ("'ANSI_QUOTES'", "DEFAULT"),
    "time_zone": ("'+05:00'", "'+00:00'"),
}


@pytest.mark.parametrize("name", SESSION)
def test_our_sessions_are_the_same_whatever_the_server_sets(own_database, name):
    other, usual = SESSION[name]
    config = cdc_connection(own_database, "mysql")
    question = f"SELECT @@session.{name}"
    with connected(config) as connection:
        before = rows(connection, question)
    run_sql(own_database, f"SET GLOBAL {name}={other}")
    try:
        with connected(config) as connection:
            assert rows(connection, question) == before
    finally:
        run_sql(own_database, f"SET GLOBAL {name}={usual}")


def test_a_key_by_collation_and_an_instant_without_zone_are_told_what_to_write(mariadb):
    table = (
        "CREATE TABLE t (k VARCHAR(9), b VARCHAR(9) COLLATE utf8mb4_bin, ts TIMESTAMP(3) NULL,"
        " d DATETIME, PRIMARY KEY (k, b))"
    )
    text, zoneless = SqlType(TypeName.STRING), SqlType(TypeName.TIMESTAMP, 3)
    zoned = SqlType(TypeName.TIMESTAMP_LTZ, 3)
    with new_schema(mariadb, table) as schema:
        config = cdc_connection(mariadb, schema)
        keys = (Field("k", text), Field("b", text))
        mine = (*keys, Field("ts", zoneless), Field("d", zoneless))
        instant, key = advice(check_source(config, mine, ("k", "b")))
        assert 'column "ts" is a timestamp(3)' in instant
        assert "Declare it TIMESTAMP_LTZ(3)" in instant
        assert 'key "k" by collation utf8mb4_' in key
        assert "COLLATE utf8mb4_bin" in key
        run_sql(mariadb, f"ALTER TABLE {schema}.t MODIFY k VARCHAR(9) COLLATE utf8mb4_bin")
        followed = (*keys, Field("ts", zoned))
        assert advice(check_source(config, followed, ("k", "b"))) == ()
