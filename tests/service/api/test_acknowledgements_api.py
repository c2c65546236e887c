"""Decisions of operators, from REST to a runner and back."""

import json
import os
import signal

import pytest

from service.api.routes import runner_requests
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import CHOICES
from tests.support.control_plane import script
from tests.support.documents import Documents
from tests.support.wait import wait_until

DECISION = {"cause": "records-lost", "reason": "old clicks do not matter", "by": "ann"}


@pytest.fixture
def submitted(plane):
    """Submit a job of a name and wait for a state."""

    def run(name, state="JOINING"):
        with Documents(plane.url) as client:
            job_id = client.submit(script(), name)["id"]
            client.when(job_id, state=state)
        return job_id

    return run


def test_a_stalled_job_says_what_may_be_chosen_and_goes_on_when_acknowledged(http, submitted):
    job_id = submitted("lost", "STALLED")
    stalled = http.get(f"/v1/jobs/{job_id}").json()
    assert stalled["error"]["type"] == "records-lost"
    (stall,) = stalled["stalls"]
    assert (stall["type"], stall["choices"]) == ("records-lost", ["continue"])
    answer = http.post(f"/v1/jobs/{job_id}:acknowledge", json=DECISION)
    assert answer.status_code == 200
    found = answer.json()
    assert found["choice"] == "continue"
    assert found["by"] == "ann"
    assert found["reason"] == DECISION["reason"]
    assert found["gaps"] == [{"topic": None, "partition": 0, "from": 5, "to": 9}]
    job = wait_until(
        lambda: (j := http.get(f"/v1/jobs/{job_id}").json())["state"] == "JOINING" and j,
        deadline_s=20,
    )
    assert job["acknowledgements"] == [found]
    assert job["stalls"] == []
    page = http.get(f"/v1/jobs/{job_id}/acknowledgements").json()
    assert page == {"items": [found], "next_cursor": None}


def test_what_is_not_there_cannot_be_acknowledged(http, submitted):
    job_id = submitted("fine")
    answer = http.post(f"/v1/jobs/{job_id}:acknowledge", json=DECISION)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:sluice:problem:nothing-to-acknowledge"
    assert http.get(f"/v1/jobs/{job_id}/acknowledgements").json()["items"] == []


def test_the_same_key_is_the_same_decision_and_never_another_one(http, submitted):
    job_id = submitted("lost", "STALLED")
    path, headers = f"/v1/jobs/{job_id}:acknowledge", {"Idempotency-Key": "once"}
    first = http.post(path, json=DECISION, headers=headers)
    again = http.post(path, json=DECISION, headers=headers)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    other = http.post(path, json={**DECISION, "reason": "another"}, headers=headers)
    assert other.status_code == 409
    assert other.json()["type"] == "urn:sluice:problem:job-conflict"
    assert len(http.get(f"/v1/jobs/{job_id}/acknowledgements").json()["items"]) == 1


def test_acknowledgements_are_listed_in_pages(plane, http, submitted):
    job_id = submitted("fine")
    file = JobLayout(plane.services.settings.jobs_dir / job_id).acknowledgements
    record = {"at_ms": 1, **DECISION, "choice": "continue", "gaps": [], "life": None}
    lines = [json.dumps({"id": str(n), "message": "gone", **record}) for n in range(5)]
    file.write_text("\n".join([*lines[:2], "no JSON", *lines[2:], '{"id":"torn']))
    first = http.get(f"/v1/jobs/{job_id}/acknowledgements", params={"limit": 3}).json()
    assert [item["id"] for item in first["items"]] == ["0", "1", "2"]
    query = {"limit": 3, "cursor": first["next_cursor"]}
    second = http.get(f"/v1/jobs/{job_id}/acknowledgements", params=query).json()
    assert [item["id"] for item in second["items"]] == ["3", "4"]
    assert second["next_cursor"] is None


