"""What MySQL writes into its log that MariaDB does not, on a real server."""

import json
from itertools import groupby
from random import Random

import pytest

from joins.adapters.mysql.position import take_high
from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from service.embedded.server import DatabaseSettings
from tests.support.binary_json import member
from tests.support.cdc import PARTITIONS, CdcProcess, captured_table, position_of, records_of
from tests.support.copies import copy_of
from tests.support.mysql import MySql, mysql_home
from tests.support.sql import run_sql

pytestmark = pytest.mark.experiment
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
GTIDS = {"gtid-mode": "ON", "enforce-gtid-consistency": "ON"}
PARTS = {"binlog-row-value-options": "PARTIAL_JSON"}
OPTIONS = ("", "PARTIAL_JSON", "PARTIAL_JSON")
COMPRESSED = "SET SESSION binlog_transaction_compression = ON"
WITH_JSON = "CREATE TABLE t (id BIGINT PRIMARY KEY, v JSON)"


@pytest.fixture(scope="module")
def mysql(tmp_path_factory):
    directory = tmp_path_factory.mktemp("mysql")
    with MySql(directory, mysql_home(), DatabaseSettings(options=GTIDS | PARTS)) as server:
        yield server


FOLLOWED = {
    "rows of one statement": (
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET v = 'c' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    ),
    "a compressed transaction": (
        COMPRESSED,
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "UPDATE t SET v = UPPER(v)",
        "DELETE FROM t WHERE id = 2",
    ),
    "a compressed transaction of many rows": (
        COMPRESSED,
        "SET SESSION cte_max_recursion_depth = 100000",
        f"INSERT INTO t {NUMBERS.format(20_000)} SELECT i, CONCAT('row ', i) FROM n",
        "UPDATE t SET v = REVERSE(v) WHERE id % 3 = 0",
    ),
    "several transactions of several tables": (
        COMPRESSED,
        "CREATE TABLE u LIKE t",
        "START TRANSACTION",
        "INSERT INTO u VALUES (1, 'x')",
        "INSERT INTO t VALUES (1, 'x')",
        "INSERT INTO u VALUES (2, 'y')",
        "COMMIT",
        "SET SESSION binlog_transaction_compression = OFF",
        "INSERT INTO t SELECT id + 10, v FROM u",
        "START TRANSACTION",
        "INSERT INTO t VALUES (99, 'rolled back')",
        "ROLLBACK",
    ),
    "the text of statements in the log": (
        "SET SESSION binlog_rows_query_log_events = ON",
        "INSERT INTO t VALUES (1, 'INSERT INTO t VALUES (2)')",
    ),
    "a transaction with a tag": (
        "SET SESSION gtid_next = 'AUTOMATIC:sluice'",
        "INSERT INTO t VALUES (1, 'tagged')",
        "SET SESSION gtid_next = 'AUTOMATIC'",
        "INSERT INTO t VALUES (2, 'without')",
    ),
    "a column that is added in an instant": (
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TABLE t ADD COLUMN extra INT DEFAULT 7, ALGORITHM=INSTANT",
        "INSERT INTO t (id, v) VALUES (2, 'b')",
        "UPDATE t SET v = 'c' WHERE id = 1",
        "ALTER TABLE t DROP COLUMN extra, ALGORITHM=INSTANT",
        "INSERT INTO t VALUES (3, 'd')",
    ),
    "an invisible column and an expression's index": (
        "ALTER TABLE t ADD COLUMN h INT DEFAULT 1 INVISIBLE",
        "CREATE INDEX up ON t ((UPPER(v)))",
        "INSERT INTO t VALUES (1, 'a')",
        "UPDATE t SET h = 2",
    ),
    "other tables, users and views": (
        "CREATE TABLE u (a INT PRIMARY KEY) ENCRYPTION='N'",
        "CREATE VIEW w AS SELECT * FROM t",
        "CREATE USER IF NOT EXISTS one@localhost IDENTIFIED BY 'x'",
        "CREATE ROLE IF NOT EXISTS r",
        "ALTER TABLE u ADD COLUMN b INT, ALGORITHM=INSTANT",
        "ANALYZE TABLE t",
        "INSERT INTO t VALUES (1, 'a')",
        "DROP USER one@localhost",
        "DROP ROLE r",
    ),
    "rows that are replaced and that a load brings": (
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "REPLACE INTO t VALUES (1, 'c')",
        "INSERT INTO t VALUES (2, 'd') AS new ON DUPLICATE KEY UPDATE v = new.v",
    ),
    "a rename there and back of another table": (
        "CREATE TABLE u LIKE t",
        "RENAME TABLE u TO w",
        "DROP TABLE w",
        "INSERT INTO t VALUES (1, 'a')",
    ),
}
# statements, and what the reason of the copy has
COPIED_AGAIN = {
    "an XA transaction": (
        ("XA START 'x'", "INSERT INTO t VALUES (1, '{}')", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"),
        "XA",
    ),
    "a session without whole row images": (
        (
            "INSERT INTO t VALUES (1, '{}')",
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE t SET v = '[]' WHERE id = 1",
        ),
        "binlog_row_image",
    ),
    "parts of JSON in a session without whole row images": (
        (
            'INSERT INTO t VALUES (1, \'{"a": 1, "b": "x"}\')',
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE t SET v = JSON_SET(v, '$.a', 2)",
        ),
        "binlog_row_image",
    ),
    "a table that is emptied": (("TRUNCATE t",), "TRUNCATE"),
    "a table that another one replaces": (
        ("CREATE TABLE u LIKE t", "RENAME TABLE t TO w, u TO t"),
        "RENAME TABLE",
    ),
    "a captured column of another type": (("ALTER TABLE t MODIFY v VARCHAR(9)",), "MODIFY"),
    "a partition that is exchanged": (
        (
            "CREATE TABLE p (id BIGINT PRIMARY KEY, v JSON) PARTITION BY HASH (id) PARTITIONS 2",
            "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE t",
        ),
        "EXCHANGE",
    ),
}


@pytest.mark.parametrize("statements", FOLLOWED.values(), ids=FOLLOWED)
def test_changes_are_followed(mysql, kafka, tmp_path, statements):
    with captured_table(mysql, kafka.bootstrap_servers, tmp_path) as (schema, config):
        with CdcProcess(config) as process:
            process.high(take_high(config.connection, 0))
            process.wait_for("watermark")
            run_sql(mysql, *statements, schema=schema)
            process.wait_for_position(take_high(config.connection, 0))
            assert process.stop() == 0
        rows = run_sql(mysql, "SELECT id, v FROM t", schema=schema)
        copy = copy_of(records_of(config), PARTITIONS)
        assert {key[0]: row["v"] for key, row in copy.rows.items()} == dict(rows)


@pytest.mark.parametrize(("statements", "reason"), COPIED_AGAIN.values(), ids=COPIED_AGAIN)
def test_what_the_log_does_not_have_means_another_copy(mysql, kafka, tmp_path, statements, reason):
    table = captured_table(mysql, kafka.bootstrap_servers, tmp_path, table=WITH_JSON)
    with table as (schema, config), CdcProcess(config) as process:
        process.high(take_high(config.connection, 0))
        process.wait_for("watermark")
        run_sql(mysql, *statements, schema=schema)
        error = process.wait_for("error", lambda e: not e["retry"])
        assert error["type"] == "SnapshotNeededError"
        assert reason in error["message"], error
        assert process.exit_code() == 1


# Three JSON columns, of which the one in the middle is not captured.
DOCUMENTS = "CREATE TABLE t (id BIGINT PRIMARY KEY, v JSON, u JSON, w JSON)"
DOCUMENT = {"a": [1, [2, {"b": None}], "x"], "o": {"b": {"c": []}, "k.x": 1}, "pad": "y" * 500}
KEYS = ("a", "o", "b", "c", "k.x", 'a "b"', "é", "🐬", "", "\\", "\n", "long key", "\xa0", "last")
ITEMS = ("[0]", "[1]", "[2]", "[9]", "[last]", "[last-1]", "[last-9]")
VALUES = (
    *("NULL", "TRUE", "-7", "70000", "1.50", "1e0", "18446744073709551615", "x'00ff'", "NOW(6)"),
    *("JSON_QUOTE('🐬')", "CAST('2024-02-29' AS DATE)", "CAST('12:30:00.5' AS TIME(1))"),
    *("JSON_ARRAY()", "JSON_OBJECT()", "JSON_ARRAY(1, JSON_ARRAY(2))", "REPEAT('z', 300)"),
    "JSON_OBJECT('b', 1.5, 'é', 2)",
)


def update(draw):
    """A random UPDATE of `t` by the functions whose changes the server writes in part."""

    def path():
        legs = draw.choices([*map(member, KEYS), *ITEMS, ".a", ".o", ".b"], k=draw.randint(1, 3))
        return "'" + ("$" + "".join(legs)).replace("\\", "\\\\") + "'"

    def change(column):
        function = draw.choice(["JSON_SET", "JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
        some = [path() for _ in range(draw.randint(1, 3))]
        if function != "JSON_REMOVE":
            some = [f"{each}, {draw.choice(VALUES)}" for each in some]
        return f"{column} = {function}({column}, {', '.join(some)})"

    changes = [change(column) for column in draw.sample("vuw", draw.randint(1, 3))]
    if draw.random() < 0.2:
        changes[0] = changes[0][:4] + draw.choice(["NULL", f"'{json.dumps(DOCUMENT)}'"])
    return f"UPDATE t SET {', '.join(changes)} WHERE id % 3 = {draw.randrange(3)}"


def test_updates_of_parts_of_json_are_followed_row_by_row(mysql, kafka, tmp_path):
    draw = Random(5)
    fields = [Field(name, SqlType(TypeName.STRING)) for name in "wv"]
    columns = (Field("id", SqlType(TypeName.BIGINT)), *fields)
    table = captured_table(
        mysql, kafka.bootstrap_servers, tmp_path, columns=columns, table=DOCUMENTS
    )
    expected = []
    with table as (schema, config):
        with CdcProcess(config) as process, mysql.connect(schema) as connection:
            process.high(take_high(config.connection, 0))
            process.wait_for("watermark")
            cursor = connection.cursor()
            row = (json.dumps(DOCUMENT),) * 3
            rows = [(row_id, *row) for row_id in range(6)]
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", rows)
            for number in range(400):
                if number % 20 == 0:
                    compressed, options = draw.choice(["ON", "OFF"]), draw.choice(OPTIONS)
                    cursor.execute(f"SET SESSION binlog_transaction_compression = {compressed}")
                    cursor.execute(f"SET SESSION binlog_row_value_options = '{options}'")
                cursor.execute("SELECT id, v, w FROM t")
                expected += cursor.fetchall()
                cursor.execute(update(draw))
            cursor.execute("SELECT id, v, w FROM t")
            expected += cursor.fetchall()
            process.wait_for_position(take_high(config.connection, 0))
            assert process.stop() == 0
        values = [json.loads(record.value) for record in records_of(config)]
        changes = sorted((value for value in values if value["op"] != "w"), key=position_of)
        events = run_sql(mysql, "SHOW BINLOG EVENTS")
    rows = [(row["id"], row["v"], row["w"]) for row in (value["after"] for value in changes)]
    assert steps(rows) == steps(expected)
    assert sum(event[2] == "Update_rows_partial" for event in events) > 50


def steps(rows):
    """The values that each row had, one after the other."""
    return {i: [k for k, _ in groupby(r for r in rows if r[0] == i)] for i in range(6)}


def test_a_server_that_is_started_again_is_followed_on(tmp_path, kafka):
    with (
        MySql(tmp_path / "server", mysql_home(), DatabaseSettings(options=GTIDS)) as mysql,
        captured_table(mysql, kafka.bootstrap_servers, tmp_path) as (schema, config),
    ):
        with CdcProcess(config) as process:
            process.high(take_high(config.connection, 0))
            process.wait_for("watermark")
            run_sql(mysql, "INSERT INTO t VALUES (1, 'before')", schema=schema)
            process.wait_for_position(take_high(config.connection, 0))
            mysql.stop()
            process.wait_for("error", lambda e: e["retry"])
            mysql.start()
            run_sql(mysql, "INSERT INTO t VALUES (2, 'behind')", schema=schema)
            process.wait_for_position(take_high(config.connection, 0))
            assert process.stop() == 0
        copy = copy_of(records_of(config), PARTITIONS)
        values = {key[0]: row["v"] for key, row in copy.rows.items()}
        assert values == {1: "before", 2: "behind"}
