"""`sluice up` as its users run it: everything starts, a script is there, and all of it ends."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pymysql
import pytest

from service.cli.up import has_display, next_commands
from service.demo.up import USERS
from tests.support.control_plane import ROOT
from tests.support.documents import Documents
from tests.support.wait import wait_until

FOUND = {"control_plane": "http://127.0.0.1:4711", "script": "/data/first job.sql"}
RUNS, RESTS = {"desired_state": "RUNNING"}, {"desired_state": "PAUSED"}
NEXT = {
    "at_first": ([], ["submit '/data/first job.sql' --wait join", "jobs watch first"]),
    "one_was_stopped": ([{"id": "a1", **RESTS}], ["jobs resume first --wait", "jobs watch first"]),
    "one_goes_on": ([{"id": "a1", **RUNS}], ["jobs watch first", "jobs logs first --follow"]),
    "two_were_left": (
        [{"id": "b2", **RESTS}, {"id": "a1", **RUNS}],
        ["jobs resume b2 --wait", "jobs watch b2"],
    ),
}


@pytest.mark.parametrize(("left", "expected"), NEXT.values(), ids=NEXT)
def test_what_to_type_next_goes_on_with_what_an_earlier_up_has_left(monkeypatch, left, expected):
    monkeypatch.setenv("PATH", "/nowhere")
    path, server, *commands = next_commands(FOUND, 8326, [SimpleNamespace(**job) for job in left])
    assert path == f"export PATH={Path(sys.executable).parent}:$PATH"
    assert server == "export SLUICE_SERVER=http://127.0.0.1:4711"
    assert commands[:2] == [f"sluice {command}" for command in expected]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert list(next_commands(FOUND, 4711, [SimpleNamespace(**job) for job in left])) == commands


@contextmanager
def up(directory):
    """`sluice up` on `directory`, and what it prints; all is ended by SIGTERM at the end."""
    command = [sys.executable, "-m", "service.cli", "up", "--port", "0", "-o", "json"]
    with subprocess.Popen(
        [*command, "--data-dir", str(directory)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as running:
        found = json.loads("".join(iter(running.stdout.readline, "}\n")) + "}")
        children = psutil.Process(running.pid).children(recursive=True)
        with Documents(found["control_plane"]) as client:
            yield found, client, children
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 0
    assert [child for child in children if child.is_running()] == []


def is_joining(client, job_id):
    return wait_until(
        lambda: client.job(job_id)["state"] == "JOINING", deadline_s=180, what="the job joins"
    )


@pytest.mark.experiment
@pytest.mark.usefixtures("processes")
def test_up_has_all_for_a_first_hour_and_its_jobs_outlive_the_database_and_up_itself(tmp_path):
    with up(tmp_path) as (found, client, children):
        script = Path(found["script"]).read_text()
        assert next(iter(found)) == "page"
        assert found["page"] == f"{found['control_plane']}/#/new/first"
        examples = client.get("/v1/examples")
        assert examples["items"] == [{"name": "first", "sql": script}]
        assert Path(examples["directory"], "mariadb.cnf") == Path(found["mariadb_options"])
        assert client.validate(script)["warnings"] == []
        prepare_an_example(found, tmp_path)
        job_id = client.submit(script)["id"]
        is_joining(client, job_id)
        runner = client.job(job_id)["runner"]["pid"]
        (database,) = [child for child in children if child.name() == "mariadbd"]
        database.kill()
        wait_until(lambda: users(found), deadline_s=60, what="the database serves again")
        assert users(found) == USERS
        is_joining(client, job_id)
        assert client.job(job_id)["runner"]["pid"] == runner, "its runner went on meanwhile"
    with up(tmp_path) as (found, client, _):
        is_joining(client, job_id)
        causes = [event["cause"] for event in client.events(job_id)]
        assert not [cause for cause in causes if "request" in cause]


def prepare_an_example(found, directory):
    """The documents' program asks the control plane where the servers are."""
    example = ROOT / "docs/examples/payments-and-rules"
    where = {"SLUICE_SERVER": found["control_plane"]}
    command = [sys.executable, example.parent / "prepare.py", example]
    subprocess.run(command, cwd=directory, env=os.environ | where, check=True)
    prepared = (directory / f"{example.name}.sql").read_text()
    assert found["mariadb"].rpartition(":")[2] in prepared
    assert found["kafka"] in prepared
    assert "<" not in prepared


def users(found):
    """How many users the database has; None while it does not answer."""
    try:
        with (
            pymysql.connect(read_default_file=found["mariadb_options"]) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT COUNT(*) FROM shop.user_info")
            return cursor.fetchone()[0]
    except pymysql.MySQLError:
        return None


@pytest.mark.parametrize(
    ("variables", "has_window"),
    [
        ({}, False),
        ({"DISPLAY": ""}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "w"}, True),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has a display")
def test_the_page_is_opened_only_where_a_browser_has_a_window(variables, has_window):
    assert has_display(variables) is has_window
