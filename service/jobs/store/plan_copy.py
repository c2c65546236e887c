"""The job store's copy of a job's newest plan: apart from the plans, which runners read, too.

Runners have no job store, and to load its library would take each of them 50 MiB.
"""

import orjson
import structlog

from joins.plan.plan import JoinPlan
from service.jobs.store import plan_codec
from service.jobs.store.job import Job, StateUpdate
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.jobs.store.store import JobStore
from watermark.errors import SluiceError

_log = structlog.get_logger(__name__)


def note_plan(store: JobStore, job_id: str, plan: JoinPlan) -> Job:
    """Store the copy of a job's newest plan, whose file is in the job's directory."""
    store.change_plan(job_id, plan_codec.dump(plan), plan.sql)
    cause = f"plan {plan.number} holds from the next batch's border on"
    return store.transition(job_id, StateUpdate(store.get(job_id).state, cause, is_note=True))


def note_newest(store: JobStore, layout: JobLayout) -> None:
    """`note_plan`, unless it was done: after a crash the directory may have a newer plan."""
    plans, job_id = JobPlans(layout), layout.job_dir.name
    if plans.newest_number == 1:
        return
    try:
        plan = plans.newest()
    except (SluiceError, OSError) as exc:  # its runner reports it
        _log.warning("plan of a job cannot be read", job_id=job_id, error=str(exc))
        return
    if int(orjson.loads(store.get(job_id).plan).get("number", 1)) < plan.number:
        note_plan(store, job_id, plan)
