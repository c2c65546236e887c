"""Who may use which address, over a real server that asks everybody for a token."""

import json
import re
import stat
import time

import pytest
from fastapi import APIRouter, FastAPI
from starlette.routing import Mount

from service.api.http.access import ADMIN, OPERATOR, PUBLIC, VIEWER, secure
from service.security.tokens import DAY_MS, NewToken, TokenScope, issue
from tests.support.control_plane import script
from tests.support.wait import wait_until

ABSENT = "01234567-89ab-7def-8123-456789abcdef"
PARTS = {"job_id": ABSENT, "token_id": "0123456789abcdef", "request_id": ABSENT}
PLANE = {"auth_required": True, "requests_per_s": 10_000}
OPEN = {("get", "/livez"), ("get", "/readyz")}


@pytest.fixture(scope="module")
def tokens(plane):
    store = plane.services.store.tokens
    return {scope: store.create(NewToken(f"{scope} one", scope))[1] for scope in TokenScope}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def operations(http, token):
    """Method, address and needed scope of everything that is there."""
    paths = http.get("/openapi.json", headers=bearer(token)).json()["paths"]
    for path, methods in paths.items():
        address = re.sub(r"\{(\w+)\}", lambda name: PARTS.get(name[1], "0"), path)
        for method, operation in methods.items():
            needed = [scope for one in operation["security"] for scope in one.get("token", [])]
            yield method, path, address, (needed or [None])[0]


def test_without_a_token_nothing_but_health_answers(http, tokens):
    found = list(operations(http, tokens[TokenScope.VIEWER]))
    assert len(found) > 20
    for method, path, address, needed in found:
        answer = http.request(method, address)
        if (method, path) in OPEN:
            assert needed is None
            assert answer.status_code == 200
            continue
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="sluice"'
        assert answer.json()["type"] == "urn:sluice:problem:unauthorized"
        assert "Authorization: Bearer" in answer.json()["hint"]
    for address in ("/openapi.json", "/nothing", "/v1/jobs/"):
        assert http.get(address).status_code == 401


def test_a_smaller_scope_is_refused_everywhere(http, tokens):
    order = list(TokenScope)
    refused = 0
    for method, path, address, needed in operations(http, tokens[TokenScope.VIEWER]):
        assert method == "get" or needed in ("operator", "admin"), path
        assert not path.startswith("/v1/tokens") or needed == "admin"
        for scope in order[: order.index(TokenScope(needed)) if needed else 0]:
            answer = http.request(method, address, headers=bearer(tokens[scope]))
            assert answer.status_code == 403, (path, scope)
            assert f'expected "{needed}"' in answer.json()["detail"]
            refused += 1
    assert refused > 8


def test_a_scope_lets_through_what_it_is_for(http, tokens):
    for scope in TokenScope:
        assert http.get("/v1/jobs", headers=bearer(tokens[scope])).status_code == 200
    for scope in (TokenScope.OPERATOR, TokenScope.ADMIN):
        stop = http.post(f"/v1/jobs/{ABSENT}:stop", headers=bearer(tokens[scope]))
        assert stop.status_code == 404
    assert http.get("/v1/tokens", headers=bearer(tokens[TokenScope.ADMIN])).status_code == 200


def test_what_is_nowhere_is_said_only_to_those_who_may_ask(http, tokens):
    viewer = bearer(tokens[TokenScope.VIEWER])
    assert http.get("/nothing", headers=viewer).status_code == 404
    wrong = http.put("/v1/jobs", headers=viewer)
    assert wrong.status_code == 405
    assert wrong.headers["Allow"] == "GET, HEAD, POST"
    assert wrong.json()["hint"]


def _app(*routers):
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)
    return app


def _router(method, *, router=(), route=()):
    made = APIRouter(prefix="/x", dependencies=list(router))
    made.add_api_route("/y", lambda: None, methods=[method], dependencies=list(route))
    return made


UNSAFE = {
    "nothing_declared": (("GET", {}), "/x/y declares no scope"),
    "a_change_by_viewers": (("POST", {"router": [VIEWER]}), "POST /x/y changes something"),
    "a_public_change": (("DELETE", {"route": [PUBLIC]}), "DELETE /x/y changes something"),
}


