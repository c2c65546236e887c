"""Flink's statements, clauses and types, each with an example that is planned to see its support.

The example is planned beside `TABLES`. The answer is the hint of its error, or its warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.sql.planner.planner import plan_script
from service.sql.text.script import SqlError

TABLES = """
CREATE TABLE s (
    id BIGINT, k STRING, price DECIMAL(10, 2), tags ARRAY<STRING>, ts TIMESTAMP(3),
    p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE s2 (id BIGINT, k STRING) WITH ('connector' = 'kafka', 'topic' = 's2',
    'properties.bootstrap.servers' = 'b:9092', 'format' = 'csv',
    'scan.startup.mode' = 'earliest-offset');
CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'u', 'password' = '${secret:x}',
    'database-name' = 'shop', 'table-name' = 'd');
CREATE TABLE o (id BIGINT) WITH ('connector' = 'delta', 'path' = 'o', 'row-metadata' = 'false');
"""
_JOB = "INSERT INTO o SELECT id FROM s;"
_DIM = "FOR SYSTEM_TIME AS OF s.p ON s.id = d.id;"
_KEYED = (
    "CREATE TABLE u (k STRING PRIMARY KEY NOT ENFORCED, id BIGINT) WITH ('connector' = 'delta', "
    "'path' = 'u'); "
)
_MINUTE = "INTERVAL '1' MINUTE"
_NO_JOB = ("the script has no INSERT INTO", "the script is empty")


class Presence(StrEnum):
    """How much of a form is supported."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """Support of a form; `text` has further full sentences or is empty."""

    state: Presence
    text: str


def _window(call: str, rest: str = "GROUP BY window_start, window_end") -> str:
    return f"INSERT INTO o SELECT COUNT(*) FROM {call} {rest};"


FORMS: Mapping[str, Mapping[str, str]] = {
    "Statements": {
        "CREATE TABLE … WITH (…)": "CREATE TABLE t (a INT) WITH ('connector' = 'print');",
        "CREATE TEMPORARY TABLE": "CREATE TEMPORARY TABLE t (a INT) WITH ('connector' = 'print');",
        "CREATE TABLE … LIKE": "CREATE TABLE t LIKE s (INCLUDING ALL);",
        "CREATE TABLE … AS": "CREATE TABLE t WITH ('connector' = 'print') AS SELECT id FROM s;",
        "CREATE OR REPLACE": "CREATE OR REPLACE TABLE t (a INT) WITH ('connector' = 'print');",
        "CREATE VIEW": "CREATE TEMPORARY VIEW v (a) AS SELECT id FROM s;",
        "CREATE DATABASE": "CREATE DATABASE IF NOT EXISTS x;",
        "CREATE CATALOG": "CREATE CATALOG c WITH ('type' = 'hive');" + _JOB,
        "CREATE FUNCTION": "CREATE FUNCTION f AS 'com.example.F';" + _JOB,
        "CREATE MODEL": "CREATE MODEL m WITH ('provider' = 'x');",
        "DROP TABLE, DROP VIEW": "DROP TABLE IF EXISTS t;",
        "DROP DATABASE": "DROP DATABASE IF EXISTS x;",
        "ALTER": "ALTER TABLE s ADD COLUMN x INT;",
        "USE": "USE default_database; USE CATALOG default_catalog;",
        "USE of what is not created": "USE CATALOG x; USE CATALOG default_catalog;" + _JOB,
        "SET, RESET": "SET 'pipeline.name' = 'x'; SET pipeline.name = x; RESET 'pipeline.name';",
        "SHOW, DESCRIBE, EXPLAIN": "SHOW TABLES; DESCRIBE s; EXPLAIN " + _JOB,
        "INSERT INTO … SELECT": _JOB,
        "INSERT INTO … VALUES": "INSERT INTO o VALUES (1);",
        "INSERT OVERWRITE": "INSERT OVERWRITE o SELECT id FROM s;",
        "EXECUTE STATEMENT SET, BEGIN STATEMENT SET": "EXECUTE STATEMENT SET BEGIN "
        f"{_JOB} {_JOB} END;",
        "a statement set of two streams": "EXECUTE STATEMENT SET BEGIN "
        f"{_JOB} INSERT INTO o SELECT id FROM s2; END;",
        "INSERT INTO …; INSERT INTO …;": _JOB + "INSERT INTO o SELECT id + 1 FROM s;",
        "UPDATE, DELETE": "DELETE FROM o WHERE id = 1;",
        "ADD JAR": "ADD JAR 'x.jar';" + _JOB,
        "LOAD MODULE, USE MODULES": "LOAD MODULE hive; USE MODULES core;" + _JOB,
        "ANALYZE TABLE": "ANALYZE TABLE s COMPUTE STATISTICS;" + _JOB,
        "CALL": "CALL f(1);",
    },
    "Tables": {
        "computed columns": "CREATE TABLE t (a INT, b AS a * 2) WITH ('connector' = 'datagen');",
        "METADATA columns": "CREATE TABLE t (a INT, b BIGINT METADATA FROM 'offset' VIRTUAL) WITH "
        "('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:1', 'format' = "
        "'json');",
        "WATERMARK FOR": "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS a) WITH ('connector' "
        "= 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');",
        "PRIMARY KEY … NOT ENFORCED": "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED) WITH "
        "('connector' = 'print');",
        "PRIMARY KEY": "CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH ('connector' = 'print');"
        + _JOB,
        "options of Flink 1.10 ('connector.type' = …)": "CREATE TABLE t (a BIGINT) WITH "
        "('connector.type' = 'kafka', 'connector.topic' = 't', "
        "'connector.properties.bootstrap.servers' = 'b:1', 'format.type' = 'json'); "
        "INSERT INTO t SELECT id FROM s;",
        "PARTITIONED BY": "CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'print');",
        "DISTRIBUTED BY": "CREATE TABLE t (a INT) DISTRIBUTED BY (a) WITH ('connector' = 'print');",
        "COMMENT": "CREATE TABLE t (a INT COMMENT 'x') COMMENT 'y' WITH ('connector' = 'print');",
        "a name with its database": "INSERT INTO default_catalog.default_database.o SELECT id FROM "
        "default_database.s;",
    },
    "Queries": {
        "SELECT, WHERE": "INSERT INTO o SELECT id * 2 FROM s WHERE price > 3;",
        "SELECT *, s.*": "CREATE VIEW v AS SELECT s.*, UPPER(k) AS u FROM s;",
        "SELECT without INSERT": "SELECT * FROM s LIMIT 5;",
        "SELECT DISTINCT": "INSERT INTO o SELECT DISTINCT id FROM s;",
        "WITH … AS (…)": "INSERT INTO o WITH q AS (SELECT id FROM s) SELECT id FROM q;",
        "FROM (SELECT …)": "INSERT INTO o SELECT id FROM (SELECT id FROM s WHERE price > 3) AS q;",
        "FROM table AS t (a, b)": "INSERT INTO o SELECT a FROM s2 AS t (a, b);",
        "FROM (VALUES …)": "INSERT INTO o SELECT a FROM (VALUES (1), (2)) AS t (a);",
        "IN (1, 2), NOT IN": "INSERT INTO o SELECT id FROM s WHERE id IN (1, 2) AND k NOT IN "
        "('a');",
        "IN (SELECT …)": "INSERT INTO o SELECT id FROM s WHERE id IN (SELECT id FROM d);",
        "EXISTS (SELECT …)": "INSERT INTO o SELECT id FROM s WHERE EXISTS (SELECT 1 FROM d);",
        "UNION ALL of one stream": "INSERT INTO o SELECT id FROM s UNION ALL SELECT id + 1 FROM s;",
        "UNION ALL of two streams": "INSERT INTO o SELECT id FROM s UNION ALL SELECT id FROM s2;",
        "UNION ALL with datagen": "INSERT INTO o SELECT id FROM s UNION ALL SELECT id FROM g;",
        "UNION ALL below a window": "CREATE VIEW v AS SELECT ts FROM s UNION ALL SELECT ts FROM s; "
        f"INSERT INTO o SELECT COUNT(*) FROM TUMBLE(TABLE v, DESCRIPTOR(ts), {_MINUTE}) "
        "GROUP BY window_start, window_end;",
        "UNION": "INSERT INTO o SELECT id FROM s UNION SELECT id FROM s;",
        "INTERSECT, EXCEPT": "INSERT INTO o SELECT id FROM s INTERSECT SELECT id FROM s;",
        "ORDER BY the time": "INSERT INTO o SELECT id FROM s ORDER BY ts;",
        "ORDER BY a column": "INSERT INTO o SELECT id FROM s ORDER BY id;",
        "LIMIT": "INSERT INTO o SELECT id FROM s LIMIT 3;",
        "GROUP BY": "INSERT INTO o SELECT COUNT(*) FROM s GROUP BY k;",
        "OVER": "INSERT INTO o SELECT SUM(id) OVER (PARTITION BY k ORDER BY ts) FROM s;",
        "ROW_NUMBER (deduplication, Top-N)": "INSERT INTO o SELECT id FROM (SELECT id, ROW_NUMBER()"
        " OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM s) WHERE n = 1;",
        "ROW_NUMBER (… ORDER BY proctime DESC) = 1": f"{_KEYED}INSERT INTO u SELECT k, id FROM "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS n FROM s) WHERE n = 1;",
        "MATCH_RECOGNIZE": "INSERT INTO o SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k);",
        "TABLESAMPLE": "INSERT INTO o SELECT id FROM s TABLESAMPLE BERNOULLI (10);",
        "/*+ OPTIONS(…) */": "INSERT INTO o SELECT id FROM s /*+ OPTIONS('format' = 'json') */;",
        "/*+ LOOKUP(…) */": f"INSERT INTO o SELECT /*+ LOOKUP('table' = 'd') */ s.id FROM s JOIN d "
        f"{_DIM}",
        "/*+ STATE_TTL(…) */": "INSERT INTO o SELECT /*+ STATE_TTL('s' = '1d') */ id FROM s;",
        "/*+ BROADCAST(…) */": "INSERT INTO o SELECT /*+ BROADCAST(d) */ s.id FROM s JOIN d "
        f"{_DIM}",
    },
    "Joins": {
        "JOIN d FOR SYSTEM_TIME AS OF s.proctime": "INSERT INTO o SELECT s.id FROM s JOIN d "
        f"{_DIM}",
        "JOIN d FOR SYSTEM_TIME AS OF PROCTIME()": "INSERT INTO o SELECT s.id FROM s JOIN d "
        "FOR SYSTEM_TIME AS OF PROCTIME() ON s.id = d.id;",
        "LEFT [OUTER] JOIN d FOR SYSTEM_TIME AS OF …": "INSERT INTO o SELECT s.id FROM s LEFT OUTER"
        f" JOIN d {_DIM}",
        "JOIN d FOR SYSTEM_TIME AS OF s.rowtime": "INSERT INTO o SELECT s.id FROM s JOIN d "
        "FOR SYSTEM_TIME AS OF s.ts ON s.id = d.id;",
        "FROM a topic of changes (upsert-kafka, debezium-json)": f"{_KEYED}CREATE TABLE c (k "
        "STRING PRIMARY KEY NOT ENFORCED, id BIGINT) WITH ('connector' = 'upsert-kafka', 'topic' "
        "= 'c', 'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' "
        "= 'json'); INSERT INTO u SELECT c.k, c.id FROM c JOIN d FOR SYSTEM_TIME AS OF PROCTIME() "
        "ON c.id = d.id;",
        "ON LOWER(d.name) = s.k": "INSERT INTO o SELECT s.id FROM s JOIN d FOR SYSTEM_TIME AS OF "
        "s.p ON LOWER(d.name) = s.k;",
        "LATERAL TABLE(d(s.proctime))": "INSERT INTO o SELECT s.id FROM s, LATERAL TABLE(d(s.p)) "
        "AS d WHERE s.id = d.id;",
        "LATERAL SNAPSHOT(input => TABLE d)": "INSERT INTO o SELECT s.id FROM s JOIN LATERAL "
        "SNAPSHOT(input => TABLE d) AS x ON s.id = x.id;",
        "LATERAL TABLE(SNAPSHOT(…, on_time => …, state_ttl => …))": "CREATE TABLE e (id BIGINT, at "
        "TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'kafka', 'topic' = 'e', "
        "'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'); INSERT INTO o SELECT s.id "
        "FROM s JOIN LATERAL TABLE(SNAPSHOT(input => TABLE e, on_time => DESCRIPTOR(at), "
        "state_ttl => INTERVAL '1' DAY)) AS x ON s.id = x.id;",
        "a view as dimension": "CREATE VIEW v AS SELECT id FROM d WHERE name <> 'x'; INSERT INTO o "
        "SELECT s.id FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.id = v.id;",
        "a view of the newest rows (ROW_NUMBER() … = 1)": "CREATE VIEW v AS SELECT id FROM (SELECT "
        "id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY at DESC) AS n FROM d) WHERE n = 1; INSERT "
        "INTO o SELECT s.id FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.id = v.id;",
        "CROSS JOIN UNNEST(array)": "INSERT INTO o SELECT s.id FROM s CROSS JOIN UNNEST(tags) AS t "
        "(tag) WHERE tag <> 'x';",
        "LEFT JOIN UNNEST(array) … ON TRUE": "INSERT INTO o SELECT s.id FROM s LEFT JOIN "
        "UNNEST(tags) AS t (tag) ON TRUE;",
        "UNNEST … WITH ORDINALITY": "INSERT INTO o SELECT s.id FROM s CROSS JOIN UNNEST(tags) WITH "
        "ORDINALITY;",
        "JOIN of two streams (regular, interval)": "INSERT INTO o SELECT s.id FROM s JOIN s2 ON "
        "s.id = s2.id;",
        "RIGHT JOIN, FULL JOIN": "INSERT INTO o SELECT s.id FROM s FULL JOIN d ON s.id = d.id;",
        "CROSS JOIN of tables": "INSERT INTO o SELECT s.id FROM s CROSS JOIN d;",
        "JOIN … USING": "INSERT INTO o SELECT s.id FROM s JOIN d FOR SYSTEM_TIME AS OF s.p USING "
        "(id);",
        "LATERAL (SELECT …)": "INSERT INTO o SELECT s.id FROM s, LATERAL (SELECT * FROM d);",
        "JOIN of two windows": "INSERT INTO o SELECT s.id FROM s JOIN TABLE(TUMBLE(TABLE s, "
        f"DESCRIPTOR(ts), {_MINUTE})) AS w ON s.id = w.id;",
    },
    "Windows": {
        "TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), size))": _window(
            f"TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE}))"
        ),
        "TUMBLE(…) without TABLE(…)": _window(f"TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE})"),
        "DATA => TABLE s, TIMECOL => …": _window(
            f"TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => {_MINUTE})"
        ),
        "HOP": _window(f"TABLE(HOP(TABLE s, DESCRIPTOR(ts), {_MINUTE}, {_MINUTE}))"),
        "SESSION": _window(f"TABLE(SESSION(TABLE s, DESCRIPTOR(p), {_MINUTE}))"),
        "CUMULATE": _window(f"TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), {_MINUTE}, {_MINUTE}))"),
        "a window function without aggregates": "INSERT INTO o SELECT id FROM TABLE(HOP(TABLE "
        f"s, DESCRIPTOR(ts), {_MINUTE}, {_MINUTE}));",
        "SESSION without aggregates": "INSERT INTO o SELECT id FROM TABLE(SESSION(TABLE s "
        f"PARTITION BY k, DESCRIPTOR(ts), {_MINUTE}));",
        "ROW_NUMBER of a window (Top-N, deduplication)": "INSERT INTO o SELECT id FROM (SELECT *, "
        "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY k DESC) AS n FROM "
        f"TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE}))) WHERE n <= 3;",
        "GROUP BY TUMBLE(ts, size), HOP, SESSION": _window(
            "s", f"GROUP BY TUMBLE(ts, {_MINUTE}) HAVING COUNT(*) > 1"
        ),
        "TUMBLE_START, _END, _ROWTIME, _PROCTIME": "CREATE TABLE w (a TIMESTAMP(3)) WITH "
        f"('connector' = 'print'); INSERT INTO w SELECT TUMBLE_START(ts, {_MINUTE}) FROM s GROUP "
        f"BY TUMBLE(ts, {_MINUTE});",
        "COUNT, SUM, MIN, MAX, AVG, LISTAGG, FIRST_VALUE, LAST_VALUE, DISTINCT, FILTER": _window(
            f"TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE})",
            "GROUP BY window_start, window_end HAVING COUNT(DISTINCT k) FILTER (WHERE id > 3) > 1",
        ),
        "GROUPING SETS, ROLLUP, CUBE": _window(
            f"TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE})",
            "GROUP BY window_start, window_end, ROLLUP(k)",
        ),
        "a window over a window": "CREATE VIEW v AS SELECT window_time AS r FROM TABLE(TUMBLE("
        f"TABLE s, DESCRIPTOR(ts), {_MINUTE})) GROUP BY window_start, window_end, window_time; "
        + _window(f"TABLE(TUMBLE(TABLE v, DESCRIPTOR(r), {_MINUTE}))"),
        "a join behind a window function, before GROUP BY": "INSERT INTO o SELECT d.id FROM "
        f"TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE})) AS w "
        "JOIN d FOR SYSTEM_TIME AS OF w.p ON w.id = d.id "
        "GROUP BY window_start, window_end, d.id;",
        "a LEFT JOIN by the whole PRIMARY KEY behind SESSION, ROW_NUMBER()": "INSERT INTO o SELECT "
        "COUNT(d.id) FROM TABLE(SESSION(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS w "
        "LEFT JOIN d FOR SYSTEM_TIME AS OF w.p ON w.id = d.id GROUP BY window_start, window_end;",
        "a join behind the results of a window": "CREATE VIEW v AS SELECT id, PROCTIME() AS r FROM "
        f"TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), {_MINUTE})) "
        "GROUP BY window_start, window_end, id; INSERT INTO o "
        "SELECT v.id FROM v JOIN d FOR SYSTEM_TIME AS OF v.r ON v.id = d.id;",
    },
    "Types": {
        **{
            name: f"CREATE TABLE t (a {name}) WITH ('connector' = 'print');"
            for name in (
                *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
                *("DECIMAL(38, 9)", "CHAR(3)", "VARCHAR(3)", "STRING", "BINARY(3)", "BYTES"),
                *("DATE", "TIME(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)"),
                *("TIMESTAMP(3) WITH TIME ZONE", "INTERVAL DAY", "ROW<a INT, b STRING>"),
                *("ARRAY<INT>", "MAP<STRING, INT>", "MAP<INT, INT>", "MULTISET<INT>", "VARIANT"),
            )
        },
    },
}


def answer(example: str) -> FormAnswer:
    try:
        planned = plan_script(TABLES + example)
    except SqlError as error:
        if any(text in error.message for text in _NO_JOB):
            return FormAnswer(Presence.YES, "")
        return FormAnswer(Presence.NO, error.hint)
    warnings = [text for text in planned.warnings if not text.startswith(("Line ", "This is a"))]
    return FormAnswer(Presence.PARTLY if warnings else Presence.YES, " ".join(warnings))


def answers() -> Iterator[tuple[str, str, FormAnswer]]:
    for kind, forms in FORMS.items():
        for form, example in forms.items():
            yield kind, form, answer(example)
