"""Another project's packages of our names are found at the start, and named."""

import subprocess
import sys
from pathlib import Path

import pytest

from service import client, launch
from service.launch import collision
from tests.support.control_plane import ROOT

LAUNCHER = ROOT / "service/launch.py"


def started(*arguments: str, paths: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = {} if paths is None else {"PYTHONPATH": str(paths)}
    return subprocess.run(
        [sys.executable, LAUNCHER, *arguments],
        env={"PATH": "/usr/bin:/bin", **path},
        capture_output=True,
        text=True,
    )


def test_nothing_stands_in_the_way_here():
    assert collision() is None


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("name", ["service", "joins", "watermark"])
def test_a_package_of_the_same_name_on_the_path_is_named(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    done = started("--version", paths=tmp_path)
    assert done.returncode == 1
    assert f'error: package "{name}" is imported from "{tmp_path / name}"' in done.stderr
    assert "hint: Start sluice with PYTHONPATH unset" in done.stderr
    assert started("--version").returncode == 0, "the hint works"


@pytest.mark.parametrize("name", client.__all__)
def test_the_client_is_imported_by_the_name_of_the_package(name):
    assert getattr(launch, name) is getattr(client, name)


@pytest.mark.parametrize("name", ["Sluise", "os.path", "_root_", "collisions"])
def test_a_wrong_name_is_no_attribute(name):
    with pytest.raises(AttributeError, match=name):
        getattr(launch, name)


def test_the_client_of_another_project_is_not_imported(monkeypatch):
    monkeypatch.setattr(launch, "collision", lambda: ("it is another's", "Install it alone."))
    with pytest.raises(ImportError, match=r"it is another's\. Install it alone\."):
        _ = launch.Sluice
