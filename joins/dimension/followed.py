"""A dimension whose changelog another job commits: a shared table from a reading job's side.

This job reads the commits one by one, so that watermarks, versions and indexes match the other
job's. A lease names the versions that the other job must keep readable.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog
from joins.dimension.build_side import (
    BuildHooks,
    BuildSettings,
    BuildTask,
    CommittedBatch,
    committed_offsets,
    read_event_state,
    read_to,
)
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.fold import FoldPolicy
from joins.durable.leases import Lease
from joins.kernels.changelog.digest import DIGEST_COLUMNS, ChangelogDigest, ChangelogState
from joins.loop import Loop, LoopGuards, LoopSettings
from joins.plan.errors import SinkError
from joins.plan.plan import Dimension
from joins.worker.index_source import newest_fold
from joins.worker.work import Tasks
from watermark.model import Watermark


class FollowedDimension(DimensionRuntime):
    """The build side of a shared table in one job that reads it."""

    is_own = False

    def __init__(
        self,
        dimension: Dimension,
        places: DimensionPlaces,
        lease: Lease,
        *,
        app_id: str,
        on_watermark: Callable[[str, int, Watermark | None], None],
    ) -> None:
        task = BuildTask(places.topic, places.changelog, (), 0)
        super().__init__(dimension, places, task, app_id=app_id, on_watermark=on_watermark)
        self._lease = lease

    def open(self) -> None:
        self._lease.begin()
        if _is_there(self.changelog):
            self._read_back()

    def keep(self, oldest: int | None) -> None:
        self._lease.hold(self.version if oldest is None else oldest)

    def build_loop(
        self,
        spark: SparkSession,
        settings: BuildSettings,
        guards: LoopGuards,
        rest: Callable[[], object],
        tasks: Tasks,
    ) -> Loop:
        hooks = self._hooks(guards, rest, tasks)
        reader = CommitReader(self.changelog, self.places.partitions, lambda: self.version, hooks)
        name = f"follow-{self.dimension.name}"
        return Loop(spark, reader, LoopSettings(name, "build", settings.trigger_ms), guards)

    def fold(self, spark: SparkSession, policy: FoldPolicy) -> int | None:
        """Look up the newest fold, which the maintaining job makes."""
        if self.complete and _is_there(self.current):
            fold = newest_fold(self.current, self.version)
            self.fold_version = None if fold is None else fold.changelog_version
        return self.fold_version

    def _look_again(self) -> None:
        if _is_there(self.changelog):
            super()._look_again()


@dataclass(slots=True)
class CommitReader:
    """The steps of the loop: all commits since `version`, the newest read, as one batch."""

    log: DeltaLog
    partitions: int
    version: Callable[[], int]
    hooks: BuildHooks

    def recover(self) -> None:
        self.hooks.on_start()

    def close(self) -> None:
        """There is nothing to end."""

    def wait(self) -> None:
        """A look at the log costs as much as waiting would: the loop's own pace is enough."""

    def step(self) -> bool:
        """Read new commits; true if there were any. SinkError if the changelog cannot be read."""
        known = self.version()
        newest = self.log.version() if _is_there(self.log) else known
        if newest == known:
            return False
        try:
            batch = self._read(known, newest, self.hooks.state())
        except SinkError:  # only the newest version has the effect of commits that are cleaned up
            self.hooks.on_start()
            return True
        self.hooks.on_commit(batch)
        self.hooks.rest()
        return True

    def _read(self, known: int, newest: int, before: ChangelogState) -> CommittedBatch:
        digest = ChangelogDigest(before.high_water)
        files = self.log.files.files_added(known + 1, newest)
        for table in self.log.files.read_files(files, DIGEST_COLUMNS):
            for batch in table.to_batches():
                digest.count(batch)
        ends = committed_offsets(self.log, newest, self.partitions)
        state = read_to(digest.state_after(before), ends)
        events = read_event_state(self.log, newest, range(self.partitions))
        return CommittedBatch(
            version=newest,
            state=replace(state, events=events),
            marked_partitions=tuple(sorted(digest.marks)),
            streamed=digest.streamed,
            source_ts_ms=digest.source_ts_ms,
            low_water=digest.low_water,
        )


def _is_there(log: DeltaLog) -> bool:
    return has_log(log.path)
