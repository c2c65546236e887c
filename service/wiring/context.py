"""The values that every part of a job is built from."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from joins.adapters.files.stream_rows import StreamFiles
from joins.durable.checkpoint import Checkpoint, JobMeta, job_app_id
from joins.durable.probe_lives import known_topics
from joins.kernels.index.segment import IndexSpec
from joins.kernels.probe.probe import ProbeKernelSpec, index_spec, kernel_spec
from joins.kernels.table_path import TablePath
from joins.plan.plan import Dimension, JoinPlan, KafkaSource, SharedSource
from joins.plan.stream_topics import StreamTopics
from joins.worker.probe_task import IndexPlace
from joins.worker.row_files import RowFiles
from joins.worker.staging import task_schemas
from service.config import Settings, runs_on_cluster
from service.connectors.mysql import captured_columns
from service.connectors.shared import shared_meta
from service.jobs.store.layout import JobLayout
from service.security.resolution import history_path, index_directory


def changelog_partitions(dimension: Dimension, settings: Settings) -> int:
    return dimension.source.changelog_partitions or settings.changelog_partitions


def stream_files(
    plan: JoinPlan, settings: Settings, names: Collection[str] | None = None
) -> StreamFiles | None:
    """The files before the stream's topic, with the columns `names`; None without a history."""
    source = plan.probe.source
    if not isinstance(source, KafkaSource) or source.history is None:
        return None
    history, fields = source.history, plan.probe.fields
    assert history.listed is not None, "submission has listed them"
    read = tuple(field for field in fields if names is None or field.name in names)
    path = history_path(history, settings)
    return StreamFiles(path, history.version, read or fields[:1], history.listed)


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
        table = self.plan.probe.captured
        if table is not None and kernel.changes is not None:
            captured = captured_columns(self, table)
            kernel = replace(kernel, changes=replace(kernel.changes, captured=captured))
        return replace(kernel, schemas=task_schemas)

    @property
    def exchange(self) -> TablePath:
        """Where the tasks of a batch exchange files: in the store if they may share no disk."""
        apart = runs_on_cluster(self.settings) and self.layout.is_in_store()
        return self.layout.tables_root / "exchange" if apart else self.layout.job_dir

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
