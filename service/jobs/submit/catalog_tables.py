"""Tables and views for later scripts: created, shown and dropped; nothing half-made stays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from service.config import Settings
from service.errors import StoreError, TableConflictError
from service.jobs.store.job import NewJob
from service.jobs.store.layout import JobLayout
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import Submissions, check_script
from service.sql.answers.declarations import Declared, columns_of, plan_declarations, used_by
from service.sql.stored import CatalogEntry


@dataclass(frozen=True, slots=True)
class Creation:
    """What a script has brought into the catalog.

    Attributes:
        created: names, in the order of the script.
        kept: those that were there, behind IF NOT EXISTS.
        warnings: full sentences.
    """

    created: tuple[str, ...]
    kept: tuple[str, ...]
    warnings: tuple[str, ...]


class CatalogTables:
    """Changes the catalog; what a method has done is durable when it returns."""

    def __init__(self, store: JobStore, settings: Settings, submissions: Submissions) -> None:
        self._store = store
        self._settings = settings
        self._submissions = submissions

    def create(self, sql: str) -> Creation:
        """Keep all that a script declares, or nothing.

        Raises:
            SqlError: a statement is no declaration, or cannot be kept.
            TableConflictError: there is a table or view of that name.
            SluiceError: what a shared table names cannot be used.
        """
        check_script(sql)
        entries = self._store.catalog.entries()
        declared, warnings = plan_declarations(sql, entries)
        known = {entry.name: entry for entry in entries}
        new = [one for one in declared if not self._is_kept(one, known.get(one.entry.name))]
        prepared: list[tuple[CatalogEntry, NewJob | None]] = []
        try:
            for one in new:
                prepared.append(self._prepared(one))
            self._store.catalog.add(prepared)
        except StoreError:  # they may be kept all the same; if not, the next start clears up
            raise
        except BaseException:
            for _, job in prepared:
                if job is not None:
                    JobLayout(self._settings.jobs_dir / job.id).abandon()
            raise
        texts = (*warnings, *(text for _, job in prepared if job for text in job.warnings))
        created = {entry.name for entry, _ in prepared}
        kept = tuple(one.entry.name for one in declared if one.entry.name not in created)
        return Creation(tuple(entry.name for entry, _ in prepared), kept, texts)

    def drop(self, name: str) -> None:
        """Forget a table or view; the job that keeps a shared table is removed.

        Raises:
            TableNotFoundError: there is none of this name.
            TableConflictError: jobs or views use it.
        """
        self._store.catalog.drop(name, partial(used_by, name))

    def _prepared(self, declared: Declared) -> tuple[CatalogEntry, NewJob | None]:
        if declared.plan is None:
            return declared.entry, None
        job, partitions = self._submissions.prepare_shared(declared.plan)
        return replace(declared.entry, job_id=job.id, partitions=partitions), job

    def _is_kept(self, declared: Declared, known: CatalogEntry | None) -> bool:
        """Whether what is declared is there already, as IF NOT EXISTS lets it be."""
        if known is None:
            return False
        name, what = declared.entry.name, known.kind
        again = f"Run sluice tables rm {name} first, or choose another name."
        if not declared.if_not_exists:
            raise TableConflictError(f'the catalog has a {what} "{name}" already', hint=again)
        if known.kind is not declared.entry.kind:
            raise TableConflictError(
                f'the catalog has "{name}" as a {what}, not as a {declared.entry.kind}', hint=again
            )
        differs = _difference(declared, columns_of(known))
        if differs is not None:
            raise TableConflictError(f'{what} "{name}" is there with other {differs}', hint=again)
        return True


def _difference(declared: Declared, known: tuple[Sequence[object], Sequence[str]]) -> str | None:
    fields, key = known
    if tuple(fields) != declared.fields:
        return "columns"
    return None if tuple(key) == declared.primary_key else "columns in its primary key"
