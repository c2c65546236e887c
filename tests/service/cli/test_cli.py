"""The command line as its users run it: with pipes, and where it matters as a process."""

import ast
import json
import os
import re
import socket
import subprocess
import sys

import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable
from typer.exceptions import TyperException

from joins.adapters.delta.log import create_table
from service.cli import main as cli
from service.errors import UnreachableError
from service.security.tokens import Credentials
from tests.support.control_plane import ROOT, script
from tests.support.documents import Documents
from tests.support.program import run_program


@pytest.fixture
def sluice(plane):
    def run(*arguments, text="", **variables):
        given = {"SLUICE_SERVER": plane.url, **variables}
        done = run_program(*arguments, given=text.encode(), **given)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    return run


@pytest.fixture
def process(plane):
    def run(*arguments, text=None):
        return subprocess.run(
            [sys.executable, "-m", "service.cli", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=ROOT,
            env={**os.environ, "SLUICE_SERVER": plane.url},
        )

    return run


def test_a_job_is_driven_from_the_command_line(plane, sluice, process, tmp_path):
    file = tmp_path / "job.sql"
    file.write_text(script())
    submitted = process("submit", str(file), "--name", "driven", "--wait", "join")
    assert submitted.returncode == 0, submitted.stderr
    job_id = submitted.stdout.strip()
    assert len(job_id) == 36
    shown = process("jobs", "get", "driven")
    assert "Running" in shown.stdout
    assert "MIN + processing time" in shown.stdout
    assert "\x1b" not in shown.stdout
    log = sluice("jobs", "logs", "driven")
    assert "runner runs" in log.stdout
    assert "\x1b" not in log.stdout
    assert sluice("jobs", "stop", "driven").returncode == 0
    with Documents(plane.url) as client:
        assert client.job(job_id)["state"] == "STOPPED"
    again = sluice("jobs", "resume", "driven", "--wait", "--timeout", "60")
    assert again.returncode == 0, again.stderr
    with Documents(plane.url) as client:
        assert client.job(job_id)["state"] == "JOINING"
    removed = sluice("jobs", "rm", "driven", "--with-output")
    assert removed.returncode == 0
    assert removed.stdout == ""
    assert "removed with its output" in removed.stderr


def test_a_script_comes_from_standard_input(sluice):
    submitted = sluice("submit", "-", "--output", "json", text=script())
    assert submitted.returncode == 0, submitted.stderr
    assert json.loads(submitted.stdout)["name"] == "enriched"


def test_a_job_that_fails_while_waiting_is_an_error(sluice):
    failed = sluice("submit", "-", "--name", "fail", "--wait", "join", text=script())
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-2:] == ["error: table is gone", "hint: Restore it."]


def test_a_bounded_job_is_waited_for(plane, sluice):
    job_id = sluice("submit", "-", "--name", "done", text=script()).stdout.strip()
    (plane.services.settings.jobs_dir / job_id / "go").touch()
    for wanted in ("finished", "joining"):
        again = sluice("submit", "-", "--key", "k", "--name", "done again", text=script())
        (plane.services.settings.jobs_dir / again.stdout.strip() / "go").touch()
        waited = sluice(
            "submit", "-", "--key", "k", "--name", "done again", "--wait", wanted, text=script()
        )
        assert waited.returncode == 0, waited.stderr
    with Documents(plane.url) as client:
        client.when(job_id, state="FINISHED")
    assert "FINISHED" in sluice("jobs", "get", job_id).stdout


def test_the_same_script_twice_is_refused_with_the_jobs_id_by_every_command(plane, sluice):
    sql = script().replace("INTO enriched", "INTO twice").replace("TABLE enriched", "TABLE twice")
    job_id = sluice("submit", "-", text=sql).stdout.strip()
    for command in (("submit", "-"), ("validate", "-", "--outside"), ("sql", "-")):
        refused = sluice(*command, text=sql)
        assert refused.returncode == 1
        assert job_id in refused.stderr
        assert f"sluice jobs rm {job_id}" in refused.stderr.replace("\n", " ")
    renamed = sluice("validate", "-", "--outside", "--name", "another", text=sql)
    assert renamed.returncode == 0, renamed.stderr


def test_validate_needs_no_control_plane(sluice):
    good = sluice("validate", "-", text=script(), SLUICE_SERVER="http://127.0.0.1:1")
    assert good.returncode == 0
    assert good.stdout == "valid: job enriched\n"
    bad = sluice("validate", "-", text="SELECT 1", SLUICE_SERVER="http://127.0.0.1:1")
    assert bad.returncode == 1
    error, line, caret, hint = bad.stderr.splitlines()
    assert error.startswith("error: line 1")
    assert line == "  SELECT 1"
    assert caret.strip() == "^"
    assert hint.startswith("hint: ")


