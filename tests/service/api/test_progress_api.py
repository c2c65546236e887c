"""Plans, lists, watermarks, waiting and metrics of stored jobs, in process over a real store."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from joins.batch.event_channels import BatchInput, EventInput, Heard
from joins.batch.event_state import EventSpec, EventState, EventView, advance
from joins.plan.plan import Windowing, WindowKind
from joins.plan.stream_topics import SPAN, StreamTopic, StreamTopics
from joins.plan.types import SqlType, TypeName
from service.api.app import create_app
from service.api.http.checks import accepts
from service.api.http.problems import problem
from service.api.routes.metrics import (
    CHANNEL_METRICS,
    EVENT_TIME_METRICS,
    JOB_METRICS,
    TABLE_METRICS,
    job_metrics,
)
from service.jobs.store.job import JobState
from service.jobs.store.rows import StoredJobs
from service.jobs.submit.submission import SubmissionRequest, Submissions
from service.schemas.jobs import EventTimeView, JobDetail
from service.sql.answers.explain import explain
from service.sql.planner.planner import plan_script
from tests.support.control_plane import HOOKS, script
from tests.support.event_time import AT_MS, event_time, generator, windows
from tests.support.stored_jobs import STEPS, store_job, write_report

MIN = str(-(2**63))


@pytest.fixture(scope="module")
def ids(services):
    return {name: store_job(services, name) for name in STEPS}


@pytest.fixture(scope="module")
def http(services):
    app = create_app(services)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


# Scripts that are not submitted
# --------------------------------------------------------------------------------------------------


def test_a_plan_is_shown_without_touching_anything(services, http):
    before = services.store.page()
    answer = http.post("/v1/jobs:plan", json={"sql": script(host="down", password="canary-1")})
    assert answer.status_code == 200
    shown = answer.json()
    planned = plan_script(script(host="down"))
    assert len(shown["lines"]) == len(explain(planned.plan))
    assert shown["text"].splitlines() == shown["lines"]
    assert shown["plan"]["dimensions"][0]["name"] == "users"
    assert shown["warnings"]
    assert "canary-1" not in answer.text
    assert services.store.page() == before


def test_a_validation_checks_what_a_submission_would(services, http):
    good = http.post("/v1/jobs:validate", json={"sql": script(), "name": "checked"})
    assert good.json() == {"valid": True, "name": "checked", "outside": True, "warnings": []}
    inline = http.post("/v1/jobs:validate", json={"sql": script(password="open sesame")})
    assert inline.json()["warnings"]
    down = {"sql": script(host="down")}
    refused = http.post("/v1/jobs:validate", json=down)
    assert (refused.status_code, refused.json()["hint"]) == (422, "Start it.")
    assert http.post("/v1/jobs:validate", json={**down, "outside": False}).status_code == 200
    assert all(job.name != "checked" for job in services.store.page())


def test_a_migration_has_the_script_its_changes_and_what_is_left(services, http):
    before = services.store.page()
    sql = script().replace("'blackhole'", "'elasticsearch-7'")
    done = http.post("/v1/jobs:migrate", json={"sql": sql})
    assert done.status_code == 200
    changed = done.json()
    assert (changed["accepted"], len(changed["changes"]), changed["left"]) == (True, 1, [])
    assert plan_script(changed["sql"]).plan.name == plan_script(script()).plan.name
    left = http.post("/v1/jobs:migrate", json={"sql": f"CALL f(1);{sql}"}).json()
    assert not left["accepted"]
    (fault,) = left["left"]
    assert (fault["message"], fault["outside"]) == ("CALL statements are not supported", True)
    assert http.post("/v1/jobs:migrate", json={"sql": "\x00"}).status_code == 422
    assert services.store.page() == before


@pytest.mark.parametrize("address", ["/v1/jobs:plan", "/v1/jobs:validate", "/v1/jobs"])
def test_the_problem_of_a_script_has_all_its_findings(http, address):
    sql = script().replace("'blackhole'", "'elasticsearch-7'")
    answer = http.post(address, json={"sql": f"CALL f(1);\n{sql}"})
    assert answer.status_code == 422
    function, sink = answer.json()["findings"]
    assert (function["line"], function["outside"], function["sure"]) == (1, True, False)
    assert sink["replacement"].startswith("WITH (")
    assert sink["sure"]


NO_SCRIPTS = {
    "bad_sql": ({"sql": "CREATE TABEL x"}, "sql"),
    "unknown_member": ({"sql": "x", "owner": "me"}, "unprocessable-content"),
    "no_sql": ({}, "unprocessable-content"),
    "no_object": ([], "unprocessable-content"),
    "too_long": ({"sql": "-- " + "x" * 70_000}, "submission"),
    "nul": ({"sql": "SELECT \x00"}, "submission"),
}


@pytest.mark.parametrize("address", ["/v1/jobs:plan", "/v1/jobs:validate", "/v1/jobs"])
@pytest.mark.parametrize(("body", "kind"), NO_SCRIPTS.values(), ids=NO_SCRIPTS)
def test_what_is_no_script_is_a_problem_of_the_same_kind_everywhere(http, address, body, kind):
    answer = http.post(address, json=body)
    assert answer.status_code == 422
    assert answer.json()["type"] == f"urn:sluice:problem:{kind}"
    if kind == "sql":
        assert (answer.json()["line"], answer.json()["column"]) == (1, 8)


def test_the_same_request_twice_at_once_is_one_job(services):
    both = threading.Barrier(2, timeout=30)

    def preflight(plan, settings, secrets):
        both.wait()
        return plan

    submissions = Submissions(
        services.store, services.settings, replace(HOOKS, preflight=preflight)
    )
    request = SubmissionRequest(script(), "twice", "key-1")
    with ThreadPoolExecutor(2) as threads:
        jobs = list(threads.map(submissions.submit, [request, request]))
    assert jobs[0].id == jobs[1].id
    directories = {path.name for path in services.settings.jobs_dir.iterdir()}
    assert directories == services.store.look(StoredJobs.ids)
    services.store.delete(jobs[0].id)


READS = ("", "/{id}", "/{id}/watermarks", "/{id}/events?limit=2", "/{id}/explain-wait")


@pytest.mark.parametrize("address", READS)
def test_no_request_goes_to_a_thread_before_its_handler(http, ids, monkeypatch, address):
    """Each such hop waits for whichever thread computes."""

    async def refuse(function, *_arguments, **_values):
        raise AssertionError(f"{function} runs in a thread")

    monkeypatch.setattr("fastapi.dependencies.utils.run_in_threadpool", refuse)
    job_id = next(iter(ids.values()))
    assert http.get("/v1/jobs" + address.format(id=job_id)).status_code == 200


# Lists
# --------------------------------------------------------------------------------------------------

LISTED = {
    "one_state": ({"state": "PAUSED"}, ["paused"]),
    "two_states": ({"state": ["PAUSED", "FINISHED"]}, ["finished", "paused"]),
    "state_that_none_has": ({"state": "CATCHING_UP"}, []),
    "desired_state": ({"desired_state": ["PAUSED", "STOPPED"]}, ["failed", "paused"]),
    "whole_name": ({"name": "open"}, ["open"]),
    "part_of_a_name": ({"search": "ED"}, ["finished", "failed", "stalled", "paused"]),
    "both": ({"search": "ed", "state": "FAILED"}, ["failed"]),
    "wildcards_mean_themselves": ({"search": "%"}, []),
}


@pytest.mark.parametrize(("query", "names"), LISTED.values(), ids=LISTED)
def test_a_list_has_the_jobs_that_fit(http, ids, query, names):
    assert [job["name"] for job in http.get("/v1/jobs", params=query).json()["items"]] == names


def test_a_filtered_list_comes_in_pages(http, ids):
    query = {"search": "ed", "limit": 3}
    first = http.get("/v1/jobs", params=query).json()
    second = http.get("/v1/jobs", params={**query, "cursor": first["next_cursor"]}).json()
    assert [job["name"] for job in second["items"]] == ["paused"]
    assert second["next_cursor"] is None
    found = http.get("/v1/jobs", params={"search": ids["open"][:30].upper()}).json()["items"]
    assert ids["open"] in [job["id"] for job in found]


# Watermarks and waiting
# --------------------------------------------------------------------------------------------------


def test_watermarks_are_shown_by_channel_with_what_was_emitted(http, ids):
    """E32: each channel and what its source has emitted, not one minimum."""
    report = http.get(f"/v1/jobs/{ids['open']}/watermarks").json()
    assert report["gate"]["open"] is True
    assert report["combined"] == {"timestamp_ms": -(2**63), "use_processing_time": True}
    (channel,) = report["channels"]
    assert (channel["dimension"], channel["channel"]) == ("users", "users/0")
    assert channel["watermark"]["use_processing_time"] is True
    (emission,) = report["emitted"]
    assert emission["dimension"] == "users"
    assert [vertex["id"] for vertex in report["vertices"]] == ["build-users", "probe", "join"]


WAITS = {
    "fresh": (True, "The runner has not been started yet"),
    "copying": (True, "The runner has not been started yet"),
    "paused": (True, "paused by request"),
    "failed": (True, "Database does not answer"),
    "finished": (False, "Everything up to the end of its stream is joined"),
}


@pytest.mark.parametrize(("name", "expected"), WAITS.items(), ids=WAITS)
def test_waiting_is_explained(http, ids, name, expected):
    found = http.get(f"/v1/jobs/{ids[name]}/explain-wait").json()
    assert found["waiting"] is expected[0]
    assert expected[1] in found["sentence"]
    assert found["conditions"]


# Flink's addresses
# --------------------------------------------------------------------------------------------------


def test_a_channel_of_several_topics_has_the_topic_in_its_name():
    """The partitions of all topics count through as Flink's subtasks."""
    topics = StreamTopics((StreamTopic("clicks"), StreamTopic("visits")))
    spec = EventSpec((EventInput("probe"),), waits=True, window=None, on_event=False)
    batch = BatchInput(90_000, (0, SPAN, SPAN + 1), {n: Heard(n + 5, 1) for n in (0, SPAN + 1)})
    move = advance(spec, EventState(), batch)
    state = move.after.counted({"waited": 2})
    view = EventView(spec, state, move.channels, 55_000, None, (), (), False, topics=topics)
    found = EventTimeView.model_validate(view.as_json())
    assert [(c.channel, c.topic, c.partition) for c in found.channels] == [
        ("probe/clicks/0", "clicks", 0),
        ("probe/visits/0", "visits", 0),
        ("probe/visits/1", "visits", 1),
    ]
    assert (found.waits_for.topic, found.waits_for.partition) == ("visits", 0)
    assert "the stream, partition visits/0, which has said nothing yet" in found.waits_for.text


