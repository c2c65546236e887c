"""Background work on jobs: removals, restorations (ADR-0095), and comparisons of their tables."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import structlog

from joins.durable.stored import stop_storing
from joins.durable.stored_directory import restore
from joins.plan.errors import CheckpointError
from joins.plan.plan import Dimension
from service.config import Settings
from service.jobs.inspect.inspector import Inspector
from service.jobs.store.job import REMOVAL_FAILED, DesiredState, Job, JobError, JobState
from service.jobs.store.layout import JobLayout, write_private
from service.jobs.store.plan_copy import note_newest
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import begin_events, read_verifications
from service.jobs.store.store import JobStore
from service.jobs.supervise.hooks import Remover
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)


def back_off_s(settings: Settings, failures: int) -> float:
    """Seconds to wait after `failures` in a row: doubled each time, within the settings."""
    wait_s = settings.restart_backoff_min_s * 2.0 ** min(failures - 1, 20)
    return float(min(settings.restart_backoff_max_s, wait_s))


@dataclass(slots=True)
class _Attempt:
    future: "Future[bool]"
    failures: int
    retry_at: float | None = None


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of background work."""

    name: str
    failed: str  # prefix of the reason that a job shows
    at_once: int  # jobs at the same time
    doubled: int = 0  # how often the first wait is doubled already


class Attempts:
    """One kind of work, by job; a job shows why its work failed."""

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

    def hurry(self, job_id: str) -> None:
        """Do not wait before the next attempt."""
        attempt = self._attempts.get(job_id)
        if attempt is not None and attempt.future.done():
            attempt.retry_at = 0.0

    def skip(self, job_id: str) -> None:
        """Count the work as done."""
        done: Future[bool] = Future()
        done.set_result(True)
        self._attempts[job_id] = _Attempt(done, failures=0)

    def is_done(self, job_id: str, work: Callable[[], None]) -> bool:
        """True if the work has succeeded; starts `work` when due."""
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
        except Exception as exc:  # shown to the operator and retried later
            _log.exception(self._kind.failed, job_id=job_id)
            hint = "Look at the log of the control plane."
            self._show(job_id, JobError(type(exc).__name__, str(exc), hint))
            return False
        return True

    def _show(self, job_id: str, error: JobError) -> None:
        with suppress(SluiceError):  # the job store may be unreachable, too
            self._store.set_reason(job_id, f"{self._kind.failed}: {error.message}", error)


_REMOVAL = WorkKind("removal", REMOVAL_FAILED, at_once=2, doubled=1)
_REMEMBERED = 1_000


class Removals(Attempts):
    """Running removals; a job whose removal fails keeps its row, which shows the error."""

    def __init__(self, store: JobStore, settings: Settings, remove: Remover) -> None:
        super().__init__(store, settings, _REMOVAL)
        self._remove = remove
        self._left: dict[str, tuple[str, ...]] = {}

    def left(self, job_id: str) -> tuple[str, ...]:
        return self._left.get(job_id, ())

    def _tell(self, job_id: str, left: tuple[str, ...]) -> None:
        if left:
            self._left[job_id] = left
        while len(self._left) > _REMEMBERED:
            self._left.pop(next(iter(self._left)), None)

    def carry_out(self, job: Job) -> None:
        self.is_done(job.id, lambda: self._remove_now(job))

    def _remove_now(self, job: Job) -> None:
        layout = JobLayout(self._settings.jobs_dir / job.id)
        left = self._remove(layout.job_dir, self._settings, output=job.remove_output)
        self._tell(job.id, left)
        layout.discard()
        stop_storing(layout.job_dir)
        self._store.delete(job.id)
        _log.info("job removed", job_id=job.id, output=job.remove_output, left=left)


_WORKING = (DesiredState.RUNNING, DesiredState.REMOVED)
_RESTORATION = WorkKind("restoration", "files cannot be restored", at_once=4)


class Restorations(Attempts):
    """Running restorations with retries; a job shows their error. `done` is called after each."""

    def __init__(self, store: JobStore, settings: Settings, done: Callable[[], None]) -> None:
        super().__init__(store, settings, _RESTORATION)
        self._done = done

    def has(self, job: Job) -> bool:
        """True if the job's directory is complete; starts its restoration if not."""
        if self._store.has_directories:
            return True
        is_new = job.state is JobState.CREATED and not self.has_begun(job.id)
        if is_new and self._layout(job).plan.exists():
            self.skip(job.id)  # it was submitted here and has no other file yet
        return self.is_done(job.id, lambda: self._restored(job))

    def _show(self, job_id: str, error: JobError) -> None:
        """Show it unless the job rests: what such a job shows would not come back."""
        with suppress(SluiceError):
            if self._store.get(job_id).desired_state in _WORKING:
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


