"""The typed client against the real application: its examples, its errors, its repetitions."""

import doctest
import json
import socket
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

import httpx
import pyarrow as pa
import pytest

from service.cli.output import ExitCode, exit_code, plain
from service.client import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
    Sluice,
    UnavailableError,
    remote_job,
    sluice,
    tables,
)
from service.client.remote_job import Removed, StatusChanged, _lines, parse
from service.client.tables import _key_text
from service.client.transport import Transport, _cause
from service.errors import (
    ConfigError,
    ControlPlaneError,
    JobNotFoundError,
    UnreachableError,
    WaitTimeoutError,
)
from service.schemas.progress import Transition
from service.security.tokens import Credentials
from tests.support.http_server import answering
from tests.support.table_job import script


@pytest.fixture(scope="module")
def client(tables_plane):
    with Sluice(tables_plane.url) as made:
        yield made


@pytest.fixture(scope="module")
def job(client):
    return client.job("enriched")


EXAMPLES = {"sluice": sluice, "remote_job": remote_job, "tables": tables}


@pytest.mark.parametrize("module", EXAMPLES.values(), ids=EXAMPLES)
def test_the_examples_of_the_docstrings_do_what_they_say(tables_plane, job, module):
    known = {"job": job, "url": tables_plane.url, "script": script(), "Sluice": Sluice}
    tests = doctest.DocTestFinder().find(module, extraglobs=known)
    runner = doctest.DocTestRunner(verbose=False)
    for test in tests:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0


def test_rows_and_changes_are_tables_too(job):
    users = job.dimension("users")
    rows = users.at(2).rows().to_arrow()
    assert rows.select(["user_id", "name"]).to_pylist()[0] == {"user_id": 1, "name": "user 1"}
    assert users.between(2).to_arrow().column("_change_type").to_pylist() == [
        "update_preimage",
        "update_postimage",
        "delete",
    ]
    rows = job.dimension("prices").rows(keys=[("DE", 7), ("FR", 7)])
    (row,) = rows
    assert (row.values["price"], row.position.pos) == ("12.50", 1)
    assert [(a.key["country"], a.reason) for a in rows.absent] == [("FR", "no-record")]
    versions = users.history(2)
    assert [(v.version, v.change, v.records) for v in versions] == [
        (3, "delete", 1),
        (1, "insert", 1),
    ]
    assert versions.page().beginning.reason == "no-record"
    (told, other) = job.dimensions()
    assert (told.table, told.version, other.primary_key) == ("users", 3, ["country", "item"])


def test_watermarks_status_and_jobs_are_typed(client, job):
    assert job.inspect.watermarks().phase == "JOIN"
    assert job.inspect.watermarks().combined.use_processing_time
    assert job.id in [found.id for found in client.jobs()]
    assert client.job(job.id[:13]).id == job.id
    with pytest.raises(ValueError, match="frozen"):
        job.status().state = "x"


def test_without_an_address_it_is_the_control_plane_of_the_commands(client, job, monkeypatch):
    monkeypatch.setenv("SLUICE_SERVER", client.url)
    with Sluice() as sluice:
        assert sluice.url == client.url
        assert job.id in [found.id for found in sluice.jobs()]
    monkeypatch.delenv("SLUICE_SERVER")
    with Sluice() as usual:
        assert usual.url == "http://127.0.0.1:8326"
    monkeypatch.setenv("SLUICE_PORT", "18326")
    with Sluice() as moved:
        assert moved.url == "http://127.0.0.1:18326"


def test_a_name_that_is_nearly_one_of_a_job_is_corrected(client, job):
    name = job.status().name
    with pytest.raises(JobNotFoundError) as told:
        client.job(f"{name}x")
    assert told.value.hint == f'Did you mean "{name}"?'
    with pytest.raises(JobNotFoundError) as told:
        client.job("~")
    assert told.value.hint == "Run sluice jobs ls to see the jobs and their ids."


