"""Work in the background is tried again, whatever has become of it."""

import pytest

from service.config import Settings
from service.errors import ControlPlaneError
from service.jobs.supervise.background import Attempts, WorkKind
from tests.support.wait import wait_until

KIND = WorkKind("removal", "removal failed", at_once=1)


class Shown:
    """What of a job store is needed."""

    def __init__(self, fault=None):
        self.reasons = []
        self._fault = fault

    def set_reason(self, job_id, reason, error):
        if self._fault is not None:
            raise self._fault
        self.reasons.append((job_id, reason, error.type))


@pytest.fixture
def settings(tmp_path):
    return Settings.load(data_dir=tmp_path, restart_backoff_min_s=0.01)


def work_of(results):
    def work():
        result = results.pop(0)
        if result is not None:
            raise result

    return work


def test_work_that_is_asked_for_again_does_not_wait(tmp_path):
    results = [ControlPlaneError("it is locked", hint="Wait."), None]
    work, waits = work_of(results), {"restart_backoff_min_s": 600, "restart_backoff_max_s": 600}
    attempts = Attempts(Shown(), Settings.load(data_dir=tmp_path, **waits), KIND)
    attempts.hurry("a")  # nothing waits yet
    try:
        wait_until(lambda: not attempts.is_done("a", work) and len(results) == 1, what="a failure")
        wait_until(lambda: attempts.hurry("a") or attempts.is_done("a", work), what="the second")
    finally:
        attempts.close()


FAILURES = {
    "refused": (ControlPlaneError("it is locked", hint="Wait."), "it is locked"),
    "unknown": (OSError("no such device"), "no such device"),
}


STORES = {
    "store_there": None,
    "store_away": ControlPlaneError("the job store is away", hint="Start the database."),
    "store_broken": MemoryError(),
}


@pytest.mark.parametrize(("error", "told"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("fault", STORES.values(), ids=STORES)
def test_work_that_fails_is_shown_and_tried_again(settings, error, told, fault):
    store, results = Shown(fault), [error, error, None]
    work = work_of(results)
    attempts = Attempts(store, settings, KIND)
    try:
        wait_until(lambda: attempts.is_done("a", work), what="the third attempt")
    finally:
        attempts.close()
    assert results == []
    shown = [(job, reason) for job, reason, _ in store.reasons]
    assert shown == ([] if fault else [("a", f"removal failed: {told}")] * 2)
    assert attempts.is_done("a", work), "what is done is not done again"