def test_without_a_runner_nothing_is_asked(plane, http, submitted):
    job_id = submitted("fine")
    http.post(f"/v1/jobs/{job_id}:stop")
    wait_until(lambda: not http.get(f"/v1/jobs/{job_id}").json()["runner"]["alive"], deadline_s=20)
    answer = http.post(f"/v1/jobs/{job_id}:acknowledge", json=DECISION)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:sluice:problem:runner-absent"
    assert "sluice jobs resume" in answer.json()["hint"]
    assert not JobLayout(plane.services.settings.jobs_dir / job_id).requests.exists()


REFUSED = {
    "unknown_cause": (409, {"cause": "bad-weather", "reason": "x"}, "topic-missing"),
    "unknown_choice": (409, {**DECISION, "choice": "repin"}, "expected continue"),
    "no_reason": (422, {"cause": "records-lost"}, "reason"),
    "empty_reason": (422, {**DECISION, "reason": ""}, "reason"),
    "reason_with_escape_codes": (422, {**DECISION, "reason": "\x1b[2J"}, "reason"),
    "long_reason": (422, {**DECISION, "reason": "x" * 501}, "reason"),
    "unknown_member": (422, {**DECISION, "force": True}, "force"),
}


@pytest.mark.parametrize(("status", "body", "detail"), REFUSED.values(), ids=REFUSED)
def test_a_decision_that_makes_no_sense_is_a_problem(http, submitted, status, body, detail):
    answer = http.post(f"/v1/jobs/{'0' * 36}:acknowledge", json=body)
    assert answer.status_code == status
    assert detail in answer.json()["detail"]
    assert answer.json()["hint"]


def test_every_guard_of_the_data_path_can_be_acknowledged():
    assert {
        "topic-identity-changed",
        "topic-missing",
        "partitions-missing",
        "offsets-went-back",
        "output-topic-changed",
        "records-lost",
    } <= {cause for cause, choices in CHOICES.items() if choices[0] == "continue"}
    assert CHOICES["pinned-version-expired"][0] == "repin"


def test_a_slow_runner_is_followed_by_the_requests_id(plane, http, submitted, monkeypatch):
    monkeypatch.setattr(runner_requests, "_WAIT_S", 0.2)
    job_id = submitted("slow")
    answer = http.post(f"/v1/jobs/{job_id}:acknowledge", json=DECISION)
    assert answer.status_code == 202
    place = answer.headers["Location"]
    assert http.get(place).json() == {
        "id": place.rpartition("/")[2],
        "status": "waiting",
        "result": None,
        "error": None,
    }
    (plane.services.settings.jobs_dir / job_id / "go").touch()
    done = wait_until(
        lambda: (r := http.get(place).json())["status"] == "refused" and r, deadline_s=20
    )
    assert done["error"]["type"] == "nothing-to-acknowledge"
    unknown = http.get(f"/v1/jobs/{job_id}/requests/{'0' * 36}")
    assert unknown.status_code == 404


def test_a_request_outlives_the_runner_that_should_carry_it_out(
    plane, http, submitted, monkeypatch
):
    monkeypatch.setattr(runner_requests, "_WAIT_S", 0.2)
    job_id = submitted("slow")
    answer = http.post(f"/v1/jobs/{job_id}:acknowledge", json=DECISION)
    assert answer.status_code == 202
    os.kill(http.get(f"/v1/jobs/{job_id}").json()["runner"]["pid"], signal.SIGKILL)
    (plane.services.settings.jobs_dir / job_id / "go").touch()
    place = answer.headers["Location"]
    wait_until(lambda: http.get(place).json()["status"] != "waiting", deadline_s=20)


def test_the_runners_warnings_are_shown_with_those_of_the_submission(http, submitted):
    job = http.get(f"/v1/jobs/{submitted('near')}").json()
    assert [warning["type"] for warning in job["warnings"]] == ["records-near-loss"]
    assert job["warnings"][0]["hint"] == "Raise retention.ms."