NOWHERE = "http://127.0.0.1:1"
OF_FLINK = "'elasticsearch-7'"


def test_migrate_writes_the_script_as_it_would_be_accepted(sluice, tmp_path):
    sql, target = script().replace("'blackhole'", OF_FLINK), tmp_path / "migrated.sql"
    assert OF_FLINK in sql
    shown = sluice("migrate", "-", text=sql, SLUICE_SERVER=NOWHERE)
    assert shown.returncode == 0, shown.stderr
    assert "-- sluice: " in shown.stdout
    assert "accepted after 1 change" in shown.stderr
    written = sluice("migrate", "-", "--into", str(target), text=sql, SLUICE_SERVER=NOWHERE)
    assert (written.returncode, written.stdout) == (0, "")
    assert target.read_text() == shown.stdout
    valid = sluice("validate", str(target), SLUICE_SERVER=NOWHERE)
    assert valid.returncode == 0, valid.stderr


def test_migrate_says_what_is_left_and_exits_with_1(sluice):
    sql = f"CALL f(1);\n{script()}"
    left = sluice("migrate", "-", "--output", "json", text=sql, SLUICE_SERVER=NOWHERE)
    assert left.returncode == 1
    answer = json.loads(left.stdout)
    assert not answer["accepted"]
    assert "-- sluice: NOT CHANGED: CALL statements are not supported" in answer["sql"]
    assert [each["line"] for each in answer["left"]] == [2]
    assert "error: line 2" in left.stderr
    nowhere = sluice("migrate", "-", "--into", "/nowhere/x.sql", text=script())
    assert nowhere.returncode == 1
    assert 'script "/nowhere/x.sql" cannot be written' in nowhere.stderr


def test_validate_shows_every_fault_and_the_clause_that_would_be_accepted(sluice):
    sql = f"CALL f(1);\n{script()}".replace("'blackhole'", OF_FLINK)
    bad = sluice("validate", "-", text=sql, SLUICE_SERVER=NOWHERE)
    assert bad.returncode == 1
    faults = [line for line in bad.stderr.splitlines() if line.startswith("error: ")]
    assert len(faults) == 2
    assert "as it would be accepted:" in bad.stderr
    assert "WITH (" in bad.stderr


def test_explain_warns_of_what_has_no_effect(sluice):
    sql = f"SET 'parallelism.default' = '4';\n{script()}"
    told = sluice("explain", "-", text=sql, SLUICE_SERVER=NOWHERE)
    assert told.returncode == 0, told.stderr
    assert 'Setting "parallelism.default" has no effect' in " ".join(told.stderr.split())


def test_explain_says_who_would_append_to_the_output_and_why(sluice, tmp_path):
    sql = script().replace("'blackhole'", "'delta', 'path'='out', 'row-metadata'='false'")

    def writer():
        told = sluice("explain", "-", text=sql, SLUICE_WAREHOUSE_DIR=str(tmp_path))
        assert told.returncode == 0, told.stderr
        return told.stdout.splitlines()[-1], told.stderr

    assert writer()[0] == "WRITER columnar"
    create_table(tmp_path / "out", pa.schema([("user_id", pa.int64()), ("name", pa.string())]))
    DeltaTable(str(tmp_path / "out")).alter.add_constraint({"small": "user_id < 9"})
    assert writer()[0] == "WRITER spark: the table uses delta.constraints.small"
    sql = sql.replace("name STRING) WITH ('connector'='delta'", "n INT) WITH ('connector'='delta'")
    sql = sql.replace("SELECT c.user_id, u.name", "SELECT c.user_id, CAST(1 AS INT)")
    last, talk = writer()
    assert not last.startswith("WRITER")
    assert "warning: delta table" in talk
    assert "has columns" in talk


WRONG = {
    "unknown_job": (["jobs", "get", "nobody"], 1, 'job "nobody" does not exist'),
    "no_such_file": (["submit", "/nowhere/job.sql"], 1, "cannot be read"),
    "no_server": (["jobs", "ls", "--server", "http://127.0.0.1:1"], 3, "connection refused"),
    "no_address": (["jobs", "ls", "--server", "nonsense"], 3, "is not an address"),
    "unknown_command": (["frobnicate"], 2, "No such command"),
    "unknown_option": (["jobs", "ls", "--frobnicate"], 2, "No such option"),
    "missing_argument": (["jobs", "stop"], 2, "Missing argument"),
    "unknown_form": (["jobs", "ls", "-o", "xml"], 2, "'-o': 'xml' is not one of 'table', 'json'"),
    "unknown_phase": (["wait", "driven", "heaven"], 2, '"heaven" is not a phase'),
    "verb_without_its_group": (["stop", "driven"], 2, "No such command"),
    "unknown_state": (["jobs", "ls", "--state", "runnin"], 2, '"runnin" is no state, expected'),
    "no_directory": (["up", "--data-dir", "/proc/x"], 1, '"/proc/x" cannot be created'),
    "no_name_of_a_topic": (
        ["topic", "create", "bad name", "--bootstrap", "127.0.0.1:1"],
        1,
        "no n",
    ),
}


