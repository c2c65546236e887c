"""The built wheel in an environment of its own, far from the checkout: what `pipx` gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.version import program_version
from tests.support.control_plane import ROOT

pytestmark = pytest.mark.experiment


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """Standard output of a program that knows nothing of the checkout."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**own, **more}, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def built(source: Path, wheels: Path) -> Path:
    """The wheel of a project."""
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels)
    before = set(wheels.glob("*.whl"))
    run(sys.executable, "-m", "pip", *build, source, cwd=wheels)
    (wheel,) = set(wheels.glob("*.whl")) - before
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The directory of the environment's programs, which pipx has made."""
    place = tmp_path_factory.mktemp("wheel")
    wheel = built(ROOT, place)
    run(sys.executable, "-m", "venv", place / "tools", cwd=place)
    run(place / "tools/bin/pip", "install", "--quiet", "pipx", cwd=place)
    homes = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin")}
    quick = ("--python", sys.executable, "--pip-args=--no-compile")  # a demo imports few of them
    run(place / "tools/bin/pipx", "install", *quick, wheel, cwd=place, **homes)
    assert (place / "bin/sluice").exists(), "the program is on the path"
    return place / "pipx/venvs/sluice/bin"


@pytest.fixture
def jars(java, spark_jars, broker_jars, database_home):
    """Java, jars and the database are in the cache."""


def test_a_wheel_in_a_fresh_environment_runs_the_demo_from_an_empty_directory(
    installed, tmp_path, jars
):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(installed / "sluice", "--version", cwd=empty).split() == [program_version()]
    imported = "from sluice import Sluice; print(Sluice.__name__)"
    assert run(installed / "python", "-c", imported, cwd=empty).strip() == "Sluice"
    sizes = ("--rows", "3000", "--records", "600")
    told = run(installed / "sluice", "demo", "--exit", "--json", *sizes, cwd=empty)
    shown = json.loads(told.splitlines()[-1])
    assert shown["phase"] == "JOIN"
    assert shown["early_records"] == 0
    assert shown["matched"] + shown["unmatched"] == shown["joined_records"] >= 600
    assert not list(empty.iterdir()), "nothing is left where it was started"
    (home,) = (installed.parent / "lib").glob("python*/site-packages/service")
    assert home.is_dir(), "it ran what the wheel has brought"


@pytest.mark.usefixtures("processes")
def test_a_package_that_is_installed_over_ours_is_found_at_the_start_and_named(installed, tmp_path):
    source = tmp_path / "other"
    (source / "watermark").mkdir(parents=True)
    (source / "watermark/__init__.py").write_text('"""Another project\'s watermarks."""\n')
    (source / "pyproject.toml").write_text(
        '[project]\nname = "images"\nversion = "2.1"\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["watermark"]\n'
    )
    python = installed / "python"
    run(python, "-m", "pip", "install", "--quiet", built(source, tmp_path), cwd=tmp_path)
    done = subprocess.run(
        [installed / "sluice", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "watermark/__init__.py" in done.stderr
    assert 'but that of "images" 2.1' in done.stderr
    assert "hint: Install sluice into an environment of its own" in done.stderr
