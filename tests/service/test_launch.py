"""Another project's packages of our names are found at the start, and named."""

import subprocess
import sys
from pathlib import Path

import pytest

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
