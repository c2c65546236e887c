"""All faults of a script at once, and the script as it would be accepted."""

import re
from dataclasses import replace

import pytest

from service.sql.answers import findings as module
from service.sql.answers.findings import (
    MARK,
    MOST_FAULTS,
    MOST_ROUNDS,
    TEXT_OF_ALL_ROUNDS,
    findings,
    migrate,
    revised,
)
from service.sql.planner.planner import plan_script
from service.sql.text.script import OUTSIDE
from tests.support.lanes import some_of
from tests.support.sql_cases import sql_cases
from tests.support.sql_hints import followed, refusal, says_how

STREAM = (
    "CREATE TABLE clicks (id BIGINT, uid BIGINT, name STRING, proc AS PROCTIME()) WITH (\n"
    "  'connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'b:1',\n"
    "  'scan.startup.mode' = 'earliest-offset', 'format' = 'json'\n);\n"
)
USERS = (
    "CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (\n"
    "  'connector' = 'mysql-cdc',\n  'hostname' = 'db',\n  'username' = 'u',\n"
    "  'password' = 'hunter2',\n  'database-name' = 'shop',\n  'table-name' = 'users'{}\n);\n"
)
SERVER = "'properties.bootstrap.servers' = 'b:1', 'scan.startup.mode' = 'earliest-offset'"
SINK = "CREATE TABLE out_ (id BIGINT, name STRING) WITH ('connector' = '{}');\n"
QUERY = (
    "INSERT INTO out_ SELECT c.id, u.{} FROM clicks AS c\n"
    "LEFT JOIN users FOR SYSTEM_TIME AS OF c.proc AS u ON c.uid = u.id;\n"
)
MANY = (
    STREAM
    + USERS.format(",\n  'scan.startup.mode' = 'latest-offset',\n  'debezium.x' = 'y'")
    + SINK.format("elasticsearch-7")
    + "CALL f(1);\n"
    + QUERY.format("nam")
    + "INSERT INTO out_ SELECT uid, name FROM clicks GROUP BY uid, name;\n"
)
WHOLE = STREAM + USERS.format("") + SINK.format("print") + QUERY.format("name")
NOTHING_ELSE = ("the script has no INSERT INTO", "the script is empty")


def test_an_accepted_script_has_no_findings():
    text = STREAM + USERS.format("") + SINK.format("print") + QUERY.format("name")
    assert findings(text) == ()
    assert migrate(text).changes == ()


def test_every_statement_and_every_option_is_checked():
    found = [(each.line, each.message) for each in findings(MANY)]
    assert [message for _, message in found] == [
        'option "scan.startup.mode" is "latest-offset", expected initial',
        'connector "mysql-cdc" has no option "debezium.x"',
        'unknown connector "elasticsearch-7"',
        "CALL statements are not supported",
        'unknown column "nam" in "u"',
        "GROUP BY without a window keeps a result for every key",
    ]
    lines = MANY.splitlines()
    assert "latest-offset" in lines[found[0][0] - 1]
    assert "GROUP BY" in lines[found[-1][0] - 1]


def test_a_finding_of_a_table_has_its_whole_with_clause_which_is_accepted():
    of_users = [each for each in findings(MANY) if "mysql-cdc" in (each.replacement or "")]
    assert len(of_users) == 2
    clause = of_users[0].replacement
    assert clause.startswith("WITH (")
    assert clause.endswith(")")
    assert "hunter2" not in clause
    head = USERS.partition("WITH")[0]
    text = STREAM + f"{head}{clause};" + SINK.format("print") + QUERY.format("name")
    assert refusal(text) is None


def test_a_fault_that_follows_from_another_one_is_no_finding():
    text = "CREATE TABLE a (id BIGINT id) WITH ('connector' = 'print');\nCREATE VIEW v AS SELECT "
    text += "id FROM a;\nCREATE TABLE o WITH ('connector' = 'print') AS SELECT id FROM v;\n"
    assert [each.line for each in findings(text)] == [1]


