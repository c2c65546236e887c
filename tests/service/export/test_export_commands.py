"""`sluice export` against a control plane and receivers that read the protocols themselves."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.control_plane import control_plane, script
from tests.support.documents import Documents
from tests.support.receiver import receiver


@pytest.fixture
def posted():
    with receiver() as found:
        yield found


def export(what, plane, *more, **variables):
    command = [sys.executable, "-m", "service.cli", "export", what, "--once"]
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("OPENLINEAGE", "OTEL"))}
    environment |= variables
    return subprocess.run(
        [*command, "--server", plane.url, *more], env=environment, capture_output=True, text=True
    )


def test_lineage_names_datasets_columns_and_how_a_run_goes_on(tables_plane, posted):
    export("openlineage", tables_plane, "--to", posted.url, "--namespace", "shop")
    events = [json.loads(body) for body in posted.taken()]
    with Documents(tables_plane.url) as client:
        job = client.job(tables_plane.enriched)
    mine = [event for event in events if event["job"]["name"] == job["name"]]
    assert [event["eventType"] for event in mine][:2] == ["START", "RUNNING"]
    assert len({event["run"]["runId"] for event in mine}) == 1
    event = mine[-1]
    assert event["job"]["namespace"] == "shop"
    assert event["job"]["facets"]["sql"]["query"] == job["sql"]
    assert event["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert [name["namespace"].partition(":")[0] for name in event["inputs"]] == [
        "kafka",
        "mysql",
        "mysql",
    ]
    (output,) = event["outputs"]
    lineage = output["facets"]["columnLineage"]["fields"]
    assert set(lineage) == {field["name"] for field in output["facets"]["schema"]["fields"]}
    (origin,) = lineage["price"]["inputFields"]
    assert origin["field"] == "price"


def test_states_are_spans_of_a_run_and_batches_are_linked_to_it(tables_plane, posted):
    told = export("otel", tables_plane, "--to", posted.url)
    assert "transitions" in told.stderr
    spans = [
        span
        for body in posted.taken()
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    mine = [s for s in spans if _attributes(s)["sluice.job.id"] == tables_plane.enriched]
    states = [span for span in mine if span.name != "batch"]
    assert [span.name for span in states][:2] == ["CREATED", "STARTING"]
    assert len({span.trace_id for span in states}) == 1
    assert all(a.end_time_unix_nano == b.start_time_unix_nano for a, b in pairwise(states))
    (batch,) = (span for span in mine if span.name == "batch")
    assert batch.links[0].trace_id == states[0].trace_id != batch.trace_id
    assert _attributes(batch)["sluice.records"] > 0
    assert batch.end_time_unix_nano >= batch.start_time_unix_nano > 0


def _attributes(span):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def test_an_event_that_is_refused_for_good_does_not_stop_the_others(tables_plane, posted):
    export("openlineage", tables_plane, "--to", posted.url)
    all_events = len(posted.taken())
    posted.answers = [422]
    assert export("openlineage", tables_plane, "--to", posted.url).returncode == 0
    assert len(posted.taken()) == all_events - 1


def test_without_an_address_it_says_where_one_may_be_given(tables_plane):
    told = export("openlineage", tables_plane)
    assert told.returncode == 1
    assert "nothing says where" in told.stderr
    assert "--to" in told.stderr


@pytest.fixture(scope="module")
def small_plane(processes, secret, tmp_path_factory):
    """A control plane with a job that has started; its runner is a small program."""
    with (
        control_plane(tmp_path_factory.mktemp("plane")) as plane,
        Documents(plane.url) as client,
    ):
        job = client.submit(script(), "small")["id"]
        client.when(job, state="JOINING")
        yield plane


AWAY = {  # what names the receiver: no client of theirs shall try again for long
    "openlineage": (
        "OPENLINEAGE__TRANSPORT",
        '{{"type": "http", "url": "{}", "retry": {{"total": 0}}}}',
    ),
    "otel": ("OTEL_EXPORTER_OTLP_ENDPOINT", "{}"),
}


@pytest.mark.parametrize("what", AWAY)
def test_once_does_not_wait_for_a_receiver_that_is_away(small_plane, what):
    with receiver() as gone:
        pass
    name, value = AWAY[what]
    variables = {name: value.format(gone.url), "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    told = export(what, small_plane, **variables)
    assert told.returncode == 1
    assert "See that it runs at the address" in told.stderr
    assert "Traceback" not in told.stderr
