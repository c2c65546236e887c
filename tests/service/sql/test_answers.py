"""Questions of a script: what they are answered, and that nothing else happens."""

import pytest

from service.errors import JobNotFoundError
from service.sql.answers.answers import JobRow, answers
from service.sql.expressions.expression_text import NAMES
from service.sql.planner.planner import plan, plan_script
from service.sql.text.script import SqlError
from tests.service.sql.scripts import JOIN, TABLES

CANARY = "c4n4ry"
INSERT = f"INSERT INTO o SELECT t {JOIN};"
SINK = "CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');"


class OneJob:
    """The jobs of a control plane that has one."""

    def __init__(self):
        self.stopped = []

    def all(self):
        return [JobRow("1", "clicks", "JOINING", "2026-01-01T00:00:00.000+00:00")]

    def find(self, job_id):
        if job_id != "1":
            raise JobNotFoundError(f'there is no job "{job_id}"', hint="SHOW JOBS lists them.")
        return self.all()[0]

    def stop(self, job_id):
        self.stopped.append(job_id)
        return self.find(job_id)


def asked(script):
    return answers(script, OneJob())


def only(script):
    (answer,) = asked(script)
    return answer


def rows(script):
    return [list(row) for row in only(script).rows]


def test_a_table_is_described():
    script = TABLES.replace("n INT", "n INT METADATA FROM 'partition' VIRTUAL") + "DESCRIBE s;"
    answer = only(script)
    assert answer.columns == ("name", "type", "null", "key", "extras", "watermark")
    assert answer.line == script.count("\n") + 1
    assert list(answer.rows) == [
        ("k", "BIGINT", "TRUE", None, None, None),
        ("n", "INT", "FALSE", None, "METADATA FROM 'partition' VIRTUAL", None),
        ("t", "STRING", "TRUE", None, None, None),
        ("ok", "BOOLEAN", "TRUE", None, None, None),
        ("r", "DOUBLE", "TRUE", None, None, None),
        ("p", "TIMESTAMP_LTZ(3)", "FALSE", None, "AS PROCTIME()", None),
    ]
    assert rows(TABLES + "DESC d;")[0] == ["id", "BIGINT", "FALSE", "PRI(id)", None, None]


def test_a_described_table_shows_its_watermark():
    time = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, p AS PROCTIME()"
    script = TABLES.replace("p AS PROCTIME()", time)
    assert rows(script + "DESCRIBE s;")[5] == [
        *("ts", "TIMESTAMP(3)", "TRUE", None, None),
        "ts - INTERVAL '5' SECOND",
    ]
    (shown,) = rows(script + "SHOW CREATE TABLE s;")
    assert "WATERMARK FOR `ts` AS ts - INTERVAL '5' SECOND" in shown[0]
    assert shown == rows(f"{shown[0]}; SHOW CREATE TABLE s;")[0]


def test_a_nested_column_is_described_with_its_parts():
    script = TABLES.replace("p AS PROCTIME()", "nest ROW<id INT, at TIMESTAMP(3)>, p AS PROCTIME()")
    assert rows(script + "DESCRIBE s;")[5][:3] == [
        *("nest", "ROW<`id` INT, `at` TIMESTAMP(3)>", "TRUE")
    ]
    view = "CREATE VIEW v AS SELECT nest.id, nest FROM s; DESCRIBE v;"
    assert [row[:2] for row in rows(script + view)] == [
        ["id", "INT"],
        ["nest", "ROW<`id` INT, `at` TIMESTAMP(3)>"],
    ]


def test_a_view_is_described_by_the_types_of_its_query():
    view = "CREATE VIEW v AS SELECT k + 1 AS next, 'a' AS letter FROM s; DESCRIBE v;"
    assert rows(TABLES + view) == [
        ["next", "BIGINT", "TRUE", None, None, None],
        ["letter", "STRING", "FALSE", None, None, None],
    ]


def test_what_is_there_is_listed_at_the_place_of_the_question():
    script = (
        "SHOW TABLES;" + TABLES + "CREATE VIEW v AS SELECT k FROM s; SHOW TABLES; DROP TABLE d;"
    )
    first, second, third, views = asked(script + "SHOW TABLES; SHOW VIEWS;")
    assert first.columns == ("table name",)
    assert [answer.rows for answer in (first, second, third, views)] == [
        (),
        (("d",), ("s",), ("v",)),
        (("s",), ("v",)),
        (("v",),),
    ]


def test_functions_are_listed():
    assert only("SHOW FUNCTIONS").rows == tuple((name,) for name in NAMES)


def test_settings_are_shown_as_they_are_now():
    shown = dict(only("SET 'pipeline.name' = 'a'; SET; RESET;").rows)
    assert shown["pipeline.name"] == "a"
    assert shown["execution.runtime-mode"] == "streaming"


