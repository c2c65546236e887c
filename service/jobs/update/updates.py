"""Updates of jobs: drafted, refused or stored; a runner takes a plan at a batch's border."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import structlog

from joins.durable.stored import keep_stored
from joins.plan.plan import JoinPlan
from service.config import Settings
from service.errors import JobConflictError, UpdateRefusedError
from service.jobs.store.job import DesiredState, Job, StateUpdate, check_wanted
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.jobs.store.store import JobStore
from service.jobs.submit.submission import Submissions
from service.jobs.update.changes import PlanChange, RowEffect, effect_of
from service.jobs.update.comparison import compare, with_resolved
from service.security.secrets import SecretResolver
from service.sql.planner.planner import PlannedScript
from service.sql.text.script import SqlError
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UpdateDraft:
    """What an update changes, before it is stored."""

    plan: JoinPlan  # with the number that it gets
    changes: tuple[PlanChange, ...]  # none if the job has this plan already
    warnings: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[PlanChange, ...]:
        return tuple(change for change in self.changes if not change.is_accepted)

    @property
    def changes_rows(self) -> bool:
        return any(effect_of(change.kind) is not RowEffect.NONE for change in self.changes)


class Updates:
    """Changes jobs; one for each control plane. Only the leading one stores an update."""

    def __init__(self, store: JobStore, settings: Settings, submissions: Submissions) -> None:
        self._store = store
        self._settings = settings
        self._submissions = submissions

    def draft(self, job_id: str, sql: str) -> UpdateDraft:
        """What `sql` would change in the job; added tables are checked at their sources.

        Raises SqlError for the script, JobNotFoundError, JobStateError for a finished job,
        UpdateRefusedError if it brings a new secret, SluiceError for a fault of an added table.
        """
        job = self._changeable(job_id)
        plans = JobPlans(self._layout(job_id))
        old = plans.newest()
        planned = self._submissions.planned(sql, job.name)
        self._check_secrets(job_id, planned)
        new = with_resolved(planned.plan, self._declared(job, old), old)
        draft = self._compared(plans, old, new)
        if draft.refused or not draft.changes:
            return replace(draft, warnings=tuple(planned.warnings))
        known = {dimension.name for dimension in old.dimensions}
        added = {d.name for d in new.dimensions} - known
        plan = self._submissions.checked_update(draft.plan, self._layout(job_id).job_dir, added)
        return replace(draft, plan=plan, warnings=tuple(planned.warnings))

    def draft_rollback(self, job_id: str, number: int | None = None) -> UpdateDraft:
        """What another plan of the job would change: plan `number`, or the one before the newest.

        Raises JobConflictError if there is no such plan; else as `draft`.
        """
        self._changeable(job_id)
        plans = JobPlans(self._layout(job_id))
        old = plans.newest()
        older = old.number - 1 if number is None else number
        if not 1 <= older <= old.number:
            known = "only plan 1" if old.number == 1 else f"plans 1 to {old.number}"
            raise JobConflictError(
                f'job "{job_id}" has {known}, and plan {older} was named',
                hint="Name an older plan of the job; sluice jobs update changes it to another one.",
            )
        return self._compared(plans, old, plans.read(older), returns=True)

    def store(self, job_id: str, draft: UpdateDraft) -> Job:
        """Make the plan of `draft` the job's; durable when this returns. Nothing without changes.

        Raises UpdateRefusedError for a refused change, JobConflictError if another update was
        faster.
        """
        if draft.refused:
            raise _refusal(draft)
        if not draft.changes:
            return self._store.get(job_id)
        self._changeable(job_id)
        layout, number = self._layout(job_id), draft.plan.number
        stored = layout.stored()
        if stored is not None:
            keep_stored(stored)
        plans = JobPlans(layout)
        if plans.newest_number != number - 1 or not plans.add(draft.plan):
            raise JobConflictError(
                f'job "{job_id}" was given plan {plans.newest_number} meanwhile',
                hint="Look at the difference again: sluice jobs update with --preview.",
            )
        return self._note(job_id, draft.plan)

    def catch_up(self) -> None:
        """Bring the job store up to the plans in the jobs' directories, after a crash between."""
        for job in self._store.all_jobs():
            layout = self._layout(job.id)
            if not layout.plans.is_dir():
                continue
            try:
                plan = JobPlans(layout).newest()
                if _number(self._store.get(job.id)) < plan.number:
                    self._note(job.id, plan)
            except SluiceError as exc:  # its runner reports it
                _log.warning("plan of a job cannot be read", job_id=job.id, error=exc.message)

    def _note(self, job_id: str, plan: JoinPlan) -> Job:
        content = self._submissions.dump(plan)
        self._store.change_plan(job_id, content, plan.sql)
        cause = f"plan {plan.number} holds from the next batch's border on"
        state = self._store.get(job_id).state
        return self._store.transition(job_id, StateUpdate(state, cause, is_note=True))

    def _changeable(self, job_id: str) -> Job:
        job = self._store.get(job_id)
        check_wanted(job, DesiredState.RUNNING)
        return job

    def _layout(self, job_id: str) -> JobLayout:
        return JobLayout(self._settings.jobs_dir / job_id)

    def _declared(self, job: Job, old: JoinPlan) -> JoinPlan:
        """The plan of the newest script as it was before its offsets were resolved."""
        try:
            return self._submissions.planned(old.sql, job.name).plan
        except SqlError as exc:
            raise UpdateRefusedError(
                f'the script of job "{job.id}" can no longer be planned: {exc.message}',
                hint="Restore the tables and views of the catalog that it uses.",
            ) from exc

    def _check_secrets(self, job_id: str, planned: PlannedScript) -> None:
        secrets = SecretResolver.of(self._settings, self._layout(job_id).job_dir)
        for inline in planned.inline_secrets:
            if secrets.of_job(inline.name) != inline.value:
                raise UpdateRefusedError(
                    f'the script has a password that is not stored for job "{job_id}"',
                    hint="Store it with `sluice secrets set`, and name it: ${secret:name}.",
                )

    def _compared(
        self, plans: JobPlans, old: JoinPlan, new: JoinPlan, *, returns: bool = False
    ) -> UpdateDraft:
        used = {each.name for each in plans.dimensions()} - {each.name for each in old.dimensions}
        changes = compare(old, new, used_names=used, returns=returns)
        return UpdateDraft(replace(new, number=old.number + 1), changes)


def _number(job: Job) -> int:
    document: Mapping[str, Any] = orjson.loads(job.plan)
    return int(document.get("number", 1))


def _refusal(draft: UpdateDraft) -> UpdateRefusedError:
    first, *more = draft.refused
    others = f", and {len(more)} more" if more else ""
    return UpdateRefusedError(
        f"the update would change {first.of}: {first.reason}{others}", hint=first.hint or ""
    )
