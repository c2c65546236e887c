"""The durable job store.

A method's write is durable when it returns. Every change of a job's state goes through `transition`
or `follow`, which record the transition and its cause in the same transaction.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from service.errors import JobConflictError
from service.jobs.store.catalog_store import CatalogStore
from service.jobs.store.database import StoreDatabase
from service.jobs.store.job import (
    DesiredState,
    Job,
    JobError,
    JobEvent,
    JobState,
    NewJob,
    StateUpdate,
    check_wanted,
)
from service.jobs.store.rows import (
    ATTACHMENTS,
    EVENTS,
    JOBS,
    LISTED,
    SECRETS,
    SINCE,
    JobFilter,
    StoredJobs,
    event_of,
    get_job,
    insert_job,
    job_of,
    lock_names,
    move_job,
    update_job,
)
from service.jobs.store.token_store import TokenStore
from watermark.errors import InvalidTransitionError

Found = TypeVar("Found")
_ALL_JOBS = JobFilter()


class JobStore:
    """Jobs and their events; thread-safe. Methods raise StoreError if it is unusable."""

    # reads better long: each method is one transaction over the same two tables

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._keeps_all = False
        self.tokens = TokenStore(database.reading, partial(database.writing, fenced=False))
        self.catalog = CatalogStore(database.reading, database.writing)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open or create the store at `url` and migrate its tables. Raises StoreError."""
        return cls(StoreDatabase.open(url))

    def close(self) -> None:
        self._database.close()

    def check(self) -> None:
        self._database.check()

    def fence(self, term: int | None) -> None:
        self._database.fence(term)

    def bind(self, data_dir_id: str | None) -> str | None:
        return self._database.bind(data_dir_id)

    @property
    def has_directories(self) -> bool:
        return not self._keeps_all

    def keep_all(self) -> None:
        self._keeps_all = True

    def tidy(self) -> None:
        self._database.tidy()

    def look(self, look: Callable[[StoredJobs], Found]) -> Found:
        with self._database.reading() as connection:
            return look(StoredJobs(connection))

    def add(self, new: NewJob, check: Callable[[StoredJobs], object] | None = None) -> Job:
        """Store a new job in state CREATED, desired RUNNING.

        `check` may refuse it; no job is added in between. Raises JobConflictError if its key or
        name is taken, TableConflictError if a shared table that it reads has been dropped.
        """
        try:
            with self._database.writing() as connection:
                if check is not None:
                    lock_names(connection)
                    check(StoredJobs(connection))
                insert_job(connection, new)
                return get_job(connection, new.id)
        except sa.exc.IntegrityError as exc:
            raise JobConflictError(
                f'idempotency key "{new.idempotency_key}" is taken',
                hint="Use a new key for a new job.",
            ) from exc

    def secrets(self, job_id: str) -> bytes | None:
        """The inline secrets of a job, as in its directory; None if none are stored here."""
        query = sa.select(SECRETS.c.content).where(SECRETS.c.job_id == job_id)
        with self._database.reading() as connection:
            content: bytes | None = connection.execute(query).scalar()
            return content

    def find_by_key(self, idempotency_key: str) -> tuple[Job, str] | None:
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(JOBS.c.id, JOBS.c.request_digest).where(
                    JOBS.c.idempotency_key == idempotency_key
                )
            ).first()
            return None if row is None else (get_job(connection, row.id), row.request_digest)

    def get(self, job_id: str) -> Job:
        with self._database.reading() as connection:
            return get_job(connection, job_id)

    def plans(self, job_ids: Sequence[str]) -> dict[str, bytes]:
        query = sa.select(JOBS.c.id, JOBS.c.plan).where(JOBS.c.id.in_(job_ids))
        with self._database.reading() as connection:
            return {row.id: row.plan for row in connection.execute(query)}

    def page(
        self, chosen: JobFilter = _ALL_JOBS, *, before: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Matching jobs without plan and SQL, newest first, after job `before`."""
        query = sa.select(*LISTED, SINCE).order_by(JOBS.c.id.desc()).limit(limit)
        query = query.where(*chosen.conditions())
        if before is not None:
            query = query.where(JOBS.c.id < before)
        with self._database.reading() as connection:
            return [job_of(row) for row in connection.execute(query).mappings()]

    def all_jobs(self) -> list[Job]:
        query = sa.select(*LISTED).order_by(JOBS.c.id)
        with self._database.reading() as connection:
            return [job_of(row) for row in connection.execute(query).mappings()]

    def events(self, job_id: str | None, *, after: int = 0, limit: int = 500) -> list[JobEvent]:
        """Events of a job (None: all jobs), oldest first. Raises JobNotFoundError."""
        query = sa.select(EVENTS).where(EVENTS.c.sequence > after)
        query = query.order_by(EVENTS.c.sequence).limit(limit)
        with self._database.reading() as connection:
            if job_id is not None:
                get_job(connection, job_id)
                query = query.where(EVENTS.c.job_id == job_id)
            return [event_of(row) for row in connection.execute(query).mappings()]

    def events_since(self, job_id: str, at_ms: int, *, limit: int = 500) -> list[JobEvent]:
        """The newest events of a job since `at_ms`, oldest first. Raises JobNotFoundError."""
        query = sa.select(EVENTS).where(EVENTS.c.job_id == job_id, EVENTS.c.at_ms >= at_ms)
        query = query.order_by(EVENTS.c.sequence.desc()).limit(limit)
        with self._database.reading() as connection:
            get_job(connection, job_id)
            rows = connection.execute(query).mappings().all()
        return [event_of(row) for row in reversed(rows)]

    def job_ids(self) -> frozenset[str]:
        with self._database.reading() as connection:
            return frozenset(connection.execute(sa.select(JOBS.c.id)).scalars())

    def count_by_state(self) -> dict[JobState, int]:
        query = sa.select(JOBS.c.state, sa.func.count()).group_by(JOBS.c.state)
        with self._database.reading() as connection:
            return {JobState(state): number for state, number in connection.execute(query)}

    def newest_event(self) -> int:
        with self._database.reading() as connection:
            return connection.execute(sa.select(sa.func.max(EVENTS.c.sequence))).scalar() or 0

    def want(
        self,
        job_id: str,
        desired: DesiredState,
        *,
        remove_output: bool = False,
        resume: bool = False,
    ) -> Job:
        """Store the desired state; raises as `check_wanted`, or JobNotFoundError."""
        with self._changing(job_id) as (connection, job):
            check_wanted(job, desired, resume=resume)
            if desired is DesiredState.REMOVED:
                _check_no_table(job)
            values: dict[str, Any] = {"desired_state": desired.value}
            if desired is DesiredState.REMOVED:
                values["remove_output"] = remove_output or job.remove_output
            update_job(connection, job_id, values)
            return get_job(connection, job_id)

    def transition(self, job_id: str, change: StateUpdate) -> Job:
        """Change and record the job's state; an equal state only updates the reason.

        Raises JobNotFoundError, or InvalidTransitionError if `JOB_STATES` has no such edge.
        """
        with self._changing(job_id) as (connection, job):
            move_job(connection, job, change)
            return get_job(connection, job_id)

    def follow(self, job_id: str, changes: Sequence[StateUpdate], events_offset: int) -> Job:
        """Apply `events.jsonl` up to `events_offset`, exactly once, without illegal transitions."""
        with self._changing(job_id) as (connection, job):
            for change in changes:
                try:
                    job = move_job(connection, job, change)
                except InvalidTransitionError:
                    continue
            update_job(connection, job_id, {"events_offset": events_offset})
            return get_job(connection, job_id)

    def count(self, job_id: str, *, crashes: int, restarts: int) -> None:
        with self._changing(job_id) as (connection, _):
            update_job(connection, job_id, {"crashes": crashes, "restarts": restarts})

    def change_plan(self, job_id: str, plan: bytes, sql: str) -> None:
        """Store the copy of a job's newest plan, whose file is in the job's directory."""
        with self._changing(job_id) as (connection, _):
            update_job(connection, job_id, {"plan": plan, "sql": sql})

    def set_reason(self, job_id: str, reason: str, error: JobError | None) -> None:
        with self._changing(job_id) as (connection, _):
            values = {"reason": reason, "error": None if error is None else asdict(error)}
            update_job(connection, job_id, values)

    def delete(self, job_id: str) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.delete(EVENTS).where(EVENTS.c.job_id == job_id))
            connection.execute(sa.delete(SECRETS).where(SECRETS.c.job_id == job_id))
            connection.execute(sa.delete(ATTACHMENTS).where(ATTACHMENTS.c.job_id == job_id))
            connection.execute(sa.delete(JOBS).where(JOBS.c.id == job_id))

    @contextmanager
    def _changing(self, job_id: str) -> Iterator[tuple[sa.Connection, Job]]:
        with self._database.writing() as connection:
            yield connection, get_job(connection, job_id, lock=True)


def _check_no_table(job: Job) -> None:
    if job.shared_table is None or job.desired_state is DesiredState.REMOVED:
        return
    raise JobConflictError(
        f'job "{job.id}" keeps shared table "{job.shared_table}"',
        hint=f"Drop the table, which removes its job: sluice tables rm {job.shared_table}.",
    )
