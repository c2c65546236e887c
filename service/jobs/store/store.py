"""The durable job store, with the catalog of tables and views.

A method's write is durable when it returns. Every change of a job's state goes through `transition`
or `follow`, which record the transition and its cause in the same transaction.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from service.errors import JobConflictError, TableConflictError, TableNotFoundError
from service.jobs.store.database import StoreDatabase
from service.jobs.store.job import (
    REMOVAL_FAILED,
    DesiredState,
    Job,
    JobError,
    JobEvent,
    NewJob,
    StateUpdate,
    check_wanted,
    now_ms,
)
from service.jobs.store.rows import (
    ATTACHMENTS,
    CATALOG,
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
from service.sql.stored import CatalogEntry, EntryKind
from watermark.errors import InvalidTransitionError

_Connections = Callable[[], AbstractContextManager[sa.Connection]]
_SHOWN = 5


class CatalogStore:
    """The catalog of a job store; safe for several threads and processes."""

    def __init__(self, reading: _Connections, writing: _Connections) -> None:
        self._reading = reading
        self._writing = writing

    def entries(self) -> tuple[CatalogEntry, ...]:
        with self._reading() as connection:
            return _all(connection)

    def get(self, name: str) -> CatalogEntry:
        with self._reading() as connection:
            return _get(connection, name)

    def add(self, declared: Sequence[tuple[CatalogEntry, NewJob | None]]) -> None:
        """Store entries and the jobs of shared tables, all or none. Raises TableConflictError."""
        try:
            with self._writing() as connection:
                last = connection.execute(sa.select(sa.func.max(CATALOG.c.number))).scalar() or 0
                for number, (entry, job) in enumerate(declared, start=last + 1):
                    connection.execute(sa.insert(CATALOG).values(_row(entry, number)))
                    if job is not None:
                        insert_job(connection, job)
        except sa.exc.IntegrityError as exc:
            stored = {entry.name for entry in self.entries()}
            taken = [f'"{entry.name}"' for entry, _ in declared if entry.name in stored]
            more = f" and {len(taken) - _SHOWN} more" if len(taken) > _SHOWN else ""
            raise TableConflictError(
                "another script has created a table of this one at the same time: "
                f"{', '.join(taken[:_SHOWN]) or 'it is dropped again'}{more}",
                hint="Look at the tables with sluice tables ls, and create what is missing.",
            ) from exc

    def drop(self, name: str, views: Callable[[Sequence[CatalogEntry]], Sequence[str]]) -> None:
        """Delete an entry and remove the job of a shared table.

        `views` returns the views among all entries that use it. Raises TableNotFoundError, or
        TableConflictError if jobs or views use it.
        """
        with self._writing() as connection:
            entry = _get(connection, name, lock=True)
            used = views(_all(connection))
            if used:
                shown = ", ".join(used[:_SHOWN])
                raise TableConflictError(
                    f'{entry.kind} "{name}" is used by {shown} of the catalog',
                    hint=f"Drop what uses it first: sluice tables rm {used[0]}.",
                )
            if entry.job_id is not None:
                _check_unused(connection, entry, entry.job_id)
                removed = {"desired_state": DesiredState.REMOVED.value, "remove_output": False}
                update_job(connection, entry.job_id, removed)
            connection.execute(sa.delete(CATALOG).where(CATALOG.c.name == name))

    def attached(self, job_id: str) -> tuple[tuple[str, str], ...]:
        with self._reading() as connection:
            return _attached(connection, job_id)


def _check_unused(connection: sa.Connection, entry: CatalogEntry, job_id: str) -> None:
    jobs = _attached(connection, job_id)
    if not jobs:
        return
    shown = ", ".join(f'{one} "{job_name}"' for one, job_name in jobs[:_SHOWN])
    more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
    raise TableConflictError(
        f'shared table "{entry.name}" is read by {len(jobs)} jobs: {shown}{more}',
        hint=f"Remove these jobs first (sluice jobs rm {jobs[0][0]}), then the table.",
    )


def _attached(connection: sa.Connection, job_id: str) -> tuple[tuple[str, str], ...]:
    query = sa.select(JOBS.c.id, JOBS.c.name).join(ATTACHMENTS, ATTACHMENTS.c.job_id == JOBS.c.id)
    query = query.where(ATTACHMENTS.c.table_job_id == job_id).order_by(JOBS.c.id)
    return tuple((row.id, row.name) for row in connection.execute(query))


def _all(connection: sa.Connection) -> tuple[CatalogEntry, ...]:
    rows = connection.execute(sa.select(CATALOG).order_by(CATALOG.c.number)).mappings()
    return tuple(_entry(row) for row in rows)


def _get(connection: sa.Connection, name: str, *, lock: bool = False) -> CatalogEntry:
    query = sa.select(CATALOG).where(CATALOG.c.name == name)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise TableNotFoundError(
            f'the catalog has no table or view "{name[:100]}"',
            hint="Run sluice tables ls to see what there is.",
        )
    return _entry(row)


def _entry(row: sa.RowMapping) -> CatalogEntry:
    known = {column: value for column, value in row.items() if column != "number"}
    return CatalogEntry(**{**known, "kind": EntryKind(row["kind"])})


def _row(entry: CatalogEntry, number: int) -> dict[str, object]:
    return {
        "name": entry.name,
        "number": number,
        "kind": entry.kind.value,
        "sql": entry.sql,
        "job_id": entry.job_id,
        "partitions": entry.partitions,
        "created_at_ms": now_ms(),
    }


class EventStore:
    """The recorded transitions of the jobs; thread-safe."""

    def __init__(self, reading: _Connections) -> None:
        self._reading = reading

    def after(self, after: int, job_id: str | None = None, *, limit: int = 500) -> list[JobEvent]:
        """Events of all jobs or of one, oldest first. Raises JobNotFoundError."""
        query = sa.select(EVENTS).where(EVENTS.c.sequence > after)
        query = query.order_by(EVENTS.c.sequence).limit(limit)
        with self._reading() as connection:
            if job_id is not None:
                get_job(connection, job_id)
                query = query.where(EVENTS.c.job_id == job_id)
            return [event_of(row) for row in connection.execute(query).mappings()]

    def since(self, job_id: str, at_ms: int, *, limit: int = 500) -> list[JobEvent]:
        """The newest events of a job since `at_ms`, oldest first. Raises JobNotFoundError."""
        query = sa.select(EVENTS).where(EVENTS.c.job_id == job_id, EVENTS.c.at_ms >= at_ms)
        query = query.order_by(EVENTS.c.sequence.desc()).limit(limit)
        with self._reading() as connection:
            get_job(connection, job_id)
            rows = connection.execute(query).mappings().all()
        return [event_of(row) for row in reversed(rows)]

    def newest(self) -> int:
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.max(EVENTS.c.sequence))).scalar() or 0


Found = TypeVar("Found")
_ALL_JOBS = JobFilter()


class JobStore:
    """Jobs and their events; thread-safe. Methods raise StoreError if it is unusable."""

    # reads better long: each method is one transaction over the same two tables

    def __init__(self, database: StoreDatabase) -> None:
        self.database = database
        self.has_directories = True  # of the jobs; False if the store has their secrets, too
        self.tokens = TokenStore(database.reading, partial(database.writing, fenced=False))
        self.catalog = CatalogStore(database.reading, database.writing)
        self.events = EventStore(database.reading)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open or create the store at `url` and migrate its tables. Raises StoreError."""
        return cls(StoreDatabase.open(url))

    def close(self) -> None:
        self.database.close()

    def look(self, look: Callable[[StoredJobs], Found]) -> Found:
        with self.database.reading() as connection:
            return look(StoredJobs(connection))

    def add(self, new: NewJob, check: Callable[[StoredJobs], object] | None = None) -> Job:
        """Store a new job in state CREATED, desired RUNNING.

        `check` may refuse it; no job is added in between. Raises JobConflictError if its key or
        name is taken, TableConflictError if a shared table that it reads has been dropped.
        """
        try:
            with self.database.writing() as connection:
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
        with self.database.reading() as connection:
            content: bytes | None = connection.execute(query).scalar()
            return content

    def get(self, job_id: str) -> Job:
        with self.database.reading() as connection:
            return get_job(connection, job_id)

    def page(
        self, chosen: JobFilter = _ALL_JOBS, *, before: str | None = None, limit: int = 100
    ) -> list[Job]:
        """Matching jobs without plan and SQL, newest first, after job `before`."""
        query = sa.select(*LISTED, SINCE).order_by(JOBS.c.id.desc()).limit(limit)
        query = query.where(*chosen.conditions())
        if before is not None:
            query = query.where(JOBS.c.id < before)
        with self.database.reading() as connection:
            return [job_of(row) for row in connection.execute(query).mappings()]

    def all_jobs(self) -> list[Job]:
        query = sa.select(*LISTED).order_by(JOBS.c.id)
        with self.database.reading() as connection:
            return [job_of(row) for row in connection.execute(query).mappings()]

    def want(
        self,
        job_id: str,
        desired: DesiredState,
        *,
        by: str | None = None,
        remove_output: bool = False,
        resume: bool = False,
    ) -> Job:
        """Store the desired state and who asked; raises as `check_wanted`, or JobNotFoundError."""
        with self._changing(job_id) as (connection, job):
            check_wanted(job, desired, resume=resume)
            if desired is DesiredState.REMOVED:
                _check_no_table(job)
            values: dict[str, Any] = {"desired_state": desired.value}
            if desired is not job.desired_state:
                values["desired_by"] = by
                if desired is DesiredState.RUNNING:
                    values["crashes"] = 0  # who starts a job has seen to why it crashed
            if desired is DesiredState.REMOVED:
                values["remove_output"] = remove_output or job.remove_output
                if job.reason.startswith(REMOVAL_FAILED):  # it is tried again now
                    values |= {"reason": "the job is removed", "error": None}
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
        with self.database.writing() as connection:
            connection.execute(sa.delete(EVENTS).where(EVENTS.c.job_id == job_id))
            connection.execute(sa.delete(SECRETS).where(SECRETS.c.job_id == job_id))
            connection.execute(sa.delete(ATTACHMENTS).where(ATTACHMENTS.c.job_id == job_id))
            connection.execute(sa.delete(JOBS).where(JOBS.c.id == job_id))

    @contextmanager
    def _changing(self, job_id: str) -> Iterator[tuple[sa.Connection, Job]]:
        with self.database.writing() as connection:
            yield connection, get_job(connection, job_id, lock=True)


def _check_no_table(job: Job) -> None:
    if job.shared_table is None or job.desired_state is DesiredState.REMOVED:
        return
    raise JobConflictError(
        f'job "{job.id}" keeps shared table "{job.shared_table}"',
        hint=f"Drop the table, which removes its job: sluice tables rm {job.shared_table}.",
    )
