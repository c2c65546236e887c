"""Carries out the removal of jobs in the background and tries again what failed."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from joins.durable.stored import stop_storing
from service.config import Settings
from service.jobs.store.job import Job, JobError
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.jobs.supervise.hooks import Remover
from watermark.errors import SluiceError

_REMEMBERED = 1_000
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


class Removals:
    """Removals under way; a job whose removal fails keeps its row, which shows the error."""

    def __init__(self, store: JobStore, settings: Settings, remove: Remover) -> None:
        self._store = store
        self._settings = settings
        self._remove = remove
        self._attempts: dict[str, _Attempt] = {}
        self._left: dict[str, tuple[str, ...]] = {}
        self._threads = _threads()

    def begin_anew(self) -> None:
        """Forget what has been begun: another control plane may have gone on with it."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = _threads()
        self._attempts.clear()

    def close(self) -> None:
        """Wait for what is under way; the next control plane does the rest."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def left(self, job_id: str) -> tuple[str, ...]:
        """What of the outputs of a job that is gone was left and why, of the newest removals."""
        return self._left.get(job_id, ())

    def _tell(self, job_id: str, left: tuple[str, ...]) -> None:
        if left:
            self._left[job_id] = left
        while len(self._left) > _REMEMBERED:
            self._left.pop(next(iter(self._left)), None)

    def forget(self, job_id: str) -> None:
        """The job is gone."""
        self._attempts.pop(job_id, None)

    def carry_out(self, job: Job) -> None:
        """Begin, or look at, the removal of a job that has no runner any more."""
        attempt = self._attempts.get(job.id)
        if attempt is None:
            self._begin(job, failures=0)
        elif attempt.future.done() and not attempt.future.result():
            now = time.monotonic()
            if attempt.retry_at is None:
                attempt.retry_at = now + back_off_s(self._settings, attempt.failures + 2)
            elif now >= attempt.retry_at:
                self._begin(job, failures=attempt.failures + 1)

    def _begin(self, job: Job, *, failures: int) -> None:
        self._attempts[job.id] = _Attempt(self._threads.submit(self._remove_now, job), failures)

    def _remove_now(self, job: Job) -> bool:
        layout = JobLayout(self._settings.jobs_dir / job.id)
        try:
            left = self._remove(layout.job_dir, self._settings, output=job.remove_output)
            self._tell(job.id, left)
            layout.discard()
            stop_storing(layout.job_dir)
            self._store.delete(job.id)
        except SluiceError as exc:
            self._show(job, JobError(type(exc).__name__, exc.message, exc.hint))
            return False
        except Exception as exc:  # shown to the operator and tried again later
            _log.exception("job cannot be removed", job_id=job.id)
            hint = "Look at the log of the control plane."
            self._show(job, JobError(type(exc).__name__, str(exc), hint))
            return False
        _log.info("job removed", job_id=job.id, output=job.remove_output, left=left)
        return True

    def _show(self, job: Job, error: JobError) -> None:
        self._store.set_reason(job.id, f"removal failed: {error.message}", error)


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="removal")
