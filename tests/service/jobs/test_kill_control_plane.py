"""SIGKILL to the control plane: submissions stay, runners live on and are adopted."""

import signal
import socket
import threading

import httpx
import psutil
import pytest

from service.errors import ControlPlaneError
from service.jobs.store.store import JobStore
from tests.support.control_plane import ControlPlaneProgram, end_runners, script, settings_in
from tests.support.documents import Documents
from tests.support.wait import wait_until

pytestmark = [pytest.mark.experiment, pytest.mark.usefixtures("processes")]


@pytest.fixture
def port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def start(tmp_path, port, secret):
    programs = []

    def start_program():
        programs.append(ControlPlaneProgram(tmp_path, port))
        return programs[-1]

    yield start_program
    for program in programs:
        program.end()
    end_runners(tmp_path)


def _joining(client, job_id):
    def found():
        job = client.job(job_id)
        return job if job["state"] == "JOINING" and job["runner"]["alive"] else None

    return wait_until(found, deadline_s=30, what="JOINING")


def test_a_runner_outlives_the_control_plane_and_is_adopted(start):
    first = start()
    with Documents(first.url) as client:
        job_id = client.submit(script(), "orphan")["id"]
        pid = _joining(client, job_id)["runner"]["pid"]
        first.kill()
        assert psutil.pid_exists(pid)
        second = start()
        job = _joining(client, job_id)
        assert job["runner"]["pid"] == pid
        assert job["runner"]["adopted"]
        assert job["runner"]["restarts"] == 0
        psutil.Process(pid).send_signal(signal.SIGKILL)
        wait_until(lambda: client.job(job_id)["runner"]["pid"] not in (pid, None), deadline_s=30)
        assert _joining(client, job_id)["runner"]["crashes"] == 1
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        second.end()


def test_an_adopted_runner_is_stopped_like_any_other(start):
    first = start()
    with Documents(first.url) as client:
        job_id = client.submit(script(), "adopted")["id"]
        pid = _joining(client, job_id)["runner"]["pid"]
        first.kill()
        start()
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_runner_that_died_with_the_control_plane_is_started_again(start):
    first = start()
    with Documents(first.url) as client:
        job_id = client.submit(script(), "both")["id"]
        pid = _joining(client, job_id)["runner"]["pid"]
        first.kill()
        psutil.Process(pid).kill()
        wait_until(lambda: not psutil.pid_exists(pid), deadline_s=10)
        start()
        job = wait_until(
            lambda: (j := _joining(client, job_id))["runner"]["restarts"] == 1 and j, deadline_s=20
        )
        assert job["runner"]["pid"] != pid


def test_what_was_acknowledged_before_a_kill_is_there_after_it(start, tmp_path):
    first = start()
    acknowledged = []

    def submit_until_killed():
        with Documents(first.url) as client:
            for number in range(1000):
                try:
                    name = f"wait {number}"
                    acknowledged.append(client.submit(script(), name, idempotency_key=name)["id"])
                except (ControlPlaneError, httpx.HTTPError):
                    return

    submitting = threading.Thread(target=submit_until_killed)
    submitting.start()
    wait_until(lambda: len(acknowledged) >= 5, deadline_s=20)
    first.kill()
    submitting.join()
    store = JobStore.open(settings_in(tmp_path).store_url)
    kept = {job.id for job in store.all_jobs()}
    store.close()
    assert set(acknowledged) <= kept
    assert len(kept) - len(acknowledged) <= 1
    second = start()
    with Documents(second.url) as client:
        again = client.submit(script(), "wait 0", idempotency_key="wait 0")
        assert again["id"] == acknowledged[0]
        directories = {path.name for path in (tmp_path / "jobs").iterdir()}
        assert directories == {job["id"] for job in client.jobs()}
