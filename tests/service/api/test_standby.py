"""Two control planes on one PostgreSQL and one data directory: a leader and a standby."""

from contextlib import ExitStack

import httpx
import pytest

from service.api.server import ControlPlane
from service.errors import ControlPlaneError
from service.jobs.store.layout import living_runner
from tests.support.control_plane import HOOKS, INSPECT, RUNNER, script, settings_in, stop_jobs
from tests.support.documents import Documents
from tests.support.program import run_program
from tests.support.rig import is_alive
from tests.support.store_databases import new_store_url
from tests.support.wait import wait_until


@pytest.fixture
def settings(postgres, tmp_path, secret):
    return settings_in(tmp_path, database_url=new_store_url(postgres), stop_timeout_s=10)


def _plane(settings):
    return ControlPlane(settings, hooks=HOOKS, runner_command=RUNNER, inspect_command=INSPECT)


def _get(plane, path):
    return httpx.get(f"{plane.url}{path}", trust_env=False)


def test_a_standby_reads_refuses_changes_and_takes_over_when_the_leader_has_ended(settings):
    with ExitStack() as second_lives:
        with _plane(settings) as first, Documents(first.url) as client:
            job_id = client.submit(script(), "shop")["id"]
            client.when(job_id, state="JOINING")
            runner = living_runner(settings.jobs_dir / job_id).pid
            assert _get(first, "/readyz").is_success
            second = second_lives.enter_context(_plane(settings))
            assert client.version()["role"] == "leader"
            _assert_stands_by(second, first.url, job_id, runner)
        assert not is_alive(runner), "the leader has ended its runners before it gave way"
        wait_until(lambda: _get(second, "/readyz").is_success, deadline_s=10)
        with Documents(second.url) as client:
            assert client.version()["role"] == "leader"
            client.when(job_id, state="JOINING")
            job = client.job(job_id)
            assert job["runner"]["pid"] != runner
            assert job["runner"]["crashes"] == 0
            client.stop(job_id)
        assert stop_jobs(second, timeout_s=20)


def _assert_stands_by(plane, leader_url, job_id, runner):
    with Documents(plane.url) as client:
        version = client.version()
        assert (version["role"], version["leader_url"]) == ("standby", leader_url)
        seen = client.job(job_id)
        assert seen["state"] == "JOINING"
        assert (seen["runner"]["pid"], seen["runner"]["alive"]) == (runner, True)
        assert client.events(job_id)[0]["to"] == "CREATED"
        for change in (lambda: client.stop(job_id), lambda: client.submit(script(), "other")):
            with pytest.raises(ControlPlaneError, match=f'"{leader_url}" leads'):
                change()
    said = run_program("version", "--of-server", SLUICE_SERVER=plane.url).stdout.decode()
    assert said.split("\t")[1:] == ["standby", f"leader: {leader_url}\n"]
    assert _get(plane, "/livez").is_success
    refused = _get(plane, "/readyz")
    assert refused.status_code == 503
    assert refused.json()["type"] == "urn:sluice:problem:standby"
    assert refused.json()["leader_url"] == leader_url
    assert "Retry-After" in refused.headers
    roles = [line for line in _get(plane, "/metrics").text.splitlines() if "_leads" in line]
    assert "sluice_control_plane_leads 0.0" in roles


def test_the_jobs_of_a_store_are_in_one_directory(settings, postgres, tmp_path):
    with _plane(settings):
        elsewhere = settings.model_copy(update={"data_dir": tmp_path / "not mounted"})
        with pytest.raises(ControlPlaneError, match="belongs to no job store") as refused:
            _plane(elsewhere).open()
        assert "SLUICE_DATA_DIR" in refused.value.hint
        followed = _plane(elsewhere.model_copy(update={"data_dir": tmp_path}))
        followed.open()
        followed.close()
        of_other = {"database_url": new_store_url(postgres), "data_dir": tmp_path / "another"}
        with (
            _plane(settings.model_copy(update=of_other)),
            pytest.raises(ControlPlaneError, match="belongs to another job store"),
        ):
            _plane(settings.model_copy(update={"data_dir": tmp_path / "another"})).open()


def test_who_is_alone_on_a_directory_and_who_shares_it_exclude_each_other(settings, tmp_path):
    alone = settings_in(tmp_path)
    with _plane(settings), pytest.raises(ControlPlaneError, match="in use by another"):
        _plane(alone).open()
    with _plane(alone), pytest.raises(ControlPlaneError, match="in use by another"):
        _plane(settings).open()
