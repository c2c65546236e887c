"""Work for jobs in the background, once at a time for each; what fails is tried again later."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from service.config import Settings


def back_off_s(settings: Settings, failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubled each time, within the settings."""
    wait_s = settings.restart_backoff_min_s * 2.0 ** min(failures - 1, 20)
    return float(min(settings.restart_backoff_max_s, wait_s))


@dataclass(slots=True)
class _Attempt:
    future: "Future[bool]"
    failures: int
    retry_at: float | None = None


class Attempts:
    """One kind of work, by job.

    Args:
        at_once: for so many jobs.
        name: of the threads.
        doubled: how often the first wait is doubled already.
    """

    def __init__(self, settings: Settings, at_once: int, name: str, *, doubled: int = 0) -> None:
        self._settings = settings
        self._at_once = at_once
        self._name = name
        self._doubled = doubled
        self._attempts: dict[str, _Attempt] = {}
        self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=self._at_once, thread_name_prefix=self._name)

    def begin_anew(self) -> None:
        """Forget what was begun: another control plane may have led since."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._new_threads()
        self._attempts.clear()

    def close(self) -> None:
        """Wait for what is under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def forget(self, job_id: str) -> None:
        """The job is gone."""
        self._attempts.pop(job_id, None)

    def has_begun(self, job_id: str) -> bool:
        """Whether the work was ever begun."""
        return job_id in self._attempts

    def is_done(self, job_id: str, work: Callable[[], bool]) -> bool:
        """Whether the work has succeeded; where it is not under way, `work` is begun when due."""
        attempt = self._attempts.get(job_id)
        if attempt is None:
            self._begin(job_id, work, failures=0)
            return False
        if not attempt.future.done():
            return False
        if attempt.future.result():
            return True
        now = time.monotonic()
        if attempt.retry_at is None:
            failures = attempt.failures + 1 + self._doubled
            attempt.retry_at = now + back_off_s(self._settings, failures)
        elif now >= attempt.retry_at:
            self._begin(job_id, work, failures=attempt.failures + 1)
        return False

    def _begin(self, job_id: str, work: Callable[[], bool], *, failures: int) -> None:
        self._attempts[job_id] = _Attempt(self._threads.submit(work), failures)