def test_flinks_addresses_have_flinks_shapes(http, ids):
    """E33: the metrics of subtasks 0 to N, N = parallelism - 1."""
    base = f"/jobs/{ids['open'].replace('-', '')}/vertices"
    inputs = http.get(f"{base}/build-users/watermarks").json()
    assert inputs == [{"id": "0.currentInputWatermark", "value": MIN}]
    names = http.get(f"{base}/join/metrics").json()
    assert {"id": "0.currentInput2Watermark"} in names
    assert all(set(name) == {"id"} for name in names)
    query = {"get": "0.currentLowWatermark,0.currentUseProcessingTime,9.currentLowWatermark"}
    values = http.get(f"/jobs/{ids['open']}/vertices/build-users/metrics", params=query).json()
    assert values == [
        {"id": "0.currentLowWatermark", "value": MIN},
        {"id": "0.currentUseProcessingTime", "value": "true"},
    ]


def test_a_vertex_has_its_id_before_and_after_its_runner_reports(http, ids):
    """C21: ids of operators are stable."""
    for name in ("fresh", "copying", "open", "paused"):
        report = http.get(f"/v1/jobs/{ids[name]}/watermarks").json()
        assert [vertex["id"] for vertex in report["vertices"]] == ["build-users", "probe", "join"]
    assert http.get(f"/jobs/{ids['fresh']}/vertices/build-users/watermarks").json() == []


