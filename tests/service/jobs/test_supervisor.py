"""Runner processes that misbehave."""

import os
import shlex
import signal
import subprocess
import sys

import psutil
import pytest

from joins.durable.checkpoint import CheckpointLock
from service.api.server import ControlPlane
from service.client import RefusedError
from service.errors import StoreError
from service.jobs.store.layout import (
    JobLayout,
    living_runner,
    noted_pid,
    processes_on_jobs,
    write_runner_pid,
)
from service.jobs.store.runner_files import REPLAY_DEAD_LETTERS, Asked, RequestBox, read_changes
from service.jobs.supervise.runner_process import RunnerProcess
from tests.support.control_plane import HOOKS, RUNNER, control_plane, script, settings_in
from tests.support.documents import Documents
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes", "secret")


def test_a_runner_that_ignores_sigterm_is_killed_after_the_deadline(tmp_path):
    with control_plane(tmp_path, stop_timeout_s=1) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "deaf")["id"]
        client.when(job_id, state="JOINING")
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        told = "stopped by request; its runner had not ended after 1 s and was killed"
        assert client.events(job_id)[-1]["cause"] == told


def test_too_many_crashes_in_a_row_fail_the_job(tmp_path):
    with control_plane(tmp_path, restart_limit=1) as plane, Documents(plane.url) as client:
        job = client.when(client.submit(script(), "crash")["id"], state="FAILED")
        assert "crashed 2 times in a row" in job["error"]["message"]


def test_a_runner_that_holds_the_checkpoint_is_adopted(tmp_path):
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "twin")["id"]
        client.when(job_id, state="JOINING")
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        job_dir = plane.services.settings.jobs_dir / job_id
        twin = subprocess.Popen(
            [*RUNNER, "--job-dir", str(job_dir)], start_new_session=True, stdout=subprocess.DEVNULL
        )
        wait_until(lambda: noted_pid(job_dir) == twin.pid, what="it holds the checkpoint")
        client.start(job_id)
        adopted = wait_until(
            lambda: (r := client.job(job_id)["runner"])["adopted"] and r, deadline_s=20
        )
        assert adopted["pid"] == twin.pid
        client.stop(job_id)
        twin.wait(timeout=120)


def test_a_runner_that_cannot_be_noted_is_not_left_alone(tmp_path):
    JobLayout(tmp_path).runner_pid.mkdir()
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(OSError, match=r"runner\.pid"):
        RunnerProcess.start(sleeper, tmp_path)
    assert str(tmp_path) not in processes_on_jobs()


def test_a_runner_that_cannot_be_started_is_tried_again(tmp_path):
    command = tmp_path / "runner"
    settings = settings_in(tmp_path / "data")
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=[str(command)]) as plane,
        Documents(plane.url) as client,
    ):
        job_id = client.submit(script(), "weak")["id"]
        job = client.when(job_id, state="STALLED")
        assert job["error"]["type"] == "runner-not-started"
        assert job["desired_state"] == "RUNNING"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(RUNNER)} "$@"\n')
        command.chmod(0o700)
        client.when(job_id, state="JOINING")
        assert client.job(job_id)["runner"]["restarts"] == 0, "no runner was there before"
        client.stop(job_id)
        client.when(job_id, state="STOPPED")


def test_the_first_start_is_no_restart_however_long_its_host_takes(tmp_path):
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        starter = plane.services.supervisor._starter
        start, waits = starter.start, [1, 2]
        starter.start = lambda *of: not (waits and waits.pop()) and start(*of)
        job_id = client.submit(script(), "first")["id"]
        client.when(job_id, state="JOINING")
        assert (waits, client.job(job_id)["runner"]["restarts"]) == ([], 0)


def test_a_checkpoint_held_by_something_unknown_stalls_the_job(tmp_path):
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "held")["id"]
        client.when(job_id, state="JOINING")
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        lock = CheckpointLock(
            JobLayout(plane.services.settings.jobs_dir / job_id).checkpoint / "lock"
        )
        lock.acquire()
        client.start(job_id)
        job = client.when(job_id, state="STALLED")
        assert "in use" in job["reason"]
        lock.release()
        client.when(job_id, state="JOINING")


def test_a_recycled_process_id_is_not_a_runner(tmp_path):
    write_runner_pid(tmp_path)
    assert living_runner(tmp_path).pid == psutil.Process().pid
    text = (tmp_path / "runner.pid").read_text()
    started_at_s = psutil.Process().create_time()
    (tmp_path / "runner.pid").write_text(text.replace(str(started_at_s), str(started_at_s - 60)))
    assert living_runner(tmp_path) is None


def test_a_process_of_another_user_is_not_a_runner(tmp_path, processes):
    """The owner of the job's directory counts; where we may not give it away, we take another's."""
    looks_like_one = ("sh", "-c", "read line", "--job-dir", str(tmp_path))
    with subprocess.Popen(looks_like_one, stdin=subprocess.PIPE, start_new_session=True) as process:
        write_runner_pid(tmp_path, process.pid)
        wait_until(lambda: str(tmp_path) in processes_on_jobs(), what="it is seen")
        assert living_runner(tmp_path).pid == process.pid
        if os.geteuid() == 0:
            os.chown(tmp_path, 65534, -1)
            assert str(tmp_path) not in processes_on_jobs()
        else:
            process.kill()
            write_runner_pid(tmp_path, 1)
        assert living_runner(tmp_path) is None
        process.kill()