def test_a_drop_behind_the_insert_is_the_finding_and_takes_no_table_from_it():
    (found,) = findings(f"{WHOLE}DROP TABLE out_;")
    assert (found.line, found.message) == (16, "a statement follows the INSERT INTO")
    assert found.hint.startswith("Leave it out")
    declared, sink = WHOLE.partition("INSERT INTO")[0], SINK.format("print")
    insert = QUERY.format("name")
    assert findings(f"{declared}EXPLAIN {insert}DROP TABLE out_;\n{sink}{insert}") == ()


@pytest.mark.parametrize("questions", ["", "EXPLAIN SELECT id FROM clicks; "])
def test_a_question_beside_a_query_is_no_second_query(questions):
    preview = f"{STREAM}{questions}SELECT id FROM clicks; EXPLAIN SELECT uid FROM clicks;"
    assert refusal(preview) is None
    assert findings(preview) == ()
    (found,) = findings(f"{STREAM}{questions}EXPLAIN SELECT uid FROM clicks;")
    assert found.message == "the script has no INSERT INTO"


def test_all_inserts_of_a_set_are_checked():
    insert = "INSERT INTO out_ SELECT {}, name FROM clicks; "
    broken = "INSERT INTO out_ SELECT FROM clicks; "
    inserts = insert.format("x1") + broken + insert.format("x2")
    text = STREAM + SINK.format("print") + f"EXECUTE STATEMENT SET BEGIN {inserts} END;"
    found = sorted(each.message for each in findings(text))
    assert len(found) == 3
    assert [message for message in found if "unknown column" in message] == found[1:]


def test_a_text_that_is_no_script_has_one_finding():
    assert len(findings("SELECT 'x")) == 1
    assert len(findings("")) == 1


def test_migrate_changes_what_is_sure_and_says_so():
    text = STREAM + USERS.format("") + SINK.format("elasticsearch-7") + QUERY.format("name")
    migration = migrate(text)
    assert migration.is_accepted
    assert plan_script(migration.sql).plan.sink.path == "out_"
    (comment,) = [line for line in migration.sql.splitlines() if "elasticsearch-7" in line]
    assert comment.startswith(MARK)
    assert migration.sql.index(comment) < migration.sql.index("CREATE TABLE out_")
    assert "'password' = 'hunter2'" in migration.sql
    assert all("hunter2" not in change for change in migration.changes)
    assert any(
        line.startswith(MARK) and "inline secret" in line for line in migration.sql.splitlines()
    )


def damaged():
    """A script with one slip that has one meaning, by what was done where."""
    for kind, pattern, other in (
        ("no comma between options", r"(?<='),(?=\s+')", ""),
        ("no semicolon", r";(?=\n\w)", ""),
        ("a comma behind the last option", r"(?<=')\s*\)(?=;)", ",)"),
        ("a prompt", r"^(?=CREATE|INSERT)", "Flink SQL> "),
        ("a comment of a shell", r"^(?=CREATE|INSERT)", "# next\n"),
        ("a table of Hive's form", r"(?<=INSERT INTO )", "TABLE "),
    ):
        for match in re.finditer(pattern, WHOLE, re.MULTILINE):
            text = WHOLE[: match.start()] + other + WHOLE[match.end() :]
            yield pytest.param(text, id=f"{kind} at {match.start()}")


@pytest.mark.parametrize("text", list(damaged()))
def test_migrate_mends_slips_that_have_one_meaning(text):
    migration = migrate(text)
    assert migration.left == ()
    assert replace(plan_script(migration.sql).plan, sql="") == replace(
        plan_script(WHOLE).plan, sql=""
    )


def test_migrate_leaves_what_would_change_the_results():
    migration = migrate(MANY)
    assert "'scan.startup.mode' = 'latest-offset'" in migration.sql
    assert [each.message for each in migration.left] == [
        'option "scan.startup.mode" is "latest-offset", expected initial',
        'connector "mysql-cdc" has no option "debezium.x"',
        "CALL statements are not supported",
        'unknown column "nam" in "u"',
        "GROUP BY without a window keeps a result for every key",
    ]
    assert migration.sql.count(f"{MARK}NOT CHANGED: ") == len(migration.left)


