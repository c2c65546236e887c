"""A runner ends in order once no control plane has been there for the limit, and not before."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from service.jobs import runner
from service.jobs.leadership import ControlPlaneAbsence, ControlPlaneSign
from service.jobs.runner import ControlPlaneWatch
from tests.support.wait import wait_until

STEPS = st.lists(st.tuples(st.integers(1, 120), st.booleans()), max_size=30)


@given(STEPS)
def test_an_absence_lasts_from_the_last_sign(tmp_path_factory, steps):
    data_dir, now, last = tmp_path_factory.mktemp("data"), [0.0], 0.0
    presence = ControlPlaneSign(data_dir, lambda: now[0])
    absence = ControlPlaneAbsence(data_dir, 100.0, lambda: now[0])
    assert not absence.is_over_limit()
    for seconds, is_there in steps:
        now[0] += seconds
        before = (data_dir / "control-plane.alive").exists() and signs(data_dir)
        if is_there:
            presence.show()
        if is_there and signs(data_dir) != before:
            last = now[0]
        assert absence.is_over_limit() == (now[0] - last > 100)


def signs(data_dir):
    return (data_dir / "control-plane.alive").stat().st_mtime_ns


def test_a_directory_without_a_sign_is_an_absence_from_the_start_on(tmp_path):
    now = [0.0]
    absence = ControlPlaneAbsence(tmp_path, 100.0, lambda: now[0])
    for now[0], is_over in ((0.0, False), (100.0, False), (101.0, True)):
        assert absence.is_over_limit() is is_over


def test_the_job_is_asked_to_stop_before_the_process_ends(monkeypatch):
    gone, ended, order = threading.Event(), threading.Event(), []
    monkeypatch.setattr(runner, "_PARENT_LOOK_S", 0.01)
    monkeypatch.setattr(runner.os, "_exit", lambda code: (order.append(code), ended.set()))
    watch = ControlPlaneWatch(gone.is_set, grace_s=0.0)
    watch.stop_first(lambda: order.append("stop"))
    watch.start()
    gone.set()
    wait_until(ended.is_set, what="the process ends")
    assert order == ["stop", runner.EXIT_CRASHED]
