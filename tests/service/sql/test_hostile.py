from pathlib import Path

import pytest

from service.sql.errors import SqlError
from service.sql.planner import plan
from tests.service.sql.scripts import JOIN, TABLES, selecting

SINK = "CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');\n"
INSERT = f"INSERT INTO o SELECT t {JOIN};\n"
MYSQL = """CREATE TABLE x (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'h', 'username' = 'u', 'password' = 'p',
    'database-name' = 'a', 'table-name' = '{table}'{option});
"""
KAFKA = """CREATE TABLE x (a INT) WITH (
    'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9092',
    'format' = 'json'{option});
"""
CORPUS = [
    line.replace("\\n", "\n")
    for line in (Path(__file__).parent / "hostile.txt").read_text().splitlines()
    if line and not line.startswith(("#", "["))
]


def script_with(hostile):
    """A script that would be planned were it not for `hostile`."""
    kind, _, rest = hostile.partition(":")
    if kind == "E":
        return selecting(rest)
    if kind == "KAFKA":
        return TABLES + SINK + KAFKA.format(option=f",\n    {rest}") + INSERT
    if kind == "MYSQL":
        return TABLES + SINK + MYSQL.format(table="d", option=f",\n    {rest}") + INSERT
    if kind == "MYSQLT":
        return TABLES + SINK + MYSQL.format(table=rest, option="") + INSERT
    if hostile.upper().startswith("INSERT"):
        return f"{TABLES}{SINK}{hostile};\n"
    return f"{TABLES}{SINK}{hostile};\n{INSERT}"


def test_corpus_is_large_and_its_frames_are_planned():
    assert len(CORPUS) == len(set(CORPUS)) >= 100
    for harmless in (
        "E:t",
        "KAFKA:'properties.security.protocol' = 'SSL'",
        "MYSQL:'port' = '1'",
        "MYSQLT:d",
    ):
        plan(script_with(harmless))


@pytest.mark.parametrize("hostile", CORPUS)
def test_hostile_statement_is_refused(hostile):
    with pytest.raises(SqlError) as caught:
        plan(script_with(hostile))
    assert caught.value.hint