@pytest.mark.parametrize("what", ["watermarks", "metrics"])
def test_an_unknown_vertex_is_a_problem_that_names_the_known_ones(http, ids, what):
    answer = http.get(f"/jobs/{ids['open']}/vertices/build-items/{what}")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:sluice:problem:vertex-not-found"
    assert "build-users, probe, join" in answer.json()["detail"]


# Event time
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def timed(services):
    """Stores a job with its gate open that reports `found` as its event time; its id."""
    stored = []

    def store(found, hooks=HOOKS):
        submissions = Submissions(services.store, services.settings, hooks)
        job = submissions.submit(SubmissionRequest(script(), f"in event time {len(stored)}"))
        stored.append(job.id)
        layout = services.layout(job.id)
        write_report(layout, JobState.JOINING)
        report = json.loads(layout.status.read_bytes())
        probe = {**report["probe"], "start_offsets": {"0": 0, "1": 0}}
        layout.status.write_text(json.dumps({**report, "event_time": found, "probe": probe}))
        return job.id

    yield store
    for job_id in stored:
        services.store.delete(job_id)


def test_what_a_runner_reports_is_shown_whole():
    stream, rates = EventInput("probe", idle_timeout_ms=1_000), EventInput("rates")
    spec = EventSpec((stream, rates), waits=True, window=None, on_event=False)
    heard = {0: Heard(60_000, 1)}
    batch = BatchInput(90_000, (0, 1), heard, dimensions={"rates": {2: Heard(20_000, 1)}})
    move = advance(spec, EventState(), batch)
    state = move.after.counted({"waited": 12_000, "late": 3})
    report = EventView(spec, state, move.channels, 55_000, None, (), (), False, {0: 9}).as_json()
    assert EventTimeView.model_validate(report).model_dump(mode="json") == report
    assert report.keys() == event_time().keys()
    assert report["channels"][0].keys() == event_time()["channels"][0].keys()
    assert [channel["backlog_end"] for channel in report["channels"]] == [9, 0, None]