def test_a_job_that_has_finished_stays_so(tmp_path):
    """Its runner ends with 0 and is not missed; neither a start nor a new supervisor wakes it."""
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "done")["id"]
        client.when(job_id, state="JOINING")
        (plane.services.settings.jobs_dir / job_id / "go").touch()
        client.when(job_id, state="FINISHED")
        wait_until(lambda: not client.job(job_id)["runner"]["alive"], what="its runner ends")
        wait_until(lambda: client.job(job_id)["desired_state"] == "STOPPED", what="it is settled")
        with pytest.raises(RefusedError, match="has finished"):
            client.start(job_id)
        client.stop(job_id)
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job = client.job(job_id)
        assert (job["state"], job["runner"]["crashes"], job["runner"]["restarts"]) == (
            "FINISHED",
            0,
            0,
        )
        assert [event["to"] for event in client.events(job_id)][-2:] == ["JOINING", "FINISHED"]


def test_an_end_that_no_supervisor_saw_is_taken_over(tmp_path):
    settings = settings_in(tmp_path)
    with ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane:
        with Documents(plane.url) as client:
            job_id = client.submit(script(), "done unseen")["id"]
            client.when(job_id, state="JOINING")
        plane.services.supervisor.close()
        job_dir = settings.jobs_dir / job_id
        (job_dir / "go").touch()
        wait_until(lambda: _has_ended(noted_pid(job_dir)), what="the runner ends")
        assert plane.services.store.get(job_id).state == "JOINING"
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        wait_until(lambda: client.job(job_id)["desired_state"] == "STOPPED", what="it is settled")
        job = client.job(job_id)
        found = (job["state"], job["runner"]["pid"], job["runner"]["restarts"])
        assert found == ("FINISHED", None, 0)


def test_an_adopted_runner_that_makes_way_for_a_newer_plan_has_not_crashed(tmp_path):
    """Its exit code is unknown, but its last report is not."""
    settings = settings_in(tmp_path)
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane,
        Documents(plane.url) as client,
    ):
        job_id = client.submit(script(), "updated")["id"]
        client.when(job_id, state="JOINING")
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        wait_until(lambda: client.job(job_id)["runner"]["adopted"], deadline_s=20)
        updates, filtered = plane.services.updates, "= u.user_id WHERE c.item > 5;"
        draft = updates.draft(job_id, script().replace("= u.user_id;", filtered))
        updates.store(job_id, draft)
        wait_until(lambda: client.job(job_id)["runner"]["restarts"] == 1, deadline_s=20)
        causes = [event["cause"] for event in client.events(job_id)]
        assert "it has a newer plan, under which its runner starts again" in causes
        assert client.job(job_id)["runner"]["crashes"] == 0


def test_a_start_that_was_cut_off_is_not_the_failure_before_it(tmp_path):
    settings = settings_in(tmp_path)
    with (
        ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane,
        Documents(plane.url) as client,
    ):
        job_id = client.submit(script(), "fail")["id"]
        client.when(job_id, state="FAILED")
        plane.services.supervisor._starter.start = lambda *_: False  # its host is starting
        client.start(job_id)
        client.when(job_id, state="STARTING")
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        wait_until(lambda: client.job(job_id)["runner"]["restarts"] == 1, deadline_s=20)
        client.when(job_id, state="FAILED")


def test_an_end_that_could_not_be_stored_is_seen_again(tmp_path):
    """A full disk ends runners and refuses writes; the job starts again all the same."""
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "unstored")["id"]
        pid = client.when(job_id, state="JOINING")["runner"]["pid"]
        store = plane.services.store
        count, faults = store.count, ["the disk is full"]

        def fails_once(*of, **values):
            if faults:
                raise StoreError(faults.pop(), hint="Make room.")
            count(*of, **values)

        store.count = fails_once
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: client.job(job_id)["runner"]["pid"] not in (pid, None), deadline_s=10)
        client.when(job_id, state="JOINING")
        assert not faults


def test_a_job_that_has_finished_before_it_was_settled_is_settled_later(tmp_path):
    """The control plane has seen that the stream has ended, but not that the runner has."""
    settings = settings_in(tmp_path)
    with ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER) as plane:
        with Documents(plane.url) as client:
            job_id = client.submit(script(), "done unsettled")["id"]
            client.when(job_id, state="JOINING")
        plane.services.supervisor.close()
        job_dir = settings.jobs_dir / job_id
        (job_dir / "go").touch()
        wait_until(lambda: _has_ended(noted_pid(job_dir)), what="the runner ends")
        changes, offset = read_changes(job_dir, plane.services.store.get(job_id).events_offset)
        seen = plane.services.store.follow(job_id, changes, offset)
        assert (seen.state, seen.desired_state) == ("FINISHED", "RUNNING")
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        wait_until(lambda: client.job(job_id)["desired_state"] == "STOPPED", what="it is settled")
        assert [event["to"] for event in client.events(job_id)][-2:] == ["JOINING", "FINISHED"]


def test_a_runner_that_cannot_be_started_to_answer_is_tried_again_less_and_less_often(tmp_path):
    settings = settings_in(tmp_path)
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "done")["id"]
        client.when(job_id, state="JOINING")
        (settings.jobs_dir / job_id / "go").touch()
        wait_until(lambda: client.job(job_id)["desired_state"] == "STOPPED", what="it is settled")
    box = RequestBox(JobLayout(settings.jobs_dir / job_id).requests)
    request_id = box.send(Asked(REPLAY_DEAD_LETTERS, {}, by="ann"))
    nowhere = [str(tmp_path / "nowhere")]
    with ControlPlane(settings, hooks=HOOKS, runner_command=nowhere) as plane:
        watches = plane.services.supervisor._watches
        wait_until(lambda: job_id in watches and watches[job_id].waits, deadline_s=10)
    with control_plane(tmp_path):
        assert box.wait(request_id, timeout_s=120), "the next one answers"


def _has_ended(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
