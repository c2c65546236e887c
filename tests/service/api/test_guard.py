"""What comes before the routes: proxies, limits, TLS, slow and large requests."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from service.api.app import create_app
from service.api.http import exposure
from service.api.http.guard import BODY_LIMIT_BYTES
from service.api.http.limits import Flights, Lockouts, Rates
from service.api.server import ControlPlane
from service.api.services import Services
from service.client import Sluice
from service.config import Settings
from service.errors import BusyError, ConfigError, ControlPlaneError, TooManyRequestsError
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import CatalogTables, Submissions
from service.jobs.supervise.supervisor import Supervisor
from service.security.audit import KEPT_FILES, AuditEntry, AuditLog
from service.security.tokens import Credentials, NewToken, TokenScope, without_secrets
from tests.support.certificates import encrypted_key, self_signed
from tests.support.control_plane import HOOKS, control_plane, script
from tests.support.documents import Documents
from tests.support.wait import wait_until

HOME = "http://127.0.0.1:8326"


class Asking:
    """Asks an app in this process; keeps no connection."""

    def __init__(self, runner, app, peer):
        self._runner = runner
        self._transport = httpx.ASGITransport(app, client=(peer, 9))

    def get(self, path, **options):
        return self._runner.run(self._asked("GET", path, options))

    def post(self, path, **options):
        return self._runner.run(self._asked("POST", path, options))

    async def _asked(self, method, path, options):
        async with httpx.AsyncClient(transport=self._transport, base_url=HOME) as client:
            return await client.request(method, path, **options)


@contextmanager
def asking(data_dir, *, peer="127.0.0.1", **values):
    """A client of the app in this process whose connections come from `peer`, and a token."""
    settings = Settings.load(data_dir=data_dir, **values)
    store = JobStore.open(settings.store_url)
    supervisor = Supervisor(store, settings, HOOKS.remove)
    submissions = Submissions(store, settings, HOOKS)
    tables = CatalogTables(store, settings, submissions)
    services = Services(settings, store, supervisor, submissions, tables)
    token = store.tokens.create(NewToken("ops", TokenScope.ADMIN))[1]
    app = create_app(services)
    with asyncio.Runner() as runner:
        yield Asking(runner, app, peer), {"Authorization": f"Bearer {token}"}
    store.close()


def audited(data_dir):
    return [json.loads(line) for line in (data_dir / "audit.jsonl").read_text().splitlines()]


# Who may listen where
# --------------------------------------------------------------------------------------------------

REFUSED = {
    "everywhere_without_tls": ({"host": "0.0.0.0"}, "unencrypted"),
    "one_address_without_tls": ({"host": "10.1.2.3"}, "unencrypted"),
    "a_key_without_a_certificate": ({"tls_key": "key.pem"}, "without SLUICE_TLS_CERT"),
    "planted_faults_with_tokens": (
        {"auth_required": True, "failpoints": "C3=kill"},
        "expected none with tokens",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_a_control_plane_that_is_not_safe_to_reach_does_not_start(tmp_path, given, message):
    data_dir = tmp_path / "data"
    with pytest.raises(ConfigError, match=message) as caught:
        ControlPlane(Settings.load(data_dir=data_dir, **given), hooks=HOOKS).open()
    assert caught.value.hint.endswith(".")
    assert not data_dir.exists()


def test_without_a_token_there_is_no_control_plane_for_others(tmp_path):
    settings = Settings.load(data_dir=tmp_path, port=0, trusted_proxies="127.0.0.1")
    with pytest.raises(ConfigError, match="no usable token exists") as caught:
        ControlPlane(settings, hooks=HOOKS).open()
    assert "sluice tokens create" in caught.value.hint
    store = JobStore.open(settings.store_url)
    token, _ = store.tokens.create(NewToken("first", TokenScope.ADMIN))
    exposure.check_tokens(settings, store.tokens)
    store.tokens.revoke(token.id)
    with pytest.raises(ConfigError, match="no usable token exists"):
        exposure.check_tokens(settings, store.tokens)
    wanted = Settings.load(data_dir=tmp_path, host="0.0.0.0", auth_required=True)
    exposure.check_tokens(wanted, store.tokens)
    store.close()


# TLS
# --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.mark.usefixtures("processes")
def test_tls_is_spoken_from_the_least_version_on(tmp_path, certificate):
    cert, key = certificate
    wanted = {"tls_cert": cert, "tls_key": key, "tls_min_version": "1.3", "auth_required": True}
    with control_plane(tmp_path, **wanted) as plane:
        token = plane.services.store.tokens.create(NewToken("ops", TokenScope.ADMIN))[1]
        assert plane.url.startswith("https://127.0.0.1:")
        with Documents(plane.url, Credentials(token, cert)) as client:
            assert client.jobs() == []
        with (
            Documents(plane.url, Credentials(token)) as client,
            pytest.raises(ControlPlaneError, match="not trusted"),
        ):
            client.jobs()
        old = ssl.create_default_context(cafile=cert)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        host, port = "127.0.0.1", httpx.URL(plane.url).port
        with socket.create_connection((host, port), 60) as plain, pytest.raises(ssl.SSLError):
            old.wrap_socket(plain, server_hostname=host)
        trusting = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=plane.url, verify=trusting, trust_env=False, timeout=60) as http:
            assert "max-age" in http.get("/livez").headers["strict-transport-security"]
        with Documents(f"http://{host}:{port}") as client, pytest.raises(ControlPlaneError):
            client.jobs()


# On loopback, as all servers of tests; but Python 3.11 does not take it for a loopback address.
EXPOSED = "::ffff:127.0.0.1"


@pytest.mark.usefixtures("processes")
def test_an_address_that_others_can_reach_works_with_tokens_and_tls(
    tmp_path, certificate, monkeypatch
):
    cert, key = certificate
    monkeypatch.setenv("SLUICE_SECRET_SHOP", "open sesame")
    wanted = {"host": EXPOSED, "tls_cert": cert, "tls_key": key}
    settings = Settings.load(data_dir=tmp_path, **wanted)
    assert not settings.on_loopback
    store = JobStore.open(settings.store_url)
    (tmp_path / "token").write_text(store.tokens.create(NewToken("first", TokenScope.ADMIN))[1])
    store.close()
    with control_plane(tmp_path, **wanted) as plane:
        url = f"https://127.0.0.1:{httpx.URL(plane.url).port}"
        token = (tmp_path / "token").read_text()
        with Sluice(url, token=token, ca_file=cert) as sluice:
            job = sluice.submit(script(), name="reached")
            job.wait_until("JOINING", timeout_s=60)
            assert sluice.transitions(job_id=job.id)[0].target == "CREATED"
        trusting = ssl.create_default_context(cafile=cert)
        with httpx.Client(base_url=url, verify=trusting, trust_env=False, timeout=60) as http:
            named = {"Host": "sluice.example"}
            assert http.get("/v1/jobs", headers=named).status_code == 401
            bearer = {**named, "Authorization": f"Bearer {token}"}
            assert [j["name"] for j in http.get("/v1/jobs", headers=bearer).json()["items"]] == [
                "reached"
            ]
            other_page = {**bearer, "Origin": "https://evil.example"}
            assert http.post(f"/v1/jobs/{job.id}:stop", headers=other_page).status_code == 403
        listed = _sluice_jobs_ls(url, token_file=tmp_path / "token", ca_file=cert)
        assert "reached" in listed
    lines = [line for line in audited(tmp_path) if line["who"] == "first"]
    assert lines[0]["address"] == "127.0.0.1"
    assert lines[0]["method"] == "POST"


def _sluice_jobs_ls(url, *, token_file, ca_file):
    variables = {
        "SLUICE_SERVER": url,
        "SLUICE_TOKEN_FILE": str(token_file),
        "SLUICE_CA_FILE": str(ca_file),
    }
    command = [sys.executable, "-m", "service.cli", "jobs", "ls"]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.usefixtures("processes")
def test_a_certificate_that_cannot_be_used_is_named(tmp_path, certificate):
    cert, key = certificate
    locked = encrypted_key(tmp_path, key)
    (tmp_path / "other").mkdir()
    other = self_signed(tmp_path / "other")[1]
    for wrong_cert, wrong_key in ((tmp_path / "no.pem", key), (cert, other), (cert, locked)):
        settings = Settings.load(data_dir=tmp_path, tls_cert=wrong_cert, tls_key=wrong_key)
        with pytest.raises(ConfigError, match="cannot be used") as caught:
            exposure.tls_context(settings)
        assert str(wrong_key) in caught.value.message


def test_a_token_is_not_sent_in_the_clear():
    with pytest.raises(ControlPlaneError, match="unencrypted"):
        Documents("http://sluice.example:8326", Credentials("slc_x"))
    assert "slc_x" not in repr(Credentials("slc_x"))


# Where requests come from
# --------------------------------------------------------------------------------------------------


def test_behind_a_proxy_its_word_counts_and_nobody_elses(tmp_path):
    with asking(tmp_path, peer="10.0.0.5", trusted_proxies="10.0.0.0/29") as (client, token):
        told = {"X-Forwarded-For": "1.1.1.1, 203.0.113.9, 10.0.0.6", "Host": "sluice.example"}
        assert client.post("/v1/jobs/x:stop", headers={**told, **token}).status_code == 400
        assert client.get("/v1/jobs", headers=told).status_code == 401
    assert {line["address"] for line in audited(tmp_path)} == {"203.0.113.9"}
    around = tmp_path / "around"
    around.mkdir()
    with asking(around, peer="10.0.0.99", trusted_proxies="10.0.0.5") as (client, token):
        answer = client.get("/v1/jobs", headers={**token, "X-Forwarded-For": "10.0.0.5"})
        assert answer.status_code == 403
        assert "is not a trusted proxy" in answer.json()["detail"]
        assert client.get("/livez").status_code == 200
    assert audited(around)[0]["address"] == "10.0.0.99"


def test_on_loopback_nobody_else_is_believed_and_no_other_name_answers(tmp_path):
    with asking(tmp_path) as (client, _):
        client.post("/v1/jobs/x:stop", headers={"X-Forwarded-For": "203.0.113.9"})
        assert client.get("/v1/jobs", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/v1/jobs", headers={"Host": "localhost:1"}).status_code == 200
        cross = client.post("/v1/jobs/x:stop", headers={"Origin": "http://localhost:9"})
        assert cross.status_code == 403
    first = audited(tmp_path)[0]
    assert (first["who"], first["address"], first["status"]) == ("local", "127.0.0.1", 400)


def test_a_wrong_token_is_wrong_also_where_none_is_needed(tmp_path):
    with asking(tmp_path) as (client, token):
        assert client.get("/v1/jobs", headers={"Authorization": "Bearer x"}).status_code == 401
        assert client.get("/v1/jobs", headers=token).status_code == 200


# Limits
# --------------------------------------------------------------------------------------------------


def test_a_caller_that_asks_too_often_waits_and_others_do_not(tmp_path):
    with asking(tmp_path, requests_per_s=0.01) as (client, token):
        assert client.get("/v1/version").status_code == 200
        slowed = client.get("/v1/version")
        assert slowed.status_code == 429
        assert int(slowed.headers["Retry-After"]) >= 1
        assert slowed.json()["hint"].startswith("Send fewer requests")
        assert client.get("/v1/version", headers=token).status_code == 200


def test_a_bucket_fills_again():
    now = [0.0]
    rates = Rates(2, lambda: now[0])
    for _ in range(4):
        rates.take("a")
    with pytest.raises(TooManyRequestsError) as caught:
        rates.take("a")
    rates.take("b")
    now[0] += caught.value.retry_after_s
    rates.take("a")


def test_lockouts_grow_end_and_are_forgiven():
    now = [0.0]
    lockouts = Lockouts(lambda: now[0])
    waits = []
    for _ in range(14):
        try:
            lockouts.check("a")
        except TooManyRequestsError as exc:
            waits.append(exc.retry_after_s)
            now[0] += exc.retry_after_s
            lockouts.check("a")
        lockouts.failed("a")
    assert waits[:4] == [1, 2, 4, 8]
    assert max(waits) == 60
    lockouts.check("b")
    now[0] += 1000
    lockouts.failed("a")
    lockouts.check("a")


def test_requests_at_once_are_limited_for_all_and_for_one():
    flights = Flights(4)
    with flights.one_more("a"), flights.one_more("a"), flights.one_more("a"):
        with pytest.raises(BusyError), flights.one_more("a"):
            pass
        with flights.one_more("b"), pytest.raises(BusyError), flights.one_more("c"):
            pass
    with flights.one_more("a"):
        pass


def test_large_bodies_are_refused_before_and_while_they_come(tmp_path):
    with asking(tmp_path) as (client, _):
        declared = client.post("/v1/jobs", json={"sql": "x" * BODY_LIMIT_BYTES})

        async def chunks():
            for _ in range(20):
                yield b"x" * 65_536

        undeclared = client.post(
            "/v1/jobs", content=chunks(), headers={"Content-Type": "application/json"}
        )
    for answer in (declared, undeclared):
        assert "content-length" not in undeclared.request.headers
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:sluice:problem:content-too-large"
        assert answer.headers["connection"] == "close"


def _until_closed(address, sent):
    with socket.create_connection(address, timeout=120) as connection:
        connection.sendall(sent)
        received = b""
        while part := connection.recv(65_536):
            received += part
        return received


def test_slow_and_oversized_requests_end(tmp_path):
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
    with control_plane(tmp_path, request_timeout_s=1) as plane:
        address = ("127.0.0.1", httpx.URL(plane.url).port)
        assert _until_closed(address, b"") == b""
        assert _until_closed(address, head) == b""
        no_body = b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        assert _until_closed(address, head + no_body).startswith(b"HTTP/1.1 408 ")
        large = _until_closed(address, head + b"X: " + b"x" * 70_000)
        assert large.startswith(b"HTTP/1.1 431 ")
        broken = _until_closed(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
        assert broken.startswith(b"HTTP/1.1 400 ")
        for answer in (large, broken):
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["hint"].endswith(".")
            assert b"x-content-type-options: nosniff" in answer


# The audit log
# --------------------------------------------------------------------------------------------------


def test_the_audit_log_is_bounded_and_cut_to_ids(tmp_path):
    settings = Settings.load(data_dir=tmp_path, audit_max_mib=1)
    log = AuditLog(settings)
    text = f"/v1/slc_{'0' * 16}_{'s' * 43}"
    entry = AuditEntry("a\n\x1b", None, "::1", "POST", text, "done")
    for _ in range(KEPT_FILES + 3):
        log.write(entry)
        with log.path.open("ab") as file:
            file.truncate(1 << 20)
    log.write(entry)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.jsonl", *(f"audit.jsonl.{n}" for n in range(1, KEPT_FILES + 1))]
    (line,) = audited(tmp_path)
    assert line["object"] == f"/v1/slc_{'0' * 16}…"
    assert "sss" not in without_secrets(text)


@contextmanager
def a_slow_disk(monkeypatch):
    """Syncs of the audit log do not end before the event that this gives is set."""
    may_end, sync = threading.Event(), os.fsync

    def slow(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("audit.jsonl"):
            may_end.wait(60)
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", slow)
        try:
            yield may_end
        finally:
            may_end.set()


def test_an_answer_waits_until_its_audit_line_is_on_disk_and_nobody_else_does(
    tmp_path, monkeypatch
):
    def stop():
        return httpx.post(f"{plane.url}/v1/jobs/x:stop", trust_env=False, timeout=60).status_code

    with (
        control_plane(tmp_path) as plane,
        ThreadPoolExecutor(3) as several,
        a_slow_disk(monkeypatch) as may_end,
    ):
        changes = [several.submit(stop) for _ in range(3)]
        wait_until(lambda: _audited_bytes(tmp_path) and len(audited(tmp_path)) == 3, deadline_s=60)
        assert httpx.get(f"{plane.url}/v1/jobs", trust_env=False, timeout=60).is_success
        assert not any(change.done() for change in changes)
        may_end.set()
        assert [change.result(60) for change in changes] == [400] * 3


def _audited_bytes(data_dir):
    file = data_dir / "audit.jsonl"
    return file.exists() and file.stat().st_size


@pytest.mark.parametrize(("wanted", "lines"), [("off", 0), ("changes", 1), ("all", 2)])
def test_what_is_audited_is_a_setting(tmp_path, wanted, lines):
    with asking(tmp_path, audit=wanted) as (client, _):
        client.get("/v1/jobs")
        client.post("/v1/jobs/x:stop")
    assert (tmp_path / "audit.jsonl").exists() is (lines > 0)
    assert lines == 0 or len(audited(tmp_path)) == lines


def test_refusals_of_one_address_are_counted_not_all_written(tmp_path):
    with asking(tmp_path, auth_required=True) as (client, _):
        for _ in range(20):
            client.get("/v1/jobs")
        time.sleep(1.1)  # one a second is written
        client.get("/v1/jobs")
    lines = audited(tmp_path)
    assert len(lines) < 20
    assert sum(line["repeated"] + 1 for line in lines) == 21
