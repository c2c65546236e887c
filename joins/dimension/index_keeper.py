"""Keeps the lookup indexes of one dimension at its newest committed version, on this node.

The first index is built from the fold or the changelog; each later commit adds a segment. The probe
gets only versions with a usable index, and they never go back.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from joins.adapters.delta.log import DeltaLog
from joins.kernels.index.index import (
    KEPT_FOR_OTHERS,
    IndexSpec,
    remove_older,
    remove_versions,
    stored_versions,
)
from joins.kernels.index.lock import free_bytes
from joins.plan.errors import IndexDiskFullError, PinnedVersionExpiredError, SinkError
from joins.worker.index_source import IndexSource

_RETRY_S = 60.0
_KEPT_VERSIONS = 16  # far more commits than happen between the choice of a version and its pin


@dataclass(frozen=True, slots=True)
class _Full:
    """A build that had no room: free space then, and the next attempt in monotonic seconds."""

    error: IndexDiskFullError
    free_bytes: int
    retry_at: float

    def may_retry(self, directory: Path) -> bool:
        """True once there is room or a minute has passed: quotas do not show in the free space."""
        needed = self.error.needed_bytes
        made = needed is not None and self.free_bytes < needed <= free_bytes(directory)
        return made or time.monotonic() >= self.retry_at


class IndexKeeper:
    """All specs (join keys) of one dimension; one thread at a time calls `prepare`.

    With `is_shared` other jobs keep indexes in this directory, too, and equal ones are built once.
    New builds leave out row versions that end before `needed_from_ms`.
    """

    def __init__(
        self,
        directory: Path,
        specs: tuple[IndexSpec, ...],
        changelog: DeltaLog,
        current: DeltaLog | None = None,
        *,
        is_shared: bool = False,
    ) -> None:
        self._directory = directory
        self._is_shared = is_shared
        self._specs = specs
        self._changelog = changelog
        self._source = IndexSource(changelog, current)
        self._lock = threading.Lock()
        self._ready: int | None = None
        self._full: _Full | None = None
        self.needed_from_ms: int | None = None

    @property
    def ready_version(self) -> int | None:
        return self._ready

    def trim_to(self, ms: int) -> None:
        """No later record reads a row version that ends at `ms` or before; irrevocable.

        Compaction and merges drop them over time; leased versions of the changelog keep theirs.
        """
        known = self.needed_from_ms
        self.needed_from_ms = ms if known is None else max(known, ms)

    def prepare(self, version: int) -> None:
        """Make the indexes of `version` usable; returns at once if they are. IndexDirectoryError.

        IndexDiskFullError without room: a repeated call then reads nothing until there may be room.
        """
        with self._lock:
            if self._ready is not None and self._ready >= version:
                return
            with self._room():
                for spec in self._specs:
                    needed = replace(spec, needed_from_ms=self.needed_from_ms)
                    self._source.make(self._directory, version, needed)
            self._ready = version

    def restore(self, version: int) -> None:
        """Load a pinned `version`, rebuild damage; as `prepare`, and PinnedVersionExpiredError."""
        with self._lock:
            for spec in self._specs:
                with self._room():
                    self._source.remake(self._directory, version, spec)

    def oldest_available(self, at_least: int) -> int:
        """The oldest readable version from `at_least` on, or PinnedVersionExpiredError."""
        newest = self._changelog.version()
        for version in range(max(at_least, self._changelog.versions.oldest_version()), newest + 1):
            try:
                if all(path.exists() for path in self._changelog.files.files_at(version)):
                    return version
            except SinkError:
                continue  # a clean-up was interrupted in the middle
        raise PinnedVersionExpiredError(
            f'no version from {at_least} to {newest} of "{self._changelog.path}" can be read',
            hint="Restore the table's data files from a backup, or submit the job again.",
        )

    def prune(self, pinned: int | None) -> None:
        """Remove all but the newest versions and the `pinned` one, which a batch still needs."""
        with self._lock:
            if self._is_shared:
                self._prune_shared(pinned)
                return
            versions = {v for spec in self._specs for v in stored_versions(self._directory, spec)}
            keep = set(sorted(versions)[-_KEPT_VERSIONS:])
            if versions - keep - {pinned}:
                remove_versions(self._directory, keep | ({pinned} if pinned is not None else set()))

    def _prune_shared(self, pinned: int | None) -> None:
        """Keep what only other jobs have; of equal indexes, keep what a lagging job may need."""
        for spec in self._specs:
            versions = stored_versions(self._directory, spec)
            if len(versions) > KEPT_FOR_OTHERS:
                oldest = versions[-KEPT_FOR_OTHERS]
                remove_older(
                    self._directory, oldest if pinned is None else min(oldest, pinned), spec
                )

    @contextmanager
    def _room(self) -> Iterator[None]:
        """A build reads whole tables: one that had no room waits until it may have."""
        if self._full is not None and not self._full.may_retry(self._directory):
            raise self._full.error.with_traceback(None)
        try:
            yield
        except IndexDiskFullError as error:
            free = free_bytes(self._directory)
            self._full = _Full(error, free, time.monotonic() + _RETRY_S)
            raise
        self._full = None
