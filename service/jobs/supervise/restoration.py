"""Makes directories of jobs like the store of their files, where each machine has its own.

A control plane that takes over does so for each job before it looks at it (ADR-0095).
"""

from collections.abc import Callable

import structlog

from joins.durable.stored_directory import restore
from joins.plan.errors import CheckpointError
from service.config import Settings
from service.jobs.store.events import begin_events
from service.jobs.store.job import DesiredState, Job, JobState
from service.jobs.store.layout import JobLayout, write_private
from service.jobs.store.store import JobStore
from service.jobs.supervise.attempts import Attempts, WorkKind

_KIND = WorkKind("restoration", "files cannot be restored", at_once=4)
_log = structlog.get_logger(__name__)


class Restorations:
    """Restorations under way; one that fails is tried again, and its job shows the error.

    Args:
        done: is called after each.
    """

    def __init__(self, store: JobStore, settings: Settings, done: Callable[[], None]) -> None:
        self._store = store
        self._settings = settings
        self._done = done
        self._attempts = Attempts(store, settings, _KIND)

    def begin_anew(self) -> None:
        self._attempts.begin_anew()

    def close(self) -> None:
        self._attempts.close()

    def has(self, job: Job) -> bool:
        """Whether the job's directory may be looked at; if not yet, it is seen to."""
        if self._store.has_directories:
            return True
        is_new = job.state is JobState.CREATED and not self._attempts.has_begun(job.id)
        if is_new and self._layout(job).plan.exists():
            return True  # it was submitted here and has no other file yet
        return self._attempts.is_done(job.id, lambda: self._try(job))

    def _layout(self, job: Job) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job.id)

    def _try(self, job: Job) -> None:
        try:
            self._restore(job)
        finally:
            self._done()

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
