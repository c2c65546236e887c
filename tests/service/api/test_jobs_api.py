"""The REST API over a real server, a real store and real runner processes."""

import json
import stat

import pytest

from service.api.routes import jobs
from service.jobs.store.layout import JobLayout
from tests.support.control_plane import script
from tests.support.wait import wait_until

PLANE = {"runner_hang_report_s": 2}


def test_a_job_runs_stops_starts_and_is_removed(plane, client):
    submitted = client.submit(script(), "life")
    assert submitted["state"] in ("CREATED", "STARTING")
    job = client.when(submitted["id"], state="JOINING")
    assert job["phase"] == "JOIN"
    assert job["reason"] == "The gate is open."
    assert job["dimensions"][0]["snapshot"]["rows_total"] == 10
    assert job["runner"]["alive"]
    client.stop(job["id"])
    client.when(job["id"], state="STOPPED")
    client.start(job["id"])
    again = client.when(job["id"], state="JOINING")
    assert again["runner"]["restarts"] == 1
    steps = [(event["from"], event["to"]) for event in client.events(job["id"])]
    assert steps[:4] == [
        (None, "CREATED"),
        ("CREATED", "STARTING"),
        ("STARTING", "SNAPSHOT"),
        ("SNAPSHOT", "JOINING"),
    ]
    assert ("JOINING", "STOPPED") in steps
    report = client.watermarks(job["id"])
    assert report["combined"] == {"timestamp_ms": -(2**63), "use_processing_time": True}
    assert [channel["channel"] for channel in report["channels"]] == ["users/0"]
    assert "runner runs" in client.log(job["id"])
    assert client.remove(job["id"], output=True) is None
    data_dir = plane.services.settings.data_dir
    assert (data_dir / f"removed-{job['id']}").read_text() == "True"
    assert not (data_dir / "jobs" / job["id"]).exists()


def test_what_is_left_of_the_output_of_a_removed_job_is_told(plane, client):
    told = 'delta table "out" is kept: the job has not created it'
    (plane.services.settings.data_dir / "shared").write_text(told)
    job = client.submit(script(), "left")
    assert client.remove(job["id"], output=True) == {"left": [told]}
    assert client.remove(job["id"]) == {"left": [told]}, "to whoever had to wait"
    (plane.services.settings.data_dir / "shared").unlink()


