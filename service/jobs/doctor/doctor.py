"""`sluice doctor`: looks a job over, or the machine, and says what to do about what it finds.

Nothing is changed, started or locked, and no JVM runs; a runner may be at work meanwhile.
"""

from pathlib import Path
from typing import Any

from joins.adapters.network import within
from joins.durable.checkpoint import Checkpoint
from joins.plan.errors import CheckpointError
from service.config import Settings
from service.jobs.doctor.check import Check, good, made, unknown
from service.jobs.doctor.checkpoint import check_checkpoint
from service.jobs.doctor.machine import check_disk, check_machine
from service.jobs.doctor.outside import check_outside
from service.jobs.doctor.patient import Patient
from service.jobs.doctor.runner import check_runner
from service.jobs.doctor.tables import check_tables
from service.jobs.store.layout import JobLayout, living_runner
from service.jobs.store.plan_codec import load
from service.security.resolution import resolve_secrets
from service.security.secrets import SecretResolver

_OUTSIDE_S = 15.0


def examine(job_dir: Path | None) -> dict[str, Any]:
    """All checks of the job in `job_dir`, or of this machine when it is None.

    Returns:
        `{"ok": bool, "checks": [{"name", "ok", "detail", "hint"}, …]}`; `ok` of a check is null
        where nothing can be said, and only a false one makes the whole false.
    """
    checks = check_machine(Settings.load()) if job_dir is None else _job(job_dir)
    ok = all(check.ok is not False for check in checks)
    return {"ok": ok, "checks": [check.as_json() for check in checks]}


def _job(job_dir: Path) -> list[Check]:
    patients: list[Patient] = []
    checks = made("job", lambda: [_admitted(job_dir, patients)])
    if not patients:
        return checks
    (patient,) = patients
    checks += made("runner", lambda: check_runner(patient))
    checks += check_checkpoint(patient)
    checks += check_tables(patient)
    with within(_OUTSIDE_S):
        checks += check_outside(patient)
    settings, layout = patient.settings, patient.layout
    places = {"job": layout.job_dir, "warehouse": settings.warehouse_dir}
    if settings.index_dir is not None:
        places["index"] = settings.index_dir
    checks += made("disk", lambda: check_disk(places))
    return checks + made("disk output", lambda: check_disk(patient.output_directories))


def _admitted(job_dir: Path, patients: list[Patient]) -> Check:
    """Read what every other check needs."""
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    try:
        plan = load(layout.plan.read_bytes())
    except FileNotFoundError as exc:
        raise CheckpointError(
            f'directory "{job_dir}" has no plan.json',
            hint="Name the directory of a job; `sluice jobs ls` lists the jobs.",
        ) from exc
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    running = living_runner(job_dir) is not None
    plan = resolve_secrets(plan, SecretResolver.of(settings, job_dir))
    patients.append(Patient(layout, settings, plan, checkpoint, meta, running))
    if meta is None:
        return unknown("job", "plan, settings and secrets can be read; it was never started")
    detail = f"plan, settings and secrets can be read; incarnation {meta.incarnation}"
    return good("job", f"{detail}, epoch {meta.epoch}")
