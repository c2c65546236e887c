"""Verifies tables of a job against their sources, and keeps the newest result of each."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from joins.adapters.delta.log import DeltaLog
from joins.dimension.changelog_scan import DimensionStates
from joins.durable.checkpoint import Checkpoint, write_json_atomically
from joins.durable.dead_rows import dead_rows_of
from joins.kernels.changelog.comparison import Place
from joins.lookback.verification import Verification, VerifyLimits
from joins.plan.errors import VerificationError, VersionExpiredError
from joins.plan.plan import (
    Dimension,
    JoinPlan,
)
from service.config import Settings
from service.connectors.plans import resolve_secrets
from service.connectors.port import Compared, Copy
from service.connectors.registry import source_connector
from service.jobs.inspect.past import dimension_of, plan_of
from service.jobs.inspect.table_answers import Answer, Question
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import read_status
from service.security.secrets import SecretResolver
from service.wiring.context import JobContext, changelog_partitions
from watermark.errors import SluiceError

_MOST_REPAIRED = 10_000
_ENDED = (JobState.STOPPED, JobState.FAILED, JobState.FINISHED)


def verify(job_dir: Path, question: Question) -> Answer:
    """Compare one table, or all; a table that cannot be compared says why.

    Raises UnknownDimensionError, and SecretError for a missing login.
    """
    layout, settings = JobLayout(job_dir), Settings.of_runner(job_dir)
    plan = resolve_secrets(plan_of(layout), SecretResolver.of(settings, job_dir))
    limits = VerifyLimits(
        sample=question.get("sample", 1.0),
        rows_per_s=question.get("rows_per_s"),
        shown=question.get("shown", 100),
        repaired=_MOST_REPAIRED if question.get("repair") else 0,
    )
    name = question.get("table")
    all_tables = plan.dimensions if name is None else ()
    chosen = all_tables or (dimension_of(plan, str(name)),)
    tables = [_verified(layout, settings, plan, dimension, limits) for dimension in chosen]
    return {"ok": all(table["state"] == "equal" for table in tables), "tables": tables}


def _verified(
    layout: JobLayout,
    settings: Settings,
    plan: JoinPlan,
    dimension: Dimension,
    limits: VerifyLimits,
) -> Answer:
    started_at_ms = time.time_ns() // 1_000_000
    answer: Answer = {
        "table": dimension.name,
        "source": dimension.source.kind,
        "started_at_ms": started_at_ms,
    }
    try:
        job = _begun(layout, settings, plan)
        result = _compared_in_time(job, dimension, limits)
    except SluiceError as exc:  # another table may be compared all the same
        ended = {"ended_at_ms": time.time_ns() // 1_000_000}
        return {**answer, **ended, "state": "not-compared", "reason": exc.message, "hint": exc.hint}
    state = "different" if result["differences"] else "equal"
    answer |= {**result, "state": state, "ended_at_ms": time.time_ns() // 1_000_000}
    layout.verifications.mkdir(mode=0o700, exist_ok=True)
    kept = {name: value for name, value in answer.items() if name not in ("keys", "extra")}
    write_json_atomically(layout.verification(dimension.name), kept)
    return answer


def _compared_in_time(
    job: JobContext, dimension: Dimension, limits: VerifyLimits
) -> dict[str, Any]:
    """The comparison, once more if upkeep removed the files of the version that it began with."""
    try:
        return _compared(job, dimension, limits)
    except VersionExpiredError:
        return _compared(job, dimension, limits)


def _compared(job: JobContext, dimension: Dimension, limits: VerifyLimits) -> dict[str, Any]:
    """The comparison; it counts only if the copy is still the one that was read at its begin."""
    layout, settings = job.layout, job.settings
    source, state_file = dimension.source, Checkpoint(layout.checkpoint).source_file(dimension.name)
    connector = source_connector(source)
    state, (epoch, generation) = _complete(connector.copied(dimension, state_file), job, dimension)
    # commits say under this id how far the topic is read
    app_id = f"{job.table_app_id(dimension)}:{dimension.name}"
    log = DeltaLog(layout.table(dimension) / "changelog", app_id)
    states = DimensionStates(log, dimension, changelog_partitions(dimension, settings))
    first = states.newest()  # before the source is read: it has nothing behind the position

    def proven() -> Place | None:
        return _proven(layout, dimension, epoch)

    def is_over() -> bool:
        """The source's transaction does not stay open for a runner that has ended."""
        status = read_status(layout.job_dir)
        return status is not None and status.state in _ENDED

    dead = dead_rows_of(Checkpoint(layout.checkpoint), dimension.name)
    if dead.unlisted:
        raise VerificationError(
            f'table "{dimension.name}" lacks {dead.unlisted} rows that are too large for its topic '
            "and whose keys are not listed",
            hint="Set SLUICE_CHANGELOG_MAX_MESSAGE_BYTES higher and submit the job again.",
        )
    compared = Compared(job, dimension, states, limits.proof_s, limits.rows_per_s)
    with connector.read_again(compared, source, state) as read:
        pace = replace(limits, rows_per_s=None) if read.is_paced else limits
        comparison = Verification(
            states, read.rows, read.proven or proven, pace, dead.rows, read.counted, is_over
        )
        result = comparison.run(first)
    _, now = _complete(connector.copied(dimension, state_file), job, dimension)
    if now != (epoch, generation):
        raise VerificationError(
            f'table "{dimension.name}" was copied again while it was compared',
            hint="Verify it again.",
        )
    return {**result, "generation": generation}


def _begun(layout: JobLayout, settings: Settings, plan: JoinPlan) -> JobContext:
    checkpoint = Checkpoint(layout.checkpoint)
    meta = checkpoint.read_meta()
    if meta is None:
        raise VerificationError(
            f'job "{layout.job_dir.name}" has not begun, so there is nothing to compare yet',
            hint=f"Verify it when its copies are complete: sluice wait {layout.job_dir.name} join.",
        )
    return JobContext(plan, settings, layout, checkpoint, meta)


def _complete(
    copied: tuple[Any, Copy] | None, job: JobContext, dimension: Dimension
) -> tuple[Any, Copy]:
    if copied is not None:
        return copied
    raise VerificationError(
        f'table "{dimension.name}" is being copied, so there is nothing to compare yet',
        hint=f"Verify it when the copy is complete: sluice wait {job.job_id} join.",
    )


def _proven(layout: JobLayout, dimension: Dimension, epoch: int) -> Place | None:
    """Up to where the runner's newest report proves that everything is committed."""
    status = read_status(layout.job_dir)
    tables = () if status is None else status.content.get("dimensions") or ()
    for table in tables:
        position = (table.get("freshness") or {}).get("position") or {}
        if table["name"] != dimension.name:
            continue
        if "file" in position:
            return epoch, int(str(position["file"]).rpartition(".")[2]), int(position["pos"])
        if "version" in position:
            return epoch, int(position["version"]) + 1, 0
    return None