def test_a_block_of_a_log_ends_with_a_whole_character(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_LOG_BLOCK_BYTES", 5)
    layout, text = JobLayout(tmp_path), "a€Zürich 🙂.\n"
    layout.runner_log.write_bytes(text.encode() + "ü".encode()[:1])  # the rest is still to come
    shown, at = "", 0
    while (block := jobs._log_block(layout, at))[0]:
        shown, at = shown + block[0].decode(), block[1]
    assert shown == text
    layout.runner_log.write_bytes(f"{text}ü".encode())
    assert jobs._log_block(layout, at) == ("ü".encode(), len(f"{text}ü".encode()))


def test_a_created_job_has_a_location_and_private_files(plane, http):
    answer = http.post("/v1/jobs", json={"sql": script(), "name": "private"})
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/v1/jobs/{answer.json()['id']}"
    layout = JobLayout(plane.services.settings.jobs_dir / answer.json()["id"])
    assert stat.S_IMODE(layout.job_dir.stat().st_mode) == 0o700


def test_an_inline_password_is_moved_to_the_jobs_secrets(plane, http):
    answer = http.post("/v1/jobs", json={"sql": script(password="open sesame"), "name": "inline"})
    assert answer.status_code == 201
    layout = JobLayout(plane.services.settings.jobs_dir / answer.json()["id"])
    assert "open sesame" not in answer.text
    assert b"open sesame" not in layout.plan.read_bytes()
    assert "open sesame" in json.loads(layout.secrets.read_text())["secrets"].values()
    assert stat.S_IMODE(layout.secrets.stat().st_mode) == 0o600
    assert "${secret:" in answer.json()["sql"]
    assert answer.json()["warnings"]


def test_the_same_key_is_the_same_job_and_never_another_one(http):
    headers = {"Idempotency-Key": "k1"}
    first = http.post("/v1/jobs", json={"sql": script(), "name": "one"}, headers=headers)
    again = http.post("/v1/jobs", json={"sql": script(), "name": "one"}, headers=headers)
    other = http.post("/v1/jobs", json={"sql": script(), "name": "two"}, headers=headers)
    assert first.json()["id"] == again.json()["id"]
    assert other.status_code == 409
    assert other.json()["type"] == "urn:sluice:problem:job-conflict"


def test_jobs_are_listed_in_pages_the_newest_first(http):
    for number in range(3):
        http.post("/v1/jobs", json={"sql": script(), "name": f"page{number}"})
    first = http.get("/v1/jobs", params={"limit": 2}).json()
    assert [job["name"] for job in first["items"]] == ["page2", "page1"]
    second = http.get("/v1/jobs", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert second["items"][0]["name"] == "page0"


REFUSED = {
    "wrong_password": (script(password="wrong"), "access denied", "urn:sluice:problem:source"),
    "database_down": (
        script(host="down"),
        "does not answer",
        "urn:sluice:problem:source-unavailable",
    ),
    "missing_secret": (script(password="${secret:nobody}"), "nobody", "urn:sluice:problem:secret"),
    "bad_sql": ("CREATE TABEL x", "line 1", "urn:sluice:problem:sql"),
    "empty": ("", "the script is empty", "urn:sluice:problem:sql"),
    "too_long": ("-- " + "x" * 70_000, "expected at most 65536", "urn:sluice:problem:submission"),
}


@pytest.mark.parametrize(("sql", "detail", "kind"), REFUSED.values(), ids=REFUSED)
def test_a_refused_submission_leaves_nothing_behind(plane, http, sql, detail, kind):
    jobs_dir = plane.services.settings.jobs_dir
    before = set(jobs_dir.iterdir()) if jobs_dir.exists() else set()
    answer = http.post("/v1/jobs", json={"sql": sql, "name": "refused"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert detail in problem["detail"]
    assert problem["type"] == kind
    assert problem["hint"].endswith((".", "?"))
    assert (set(jobs_dir.iterdir()) if jobs_dir.exists() else set()) == before
    assert all(job["name"] != "refused" for job in http.get("/v1/jobs").json()["items"])


ABSENT = "01234567-89ab-7def-8123-456789abcdef"
JSON = {"Content-Type": "application/json"}
PROBLEMS = {
    "unknown_address": (404, "GET", "/nothing", {}),
    "unknown_job": (404, "GET", f"/v1/jobs/{ABSENT}", {}),
    "unknown_job_stopped": (404, "POST", f"/v1/jobs/{ABSENT}:stop", {}),
    "unknown_job_removed": (404, "DELETE", f"/v1/jobs/{ABSENT}", {}),
    "malformed_id": (400, "GET", "/v1/jobs/x", {}),
    "wrong_method": (405, "PUT", "/v1/jobs", {}),
    "not_json": (400, "POST", "/v1/jobs", {"content": "{", "headers": JSON}),
    "not_utf_8": (400, "POST", "/v1/jobs", {"content": b'{"sql": "\xff"}', "headers": JSON}),
    "nested_deeply": (400, "POST", "/v1/jobs", {"content": "[" * 100_000, "headers": JSON}),
    "key_twice": (400, "POST", "/v1/jobs", {"content": '{"sql":"x","sql":"y"}', "headers": JSON}),
    "deep_key_twice": (
        400,
        "POST",
        "/v1/jobs",
        {"content": '{"sql":{"a":[{"b":1,"b":2}]}}', "headers": JSON},
    ),
    "not_a_number": (400, "POST", "/v1/jobs", {"content": '{"sql":NaN}', "headers": JSON}),
    "long_number": (
        400,
        "POST",
        "/v1/jobs",
        {"content": f'{{"sql":{"9" * 5_000}}}', "headers": JSON},
    ),
    "many_keys": (400, "POST", "/v1/jobs", {"json": {f"k{n}": n for n in range(1_000)}}),
    "parameter_twice": (400, "GET", "/v1/jobs?limit=1&limit=2", {}),
    "long_address": (404, "GET", f"/{'x' * 20_000}", {}),
    "long_head": (431, "GET", "/v1/jobs", {"headers": {"X": "x" * 33_000}}),
    "no_sql": (422, "POST", "/v1/jobs", {"json": {}}),
    "unknown_member": (422, "POST", "/v1/jobs", {"json": {"sql": "x", "owner": "me"}}),
    "text_instead_of_json": (
        415,
        "POST",
        "/v1/jobs",
        {"content": '{"sql":"x"}', "headers": {"Content-Type": "text/plain"}},
    ),
    "too_large": (413, "POST", "/v1/jobs", {"json": {"sql": "x" * (1 << 20)}}),
    "bad_limit": (400, "GET", "/v1/jobs?limit=0", {}),
    "other_site": (403, "POST", f"/v1/jobs/{ABSENT}:stop", {"headers": {"Origin": "http://evil"}}),
    "rebound_name": (403, "GET", "/v1/jobs", {"headers": {"Host": "evil.example"}}),
}


@pytest.mark.parametrize(("status", "method", "path", "options"), PROBLEMS.values(), ids=PROBLEMS)
def test_every_error_is_a_problem_with_a_hint(http, status, method, path, options):
    answer = http.request(method, path, **options)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:sluice:problem:")
    assert problem["detail"]
    assert problem["hint"].endswith(".")
    assert len(answer.content) < 2_000
    assert answer.headers["x-content-type-options"] == "nosniff"


DETAILS = {
    "not_utf_8": "is not UTF-8",
    "nested_deeply": "nested too deeply",
    "key_twice": 'key "sql" occurs more than once in the body',
    "deep_key_twice": 'key "b" occurs more than once in the body',
    "not_a_number": "NaN in the body",
    "long_number": "number that is too long",
    "many_keys": "1000 keys, expected at most 100",
    "parameter_twice": 'query parameter "limit" occurs 2 times, expected 1',
    "long_head": "larger than 32 KiB",
}


@pytest.mark.parametrize(("case", "detail"), DETAILS.items(), ids=DETAILS)
def test_a_hostile_request_is_told_what_is_wrong_with_it(http, case, detail):
    _, method, path, options = PROBLEMS[case]
    assert detail in http.request(method, path, **options).json()["detail"]


def test_a_filter_of_several_values_may_be_there_several_times(http):
    assert http.get("/v1/jobs?state=JOINING&state=FAILED&limit=1").status_code == 200


def test_health_and_version_answer(http):
    assert http.get("/livez").json() == {"status": "ok"}
    ready = wait_until(lambda: (a := http.get("/readyz")).is_success and a, what="a first look")
    assert ready.json() == {"status": "ok"}
    assert http.get("/v1/version").json()["name"] == "sluice"
    assert http.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_a_failed_runner_is_shown_with_its_error_and_can_be_started_again(client):
    job = client.when(client.submit(script(), "fail")["id"], state="FAILED")
    client.when(job["id"], report={**job["report"], "is_live": False})
    job = client.job(job["id"])
    assert job["error"] == {
        "type": "SourceError",
        "message": "table is gone",
        "hint": "Restore it.",
        "detail": "",
        "place": "batches",
    }
    assert job["desired_state"] == "STOPPED"
    client.start(job["id"])
    wait_until(lambda: client.job(job["id"])["runner"]["restarts"] == 1, deadline_s=20)
    client.remove(job["id"])


def test_a_crashing_runner_is_restarted_and_counted(client):
    job_id = client.submit(script(), "crash")["id"]
    wait_until(lambda: client.job(job_id)["runner"]["crashes"] >= 2, deadline_s=30)
    causes = [e["cause"] for e in client.events(job_id) if e["to"] == "STALLED"]
    assert "signal 9" in causes[0]
    client.stop(job_id)
    client.when(job_id, state="STOPPED")


def test_a_runner_that_waits_for_its_source_is_no_crash(client):
    job_id = client.submit(script(), "wait")["id"]
    wait_until(lambda: client.job(job_id)["runner"]["restarts"] >= 2, deadline_s=30)
    assert client.job(job_id)["runner"]["crashes"] == 0
    client.stop(job_id)


def test_a_silent_runner_is_shown_as_stalled(client):
    job = client.when(client.submit(script(), "silent")["id"], state="STALLED")
    assert "has not reported" in job["reason"]
    client.stop(job["id"])


def test_a_removal_that_fails_says_why_and_goes_on_by_itself(plane, client):
    job = client.when(client.submit(script(), "sticky")["id"], state="JOINING")
    locked = plane.services.settings.data_dir / "locked"
    locked.touch()
    answer = client.remove(job["id"])
    assert answer is not None
    assert answer["reason"] == "removal failed: broker does not answer"
    assert answer["error"]["hint"] == "Start the broker."
    locked.unlink()
    wait_until(lambda: all(j["id"] != job["id"] for j in client.jobs()), deadline_s=20)
