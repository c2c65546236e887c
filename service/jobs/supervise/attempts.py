"""Work for jobs in the background, once at a time for each; what fails is tried again later."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import structlog

from service.config import Settings
from service.jobs.store.job import JobError
from service.jobs.store.store import JobStore
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)


def back_off_s(settings: Settings, failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubled each time, within the settings."""
    wait_s = settings.restart_backoff_min_s * 2.0 ** min(failures - 1, 20)
    return float(min(settings.restart_backoff_max_s, wait_s))


@dataclass(slots=True)
class _Attempt:
    future: "Future[bool]"
    failures: int
    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of work in the background.

    Attributes:
        name: of the threads.
        failed: what a job shows in front of the reason.
        at_once: for so many jobs.
        doubled: how often the first wait is doubled already.
    """

    name: str
    failed: str
    at_once: int
    doubled: int = 0


class Attempts:
    """One kind of work, by job; a job shows why its own has failed."""

    def __init__(self, store: JobStore, settings: Settings, kind: WorkKind) -> None:
        self._store = store
        self._settings = settings
        self._kind = kind
        self._attempts: dict[str, _Attempt] = {}
        self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._kind.at_once, thread_name_prefix=self._kind.name)

    def begin_anew(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._new_threads()
        self._attempts.clear()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def forget(self, job_id: str) -> None:
        self._attempts.pop(job_id, None)

    def has_begun(self, job_id: str) -> bool:
        return job_id in self._attempts

    def is_done(self, job_id: str, work: Callable[[], None]) -> bool:
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
            failures = attempt.failures + 1 + self._kind.doubled
            attempt.retry_at = now + back_off_s(self._settings, failures)
        elif now >= attempt.retry_at:
            self._begin(job_id, work, failures=attempt.failures + 1)
        return False

    def _begin(self, job_id: str, work: Callable[[], None], *, failures: int) -> None:
        self._attempts[job_id] = _Attempt(self._threads.submit(self._try, job_id, work), failures)

    def _try(self, job_id: str, work: Callable[[], None]) -> bool:
        try:
            work()
        except SluiceError as exc:
            self._show(job_id, JobError(exc.fault, exc.message, exc.hint))
            return False
        except Exception as exc:  # shown to the operator and tried again later
            _log.exception(self._kind.failed, job_id=job_id)
            hint = "Look at the log of the control plane."
            self._show(job_id, JobError(type(exc).__name__, str(exc), hint))
            return False
        return True

    def _show(self, job_id: str, error: JobError) -> None:
        with suppress(SluiceError):  # the job store may be away, too
            self._store.set_reason(job_id, f"{self._kind.failed}: {error.message}", error)
