"""Faults that come back at each look at the jobs fill no log."""

import errno

import pytest
from structlog.testing import capture_logs

from service.jobs.supervise import supervisor
from service.jobs.supervise.supervisor import FaultLog

BROKEN, OTHER = ValueError("broken"), ValueError("other")
FULL = OSError(errno.ENOSPC, "No space left on device")


def logged(*given: tuple[Exception, str]) -> list[dict]:
    log = FaultLog()
    with capture_logs() as logs:
        for error, job_id in given:
            log.log("job cannot be looked at", error, job_id)
    return logs


def test_a_fault_that_lasts_is_logged_once_and_another_one_at_once() -> None:
    logs = logged((BROKEN, "a"), (BROKEN, "a"), (BROKEN, "b"), (OTHER, "a"), (BROKEN, "a"))
    assert [(each["job_id"], each["exc_info"]) for each in logs] == [
        ("a", BROKEN), ("b", BROKEN), ("a", OTHER), ("a", BROKEN)
    ]  # fmt: skip


def test_a_fault_that_lasts_is_logged_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "AGAIN_S", 0.0)
    assert len(logged((BROKEN, "a"), (BROKEN, "a"))) == 2


def test_a_full_disk_is_told_without_a_trace() -> None:
    (told,) = logged((FULL, ""))
    assert "exc_info" not in told
    assert "job_id" not in told
    assert told["error"] == "OSError: [Errno 28] No space left on device"