ON_USERS = [
    generator("probe/0", AT_MS + 40_000),
    generator("probe/1", None, status="IDLE"),
    generator("users/0", AT_MS),
]


def test_watermarks_have_each_partitions_generator(http, timed):
    job_id = timed(event_time(channels=ON_USERS))
    report = http.get(f"/v1/jobs/{job_id}/watermarks").json()["event_time"]
    channels = [(c["channel"], c["watermark_ms"], c["status"]) for c in report["channels"]]
    assert channels == [
        ("probe/0", AT_MS + 40_000, "ACTIVE"),
        ("probe/1", None, "IDLE"),
        ("users/0", AT_MS, "ACTIVE"),
    ]
    assert (report["watermark_ms"], report["waiting_rows"]) == (AT_MS, 12_000)
    assert report["waits_for"]["behind_ms"] == 40_000
    assert http.get(f"/v1/jobs/{job_id}").json()["event_time"] == report


def test_flinks_addresses_have_the_watermarks_of_event_time(http, timed):
    base = f"/jobs/{timed(event_time(channels=ON_USERS))}/vertices"
    probe = http.get(f"{base}/probe/watermarks").json()
    assert [found["value"] for found in probe] == [str(AT_MS + 40_000), MIN]
    asked = "0.currentLowWatermark,0.currentInput1Watermark,0.currentInput2Watermark"
    values = http.get(f"{base}/join/metrics", params={"get": asked}).json()
    assert [found["value"] for found in values] == [str(AT_MS), str(AT_MS + 40_000), str(AT_MS)]
    build = http.get(f"{base}/build-users/watermarks").json()
    assert build == [{"id": "0.currentInputWatermark", "value": str(AT_MS)}]
    assert http.get(f"{base}/windows/watermarks").status_code == 404
    switched = generator("probe/1", None, use_processing_time=True, backlog_end=7)
    base = f"/jobs/{timed(event_time(channels=[ON_USERS[0], switched]))}/vertices"
    asked = {"get": "0.currentUseProcessingTime,1.currentUseProcessingTime"}
    values = http.get(f"{base}/probe/metrics", params=asked).json()
    assert [found["value"] for found in values] == ["false", "true"]


def test_windows_are_a_vertex_of_their_own(http, timed):
    time_type = SqlType(TypeName.TIMESTAMP, precision=3)
    windowing = Windowing(WindowKind.TUMBLE, 60_000, None, time_type, (), ())
    planned = plan_script(script())
    windowed = replace(planned, plan=replace(planned.plan, window=windowing))
    hooks = replace(HOOKS, plan=lambda sql, *, name, catalog: windowed)
    job_id = timed(windows(window_watermark_ms=AT_MS - 1), hooks)
    vertex = http.get(f"/v1/jobs/{job_id}/watermarks").json()["vertices"][-1]
    assert (vertex["id"], vertex["parallelism"]) == ("windows", 1)
    found = http.get(f"/jobs/{job_id}/vertices/windows/watermarks").json()
    assert found == [{"id": "0.currentInputWatermark", "value": str(AT_MS - 1)}]


def test_a_report_of_event_time_that_cannot_be_read_is_a_warning(http, timed):
    found = http.get(f"/v1/jobs/{timed({'channels': 3})}").json()
    assert found["event_time"] is None
    assert "event_time." in found["warnings"][0]["message"]


# Metrics
# --------------------------------------------------------------------------------------------------