@pytest.mark.parametrize(("arguments", "code", "message"), WRONG.values(), ids=WRONG)
def test_an_error_is_two_lines_and_an_exit_code(sluice, arguments, code, message):
    done = sluice(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    error, hint = done.stderr.splitlines()
    assert message in error
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")


MEANT = {
    "group_nearly": (["job", "ls"], "Run sluice jobs."),
    "verb_of_jobs": (["stop", "driven"], "Run sluice jobs stop."),
    "verb_of_jobs_nearly": (["resme", "driven"], "Run sluice jobs resume."),
    "other_name_of_a_verb": (["list"], "Run sluice jobs ls."),
    "other_name_with_no_letter_alike": (["delete", "driven"], "Run sluice jobs rm."),
    "verb_of_another_group": (["discard"], "Run sluice dlq discard."),
    "other_name_in_its_own_group": (["tables", "list"], "Run sluice tables ls."),
    "verb_nearly": (["jobs", "logz", "driven"], "Run sluice jobs logs."),
    "option_nearly": (["jobs", "ls", "--outpt", "json"], "Use --output."),
    "option_with_alike_dashes": (["jobs", "ls", "--sort", "x"], "Run sluice jobs ls --help."),
    "what_ends_up": (["down"], "Press Ctrl-C where sluice up or sluice serve runs."),
    "statements_for_a_script": (
        ["sql", "SELECT * FROM t"],
        "Give the path of a file, or - for standard input. "
        "Statements themselves go to sluice sql -e.",
    ),
    "nothing_near": (["frobnicate"], "Run sluice --help."),
    "no_option_near": (["jobs", "ls", "--frobnicate"], "Run sluice jobs ls --help."),
}


@pytest.mark.parametrize(("arguments", "hint"), MEANT.values(), ids=MEANT)
def test_a_wrong_command_names_the_one_that_is_meant_once(sluice, arguments, hint):
    error, said = sluice(*arguments).stderr.splitlines()
    assert said == f"hint: {hint}"
    assert "Did you mean" not in error


def test_a_list_of_commands_has_whole_sentences(sluice):
    listed = " ".join(sluice("--help", COLUMNS="80").stdout.split())
    assert "Execute statements: answer questions, submit INSERTs, show the rows" in listed
    listed = " ".join(sluice("jobs", "--help", COLUMNS="80").stdout.split())
    assert "Change a job back to an older plan of it, which gets a new number" in listed
    assert "..." not in listed.partition("Commands:")[2]


NO_ADDRESSES = {
    "nothing": "",
    "a_word": "nonsense",
    "without_a_scheme": "localhost:8326",
    "another_scheme": "ftp://localhost:8326",
    "no_host": "http://",
    "half_a_bracket": "http://[::1",
    "no_port": "http://localhost:port",
}


@pytest.mark.parametrize("address", NO_ADDRESSES.values(), ids=NO_ADDRESSES)
@pytest.mark.parametrize("token", [None, "a token"], ids=["open", "with_a_token"])
def test_what_is_no_address_is_told_how_one_looks(address, token):
    with pytest.raises(UnreachableError, match="is not an address") as caught:
        Documents(address, Credentials(token=token))
    assert caught.value.hint == "Give the whole address, such as http://127.0.0.1:8326."


def test_a_whole_address_reaches_a_control_plane(plane):
    _, _, place = plane.url.partition("://")
    with pytest.raises(UnreachableError, match=f'"{place}" is not an address'):
        Documents(place)
    with Documents(f"http://{place}") as client:
        assert client.version()["name"] == "sluice"


def test_a_group_of_commands_by_itself_shows_its_help(sluice):
    done = sluice("jobs")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: sluice jobs ")
    assert re.search(
        r"^  pause +Pause a job after its batch, until it is resumed\.$", done.stderr, re.MULTILINE
    )


def test_a_refused_submission_shows_the_control_planes_hint(sluice):
    refused = sluice("submit", "-", text=script(password="wrong"))
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        'error: access denied for user "cdc"',
        "hint: Correct the password.",
    ]


def test_serve_says_what_is_in_its_way(plane, process, tmp_path):
    data_dir = str(plane.services.settings.data_dir)
    twice = process("serve", "--data-dir", data_dir, "--port", "0")
    assert twice.returncode == 1
    assert "in use by another control plane" in twice.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        in_use = process("serve", "--data-dir", str(tmp_path / "data"), "--port", port)
    assert in_use.returncode == 1
    assert f"port {port}" in in_use.stderr
    assert not (tmp_path / "data" / "jobs.db").exists()
    everywhere = process("serve", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "never"))
    assert everywhere.returncode == 1
    assert "SLUICE_TLS_CERT" in everywhere.stderr
    assert not (tmp_path / "never").exists()
    assert len(everywhere.stderr.splitlines()) == 2


