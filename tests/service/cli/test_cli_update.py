"""`sluice jobs update` and `rollback`, and the address behind them: shown, consented, applied."""

import json

import httpx
import pytest

from service.client import ConflictError, Sluice
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from tests.support.control_plane import script
from tests.support.program import run_program
from tests.support.topics import unique_name
from tests.support.wait import wait_until

SCRIPT = script()
FILTERED = SCRIPT.replace("= u.user_id;", "= u.user_id WHERE c.item > 5;")
LATER = SCRIPT.replace("earliest-offset", "latest-offset")


@pytest.fixture
def client(plane):
    with Sluice(plane.url) as client:
        yield client


@pytest.fixture
def job(client):
    return client.submit(SCRIPT, unique_name("changed"))


def plan_of(plane, job):
    return JobPlans(JobLayout(plane.services.settings.jobs_dir / job.id)).newest()


def ran(plane, tmp_path, sql, *arguments, given=b""):
    """Exit code, standard output and standard error of `sluice jobs update`."""
    file = tmp_path / "changed.sql"
    file.write_text(sql)
    job, *options = arguments
    done = run_program(
        *("jobs", "update", job.id, str(file), *options), given=given, SLUICE_SERVER=plane.url
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_preview_shows_each_change_and_changes_nothing(plane, job, tmp_path):
    code, out, _ = ran(plane, tmp_path, FILTERED, job, "--preview", "--batches", "7")
    first, blank, *rows = out.splitlines()
    assert (code, first, blank) == (0, "accepted  where of the plan", "")
    assert rows[0] == (
        "enriched: the newest 7 batches joined again, 9 records: 0 of 9 rows change, 0 come, 1 go, "
        "+0 dead letters"
    )
    assert rows[1] == "  clicks/0/7"
    assert rows[2].startswith('    - {"name": "')
    assert len(rows) == 3
    assert "\x1b" not in out
    assert plan_of(plane, job).number == 1


def test_a_preview_says_why_it_cannot_show_rows(plane, client, tmp_path):
    job = client.submit(SCRIPT, unique_name("unseen"))
    code, out, _ = ran(plane, tmp_path, FILTERED, job, "--preview")
    assert (code, out) == (0, "accepted  where of the plan\nenriched: batch 4 is gone\n")
    shown = client.job(job.id).update(FILTERED, preview=True, batches=0)
    assert (shown.accepted, shown.rows) == (True, [])


def test_a_change_needs_consent(plane, job, tmp_path):
    code, out, _ = ran(plane, tmp_path, FILTERED, job, given=b"n\n")
    assert code == 1
    code, out, said = ran(plane, tmp_path, FILTERED, job)
    assert (code, "error: standard input ends" in said, "--yes" in said) == (1, True, True)
    assert plan_of(plane, job).number == 1
    code, out, said = ran(plane, tmp_path, FILTERED, job, "--yes")
    assert (code, out) == (0, "accepted  where of the plan\n")
    assert "has plan 2" in said
    assert plan_of(plane, job).where is not None
    code, out, _ = ran(plane, tmp_path, FILTERED, job, "--yes")
    assert (code, out) == (0, "nothing changes: the job has plan 2\n")


def test_a_refused_change_says_what_helps_and_fails(plane, job, tmp_path):
    code, out, _ = ran(plane, tmp_path, LATER, job, "--yes")
    assert code == 1
    assert out.startswith("refused   startup_mode of the stream\n")
    assert "Keep the options scan.startup.*" in out
    code, out, _ = ran(plane, tmp_path, LATER, job, "--preview", "-o", "json")
    shown = json.loads(out)
    assert (code, shown["accepted"], shown["applied"]) == (1, False, False)
    assert plan_of(plane, job).number == 1


def test_a_rollback_gives_the_older_plan_a_new_number(plane, client, job):
    client.job(job.id).update(FILTERED)
    done = run_program("jobs", "rollback", job.id, "--yes", SLUICE_SERVER=plane.url)
    assert done.returncode == 0, done.stderr
    plan = plan_of(plane, job)
    assert (plan.number, plan.where) == (3, None)
    assert client.job(job.id).roll_back(2, preview=True).changes[0].kind == "filter"


def test_a_program_changes_the_plan_that_it_has_seen(client, job):
    shown = client.job(job.id).update(FILTERED, preview=True)
    assert (shown.plan, shown.new_plan, shown.applied, shown.accepted) == (1, 2, False, True)
    done = client.job(job.id).update(FILTERED, of_plan=shown.plan)
    assert (done.plan, done.applied) == (2, True)
    with pytest.raises(ConflictError, match="has plan 2, expected plan 1"):
        client.job(job.id).update(SCRIPT, of_plan=shown.plan)
    with pytest.raises(ConflictError, match="the job has started"):
        client.job(job.id).update(LATER)


def test_the_runner_starts_again_under_the_new_plan_and_that_is_no_crash(client, job):
    remote = client.job(job.id)
    wait_until(lambda: remote.status().state == "JOINING", what="the job joins")
    remote.update(FILTERED)
    wait_until(lambda: remote.status().runner.restarts == 1, what="another runner")
    wait_until(lambda: remote.status().state == "JOINING", what="the job joins again")
    status = remote.status()
    assert (status.runner.restarts, status.runner.crashes) == (1, 0)
    causes = [event.cause for event in client.transitions(job_id=job.id)]
    assert not any("crash" in cause for cause in causes), causes


def test_a_request_names_a_script_or_a_plan(plane, job):
    with httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as http:
        url = f"/v1/jobs/{job.id}:update"
        assert http.post(url, json={"sql": SCRIPT, "to_plan": 1}).status_code == 422
        assert http.post(url, json={"to_plan": 5}).status_code == 409
        assert http.post(url, json={"script": SCRIPT}).status_code == 422
        answer = http.post(url, json={"sql": FILTERED, "preview": True})
        assert answer.json()["changes"][0]["kind"] == "filter"
        event = http.get(f"/v1/jobs/{job.id}/events").json()["items"][-1]
        assert "plan" not in event["cause"]
