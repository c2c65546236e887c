"""Every hint of a refused script, followed: what it says is written, and the script is planned.

Three ways to provoke a hint and to follow it: a case with `-- fixed:` lines, or with a name that
was meant; a form that is damaged by leaving out one token, and is whole again; a script that is
too large, and is smaller.
"""

import pytest

from service.sql.text.dialect import tokenize
from service.sql.text.script import Script
from tests.service.sql.scripts import JOIN, TABLES, selecting
from tests.support.sql_cases import sql_cases
from tests.support.sql_hints import Sites, followed, refusal, says_how
from tests.support.stored import STORED_CASES, refusal_over_the_catalog

CASES = sql_cases("error")
FOLLOWED = [name for name, case in CASES.items() if says_how(case)]
FOLLOWED_OF_CATALOG = [name for name, case in STORED_CASES.items() if says_how(case)]
TIMED = (
    f"{TABLES}CREATE TABLE e (k BIGINT, n INT, t STRING, ts TIMESTAMP(3), p AS PROCTIME(), "
    "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'e', "
    "'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json');\n"
)
VERSIONED = (
    "CREATE TABLE v (id BIGINT PRIMARY KEY NOT ENFORCED, ts TIMESTAMP(3), "
    "WATERMARK FOR ts AS ts) WITH ('connector' = 'upsert-kafka', 'topic' = 'v', "
    "'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', "
    "'value.format' = 'json');\n"
)
SINK = "CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');\n"
INSERT = f"INSERT INTO o SELECT s.k {JOIN};\n"
WINDOW = "INSERT INTO o SELECT COUNT(*) FROM TABLE({}) GROUP BY window_start, window_end;"
DAY = "INTERVAL '1' DAY"
MOST_NOT_MET = 26  # of which no case can be a script alone; fewer are better
# a script and the part of it that is damaged
EXPRESSIONS = {
    "in": ("k IN (1, 2)", "BOOLEAN"),
    "between": ("k BETWEEN 1 AND 2", "BOOLEAN"),
    "case": ("CASE WHEN ok THEN 1 END", "INT"),
    "simple_case": ("CASE n WHEN 2 THEN 1 ELSE 3 END", "INT"),
    "cast": ("CAST(k AS STRING)", "STRING"),
    "extract": ("EXTRACT(YEAR FROM CURRENT_TIMESTAMP)", "BIGINT"),
    "trim_both": ("TRIM(BOTH 'x' FROM t)", "STRING"),
    "trim": ("TRIM(t)", "STRING"),
    "substring_from": ("SUBSTRING(t FROM 1 FOR 3)", "STRING"),
    "substring": ("SUBSTRING(t, 1, 3)", "STRING"),
    "position": ("POSITION('x' IN t)", "INT"),
    "interval": ("CURRENT_TIMESTAMP - INTERVAL '5' SECOND(1)", "TIMESTAMP_LTZ(3)"),
    "number": ("0.5 + 1", "DECIMAL(10, 2)"),
    "overlay": ("OVERLAY(t PLACING 'x' FROM 1 FOR 3)", "STRING"),
    "overlay_by_commas": ("OVERLAY(t, 'x', 1)", "STRING"),
    "floor": ("FLOOR(n)", "INT"),
    "floor_to": ("FLOOR(CURRENT_TIMESTAMP TO HOUR)", "TIMESTAMP_LTZ(3)"),
    "timestampadd": ("TIMESTAMPADD(DAY, 1, CURRENT_DATE)", "DATE"),
    "timestampdiff": ("TIMESTAMPDIFF(DAY, CURRENT_DATE, CURRENT_DATE)", "INT"),
    "json_exists": ("JSON_EXISTS(t, 'lax $.a' FALSE ON ERROR)", "BOOLEAN"),
    "json_value": (
        "JSON_VALUE(t, '$.a' RETURNING INT NULL ON EMPTY DEFAULT 0 ON ERROR)",
        "INT",
    ),
    "json_query": (
        "JSON_QUERY(t, '$.a' RETURNING STRING WITH WRAPPER NULL ON EMPTY NULL ON ERROR)",
        "STRING",
    ),
    "json_query_without": ("JSON_QUERY(t, '$.a' WITHOUT ARRAY WRAPPER)", "STRING"),
    "json_object": ("JSON_OBJECT(KEY 'a' VALUE k, KEY 'b' VALUE n ABSENT ON NULL)", "STRING"),
    "json_array": ("JSON_ARRAY(k, n NULL ON NULL)", "STRING"),
    "is_json": ("t IS JSON OBJECT", "BOOLEAN"),
    "similar": ("t SIMILAR TO '(a|b)_%' ESCAPE '!'", "BOOLEAN"),
}
TYPES = (
    *(
        "DECIMAL(10, 2)",
        "TIME(3) WITHOUT TIME ZONE",
        "TIMESTAMP(3) WITHOUT TIME ZONE",
        "MAP<STRING, INT>",
    ),
    *("VARCHAR(10)", "ROW<x INT, y STRING>", "ARRAY<INT>", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
)
STATEMENTS = {
    "describe": (TABLES, "DESCRIBE s;", ""),
    "show_create": (TABLES, "SHOW CREATE TABLE s;", ""),
    "drop": (TABLES, "DROP TABLE IF EXISTS s;", ""),
    "view": (TABLES, "CREATE VIEW v (a) COMMENT 'x' AS SELECT k FROM s;", ""),
    "reset": ("", "RESET 'pipeline.name';", ""),
    "set": ("", "SET 'pipeline.name' = 'x';", ""),
    "create_table": (
        "",
        "CREATE TABLE t (a INT COMMENT 'x', b BIGINT METADATA FROM 'offset' VIRTUAL, "
        "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, "
        "CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED) COMMENT 'y' WITH ('connector' = 'kafka', "
        "'topic' = 't', "
        "'properties.bootstrap.servers' = 'b:1', 'format' = 'json');",
        "",
    ),
    "like": (TABLES, "CREATE TABLE t LIKE s (INCLUDING ALL);", ""),
    "insert": (TABLES + SINK, INSERT, ""),
    "statement_set": (TABLES + SINK, f"EXECUTE STATEMENT SET BEGIN {INSERT} {INSERT} END;", ""),
    "begin_statement_set": (TABLES + SINK, f"BEGIN STATEMENT SET; {INSERT} {INSERT} END;", ""),
    "hint": (
        TABLES + SINK + "INSERT INTO o SELECT s.k FROM s ",
        "/*+ OPTIONS('scan.startup.mode' = 'latest-offset', 'format' = 'json') */",
        JOIN.removeprefix("FROM s") + ";",
    ),
    "join": (
        TABLES + SINK + "INSERT INTO o SELECT s.k FROM s ",
        "LEFT JOIN d FOR SYSTEM_TIME AS OF s.p AS other ON s.k = other.id",
        ";",
    ),
    "lateral": (
        TABLES + SINK + "INSERT INTO o SELECT s.k FROM s ",
        "JOIN LATERAL TABLE(d(s.p)) AS d ON s.k = d.id",
        ";",
    ),
    "snapshot": (
        TABLES + VERSIONED + SINK + "INSERT INTO o SELECT s.k FROM s ",
        "JOIN LATERAL SNAPSHOT(input => TABLE v, on_time => DESCRIPTOR(ts)) AS v ON s.k = v.id",
        ";",
    ),
    "newest_rows": (
        TABLES + VERSIONED + SINK + "CREATE VIEW w AS SELECT id FROM (SELECT *, ",
        "ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC NULLS LAST) AS n",
        " FROM v) WHERE n = 1; INSERT INTO o SELECT s.k FROM s JOIN w FOR SYSTEM_TIME AS OF s.p "
        "AS w ON s.k = w.id;",
    ),
    "with": (
        TIMED + SINK,
        "INSERT INTO o WITH x (a) AS (SELECT k FROM e) SELECT a FROM x;",
        "",
    ),
    "query_in_from": (
        TIMED + SINK + "INSERT INTO o SELECT a FROM ",
        "(SELECT k FROM e) AS q (a)",
        ";",
    ),
    "unnest": (
        TIMED + SINK + "INSERT INTO o SELECT x FROM e ",
        "CROSS JOIN UNNEST(ARRAY[k]) AS t (x)",
        ";",
    ),
    "hints_of_a_query": (
        TIMED + SINK + "INSERT INTO o SELECT ",
        "/*+ LOOKUP('table' = 'd'), STATE_TTL('e' = '1 d') */",
        "k FROM e;",
    ),
    "order": (TIMED + SINK + "INSERT INTO o SELECT k FROM e ", "ORDER BY ts ASC NULLS LAST", ";"),
    "database": ("", "CREATE DATABASE IF NOT EXISTS x COMMENT 'y' WITH ('a' = 'b');", ""),
    "use": ("", "USE CATALOG default_catalog;", ""),
    "group_window": (
        TIMED + SINK,
        "INSERT INTO o SELECT COUNT(*) FROM e GROUP BY TUMBLE(ts, INTERVAL '1' DAY);",
        "",
    ),
    "grouping_sets": (
        TIMED + SINK,
        WINDOW.format(f"TUMBLE(TABLE e, DESCRIPTOR(ts), {DAY})")[:-1]
        + ", GROUPING SETS ((k, n), ()), ROLLUP (t), CUBE ((k, t), n);",
        "",
    ),
    "tumble": (TIMED + SINK, WINDOW.format(f"TUMBLE(TABLE e, DESCRIPTOR(ts), {DAY})"), ""),
    "cumulate": (
        TIMED + SINK,
        WINDOW.format(f"CUMULATE(TABLE e, DESCRIPTOR(ts), {DAY}, {DAY})"),
        "",
    ),
    "hop": (TIMED + SINK, WINDOW.format(f"HOP(TABLE e, DESCRIPTOR(ts), {DAY}, {DAY})"), ""),
    "session": (
        TIMED + SINK,
        WINDOW.format(f"SESSION(TABLE e PARTITION BY (k), DESCRIPTOR(ts), {DAY})")[:-1] + ", k;",
        "",
    ),
    "named_arguments": (
        TIMED + SINK,
        WINDOW.format(f"TUMBLE(DATA => TABLE e, TIMECOL => DESCRIPTOR(ts), SIZE => {DAY})"),
        "",
    ),
    "aggregates": (
        TIMED + "CREATE TABLE o (x BIGINT, y INT, z STRING) WITH ('connector' = 'blackhole');\n",
        "INSERT INTO o SELECT COUNT(DISTINCT n), SUM(n) FILTER (WHERE n > 0), LISTAGG(t, ', ')",
        " FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' DAY)) "
        "GROUP BY window_start, window_end;",
    ),
}


def forms():
    """Name → (what stands before, the form, what stands behind)."""
    for name, (expression, of_type) in EXPRESSIONS.items():
        before, _, after = selecting("\N{PILCROW SIGN}", of_type).partition("\N{PILCROW SIGN}")
        yield name, (before, expression, after)
    for of_type in TYPES:
        yield of_type, ("CREATE TABLE w (a ", of_type, ") WITH ('connector' = 'print');")
    yield from STATEMENTS.items()


FORMS = dict(forms())


def damaged(before, form, after):
    for token in tokenize(Script(form))[:-1]:
        yield before + form[: token.start] + " " + form[token.end :] + after


JOINED = " JOIN d FOR SYSTEM_TIME AS OF s.p AS d{0} ON s.k = d{0}.id"
WIDE = "CREATE TABLE w ({}) WITH ('connector' = 'print');\n"
# a script of a size that is too large, and one that is not
SIZES = {
    "expression": (lambda n: selecting("UPPER(" * n + "t" + ")" * n), 250, 20),
    "operators": (lambda n: selecting("- " * n + "n", "INT"), 300, 20),
    "plan": (lambda n: selecting("UPPER(" * n + "t" + ")" * n), 100, 20),
    "rows": (lambda n: selecting("(" * n + "t" + ")" * n), 3_000, 20),
    "bytes": (lambda n: "-- " + "x" * n, 70_000, 20),
    "tokens": (lambda n: ";" * n, 10_001, 20),
    "columns": (
        lambda n: selecting(", ".join(["n"] * n)).replace(
            "(x STRING)", "(" + ", ".join(f"x{i} INT" for i in range(n)) + ")"
        ),
        1_001,
        20,
    ),
    "joins": (
        lambda n: selecting("t").rstrip(";\n") + "".join(map(JOINED.format, range(n))),
        40,
        3,
    ),
    "topics": (
        lambda n: (
            "".join(
                f"CREATE TABLE {t} (x STRING) WITH ('connector' = 'kafka', 'format' = 'json', "
                f"'topic' = '{';'.join(f'{t}{i}' for i in range(n))}', "
                "'properties.bootstrap.servers' = 'b:1');"
                for t in "ab"
            )
            + "SELECT x FROM a UNION ALL SELECT x FROM b;"
        ),
        1_100,
        3,
    ),
    "views": (
        lambda n: (
            WIDE.format(", ".join(f"c{at} INT" for at in range(900)))
            + "CREATE VIEW v0 AS SELECT * FROM w;\n"
            + "".join(f"CREATE VIEW v{i} AS SELECT * FROM v{i - 1};\n" for i in range(1, n))
        ),
        200,
        3,
    ),
    "doubling": (
        lambda n: selecting("(" * n + "ok" + " BETWEEN FALSE AND TRUE)" * n, "BOOLEAN"),
        40,
        3,
    ),
    "replacements": (
        lambda n: selecting("REPLACE(" * n + "t" + ", 'a', 'aaaaaaaaaa')" * n),
        12,
        1,
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_script_that_a_hint_asks_for_is_planned(name):
    script = followed(CASES[name])
    error = refusal(script)
    if error is not None and error.hint.startswith("Did you mean"):  # the name is written twice
        error = refusal(followed(script))
    assert error is None or error.outside, f"{CASES[name]}\n{error}\n{error.hint}"


def test_a_key_of_the_stream_is_no_advice_where_only_a_condition_is_refused():
    case = CASES["error_late_rows_into_upsert_kafka_with_a_condition"]
    hint = refusal(case).hint
    assert "further conditions" in hint
    assert "PRIMARY KEY" not in hint
    assert refusal(case.replace(" AND d.name <> s.t", "")) is None


@pytest.mark.parametrize("name", FOLLOWED_OF_CATALOG)
def test_the_script_that_a_hint_about_the_catalog_asks_for_is_taken(name):
    error = refusal_over_the_catalog(name, followed(STORED_CASES[name]))
    assert error is None, f"{STORED_CASES[name]}\n{error}"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_hints_name_is_planned(name):
    assert refusal("".join(FORMS[name])) is None


@pytest.mark.parametrize("name", SIZES)
def test_less_of_what_is_too_much_is_planned(name):
    make, _, little = SIZES[name]
    assert refusal(make(little)) is None


def provoking():
    """The scripts whose hints are followed here, each with why it is refused, if it is."""
    for name in FOLLOWED_OF_CATALOG:
        yield STORED_CASES[name], refusal_over_the_catalog(name, STORED_CASES[name])
    scripts = [CASES[name] for name in FOLLOWED]
    scripts += (make(much) for make, much, _ in SIZES.values())
    for parts in FORMS.values():
        scripts += damaged(*parts)
    for script in scripts:
        yield script, refusal(script)


@pytest.mark.matrix
def test_nearly_every_hint_of_the_language_is_met_by_a_case_and_followed(monkeypatch):
    found, met = Sites(), set()
    with found.watched(monkeypatch):
        for script, error in provoking():
            if error is not None:
                assert error.hint.endswith((".", "?")), script
                met.add(found.of_newest())
    left = sorted({key for site in found.all if site not in met for key in site.keys})
    assert len(left) <= MOST_NOT_MET, left
