"""Tables over REST: the real application, real Delta tables and the real inspection process."""

import base64
import json

import httpx
import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def http(tables_plane):
    with httpx.Client(base_url=tables_plane.url, trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def job(tables_plane):
    return f"/v1/jobs/{tables_plane.enriched}"


def test_rows_of_a_version_are_told_with_their_place_in_the_source(http, job):
    query = {"key": ["1", "2"], "version": 2}
    found = http.get(f"{job}/dimensions/users", params=query).json()
    assert [row["values"]["name"] for row in found["items"]] == ["user 1", "user 2"]
    assert found["items"][0]["position"] == {"epoch": 0, "file": 1, "pos": 5, "row": 0}
    assert (found["version"], found["newest_version"], found["complete"]) == (2, 3, True)


def test_rows_as_arrow_have_their_place_in_headers(http, job):
    answer = http.get(
        f"{job}/dimensions/users",
        params={"limit": 1},
        headers={"Accept": f"application/json;q=0.5, {ARROW}"},
    )
    assert answer.headers["content-type"] == ARROW
    assert answer.headers["Sluice-Version"] == "3"
    rows = pa.ipc.open_stream(answer.content).read_all()
    assert rows.select(["user_id", "name"]).to_pylist() == [{"user_id": 1, "name": "renamed"}]
    cursor = answer.headers["Sluice-Next-Cursor"]
    place = json.loads(base64.urlsafe_b64decode(cursor + "=="))
    assert place == {"t": "users", "v": [3], "k": ["1"]}


def test_changes_between_two_versions(http, job):
    found = http.get(f"{job}/dimensions/users/changes", params={"from": 2, "to": 3}).json()
    assert [(c["change"], c["key"]["user_id"]) for c in found["items"]] == [
        ("update", 1),
        ("delete", 2),
    ]
    assert (found["from_version"], found["to_version"]) == (2, 3)


def test_the_history_of_a_key_goes_on_with_its_cursor_alone(http, job):
    address = f"{job}/dimensions/users/history"
    refused = http.get(address).json()
    assert refused["hint"].startswith('Give "key" for the first page')
    first = http.get(address, params={"key": "1", "limit": 1}).json()
    assert [(i["version"], i["before"]["name"], i["after"]["name"]) for i in first["items"]] == [
        (3, "user 1", "renamed")
    ]
    assert (first["items"][0]["source_ts_ms"], first["version"]) == (1010, 3)
    second = http.get(address, params={"cursor": first["next_cursor"]}).json()
    assert [(i["version"], i["change"]) for i in second["items"]] == [(1, "insert")]
    assert (second["beginning"]["version"], second["beginning"]["values"]) == (0, None)


def test_the_newest_rows_of_the_output(http, job):
    found = http.get(f"{job}/preview", params={"limit": 5}).json()
    assert found["items"][0]["values"]["price"] == "12.50"
    assert found["batches"][0]["pin"]["versions"] == {"prices": 1, "users": 2}


def test_the_columns_of_an_output_are_those_of_its_rows(http, job, tables_plane):
    (written,) = http.get(f"{job}/outputs").json()["items"]
    shown = http.get(f"{job}/preview", params={"limit": 5}).json()
    assert written["insert"] == 1
    assert written["table"] == shown["table"]
    assert written["columns"] == [c for c in shown["columns"] if not c["name"].startswith("_")]
    (printed,) = http.get(f"/v1/jobs/{tables_plane.printed}/outputs").json()["items"]
    assert printed["columns"], "of any connector"


REFUSED = {
    "version_that_is_not_there": ("dimensions/users?version=9", 404, "unknown-version"),
    "key_of_another_type": ("dimensions/users?key=one", 400, "question"),
    "cursor_with_a_key": ("dimensions/users?cursor=e30&key=1", 400, "question"),
    "changes_of_nothing": ("dimensions/users/changes", 400, "question"),
    "history_of_nobody": ("dimensions/users/history", 400, "question"),
    "history_of_a_key_and_a_cursor": (
        "dimensions/users/history?key=1&cursor=e30",
        400,
        "question",
    ),
    "cursor_with_blanks": ("dimensions/users?cursor=a%20b", 400, "bad-request"),
    "too_many_keys": ("dimensions/users?" + "key=1&" * 101, 400, "bad-request"),
    "negative_version": ("dimensions/users?version=-1", 400, "bad-request"),
    "no_rows_at_once": ("preview?limit=0", 400, "bad-request"),
}


@pytest.mark.parametrize(("path", "status", "kind"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_shown_is_a_problem_with_a_hint(http, job, path, status, kind):
    answer = http.get(f"{job}/{path}")
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:sluice:problem:{kind}")
    assert answer.json()["hint"]


def test_the_output_of_a_sink_without_a_table_is_a_conflict_of_its_own(http, tables_plane):
    answer = http.get(f"/v1/jobs/{tables_plane.printed}/preview")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:sluice:problem:not-readable")


def test_no_table_of_a_job_that_is_not_there(http):
    absent = "/v1/jobs/01234567-89ab-7def-8123-456789abcdef"
    for path in (
        "dimensions",
        "dimensions/users",
        "dimensions/users/changes?from=1",
        "outputs",
        "preview",
    ):
        assert http.get(f"{absent}/{path}").json()["type"] == "urn:sluice:problem:job-not-found"
