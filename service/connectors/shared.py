"""Shared tables from their readers' side: what their jobs report."""

from collections.abc import Mapping
from typing import Any

from joins.durable.checkpoint import Checkpoint, JobMeta
from joins.plan.errors import SharedTableError, SourceUnavailableError
from joins.plan.plan import SharedSource
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import SharedReport
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import Status, read_status
from watermark.errors import SluiceError
from watermark.freshness import Proof

_SILENT_MS = 30_000
_NOWHERE = {"epoch": 0, "file": 0, "pos": 0}
_RESTS = (JobState.STOPPED, JobState.PAUSED)


def shared_meta(layout: JobLayout, source: SharedSource) -> JobMeta:
    """The durable facts of a shared table's job. Raises SourceUnavailableError before its start."""
    meta = Checkpoint(layout.of_shared(source).checkpoint).read_meta()
    if meta is None:
        raise SourceUnavailableError(
            f'shared table "{source.table}" has not begun: its job {source.job_id} is starting',
            hint=f"The job waits for it; see sluice tables get {source.table}.",
        )
    return meta


def look(layout: JobLayout, source: SharedSource) -> SharedReport:
    job_dir = layout.of_shared(source).job_dir
    if not job_dir.is_dir():
        return SharedReport(fault=_gone(source))
    status = read_status(job_dir)
    if status is None:
        return SharedReport()
    return SharedReport(_view(source, status), _fault(source, status), _proof(status))


def _view(source: SharedSource, status: Status) -> SourceView | None:
    tables = status.content.get("dimensions") or ()
    if not tables:
        return None
    table = tables[0]
    copy = table["snapshot"]
    return SourceView(
        generation=table["generation"],
        rows_total=copy["rows_total"] or 0,
        chunks_done=copy["chunks_done"],
        chunks_total=copy["chunks_total"],
        is_copied=copy["is_copied"],
        low=table["low"] or _NOWHERE,
        high=table["high"],
        version=table["source_version"],
        evidence=table["evidence"],
        waits_for=None if table["evidence"] else _waits_for(source, status, copy),
    )


def _proof(status: Status) -> Proof | None:
    """What the table's job proves of it; it was committed before the report."""
    tables = status.content.get("dimensions") or ()
    known = tables[0].get("freshness") if tables else None
    if known is None or known["as_of_ms"] is None:
        return None
    return Proof.from_json({**known, "time_ms": known["as_of_ms"]})


def _waits_for(source: SharedSource, status: Status, copy: Mapping[str, Any]) -> str:
    is_open = status.content.get("phase") == "JOIN"
    where = "copied again" if is_open else "in LOAD"
    if copy["is_copied"]:
        return f'shared table "{source.table}" is {where}, its watermark follows the last chunk'
    chunks = f"chunk {copy['chunks_done']} of {copy['chunks_total']}"
    return f'shared table "{source.table}" is {where}, {chunks}'


def _fault(source: SharedSource, status: Status) -> SluiceError | None:
    what = f'shared table "{source.table}"'
    if status.state is JobState.STALLED or status.state is JobState.FAILED:
        error = status.error
        message = status.reason if error is None else error.message
        hint = f"See sluice tables get {source.table}." if error is None else error.hint
        return SharedTableError(f"{what} is {status.state}: {message}", hint=hint)
    if status.state in _RESTS:
        return SharedTableError(
            f"{what} does not run: {status.reason}",
            hint=f"Let it go on: sluice jobs resume {source.job_id}.",
        )
    if status.age_ms() > _SILENT_MS:
        return SharedTableError(
            f"{what} has not reported for more than {_SILENT_MS // 1000} seconds",
            hint=f"Its control plane starts it again; see sluice jobs get {source.job_id}.",
        )
    return None


def _gone(source: SharedSource) -> SluiceError:
    return SharedTableError(
        f'shared table "{source.table}" is gone: there is no directory of its job {source.job_id}',
        hint="Restore it from a backup, or remove this job, create the table and submit it again.",
    )
