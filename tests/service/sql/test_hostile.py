"""A corpus of statements that would do harm, by the classes of harm of a SQL endpoint.

Each is refused by the planner, which starts nothing and connects to nothing, at its own place; or
it is a setting without effect: the plan is the same without it, and a warning says so.
"""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from service.sql.planner.planner import plan, plan_script
from service.sql.text.script import SqlError
from tests.service.sql.scripts import JOIN, TABLES

SINK = "CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');\n"
INSERT = f"INSERT INTO o SELECT t {JOIN};\n"
MYSQL = """CREATE TABLE x (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'username' = 'u', 'password' = 'p', 'database-name' = 'a',
"""
KAFKA = """CREATE TABLE x (a INT) WITH (
    'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9092',
    'format' = 'json',
"""
FRAMES = {
    "E": (TABLES + SINK + "INSERT INTO o SELECT\n", f" {JOIN};\n"),
    "KAFKA": (TABLES + SINK + KAFKA, f");\n{INSERT}"),
    "MYSQL": (TABLES + SINK + MYSQL + "'hostname' = 'h', 'table-name' = 'd',\n", f");\n{INSERT}"),
    "MYSQLT": (TABLES + SINK + MYSQL + "'hostname' = 'h',\n'table-name' = '", f"');\n{INSERT}"),
    "MYSQLH": (TABLES + SINK + MYSQL + "'table-name' = 'd',\n'hostname' = '", f"');\n{INSERT}"),
}
HARMLESS = ("E:t", "KAFKA:'key.format' = 'json', 'key.fields' = 'a'", "MYSQL:'port' = '1'")
# What each row of the table names, and a statement of that row must have.
NAMED = {
    "arbitrary Java": "reflect java_method try_reflect CREATE|FUNCTION USING|JAR GenericUDFReflect "
    "ADD|JAR ADD|FILE ADD|ARCHIVE LIST|JARS",
    "arbitrary shell": "TRANSFORM USING MAP REDUCE",
    "read any file/URL": "parquet.` csv.` json.` text.` binaryFile.` delta.` read_files from_avro "
    "input_file_name input_file_block from_protobuf from_xml xpath USING|csv USING|jdbc "
    "com.evil.Source jdbc:derby jdbc:h2 jdbc:mysql 169.254.169.254 file:// s3a://",
    "write any place": "OVERWRITE|DIRECTORY OVERWRITE|LOCAL|DIRECTORY LOAD|DATA EXPORT LOCATION|AS "
    "COPY|INTO CALL VACUUM RESTORE CONVERT|TO|DELTA SET|LOCATION MSCK PURGE DELETE UPDATE MERGE "
    "'path'|..",
    "configuration and environment leak": "SET SET|-v RESET ${env: ${system: ${spark: ${hivevar: "
    "${sparkconf: ${hiveconf: DESCRIBE|EXTENDED SHOW|TBLPROPERTIES EXPLAIN|EXTENDED current_user "
    "session_user version current_catalog spark.sql.variable.substitute runSQLOnFiles",
    "dynamic SQL": "EXECUTE|IMMEDIATE IDENTIFIER( BEGIN|END DECLARE|VARIABLE USE call_udf "
    "call_function /*+ ;|DROP",
    "resource bombs": "sequence( repeat( space( LPAD( explode(sequence range( CROSS|JOIN rlike "
    "regexp_replace split( array_repeat RECURSIVE",
    "non-determinism": "rand randn randstr uuid shuffle monotonically_increasing_id "
    "spark_partition_id now current_date unix_timestamp() LOCALTIME current_time udf",
    "Kafka/JDBC client options": "sasl.jaas.config .class' interceptor.classes metric.reporters "
    "ssl.keystore.location ssl.truststore.location oauthbearer|url login.callback.handler.class "
    "config.providers security.protocol sasl.mechanism client.dns allowLoadLocalInfile "
    "autoDeserialize local_infile init_command queryInterceptors",
}


def unescaped(line):
    text = line.replace("\\n", "\n")
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)


def corpus():
    """The statements by their row."""
    rows, row = {}, None
    for line in (Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("[") and line.endswith("]"):
            row = rows.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            row.append(unescaped(line))
    return rows


CORPUS = corpus()
CASES = [pytest.param(text, id=f"{row}: {text}") for row, texts in CORPUS.items() for text in texts]


def framed(hostile):
    """What goes before and behind `hostile`: a script that is planned where it is harmless."""
    kind, _, rest = hostile.partition(":")
    if kind in FRAMES:
        return FRAMES[kind][0], rest, FRAMES[kind][1]
    return TABLES + SINK, hostile, ";\n" if hostile.upper().startswith("INSERT") else f";\n{INSERT}"


def test_each_row_is_hit_by_all_that_it_names():
    statements = [text for texts in CORPUS.values() for text in texts]
    assert len(statements) == len(set(statements)) >= 300
    assert set(CORPUS) == set(NAMED)
    missing = {
        (row, named)
        for row, names in NAMED.items()
        for named in names.split()
        if not any(_has(text, named) for text in CORPUS[row])
    }
    assert missing == set()


def _has(text, named):
    return re.search(".*".join(map(re.escape, named.split("|"))), text, re.IGNORECASE | re.DOTALL)


@pytest.mark.parametrize("harmless", [*HARMLESS, "MYSQLT:d", "MYSQLH:db", INSERT.strip(";\n")])
def test_the_same_script_is_planned_without_harm(harmless):
    plan("".join(framed(harmless)))


def outcome(script):
    try:
        return plan_script(script), None
    except SqlError as error:
        return None, error


@pytest.mark.parametrize("hostile", CASES)
def test_a_hostile_statement_is_refused_where_it_stands_or_has_no_effect(hostile):
    before, text, behind = framed(hostile)
    planned, error = outcome(before + text + behind)
    if error is not None:
        assert error.hint.endswith((".", "?"))
        first = before.count("\n") + 1
        assert first <= error.line <= first + (text + behind).count("\n")
        return
    harmless = plan_script("".join(framed(_harmless(hostile))))
    assert replace(planned.plan, sql="") == replace(harmless.plan, sql="")
    assert len(planned.warnings) > len(harmless.warnings)


def _harmless(hostile):
    """The statement without the setting in it."""
    kind = hostile.partition(":")[0]
    return {text.partition(":")[0]: text for text in HARMLESS}.get(kind, "")


@pytest.mark.usefixtures("processes")
def test_nothing_that_could_run_a_statement_is_loaded_by_the_planner():
    program = (
        "import sys, service.sql.planner.planner, service.sql.answers.explain;"
        "import service.jobs.store.plan_codec;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded & {"pyspark", "py4j", "kafka", "pymysql", "deltalake"} == set()
