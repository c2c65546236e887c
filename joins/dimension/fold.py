"""The background fold: a plain Delta table `current`, for `SELECT * … VERSION AS OF`.

Each fold merges the changes since the last one; the metadata of its commit has the changelog
version that `current` then equals. `joins.dimension.fold_files` decides who merges. A fold needs no
tombstones, as all earlier records have arrived: it starts once the snapshot is complete, and waits
while a later generation is copied.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from joins.adapters.delta.files import paths_of
from joins.adapters.delta.log import DeltaLog, FileActions, create_table
from joins.adapters.delta.merge import commit_settings
from joins.dimension.fold_files import FoldFiles
from joins.kernels.changelog.changes import Progress
from joins.kernels.changelog.digest import ChangelogState
from joins.kernels.changelog.fold_rows import FoldTask
from joins.kernels.probe.files import FileOrigin
from joins.kernels.table_path import TablePath, readable
from joins.plan.errors import SinkError
from joins.plan.types import quoted
from joins.worker.index_source import VERSION_KEY, Folded, fold_metadata, newest_fold

SMALL_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class FoldPolicy:
    """How far `current` may be behind."""

    # changes wait until they are this share of the rows above `SMALL_ROWS`; 0 never waits
    share: float = 0.1
    latest_s: float = 600.0  # no change waits longer


class FoldSchedule:
    """Decides when one dimension's changes since the last fold are worth a fold."""

    def __init__(
        self,
        policy: FoldPolicy,
        folded: Folded | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with an earlier runner's fold, if known; its age counts from now."""
        self._policy = policy
        self._folded = folded
        self._monotonic_s = monotonic_s
        self._folded_at_s = monotonic_s()

    def is_due(self, state: ChangelogState) -> bool:
        """True if a fold up to `state` is due; always so at first and for a new generation."""
        folded, newest = self._folded, Folded.of(state)
        if folded is None or newest.generation != folded.generation:
            return True
        if newest == folded:
            return False
        large = max(0, state.snapshot_rows - SMALL_ROWS)
        if newest.records - folded.records >= self._policy.share * large:
            return True
        return self._monotonic_s() - self._folded_at_s >= self._policy.latest_s

    def folded(self, state: ChangelogState) -> None:
        self._folded, self._folded_at_s = Folded.of(state), self._monotonic_s()


CURRENT_PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableExpiredLogCleanup": "false",
}
_FEW_ROWS = 1_000
_TASK_ROWS = 10_000_000
_SETTINGS = {  # as many tasks, and files, as `_cut` sets
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.files.maxPartitionBytes": str(1 << 30),
}
_POSITION = ("_epoch", "_file", "_pos", "_row", "_offset")


