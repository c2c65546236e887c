"""The link of a control plane to its runner host, with a host that does not answer."""

import socket
import subprocess
import sys
import time

import pytest

from joins.adapters.process.forks import ForkedChild
from service.jobs.supervise import runner_host
from service.jobs.supervise.runner_host import RunnerHostLink, listen
from service.jobs.supervise.runner_process import RunnerProcess
from tests.support.control_plane import settings_in


def test_a_host_that_does_not_answer_is_waited_for_briefly_however_often(tmp_path, monkeypatch):
    monkeypatch.setattr(runner_host, "_ANSWER_S", 0.01)
    settings = settings_in(tmp_path, runners="shared")
    settings.host_dir.mkdir()
    job_dir = tmp_path / "job"
    job_dir.mkdir()
    link = RunnerHostLink(settings)
    began = time.monotonic()
    with listen(settings.host_dir):
        for _ in range(200):  # more than wait in its queue
            with pytest.raises(ChildProcessError, match=r"does not answer, see .*host\.log"):
                link.start(job_dir)
    assert time.monotonic() - began < 20
    link.close()


@pytest.mark.usefixtures("processes")
def test_a_runner_that_was_killed_at_once_has_not_been_started():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ChildProcessError, match="before its first step"):
        RunnerProcess.of_child(ForkedChild(ended.pid, ours))
