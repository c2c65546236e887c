"""The first hour: the commands of docs/tutorial, in order, as a reader types them."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from joins.kernels.compiled import kept_in
from service.config import Settings
from service.embedded.process import free_port

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/tutorial").glob("*.md"))
BLOCK = re.compile(
    r'^```\w+ title="([^"]+)"\n(.*?)^```$|^```.*?^```$|((?:^ {4}[^\n]*\n)+)',
    re.MULTILINE | re.DOTALL,
)
DEBEZIUM = ROOT / "docs/how-to/debezium.md"
UP = "sluice up --data-dir ."
LAST = "rm -r ~/"
ENDED = 'kill "$up"; wait "$up"'
READY = "until sluice jobs ls; do kill -0 $up; sleep 0.2; done"
MOST_S = 2_400


def commands(pages):
    """What the pages say to type, as one script; `sluice up` has a terminal of its own."""
    lines = ["set -eu", "up=", "trap 'test -z \"$up\" || kill $up' EXIT"]
    for page in pages:
        for name, text, typed in BLOCK.findall(page.read_text(encoding="utf-8")):
            if name:
                lines.append(f"cat > {name} <<'EOF'\n{text}EOF")
            lines += [line.removeprefix("    ") for line in typed.splitlines()]
    script = "\n".join(lines) + "\n"
    assert script.count(UP) == script.count(LAST) == 1
    (start,) = re.findall(f"{UP}.*", script)
    script = script.replace(start, f"{start} > up.log 2>&1 &\nup=$!\n{READY}")
    return script.replace(LAST, f"trap - EXIT\n{ENDED}\n{LAST}")


@pytest.fixture
def home():
    directory = Path(tempfile.mkdtemp(prefix="st-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def typed(home, pages):
    """What is said when everything is typed."""
    foreign = {name: value for name, value in os.environ.items() if name[:7] != "SLUICE_"}
    own = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "SLUICE_CACHE_DIR": str(Settings.load().cache_dir),
        "NUMBA_CACHE_DIR": str(kept_in()),
        "SLUICE_PORT": str(free_port()),
        "SLUICE_CHECK_TIMEOUT_S": "300",
    }
    with subprocess.Popen(
        ["bash", "-x", "-c", commands(pages)],
        cwd=ROOT,
        env=foreign | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as typing:
        try:
            said, _ = typing.communicate(timeout=MOST_S - 60)
        finally:
            if typing.poll() is None:
                os.killpg(typing.pid, signal.SIGKILL)
    assert typing.returncode == 0, said[-6000:]
    return said


@pytest.mark.experiment
@pytest.mark.timeout(MOST_S)
@pytest.mark.usefixtures("processes")
def test_the_commands_of_the_tutorial_do_what_it_says(home):
    said = typed(home, PAGES)
    assert re.search(r"^\+I\[.*Ada\]$", said, re.MULTILINE), "clicks show the row that was changed"
    assert re.search(r"^identical +yes$", said, re.MULTILINE), "the batch was joined again"
    assert "30 late" in said
    assert not (home / "first-hour").exists()


@pytest.mark.experiment
@pytest.mark.usefixtures("processes")
def test_whoever_has_debezium_types_the_commands_of_its_page(home):
    said = typed(home, [DEBEZIUM])
    assert re.search(r"^\+I\[.*Ada, ", said, re.MULTILINE), "orders show the row that was changed"
    assert not (home / "debezium").exists()
