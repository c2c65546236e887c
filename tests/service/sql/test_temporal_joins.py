"""The shapes of temporal joins that Flink's own tests have, over every kind of dimension."""

import itertools

import pytest

from service.sql.planner.planner import plan
from service.sql.text.script import SqlError

BROKER = "'properties.bootstrap.servers' = 'b:9092'"
KEYED = ", PRIMARY KEY (id) NOT ENFORCED"
STREAM = (
    "CREATE TABLE s (id BIGINT, n INT, t STRING, d DECIMAL(10, 2), ts TIMESTAMP(3), p AS "
    "PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', "
    f"'topic' = 's', {BROKER}, 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');\n"
)
TABLE = (
    "CREATE TABLE u (age INT, id BIGINT, name STRING, at TIMESTAMP(3), next_age AS age + 1{0}{1}) "
    "WITH ({2});\n"
)
AT = ", WATERMARK FOR at AS at - INTERVAL '1' SECOND"
DATABASE = "'username' = 'u', 'password' = 'p', 'table-name' = 'u'"
DIMENSIONS = {
    "mysql-cdc": TABLE.format(
        KEYED, "", f"'connector' = 'mysql-cdc', 'hostname' = 'h', 'database-name' = 'x', {DATABASE}"
    ),
    "jdbc": TABLE.format(
        KEYED,
        "",
        f"'connector' = 'jdbc', 'url' = 'jdbc:mysql://h/x', {DATABASE}, 'lookup.cache' = 'PARTIAL'",
    ),
    "upsert-kafka": TABLE.format(
        KEYED,
        AT,
        f"'connector' = 'upsert-kafka', 'topic' = 'u', {BROKER}, 'key.format' = 'json', "
        "'value.format' = 'json'",
    ),
    "debezium": TABLE.format(
        KEYED, AT, f"'connector' = 'kafka', 'topic' = 'u', {BROKER}, 'format' = 'debezium-json'"
    ),
    "rows of a topic": TABLE.format(
        "", AT, f"'connector' = 'kafka', 'topic' = 'u', {BROKER}, 'format' = 'json'"
    ),
}
OF_KEY = (
    *("s.id = u.id", "u.id = s.id", "s.id = u.id AND s.t = u.name", "s.t = u.name AND s.id = u.id"),
    *("u.name = 'x' AND s.id = u.id", "s.id = u.id AND u.age > 20"),
    *("s.id = u.id AND s.n < 15", "s.id = u.id AND s.n <> u.age", "s.id = u.id AND 1 = 1"),
    *("s.id = u.id AND u.next_age > 12", "s.id = u.id AND u.name LIKE 'J%'", "s.n = u.id"),
    *("s.id = u.id AND (u.age > 20 OR s.n > 3)", "s.id + 1 = u.id", "MOD(s.id, 4) = u.id"),
    *("s.id = u.id AND u.age IS NOT NULL", "s.id = u.id AND CAST(u.name AS BIGINT) > 1000"),
    *("s.id = u.id AND s.n BETWEEN 1 AND u.age", "TRUE AND s.id = u.id", "CAST(s.n AS INT) = u.id"),
)
NOT_OF_KEY = (
    *(
        "s.t = u.name AND 3 = u.id",
        "u.name = 'x' AND 3 = u.id",
        "u.id = 1",
        "s.t = u.name AND NULL = u.id",
    ),
    *("s.id = u.id + 4 AND s.t = CONCAT(u.name, '!') AND u.age = 11", "s.id = ABS(u.id)"),
    *("s.t = CAST(u.id AS STRING)", "UPPER(u.name) = s.t", "u.name || '!' = s.t", "s.d = u.age"),
    "s.ts = u.at",
)
KINDS = ("JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN")
LOOKUP = "u FOR SYSTEM_TIME AS OF {}"
SNAPSHOTS = (
    "input => TABLE {}",
    "input => TABLE {}, load_completed_condition => 'on_time', load_completed_time => TIMESTAMP "
    "'2026-07-01 00:00:00'",
    "input => TABLE {}, load_completed_condition => 'on_time', load_completed_time => TIMESTAMP "
    "'2026-07-01 00:00:00', load_completed_idle_timeout => INTERVAL '10' SECOND, state_ttl => "
    "INTERVAL '1' DAY",
)


