"""One dimension at run time: its tables, its build query, its indexes and its fold."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from joins.adapters.delta_log import OWN_TABLE_PROPERTIES, DeltaLog, create_table
from joins.build_side import (
    PROCESSING_TIME,
    BuildHooks,
    BuildSettings,
    BuildSide,
    BuildTask,
    CommittedBatch,
    read_changelog_state,
)
from joins.failpoints import Failpoints
from joins.fold import Fold
from joins.index_keeper import IndexKeeper
from joins.kernels.digest import ChangelogState
from joins.kernels.envelope import changelog_schema
from joins.kernels.index import IndexSpec
from joins.plan import Dimension
from watermark.model import Watermark


@dataclass(frozen=True, slots=True)
class DimensionPlaces:
    """Where a dimension's durable things are."""

    topic: str
    partitions: int
    changelog: Path
    current: Path
    index: Path
    index_specs: tuple[IndexSpec, ...]


@dataclass(slots=True)
class DimensionCounts:
    """What the build side has committed since this runner started, for the status."""

    records: int = 0
    streamed_records: int = 0
    snapshot_rows: int = 0
    delay_ms: int | None = None
    next_offsets: dict[int, int] = field(default_factory=dict)


class DimensionRuntime:
    """The build side of one dimension in one runner."""

    def __init__(
        self,
        dimension: Dimension,
        places: DimensionPlaces,
        task: BuildTask,
        *,
        app_id: str,
        on_watermark: Callable[[str, int, Watermark], None],
    ) -> None:
        self.dimension = dimension
        self.places = places
        self._task = task
        self.changelog = DeltaLog(places.changelog, f"{app_id}:{dimension.name}")
        self.current = DeltaLog(places.current, f"{app_id}:{dimension.name}:current")
        self.keeper = IndexKeeper(places.index, places.index_specs, self.changelog)
        self.counts = DimensionCounts()
        self._on_watermark = on_watermark
        self._version = 0
        self._state = ChangelogState()
        self._trimmable: dict[int, int] = {}
        self._serve_index = threading.Event()
        self._fold_lock = threading.Lock()
        self.fold_version: int | None = None
        self.end_offsets: dict[int, int] = {}

    @property
    def version(self) -> int:
        """The newest committed version of the changelog."""
        return self._version

    def open(self) -> None:
        """Create the tables, fence older runners and read the committed state back."""
        schema = changelog_schema(self._task.columns)
        create_table(self.places.changelog, schema, properties=OWN_TABLE_PROPERTIES)
        Fold.create(self.places.current, schema)
        self.changelog.commit_epoch(self._task.epoch)
        self._version = self.changelog.version()
        self._state = read_changelog_state(self.changelog, self._version)
        self.counts.snapshot_rows = self._state.snapshot_rows
        self.counts.next_offsets = dict(self._state.next_offsets)

    def replay_watermarks(self) -> None:
        """Give the committed watermarks to the valve again, after a restart."""
        for partition in self._state.marks:
            self._on_watermark(self.dimension.name, partition, PROCESSING_TIME)

    @property
    def complete(self) -> bool:
        """Whether each channel's watermark is committed."""
        return len(self._state.marks) >= self.places.partitions

    def start_build(
        self,
        spark: SparkSession,
        settings: BuildSettings,
        failpoints: Failpoints,
        *,
        on_error: Callable[[Exception], None],
    ) -> StreamingQuery:
        """Start the streaming query that appends to the changelog."""
        hooks = BuildHooks(
            state=lambda: self._state,
            on_commit=self._committed,
            on_error=on_error,
            failpoints=failpoints,
        )
        side = BuildSide(spark, self._task, settings, self.changelog, hooks)
        return side.start()

    def serve_index(self) -> int:
        """Build the index of the newest version, and from now on advance it with each commit.

        Returns:
            The version that is ready.
        """
        self._serve_index.set()
        self.keeper.prepare(self._version)
        return self.ready_version()

    def ready_version(self) -> int:
        """The newest version that the probe may pin."""
        ready = self.keeper.ready_version
        return self.serve_index() if ready is None else ready

    def _committed(self, batch: CommittedBatch) -> None:
        self._trimmable = dict(self._state.next_offsets)
        self._state = batch.state
        self._version = batch.version
        self.counts.records += batch.records
        self.counts.streamed_records += batch.streamed
        self.counts.snapshot_rows = batch.state.snapshot_rows
        self.counts.next_offsets = dict(batch.state.next_offsets)
        if batch.source_ts_ms:
            self.counts.delay_ms = max(0, time.time_ns() // 1_000_000 - batch.source_ts_ms)
        if self._serve_index.is_set():
            self.keeper.prepare(batch.version)
        for partition in batch.marked_partitions:
            self._on_watermark(self.dimension.name, partition, PROCESSING_TIME)

    def fold(self, fold: Fold) -> int | None:
        """Fold what is committed into `current`; None before the snapshot is complete."""
        if not self.complete:
            return None
        with self._fold_lock:
            self.fold_version = fold.run(self._version, self._state.marks)
        return self.fold_version

    def lag_records(self) -> int:
        """Records of the changelog topic that are not committed yet."""
        ends = self.end_offsets
        return sum(max(0, end - self.counts.next_offsets.get(p, 0)) for p, end in ends.items())

    def trimmable_offsets(self) -> dict[int, int]:
        """Partition → start of the last committed batch: nothing below is read again."""
        return self._trimmable
