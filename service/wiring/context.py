"""The values that every part of a job is built from, and shared tables from their readers' side."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from joins.durable.checkpoint import Checkpoint, JobMeta, job_app_id
from joins.durable.probe_lives import known_topics
from joins.durable.requests import Stalls
from joins.kernels.index.segment import IndexSpec
from joins.kernels.probe.probe import ProbeKernelSpec, index_spec, kernel_spec
from joins.kernels.table_path import TablePath
from joins.plan.errors import SharedTableError, SourceUnavailableError
from joins.plan.plan import Dimension, JoinPlan, SharedSource
from joins.plan.stream_topics import StreamTopics
from joins.source.coordinator import SourceView
from joins.source.feed_coordinator import SharedCoordinator, SharedReport
from joins.worker.probe_task import IndexPlace
from joins.worker.row_files import RowFiles
from joins.worker.staging import task_schemas
from service.config import Settings, runs_on_cluster
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import Status, read_status
from service.security.resolution import index_directory
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


def shared_coordinator(
    layout: JobLayout, name: str, source: SharedSource, stalls: Stalls
) -> SharedCoordinator:
    return SharedCoordinator(name, partial(look, layout, source), stalls)


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


def changelog_partitions(dimension: Dimension, settings: Settings) -> int:
    return dimension.source.changelog_partitions or settings.changelog_partitions


@dataclass(frozen=True, slots=True)
class JobContext:
    """A job that has begun; the plan of a runner has its secrets resolved."""

    plan: JoinPlan
    settings: Settings
    layout: JobLayout
    checkpoint: Checkpoint
    meta: JobMeta

    @property
    def job_id(self) -> str:
        return self.layout.job_dir.name

    @property
    def app_id(self) -> str:
        return job_app_id(self.job_id, self.meta.incarnation)

    def table_app_id(self, dimension: Dimension) -> str:
        """App id of commits to a dimension's tables, without its name; raises as `shared_meta`."""
        source = dimension.source
        if not isinstance(source, SharedSource):
            return self.app_id
        return job_app_id(source.job_id, shared_meta(self.layout, source).incarnation)

    def partitions(self, dimension: Dimension) -> int:
        return changelog_partitions(dimension, self.settings)

    def kernel(self, number: int = 0) -> ProbeKernelSpec:
        kernel = kernel_spec(self.plan, number).reading(self.topics)
        return replace(kernel, schemas=task_schemas)

    @property
    def exchange(self) -> TablePath:
        apart = runs_on_cluster(self.settings) and self.layout.is_in_store()
        return self.layout.exchange(in_store=apart)

    def row_files(self, name: str) -> RowFiles:
        return RowFiles(self.exchange / name, self.layout.job_dir / name)

    def staged_rows(self, insert: int) -> RowFiles:
        return self.row_files("staged_rows" if insert == 0 else f"staged_rows_{insert + 1}")

    @property
    def topics(self) -> StreamTopics:
        return known_topics(self.checkpoint) or self.meta.topics

    def index_specs(self, dimension: Dimension, number: int) -> dict[str, IndexSpec]:
        return {
            j.alias: index_spec(self.plan, j, self.partitions(dimension))
            for j in self.plan.inserts[number].joins
            if j.dimension == dimension.name
        }

    def index_places(
        self, dimensions: Iterable[Dimension], number: int = 0
    ) -> dict[str, IndexPlace]:
        return {
            alias: IndexPlace(
                dimension.name,
                self.index_directory(dimension),
                spec,
                is_shared=isinstance(dimension.source, SharedSource),
            )
            for dimension in dimensions
            for alias, spec in self.index_specs(dimension, number).items()
        }

    def index_directory(self, dimension: Dimension) -> Path:
        """Where the dimension's indexes are on each node, with the placeholders of the setting.

        All readers of a shared table use one directory, so that equal indexes are built once.
        """
        source = dimension.source
        if isinstance(source, SharedSource):
            return index_directory(self.layout.of_shared(source), self.settings) / source.table
        return index_directory(self.layout, self.settings) / dimension.name