def refused(scripts):
    """The scripts that are refused, with the reason of each."""
    faults = {}
    for script in scripts:
        try:
            plan(script)
        except SqlError as error:
            faults[script] = error.message
    return faults


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_each_condition_of_a_lookup_is_planned(dimension):
    conditions = [*OF_KEY, *NOT_OF_KEY]
    head = STREAM + DIMENSIONS[dimension]
    assert not refused(
        f"{head}SELECT s.id, u.name, u.age FROM s {kind} {LOOKUP.format('s.p')} ON {condition}"
        for kind, condition in itertools.product(KINDS, conditions)
    )


@pytest.mark.parametrize("dimension", ["upsert-kafka", "debezium"])
def test_each_condition_of_a_join_by_event_time_is_planned(dimension):
    head = STREAM + DIMENSIONS[dimension]
    assert not refused(
        f"{head}SELECT s.id, u.name, u.at FROM s {kind} {LOOKUP.format('s.ts')} ON {condition} "
        "WHERE s.n > 0"
        for kind, condition in itertools.product(KINDS, OF_KEY)
    )


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_each_form_of_a_snapshot_is_planned(dimension):
    head = STREAM + DIMENSIONS[dimension]
    forms = itertools.product(("JOIN", "LEFT JOIN"), SNAPSHOTS, ("*", "s.id, x.name"))
    queries = [
        (f"SELECT {columns} FROM s {kind} LATERAL SNAPSHOT({{}}) AS x ON s.id = x.id", form)
        for kind, form, columns in forms
    ]
    named = "WITH q AS (SELECT id, name, age + 1 AS older FROM u) "
    assert not refused(head + query.format(form.format("u")) for query, form in queries)
    assert not refused(head + named + query.format(form.format("q")) for query, form in queries)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_queries_around_a_lookup_are_planned(dimension):
    lookup, head = LOOKUP.format("s.p"), STREAM + DIMENSIONS[dimension]
    hint = "/*+ LOOKUP('table' = 'u', 'retry-predicate' = 'lookup_miss') */"
    cached = "u /*+ OPTIONS('lookup.cache' = 'NONE') */ FOR SYSTEM_TIME AS OF s.p"
    assert not refused(
        head + query
        for kind in KINDS
        for query in (
            f"SELECT * FROM s {kind} {lookup} ON s.id = u.id",
            f"SELECT {hint} s.id FROM s {kind} {lookup} ON s.id = u.id",
            f"SELECT s.id FROM s {kind} {cached} ON s.id = u.id",
            f"SELECT s.id FROM s {kind} u FOR SYSTEM_TIME AS OF PROCTIME() ON s.id = u.id",
            f"SELECT q.id, u.name FROM (SELECT id, t, p FROM s WHERE n > 1) AS q {kind} "
            "u FOR SYSTEM_TIME AS OF q.p ON q.t = u.name AND q.id = u.id",
            f"SELECT s.id FROM (SELECT id, p FROM s UNION ALL SELECT id, p FROM s) AS s {kind} "
            f"{lookup} ON s.id = u.id",
            f"SELECT a.name, b.name FROM s {kind} {lookup} AS a ON s.id = a.id {kind} {lookup} "
            "AS b ON a.age = b.id",
            f"SELECT s.id, u.* FROM s {kind} {lookup} ON s.id = u.id WHERE CAST(COALESCE(s.ts, "
            "u.at) AS VARCHAR) >= CONCAT(CAST(CURRENT_DATE AS VARCHAR), ' 00:00:00')",
            f"CREATE VIEW v AS SELECT s.*, u.name FROM s {kind} {lookup} ON s.id = u.id; SELECT "
            "name, COUNT(*) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(p), INTERVAL '1' MINUTE)) GROUP "
            "BY name, window_start, window_end",
        )
    )
