"""`sluice up` as its users run it: everything starts, a script is there, and all of it ends."""

import json
import signal
import subprocess
import sys

import psutil
import pymysql
import pytest

from service.client import Client
from service.demo.up import USERS
from tests.support.control_plane import ROOT

pytestmark = pytest.mark.integration


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
