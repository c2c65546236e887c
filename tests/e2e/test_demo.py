"""The demo as a program: what it prints, and that an interrupted one leaves nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from service.jobs.store.layout import noted_pid
from tests.support.rig import descendants, is_alive
from tests.support.wait import wait_until

JVM = "pyspark-shell"


def naming(directory):
    """Living processes whose command line names `directory`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            found += [process] if str(directory) in " ".join(process.cmdline()) else []
    return found


@pytest.fixture
def scratch():
    directory = Path(tempfile.mkdtemp(prefix="sd-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def demo(scratch, java, spark_jars, broker_jars, database_home):
    """(process, pid of its job's runner), the runner just started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "demo", "--rows", "50000", "--json"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def runner() -> int | None:
        assert process.poll() is None, "the demo ended"
        jobs = scratch.glob("sluice-demo-*/data/jobs/*")
        return next((pid for job in jobs if (pid := noted_pid(job)) is not None), None)

    yield process, wait_until(runner, deadline_s=90, what="runner")
    process.kill()
    process.wait()


def test_the_demo_without_a_screen_ends_with_one_json_object(java, spark_jars, broker_jars):
    """What `make -s demo ARGS="--rows R --records N --exit --json"` runs."""
    command = [sys.executable, "-m", "service.cli", "demo", "--exit", "--json"]
    ran = subprocess.run(
        [*command, "--rows", "3000", "--records", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=240,
        check=True,
    )
    shown = json.loads(ran.stdout.splitlines()[-1])
    assert shown["phase"] == "JOIN"
    assert shown["snapshot_rows"] == 3000
    assert shown["joined_records"] >= 600
    assert shown["matched"] + shown["unmatched"] == shown["joined_records"]
    assert shown["early_records"] == 0
    assert shown["held_records"] > 0
    assert shown["dimension_version_at_open"] >= 0
    assert 0 < shown["seconds_to_open"] < shown["seconds_total"]


@pytest.mark.experiment
def test_a_sigterm_while_spark_starts_ends_everything(demo, scratch):
    process, runner = demo
    started = psutil.Process(process.pid).children(recursive=True)
    wait_until(lambda: descendants(psutil.Process(runner), JVM), what="the JVM starts")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=300)
    assert not is_alive(runner)
    wait_until(lambda: not any(is_alive(child.pid) for child in started), deadline_s=10)
    wait_until(lambda: not naming(scratch), deadline_s=10, what="the JVM is gone")
    assert list(scratch.glob("sluice-demo-*")) == []