_LOOK_S = 1.0
_REFRESH_S = 10.0
_RETRY_S = 600.0


class VerificationSchedule:
    """One thread, one comparison at a time; while another control plane leads it does nothing.

    A comparison is due one interval after the last one, or after the job's submission. One that
    fails is tried again after an interval, ten minutes at the latest; the log has the reason. Jobs
    are listed again after a transition of one, and every ten seconds, when plans may be newer.
    """

    def __init__(
        self,
        store: JobStore,
        layout: Callable[[str], JobLayout],
        inspector: Inspector,
        leads: Callable[[], bool],
    ) -> None:
        self._store = store
        self._layout = layout
        self._inspector = inspector
        self._leads = leads
        self._newest_event = -1
        self._listed_at_s = 0.0
        self._tables: dict[tuple[str, int], list[tuple[Job, Dimension]] | None] = {}
        self._tried_at_s: dict[tuple[str, str], float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verifications", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._inspector.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            try:
                due = self.next_due() if self._leads() else None
                if due is not None:
                    self._compare(*due)
            except SluiceError as exc:
                _log.warning("tables were not compared", error=exc.message)
            except Exception:  # without this thread no table would be compared any more
                _log.exception("tables were not compared")

    def next_due(self) -> tuple[Job, Dimension] | None:
        """The table whose comparison is longest overdue; None if none is due."""
        newest, now_s = self._store.events.newest(), time.monotonic()
        if newest != self._newest_event or now_s >= self._listed_at_s + _REFRESH_S:
            jobs = [job for job in self._store.all_jobs() if job.state is JobState.JOINING]
            # a job that is restored now has no plan yet
            here = [job for job in jobs if self._layout(job.id).plan.exists()]
            plans = [(job, JobPlans(self._layout(job.id)).newest_number) for job in here]
            self._tables = {(job.id, number): self._tables_of(job, number) for job, number in plans}
            self._newest_event, self._listed_at_s = newest, now_s
        tables = [table for of_job in self._tables.values() for table in of_job or ()]
        due = max(tables, key=lambda table: self._overdue_s(*table), default=None)
        return due if due is not None and self._overdue_s(*due) >= 0 else None

    def _tables_of(self, job: Job, number: int) -> list[tuple[Job, Dimension]] | None:
        """None if the plan cannot be read now, which is logged once."""
        known = self._tables.get((job.id, number))
        if known is not None:
            return known
        try:
            plan = JobPlans(self._layout(job.id)).read(number)
        except (SluiceError, OSError) as exc:  # tables of other jobs are compared all the same
            if (job.id, number) not in self._tables:
                _log.warning("plan of a job cannot be read", job_id=job.id, error=str(exc))
            return None
        return [(job, table) for table in plan.dimensions if table.verify is not None]

    def _overdue_s(self, job: Job, dimension: Dimension) -> float:
        assert dimension.verify is not None
        interval_s = dimension.verify.interval_ms / 1000
        newest = read_verifications(self._layout(job.id).job_dir).get(dimension.name)
        last_ms = job.created_at_ms if newest is None else newest["ended_at_ms"]
        # in either direction: the clock may have been ahead then
        late_s = abs(time.time() - last_ms / 1000) - interval_s
        tried_at_s = self._tried_at_s.get((job.id, dimension.name))
        if tried_at_s is None:
            return late_s
        return min(late_s, time.monotonic() - tried_at_s - min(interval_s, _RETRY_S))

    def _compare(self, job: Job, dimension: Dimension) -> None:
        schedule, name = dimension.verify, dimension.name
        assert schedule is not None
        self._tried_at_s[job.id, name] = time.monotonic()
        answer = self._inspector.ask(
            self._layout(job.id).job_dir,
            ["verify"],
            timeout_s=max(_RETRY_S, schedule.interval_ms / 1000),
            question={"table": name, "rows_per_s": schedule.rows_per_s},
        )
        (table,) = answer["tables"]
        result = {key: table.get(key) for key in ("state", "rows", "differences", "reason")}
        _log.info("table compared with its source", job_id=job.id, table=name, **result)