def _samples(text):
    families = text_string_to_metric_families(text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_count_jobs_and_requests_by_route(http, ids):
    http.get("/no/such/address")
    http.get(f"/v1/jobs/{ids['open']}")
    answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    found = _samples(answer.text)
    assert found["sluice_jobs", (("state", "PAUSED"),)] == 1
    assert found["sluice_jobs", (("state", "CATCHING_UP"),)] == 0
    requests = {labels for name, labels in found if name == "sluice_http_requests_total"}
    routes = {dict(labels)["route"] for labels in requests}
    assert {"/v1/jobs/{job_id}", "none"} <= routes
    assert not any(job_id in route for route in routes for job_id in ids.values())


def _detail(services, job_id):
    shown = services.detail(services.store.get(job_id)).model_dump(by_alias=True)
    shown["runner"]["alive"] = True
    return JobDetail.model_validate(shown)


def test_metrics_of_a_job_that_runs_have_its_tables_and_probe(services, ids):
    families = list(job_metrics([_detail(services, ids["open"])], {}))
    found = {
        sample.name: (sample.labels, sample.value)
        for family in families
        for sample in family.samples
    }
    labels = {"job_id": ids["open"], "name": "open"}
    assert found["sluice_job_current_phase"] == (labels, 1.0)
    assert found["sluice_table_snapshot_rows_done"] == ({**labels, "table": "users"}, 10.0)
    assert found["sluice_table_channels_in_processing_time"][1] == 1.0
    assert found["sluice_job_open_dead_letters"][1] <= found["sluice_job_dead_letters_total"][1]
    told = (JOB_METRICS, EVENT_TIME_METRICS, TABLE_METRICS, CHANNEL_METRICS)
    assert len({family.name for family in families}) == 2 + sum(map(len, told))
    assert "sluice_job_waiting_rows" not in found


def test_metrics_of_event_time_are_told_by_job_and_by_channel(services, timed):
    detail = _detail(services, timed(event_time()))
    samples = {
        (sample.name, sample.labels.get("input"), sample.labels.get("partition")): sample.value
        for family in job_metrics([detail], {})
        for sample in family.samples
    }
    assert samples["sluice_job_waiting_rows", None, None] == 12_000
    assert samples["sluice_job_late_records_total", None, None] == 7
    lag_s = time.time() - AT_MS / 1000
    assert lag_s - 600 < samples["sluice_job_watermark_lag_seconds", None, None] <= lag_s + 1
    assert samples["sluice_channel_watermark_seconds", "rates", "0"] == AT_MS / 1000
    assert samples["sluice_channel_idle", "probe", "1"] == 1
    assert ("sluice_channel_watermark_lag_seconds", "probe", "1") not in samples


def test_a_stream_that_has_ended_has_no_lag(services, timed):
    ended = event_time(watermark_ms=2**63 - 1, channels=[generator("probe/0", 2**63 - 1)])
    families = job_metrics([_detail(services, timed(ended))], {})
    names = {sample.name for family in families for sample in family.samples}
    assert "sluice_channel_idle" in names
    assert not any("watermark" in name for name in names)


# Problems
# --------------------------------------------------------------------------------------------------

ACCEPTED = {
    "the_type": ("application/json", True),
    "anything": ("*/*", True),
    "any_of_its_kind": ("text/html, application/*;q=0.2", True),
    "in_capitals": ("Application/JSON; charset=utf-8", True),
    "another": ("text/html", False),
    "refused_by_weight": ("application/json;q=0", False),
    "garbage": (";;,=,/", False),
}


@pytest.mark.parametrize(("header", "passes"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_a_client_accepts(http, header, passes):
    assert accepts(header, "application/json") is passes
    answer = http.get("/v1/jobs", headers={"Accept": header})
    assert answer.status_code == (200 if passes else 406)
    if not passes:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:sluice:problem:not-acceptable"


def test_a_text_is_had_as_text_only(http, ids):
    path = f"/v1/jobs/{ids['open']}/log"
    assert http.get(path, headers={"Accept": "text/plain"}).status_code == 200
    assert http.get(path, headers={"Accept": "application/json"}).status_code == 406


def test_a_service_that_cannot_serve_says_when_to_come_back(http):
    answer = http.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_a_wrong_method_names_the_right_ones(http):
    answer = http.put("/v1/jobs:plan")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["type"] == "urn:sluice:problem:method-not-allowed"


def test_a_query_parameter_that_does_not_exist_is_refused_by_name(http, ids):
    answer = http.get("/v1/jobs", params={"stat": "open sesame"})
    assert answer.status_code == 400
    assert '"stat" is unknown, expected cursor, desired_state' in answer.json()["detail"]
    assert "sesame" not in answer.text
    assert http.get(f"/v1/jobs/{ids['open']}", params={"x": "1"}).status_code == 400
    assert http.get("/livez", params={"x": "1"}).status_code == 200


STABLE = {413: "content-too-large", 422: "unprocessable-content", 404: "not-found"}


@pytest.mark.parametrize(("status", "kind"), STABLE.items(), ids=STABLE.values())
def test_a_type_is_the_same_on_every_python(status, kind):
    assert json.loads(problem(status, "x", "y").body)["type"] == f"urn:sluice:problem:{kind}"
