"""The worker's half of a probe micro-batch: attach the pinned index, join, stage.

The first task on a node that lacks the index makes it. A retried task verifies the index files
first and rebuilds damaged ones: a damaged mapped file kills the process that reads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from joins.durable.failpoints import Failpoints
from joins.durable.pins import Pin
from joins.kernels.index.dimension_index import ChangedKeys
from joins.kernels.index.index import KEPT_FOR_OTHERS, DimensionIndex, IndexSpec, remove_older
from joins.kernels.probe.files import ParquetStage, SharedTable, StagedFile
from joins.kernels.probe.probe import DEAD_LETTERS as DEAD_LETTER_SCHEMA
from joins.kernels.probe.probe import (
    BatchContext,
    JoinedBatch,
    ProbeKernelSpec,
    join_batch,
)
from joins.kernels.records.layout import ROW
from joins.kernels.table_path import TablePath
from joins.plan.errors import IndexBuildError
from joins.plan.stream_topics import StreamTopics
from joins.worker.index_source import DimensionTables, IndexSource, on_this_node
from joins.worker.staging import TaskReport, current_origin

OUTPUT = "output"
DEAD_LETTERS = "dead_letters"


class BatchTask(Protocol):
    """The worker's half of a batch's last stage: what a sink knows of it."""

    @property
    def kernel(self) -> ProbeKernelSpec:
        """The join, which has the columns of the output."""

    @property
    def epoch(self) -> int:
        """Epoch of the runner, by which commits of an older one are refused."""

    @property
    def dead_letters(self) -> TablePath:
        """Root of the dead-letter table."""

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: "TaskCounts"
    ) -> Iterator[JoinedBatch]:
        """Join the records of one task under `pin`; what it counts and stages goes to `counts`."""


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where the index of one role of a dimension lies on a node.

    `on_node` resolves placeholders of `directory`. If it `is_shared`, batches of other jobs may pin
    older versions.
    """

    dimension: str
    directory: Path
    spec: IndexSpec
    is_shared: bool = False

    @property
    def on_node(self) -> Path:
        """`directory` on this node; raises IndexDirectoryError if a placeholder is not set here."""
        return on_this_node(self.directory)


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """A worker's part of a micro-batch join; picklable.

    `indexes` is by the alias of the dimension in the query, which may have one table twice.
    `tables` has the sources of indexes by dimension; without them the indexes must exist.
    """

    kernel: ProbeKernelSpec
    indexes: Mapping[str, IndexPlace]
    dead_letters: TablePath
    epoch: int
    failpoints: Failpoints = field(default_factory=Failpoints)
    tables: Mapping[str, DimensionTables] = field(default_factory=dict)

    def reading(self, topics: StreamTopics) -> Self:
        return replace(self, kernel=self.kernel.reading(topics))

    def attach(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        """Map the pinned versions into this process: milliseconds, unless an index is missing.

        Builds missing indexes on this node and removes those that no batch will pin again. Raises
        IndexBuildError without tables, IndexDirectoryError if the directory cannot be written or is
        locked for too long, PinnedVersionExpiredError if the tables no longer have the version.
        """
        return {
            alias: self._attached(place, versions[place.dimension])
            for alias, place in self.indexes.items()
        }

    def changed_since(
        self, versions: Mapping[str, int], indexes: Mapping[str, DimensionIndex]
    ) -> Mapping[str, ChangedKeys] | None:
        """What `indexes` have and those of `versions` do not; None if one is not on this node."""
        changed = {}
        for alias, index in indexes.items():
            place = self.indexes.get(alias)
            if place is None or place.dimension not in versions:
                return None
            version = versions[place.dimension]
            try:
                older = DimensionIndex.attach(place.on_node, version, place.spec)
            except IndexBuildError:
                return None
            changed[alias] = index.changed_since(older)
        return changed

    def repair(self, versions: Mapping[str, int]) -> None:
        """Rebuild damaged pinned indexes of this node; raises as `attach`."""
        for place in self.indexes.values():
            if place.dimension in self.tables:
                source = IndexSource.of(self.tables[place.dimension])
                source.remake(place.on_node, versions[place.dimension], place.spec)

    def answers(
        self, batches: Iterator[pa.RecordBatch], pin: Pin, counts: "TaskCounts"
    ) -> Iterator[JoinedBatch]:
        indexes = pinned_indexes(self, pin)
        context = pinned_context(pin)
        self.failpoints.hit("C5", pin.batch)
        for records in batches:
            answer = join_batch(self.kernel, records, indexes, context)
            counts.read(self.kernel.counted(records))
            counts.answered(answer)
            yield answer

    def _attached(self, place: IndexPlace, version: int) -> DimensionIndex:
        directory = place.on_node
        try:
            return DimensionIndex.attach(directory, version, place.spec)
        except IndexBuildError:
            if place.dimension not in self.tables:
                raise
        source = IndexSource.of(self.tables[place.dimension])
        with source.pinned(version):
            source.make(directory, version, place.spec)
        behind = KEPT_FOR_OTHERS if place.is_shared else 0
        remove_older(directory, version - behind, place.spec)  # a later batch pins no older one
        return DimensionIndex.attach(directory, version, place.spec)


def pinned_indexes(task: ProbeTask, pin: Pin) -> dict[str, DimensionIndex]:
    """The indexes of the pin; a retried task verifies their files first."""
    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        task.repair(pin.versions)
    return task.attach(pin.versions)


def pinned_context(pin: Pin) -> BatchContext:
    return BatchContext(
        proctime_ms=pin.batch_timestamp_ms,
        batch_id=pin.batch,
        versions=tuple(sorted(pin.versions.items())),
    )


class TaskCounts:
    """A task's sums over its batches, and the staged file of each table."""

    def __init__(self) -> None:
        self.values = {"joined": 0, "matched": 0, "unmatched": 0, "dead_letters": 0}
        self.values |= {"records": 0, "bytes": 0}
        self.files: dict[str, StagedFile] = {}
        self.detail: dict[str, list[Any]] = {}  # JSON values for the driver

    @property
    def report(self) -> TaskReport:
        return TaskReport(self.files, self.values, self.detail)

    def read(self, records: pa.RecordBatch) -> None:
        sizes = pc.sum(pc.binary_length(records.column("value")))
        of_file = records.column(ROW).nbytes if ROW in records.schema.names else 0
        self.add("records", records.num_rows)
        self.add("bytes", of_file or sizes.as_py() or 0)

    def answered(self, batch: JoinedBatch) -> None:
        self.add("joined", batch.rows.num_rows)
        self.add("matched", batch.matched)
        self.add("unmatched", batch.unmatched)
        self.add("dead_letters", batch.dead_letters.num_rows)

    def add(self, name: str, number: int) -> None:
        self.values[name] = self.values.get(name, 0) + number

    def stage(self, name: str, file: StagedFile | None) -> None:
        if file is not None:
            self.files[name] = file


def stage_delta(
    batches: Iterator[pa.RecordBatch], *, task: BatchTask, pin: Pin, output: SharedTable
) -> Iterator[pa.RecordBatch]:
    """Join and stage the output and the dead letters as files of their tables; emits one report."""
    origin = current_origin(task.epoch, pin.batch)
    counts = TaskCounts()
    with (
        output.stage(task.kernel.output_schema, origin) as rows,
        ParquetStage(task.dead_letters, DEAD_LETTER_SCHEMA, origin) as dead,
    ):
        for batch in task.answers(batches, pin, counts):
            rows.write(batch.rows)
            dead.write(batch.dead_letters)
        counts.stage(OUTPUT, rows.finish())
        counts.stage(DEAD_LETTERS, dead.finish())
    yield counts.report.to_batch()