@pytest.mark.usefixtures("processes")
def test_serve_runs_until_sigterm_and_ends_with_0(tmp_path):
    command = [sys.executable, "-m", "service.cli", "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path)], stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as serving:
        first = serving.stderr.readline()
        assert first.startswith("control plane at http://127.0.0.1:")
        with Documents(first.split()[3].rstrip(",")) as client:
            assert client.version()["name"] == "sluice"
            assert client.jobs() == []
        serving.terminate()
        assert serving.wait(timeout=120) == 0


def test_help_and_version_are_data(sluice):
    assert "submit" in sluice("--help").stdout
    assert sluice("version").stdout.strip() == sluice("--version").stdout.strip() != ""


@pytest.mark.parametrize("waiting", ["submit", "wait"])
def test_who_waits_for_a_job_that_is_removed_is_told_so(plane, sluice, waiting):
    command = [sys.executable, "-m", "service.cli"]
    if waiting == "wait":
        sluice("submit", "-", "--name", "goes", "--wait", "join", text=script())
        command += ["wait", "goes", "finished"]
    else:
        command += ["submit", "-", "--name", "goes", "--wait", "finished"]
    variables = {**os.environ, "SLUICE_SERVER": plane.url}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, env=variables, **pipes) as waiter:
        if waiting == "submit":
            waiter.stdin.write(script())
        waiter.stdin.close()
        assert any("Running" in line for line in iter(waiter.stderr.readline, ""))
        assert sluice("jobs", "rm", "goes").returncode == 0
        told = waiter.stderr.read().splitlines()[-2:]
    assert waiter.returncode == 1
    assert told[0].endswith(" was removed while waiting for it")
    assert told[1] == "hint: Submit its script again."


def commands(group, words=()):
    """Every command with the words that it is called by."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


REQUIRED = {
    " ".join((*words, each.name)): (words, command, each)
    for words, command in commands(typer.main.get_command(cli.app))
    for each in command.params
    if each.required
}


@pytest.mark.parametrize(("words", "command", "missing"), REQUIRED.values(), ids=REQUIRED)
def test_what_a_command_needs_is_named_with_its_meaning_when_it_is_missing(words, command, missing):
    given = []
    for each in command.params:
        if each.required and each is not missing:
            value = "join" if each.name == "phase" else "5"
            given += [value] if each.param_type_name == "argument" else [each.opts[-1], value]
    if missing.param_type_name == "argument":  # what comes after it would take its place
        given = given[: [each.name for each in command.params].index(missing.name)]
    with pytest.raises(TyperException) as raised:
        cli.app([*words, *given], standalone_mode=False)
    hint = cli._usage_hint(raised.value, raised.value.format_message())
    assert hint.startswith("Give ")
    assert hint.endswith(".")


def test_to_learn_that_nobody_answers_little_is_loaded(processes):
    """What the typed client, the settings and the servers need takes most of a second."""
    code = (
        "import atexit, sys; from service.cli import main as cli\n"
        "atexit.register(lambda: print(*{each.partition('.')[0] for each in sys.modules}))\n"
        "sys.argv = ['sluice', 'jobs', 'ls', '--server', 'http://127.0.0.1:1']; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert done.returncode == 3
    loaded = set(done.stdout.split())
    heavy = {"pydantic_settings", "structlog", "stamina", "psutil", "pyarrow", "trio"}
    assert loaded & (heavy | {"fastapi", "sqlalchemy", "pyspark", "confluent_kafka"}) == set()


FILLED_IN = re.compile(r"\b(JOB|NAME|TABLE|BATCH)\b")
PLACEHOLDER = re.compile(r"sluice [a-z][a-z -]*\b(JOB|NAME|TABLE|BATCH)\b")


def test_no_text_that_is_shown_has_a_command_with_a_place_to_fill_that_we_know():
    found = []
    for file in sorted((ROOT / "service").rglob("*")):
        if file.suffix == ".js":
            found += [(file.name, each[0]) for each in PLACEHOLDER.finditer(file.read_text())]
        elif file.suffix == ".py" and FILLED_IN.search(file.read_text()):
            nodes = list(ast.walk(ast.parse(file.read_text())))
            docs = {id(node.body[0].value) for node in nodes if _has_docstring(node)}
            found += [
                (file.name, node.value)
                for node in nodes
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docs
                and PLACEHOLDER.search(node.value)
            ]
    assert found == []


def _has_docstring(node):
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, holders) and bool(node.body) and isinstance(node.body[0], ast.Expr)
