"""Transitions as server-sent events, over a real server, a real store and real runner processes."""

import json
from contextlib import contextmanager
from functools import partial

import httpx
import pytest

from service.api.routes import events as event_routes
from service.jobs.store.job import JobEvent, JobState
from service.security.tokens import NewToken, TokenScope
from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents
from tests.support.wait import wait_until

STREAM = {"Accept": "text/event-stream"}
ABSENT = "01234567-89ab-7def-8123-456789abcdef"


def _told(lines):
    """The events of a stream as they come; comments have the name `comment`."""
    event = {}
    for line in lines:
        if line.startswith(":"):
            yield {"event": "comment", "data": line}
        elif not line:
            if "data" in event:
                yield {**event, "data": json.loads(event["data"])}
            event = {}
        else:
            name, _, value = line.partition(": ")
            event[name] = value


@contextmanager
def _stream(plane, path, **headers):
    with (
        httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as http,
        http.stream("GET", path, headers={**STREAM, **headers}) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _told(answer.iter_lines())


def _until(told, wanted):
    """All events up to the first that is `wanted`."""
    found = []
    for event in told:
        found.append(event)
        if wanted(event):
            return found
    raise AssertionError(f"the stream ended after {found[-3:]}")


def _state(name):
    return lambda event: event["event"] == "status" and event["data"]["state"] == name


def _steps(found):
    return [
        (event["data"]["from"], event["data"]["to"])
        for event in found
        if event["event"] == "transition"
    ]


def test_a_stream_tells_what_was_and_what_comes_and_goes_on_where_it_was_left(plane, client):
    job_id = client.submit(script(), "follow")["id"]
    path = f"/v1/jobs/{job_id}/events"
    with _stream(plane, path) as told:
        found = _until(told, _state("JOINING"))
        steps = _steps(found)
        assert steps[:2] == [(None, "CREATED"), ("CREATED", "STARTING")]
        assert steps[-1][1] == "JOINING"
        assert "sql" not in found[-1]["data"]
        assert found[-1]["data"]["probe"]["topic"] == "clicks"
        client.pause(job_id)
        later = _until(told, _state("PAUSED"))
        assert _steps(later) == [("JOINING", "PAUSED")]
    ids = [int(event["id"]) for event in [*found, *later] if event["event"] == "transition"]
    assert ids == [event["sequence"] for event in client.events(job_id)]
    assert all("id" not in event for event in found if event["event"] == "status")
    with _stream(plane, path, **{"Last-Event-ID": str(ids[1])}) as told:
        again = _until(told, _state("PAUSED"))
    assert [int(event["id"]) for event in again if event["event"] == "transition"] == ids[2:]
    with _stream(plane, f"{path}?cursor={ids[-1]}") as told:
        client.remove(job_id)
        last = list(told)[-1]
    assert (last["event"], last["data"]) == ("removed", {"job_id": job_id})


def test_a_status_comes_behind_its_transition_however_old_the_look_at_the_store_is(
    plane, client, monkeypatch
):
    monkeypatch.setattr(event_routes, "_TICK_S", 3600)
    services = plane.services
    job_id = client.submit(script(), "ordered")["id"]
    client.when(job_id, state="JOINING")
    hub = event_routes.EventHub(services.store, closing=lambda: False)
    detail = partial(_detail, services, job_id)
    following = event_routes.Following(hub, services.store, job_id, 0, detail=detail)
    following.next_events()
    client.pause(job_id)
    client.when(job_id, state="PAUSED")
    events = following.next_events()
    assert [event.event for event in events[-2:]] == ["transition", "status"]
    assert json.loads(events[-2].data)["to"] == "PAUSED"


def _detail(services, job_id):
    return services.detail(services.store.get(job_id))


def test_the_stream_of_all_jobs_begins_now_and_tells_what_is_gone(plane, client):
    old = client.submit(script(), "old")["id"]
    client.when(old, state="JOINING")
    with _stream(plane, "/v1/events") as told:
        next(told)
        new = client.submit(script(), "new")["id"]
        found = _until(told, lambda event: event["event"] == "transition")
        assert found[-1]["data"]["job_id"] == new
        client.remove(new)
        found = _until(told, lambda event: event["event"] == "removed")
        assert found[-1]["data"] == {"job_id": new}
    page = client.get("/v1/events", limit=2)
    rest = client.get("/v1/events", cursor=page["next_cursor"], limit=500)
    numbers = [event["sequence"] for event in page["items"] + rest["items"]]
    assert numbers == sorted(set(numbers))
    assert {event["job_id"] for event in page["items"] + rest["items"]} >= {old}


REFUSED = {
    "unknown_job": (404, f"/v1/jobs/{ABSENT}/events", {}),
    "number_of_words": (400, "/v1/events", {"Last-Event-ID": "x"}),
    "negative_number": (400, "/v1/events?cursor=-1", {}),
    "number_beyond_int64": (400, f"/v1/events?cursor={2**63}", {}),
    "neither_form": (406, "/v1/events", {"Accept": "text/html"}),
}


@pytest.mark.parametrize(("status", "path", "headers"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_stream_is_a_problem(plane, status, path, headers):
    answer = httpx.get(f"{plane.url}{path}", headers={**STREAM, **headers}, trust_env=False)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["hint"].endswith(".")


def test_streams_end_with_their_server_and_have_heartbeats_and_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(event_routes, "_HEARTBEAT_S", 0.1)
    monkeypatch.setattr(event_routes, "MOST_STREAMS", 1)
    with control_plane(tmp_path) as plane:
        with _stream(plane, "/v1/events") as told:
            _until(told, lambda event: event["event"] == "comment" and "ping" in event["data"])
            refused = httpx.get(f"{plane.url}/v1/events", headers=STREAM, trust_env=False)
            assert refused.status_code == 503
            assert refused.json()["type"] == "urn:sluice:problem:busy"
            assert refused.headers["retry-after"] == "5"
        wait_until(lambda: _opens(plane), what="the seat is given back")
        with _stream(plane, "/v1/events") as told:
            next(told)
            plane._open_parts().server.should_exit = True
            assert all(event["event"] == "comment" for event in told)


def _opens(plane):
    url = f"{plane.url}/v1/events"
    with httpx.stream("GET", url, headers=STREAM, trust_env=False) as answer:
        return answer.status_code == 200


def test_a_stream_ends_when_its_token_is_revoked_and_others_go_on(tmp_path, secret, processes):
    with control_plane(tmp_path) as plane:
        tokens = plane.services.store.tokens
        token, text = tokens.create(NewToken("reads", TokenScope.VIEWER))
        _, other = tokens.create(NewToken("stays", TokenScope.VIEWER))
        bearer, staying = ({"Authorization": f"Bearer {each}"} for each in (text, other))
        with (
            _stream(plane, "/v1/events", **staying) as kept,
            _stream(plane, "/v1/events", **bearer) as told,
        ):
            next(told), next(kept)
            tokens.revoke(token.id)
            assert all(event["event"] == "comment" for event in told)
            with Documents(plane.url) as client:
                client.submit(script(), "after")
            _until(kept, lambda event: event["event"] == "transition")
        again = httpx.get(f"{plane.url}/v1/events", headers={**STREAM, **bearer}, trust_env=False)
        assert again.status_code == 401


def test_streams_of_one_token_leave_seats_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(event_routes, "MOST_OF_ONE_TOKEN", 1)
    with control_plane(tmp_path) as plane:
        texts = [
            plane.services.store.tokens.create(NewToken(name, TokenScope.VIEWER))[1]
            for name in ("one", "other")
        ]
        one, other = ({"Authorization": f"Bearer {each}"} for each in texts)
        with _stream(plane, "/v1/events", **one):
            refused = httpx.get(
                f"{plane.url}/v1/events", headers={**STREAM, **one}, trust_env=False
            )
            assert refused.status_code == 503
            assert "of this token" in refused.json()["detail"]
            with _stream(plane, "/v1/events", **other) as told:
                next(told)


def test_a_transition_has_the_words_of_both_states():
    first = JobEvent(1, ABSENT, 0, None, JobState.CREATED, "submitted")
    next_one = JobEvent(2, ABSENT, 1, JobState.CREATED, JobState.SNAPSHOT, "reported")
    words = [(v.word_before, v.word) for v in map(event_routes.event_view, (first, next_one))]
    assert words == [("", "Created"), ("Created", "Copying")]
