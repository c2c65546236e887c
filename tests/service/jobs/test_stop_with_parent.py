"""With `stop_with_parent` no runner outlives its control plane, however that ends and when."""

import os
import subprocess
import sys
import threading

import psutil
import pytest

from service.api.server import ControlPlane
from service.config import Settings
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout, living_runner
from service.jobs.store.runner_files import read_status
from service.jobs.supervise.runner_process import RunnerProcess
from service.sql.planner.planner import plan_script
from tests.support.control_plane import HOOKS, ROOT, RUNNER, script, settings_in, stop_jobs
from tests.support.documents import Documents
from tests.support.rig import is_alive
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes", "secret")


def test_who_ran_when_the_control_plane_ended_runs_again_after_its_next_start(tmp_path):
    settings = settings_in(tmp_path, stop_with_parent=True, stop_timeout_s=1)
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane,
        Documents(plane.url) as client,
    ):
        running = [client.submit(script(), name)["id"] for name in ("polite", "deaf", "waits")]
        resting = {
            client.submit(script(), f"to be {end.__name__}")["id"]: (end, state)
            for end, state in ((client.stop, "STOPPED"), (client.pause, "PAUSED"))
        }
        wait_until(
            lambda: all(client.job(i)["state"] == "JOINING" for i in [*running[:2], *resting])
        )
        for job_id, (end, state) in resting.items():
            end(job_id)
            wait_until(lambda i=job_id, s=state: client.job(i)["state"] == s, what=state)
        pids = [living_runner(settings.jobs_dir / i).pid for i in running[:2]]
    assert not [pid for pid in pids if is_alive(pid)]
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane,
        Documents(plane.url) as client,
    ):
        wait_until(lambda: all(client.job(i)["state"] == "JOINING" for i in running[:2]))
        assert client.job(running[2])["desired_state"] == "RUNNING"
        assert {i: client.job(i)["state"] for i in resting} == {
            i: state for i, (_, state) in resting.items()
        }
        for job_id in running[:2]:
            causes = [event["cause"] for event in client.events(job_id)]
            assert not [cause for cause in causes if "request" in cause], "nobody has asked"
            assert any("control plane has ended" in cause for cause in causes)
            assert client.job(job_id)["runner"]["crashes"] == 0


def test_a_job_that_comes_while_all_are_stopped_is_stopped_too(tmp_path):
    settings = settings_in(tmp_path, stop_timeout_s=3)
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane,
        Documents(plane.url) as client,
    ):
        first = client.submit(script(), "deaf")["id"]
        client.when(first, state="JOINING")
        stopped = []
        stopping = threading.Thread(target=lambda: stopped.append(stop_jobs(plane, timeout_s=30)))
        stopping.start()
        wait_until(lambda: plane.services.store.get(first).desired_state == "STOPPED")
        late = client.submit(script(), "late")["id"]
        stopping.join()
        assert stopped == [True]
        assert client.job(late)["state"] == "STOPPED"


def test_an_interrupt_during_the_start_leaves_no_lock(tmp_path):
    settings = settings_in(tmp_path)

    class Interrupted(ControlPlane):
        def _serve_in_background(self):
            super()._serve_in_background()
            raise KeyboardInterrupt

    plane = Interrupted(settings, hooks=HOOKS, runner_command=RUNNER)
    with pytest.raises(KeyboardInterrupt):
        plane.__enter__()
    with ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as again:
        assert again.url


START_AND_DIE = """
import os, signal, sys
from pathlib import Path
from service.config import Settings
from service.jobs.supervise.runner_process import RunnerProcess
job_dir = Path(sys.argv[1])
Settings.load(data_dir=job_dir.parent.parent, stop_with_parent=sys.argv[2]).hand_over(job_dir)
runner = RunnerProcess.start((sys.executable, "-m", "service.jobs.runner"), job_dir)
sys.stdout.write(f"{runner.pid}\\n")
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("stop_with_parent", [True, False])
def test_a_runner_whose_control_plane_dies_at_once_gets_nowhere(tmp_path, stop_with_parent):
    layout = JobLayout(tmp_path / "jobs" / "j")
    layout.create()
    plan = plan_script(script(password="open sesame"), name="shop")
    text = plan_codec.dump(plan.plan).replace(b"127.0.0.1:9092", b"127.0.0.1:9")
    layout.plan.write_bytes(text)
    command = [sys.executable, "-c", START_AND_DIE, str(layout.job_dir), str(stop_with_parent)]
    parent = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60)
    pid = int(parent.stdout)
    wait_until(lambda: not is_alive(pid), deadline_s=60, what="end of the runner")
    status = read_status(layout.job_dir)
    got_on = status is not None and status.state is not None and status.state != "STARTING"
    assert got_on is not stop_with_parent


def test_a_runner_does_not_get_the_job_stores_url(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_DATABASE_URL", "postgresql://u:p@h/d")
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    runner = RunnerProcess.start(command, tmp_path)
    try:
        environment = wait_until(psutil.Process(runner.pid).environ, deadline_s=10)
        assert "SLUICE_DATABASE_URL" not in environment
        assert environment["PATH"] == os.environ["PATH"]
    finally:
        runner.kill()
        wait_until(lambda: not runner.running(), deadline_s=10)
    assert Settings.of_runner(tmp_path).database_url == "postgresql://u:p@h/d"  # our own variable
