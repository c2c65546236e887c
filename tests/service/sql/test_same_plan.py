"""Forms of a query that mean the same have the same plan (B36 to B38 for LATERAL TABLE)."""

from dataclasses import replace

import pytest

from service.sql.planner.planner import plan
from tests.service.sql.scripts import TABLES

SINK = "CREATE TABLE o (x STRING, y BIGINT) WITH ('connector' = 'blackhole');\n"
TIMED = "FOR SYSTEM_TIME AS OF s.p"
INNER = f"INSERT INTO o SELECT d.name, s.k FROM s JOIN d {TIMED} ON s.k = d.id"
LEFT = INNER.replace("JOIN d", "LEFT JOIN d")
CHAIN = (
    f"INSERT INTO o SELECT b.name, s.k FROM s JOIN d {TIMED} AS a ON s.k = a.id "
    f"LEFT JOIN d {TIMED} AS b ON a.name = b.name AND b.id > s.k WHERE s.ok AND a.price > 1"
)
TUMBLED = "TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE))"
WINDOWED = (
    f"INSERT INTO o SELECT t, COUNT(*) FROM {TUMBLED} GROUP BY window_start, window_end, t "
    "HAVING t > 'a'"
)
SAME = {
    "table_function": (INNER, INNER.replace(f"d {TIMED}", "LATERAL TABLE(d(s.p))")),
    "table_function_left": (LEFT, LEFT.replace(f"d {TIMED}", "LATERAL TABLE(d(p)) AS d")),
    "table_function_after_a_comma": (
        INNER,
        "INSERT INTO o SELECT d.name, s.k FROM s, LATERAL TABLE(d(s.p)) AS d WHERE s.k = d.id",
    ),
    "table_function_on_true": (
        f"{INNER} WHERE s.ok",
        INNER.replace(f"d {TIMED} ON s.k = d.id", "LATERAL TABLE(d(s.p)) AS d ON TRUE")
        + " WHERE s.ok AND s.k = d.id",
    ),
    "table_functions_in_a_chain": (
        CHAIN,
        "INSERT INTO o SELECT b.name, s.k FROM s, LATERAL TABLE(d(s.p)) AS a "
        "LEFT JOIN LATERAL TABLE(d(s.p)) AS b ON a.name = b.name AND b.id > s.k "
        "WHERE s.ok AND s.k = a.id AND a.price > 1",
    ),
    "snapshot": (INNER, INNER.replace(f"d {TIMED}", "LATERAL SNAPSHOT(input => TABLE d) AS d")),
    "snapshot_in_table": (
        LEFT,
        LEFT.replace(f"d {TIMED}", "LATERAL TABLE(SNAPSHOT(INPUT => TABLE d)) AS d"),
    ),
    "snapshot_after_a_comma": (
        INNER,
        "INSERT INTO o SELECT d.name, s.k FROM s, LATERAL SNAPSHOT(TABLE d) AS d WHERE s.k = d.id",
    ),
    "snapshots_in_a_chain": (
        CHAIN,
        CHAIN.replace(f"d {TIMED} AS", "LATERAL SNAPSHOT(input => TABLE d) AS"),
    ),
    "view_of_the_stream": (
        f"{INNER} WHERE s.ok",
        "CREATE VIEW v AS SELECT * FROM s WHERE ok; " + INNER.replace("FROM s", "FROM v AS s"),
    ),
    "view_of_the_join": (
        CHAIN,
        CHAIN.replace("INSERT INTO o", "CREATE VIEW v AS") + "; INSERT INTO o SELECT * FROM v",
    ),
    "view_of_a_part_of_the_chain": (
        CHAIN,
        f"CREATE VIEW v AS SELECT s.*, a.name AS other FROM s JOIN d {TIMED} AS a ON s.k = a.id "
        "WHERE s.ok AND a.price > 1; INSERT INTO o SELECT b.name, v.k FROM v "
        "LEFT JOIN d FOR SYSTEM_TIME AS OF v.p AS b ON v.other = b.name AND b.id > v.k",
    ),
    "view_of_a_dimension": (
        f"{LEFT} AND d.price > 1",
        "CREATE VIEW v (key, label) AS SELECT id, name FROM d WHERE price > 1; "
        f"INSERT INTO o SELECT v.label, s.k FROM s LEFT JOIN v {TIMED} ON s.k = v.key",
    ),
    "session_over_a_join_or_before_it": (
        f"CREATE VIEW joined AS SELECT s.*, d.name FROM s LEFT JOIN d {TIMED} ON s.k = d.id; "
        "INSERT INTO o SELECT t, COUNT(name) FROM "
        "TABLE(SESSION(TABLE joined PARTITION BY t, DESCRIPTOR(p), INTERVAL '1' MINUTE)) "
        "GROUP BY window_start, window_end, t",
        "INSERT INTO o SELECT t, COUNT(d.name) FROM "
        "TABLE(SESSION(TABLE s PARTITION BY t, DESCRIPTOR(p), INTERVAL '1' MINUTE)) AS s "
        f"LEFT JOIN d {TIMED} ON s.k = d.id GROUP BY window_start, window_end, t",
    ),
    "numbered_rows_over_a_join_or_before_it": (
        f"CREATE VIEW joined AS SELECT s.*, d.name FROM s LEFT JOIN d {TIMED} ON s.k = d.id; "
        "INSERT INTO o SELECT name, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
        "window_start, window_end ORDER BY n) AS at FROM "
        + TUMBLED.replace("TABLE s", "TABLE joined")
        + ") WHERE at <= 3",
        "INSERT INTO o SELECT d.name, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
        f"window_start, window_end ORDER BY n) AS at FROM {TUMBLED}) AS s "
        f"LEFT JOIN d {TIMED} ON s.k = d.id WHERE at <= 3",
    ),
    "window_over_a_join_or_before_it": (
        f"CREATE VIEW joined AS SELECT s.*, d.name FROM s LEFT JOIN d {TIMED} ON s.k = d.id "
        "WHERE s.ok; INSERT INTO o SELECT name, COUNT(*) FROM "
        + TUMBLED.replace("TABLE s", "TABLE joined")
        + " GROUP BY window_start, window_end, name",
        f"INSERT INTO o SELECT d.name, COUNT(*) FROM {TUMBLED} AS s "
        f"LEFT JOIN d {TIMED} ON s.k = d.id WHERE s.ok GROUP BY window_start, window_end, d.name",
    ),
    "table_of_the_clock": (INNER, INNER.replace("AS OF s.p", "AS OF PROCTIME()")),
    "columns_of_an_alias": (
        INNER,
        "INSERT INTO o SELECT d.label, s.c FROM s AS s (c, number, t, ok, r, clock) "
        "JOIN d FOR SYSTEM_TIME AS OF s.clock AS d (ident, label, cost) ON s.c = d.ident",
    ),
    "window_in_a_view": (
        WINDOWED,
        f"CREATE VIEW v AS SELECT window_start AS a, window_end AS b, t AS x FROM {TUMBLED}; "
        "INSERT INTO o SELECT x, COUNT(*) FROM v GROUP BY a, b, x HAVING x > 'a'",
    ),
    "window_aggregated_in_a_view": (
        WINDOWED,
        f"CREATE VIEW v AS SELECT t AS x, COUNT(*) AS y FROM {TUMBLED} "
        "GROUP BY window_start, window_end, t; INSERT INTO o SELECT x, y FROM v WHERE x > 'a'",
    ),
    "window_of_a_view": (
        WINDOWED.replace("GROUP", "WHERE ok GROUP"),
        "CREATE VIEW v AS SELECT p AS at, t FROM s WHERE ok; "
        + WINDOWED.replace("TABLE s", "TABLE v").replace("(p)", "(at)").replace("AS s", "AS v"),
    ),
    "window_with_named_arguments": (
        WINDOWED,
        WINDOWED.replace("TABLE s", "DATA => TABLE s")
        .replace("DESCRIPTOR", "TIMECOL => DESCRIPTOR")
        .replace("INTERVAL", "SIZE => INTERVAL"),
    ),
    "statement_set": (INNER, f"EXECUTE STATEMENT SET BEGIN {INNER}; END"),
    "questions_before": (INNER, f"SHOW TABLES; DESCRIBE d; EXPLAIN {LEFT}; SET; {INNER}"),
}


@pytest.mark.parametrize(("written", "other"), SAME.values(), ids=SAME)
def test_both_forms_have_the_same_plan(written, other):
    plans = [replace(plan(f"{TABLES}{SINK}{script}"), sql="") for script in (written, other)]
    assert plans[0] == plans[1]
