"""The built wheel in an environment of its own, far from the checkout: what `pip install` gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.version import program_version
from tests.support.control_plane import ROOT

pytestmark = [pytest.mark.experiment, pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """Standard output of a program that knows nothing of the checkout."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**own, **more}, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The directory of the environment's programs."""
    place = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", place)
    run(sys.executable, "-m", "pip", *build, ROOT, cwd=place)
    (wheel,) = place.glob("*.whl")
    run(sys.executable, "-m", "venv", place / "environment", cwd=place)
    programs = place / "environment" / "bin"
    run(programs / "pip", "install", "--quiet", wheel, cwd=place)
    return programs


@pytest.fixture
def jars(java, spark_jars, broker_jars, database_home):
    """Java, jars and the database are in the cache."""


def test_a_wheel_in_a_fresh_environment_runs_the_demo_from_an_empty_directory(
    installed, tmp_path, jars
):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(installed / "sluice", "--version", cwd=empty).split() == [program_version()]
    sizes = ("--rows", "3000", "--records", "600")
    told = run(installed / "sluice", "demo", "--exit", "--json", *sizes, cwd=empty)
    shown = json.loads(told.splitlines()[-1])
    assert shown["phase"] == "JOIN"
    assert shown["early_records"] == 0
    assert shown["matched"] + shown["unmatched"] == shown["joined_records"] >= 600
    assert not list(empty.iterdir()), "nothing is left where it was started"
    (home,) = (installed.parent / "lib").glob("python*/site-packages/service")
    assert home.is_dir(), "it ran what the wheel has brought"
