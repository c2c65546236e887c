"""Reports go on during a long step of the main loop, and stop when it hangs."""

import time

import pytest

from joins.job.loops import Reporter
from tests.support.wait import wait_until


class Reports:
    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error
        self.count += 1


@pytest.fixture
def reports():
    return Reports()


@pytest.fixture
def reporter(reports):
    made = Reporter(reports, every_s=0.01, hangs_s=0.2)
    made.start()
    yield made
    made.stop(5)


def more(reports: Reports, than: int) -> None:
    wait_until(lambda: reports.count > than, what="it reports")


def test_it_reports_while_the_main_loop_is_in_a_long_step(reporter, reports):
    with reporter.step("an index is built"):
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 0.5)
        more(reports, reports.count)
        assert reporter.activity.step == "an index is built"
    assert reporter.activity.step is None


def test_it_is_silent_while_the_main_loop_hangs(reporter, reports):
    def is_silent():
        before, until = reports.count, time.monotonic() + 0.1
        wait_until(lambda: time.monotonic() > until)
        return reports.count == before

    wait_until(is_silent, what="nothing is reported")
    silent = reports.count
    reporter.beat()
    more(reports, silent)


def test_what_a_report_fails_with_ends_the_main_loop(reporter, reports):
    reports.error = OSError("the directory is gone")
    with pytest.raises(OSError, match="is gone"):
        wait_until(lambda: reporter.beat(), what="the main loop learns it")


def test_after_its_stop_nothing_is_reported(reporter, reports):
    more(reports, 0)
    reporter.stop(5)
    count = reports.count
    assert not reporter._thread.is_alive()
    assert reports.count == count
