"""Background work on jobs, with retries: their removal, and restoring their files (ADR-0095).

The supervisor asks at each look at a job whether a kind of work on it is done, which starts the
work when it is due. Work in a state of `_AttemptState`:

    WAITING  due at `retry_at`: at once, or after a back-off if it failed, and the job shows why
    RUNNING  a thread has it
    DONE     it succeeded, or is not needed; it is not repeated until `forget` or `reset`
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

import structlog

from joins.durable.stored import stop_storing
from joins.durable.stored_directory import restore
from joins.plan.errors import CheckpointError
from service.config import Settings
from service.jobs.store.job import REMOVAL_FAILED, DesiredState, Job, JobError, JobState
from service.jobs.store.layout import JobLayout, write_private
from service.jobs.store.plan_copy import note_newest
from service.jobs.store.runner_files import begin_events
from service.jobs.store.store import JobStore
from service.jobs.supervise.hooks import Remover
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)


def back_off_s(settings: Settings, failures: int) -> float:
    """Seconds to wait after `failures` in a row: doubled each time, within the settings."""
    wait_s = settings.restart_backoff_min_s * 2.0 ** min(failures - 1, 20)
    return float(min(settings.restart_backoff_max_s, wait_s))


class _AttemptState(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


@dataclass(slots=True)
class _Attempt:
    state: _AttemptState = _AttemptState.WAITING
    retry_at: float = 0.0  # monotonic
    failures: int = 0  # in a row


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of background work."""

    name: str
    failed: str  # prefix of the reason that a job shows
    at_once: int  # jobs at the same time
    doubled: int = 0  # how often the first back-off is doubled already