def test_batches_and_what_a_job_waits_for_are_told(job):
    (batch,) = job.batches(most=5)
    assert (batch.batch, batch.committed, batch.pin["versions"]["users"]) == (0, True, 2)
    told = job.inspect.explain_wait()
    assert told.sentence
    assert told.waiting is not all(condition.met for condition in told.conditions)
    assert list(job.dead_letters.list()) == []


def test_refusals_are_errors_of_their_own(client, job):
    with pytest.raises(InvalidRequestError) as told:
        client.submit("SELECT 1")
    assert (told.value.kind, told.value.status, told.value.problem["line"]) == ("sql", 422, 1)
    with pytest.raises(NotFoundError) as told:
        list(job.dimension("nobody").rows())
    assert (told.value.kind, told.value.hint[-1]) == ("unknown-dimension", ".")
    with pytest.raises(ConflictError):
        client.submit(script("'connector'='print'"), idempotency_key="my-deployment-7")
    with pytest.raises(ControlPlaneError, match="is JOINING, not FINISHED"):
        job.wait_until("FINISHED", timeout_s=0)
    with pytest.raises(ControlPlaneError) as told:
        job.wait_until("FINISHD")  # waits for nothing, and not for an hour
    assert told.value.hint == 'Did you mean "FINISHED"?'


def until(events, state):
    """Events up to the transition to `state`."""
    for event in events:
        yield event
        if isinstance(event, Transition) and event.target == state:
            return


def test_a_job_is_followed_paused_stopped_and_deleted(client):
    made = client.submit(script("'connector'='blackhole'"), "short")
    events = made.events()
    seen = [getattr(event, "target", None) for event in until(events, "JOINING")]
    assert seen[0] == "CREATED"
    assert made.pause().desired_state == "PAUSED"
    assert made.resume().desired_state == "RUNNING"
    assert made.stop().desired_state == "STOPPED"
    made.wait_until("STOPPED", timeout_s=60)
    with pytest.raises(ControlPlaneError, match="is STOPPED, not JOINING"):
        made.wait_until("JOINING", timeout_s=60)
    made.delete()
    with pytest.raises(NotFoundError):
        made.status()
    with pytest.raises(NotFoundError):
        next(iter(made.events(after=events.last_id)))


KEYS = {
    "number": (7, "7"),
    "text": ("7", "7"),
    "yes": (True, "true"),
    "bytes": (b"\xff", "/w=="),
    "decimal": (Decimal("1.50"), "1.50"),
    "day": (date(2026, 11, 21), "2026-11-21"),
    "composite": (("DE", 7), '["DE", "7"]'),
    "composite_by_name": ({"country": "DE", "item": 7}, '{"country": "DE", "item": "7"}'),
}


@pytest.mark.parametrize(("key", "text"), KEYS.values(), ids=KEYS)
def test_keys_are_written_as_rows_show_them(key, text):
    assert _key_text(key) == text


def test_lines_of_a_stream_are_events_and_a_cut_off_one_is_none():
    lines = [
        "retry: 2000",
        "",
        ": heartbeat",
        "",
        "id: 7",
        "event: transition",
        "data: {",
        "data: }",
    ]
    found = list(parse([*lines, "", "event: status", "data: {}"]))
    assert [(e.name, e.data, e.id) for e in found] == [("transition", "{\n}", "7")]


def test_a_line_of_a_stream_ends_at_a_line_feed_wherever_its_blocks_end():
    blocks = ["data: a\u2028".encode(), "b\x85\r".encode(), b"\n\ndata:", b" c\n\n"]
    assert [event.data for event in parse(_lines(blocks))] == ["a\u2028b\x85", "c"]


# A control plane that fails: what it answers is the contract, how often is the client's
# --------------------------------------------------------------------------------------------------