@pytest.mark.parametrize(("made", "message"), UNSAFE.values(), ids=UNSAFE)
def test_an_app_with_an_unsafe_route_is_not_made(made, message):
    method, declared = made
    with pytest.raises(AssertionError, match=message):
        secure(_app(_router(method, **declared)))


def test_the_strictest_declaration_counts_and_mounts_declare_too():
    app = _app(
        _router("GET", router=[OPERATOR], route=[VIEWER]),
        _router("POST", router=[VIEWER], route=[ADMIN]),
    )
    rules = secure(app)
    assert rules.find("GET", "/x/y").scope is TokenScope.OPERATOR
    assert rules.find("POST", "/x/y").scope is TokenScope.ADMIN
    assert rules.find("POST", "/x/y/z") is None
    app.router.routes.append(Mount("/page", app=FastAPI()))
    with pytest.raises(AssertionError, match="/page declares no scope"):
        secure(app)
    assert secure(app, {"/page": None}).find("GET", "/page/main.js").scope is None
    assert secure(app, {"/page": None}).find("POST", "/page/main.js") is None


def test_a_token_is_shown_once_and_ends_at_once(plane, http, tokens):
    admin = bearer(tokens[TokenScope.ADMIN])
    body = {"name": "ci", "scope": "viewer", "expires_in_days": 1}
    made = http.post("/v1/tokens", json=body, headers=admin)
    assert made.status_code == 201
    created = made.json()
    assert made.headers["Location"] == f"/v1/tokens/{created['id']}"
    assert created["expires_at_ms"] - created["created_at_ms"] == DAY_MS
    assert created["created_by"] == "admin one"
    ci = bearer(created["token"])
    assert http.get("/v1/jobs", headers=ci).status_code == 200
    listed = http.get("/v1/tokens", headers=admin)
    secret = created["token"].split("_", 2)[2]
    assert secret not in listed.text
    assert http.delete(f"/v1/tokens/{created['id']}", headers=admin).status_code == 204
    assert http.delete(f"/v1/tokens/{created['id']}", headers=admin).status_code == 204
    refused = http.get("/v1/jobs", headers=ci)
    assert refused.status_code == 401
    assert 'token "ci"' in refused.json()["detail"]
    assert "revoked" in refused.json()["detail"]
    files = plane.services.settings.data_dir.glob("jobs.db*")
    assert not any(secret.encode() in file.read_bytes() for file in files)


def test_a_change_of_the_store_by_another_process_counts_soon(plane, http):
    store = plane.services.store.tokens
    token, text = store.create(NewToken("soon", TokenScope.VIEWER))

    def asked():
        return http.get("/v1/version", headers=bearer(text)).status_code

    wait_until(lambda: asked() == 200, deadline_s=20)
    store.revoke(token.id)
    wait_until(lambda: asked() == 401, deadline_s=20)


def test_the_last_use_is_kept(plane, http, tokens):
    http.get("/v1/version", headers=bearer(tokens[TokenScope.OPERATOR]))

    def used_at_ms():
        found = plane.services.store.tokens.all()
        return next(token.last_used_at_ms for token in found if token.name == "operator one")

    wait_until(lambda: used_at_ms() is not None, deadline_s=20)
    assert used_at_ms() <= time.time() * 1000


