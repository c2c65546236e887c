"""Pause and resume: which states allow them, and what real runner processes make of them."""

from dataclasses import replace

import httpx
import pytest

from service.errors import JobStateError
from service.jobs.store.job import DesiredState, JobState, check_wanted
from service.jobs.store.layout import living_runner
from service.jobs.store.token_store import NewToken
from service.jobs.supervise.watch import ENDING
from service.security.tokens import Credentials, TokenScope
from tests.support.control_plane import control_plane, script, stop_jobs
from tests.support.documents import Documents
from tests.support.stored_jobs import JOB
from tests.support.wait import wait_until

pytestmark = pytest.mark.usefixtures("processes", "secret")

S, D = JobState, DesiredState
WANTED = {
    "pause_a_running_job": (S.JOINING, D.RUNNING, "pause", None),
    "pause_before_the_first_runner": (S.CREATED, D.RUNNING, "pause", None),
    "pause_a_stalled_job": (S.STALLED, D.RUNNING, "pause", None),
    "pause_twice": (S.PAUSED, D.PAUSED, "pause", None),
    "pause_a_stopped_job": (S.STOPPED, D.STOPPED, "pause", "is STOPPED"),
    "pause_a_job_that_stops": (S.JOINING, D.STOPPED, "pause", "is JOINING and stops"),
    "pause_a_failed_job": (S.FAILED, D.STOPPED, "pause", "is FAILED"),
    "pause_a_finished_job": (S.FINISHED, D.STOPPED, "pause", "has finished"),
    "pause_a_job_that_is_removed": (S.JOINING, D.REMOVED, "pause", "is being removed"),
    "resume_a_paused_job": (S.PAUSED, D.PAUSED, "resume", None),
    "resume_while_it_is_pausing": (S.JOINING, D.PAUSED, "resume", None),
    "resume_a_running_job": (S.JOINING, D.RUNNING, "resume", None),
    "resume_a_stopped_job": (S.STOPPED, D.STOPPED, "resume", "is STOPPED"),
    "resume_a_failed_job": (S.FAILED, D.STOPPED, "resume", "is FAILED"),
    "resume_a_finished_job": (S.FINISHED, D.STOPPED, "resume", "has finished"),
    "start_a_stopped_job": (S.STOPPED, D.STOPPED, "start", None),
    "start_a_paused_job": (S.PAUSED, D.PAUSED, "start", None),
    "start_a_finished_job": (S.FINISHED, D.STOPPED, "start", "has finished"),
    "stop_a_paused_job": (S.PAUSED, D.PAUSED, "stop", None),
    "stop_a_job_that_is_removed": (S.JOINING, D.REMOVED, "stop", "is being removed"),
    "remove_a_paused_job": (S.PAUSED, D.PAUSED, "remove", None),
}
VERBS = {
    "pause": (D.PAUSED, False),
    "resume": (D.RUNNING, True),
    "start": (D.RUNNING, False),
    "stop": (D.STOPPED, False),
    "remove": (D.REMOVED, False),
}


@pytest.mark.parametrize(("state", "desired", "verb", "refusal"), WANTED.values(), ids=WANTED)
def test_what_may_be_wanted_of_a_job(state, desired, verb, refusal):
    job = replace(JOB, state=state, desired_state=desired)
    wanted, resume = VERBS[verb]
    if refusal is None:
        check_wanted(job, wanted, resume=resume)
        return
    with pytest.raises(JobStateError, match=refusal) as caught:
        check_wanted(job, wanted, resume=resume)
    assert (caught.value.state, caught.value.desired_state) == (state, desired)


def _ask(client, job_id, verb, **more):
    url = f"{client.url}/v1/jobs/{job_id}:{verb}"
    return httpx.post(url, trust_env=False, timeout=60, **more)


def test_a_paused_job_has_no_runner_survives_a_restart_and_goes_on(tmp_path):
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "rests")["id"]
        job_dir = plane.services.settings.jobs_dir / job_id
        client.when(job_id, state="JOINING")
        assert _ask(client, job_id, "pause").status_code == 202
        paused = client.when(job_id, state="PAUSED")
        assert (paused["reason"], paused["desired_state"]) == ("paused by request", "PAUSED")
        assert not paused["runner"]["alive"]
        assert living_runner(job_dir) is None
        assert _ask(client, job_id, "pause").status_code == 202
        assert stop_jobs(plane, timeout_s=10), "a paused job has nothing to stop"
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        wait_until(lambda: plane.services.supervisor.alive)
        assert client.job(job_id)["state"] == "PAUSED"
        assert _ask(client, job_id, "resume").status_code == 202
        again = client.when(job_id, state="JOINING")
        assert (again["runner"]["restarts"], again["runner"]["crashes"]) == (1, 0)
        steps = [(e["from"], e["to"]) for e in client.events(job_id)]
        assert steps[-4:] == [
            ("JOINING", "PAUSED"),
            ("PAUSED", "STARTING"),
            ("STARTING", "SNAPSHOT"),
            ("SNAPSHOT", "JOINING"),
        ]


def test_a_job_at_rest_says_who_asked_for_it(tmp_path):
    with control_plane(tmp_path, auth_required=True) as plane:
        made = NewToken("night shift", TokenScope.OPERATOR)
        token = plane.services.store.tokens.create(made)[1]
        with Documents(plane.url, Credentials(token)) as client:
            job_id = client.submit(script(), "rests")["id"]
            client.when(job_id, state="JOINING")
            bearer = {"Authorization": f"Bearer {token}"}
            _ask(client, job_id, "pause", headers=bearer, json={"by": "another user"})
            paused = client.when(job_id, state="PAUSED")
    assert (paused["reason"], paused["desired_by"]) == (
        "paused by request of night shift",
        "night shift",
    )
    with control_plane(tmp_path, auth_required=False) as plane, Documents(plane.url) as client:
        assert _ask(client, job_id, "stop", json={"by": "ada", "why": "so"}).status_code == 422
        assert _ask(client, job_id, "stop", json={"by": "ada"}).status_code == 202
        stopped = client.when(job_id, state="STOPPED")
    assert stopped["status"]["sentence"].startswith(
        "It was stopped by request of ada and has ended"
    )


def test_a_resume_before_the_runner_has_ended_is_no_crash(tmp_path):
    with control_plane(tmp_path, stop_timeout_s=1) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "deaf")["id"]
        client.when(job_id, state="JOINING")
        _ask(client, job_id, "pause")
        wait_until(lambda: plane.services.supervisor._watches[job_id].state in ENDING)
        _ask(client, job_id, "resume")
        wait_until(lambda: client.job(job_id)["runner"]["restarts"] == 1, deadline_s=60)
        client.when(job_id, state="JOINING")
        assert client.job(job_id)["runner"]["crashes"] == 0
        assert ("JOINING", "PAUSED") in [(e["from"], e["to"]) for e in client.events(job_id)]


def test_a_pause_that_the_state_does_not_allow_is_a_problem_that_names_it(tmp_path):
    with control_plane(tmp_path) as plane, Documents(plane.url) as client:
        job_id = client.submit(script(), "over")["id"]
        client.stop(job_id)
        client.when(job_id, state="STOPPED")
        answer = _ask(client, job_id, "pause")
        assert answer.status_code == 409
        problem = answer.json()
        assert problem["type"] == "urn:sluice:problem:job-state"
        assert (problem["state"], problem["desired_state"]) == ("STOPPED", "STOPPED")
        assert problem["hint"].endswith(".")
