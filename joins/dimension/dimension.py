"""One dimension at run time: its tables, build loop, indexes and fold."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog
from pyspark.sql import SparkSession

from joins.adapters.delta.log import INTERNAL_TABLE_PROPERTIES, DeltaLog, create_table
from joins.adapters.kafka.cluster import KafkaCluster
from joins.dimension.build_side import (
    BuildHooks,
    BuildSettings,
    BuildSide,
    BuildTask,
    CommittedBatch,
    committed_offsets,
    read_changelog_state,
    read_event_state,
    read_to,
)
from joins.dimension.changelog_topic import ChangelogTopic, first_before
from joins.dimension.fold import Fold, FoldPolicy, FoldSchedule
from joins.dimension.freshness import TableFreshness
from joins.dimension.index_keeper import IndexKeeper
from joins.kernels.changelog.digest import ChangelogEventTime, ChangelogState, Position
from joins.kernels.changelog.envelope import changelog_schema
from joins.kernels.index.index import IndexSpec
from joins.kernels.table_path import TablePath
from joins.loop import Loop, LoopGuards
from joins.plan.plan import Dimension, FileSource, TopicSource
from joins.worker.index_source import Folded, newest_fold
from joins.worker.work import Tasks
from watermark.freshness import Proof
from watermark.model import END_OF_TIME, PROCESSING_TIME, Watermark

_log = structlog.get_logger(__name__)

_STATES_KEPT = 1_000  # versions; a pinned version's index is rarely that far behind


@dataclass(frozen=True, slots=True)
class DimensionPlaces:
    """Locations of a dimension's durable data.

    With `index_is_shared` equal indexes of several jobs are stored once. Without `index_specs` no
    role looks up in an index, and each committed version is ready.
    """

    topic: str
    partitions: int
    changelog: TablePath
    current: TablePath
    index: Path
    index_specs: tuple[IndexSpec, ...]
    index_is_shared: bool = False


@dataclass(frozen=True, slots=True)
class DimensionCounts:
    """What the build side has committed since this runner started."""

    streamed_records: int = 0
    delay_ms: int | None = None


class CommittedStates:
    """The states of the newest versions; the loop's thread adds, all threads read."""

    def __init__(self) -> None:
        # one value, as other threads read version and state together
        self.newest = (0, ChangelogState())
        self._past: tuple[tuple[int, ChangelogState], ...] = ()  # by version, oldest first
        self._low_water: tuple[tuple[int, Position], ...] = ()  # by version: of what it adds
        self._known_from = 0  # what later versions add is in `_low_water`

    def read_back(self, version: int, state: ChangelogState) -> None:
        """Take `version`, of which it is not known what it and those before it have added."""
        self._known_from = version
        self.add(version, state)

    def add(self, version: int, state: ChangelogState, low_water: Position | None = None) -> None:
        if low_water is not None:
            for gone, _ in self._low_water[:-_STATES_KEPT]:
                self._known_from = max(self._known_from, gone)
            self._low_water = (*self._low_water[-_STATES_KEPT:], (version, low_water))
        self._past = (*self._past[-_STATES_KEPT:], (version, state))
        self.newest = (version, state)

    def at(self, version: int) -> ChangelogState | None:
        return next((state for number, state in reversed(self._past) if number <= version), None)

    def source_time_ms(self, version: int) -> int | None:
        """Source time of the newest change in `version`; None if there is none or unknown."""
        known = self.at(version)
        return None if known is None else known.source_ts_ms or None

    def changes(self, after: int, version: int) -> dict[str, list[int] | None]:
        """(file, pos) of the oldest change that versions behind `after` add, and of the newest.

        Empty if that is unknown.
        """
        if after < self._known_from:
            return {}
        low = [position for at, position in self._low_water if after < at <= version]
        known = self.at(version)
        high = max(known.high_water.values(), default=None) if known is not None else None
        return {
            "added": list(min(low)[1:3]) if low else None,
            "through": None if high is None else list(high[1:3]),
        }


