"""Carries out the removal of jobs in the background and tries again what failed."""

import structlog

from joins.durable.stored import stop_storing
from service.config import Settings
from service.jobs.store.job import Job
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.jobs.supervise.attempts import Attempts, WorkKind
from service.jobs.supervise.hooks import Remover

_KIND = WorkKind("removal", "removal failed", at_once=2, doubled=1)
_REMEMBERED = 1_000
_log = structlog.get_logger(__name__)


class Removals:
    """Removals under way; a job whose removal fails keeps its row, which shows the error."""

    def __init__(self, store: JobStore, settings: Settings, remove: Remover) -> None:
        self._store = store
        self._settings = settings
        self._remove = remove
        self._attempts = Attempts(store, settings, _KIND)
        self._left: dict[str, tuple[str, ...]] = {}

    def begin_anew(self) -> None:
        self._attempts.begin_anew()

    def close(self) -> None:
        self._attempts.close()

    def left(self, job_id: str) -> tuple[str, ...]:
        return self._left.get(job_id, ())

    def _tell(self, job_id: str, left: tuple[str, ...]) -> None:
        if left:
            self._left[job_id] = left
        while len(self._left) > _REMEMBERED:
            self._left.pop(next(iter(self._left)), None)

    def forget(self, job_id: str) -> None:
        self._attempts.forget(job_id)

    def carry_out(self, job: Job) -> None:
        self._attempts.is_done(job.id, lambda: self._remove_now(job))

    def _remove_now(self, job: Job) -> None:
        layout = JobLayout(self._settings.jobs_dir / job.id)
        left = self._remove(layout.job_dir, self._settings, output=job.remove_output)
        self._tell(job.id, left)
        layout.discard()
        stop_storing(layout.job_dir)
        self._store.delete(job.id)
        _log.info("job removed", job_id=job.id, output=job.remove_output, left=left)
