"""A disk that is full: it is told by whoever reads, and a runner that cannot report lives on."""

import errno
import re
import shutil

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from service.api.app import create_app
from service.config import Settings
from service.jobs.inspect import facts
from service.jobs.inspect.facts import full_disks
from service.jobs.runner import StatusFile
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import read_status
from tests.support.control_plane import script
from tests.support.disk import largest_file
from tests.support.stored_jobs import stored_services


def settings_of(tmp_path):
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir(exist_ok=True)
    return Settings.load(data_dir=tmp_path, warehouse_dir=warehouse)


def test_a_disk_with_room_is_not_told(tmp_path):
    assert full_disks(settings_of(tmp_path)) == []


def test_a_full_disk_of_both_directories_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "_LEAST_FREE_BYTES", 1 << 60)
    (warning,) = full_disks(settings_of(tmp_path))
    total = shutil.disk_usage(tmp_path).total >> 20
    assert warning.type == "disk-full"
    assert warning.message.startswith(f'the disk of data directory "{tmp_path}" is full: ')
    assert warning.message.endswith(f" of {total} MiB are free")
    assert "Free space" in warning.hint


def test_a_disk_without_inodes_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "_LEAST_INODES", 1 << 60)
    (warning,) = full_disks(settings_of(tmp_path))
    assert re.search(r"MiB are free, and \d+ inodes$", warning.message)


def test_a_directory_that_is_not_there_yet_is_not_full(tmp_path):
    settings = Settings.load(data_dir=tmp_path / "later", warehouse_dir=tmp_path / "later")
    assert full_disks(settings) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_request_says_that_the_disk_is_full(tmp_path, monkeypatch, secret, code):
    def fails(path, content):
        raise OSError(code, "as the system says", str(path))

    monkeypatch.setattr("service.jobs.submit.submission.write_new", fails)
    with stored_services(tmp_path) as services, capture_logs():
        app = create_app(services)
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        answer = client.post("/v1/jobs", json={"sql": script(), "name": "one"})
    if code == errno.EIO:
        assert answer.status_code == 500
        return
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:sluice:problem:disk-full"
    assert re.match(
        r'request was not carried out: the disk of ".*" is full', answer.json()["detail"]
    )
    assert answer.json()["hint"].startswith("Free space")


def test_a_runner_that_cannot_report_goes_on_and_reports_later(tmp_path):
    status = StatusFile(JobLayout(tmp_path))
    status.note("STARTING", "begins")
    with capture_logs(), largest_file(0):
        status.note("STOPPED", "nobody can read this")
    assert read_status(tmp_path).reason == "begins"
    status.note("STOPPED", "there is room again")
    assert read_status(tmp_path).reason == "there is room again"