@contextmanager
def flaky(*answers, **options):
    """What a server was asked that gives each request the next answer, and a client of it."""
    asked, left = [], list(answers)

    def answer(request):
        asked.append((request.method, request.path, request.headers))
        return left.pop(0) if len(left) > 1 else left[0]

    with answering(answer) as url, Sluice(url, **options) as made:
        yield asked, made


def problem(status, kind, **headers):
    told = {"type": f"urn:sluice:problem:{kind}", "status": status, "detail": "d", "hint": "H."}
    head = {"Content-Type": "application/problem+json", **headers}
    return status, head, json.dumps(told).encode()


def document(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


STATUS = {
    "id": "j",
    "name": "n",
    "state": "JOINING",
    "desired_state": "RUNNING",
    "phase": "JOIN",
    "reason": "records are joined as they come",
    "error": None,
    "created_at_ms": 1,
    "updated_at_ms": 2,
    "newer": 1,
}
BUSY = problem(503, "busy", **{"Retry-After": "0"})


def test_a_submission_is_repeated_with_the_same_key_while_the_control_plane_is_busy():
    with flaky(BUSY, BUSY, document(STATUS)) as (asked, made):
        assert made.submit("script").id == "j"
    keys = {headers["idempotency-key"] for _, _, headers in asked}
    assert (len(asked), len(keys)) == (3, 1)


def test_what_does_not_pass_is_not_repeated_and_what_does_not_end_is_an_error():
    for answer, error, requests in (
        (problem(409, "job-state"), ConflictError, 1),
        (problem(500, "internal-server-error"), RefusedError, 1),
        (BUSY, UnavailableError, 6),
    ):
        with flaky(answer) as (asked, made), pytest.raises(error):
            list(made.jobs())
        assert len(asked) == requests


def test_members_of_a_newer_control_plane_are_no_error():
    page = {"items": [STATUS], "next_cursor": None}
    with flaky(document(page)) as (_, made):
        (found,) = made.jobs()
    assert found.model_extra == {"newer": 1}


def test_names_of_a_newer_control_plane_are_texts_and_are_printed_as_they_came():
    newer = {**STATUS, "state": "DREAMING", "phase": "SLEEP"}
    page = {"items": [newer], "next_cursor": None}
    with flaky(document(page)) as (_, made):
        (found,) = made.jobs()
    assert (found.state, found.phase, found.desired_state.value) == ("DREAMING", "SLEEP", "RUNNING")
    assert plain(found) == {name: value for name, value in newer.items() if name != "newer"}


def sse(*events):
    text = "".join(
        f"{head}event: {name}\ndata: {json.dumps(data)}\n\n" for head, name, data in events
    )
    return 200, {"Content-Type": "text/event-stream"}, text.encode()


def transition(sequence):
    step = {"sequence": sequence, "job_id": "j", "at_ms": 1}
    step |= {"from": None, "to": "CREATED", "cause": "submitted"}
    return f"id: {sequence}\n", "transition", step


def test_events_go_on_behind_the_last_transition_and_end_when_the_job_is_gone():
    first = sse(transition(4), ("", "status", STATUS), ("", "newer", {}))
    last = sse(transition(9), ("", "removed", {"job_id": "j"}))
    answers = (document(STATUS), first, BUSY, last)
    with flaky(*answers) as (asked, made):
        stream = made.submit("script").events(after=3)
        found = list(stream)
    kinds = (Transition, StatusChanged, Transition, Removed)
    assert tuple(map(type, found)) == kinds
    assert (found[0].target, found[1].status.state, stream.last_id) == ("CREATED", "JOINING", 9)
    asked = [headers.get("last-event-id") for _, _, headers in asked]
    assert asked == [None, "3", "4", "4"]


def batch(number, place="0"):
    pin = {"start_offsets": {place: 1}, "end_offsets": {place: 3}, "versions": {"users": 2}}
    return {"batch": number, "pin": pin, "records": 2, "committed": True, "counts": {"joined": 2}}


def test_no_reference_is_no_job_also_where_there_is_one_only():
    page = {"items": [STATUS], "next_cursor": None}
    with flaky(document(page)) as (_, made):
        assert made.job("j").id == "j"
        with pytest.raises(JobNotFoundError, match='job "" does not exist'):
            made.job("")


def test_batches_are_a_table_over_all_pages():
    pages = [{"items": [batch(n)], "next_cursor": n if n else None} for n in (1, 0)]
    answers = [document({**STATUS}), *map(document, pages)]
    with flaky(*answers) as (_, made):
        rows = made.submit("script").batches().to_arrow()
    assert rows.column("batch").to_pylist() == [1, 0]
    assert rows.schema.field("end_offsets").type == pa.map_(pa.int32(), pa.int64())
    assert rows.column("versions").to_pylist()[0] == [("users", 2)]
    assert rows.column("joined").to_pylist() == [2, 2]


def test_offsets_of_several_topics_are_by_topic_and_partition():
    page = {"items": [batch(1, "clicks/0"), batch(0, "visits/2")], "next_cursor": None}
    with flaky(document({**STATUS}), document(page)) as (_, made):
        rows = made.submit("script").batches().to_arrow()
    assert rows.column("end_offsets").to_pylist() == [[("clicks/0", 3)], [("visits/2", 3)]]


NOT_OURS = {
    "page": (200, {"Content-Type": "text/html"}, b"<html>"),
    "json": (200, {"Content-Type": "application/json"}, b'{"status": "UP"}'),
    "login": (302, {"Location": "https://login.example/"}, b""),
    "proxy": (502, {"Content-Type": "text/html"}, b"<html>"),
    "other_problem": (503, {"Content-Type": "application/problem+json"}, b'{"title": "away"}'),
    "no_json": (503, {"Content-Type": "application/problem+json"}, b"away"),
}


@pytest.mark.parametrize("answer", NOT_OURS.values(), ids=NOT_OURS)
def test_an_answer_of_another_program_is_an_error_with_a_hint(answer):
    with flaky(answer, attempts=1) as (_, made):
        with pytest.raises(UnreachableError, match=f"answered {answer[0]} and no document"):
            list(made.jobs())
        with pytest.raises(UnreachableError, match=f"answered {answer[0]} and no document"):
            made._transport.stream("/v1/jobs/j/events", {}).__enter__()


def test_why_a_control_plane_cannot_be_reached_is_said():
    with (
        Sluice("http://no-such-host.invalid:8326", attempts=1) as made,
        pytest.raises(UnreachableError, match=r"reached: .*(name|resolution)"),
    ):
        made.version()
    refused = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:1006)"
    for text, said in (
        ("self-signed certificate", "is not trusted (set SLUICE_CA_FILE"),
        ("unable to get local issuer certificate", "is not trusted (set SLUICE_CA_FILE"),
        ("certificate has expired", "is refused: certificate has expired"),
        ("IP address mismatch, certificate is not valid for '127.0.0.1'.", "valid for '127.0.0.1'"),
    ):
        assert said in _cause(httpx.ConnectError(refused.format(text)))


@pytest.mark.parametrize("token", ["schlüssel", "slc_1\nslc_2"])
def test_a_token_that_no_header_can_carry_is_refused_before_it_is_sent(token):
    with pytest.raises(ConfigError, match="token has characters") as caught:
        Credentials(token)
    assert token not in caught.value.message


def test_a_control_plane_that_answers_late_is_not_taken_for_one_that_is_away():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = Transport(url, Credentials(None, None), attempts=1)
        with pytest.raises(WaitTimeoutError, match="has not answered in time") as caught:
            transport.send("POST", "/v1/jobs/1:verify", timeout=0.2)
        transport.close()
    assert "sluice up" not in caught.value.hint
    assert exit_code(caught.value) == ExitCode.TIMED_OUT
