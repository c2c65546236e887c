"""Makes directories of jobs like the store of their files, where each machine has its own.

A control plane that takes over does so for each job before it looks at it (ADR-0095).
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import structlog

from joins.durable.stored_directory import restore
from joins.plan.errors import CheckpointError
from service.config import Settings
from service.jobs.store.events import begin_events
from service.jobs.store.job import DesiredState, Job, JobError, JobState
from service.jobs.store.layout import JobLayout, write_private
from service.jobs.store.store import JobStore
from service.jobs.supervise.removal import back_off_s
from watermark.errors import SluiceError

_AT_ONCE = 4
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Restoring:
    future: "Future[bool]"
    failures: int
    retry_at: float | None = None


class Restorations:
    """Restorations under way; one that fails is tried again, and its job shows the error.

    Args:
        done: is called after each.
    """

    def __init__(self, store: JobStore, settings: Settings, done: Callable[[], None]) -> None:
        self._store = store
        self._settings = settings
        self._done = done
        self._attempts: dict[str, _Restoring] = {}
        self._threads = _threads()

    def begin_anew(self) -> None:
        """Forget what was restored: another control plane may have led since."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = _threads()
        self._attempts.clear()

    def close(self) -> None:
        """Wait for what is under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def has(self, job: Job) -> bool:
        """Whether the job's directory may be looked at; if not yet, it is seen to."""
        if self._store.has_directories:
            return True
        attempt = self._attempts.get(job.id)
        if attempt is None:
            if job.state is JobState.CREATED and self._layout(job).plan.exists():
                return True  # it was submitted here and has no other file yet
            self._begin(job, failures=0)
            return False
        if not attempt.future.done():
            return False
        if attempt.future.result():
            return True
        now = time.monotonic()
        if attempt.retry_at is None:
            attempt.retry_at = now + back_off_s(self._settings, attempt.failures + 1)
        elif now >= attempt.retry_at:
            self._begin(job, failures=attempt.failures + 1)
        return False

    def _layout(self, job: Job) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job.id)

    def _begin(self, job: Job, *, failures: int) -> None:
        self._attempts[job.id] = _Restoring(self._threads.submit(self._try, job), failures)

    def _try(self, job: Job) -> bool:
        try:
            self._restore(job)
        except SluiceError as exc:
            self._show(job, JobError(exc.fault, exc.message, exc.hint))
            return False
        except Exception as exc:  # shown to the operator and tried again later
            _log.exception("job cannot be restored", job_id=job.id)
            hint = "Look at the log of the control plane."
            self._show(job, JobError(type(exc).__name__, str(exc), hint))
            return False
        finally:
            self._done()
        return True

    def _restore(self, job: Job) -> None:
        layout = self._layout(job)
        assert self._settings.warehouse is not None, "the job store is bound to it"
        layout.make_room(self._settings.warehouse)
        files = layout.stored()
        assert files is not None, "its warehouse is noted"
        if restore(files):
            for stale in (layout.status, layout.runner_pid):  # of a runner before the newest one
                stale.unlink(missing_ok=True)
        if not layout.plan.exists() and job.desired_state is not DesiredState.REMOVED:
            raise CheckpointError(
                f'job "{job.id}" has no plan in "{files.place}"',
                hint="Its files were removed from the store; restore them, or remove the job.",
            )
        secrets = self._store.secrets(job.id)
        if secrets is not None and not layout.secrets.exists():
            write_private(layout.secrets, secrets)
        begin_events(layout.job_dir, job.events_offset)
        _log.info("job restored", job_id=job.id)

    def _show(self, job: Job, error: JobError) -> None:
        with suppress(SluiceError):  # the job store may be away, too
            self._store.set_reason(job.id, f"files cannot be restored: {error.message}", error)


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="restoration")
