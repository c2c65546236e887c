"""`sluice doctor`: examines a job or the machine; it changes nothing and runs no JVM."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from joins.adapters.network import within
from joins.durable.checkpoint import Checkpoint, read_json
from joins.durable.letter_replays import LetterReplays
from service.config import Settings
from service.connectors.plans import resolve_secrets
from service.jobs.doctor.check import Check, Patient, bad, good, made, unknown
from service.jobs.doctor.machine import check_disk, check_machine
from service.jobs.doctor.outside import check_outside
from service.jobs.doctor.tables import check_checkpoint, check_tables
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout, living_runner
from service.jobs.store.plans import JobPlans
from service.jobs.store.runner_files import read_status
from service.jobs.supervise.watch import STARTING_S
from service.security.secrets import SecretResolver

_OLD_REQUEST_S = 60.0


def check_runner(patient: Patient) -> Iterator[Check]:
    yield _runner(patient)
    yield _requests(patient)
    yield _replays(patient)


def _runner(patient: Patient) -> Check:
    status = read_status(patient.layout.job_dir)
    if not patient.running:
        return unknown("runner", "no runner lives")
    if status is None:
        return unknown("runner", "the runner has not reported yet")
    age_s, limit_s = status.age_ms() / 1000, patient.settings.runner_hang_report_s
    if status.state is JobState.STARTING and limit_s < age_s <= STARTING_S:
        return unknown(
            "runner", f"process {status.pid} starts Spark, its last report is {age_s:.0f} s old"
        )
    if age_s > limit_s:
        return bad(
            "runner",
            f"the runner {status.pid} lives, but its last report is {age_s:.0f} s old",
            f"After {patient.settings.runner_hang_kill_s:.0f} s the control plane starts it again; "
            "runner.log tells what it did last.",
        )
    if status.error is not None:
        return bad("runner", f"{status.error.type}: {status.error.message}", status.error.hint)
    state = "unknown" if status.state is None else status.state.value
    return good("runner", f"process {status.pid} reports {state}")


def _requests(patient: Patient) -> Check:
    waiting: list[float] = []
    directory = patient.layout.requests
    for path in sorted(directory.glob("*.json")) if directory.is_dir() else ():
        if path.name.endswith(".result.json") or path.name.startswith("."):
            continue
        if not path.with_name(f"{path.stem}.result.json").exists():
            value = read_json(path) or {}
            waiting.append(time.time() - value.get("at_ms", 0) / 1000)
    if not waiting:
        return good("requests", "no request waits for an answer")
    detail = f"{len(waiting)} requests wait for an answer, the oldest for {max(waiting):.0f} s"
    if not patient.running:
        return unknown("requests", f"{detail}; no runner lives")
    if max(waiting) < _OLD_REQUEST_S:
        return good("requests", detail)
    return bad("requests", detail, "Look at runner.log for what keeps the runner from them.")


def _replays(patient: Patient) -> Check:
    replays = LetterReplays(patient.layout.checkpoint / "replays")
    numbers = replays.numbers()
    open_ones = [n for n in numbers if replays.outcome(n) is None]
    if not open_ones:
        return good("dead-letter replays", f"{len(numbers)} replays, none is unfinished")
    detail = f"replay {open_ones[0]} is not finished"
    if patient.running:
        return unknown("dead-letter replays", f"{detail}; the runner is at it")
    return bad(
        "dead-letter replays",
        f"{detail}; rows of it may be there already",
        "Start the job: its runner finishes what was interrupted and adds nothing twice.",
    )


def examine(job_dir: Path | None) -> dict[str, Any]:
    """All checks of the job in `job_dir`; None examines this machine.

    Returns `{"ok": bool, "checks": [{"name", "ok", "detail", "hint"}, …]}`. A check's `ok` is null
    if it cannot be judged; only a false one makes the whole false.
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
    settings, layout = patient.settings, patient.layout
    with within(settings.check_timeout_s):
        checks += check_outside(patient)
    places = {"job": layout.job_dir, "warehouse": settings.warehouse_dir}
    if settings.index_dir is not None:
        places["index"] = settings.index_dir
    checks += made("disk", lambda: check_disk(places))
    return checks + made("disk output", lambda: check_disk(patient.output_directories))


def _admitted(job_dir: Path, patients: list[Patient]) -> Check:
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    plan = JobPlans(layout).newest()
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    running = living_runner(job_dir) is not None
    plan = resolve_secrets(plan, SecretResolver.of(settings, job_dir))
    patients.append(Patient(layout, settings, plan, checkpoint, meta, running))
    if meta is None:
        return unknown("job", "plan, settings and secrets can be read; it was never started")
    detail = f"plan, settings and secrets can be read; incarnation {meta.incarnation}"
    return good("job", f"{detail}, epoch {meta.epoch}")
