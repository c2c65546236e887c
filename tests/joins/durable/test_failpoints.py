"""Planted faults: at the wished passage, once, and never unless asked for."""

import errno
import pickle
import signal
import subprocess
import sys

import psutil
import pytest

from joins.durable.failpoints import POINTS, FailpointError, Failpoints, parse_failpoints
from joins.plan.errors import JoinError
from tests.support.wait import wait_until

PARSED = {
    "nothing": ("", []),
    "only_separators": (" ; ;", []),
    "first_passage_by_default": ("C3=kill", [("C3", "kill", 1, None)]),
    "a_passage": ("C3=raise@12", [("C3", "raise", 12, None)]),
    "a_batch": ("C3=raise#0", [("C3", "raise", None, 0)]),
    "several": (
        "C3=kill@2; C11=enospc",
        [("C3", "kill", 2, None), ("C11", "enospc", 1, None)],
    ),
    "several_at_a_point": (
        "C3=kill@2;C3=stop#7",
        [("C3", "kill", 2, None), ("C3", "stop", None, 7)],
    ),
}
REFUSED = {
    "unknown_point": "C99=kill",
    "unknown_action": "C3=explode",
    "no_action": "C3",
    "passage_zero": "C3=kill@0",
    "negative_passage": "C3=kill@-1",
    "negative_batch": "C3=kill#-1",
    "passage_and_batch": "C3=kill@1#1",
    "passage_in_words": "C3=kill@two",
    "superscript_passage": "C3=kill@²",
    "one_bad_among_good": "C3=kill;C4",
}
PROGRAM = """
import sys
from joins.durable.failpoints import Failpoints

points = Failpoints(sys.argv[1])
for passage in range(3):
    print(passage, flush=True)
    points.hit("C6")
"""


@pytest.mark.parametrize(("text", "points"), PARSED.values(), ids=PARSED)
def test_a_setting_is_understood(text, points):
    found = parse_failpoints(text)
    assert [(f.point, f.action, f.passage, f.batch) for f in found] == points


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_setting_that_would_do_nothing_is_refused(text):
    with pytest.raises(JoinError) as caught:
        Failpoints(text)
    assert "C3" in caught.value.message or "C99" in caught.value.message or "C4" in str(caught)


def test_nothing_happens_unless_planted():
    points = Failpoints()
    for point in POINTS:
        points.hit(point)


def test_the_fault_comes_at_its_passage_and_only_there():
    points = Failpoints("C7=raise@3")
    points.hit("C7")
    points.hit("C6")
    points.hit("C7")
    with pytest.raises(FailpointError):
        points.hit("C7")
    points.hit("C7")


def test_the_fault_comes_with_its_batch_however_often_the_point_was_passed():
    points = Failpoints("C7=raise#5")
    for batch in (3, 4, None):
        points.hit("C7", batch)
    with pytest.raises(FailpointError):
        points.hit("C7", 5)
    points.hit("C7", 5)


def test_a_passage_meets_one_fault_at_most(tmp_path):
    points = Failpoints("C7=raise#5;C7=enospc#5", tmp_path)
    with pytest.raises(FailpointError):
        points.hit("C7", 5)
    with pytest.raises(OSError, match="planted"):
        points.hit("C7", 5)
    points.hit("C7", 5)
    assert {path.name for path in tmp_path.iterdir()} == {"C7=raise#5", "C7=enospc#5"}


def test_a_full_disk_is_an_os_error():
    with pytest.raises(OSError, match="planted") as caught:
        Failpoints("C11=enospc").hit("C11")
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.usefixtures("processes")
def test_kill_ends_the_process_at_the_passage():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "C6=kill@2"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1"]


@pytest.mark.usefixtures("processes")
def test_stop_halts_the_process_until_it_is_continued():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "C6=stop"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            seen = psutil.Process(process.pid)
            wait_until(lambda: seen.status() == psutil.STATUS_STOPPED, what="the process halts")
            process.send_signal(signal.SIGCONT)
            assert process.communicate(timeout=120)[0].split() == ["0", "1", "2"]
        finally:
            process.kill()


def test_a_fault_comes_once_in_the_life_of_a_job(tmp_path):
    first, second = (Failpoints("C7=raise", tmp_path / "failpoints") for _ in range(2))
    with pytest.raises(FailpointError):
        pickle.loads(pickle.dumps(first)).hit("C7")
    first.hit("C7")
    second.hit("C7")