class Attempts:
    """The work of one kind, by job. The supervisor's thread calls it, `hurry` any thread."""

    def __init__(self, store: JobStore, settings: Settings, kind: WorkKind) -> None:
        self._store = store
        self._settings = settings
        self._kind = kind
        self._attempts: dict[str, _Attempt] = {}
        self._threads = self._new_threads()

    def _new_threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._kind.at_once, thread_name_prefix=self._kind.name)

    def reset(self) -> None:
        """Forget all work; what runs ends without an effect on later work."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = self._new_threads()
        self._attempts.clear()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def forget(self, job_id: str) -> None:
        self._attempts.pop(job_id, None)

    def hurry(self, job_id: str) -> None:
        """Do not wait before the next attempt."""
        attempt = self._attempts.get(job_id)
        if attempt is not None:
            attempt.retry_at = 0.0

    def is_done(self, job_id: str, work: Callable[[], None]) -> bool:
        """True if the work has succeeded; starts `work` when due."""
        attempt = self._attempts.setdefault(job_id, _Attempt())
        if attempt.state is _AttemptState.WAITING and time.monotonic() >= attempt.retry_at:
            attempt.state = _AttemptState.RUNNING
            try:
                self._threads.submit(self._try, job_id, attempt, work)
            except RuntimeError:  # the machine has no more threads now
                attempt.state = _AttemptState.WAITING
                raise
        return attempt.state is _AttemptState.DONE

    def _try(self, job_id: str, attempt: _Attempt, work: Callable[[], None]) -> None:
        try:
            work()
            attempt.state = _AttemptState.DONE
        except SluiceError as exc:
            self._show(job_id, JobError(exc.fault, exc.message, exc.hint))
        except Exception as exc:  # shown to the operator and retried later
            _log.exception(self._kind.failed, job_id=job_id)
            hint = "Look at the log of the control plane."
            self._show(job_id, JobError(type(exc).__name__, str(exc), hint))
        finally:
            if attempt.state is not _AttemptState.DONE:
                attempt.failures += 1
                wait_s = back_off_s(self._settings, attempt.failures + self._kind.doubled)
                attempt.retry_at = time.monotonic() + wait_s
                attempt.state = _AttemptState.WAITING

    def _show(self, job_id: str, error: JobError) -> None:
        with suppress(SluiceError):  # the job store may be unreachable, too
            self._store.set_reason(job_id, f"{self._kind.failed}: {error.message}", error)


_REMOVAL = WorkKind("removal", REMOVAL_FAILED, at_once=2, doubled=1)
_REMEMBERED = 1_000  # removals


class Removals(Attempts):
    """Removals of jobs; a job whose removal fails keeps its row, which shows the error."""

    def __init__(self, store: JobStore, settings: Settings, remove: Remover) -> None:
        super().__init__(store, settings, _REMOVAL)
        self._remove = remove
        self._left: dict[str, tuple[str, ...]] = {}

    def left(self, job_id: str) -> tuple[str, ...]:
        """Outputs that the removal has left, and why; empty before it ends."""
        return self._left.get(job_id, ())

    def carry_out(self, job: Job) -> None:
        self.is_done(job.id, lambda: self._remove_now(job))

    def _remove_now(self, job: Job) -> None:
        layout = JobLayout(self._settings.jobs_dir / job.id)
        left = self._remove(layout.job_dir, self._settings, output=job.remove_output)
        if left:
            self._left[job.id] = left
        while len(self._left) > _REMEMBERED:
            self._left.pop(next(iter(self._left)), None)
        layout.discard()
        stop_storing(layout.job_dir)
        self._store.delete(job.id)
        _log.info("job removed", job_id=job.id, output=job.remove_output, left=left)


_RESTORATION = WorkKind("restoration", "files cannot be restored", at_once=4)


class Restorations(Attempts):
    """Restorations of jobs' directories from a store; `done` is called after each attempt.

    None is needed where the job store has the directories, nor of a job that was submitted here.
    """

    def __init__(self, store: JobStore, settings: Settings, done: Callable[[], None]) -> None:
        super().__init__(store, settings, _RESTORATION)
        self._done = done

    def has(self, job: Job) -> bool:
        """True if the job's directory is complete; starts its restoration if not."""
        if self._store.has_directories:
            return True
        is_new = job.state is JobState.CREATED and job.id not in self._attempts
        if is_new and self._layout(job).plan.exists():
            # it was submitted here and has no other file yet
            self._attempts[job.id] = _Attempt(_AttemptState.DONE)
        return self.is_done(job.id, lambda: self._restored(job))

    def _show(self, job_id: str, error: JobError) -> None:
        """Show it unless the job rests: what such a job shows would not come back."""
        with suppress(SluiceError):
            desired = self._store.get(job_id).desired_state
            if desired in (DesiredState.RUNNING, DesiredState.REMOVED):
                super()._show(job_id, error)
                return
        _log.warning(self._kind.failed, job_id=job_id, error=error.message)

    def _layout(self, job: Job) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job.id)

    def _restored(self, job: Job) -> None:
        try:
            self._restore(job)
        finally:
            self._done()

    def _restore(self, job: Job) -> None:
        layout = self._layout(job)
        assert self._settings.warehouse is not None, "the job store is bound to it"
        layout.make_room(self._settings.warehouse)
        secrets = self._store.secrets(job.id)
        if secrets is not None and not layout.secrets.exists():
            write_private(layout.secrets, secrets)  # before the plan, which `has` looks for
        files = layout.stored()
        assert files is not None, "its warehouse is noted"
        if restore(files):
            for stale in (layout.status, layout.runner_pid, layout.events):  # of an earlier runner
                stale.unlink(missing_ok=True)
        if not layout.plan.exists() and job.desired_state is not DesiredState.REMOVED:
            raise CheckpointError(
                f'job "{job.id}" has no plan in "{files.place}"',
                hint="Its files were removed from the store; restore them, or remove the job.",
            )
        begin_events(layout.job_dir, job.events_offset)
        note_newest(self._store, layout)
        _log.info("job restored", job_id=job.id)
