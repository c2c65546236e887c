"""The set-up on machines where something is missing, and the check for registry addresses."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("processes")

ROOT = Path(__file__).parents[1]
TARGETS = (
    "demo",
    "test",
    "test-more",
    "test-quick",
    "check",
    "fmt",
    "docs",
    "bench",
    "reliability",
    "lock",
    "clean",
)
PIP = [
    ("Collecting aiohttp==3.1 (from -r requirements.lock (line 1))", "aiohttp==3.1"),
    ("Requirement already satisfied: arrow==2.0 in /lib (from -r a)", "arrow==2.0"),
    ("Installing collected packages: aiohttp, arrow", "unpacking 2 packages"),
]
FUNCTION = re.MULTILINE | re.DOTALL
TOO_OLD = "#!/bin/sh\nexit 1\n"
NO_VENV = '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\n'
MACHINES = {
    "python_too_old": (TOO_OLD, "no Python 3.11 or newer found", "apt-get install python3"),
    "venv_module_missing": (NO_VENV, "has no venv module", "apt-get install python3-venv"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that set-up starts from, without a virtual environment."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(*command: str | Path, at: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=at, capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_make_alone_lists_every_target() -> None:
    listing = run("make", "-s", at=ROOT)
    assert listing.returncode == 0
    assert [name for name in TARGETS if f"make {name} " not in listing.stdout] == []


@pytest.mark.parametrize(("program", "said", "fix"), MACHINES.values(), ids=MACHINES)
def test_what_is_missing_is_told_on_standard_error_with_its_fix(
    program: str, said: str, fix: str, checkout: Path
) -> None:
    python = checkout / "python"
    python.write_text(program)
    python.chmod(0o755)
    ended = run("make", "-s", "demo", f"PYTHON={python}", at=checkout)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert said in ended.stderr
    assert fix in ended.stderr
    assert not (checkout / ".venv").exists()


def test_each_package_is_named_as_soon_as_pip_names_it() -> None:
    (function,) = re.findall(r"^fetching\(\) .*?^}$", (ROOT / ".ci/setup").read_text(), FUNCTION)
    shell = ["sh", "-c", f"{function}\nfetching requirements.lock"]
    with subprocess.Popen(
        shell, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=0
    ) as fetching:
        for number, (line, shown) in enumerate(PIP, start=1):
            fetching.stdin.write(f"{line}\n")
            fetching.stdin.flush()
            told = ""
            while shown not in told:
                told += fetching.stdout.read(1)
            assert f"fetching {number} of" in told or number == len(PIP)
        fetching.stdin.close()


def test_no_file_of_the_project_names_a_registry() -> None:
    found = run(sys.executable, ".ci/addresses.py", at=ROOT)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_registry_address_is_found_with_file_and_line(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("one\nhttps://" + "pypi" + ".org/simple\n")
    found = run(sys.executable, checkout / ".ci" / "addresses.py", at=checkout)
    assert found.returncode == 1
    assert "notes.txt:2" in found.stderr
