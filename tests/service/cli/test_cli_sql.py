"""`sluice sql` over a real control plane: from a script, from -e, and at a prompt."""

import json
import os
import pty
import subprocess
import sys
import time

import pytest

from service.cli.conversation import Conversation, RowStream
from service.cli.output import show_json
from service.cli.prompt import Prompt, completions, is_whole
from service.client import RefusedError, Sluice
from service.errors import WaitTimeoutError
from service.sql.text.script import SqlError
from tests.support.control_plane import ROOT, script
from tests.support.documents import Documents
from tests.support.program import run_program

DECLARED, _, INSERT = script().rpartition("INSERT")
INSERT = f"INSERT{INSERT}"


@pytest.fixture
def client(plane):
    with Documents(plane.url) as found:
        yield found


@pytest.fixture
def talk(plane):
    told = []
    with Sluice(plane.url) as client:
        yield Conversation(client, told.append, 60.0), told


def test_each_statement_sees_what_those_before_it_have_declared(talk, client):
    carry, told = talk[0].carry_out, talk[1]
    carry(f"{DECLARED} SHOW TABLES; DESCRIBE users; EXPLAIN {INSERT}")
    tables, described, explained = told
    assert [row[0] for row in tables["rows"]] == list(talk[0].names)
    assert described["rows"][0][:2] == ["user_id", "BIGINT"]
    assert explained["rows"][0] == ["Sink(table=[enriched], connector=[blackhole()])"]
    carry("DROP TABLE users;")
    assert "users" not in talk[0].names
    with pytest.raises(RefusedError, match='unknown table "users"'):
        carry("DESCRIBE users;")
    assert client.jobs() == []
    assert len(told) == 3


def test_an_insert_is_submitted_and_a_job_is_stopped(talk, client):
    carry, told = talk[0].carry_out, talk[1]
    carry(f"SET 'pipeline.name'='typed'; {DECLARED}")
    carry(INSERT)
    ((job_id,),) = told[-1]["rows"]
    assert client.job(job_id)["name"] == "typed"
    carry(f"SHOW JOBS; STOP JOB '{job_id}';")
    assert [row[:2] for row in told[-2]["rows"]] == [[job_id, "typed"]]
    client.when(job_id, state="STOPPED")
    client.remove(job_id)


def test_a_fault_in_the_grammar_keeps_all_from_being_done(talk, client):
    with pytest.raises(SqlError) as told:
        talk[0].carry_out(f"{DECLARED}\n{INSERT};\nSHOW TABELS;")
    assert told.value.line == script().count("\n") + 3
    assert (client.jobs(), talk[1], talk[0].names) == ([], [], ())


def test_a_refusal_keeps_what_was_declared_before_it(talk):
    carry, told = talk[0].carry_out, talk[1]
    with pytest.raises(RefusedError, match="nowhere"):
        carry(f"{DECLARED} SHOW VIEWS; DESCRIBE nowhere; SHOW TABLES")
    assert [found["statement"] for found in told] == ["SHOW VIEWS"]
    carry("DESC users")
    assert told[-1]["statement"] == "DESCRIBE"


def test_a_preview_shows_its_rows_and_is_removed(talk, client, capsys):
    carry, told = talk[0].carry_out, talk[1]
    query = INSERT.removeprefix("INSERT INTO enriched")
    carry(f"SET 'pipeline.name'='looks'; {DECLARED} {query}")
    assert told[-1]["columns"] == ["op", "id", "name"]
    assert told[-1]["rows"] == [["+I", "1", "\u202e2\u2028\x85"], ["-U", "1", None]]
    assert "2 records could not be read" in capsys.readouterr().err
    assert client.jobs() == []


def test_a_preview_that_takes_too_long_is_removed_and_says_so(talk, client):
    talk[0].timeout_s = 0
    query = INSERT.removeprefix("INSERT INTO enriched")
    with pytest.raises(WaitTimeoutError, match="after 0 s") as caught:
        talk[0].carry_out(f"SET 'pipeline.name'='flows'; {DECLARED} {query}")
    assert "--timeout" in caught.value.hint
    assert "sluice jobs get" not in caught.value.hint
    assert client.jobs() == []


class Shown:
    """A screen: what rows it has shown, and what happens then."""

    def __init__(self, then=lambda: None):
        self.rows, self._then = [], then

    def show(self, columns, rows):
        self.rows += rows
        self._then()

    def end(self):
        self.rows.append("end")


def test_rows_of_a_preview_are_shown_while_it_runs_up_to_its_limit(talk, client):
    screen = Shown()
    talk[0].live = lambda: screen
    query = INSERT.removeprefix("INSERT INTO enriched").rstrip().rstrip(";")
    talk[0].carry_out(f"SET 'pipeline.name'='flows'; {DECLARED} {query} LIMIT 2;")
    assert screen.rows == [["+I", "0"], ["+I", "1"], "end"]
    assert (client.jobs(), talk[1]) == ([], [])


def test_ctrl_c_ends_a_preview_and_nothing_else(talk, client, capsys):
    other = client.submit(script(), "other")["id"]

    def interrupt():
        raise KeyboardInterrupt

    screen = Shown(interrupt)
    talk[0].live = lambda: screen
    query = INSERT.removeprefix("INSERT INTO enriched")
    lines = [f"SET 'pipeline.name'='flows'; {DECLARED}", query, "SHOW TABLES;"]
    Prompt(talk[0], typed(*lines)).run()
    assert "interrupted" in capsys.readouterr().err
    assert len(screen.rows) == 3
    assert [job["id"] for job in client.jobs()] == [other]
    assert talk[1][-1]["statement"] == "SHOW TABLES"
    client.remove(other)