def test_a_migrated_script_is_migrated_to_itself():
    for text in (
        MANY,
        STREAM + SINK.format("pulsar") + "INSERT INTO out_ SELECT id, name FROM clicks;",
    ):
        once = migrate(text).sql
        again = migrate(once)
        assert [line for line in again.sql.splitlines() if "NOT CHANGED" in line] == [
            line for line in once.splitlines() if "NOT CHANGED" in line
        ]
        assert again.changes == ()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("'topic-pattern' = 'a(?=b)', 'format' = 'json'", "a feature that only Java has"),
        ("'topic' = 'a', 'topic-pattern' = 'b', 'format' = 'json'", "are both given"),
        ("'topic' = 'a', 'format' = 'json', 'value.format' = 'csv'", "are given"),
    ],
)
def test_a_refused_option_stays_unless_the_script_is_right_without_it(options, fault):
    stream = f"CREATE TABLE clicks (id BIGINT) WITH ('connector' = 'kafka', {SERVER}, {options});\n"
    insert = "INSERT INTO out_ SELECT id, 'a' FROM clicks;"
    migration = migrate(stream + SINK.format("print") + insert)
    assert not migration.is_accepted
    assert any(fault in each.message for each in migration.left)
    assert options in migration.sql


def test_an_option_without_effect_is_removed():
    options = "'delta', 'path' = 'rows', 's3.region' = 'eu-west-1'"
    table = SINK.format("print").replace("'print'", options)
    migration = migrate(STREAM + table + "INSERT INTO out_ SELECT id, name FROM clicks;")
    assert migration.is_accepted, migration.left
    assert "\n  's3.region'" not in migration.sql
    assert dict(plan_script(migration.sql).plan.sink.store) == {}


def test_the_faults_of_a_large_script_are_limited(monkeypatch):
    rounds = []
    plan_once = module._faults
    monkeypatch.setattr(module, "_faults", lambda *parts: rounds.append(1) or plan_once(*parts))
    text = "".join(f"SET 'sluice.trigger-x{at}' = 'y';\n" for at in range(1_000))
    found = findings(text)
    assert len(rounds) <= TEXT_OF_ALL_ROUNDS // len(text)
    assert MOST_FAULTS <= len(found) <= MOST_FAULTS * (len(rounds) + 1)
    table = SINK.format("print").replace(
        "'print'", "'print', " + ", ".join(f"'a{at}' = 'b'" for at in range(500))
    )
    assert len(findings(STREAM + table + "INSERT INTO out_ SELECT id, name FROM clicks;")) <= (
        MOST_FAULTS * MOST_ROUNDS
    )


CASES = sql_cases("error")


def is_settled(text: str) -> bool:
    """True once every hint of the script was followed to a plan, or to one that says outside."""
    body = "\n".join(line for line in text.split("\n") if not line.startswith("-- fixed:"))
    left = [fault for fault, _ in revised(body, guesses=True).left]
    if all(
        fault.hint.startswith(OUTSIDE) or any(each in fault.message for each in NOTHING_ELSE)
        for fault in left
    ):
        return True
    then = refusal(followed(text)) if says_how(text) else left[0]
    return then is None or then.outside


@pytest.mark.parametrize("part", some_of(range(4), 0))
def test_hints_are_followed_until_the_script_is_accepted_or_outside(part):
    assert [name for name in list(CASES)[part::4] if not is_settled(CASES[name])] == []


@pytest.mark.parametrize("name", list(CASES)[::7])
def test_every_refused_script_has_a_finding_at_a_place_of_it(name):
    text = CASES[name]
    found = findings(text)
    lines = text.split("\n")
    assert found
    assert all(1 <= each.line <= len(lines) for each in found)
    assert len({(each.line, each.column, each.message) for each in found}) == len(found)
