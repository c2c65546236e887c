"""The process of a fold: one that hangs is killed, one that works is not."""

import sys

import pytest

from joins.dimension.fold_files import run_watched

pytestmark = pytest.mark.usefixtures("processes")
_STOPS = "import os, signal, sys; sys.stdin.read(); os.kill(os.getpid(), signal.SIGSTOP)"
_SLEEPS = "import time; time.sleep(600)"
_WAITS = "import threading; threading.Event().wait()"
_WORKS = """
import sys, time
text, end = sys.stdin.read(), time.monotonic() + 3
while time.monotonic() < end:
    pass
print(text, end="")
"""


@pytest.mark.parametrize("program", [_STOPS, _SLEEPS, _WAITS])
def test_a_process_that_uses_no_processor_time_is_killed(program):
    status, output, said = run_watched([sys.executable, "-c", program], "task", idle_s=1.0)
    assert (status, output) == (-1, "")
    assert "no processor time for 1 s" in said


def test_a_process_that_works_longer_than_that_is_not(processes):
    text = "x" * 1_000_000
    status, output, _ = run_watched([sys.executable, "-c", _WORKS], text, idle_s=1.5)
    assert status == 0
    assert output == text


def test_what_a_failed_process_says_is_kept():
    program = "import sys; sys.stdin.read(); sys.exit('no memory')"
    status, _, said = run_watched([sys.executable, "-c", program], "", idle_s=60)
    assert (status, said.strip()) == (1, "no memory")
