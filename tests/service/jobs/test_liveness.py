"""Runners that live and do not speak, with real processes that are stopped by SIGSTOP."""

import os
import signal

import pytest

from service.config import Settings
from service.jobs.supervise.watch import Silence
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents

pytestmark = pytest.mark.usefixtures("processes", "secret")


@pytest.mark.experiment
def test_a_stopped_runner_is_shown_then_killed_and_started_again(tmp_path):
    values = {"runner_hang_report_s": 2, "runner_hang_kill_s": 10}
    with control_plane(tmp_path, **values) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "frozen")["id"]
        running = client.when(job_id, state="JOINING")
        pid = running["runner"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        stalled = client.when(job_id, state="STALLED")
        assert stalled["error"]["type"] == "runner-unresponsive"
        assert f"runner {pid} lives" in stalled["reason"]
        assert stalled["runner"]["alive"]
        again = client.when(job_id, state="JOINING")
        assert again["runner"]["pid"] != pid
        assert again["runner"]["restarts"] == 1
        causes = [event["cause"] for event in client.events(job_id)]
        assert any("did not report any more" in cause for cause in causes)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_runner_that_speaks_again_in_time_is_left_alone(tmp_path):
    with control_plane(tmp_path, runner_hang_report_s=2) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "hiccup")["id"]
        pid = client.when(job_id, state="JOINING")["runner"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        client.when(job_id, state="STALLED")
        os.kill(pid, signal.SIGCONT)
        again = client.when(job_id, state="JOINING")
        assert again["runner"]["pid"] == pid
        assert again["error"] is None
        assert again["runner"]["crashes"] == 0


def test_a_stopped_runner_does_not_keep_its_job_from_being_stopped(tmp_path):
    with control_plane(tmp_path, stop_timeout_s=1) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "frozen")["id"]
        pid = client.when(job_id, state="JOINING")["runner"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        client.stop(job_id)
        client.when(job_id, state="STOPPED")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_silence_is_counted_from_when_a_report_was_first_seen_not_from_the_time_in_it():
    clock = Clock()
    silence = Silence(clock)
    assert silence.lasts_s(updated_at_ms=-3_600_000) == 0.0
    clock.now = 5.0
    assert silence.lasts_s(updated_at_ms=-3_600_000) == 5.0
    assert silence.lasts_s(updated_at_ms=-7_200_000) == 0.0
    clock.now = 9.0
    assert silence.lasts_s(updated_at_ms=-7_200_000) == 4.0
    silence.begin()
    assert silence.lasts_s(updated_at_ms=None) == 0.0


PATIENCE = {
    "a_running_runner": (0, False, 120.0),
    "after_one_that_hung": (1, False, 240.0),
    "after_many_that_hung": (99, False, 1920.0),
    "a_runner_that_starts": (0, True, 180.0),
}


@pytest.mark.parametrize(("hangs", "starting", "seconds"), PATIENCE.values(), ids=PATIENCE)
def test_patience_grows_with_each_runner_that_hung(hangs, starting, seconds):
    silence = Silence(hangs=hangs)
    assert silence.kill_after_s(Settings(), starting=starting) == seconds