def test_an_expired_token_says_so(plane, http, tokens):
    token, text = issue(
        NewToken("old", TokenScope.ADMIN, days=1), int(time.time() * 1000) - 2 * DAY_MS
    )
    with plane.services.store.database.writing() as connection:
        values = (token.id, token.name, "admin", token.digest, "", 1, token.expires_at_ms)
        connection.exec_driver_sql(
            "INSERT INTO tokens (id, name, scope, digest, created_by, created_at_ms, expires_at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    body = {"name": "x", "scope": "viewer"}  # (a change, so that the tokens are read again)
    http.post("/v1/tokens", json=body, headers=bearer(tokens[TokenScope.ADMIN]))
    answer = http.get("/v1/jobs", headers=bearer(text))
    assert answer.status_code == 401
    assert f'token "old" ({token.id}) is expired' in answer.json()["detail"]
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


WRONG = {
    "another_scheme": "Basic c2x1aWNlOng=",
    "no_token_of_ours": "Bearer hunter2",
    "unknown_id": f"Bearer slc_{'0' * 16}_{'a' * 43}",
    "very_long": "Bearer " + "x" * 20_000,
}


@pytest.mark.parametrize("header", WRONG.values(), ids=WRONG)
def test_what_is_no_token_is_refused_and_not_repeated(http, header):
    answer = http.get("/v1/jobs", headers={"Authorization": header})
    assert answer.status_code in (401, 429)
    assert header.partition(" ")[2][:10] not in answer.text


def test_failures_lock_out_who_failed_and_nobody_else(http, tokens):
    right = tokens[TokenScope.VIEWER]
    wrong = right[:-4] + ("AAAA" if right[-4:] != "AAAA" else "BBBB")
    statuses = [http.get("/v1/jobs", headers=bearer(wrong)).status_code for _ in range(8)]
    assert statuses[:5] == [401] * 5
    assert statuses[-1] == 429
    locked = http.get("/v1/jobs", headers=bearer(right))
    assert locked.status_code == 429
    assert 1 <= int(locked.headers["Retry-After"]) <= 60
    assert locked.json()["type"] == "urn:sluice:problem:too-many-requests"
    assert http.get("/v1/jobs", headers=bearer(tokens[TokenScope.ADMIN])).status_code == 200
    wait_until(lambda: http.get("/v1/jobs", headers=bearer(right)).is_success, deadline_s=20)


def test_a_token_in_the_address_is_refused(http, tokens):
    for query in (
        f"access_token={tokens[TokenScope.ADMIN]}",
        "token=x",
        f"q={tokens[TokenScope.ADMIN]}",
    ):
        answer = http.get(f"/v1/jobs?{query}")
        assert answer.status_code == 400
        assert "the query contains a token" in answer.json()["detail"]
        assert tokens[TokenScope.ADMIN] not in answer.text


def test_no_other_site_gets_anything_and_answers_are_hardened(http, tokens):
    preflight = http.options(
        "/v1/jobs",
        headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"},
    )
    assert preflight.status_code == 403
    own = {"Origin": str(http.base_url).rstrip("/"), **bearer(tokens[TokenScope.VIEWER])}
    for answer in (preflight, http.get("/v1/jobs"), http.get("/v1/jobs", headers=own)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers
    assert http.get("/v1/jobs", headers=own).status_code == 200


def test_changes_and_refusals_are_audited_without_secrets(plane, http, tokens):
    job = {"sql": script(password="open sesame"), "name": "audited"}
    made = http.post("/v1/jobs", json=job, headers=bearer(tokens[TokenScope.OPERATOR]))
    assert made.status_code == 201
    assert http.get("/v1/jobs", headers=bearer(tokens[TokenScope.ADMIN])).status_code == 200
    time.sleep(1.1)  # refusals of an address are written once a second
    http.post("/v1/jobs?x=hidden", json=job, headers=bearer(tokens[TokenScope.VIEWER]))
    path = plane.services.settings.data_dir / "audit.jsonl"
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    done = next(line for line in lines if line["object"] == made.headers["Location"])
    assert done["who"] == "operator one"
    assert done["token_id"] == tokens[TokenScope.OPERATOR].split("_")[1]
    assert (done["method"], done["status"], done["outcome"]) == ("POST", 201, "done")
    assert done["address"] == "127.0.0.1"
    assert done["time"].endswith("Z")
    refused = [line for line in lines if line["who"] == "viewer one"]
    assert (refused[-1]["outcome"], refused[-1]["status"]) == ("refused", 403)
    assert not any(line["method"] == "GET" and line["status"] == 200 for line in lines)
    for secret in (
        "open sesame",
        "hidden",
        "hunter2",
        *(t.split("_", 2)[2] for t in tokens.values()),
    ):
        assert secret not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