def test_columns_never_become_narrower(capsys):
    stream = RowStream()
    stream.show(["op", "name"], [["+I", "a name"], ["+I", None]])
    stream.show(["op", "name"], [["-U", "\x1b[2J"]])
    stream.end()
    said = capsys.readouterr()
    lines = ["op  name", "+I  a name", "+I  NULL", "-U  �[2J"]
    assert [line.rstrip() for line in said.out.splitlines()] == lines
    assert said.err == "(3 rows)\n"


def sluice(plane, *arguments, text=""):
    done = run_program("sql", *arguments, given=text.encode(), SLUICE_SERVER=plane.url)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def test_a_pipe_gets_tables_or_a_document_a_statement(plane, tmp_path):
    shown = sluice(plane, text=f"{DECLARED} SHOW TABLES;")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1:] == ["clicks", "enriched", "users"]
    file = tmp_path / "ask.sql"
    file.write_text(f"{DECLARED} SHOW TABLES;")
    document = json.loads(sluice(plane, str(file), "-o", "json").stdout)
    assert document["rows"] == [["clicks"], ["enriched"], ["users"]]
    empty = sluice(plane, "-e", "SHOW JOBS")
    assert "job id" in empty.stdout
    assert empty.stderr == "(no rows)\n"
    wrong = sluice(plane, "-e", "SHOW TABELS")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: ")
    assert "hint: " in wrong.stderr
    assert sluice(plane, str(file), "-e", "SET").returncode == 2


# The prompt
# --------------------------------------------------------------------------------------------------


def typed(*lines):
    """A terminal at which these lines are typed; an exception is a key such as Ctrl-C."""
    left = list(lines)

    def read(prompt):
        if not left:
            raise EOFError
        line = left.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line

    return read


def test_a_prompt_takes_lines_until_a_semicolon_and_survives_refusals(talk, capsys):
    lines = ("help", "SHOW", "TABELS;", "SHOW 'half", KeyboardInterrupt(), "SHOW", "JOBS;", "quit")
    Prompt(talk[0], typed(*lines, "SHOW VIEWS;")).run()
    said = capsys.readouterr().err
    assert "INSERT INTO …     submits a job" in said
    assert 'error: expected what to show, found "TABELS"\n  TABELS;\n  ^\nhint: ' in said
    assert [found["statement"] for found in talk[1]] == ["SHOW JOBS"]


WHOLE = {
    "closed": ("SHOW JOBS;", True),
    "closed_behind_a_comment": ("SHOW JOBS -- now\n;", True),
    "open": ("SHOW JOBS", False),
    "half_a_string": ("SET 'a;", False),
    "half_a_comment": ("SHOW JOBS /* ;", False),
    "in_a_statement_set": ("BEGIN STATEMENT SET; INSERT INTO a SELECT 1;", False),
    "nothing": (" ; ", False),
}


@pytest.mark.parametrize(("text", "whole"), WHOLE.values(), ids=WHOLE)
def test_a_statement_ends_with_its_semicolon(text, whole):
    assert is_whole(text) is whole


def test_keywords_and_names_are_completed_in_the_case_that_is_typed():
    names = ("describe_me", "users")
    assert completions("desc", names) == ["describe", "describe_me"]
    assert completions("DESC", names) == ["DESCRIBE", "describe_me"]
    assert completions("us", names) == ["users"]
    assert completions("zz", names) == []
    columns = ("user_id", "name", "user_id")
    assert completions("us", names, columns) == ["user_id", "users"]
    assert completions("u.", names, columns) == ["u.name", "u.user_id"]
    assert completions("u.US", names, columns) == ["u.user_id"]


def test_columns_of_what_is_declared_are_known_when_somebody_completes(talk):
    talk[0].in_parts = True  # as at the prompt
    assert talk[0].columns() == ()
    talk[0].carry_out(f"{DECLARED} CREATE VIEW v AS SELECT item AS thing FROM clicks;")
    assert {"user_id", "item", "name", "proctime", "thing"} == set(talk[0].columns())
    talk[0].carry_out("DROP VIEW v;")
    assert "thing" not in talk[0].columns()


def test_a_terminal_has_history_without_passwords_and_completion(plane, tmp_path):
    lines = ["SHOW FUN\t;", "SET 'x.password' = 'open sesame';", "DROP VIEW nothing;", "quit"]
    leader, follower = pty.openpty()
    environment = {
        **os.environ,
        "SLUICE_SERVER": plane.url,
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "xterm",
    }
    program = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "sql"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    os.close(follower)
    seen = b""
    try:
        for line in lines:
            seen = until(leader, b"sluice> ")
            os.write(leader, line.encode() + b"\n")
        assert program.wait(60) == 0
    finally:
        program.kill()
        os.close(leader)
    history = tmp_path / "sluice/sql_history"
    kept = history.read_text()
    assert "SHOW FUNCTIONS;" in kept
    assert "password" in kept
    assert "sesame" not in kept
    assert history.stat().st_mode & 0o077 == 0
    assert b"error: " in seen


def until(leader, wanted):
    """What a terminal shows up to `wanted`."""
    seen, deadline = b"", time.monotonic() + 60
    while wanted not in seen:
        assert time.monotonic() < deadline, seen
        seen += os.read(leader, 4096)
    return seen


def test_json_is_one_document_a_statement(talk, capsys):
    Conversation(talk[0].client, show_json, 60.0).carry_out("SHOW JOBS; SHOW VIEWS")
    found = capsys.readouterr().out
    first, end = json.JSONDecoder().raw_decode(found)
    second = json.loads(found[end:])
    assert [first["statement"], second["statement"]] == ["SHOW JOBS", "SHOW VIEWS"]
