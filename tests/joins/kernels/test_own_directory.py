"""Directories in the temporary directory: gone with their process, after a kill with the next."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from joins.kernels.local_files import OwnDirectory, remove_abandoned

_PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
from joins.kernels.local_files import OwnDirectory
own = OwnDirectory(sys.argv[2], Path(sys.argv[1]))
(own.path / "left").write_text("x")
child = 0
if sys.argv[3] == "child":
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[own.descriptor]).pid
print(own.path, child, flush=True)
time.sleep(600)
"""


def started(within: Path, kind: str, child: str = "") -> tuple[subprocess.Popen, Path, int]:
    command = [sys.executable, "-c", _PROGRAM, str(within), kind, child]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    path, pid = process.stdout.readline().split()
    return process, Path(path), int(pid)


def killed(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()


@pytest.mark.parametrize("kind", ["run", "index", "batch", "draft"])
def test_what_a_killed_process_has_left_goes_with_the_next(tmp_path, processes, kind):
    process, path, _ = started(tmp_path, kind)
    with OwnDirectory("run", tmp_path) as own:
        assert path.exists(), "its process lives"
        killed(process)
        assert (path / "left").exists()
        with OwnDirectory(kind, tmp_path) as later:
            assert sorted(tmp_path.iterdir()) == sorted([own, later])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_stays_while_a_child_that_has_its_lock_lives(tmp_path, processes):
    process, path, child = started(tmp_path, "run", "child")
    os.kill(process.pid, signal.SIGSTOP)  # so that the pipe to the child stays open
    remove_abandoned(tmp_path)
    assert path.exists()
    os.kill(child, signal.SIGKILL)
    killed(process)
    remove_abandoned(tmp_path)
    assert not path.exists()


def test_directories_of_others_stay(tmp_path):
    for name in ("sluice-demo-1-2-x", "sluice-0", "other-1", f"sluice-{os.getuid()}-0a1b"):
        (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4, "a new one without a lock may be an older version's"
    os.utime(tmp_path / f"sluice-{os.getuid()}-0a1b", (0, 0))
    remove_abandoned(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_forked_child_leaves_the_directory_to_its_parent(tmp_path):
    own = OwnDirectory("run", tmp_path)
    own._pid += 1  # as in a child
    own.remove()
    assert own.path.exists()
    own._pid -= 1
    own.remove()
    assert not own.path.exists()
