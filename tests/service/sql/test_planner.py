import json
from dataclasses import replace

import pytest

from joins.plan.plan import JoinPlan, VerifySchedule
from service.jobs.store import plan_codec
from service.jobs.store.plan_codec import PlanFormatError
from service.sql.catalog.settings import trigger_interval_ms
from service.sql.planner.planner import plan, plan_script
from tests.service.sql.scripts import JOIN, TABLES, selecting


def test_name_comes_from_the_caller_then_the_setting_then_the_sink():
    named = "SET 'pipeline.name' = 'mine';\n" + selecting("t")
    assert plan(named, name="yours").name == "yours"
    assert plan(named).name == "mine"
    assert plan(selecting("t")).name == "o"


def test_trigger_interval_is_in_milliseconds():
    assert trigger_interval_ms(plan(selecting("t"))) is None
    script = "SET 'sluice.trigger-interval' = '1 min';\n" + selecting("t")
    assert trigger_interval_ms(plan(script)) == 60_000


def test_a_table_is_compared_by_itself_as_its_options_say():
    def schedule(options):
        script = selecting("t").replace("'table-name' = 'd'", f"'table-name' = 'd'{options}", 1)
        return plan(script).dimensions[0].verify

    assert schedule("") is None
    assert schedule(", 'verify.interval' = '1 d'") == VerifySchedule(86_400_000, 5_000)
    paced = schedule(", 'verify.interval' = '1 h', 'verify.rows-per-second' = '100'")
    assert paced == VerifySchedule(3_600_000, 100)


@pytest.mark.parametrize("kind", ["upsert-kafka", "kafka", "filesystem"])
def test_a_topic_and_files_are_compared_by_themselves_too(kind):
    of_key = "'key.format' = 'json', 'value.format' = 'json'"
    options = {
        "upsert-kafka": f"{TOPIC}{of_key}",
        "kafka": f"{TOPIC}'format' = 'debezium-json'",
        "filesystem": "'path' = 'levels', 'format' = 'json'",
    }
    script = selecting("t")
    first = script.index("WITH (")
    last = script.index(";", first)
    given = f"WITH ('connector' = '{kind}', {options[kind]}, 'verify.interval' = '1 h')"
    script = script[:first] + given + script[last:]

    assert plan(script).dimensions[0].verify == VerifySchedule(3_600_000, 5_000)


def test_warns_of_a_probe_that_starts_at_the_end():
    script = selecting("t").replace(", 'scan.startup.mode' = 'earliest-offset'", "")
    assert "scan.startup.mode" in plan_script(script).warnings[0]


TOPIC = "'topic' = 't', 'properties.bootstrap.servers' = 'b:1', "
BOTH = (
    f"WITH ('connector' = 'kafka', {TOPIC}'format' = 'json', 'scan.startup.mode' = "
    "'earliest-offset', 'sink.delivery-guarantee' = 'exactly-once');"
)
ENDS = (
    f"WITH ('connector' = 'upsert-kafka', {TOPIC}'key.format' = 'json', 'value.format' = 'json', "
    "'scan.bounded.mode' = 'latest-offset');"
)


def test_warns_of_options_of_the_other_role():
    def planned(key, options):
        script = f"CREATE TABLE a (k BIGINT) {BOTH} CREATE TABLE b (k BIGINT{key}) {options}"
        return plan_script(script + "INSERT INTO b SELECT k FROM a;")

    assert set(planned("", BOTH).warnings) == {
        'Option "sink.delivery-guarantee" of table "a" has no effect on a stream.',
        'Option "scan.startup.mode" of table "b" has no effect on a sink.',
    }
    bounded = 'Option "scan.bounded.mode" of table "b" has no effect on a sink.'
    assert bounded in planned(" PRIMARY KEY NOT ENFORCED", ENDS).warnings


def test_warns_of_null_for_a_not_null_column():
    script = selecting("t", "STRING NOT NULL")
    planned = plan_script(script)
    (warning,) = planned.warnings
    assert warning.startswith('Column "x" of "o" is NOT NULL')
    assert not planned.plan.output[0].nullable
    assert plan_script(selecting("COALESCE(t, '')", "STRING NOT NULL")).warnings == ()


WINDOW = """
CREATE TABLE o (t STRING, n BIGINT, PRIMARY KEY (t) NOT ENFORCED) WITH ('connector' = 'print');
INSERT INTO o SELECT t, COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' DAY))
GROUP BY window_start, window_end, t;
"""


