"""`sluice up` as its users run it: everything starts, a script is there, and all of it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pymysql
import pytest

from service.cli_up import next_commands
from service.client import Client
from service.demo.up import USERS
from tests.support.control_plane import ROOT

FOUND = {"control_plane": "http://127.0.0.1:4711", "script": "/data/first job.sql"}
NEXT = {
    "at_first": ([], ["submit '/data/first job.sql' --wait join", "jobs watch first"]),
    "one_was_left": ([{"id": "a1"}], ["jobs resume first --wait", "jobs watch first"]),
    "two_were_left": ([{"id": "b2"}, {"id": "a1"}], ["jobs resume b2 --wait", "jobs watch b2"]),
}


@pytest.mark.parametrize(("left", "expected"), NEXT.values(), ids=NEXT)
def test_what_to_type_next_goes_on_with_what_an_earlier_up_has_left(monkeypatch, left, expected):
    monkeypatch.setenv("PATH", "/nowhere")
    path, server, *commands = next_commands(FOUND, 8326, left)
    assert path == f"export PATH={Path(sys.executable).parent}:$PATH"
    assert server == "export SLUICE_SERVER=http://127.0.0.1:4711"
    assert commands[:2] == [f"sluice {command}" for command in expected]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert list(next_commands(FOUND, 4711, left)) == commands


@pytest.mark.integration
def test_up_has_all_for_a_first_hour_and_leaves_nothing_running(tmp_path):
    command = [sys.executable, "-m", "service.cli", "up", "--port", "0", "-o", "json"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as running:
        lines = iter(running.stdout.readline, "}\n")
        found = json.loads("".join(lines) + "}")
        children = psutil.Process(running.pid).children(recursive=True)
        with Client(found["control_plane"]) as client, open(found["script"]) as script:
            checked = client.validate(script.read())
        with (
            pymysql.connect(read_default_file=found["mariadb_options"]) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT COUNT(*) FROM shop.user_info")
            assert cursor.fetchone() == (USERS,)
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 0
    assert checked["name"] == "first"
    assert checked["warnings"] == []
    assert len(children) >= 2
    assert [child for child in children if child.is_running()] == []
