"""Canary secrets in every place that one can come from: afterwards they are nowhere else.

The REST application, the store, the planner and the processes are the real ones; the runner is the
one without Spark. `tests/e2e/test_operators.py` looks at a real one.
"""

import logging
from contextlib import suppress
from dataclasses import replace

import httpx
import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from joins.plan.errors import SourceError
from service.api.server import ControlPlane
from service.cli import main as cli
from service.jobs.store.layout import JobLayout
from service.security.secrets import SecretStore
from tests.service.sql.test_secrets import CANARY, MISPLACED
from tests.support.canary import files_with, processes_with
from tests.support.control_plane import HOOKS, INSPECT, RUNNER, script, settings_in, stop_jobs
from tests.support.documents import Documents
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment

WORLD = {
    "inline": f"{CANARY}-inline",
    **{place: f"h3nn3-{place}" for place in ("environment", "kept", "mounted")},
}


def known_password(plan, settings, secrets):
    if secrets.resolve(plan.dimensions[0].source.password) not in WORLD.values():
        raise SourceError('access denied for user "cdc"', hint="Correct the password.")
    return plan


@pytest.fixture
def plane(processes, tmp_path, monkeypatch):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "mounted").write_text(WORLD["mounted"])
    monkeypatch.setenv("SLUICE_SECRET_ENVIRONMENT", WORLD["environment"])
    settings = settings_in(tmp_path / "data", secrets_dir=mounted)
    SecretStore(settings).put("kept", WORLD["kept"])
    hooks = replace(HOOKS, preflight=known_password)
    commands = {"runner_command": RUNNER, "inspect_command": INSPECT}
    with ControlPlane(settings, hooks=hooks, **commands) as running:
        yield running
        stop_jobs(running, timeout_s=60)


def written(place):
    return WORLD["inline"] if place == "inline" else f"${{secret:{place}}}"


def everything(http, job_id):
    """What each address answers that needs no more than a job; a stream, for a moment."""
    for path, operations in http.get("/openapi.json").json()["paths"].items():
        place = path.replace("{job_id}", job_id)
        if "get" not in operations or "{" in place:
            continue
        with (
            suppress(httpx.ReadTimeout),
            http.stream("GET", place, timeout=httpx.Timeout(60, read=5)) as answer,
        ):
            yield from (f"{place} {answer.headers}", *answer.iter_text())


def refusals(http):
    """Problem documents about scripts and bodies that have the canary where it does not belong."""
    for wrong in MISPLACED.values():
        sql = script().replace("'password'='${secret:shop}'", wrong)
        yield http.post("/v1/jobs", json={"sql": sql, "name": "refused"}).text
    secret = WORLD["inline"]
    yield http.post("/v1/jobs", json={"sql": script(password=f"wrong {secret}")}).text
    yield http.post("/v1/jobs", json={"sql": script(), "name": [secret]}).text
    yield http.post("/v1/jobs", content=f"password={secret}").text
    yield http.post("/v1/jobs", json={"sql": 1, "password": secret}).text


def test_no_secret_comes_out_anywhere(plane, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    jobs = plane.services.settings.jobs_dir
    with (
        capture_logs() as logs,
        httpx.Client(base_url=plane.url, trust_env=False, timeout=60) as http,
        Documents(plane.url) as client,
    ):
        ids = [client.submit(script(password=written(place)), place)["id"] for place in WORLD]
        wait_until(
            lambda: all(client.job(job_id)["state"] == "JOINING" for job_id in ids),
            deadline_s=120,
            what="all jobs run",
        )
        warnings = client.job(ids[0])["warnings"]
        told = [text for job_id in ids for text in everything(http, job_id)]
        told += refusals(http)
        pids = [client.job(job_id)["runner"]["pid"] for job_id in ids]
        shown = {s: processes_with(s, pids) for s in (*WORLD.values(), CANARY)}
        inline = JobLayout(jobs / ids[0]).secrets
        assert files_with(CANARY, tmp_path) == [inline]
        assert inline.stat().st_mode & 0o777 == 0o600
        client.remove(ids[0])
    assert any("urn:sluice:problem:source" in text for text in told)
    assert "${secret:inline-users-password}" in warnings[0]["message"]
    assert not any(shown.values()), shown
    said = f"{told}{logs}{caplog.text}"
    assert [secret for secret in (*WORLD.values(), CANARY) if secret in said] == []
    assert files_with(CANARY, tmp_path) == []
    assert files_with(WORLD["environment"], tmp_path) == []
    assert {path.name for path in files_with("h3nn3-", tmp_path)} == {"kept", "mounted"}


def test_validation_on_the_command_line_warns_and_shows_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_DATA_DIR", str(tmp_path / "data"))
    path = tmp_path / "job.sql"
    path.write_text(script(password=CANARY))
    for form in ("table", "json"):
        done = CliRunner().invoke(cli.app, ["validate", str(path), "-o", form])
        assert done.exit_code == 0
        assert "write such a reference yourself" in done.output
        assert CANARY not in done.output