def test_a_shown_table_declares_the_same_table_again():
    table = (
        "CREATE TABLE a (c CHAR(3), v VARCHAR(9) NOT NULL, s STRING, b VARBINARY(2), "
        "d DECIMAL(4, 2), r ROW<`a b` VARCHAR(2) NOT NULL 'x', l TIMESTAMP(3) ARRAY>, "
        "m MAP<STRING, ROW(i INT)>, o BIGINT METADATA FROM 'offset' VIRTUAL, "
        "x AS UPPER(s) || 'it''s', p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'a', "
        "'properties.bootstrap.servers' = 'b:9092', 'format' = 'json')"
    )
    (shown,) = rows(f"{table}; SHOW CREATE TABLE a;")
    assert shown == rows(f"{shown[0]}; SHOW CREATE TABLE a;")[0]
    nested = "`r` ROW<`a b` VARCHAR(2) NOT NULL, `l` ARRAY<TIMESTAMP(3)>>"
    for part in (
        nested,
        "`m` MAP<STRING, ROW<`i` INT>>",
        "CHAR(3)",
        "VARCHAR(9) NOT NULL",
        "VARBINARY(2)",
        "AS UPPER(s) || 'it''s'",
    ):
        assert part in shown[0]


def test_a_shown_view_has_its_query_as_written():
    view = "CREATE VIEW v (a) AS SELECT  k FROM s"
    assert rows(f"{TABLES}{view}; SHOW CREATE VIEW v") == [
        ["CREATE VIEW `v` (`a`) AS\nSELECT  k FROM s"]
    ]


def test_no_answer_shows_a_credential():
    script = TABLES.replace("${secret:shop}", CANARY) + SINK
    hint = f"/*+ OPTIONS('password'='{CANARY}') */"
    view = f"CREATE VIEW v AS SELECT id FROM d {hint};"
    like = "CREATE TABLE e LIKE d;"
    shown = "SHOW CREATE TABLE d; SHOW CREATE TABLE e; SHOW CREATE VIEW v; DESCRIBE v;"
    found = asked(f"{script}{view}{like}{shown} EXPLAIN {INSERT}")
    assert len(found) == 5
    assert CANARY not in repr(found)


def test_explain_shows_the_plan_of_the_statement():
    script = TABLES + SINK
    assert rows(f"{script} EXPLAIN {INSERT}")[:2] == [
        ["Sink(table=[o], connector=[blackhole()])"],
        ["+- Calc(select=[s.t AS x])"],
    ]
    preview = rows(f"{script} EXPLAIN SELECT t {JOIN} LIMIT 5")
    assert preview[0] == ["Sink(table=[preview], connector=[print(, 5 rows)])"]


def test_explain_has_a_note_for_each_thing_without_effect():
    tables = TABLES.replace("'format' = 'json'", "'format' = 'json', 'properties.acks' = 'all'", 1)
    setting = "SET 'parallelism.default' = '4';"
    notes = [row[0] for row in rows(f"{setting}{tables}{SINK} EXPLAIN {INSERT}")]
    notes = [text for text in notes if text.startswith("NOTE ")]
    assert len(notes) == 2
    assert notes[0].startswith('NOTE Setting "parallelism.default" has no effect: ')
    assert notes[1].startswith('NOTE Option "properties.acks" of table "s" has no effect: ')


def test_jobs_are_shown_and_stopped():
    jobs = OneJob()
    shown, stopped = answers("SHOW JOBS; STOP JOB '1';", jobs)
    assert shown.columns == ("job id", "job name", "status", "start time")
    assert [row[1] for row in shown.rows] == ["clicks"]
    assert stopped.rows[0][0] == "1"
    assert jobs.stopped == ["1"]


@pytest.mark.parametrize(
    "fault", ["SHOW NOTHING", "DESCRIBE x", "STOP JOB '2'", INSERT, "SELECT 1"]
)
def test_no_job_is_stopped_by_a_script_with_a_fault(fault):
    jobs = OneJob()
    with pytest.raises((SqlError, JobNotFoundError)):
        answers(f"STOP JOB '1'; {TABLES} {SINK} {fault};", jobs)
    assert jobs.stopped == []


REFUSED = {
    "a job": (TABLES + SINK + INSERT, "a job cannot be started here"),
    "a preview": (f"{TABLES} SELECT t {JOIN}", "a job cannot be started here"),
    "nothing": ("SET 'pipeline.name' = 'a';", "the script has no statement to answer"),
    "an unknown table": ("DESCRIBE s", 'unknown table "s"'),
}


@pytest.mark.parametrize(("script", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_question_is_refused(script, message):
    with pytest.raises(SqlError) as caught:
        asked(script)
    assert message in caught.value.message
    assert caught.value.hint.endswith((".", "?"))


def test_a_job_tells_which_questions_it_leaves_out():
    planned = plan_script(f"{TABLES}{SINK}\nDESCRIBE s;\n{INSERT}")
    assert planned.plan == plan(f"{TABLES}{SINK}\nDESCRIBE s;\n{INSERT}")
    assert planned.warnings[-1].startswith("Line 11 asks something")
