"""Routes that look into a job, over a process that keeps the contract of an inspection."""

import threading

import httpx
import psutil
import pytest

from service.api.routes import inspection
from tests.support.control_plane import script
from tests.support.documents import Documents
from tests.support.inspect_program import HOSTILE
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def job_of(plane):
    """The job of a name, submitted once."""
    found = {}

    def submit(name):
        if name not in found:
            with Documents(plane.url) as client:
                found[name] = client.submit(script(), name)["id"]
        return found[name]

    return submit


def test_a_batch_is_shown_and_repeated(http, job_of):
    path = f"/v1/jobs/{job_of('good')}/batches"
    shown = http.get(f"{path}/4").json()
    assert shown["pin"]["versions"] == {"users": 3}
    same = http.post(f"{path}/4:replay").json()
    assert same["identical"] is True
    other = http.post(f"{path}/13:replay", params={"diff": True}).json()
    assert other["identical"] is False
    assert other["records_missing"] == [{"topic": None, "partition": 0, "from": 1, "to": 3}]
    assert other["differences"][0]["expected"] == {"name": HOSTILE}
    assert http.post(f"{path}/13:replay").json()["differences"] == []


def test_batches_are_listed_in_pages_the_newest_first(http, job_of):
    path = f"/v1/jobs/{job_of('good')}/batches"
    first = http.get(path, params={"limit": 3}).json()
    assert [batch["batch"] for batch in first["items"]] == [4, 3, 2]
    second = http.get(path, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [batch["batch"] for batch in second["items"]] == [1, 0]
    assert second["next_cursor"] is None


def test_a_record_is_explained(http, job_of):
    found = http.get(f"/v1/jobs/{job_of('good')}/rows/shop.clicks-1/2/33").json()
    assert found["coordinates"] == {"topic": "shop.clicks-1", "partition": 2, "offset": 33}
    assert found["dimensions"][0]["current_version"] == 2


def test_a_doctors_visit_is_ok_unless_a_check_has_failed(http, job_of):
    assert http.get("/v1/doctor").json()["ok"] is True
    assert http.get(f"/v1/jobs/{job_of('good')}/doctor").json()["ok"] is True
    sick = http.get(f"/v1/jobs/{job_of('sick')}/doctor").json()
    assert sick["ok"] is False
    assert [check["ok"] for check in sick["checks"]] == [True, None, False]


def test_dead_letters_come_in_pages(http, job_of):
    path = f"/v1/jobs/{job_of('good')}/dead-letters"
    first = http.get(path, params={"limit": 4}).json()
    assert [letter["offset"] for letter in first["items"]] == [0, 1, 2, 3]
    second = http.get(path, params={"limit": 4, "cursor": first["next_cursor"]}).json()
    assert [letter["offset"] for letter in second["items"]] == [4, 5, 6]
    assert second["next_cursor"] is None
    reason = first["items"][0]["reason"]
    for matching, count in ((reason[1:5], 7), ("--limit=1", 0)):
        found = http.get(path, params={"matching": matching}).json()["items"]
        assert len(found) == count
    assert http.get(f"{path}/0/7").json()["value"] == HOSTILE


def test_dead_letters_are_replayed_by_the_runner(http, job_of):
    job_id = job_of("good")
    _until_joining(http, job_id)
    records = [
        {"partition": 0, "offset": 7},
        {"partition": 0, "offset": 8, "value_base64": "e30="},
        {"partition": 0, "offset": 9, "value": "still bad"},
    ]
    done = http.post(f"/v1/jobs/{job_id}/dead-letters:replay", json={"records": records})
    assert done.status_code == 200
    assert done.json()["rows"] == 2
    assert [bad["offset"] for bad in done.json()["still_bad"]] == [9]
    for some in ({"all": True}, {"all": True, "matching": "field"}):
        everything = http.post(f"/v1/jobs/{job_id}/dead-letters:replay", json=some)
        assert everything.status_code == 200


def test_dead_letters_of_a_job_that_has_finished_are_replayed_and_it_stays_finished(plane, http):
    job_id = http.post("/v1/jobs", json={"sql": script(), "name": "done"}).json()["id"]
    (plane.services.settings.jobs_dir / job_id / "go").touch()
    wait_until(lambda: _rests(http, job_id), deadline_s=30, what="the job has finished")
    events = http.get(f"/v1/jobs/{job_id}/events").json()["items"]
    for offset in (7, 8):
        body = {"records": [{"partition": 0, "offset": offset}]}
        done = http.post(f"/v1/jobs/{job_id}/dead-letters:replay", json=body)
        assert (done.status_code, done.json()["rows"]) == (200, 1)
        wait_until(lambda: _rests(http, job_id), deadline_s=30, what="the runner has ended")
    decided = {"cause": "records-lost", "choice": "continue", "reason": "r", "by": "ann"}
    refused = http.post(f"/v1/jobs/{job_id}:acknowledge", json=decided)
    assert refused.json()["type"].rpartition(":")[2] == "runner-absent"
    assert "only its dead letters" in refused.json()["hint"]
    assert http.get(f"/v1/jobs/{job_id}/events").json()["items"] == events
    assert http.delete(f"/v1/jobs/{job_id}").is_success


def _rests(http, job_id):
    job = http.get(f"/v1/jobs/{job_id}").json()
    return job["state"] == "FINISHED" and not job["runner"]["alive"]


def _until_joining(http, job_id):
    wait_until(lambda: http.get(f"/v1/jobs/{job_id}").json()["state"] == "JOINING", deadline_s=20)


def test_letters_of_a_job_with_event_time_are_refused_with_the_way_out(http):
    rowtime = "proctime TIMESTAMP(3), WATERMARK FOR proctime AS proctime"
    sql = script().replace("proctime AS PROCTIME()", rowtime)
    job_id = http.post("/v1/jobs", json={"sql": sql}).json()["id"]
    http.post(f"/v1/jobs/{job_id}:stop")
    answer = http.post(f"/v1/jobs/{job_id}/dead-letters:replay", json={"all": True})
    told = answer.json()
    assert (answer.status_code, told["type"].rpartition(":")[2]) == (409, "not-replayable")
    assert "has moved the watermark on without them" in told["detail"]
    assert "PARTITION/OFFSET --raw" in told["hint"]
    assert "JOB" not in told["hint"]


WRONG_REPLAYS = {
    "nothing_named": ({}, "is required"),
    "both_named": ({"all": True, "records": [{"partition": 0, "offset": 1}]}, "is required"),
    "no_records": ({"records": []}, "records"),
    "records_and_a_filter": (
        {"records": [{"partition": 0, "offset": 1}], "matching": "x"},
        "cannot be combined",
    ),
    "two_values": (
        {"records": [{"partition": 0, "offset": 1, "value": "a", "value_base64": "YQ=="}]},
        "two values",
    ),
    "bad_base64": (
        {"records": [{"partition": 0, "offset": 1, "value_base64": "%%"}]},
        "value_base64",
    ),
    "negative_offset": ({"records": [{"partition": 0, "offset": -1}]}, "offset"),
}


@pytest.mark.parametrize(("body", "detail"), WRONG_REPLAYS.values(), ids=WRONG_REPLAYS)
def test_a_replay_that_makes_no_sense_is_a_problem(http, job_of, body, detail):
    answer = http.post(f"/v1/jobs/{job_of('good')}/dead-letters:replay", json=body)
    assert answer.status_code == 422
    assert detail in answer.json()["detail"]


ADDRESSES = {
    "batch_no_number": "batches/x",
    "batch_list_too_long": "batches?limit=201",
    "batch_cursor_negative": "batches?cursor=-1",
    "batch_negative": "batches/-1",
    "batch_beyond_int64": f"batches/{2**63}",
    "topic_with_slash": "rows/a%2Fb/0/0",
    "topic_like_an_option": "rows/%2D-job-dir=x y/0/0",
    "partition_too_large": f"rows/clicks/{2**31}/0",
    "cursor_of_words": "dead-letters?cursor=--all",
    "limit_too_large": "dead-letters?limit=501",
    "value_too_large": f"dead-letters/0/7?value_bytes={2**30}",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_that_makes_no_sense_reaches_no_process(http, job_of, address):
    answer = http.get(f"/v1/jobs/{job_of('hang')}/{address}")
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_topic_that_looks_like_an_option_stays_a_topic(http, job_of):
    found = http.get(f"/v1/jobs/{job_of('good')}/rows/--help/0/0")
    assert found.json()["coordinates"]["topic"] == "--help"


REFUSED = {
    "expired": (410, "pinned-version-expired"),
    "unknown": (404, "unknown-batch"),
    "garbage": (503, "inspection"),
    "flood": (503, "inspection"),
    "mute": (503, "inspection"),
}


@pytest.mark.parametrize(("name", "status", "kind"), [(n, *v) for n, v in REFUSED.items()])
def test_what_an_inspection_refuses_or_fails_is_a_problem(http, job_of, name, status, kind):
    answer = http.get(f"/v1/jobs/{job_of(name)}/batches/1")
    assert answer.status_code == status
    assert answer.json()["type"] == f"urn:sluice:problem:{kind}"
    assert answer.json()["hint"]


def test_no_inspection_of_a_job_that_is_not_there(http):
    absent = "01234567-89ab-7def-8123-456789abcdef"
    for path in ("batches/1", "rows/clicks/0/0", "doctor", "dead-letters", "dead-letters/0/1"):
        assert http.get(f"/v1/jobs/{absent}/{path}").status_code == 404, path


def _inspections(job_id):
    return [p for p in psutil.process_iter(["cmdline"]) if job_id in " ".join(_command(p))]


def _command(process):
    command = process.info["cmdline"] or []
    return command if "tests.support.inspect_program" in command else []


def test_an_inspection_that_hangs_is_ended_and_runs_at_a_low_priority(http, job_of, monkeypatch):
    monkeypatch.setattr(inspection, "_TIMEOUT_S", 3.0)
    job_id = job_of("hang")
    answers = []
    asking = threading.Thread(target=lambda: answers.append(http.get(f"/v1/jobs/{job_id}/doctor")))
    asking.start()
    found = wait_until(lambda: _inspections(job_id), deadline_s=20)
    assert wait_until(lambda: found[0].nice() == 10, deadline_s=5)
    asking.join(timeout=300)
    assert answers[0].status_code == 503
    assert "within 3 s" in answers[0].json()["detail"]
    assert _inspections(job_id) == []


def test_more_inspections_than_there_is_room_for_are_asked_to_come_back(
    plane, http, job_of, monkeypatch
):
    monkeypatch.setattr(inspection, "_TIMEOUT_S", 3.0)
    job_id = job_of("hang")

    def ask(answers):
        with httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as client:
            answers.append(client.get(f"/v1/jobs/{job_id}/doctor"))

    answers = []
    threads = [threading.Thread(target=ask, args=(answers,)) for _ in range(12)]
    for thread in threads:
        thread.start()
    wait_until(lambda: answers, deadline_s=20)
    assert answers[0].json()["type"] == "urn:sluice:problem:busy"
    assert answers[0].headers["Retry-After"] == "5"
    assert len(_inspections(job_id)) <= 2
    assert http.get("/v1/jobs").status_code == 200  # everybody else is served
    for thread in threads:
        thread.join(timeout=60)