class DimensionRuntime:
    """The build side of one dimension in one runner."""

    # reads better long: what a job does with a dimension, from its start to its end.

    is_own = True
    """True if this job commits, folds and cleans up the tables."""

    def __init__(
        self,
        dimension: Dimension,
        places: DimensionPlaces,
        task: BuildTask,
        *,
        app_id: str,
        on_watermark: Callable[[str, int, Watermark | None], None],
        topic: ChangelogTopic | None = None,
    ) -> None:
        self.dimension = dimension
        self.places = places
        self._task = task
        self.changelog = DeltaLog(places.changelog, f"{app_id}:{dimension.name}")
        self.current = DeltaLog(places.current, f"{app_id}:{dimension.name}:current")
        self.keeper = IndexKeeper(
            places.index,
            places.index_specs,
            self.changelog,
            self.current,
            is_shared=places.index_is_shared,
        )
        self.counts = DimensionCounts()
        self.freshness = TableFreshness()
        self._on_watermark = on_watermark
        self.topic = topic  # None if another job creates it
        if topic is not None:
            topic.reached = lambda: self.state.next_offsets
            topic.has_all = self._has_all
        self.states = CommittedStates()
        self._active_at_ms: dict[int, int] = {}
        self.trimmable_offsets: dict[int, int] = {}
        self._serve_index = threading.Event()
        self._fold: tuple[Fold, FoldSchedule] | None = None
        self.fold_version: int | None = None
        self.end_offsets: Mapping[int, int] | None = None  # None while unknown

    @property
    def version(self) -> int:
        return self.states.newest[0]

    @property
    def state(self) -> ChangelogState:
        return self.states.newest[1]

    def open(self) -> None:
        schema = changelog_schema(self._task.columns)
        create_table(self.places.changelog, schema, properties=INTERNAL_TABLE_PROPERTIES)
        Fold.create(self.places.current, schema)
        self.changelog.commit_epoch(self._task.epoch)
        self._read_back()

    def _read_back(self) -> None:
        version = self.changelog.version()
        if version == self.version:
            return
        state = read_changelog_state(self.changelog, version)
        offsets = committed_offsets(self.changelog, version, self.places.partitions)
        self.states.read_back(version, read_to(state, offsets))

    def keep(self, oldest: int | None) -> None:
        """Tell the job that cleans up the tables that versions from `oldest` on are needed."""

    def event_watermarks(self, version: int) -> Mapping[int, tuple[int | None, int | None]]:
        """Partition → (greatest watermark in ms, commit time of its newest records) at `version`.

        The watermark is None before the first, the time also after a restart. A bounded topic is
        at the end of time, as it is complete before any batch. SinkError if the version is gone.
        """
        known, partitions = self.states.at(version), range(self.places.partitions)
        source = self.dimension.source
        if isinstance(source, TopicSource) and source.is_bounded:  # complete before any batch
            return dict.fromkeys(partitions, (END_OF_TIME.timestamp_ms, None))
        if known is not None:
            events = known.events
        else:
            events = read_event_state(self.changelog, version, partitions)
        active = self._active_at_ms
        return {at: (events.watermarks.get(at), active.get(at)) for at in partitions}

    def proof(self, version: int) -> Proof | None:
        """What the source proves of `version`: its T and position; None without a proof."""
        known = self.states.at(version)
        committed = None if known is None else known.next_offsets
        return self.freshness.at(committed, has_ended=self._has_all())

    def channel_time(self, partition: int) -> Watermark | None:
        """`(T, true)` of a partition's committed changes; None without a proof."""
        committed = self.state.next_offsets.get(partition, 0)
        return self.freshness.channel(partition, committed, has_ended=self._has_all())

    def replay_watermarks(self) -> None:
        self._tell_watermarks(tuple(self.state.marks))

    def _tell_watermarks(self, partitions: tuple[int, ...]) -> None:
        for partition in partitions:
            if self.state.is_complete(partition):
                self._on_watermark(self.dimension.name, partition, PROCESSING_TIME)

    @property
    def complete(self) -> bool:
        return all(self.state.is_complete(p) for p in range(self.places.partitions))

    def build_loop(
        self,
        spark: SparkSession,
        settings: BuildSettings,
        guards: LoopGuards,
        rest: Callable[[], object],
        tasks: Tasks,
    ) -> Loop:
        assert self.topic is not None, "who commits the table reads its topic"
        hooks = self._hooks(guards, rest)
        side = BuildSide(spark, self._task, settings, self.changelog, hooks, self.topic, tasks)
        return side.loop()

    def _hooks(self, guards: LoopGuards, rest: Callable[[], object]) -> BuildHooks:
        return BuildHooks(
            state=lambda: self.state,
            on_start=self._look_again,
            on_commit=self._committed,
            rest=rest,
            guards=guards,
            freshness=self.freshness,
        )

    def serve_index(self) -> int:
        """Build the newest version's index and extend it per commit; returns its version."""
        self._serve_index.set()
        self.keeper.prepare(self.version)
        return self.ready_version()

    def ready_version(self) -> int:
        ready = self.keeper.ready_version
        return self.serve_index() if ready is None else ready

    def _restart_channels(self, generation: int) -> None:
        if 0 < generation < self.state.generation:
            for partition in range(self.places.partitions):
                self._on_watermark(self.dimension.name, partition, None)

    def _committed(self, batch: CommittedBatch) -> None:
        before = self.state.generation
        self._note_activity(batch.state)
        self._warn_of_times(batch.state.events)
        self.trimmable_offsets = dict(self.state.next_offsets)
        ready = self.keeper.ready_version
        known = None if ready is None else self.states.at(ready)
        if known is not None:
            self.freshness.forget_before(known.next_offsets)
        self.states.add(batch.version, batch.state, batch.low_water)
        delay_ms = self.counts.delay_ms
        if batch.source_ts_ms:
            delay_ms = max(0, time.time_ns() // 1_000_000 - batch.source_ts_ms)
        self.counts = DimensionCounts(self.counts.streamed_records + batch.streamed, delay_ms)
        if self._serve_index.is_set():
            self.keeper.prepare(batch.version)
        self._restart_channels(before)
        self._tell_watermarks(batch.marked_partitions)

    def _note_activity(self, state: ChangelogState) -> None:
        known, now_ms = self.state.next_offsets, time.time_ns() // 1_000_000
        moved = {at: now_ms for at, end in state.next_offsets.items() if known.get(at) != end}
        # replaced as a whole, as other threads read it
        self._active_at_ms = {**self._active_at_ms, **moved}

    def _warn_of_times(self, events: ChangelogEventTime) -> None:
        known, name = self.state.events, self.dimension.name
        if events.null_rowtimes > known.null_rowtimes:
            _log.warning("rows without a rowtime", dimension=name, rows=events.null_rowtimes)
        if events.future_rowtimes > known.future_rowtimes:
            _log.warning("rows ahead of the clock", dimension=name, rows=events.future_rowtimes)

    def _look_again(self) -> None:
        """A failed loop or an earlier runner may have left commits unreported."""
        before = self.state.generation
        self._read_back()
        self._restart_channels(before)
        if self._serve_index.is_set():
            self.keeper.prepare(self.version)
        self.replay_watermarks()

    def fold(self, spark: SparkSession, policy: FoldPolicy) -> int | None:
        """Fold into `current` if that pays; returns its version, None before the snapshot ends."""
        if not self.complete:
            return None
        version, state = self.states.newest
        if self._fold is None:
            key, epoch = self.dimension.primary_key, self._task.epoch
            fold = Fold(spark, self.changelog, self.current, key, epoch)
            self._fold = fold, FoldSchedule(policy, self._folded(version))
        fold, schedule = self._fold
        if schedule.is_due(state):
            self.fold_version = fold.run(version, state)
            if self.fold_version == version:
                schedule.folded(state)
        return self.fold_version

    def _folded(self, version: int) -> Folded | None:
        fold = newest_fold(self.current, version)
        if fold is None:
            return None
        self.fold_version = fold.changelog_version
        return fold.folded

    def _has_all(self) -> bool:
        source = self.dimension.source
        ends = isinstance(source, FileSource) or (
            isinstance(source, TopicSource) and source.is_bounded
        )
        return ends and self.complete

    def look_at_topic(self, cluster: KafkaCluster) -> None:
        """Read the topic's end; SourceError if the cluster does not answer."""
        if self.topic is not None:
            self.end_offsets = self.topic.look(cluster)
            return
        first = first_before(max(self.state.next_offsets.values(), default=0))
        ends = cluster.end_offsets(self.places.topic)
        self.end_offsets = {p: first + end for p, end in ends.items()}

    def lag_records(self) -> int | None:
        """Records of the changelog topic that are not committed yet; None while unknown."""
        ends = self.end_offsets
        if ends is None:
            return None
        reached = self.state.next_offsets
        starts = {p: max(first_before(end), reached.get(p, 0)) for p, end in ends.items()}
        return sum(max(0, end - starts[p]) for p, end in ends.items())
