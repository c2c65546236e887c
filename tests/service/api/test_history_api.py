"""The history of stored jobs over REST, in process over a real store."""

import time

import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.jobs.store.history import COARSE, FINE, SERIES, write_point
from tests.support.stored_jobs import store_job

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def http(services):
    with TestClient(create_app(services), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="module")
def now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def job_id(services, now_ms):
    job_id = store_job(services, "open")
    file = services.layout(job_id).history
    for ring, back in ((FINE, 6), (COARSE, 180)):
        for slot in range(ring.slot(now_ms) - back, ring.slot(now_ms)):
            write_point(file, ring, slot, [float(slot % 7)] * len(SERIES))
    return job_id


def test_an_hour_comes_in_steps_of_ten_seconds(http, job_id):
    answer = http.get(f"/v1/jobs/{job_id}/history").json()
    assert (answer["step_s"], len(answer["at_ms"])) == (10, 6)
    assert set(answer["series"]) == set(SERIES)
    assert {len(numbers) for numbers in answer["series"].values()} == {6}
    assert [each["to"] for each in answer["transitions"]][-1] == "JOINING"


def test_what_is_older_comes_by_the_minute_or_as_means_of_more(http, job_id, now_ms):
    query = {"since": now_ms - 2 * HOUR_MS}
    minutes = http.get(f"/v1/jobs/{job_id}/history", params=query).json()
    assert minutes["step_s"] == 60
    assert 119 <= len(minutes["at_ms"]) <= 120
    few = http.get(f"/v1/jobs/{job_id}/history", params={**query, "step": 600}).json()
    assert 11 <= len(few["at_ms"]) <= 13
    assert {at % 600_000 for at in few["at_ms"]} == {0}


def test_what_nobody_has_seen_is_empty(http, services):
    quiet = store_job(services, "fresh")
    answer = http.get(f"/v1/jobs/{quiet}/history").json()
    assert answer["at_ms"] == answer["series"]["lag_records"] == []


REFUSED = {"step": ["0", "15", "7200", "x"], "since": ["-1", "x"], "until": ["1"]}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in REFUSED.items() for v in vs])
def test_other_questions_are_refused(http, job_id, name, value):
    assert http.get(f"/v1/jobs/{job_id}/history", params={name: value}).status_code == 400


def test_a_job_that_is_not_there_has_no_history(http):
    path = "/v1/jobs/01234567-89ab-7def-8123-456789abcdef/history"
    assert http.get(path).status_code == 404


def test_a_list_has_the_last_half_hour_of_its_jobs_where_it_is_wanted(http, job_id):
    jobs = {job["id"]: job for job in http.get("/v1/jobs?recent=true").json()["items"]}
    recent = jobs[job_id]["recent"]
    assert len(recent) == 30
    assert recent.count(None) <= 1
    assert http.get("/v1/jobs").json()["items"][0]["recent"] is None
