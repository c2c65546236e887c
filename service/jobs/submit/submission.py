"""From a script to a stored job, or to tables and views of the catalog; all or nothing."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from joins.adapters.network import within
from joins.kernels.local_files import OwnDirectory
from joins.plan.plan import DimensionSource, JoinPlan, TableStream
from service.config import Settings
from service.errors import JobConflictError, StoreError, SubmissionError, TableConflictError
from service.jobs.store.job import Job, NewJob, new_job_id
from service.jobs.store.layout import JobLayout, write_new
from service.jobs.store.store import JobStore
from service.jobs.submit.places import TakenOutputs, is_preview
from service.jobs.supervise.hooks import Hooks, Seats
from service.security.secrets import SecretResolver, write_secrets
from service.sql.answers.answers import Declared, columns_of, plan_declarations, used_by
from service.sql.answers.findings import Migration, findings, migrate
from service.sql.planner.planner import PlannedScript
from service.sql.stored import CatalogEntry
from service.sql.text.script import SqlError

SQL_LIMIT_BYTES = 64 * 1024
_MOST_OUTSIDE = 16
_MOST_WAITING = 8  # leaves a third of the request threads free
_PATIENCE_S = 5.0
_Source = TypeVar("_Source", bound=DimensionSource)


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """A submission as received; with `append` it may write to another job's output."""

    sql: str
    name: str | None = None
    idempotency_key: str | None = None
    append: bool = False

    @property
    def digest(self) -> str:
        append = "append\n" if self.append else ""
        return hashlib.sha256(f"{append}{self.name!r}\n{self.sql}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Draft:
    """The plan and warnings of a script that could be submitted."""

    plan: JoinPlan
    warnings: tuple[str, ...]


class Submissions:
    """Accepts scripts; a job is durable when `submit` returns."""

    def __init__(self, store: JobStore, settings: Settings, hooks: Hooks) -> None:
        self._store = store
        self._settings = settings
        self._hooks = hooks
        self._taken = TakenOutputs(settings)
        self._outside = Seats(
            "checks of servers",
            at_once=_MOST_OUTSIDE,
            waiting=_MOST_WAITING,
            patience_s=_PATIENCE_S,
        )

    def submit(self, request: SubmissionRequest) -> Job:
        """Plan, check and store a job, or find the one stored under the same idempotency key."""
        earlier = self._earlier(request)
        if earlier is not None:
            return earlier
        planned = self.planned(request.sql, request.name)
        job_id = new_job_id()
        layout = JobLayout(self._settings.jobs_dir / job_id)
        layout.create(self._settings.warehouse)
        try:
            checked = self._checked(planned, layout.job_dir, append=request.append)
            check = partial(self._taken.check, checked.plan, append=request.append)
            return self._store.add(self._written(request, job_id, checked), check)
        except JobConflictError:  # the same request may have arrived twice at once
            layout.abandon()
            earlier = self._earlier(request)
            if earlier is None:
                raise
            return earlier
        except StoreError:  # it may be stored; if not, the next start cleans up
            raise
        except BaseException:
            layout.abandon()
            raise

    def draft(self, sql: str, name: str | None, *, outside: bool, append: bool = False) -> Draft:
        """What `submit` would store; checks what the script names only if `outside`."""
        planned = self.planned(sql, name)
        if not outside:
            return Draft(planned.plan, tuple(planned.warnings))
        with OwnDirectory("draft") as directory:
            return self._checked(planned, directory, append=append)

    def dump(self, plan: JoinPlan) -> bytes:
        return self._hooks.dump(plan)

    def planned(self, sql: str, name: str | None) -> PlannedScript:
        """The plan of a script before anything is resolved; raises SqlError with its findings."""
        check_script(sql)
        entries = self._store.catalog.entries()
        try:
            return self._hooks.plan(sql, name=name, catalog=entries)
        except SqlError as error:
            error.findings = [asdict(finding) for finding in findings(sql, entries)]
            raise

    def migrate(self, sql: str) -> Migration:
        """The script as it would be accepted; stores nothing and reaches no other system."""
        check_script(sql)
        return migrate(sql, self._store.catalog.entries())

    def _checked(self, planned: PlannedScript, job_dir: Path, *, append: bool = False) -> Draft:
        if planned.inline_secrets:
            inline = {secret.name: secret.value for secret in planned.inline_secrets}
            write_secrets(job_dir, inline)
        secrets = SecretResolver.of(self._settings, job_dir)
        with self._outside.one(), within(self._settings.check_timeout_s):
            plan = self._hooks.preflight(planned.plan, self._settings, secrets)
            plan = _with_partitions(plan, self._settings)
            advice = self._hooks.advise(plan, self._settings, secrets)
        shared = self._store.look(partial(self._taken.check, plan, append=append))
        return Draft(plan, (*planned.warnings, *advice, *shared))

    def checked_update(self, plan: JoinPlan, job_dir: Path, added: Collection[str]) -> JoinPlan:
        """`plan` of an update, after checking what it may reach and the tables that it adds."""
        secrets = SecretResolver.of(self._settings, job_dir)
        with self._outside.one(), within(self._settings.check_timeout_s):
            plan = self._hooks.preflight_update(plan, added, self._settings, secrets)
        return _with_partitions(plan, self._settings, added)

    def prepare_shared(self, plan: JoinPlan) -> tuple[NewJob, int]:
        """A job for a shared table with its directory, and the partitions of the table's changelog.

        The caller stores the job or discards its directory. `plan` is of `shared_table_plan`.
        """
        if self._settings.kafka_bootstrap_servers is None:
            raise SubmissionError(
                f'shared table "{plan.name}" has no kafka for its changelog, which many jobs read',
                hint="Set SLUICE_KAFKA_BOOTSTRAP_SERVERS and start the control plane again.",
            )
        job_id = new_job_id()
        layout = JobLayout(self._settings.jobs_dir / job_id)
        layout.create(self._settings.warehouse)
        try:
            draft = self._checked(PlannedScript(plan, (), ()), layout.job_dir)
            (dimension,) = draft.plan.dimensions
            partitions = dimension.source.changelog_partitions
            assert partitions is not None, "a plan that was checked has them"
            request = SubmissionRequest(plan.sql, plan.name)
            return self._written(request, job_id, draft), partitions
        except BaseException:
            layout.abandon()
            raise

    def _written(self, request: SubmissionRequest, job_id: str, draft: Draft) -> NewJob:
        plan = draft.plan
        content = self._hooks.dump(plan)
        layout = JobLayout(self._settings.jobs_dir / job_id)
        write_new(layout.plan, content)
        layout.make_durable()
        stored = layout.stored()
        if stored is not None:
            stored.put(layout.plan, content)
        return NewJob(
            id=job_id,
            name=plan.name,
            plan=content,
            sql=plan.sql,
            warnings=draft.warnings,
            idempotency_key=request.idempotency_key,
            request_digest=request.digest,
            shared_table=plan.shared_table,
            attached=plan.attached,
            secrets=None if self._store.has_directories else _content(layout.secrets),
            has_own_name=not is_preview(plan),
        )

    def _earlier(self, request: SubmissionRequest) -> Job | None:
        key = request.idempotency_key
        stored = None if key is None else self._store.look(lambda jobs: jobs.of_key(key))
        if stored is None:
            return None
        job, digest = stored
        if digest != request.digest:
            raise JobConflictError(
                f'idempotency key "{request.idempotency_key}" was used for another request',
                hint="Use a new key for a new job.",
            )
        return job


def _with_partitions(
    plan: JoinPlan, settings: Settings, added: Collection[str] | None = None
) -> JoinPlan:
    """`plan` with the partitions of each changelog, or of those `added`.

    The setting may change later: topics and the rows in them stay as they are.
    """

    def kept(source: _Source) -> _Source:
        number = source.changelog_partitions or settings.changelog_partitions
        return replace(source, changelog_partitions=number)

    dimensions = tuple(
        replace(d, source=kept(d.source)) if added is None or d.name in added else d
        for d in plan.dimensions
    )
    plan = replace(plan, dimensions=dimensions)
    stream = plan.probe.source
    if added is not None or not isinstance(stream, TableStream):
        return plan
    stream = replace(stream, table=kept(stream.table))
    return replace(plan, probe=replace(plan.probe, source=stream))


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def check_script(sql: str) -> None:
    size = len(sql.encode("utf-8", errors="replace"))
    if size > SQL_LIMIT_BYTES:
        raise SubmissionError(
            f"script has {size} bytes, expected at most {SQL_LIMIT_BYTES}",
            hint="Shorten the script; statement sets may be several jobs.",
        )
    if "\x00" in sql or any("\ud800" <= char <= "\udfff" for char in sql):
        raise SubmissionError(
            "script contains a NUL or a lone surrogate, expected text",
            hint="Save the script as UTF-8.",
        )


@dataclass(frozen=True, slots=True)
class Creation:
    """Names that a script created in the catalog, and those `kept` by IF NOT EXISTS."""

    created: tuple[str, ...]
    kept: tuple[str, ...]
    warnings: tuple[str, ...]


class CatalogTables:
    """Changes the catalog, durably."""

    def __init__(self, store: JobStore, settings: Settings, submissions: Submissions) -> None:
        self._store = store
        self._settings = settings
        self._submissions = submissions

    def create(self, sql: str) -> Creation:
        """Store all declarations of a script, or none.

        Raises SqlError for other statements, TableConflictError if a name exists, SluiceError for a
        fault of a shared table's source.
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
        except StoreError:  # they may be stored; if not, the next start cleans up
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
        """Delete a table or view and remove the job of a shared table.

        Raises TableNotFoundError, or TableConflictError if jobs or views use it.
        """
        self._store.catalog.drop(name, partial(used_by, name))

    def _prepared(self, declared: Declared) -> tuple[CatalogEntry, NewJob | None]:
        if declared.plan is None:
            return declared.entry, None
        job, partitions = self._submissions.prepare_shared(declared.plan)
        return replace(declared.entry, job_id=job.id, partitions=partitions), job

    def _is_kept(self, declared: Declared, known: CatalogEntry | None) -> bool:
        """True if IF NOT EXISTS keeps an equal declaration."""
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
