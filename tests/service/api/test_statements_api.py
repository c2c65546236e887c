"""`/v1/statements` over a real server, a real store and a real runner process."""

import httpx
import pytest

from tests.support.control_plane import script
from tests.support.documents import Documents


@pytest.fixture
def post(http):
    return lambda sql: http.post("/v1/statements", json={"sql": sql})


def test_questions_are_answered_and_nothing_is_started(plane, post):
    declared, _, insert = script().rpartition("INSERT")
    answer = post(f"{declared} DESCRIBE users; EXPLAIN INSERT{insert}")
    assert answer.status_code == 200
    described, explained = answer.json()["answers"]
    assert described["statement"] == "DESCRIBE"
    assert described["rows"][0] == ["user_id", "BIGINT", "FALSE", "PRI(user_id)", None, None]
    assert explained["columns"] == ["result"]
    assert ["Sink(table=[enriched], connector=[blackhole()])"] in explained["rows"]
    assert plane.services.store.page(before=None, limit=10) == []


def test_a_job_is_shown_and_stopped(plane, post):
    with Documents(plane.url) as client:
        job_id = client.submit(script(), "watched")["id"]
        client.when(job_id, state="JOINING")
        (shown,) = post("SHOW JOBS").json()["answers"]
        assert shown["columns"] == ["job id", "job name", "status", "start time"]
        assert [job_id, "watched", "JOINING"] in [row[:3] for row in shown["rows"]]
        (stopped,) = post(f"STOP JOB '{job_id}'").json()["answers"]
        assert stopped["rows"][0][0] == job_id
        client.when(job_id, state="STOPPED")


PROBLEMS = {
    "unknown_job": ("STOP JOB 'x'", 404, "SHOW JOBS"),
    "fault_in_the_script": ("SHOW TABELS", 422, "TABLES"),
    "a_job": ("SELECT 1 FROM s", 422, "POST /v1/jobs"),
    "empty": ("", 422, "Correct the request"),
    "not_text": ("SHOW TABLES \x00", 422, "UTF-8"),
}


@pytest.mark.parametrize(("sql", "status", "hint"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_cannot_be_answered_is_a_problem_with_a_hint(post, sql, status, hint):
    answer = post(sql)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert hint in answer.json()["hint"]


def test_unknown_fields_are_refused(plane):
    body = {"sql": "SHOW TABLES", "name": "x"}
    answer = httpx.post(f"{plane.url}/v1/statements", json=body, trust_env=False)
    assert answer.status_code == 422
