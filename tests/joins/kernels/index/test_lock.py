"""The lock of an index directory, held by real processes: one that hangs, one that is killed."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from joins.kernels.index.lock import Patience, exclusive
from joins.plan.errors import IndexLockedError
from tests.support.disk import largest_file

ROOT = Path(__file__).parents[4]
HOLDER = """
import sys, time
from pathlib import Path
from joins.kernels.index.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def held_by_a_process(directory, program=HOLDER):
    command = [sys.executable, "-c", program, str(directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            while process.stdout.readline().strip() != "held":
                assert process.poll() is None
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("processes")
def test_a_holder_that_hangs_is_named_with_the_lock_when_the_limit_has_passed(tmp_path):
    with held_by_a_process(tmp_path) as holder:
        holder.send_signal(signal.SIGSTOP)
        with (
            pytest.raises(IndexLockedError, match=f"process {holder.pid} on node") as caught,
            exclusive(tmp_path, patience=Patience(held_s=0.05)),
        ):
            pytest.fail("two processes have the lock")
        assert str(tmp_path / "lock") in caught.value.message
        assert "end it" in caught.value.hint


@pytest.mark.usefixtures("processes")
def test_a_holder_that_stands_still_is_named_soon_and_at_once_to_whoever_comes_next(tmp_path):
    for_long = Patience(held_s=3600, still_s=3600)
    with held_by_a_process(tmp_path) as holder:
        holder.send_signal(signal.SIGSTOP)
        for patience in (Patience(held_s=3600, still_s=0.2), for_long, for_long):
            with (
                pytest.raises(IndexLockedError, match=f"process {holder.pid} .* still"),
                exclusive(tmp_path, patience=patience),
            ):
                pytest.fail("two processes have the lock")
        holder.send_signal(signal.SIGCONT)
        holder.stdin.write("go\n")
        holder.stdin.flush()
        with exclusive(tmp_path, patience=for_long):
            assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]


WORKING = """
import sys, time
from pathlib import Path
from joins.kernels.index.lock import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    while True:
        {step}
"""
STEPS = {"computes": "sum(range(10_000))", "sleeps_and_wakes": "time.sleep(0.01)"}


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_holder_that_does_anything_is_waited_for_as_long_as_one_that_works(tmp_path, step):
    with (
        held_by_a_process(tmp_path, WORKING.format(step=step)),
        pytest.raises(IndexLockedError, match="has held it for 1 s"),
        exclusive(tmp_path, patience=Patience(held_s=1, still_s=0.5)),
    ):
        pytest.fail("two processes have the lock")


@pytest.mark.usefixtures("processes")
def test_a_holder_whose_process_cannot_be_seen_is_waited_for_as_one_that_works(tmp_path):
    with held_by_a_process(tmp_path) as holder:
        holder.send_signal(signal.SIGSTOP)
        told = (tmp_path / "lock").read_text()
        (tmp_path / "lock").write_text(told.replace("pid:[", "pid:[other "))
        with (
            pytest.raises(IndexLockedError, match="has held it"),
            exclusive(tmp_path, patience=Patience(held_s=0.3, still_s=0)),
        ):
            pytest.fail("two processes have the lock")


@pytest.mark.usefixtures("processes")
def test_a_holder_that_was_killed_blocks_nobody(tmp_path):
    with held_by_a_process(tmp_path) as holder:
        holder.send_signal(signal.SIGSTOP)
        holder.kill()
        holder.wait()
        assert str(holder.pid) in (tmp_path / "lock").read_text(), "it had no time to clean up"
        with exclusive(tmp_path, patience=Patience(held_s=0)):
            assert str(os.getpid()) in (tmp_path / "lock").read_text()
    assert (tmp_path / "lock").read_text() == ""


@pytest.mark.usefixtures("processes")
def test_a_child_that_outlives_a_killed_holder_has_not_inherited_the_lock(tmp_path):
    with exclusive(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with exclusive(tmp_path, patience=Patience(held_s=0)):
            assert child.poll() is None
    finally:
        child.communicate(b"\n")


def test_a_full_disk_keeps_nobody_from_the_lock(tmp_path):
    with exclusive(tmp_path):
        pass
    with largest_file(0), exclusive(tmp_path, patience=Patience(held_s=0)):
        assert (tmp_path / "lock").read_text() == ""


def test_a_lock_file_that_is_removed_meanwhile_locks_nobody_out(tmp_path):
    with exclusive(tmp_path):
        (tmp_path / "lock").unlink()
        with exclusive(tmp_path, patience=Patience(held_s=0)):
            pass
