"""The doctor's look at the runner, and at what was asked of it."""

import time
from collections.abc import Iterator

from joins.durable.checkpoint import read_json
from joins.durable.letter_replays import LetterReplays
from service.jobs.doctor.check import Check, bad, good, unknown
from service.jobs.doctor.patient import Patient
from service.jobs.store.job import JobState
from service.jobs.store.reports import read_status
from service.jobs.supervise.liveness import STARTING_S

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
