"""The catalog in the job store: tables and views for later scripts, readers of shared tables.

A job is stored with its attachments in one transaction; a drop checks them in its transaction.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa

from service.errors import TableConflictError, TableNotFoundError
from service.jobs.store.job import DesiredState, NewJob
from service.jobs.store.rows import ATTACHMENTS, CATALOG, JOBS, insert_job, now_ms, update_job
from service.sql.stored import CatalogEntry, EntryKind

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
            names = ", ".join(f'"{entry.name}"' for entry, _ in declared[:_SHOWN])
            raise TableConflictError(
                f"one of {names} was created by somebody else at the same time",
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