class Fold:
    """Folds one changelog into its `current`; one caller at a time."""

    def __init__(
        self,
        spark: SparkSession,
        changelog: DeltaLog,
        current: DeltaLog,
        primary_key: tuple[str, ...],
        epoch: int,
    ) -> None:
        self._spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        self._changelog = changelog
        self._current = current
        self._primary_key = primary_key
        self._epoch = epoch

    @staticmethod
    def create(path: TablePath, changelog_schema: pa.Schema) -> None:
        create_table(path, changelog_schema, properties=CURRENT_PROPERTIES)

    def folded_version(self) -> int | None:
        return folded_version(self._current)

    def run(self, version: int, state: ChangelogState) -> int | None:
        """Fold up to `version`, unless a generation is incomplete; returns what `current` equals.

        `state` is the changelog's state at `version`; `r` records behind the mark of their or a
        later generation are ignored. None if nothing was ever folded.
        """
        folded = self.folded_version()
        if folded is not None and folded >= version:
            return folded
        files = self._changelog.files.files_added((folded or 0) + 1, version)
        complete = min((generation for generation, _ in state.marks.values()), default=1)
        if any(_newest_generation(file) > complete for file in files):
            return folded
        if files and not self._changes_nothing(files, folded, complete):
            metadata = fold_metadata(version, state)
            if self._fold_files(files, state.marks, complete, metadata):
                return version
            self._require_directory()
            self._cut(state.snapshot_rows)
            newest = self._newest(files, state.marks)
            self._merge(newest, complete, metadata)
        return version

    def _require_directory(self) -> None:
        if not isinstance(self._current.path, Path):
            raise SinkError(
                f'delta table "{self._current.path}" cannot be folded without spark, which does '
                "not commit to object stores",
                hint="It is tried again; the runner's log says why the process of the fold failed.",
            )

    def _cut(self, rows: int) -> None:
        """Use half of the cores: a task keeps its core from other queries until it ends."""
        half = max(1, self._spark.sparkContext.defaultParallelism // 2)
        tasks = str(max(half, rows // _TASK_ROWS))
        self._spark.conf.set("spark.sql.shuffle.partitions", tasks)
        self._spark.conf.set("spark.sql.files.minPartitionNum", tasks)

    def _changes_nothing(self, files: list[TablePath], folded: int | None, complete: int) -> bool:
        """True if a merge changes nothing. A newer generation's watermarks remove older rows."""
        fold = None if folded is None else newest_fold(self._current, folded)
        if fold is None:
            return False
        partitions = len({partition for partition, _ in fold.progress.watermarks})
        if complete != fold.progress.complete_generation(partitions):
            return False
        return all(_has_only_watermarks(file) for file in files)

    def _newest(self, files: list[TablePath], marks: Mapping[int, tuple[int, int]]) -> DataFrame:
        changes = self._spark.read.parquet(*map(str, files)).where(f.col("_op") != "w")
        for partition, (generation, offset) in marks.items():
            zombie = (
                (f.col("_partition") == partition)
                & (f.col("_op") == "r")
                & (f.col("_generation") <= generation)
                & (f.col("_offset") > offset)
            )
            changes = changes.where(~zombie)
        order = [f.col(name).desc() for name in _POSITION]
        key = [f.col(quoted(name)) for name in self._primary_key]
        window = Window.partitionBy(*key).orderBy(*order)
        ranked = changes.withColumn("_rank", f.row_number().over(window))
        return ranked.where(f.col("_rank") == 1).drop("_rank")

    def _fold_files(
        self,
        files: list[TablePath],
        marks: Mapping[int, tuple[int, int]],
        complete: int,
        metadata: Mapping[str, Any],
    ) -> bool:
        table = self._current.versions.fresh()
        paths = self._current.versions.of(table.at, paths_of)
        if paths and not self._current.writer.takes_entries(table):
            return False
        progress = Progress({(at, generation): last for at, (generation, last) in marks.items()})
        current = [self._current.path / unquote(path) for path in paths]
        task = FoldTask(files, self._primary_key, progress, complete, current)
        version = metadata[VERSION_KEY]
        origin = FileOrigin(self._epoch, version, 0, 0)
        staged = FoldFiles(task, self._current.path, origin).write_aside()
        if staged is None:
            return False
        replaced = [paths[at] for at in staged.rewritten]
        change = FileActions(staged.added, replaced, changed=staged.changed, of_version=table.at)
        self._current.commit_change(version, self._epoch, change, metadata)
        return True

    def _merge(self, changes: DataFrame, complete: int, metadata: Mapping[str, Any]) -> None:
        """Merge each key's newest record; records of generations before `complete` are deletes."""
        same_key = " AND ".join(f"t.{quoted(n)} = s.{quoted(n)}" for n in self._primary_key)
        place = "struct({0}._epoch, {0}._file, {0}._pos, {0}._row, {0}._offset)"
        newer = f"{place.format('s')} > {place.format('t')}"
        gone = f"(s._op = 'd' OR s._generation < {complete})"
        values: dict[str, str | Column] = {
            quoted(name): f"s.{quoted(name)}" for name in changes.columns
        }
        merge = (
            DeltaTable.forPath(self._spark, str(self._current.path))
            .alias("t")
            .merge(changes.alias("s"), same_key)
            .whenMatchedDelete(condition=f"{gone} AND {newer}")
            .whenMatchedUpdate(condition=newer, set=values)
            .whenNotMatchedInsert(condition=f"NOT {gone}", values=values)
        )
        if complete > 1:
            merge = merge.whenNotMatchedBySourceDelete(condition=f"t._generation < {complete}")
        # The metadata is for users and for indexes built from the fold; the transaction outlives
        # the log's clean-up.
        with commit_settings(self._spark, self._current.app_id, metadata[VERSION_KEY], metadata):
            merge.execute()


def _has_only_watermarks(file: TablePath) -> bool:
    with pq.ParquetFile(readable(file)) as rows:
        if rows.metadata.num_rows > _FEW_ROWS:
            return False
        return set(rows.read(["_op"]).column("_op").to_pylist()) <= {"w"}


def folded_version(current: DeltaLog) -> int | None:
    """The changelog version that `current` equals; older tables have it in commit metadata only."""
    folded = current.batches.last_batch()
    if folded is not None:
        return folded
    for version in range(current.version(), current.versions.oldest_entry() - 1, -1):
        metadata = current.batches.metadata_at(version) or {}
        if VERSION_KEY in metadata:
            return int(metadata[VERSION_KEY])
    return None


def _newest_generation(file: TablePath) -> int:
    rows = pq.read_table(readable(file), columns=["_generation"], partitioning=None)
    return int(pc.max(rows.column(0)).as_py() or 0)
