"""A child of ours gets the secrets that its job refers to, and shows none of them to anybody."""

import hashlib
import json
import sys

import psutil
import pytest

from service.config import Settings
from service.errors import SecretError
from service.jobs.inspect.inspector import Inspector
from service.jobs.store.layout import JobLayout
from service.jobs.supervise.runner_process import RunnerProcess
from service.security.secrets import SecretResolver, variable_of
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes")

CHILD = """
import hashlib, json, os, subprocess, sys
from pathlib import Path
from service.config import Settings
from service.security.secrets import take_over
from service.security.secrets import SecretResolver

take_over()
job_dir = Path(sys.argv[-1]) if sys.argv[-2:-1] == ["--job-dir"] else Path(sys.argv[2])
resolver = SecretResolver.of(Settings.load(data_dir=job_dir), job_dir)
found = {}
for name in ("named", "of-file", "other"):
    try:
        value = resolver.resolve("${secret:%s}" % name)
        found[name] = hashlib.sha256(value.encode()).hexdigest()
    except Exception as exc:
        found[name] = type(exc).__name__
grandchild = "import os, sys; print(len(sys.stdin.read()), *os.environ)"
seen = subprocess.run([sys.executable, "-c", grandchild], capture_output=True, text=True).stdout
print(json.dumps({"ok": True, "result": {"found": found, "seen": seen}}), flush=True)
"""
WAITING = CHILD + "\nimport time\ntime.sleep(60)\n"


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The layout of a job whose plan names two secrets of the environment, which has three."""
    (tmp_path / "mounted").write_text("open cave\n")
    monkeypatch.setenv("SLUICE_SECRET_NAMED", "open sesame")
    monkeypatch.setenv("SLUICE_SECRET_OF_FILE_FILE", str(tmp_path / "mounted"))
    monkeypatch.setenv("SLUICE_SECRET_OTHER", "of another job")
    layout = JobLayout(tmp_path / "jobs" / "one")
    layout.create()
    layout.plan.write_text('{"a": "${secret:named}", "b": "${secret:of-file}"}')
    return layout


def check(told):
    digests = {
        name: hashlib.sha256(value).hexdigest()
        for name, value in (("named", b"open sesame"), ("of-file", b"open cave"))
    }
    assert told["found"] == {**digests, "other": "SecretError"}
    standard_input, *names = told["seen"].split()
    assert standard_input == "0"
    assert [name for name in names if name.startswith("SLUICE_SECRET")] == []


def test_a_runner_gets_what_its_plan_names_and_its_children_nothing(job):
    runner = RunnerProcess.start((sys.executable, "-c", WAITING), job.job_dir)
    try:
        text = wait_until(
            lambda: next((x for x in job.runner_log.read_text().splitlines() if x[:1] == "{"), ""),
            deadline_s=120,
            what="the child has told",
        )
        process = psutil.Process(runner.pid)
        shown = f"{process.environ()}{process.cmdline()}{process.open_files()}"
    finally:
        runner.kill()
    check(json.loads(text)["result"])
    for value in ("open sesame", "open cave", "of another job", "memfd"):
        assert value not in shown + job.runner_log.read_text()


def test_an_inspection_gets_them_too(job):
    inspector = Inspector((sys.executable, "-c", CHILD))
    check(inspector.ask(job.job_dir, ["doctor"], timeout_s=120))


def test_a_file_that_a_variable_names_is_read_and_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv(f"{variable_of('a.b')}_FILE", str(tmp_path / "mounted"))
    resolver = SecretResolver.of(Settings.load(data_dir=tmp_path), None)
    with pytest.raises(SecretError, match="SLUICE_SECRET_A_B_FILE"):
        resolver.resolve("${secret:a.b}")
    (tmp_path / "mounted").write_text("x y\n")
    assert resolver.resolve("${secret:a.b}") == "x y"
    (tmp_path / "mounted").write_bytes(b"x" * 70_000)
    with pytest.raises(SecretError, match="more than"):
        resolver.resolve("${secret:a.b}")