def test_warns_of_null_in_the_key_of_a_result():
    (warning,) = plan_script(TABLES + WINDOW).warnings
    assert 'Column "t" of "o" is NOT NULL: a result that gives it NULL' in warning


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT s.t {JOIN}",
        "SELECT t FROM TABLE(SESSION(TABLE s PARTITION BY t, DESCRIPTOR(ts), INTERVAL '1' DAY))",
        "SELECT t FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER "
        "BY n) AS x FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' DAY))) WHERE x < 3",
    ],
)
def test_warns_of_lateness_without_aggregates(query):
    rowtime = "ts TIMESTAMP(3), WATERMARK FOR ts AS ts, p AS PROCTIME()"
    tables = TABLES.replace("p AS PROCTIME()", rowtime)
    sink = "CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');"
    setting = "SET 'table.exec.emit.allow-lateness' = '1 s';"
    (warning,) = plan_script(f"{setting}{tables}{sink}INSERT INTO o {query}").warnings
    assert warning.endswith("has no effect without aggregates.")


def test_a_window_needs_no_dimension():
    made = plan(TABLES + WINDOW)
    assert (made.joins, made.dimensions, made.probe.watermark) == ((), (), None)
    assert made.window is not None
    assert made.window.time is None
    assert made.needs_event_batches


def test_one_dimension_in_two_roles_is_read_once():
    script = f"""{TABLES}
    CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
    INSERT INTO o SELECT a.name || b.name FROM s
    JOIN d FOR SYSTEM_TIME AS OF s.p AS a ON s.k = a.id
    JOIN d FOR SYSTEM_TIME AS OF s.p AS b ON s.n = b.id
    """
    made = plan(script)
    assert [dimension.name for dimension in made.dimensions] == ["d"]
    assert [join.alias for join in made.joins] == ["a", "b"]


DAMAGED = {
    "not_json": (b"{", "not JSON"),
    "not_an_object": (b"[]", 'format version "None"'),
    "of_another_version": (b'{"format_version":99}', 'format version "99"'),
    "without_content": (b'{"format_version":1}', "damaged at name"),
    "not_utf8": (b"\xff", "not JSON"),
    "too_deep": (b"[" * 5000, "not JSON"),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_plan_is_a_typed_error(data, message):
    with pytest.raises(PlanFormatError, match=message):
        plan_codec.load(data)


def test_a_plan_that_was_stored_before_null_safe_keys_is_read():
    made = plan(selecting("t"))
    document = json.loads(plan_codec.dump(made))
    for join in document["joins"]:
        for key in join["keys"]:
            del key["null_safe"], key["uncast"]
    assert plan_codec.load(json.dumps(document).encode()) == made


def test_a_plan_that_was_stored_before_statement_sets_is_read():
    made = plan(selecting("t"))
    document = json.loads(plan_codec.dump(made))
    del document["more_inserts"]
    assert plan_codec.load(json.dumps(document).encode()) == made


def test_a_statement_set_is_a_plan_of_several_that_older_versions_do_not_run():
    insert = "INSERT INTO o SELECT {0}.t FROM s AS {0} JOIN d FOR SYSTEM_TIME AS OF {0}.p {1}"
    first, second = (insert.format(a, f"ON {a}.k = d.id") for a in ("a", "b"))
    head = f"{TABLES} CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');"
    made = plan(f"{head} EXECUTE STATEMENT SET BEGIN {first}; {second}; END;")
    assert b'"format_version":2' in plan_codec.dump(made)
    alone = [plan(f"{head} {text};") for text in (first, second)]
    assert [replace(part, sql="") for part in made.inserts] == [replace(a, sql="") for a in alone]


def test_stored_plan_is_json_with_its_format_version():
    data = plan_codec.dump(plan(selecting("t")))
    assert b'"format_version":1' in data
    assert isinstance(plan_codec.load(data), JoinPlan)


def test_a_preview_waits_for_no_late_row():
    hint = "/*+ OPTIONS('join.late-rows.wait' = '5 min') */"
    select = f"SELECT s.k, d.name FROM s JOIN d {hint} FOR SYSTEM_TIME AS OF s.p ON s.k = d.id"
    sink = "CREATE TABLE o (k BIGINT, name STRING) WITH ('connector' = 'blackhole');"
    made = plan(f"{TABLES}{sink} INSERT INTO o {select}")
    assert (made.late_wait_ms, made.needs_event_batches) == (300_000, True)
    shown = plan(f"{TABLES}{select}")
    assert (shown.late_wait_ms, shown.needs_event_batches) == (None, False)
