"""Compares copies of tables with their sources, by the interval that their plan declares."""

import threading
import time
from collections.abc import Callable

import structlog

from joins.plan.plan import Dimension
from service.jobs.inspect.inspector import Inspector
from service.jobs.store.job import Job, JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import read_verifications
from service.jobs.store.store import JobStore
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)
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
        # (job, number of its plan) → tables with an interval; None if the plan cannot be read
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
            jobs = [job for job in jobs if self._layout(job.id).plan.exists()]
            plans = [(job, JobPlans(self._layout(job.id)).newest_number) for job in jobs]
            self._tables = {(job.id, number): self._tables_of(job, number) for job, number in plans}
            self._newest_event, self._listed_at_s = newest, now_s
        tables = [table for of_job in self._tables.values() for table in of_job or ()]
        due = max(tables, key=lambda table: self._overdue_s(*table), default=None)
        return due if due is not None and self._overdue_s(*due) >= 0 else None

    def _tables_of(self, job: Job, number: int) -> list[tuple[Job, Dimension]] | None:
        """As in `_tables`; a plan that cannot be read is logged once."""
        tables = self._tables.get((job.id, number))
        if tables is not None:
            return tables
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
        # the clock may have been ahead at the last comparison
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
