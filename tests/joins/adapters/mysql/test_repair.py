"""Rows that are sent again are those of the source at a position; later changes win."""

import json
from itertools import count

import pytest

from joins.adapters.mysql.position import take_high
from joins.adapters.mysql.repair import Repair, require_repairable
from joins.plan.errors import RepairError
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.beside import beside
from tests.support.cdc import CdcProcess, captured_table, newest, position_of, records_of
from tests.support.sql import run_sql

SILENT = "SET sql_log_bin = 0"
TEXT, BYTES = SqlType(TypeName.STRING), SqlType(TypeName.BYTES)
IDS = count(1)


@pytest.fixture(scope="module")
def mariadb(own_database):
    """Nobody else writes to its binlog."""
    return own_database


def key(value):
    return json.dumps({"id": value}, ensure_ascii=False)


def repair(keys=(), extra=()):
    return Repair(f"repair {next(IDS)}", tuple(map(key, keys)), tuple(map(key, extra)))


def following(process, config):
    process.high(take_high(config.connection, 0))
    process.wait_for("watermark")


def rows_of(mariadb, schema, column="id"):
    return dict(run_sql(mariadb, f"SELECT {column}, v FROM t", schema=schema))


def test_rows_without_a_binlog_are_sent_again(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        with CdcProcess(config) as process:
            following(process, config)
            run_sql(
                mariadb,
                "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
                SILENT,
                "UPDATE t SET v = 'silent' WHERE id = 1",
                "DELETE FROM t WHERE id = 2",
                "INSERT INTO t VALUES (5, 'new')",
                schema=schema,
            )
            answer = process.repair(repair([1, 5], [2, 4]))
            run_sql(mariadb, "UPDATE t SET v = 'later' WHERE id = 1", schema=schema)
            process.wait_for_position(take_high(config.connection, 0))
        records = records_of(config)
        assert (answer["written"], answer["deleted"]) == (3, 1), "row 4 is there: it is no extra"
        assert newest(records) == rows_of(mariadb, schema)
        again = [json.loads(r.value) for r in records if position_of(json.loads(r.value))[2] < -1]
        assert {value["op"] for value in again} == {"c", "d"}
        assert {position_of(value)[:2] for value in again} == {
            (answer["position"]["file"], answer["position"]["pos"])
        }


def test_a_second_repair_at_the_same_position_wins(mariadb, kafka, tmp_path):
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        with CdcProcess(config) as process:
            following(process, config)
            run_sql(mariadb, "INSERT INTO t VALUES (1, 'a')", schema=schema)
            places = []
            for text in ("first", "second"):
                silent = f"UPDATE t SET v = '{text}' WHERE id = 1"
                run_sql(mariadb, SILENT, silent, schema=schema)
                places.append(process.repair(repair([1]))["position"])
        assert places[0] == places[1]
        assert newest(records_of(config)) == {1: "second"}


def test_while_rows_change_what_is_sent_again_is_never_newer_than_the_change(
    mariadb, kafka, tmp_path
):
    """A writer changes all rows all the time; repairs between its changes alter nothing."""
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path) as (schema, config):
        run_sql(mariadb, "INSERT INTO t SELECT seq, 'x' FROM seq_1_to_20", schema=schema)

        def write(ends):
            with mariadb.connect(schema) as connection, connection.cursor() as cursor:
                for number in count():
                    if ends.is_set():
                        return
                    row = 1 + number % 20
                    cursor.execute(f"DELETE FROM t WHERE id = {row}")
                    cursor.execute(
                        f"INSERT INTO t VALUES ({1 + (number + 7) % 20}, 'n{number}') "
                        "ON DUPLICATE KEY UPDATE v = VALUES(v)"
                    )
                    connection.commit()
                    ends.wait(0.002)

        with CdcProcess(config) as process:
            following(process, config)
            with beside(write):
                answers = [process.repair(repair(range(1, 11), range(11, 21))) for _ in range(8)]
            process.wait_for_position(take_high(config.connection, 0))
        assert all("error" not in answer for answer in answers)
        assert newest(records_of(config)) == rows_of(mariadb, schema)


KEYS = {
    "texts": (TEXT, "VARCHAR(40)", ["it's", 'a \\ "b"', "naïve 😀", ""]),
    "texts_of_another_character_set": (TEXT, "VARCHAR(40) CHARACTER SET latin1", ["é", "x'"]),
    "bytes": (BYTES, "VARBINARY(20)", ["AAH/", "J1wn", ""]),
    "large_numbers": (SqlType(TypeName.BIGINT), "BIGINT", [-(2**63), 2**63 - 1, 0]),
}


@pytest.mark.parametrize("case", KEYS)
def test_keys_of_each_kind_are_read_exactly(mariadb, kafka, tmp_path, case):
    kind, sql, values = KEYS[case]
    columns = (Field("id", kind), Field("v", TEXT))
    table = f"CREATE TABLE t (id {sql} PRIMARY KEY, v VARCHAR(50))"
    servers = kafka.bootstrap_servers
    with captured_table(mariadb, servers, tmp_path, columns=columns, table=table) as (
        schema,
        config,
    ):
        with CdcProcess(config) as process:
            following(process, config)
            with mariadb.connect(schema) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE TABLE other (a INT)")
                cursor.execute(SILENT)
                row = "FROM_BASE64(%s)" if kind is BYTES else "%s"
                cursor.executemany(f"INSERT INTO t VALUES ({row}, 'new')", [(v,) for v in values])
                connection.commit()
            answer = process.repair(
                repair(values, [77 if kind.name is TypeName.BIGINT else "bm8="])
            )
        assert (answer["written"], answer["deleted"]) == (len(values), 1)
        assert newest(records_of(config)) == dict.fromkeys(values, "new")


REFUSED = {
    "nothing_was_written_since_the_copy": ([], "", "nothing was written"),
    "a_table_without_transactions": (["INSERT INTO t VALUES (1, 'a')"], "ENGINE=MyISAM", "no tran"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_repair_that_could_be_wrong_is_refused(mariadb, kafka, tmp_path, case):
    statements, engine, expected = REFUSED[case]
    table = f"CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR(50)) {engine}"
    with captured_table(mariadb, kafka.bootstrap_servers, tmp_path, table=table) as (
        schema,
        config,
    ):
        with CdcProcess(config) as process:
            following(process, config)
            if statements:
                run_sql(mariadb, *statements, schema=schema)
            error = process.repair(repair([1]))["error"]
        assert error["type"] == "repair"
        assert expected in error["message"]


def test_keys_that_json_has_in_another_form_are_refused(mariadb, kafka, tmp_path):
    columns = (Field("id", SqlType(TypeName.DATE)), Field("v", TEXT))
    table = "CREATE TABLE t (id DATE PRIMARY KEY, v VARCHAR(50))"
    servers = kafka.bootstrap_servers
    with (
        captured_table(mariadb, servers, tmp_path, columns=columns, table=table) as (_, config),
        pytest.raises(RepairError, match='"id" is a date'),
    ):
        require_repairable(config.table)
