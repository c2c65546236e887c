"""Keeps the lookup indexes of one dimension at its newest committed version, on this node.

The first index is built from the whole changelog; each later commit adds a segment.
Only versions whose index is usable are given to the probe, and they never go back.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joins.adapters.delta_log import DeltaLog
from joins.errors import (
    IndexBuildError,
    IndexDiskFullError,
    PinnedVersionExpiredError,
    SinkError,
)
from joins.kernels.index import (
    IndexSpec,
    advance,
    build,
    remove_versions,
    usable_versions,
    verify,
)
from joins.kernels.manifest import manifest_path
from joins.kernels.room import free_bytes

_BATCH_ROWS = 131_072
_RETRY_S = 60.0
_KEPT_VERSIONS = 16  # far more than are committed between the choice of a version and its pin


@dataclass(frozen=True, slots=True)
class _Full:
    """A build that had no room.

    Attributes:
        free_bytes: what was free when it failed.
        retry_at: from then on (monotonic seconds) it is tried whatever is free.
    """

    error: IndexDiskFullError
    free_bytes: int
    retry_at: float

    def may_retry(self, directory: Path) -> bool:
        """Whether room was made since, or a minute has passed: quotas do not show what is free."""
        needed = self.error.needed_bytes
        made = needed is not None and self.free_bytes < needed <= free_bytes(directory)
        return made or time.monotonic() >= self.retry_at


class IndexKeeper:
    """All specs (join keys) of one dimension; `prepare` comes from one thread at a time."""

    def __init__(self, directory: Path, specs: tuple[IndexSpec, ...], changelog: DeltaLog) -> None:
        self._directory = directory
        self._specs = specs
        self._changelog = changelog
        self._lock = threading.Lock()
        self._ready: int | None = None
        self._full: _Full | None = None

    @property
    def ready_version(self) -> int | None:
        """The newest version that the probe may pin, None before the first build."""
        return self._ready

    def prepare(self, version: int) -> None:
        """Make the indexes of `version` usable; returns at once if they are.

        Raises:
            IndexBuildError: the index directory cannot be written.
            IndexDiskFullError: it has no room; asked again, nothing is read until it may have.
        """
        with self._lock:
            if self._ready is not None and self._ready >= version:
                return
            with self._room():
                for spec in self._specs:
                    self._prepare_spec(spec, version)
            self._ready = version

    def restore(self, version: int) -> None:
        """Read the indexes of a pinned `version` and build anew what is lost or damaged on disk.

        Whoever has the old files mapped maps the new ones at its next `attach`.

        Raises:
            IndexBuildError: the index directory cannot be written.
            IndexDiskFullError: it has no room.
            PinnedVersionExpiredError: it must be built, and its log or files are gone.
        """
        with self._lock:
            for spec in self._specs:
                try:
                    verify(self._directory, version, spec)
                except IndexBuildError:
                    home = self._directory / spec.digest
                    manifest_path(home, version).unlink(missing_ok=True)
                    with self._room():
                        rows = pinned_rows(self._changelog, version)
                        build(self._directory, version, spec, rows)

    def oldest_available(self, at_least: int) -> int:
        """The oldest version from `at_least` on that can be read.

        Raises:
            PinnedVersionExpiredError: there is none.
        """
        newest = self._changelog.version()
        for version in range(max(at_least, self._changelog.oldest_version()), newest + 1):
            try:
                if all(path.exists() for path in self._changelog.files_at(version)):
                    return version
            except SinkError:
                continue  # in the middle of a clean-up that was interrupted
        raise PinnedVersionExpiredError(
            f'no version from {at_least} to {newest} of "{self._changelog.path}" can be read',
            hint="Restore the table's data files from a backup, or submit the job anew.",
        )

    def prune(self, pinned: int | None) -> None:
        """Remove all but the newest versions and the `pinned` one, which a batch still needs."""
        with self._lock:
            found = {v for spec in self._specs for v in usable_versions(self._directory, spec)}
            keep = set(sorted(found)[-_KEPT_VERSIONS:])
            if found - keep - {pinned}:
                remove_versions(self._directory, keep | ({pinned} if pinned is not None else set()))

    @contextmanager
    def _room(self) -> Iterator[None]:
        """A build reads the whole changelog: one that had no room is not repeated in vain."""
        if self._full is not None and not self._full.may_retry(self._directory):
            raise self._full.error.with_traceback(None)
        try:
            yield
        except IndexDiskFullError as error:
            free = free_bytes(self._directory)
            self._full = _Full(error, free, time.monotonic() + _RETRY_S)
            raise
        self._full = None

    def _prepare_spec(self, spec: IndexSpec, version: int) -> None:
        known = [v for v in usable_versions(self._directory, spec) if v <= version]
        if known and known[-1] == version:
            return
        if known:
            try:
                changes = self._changes(known[-1] + 1, version)
                advance(self._directory, known[-1], version, spec, changes)
                return
            except IndexDiskFullError:
                raise
            except (IndexBuildError, SinkError):
                pass  # a damaged older version, or one from before the log's beginning
        build(self._directory, version, spec, _everything(self._changelog, version))

    def _changes(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        for version in range(first, last + 1):
            yield from self._changelog.read_commit(version).to_batches(_BATCH_ROWS)


def _everything(changelog: DeltaLog, version: int) -> Iterator[pa.RecordBatch]:
    for table in changelog.read_files(changelog.files_at(version)):
        yield from table.to_batches(_BATCH_ROWS)


def pinned_rows(changelog: DeltaLog, version: int) -> Iterator[pa.RecordBatch]:
    """All rows of an older `version` of a changelog that a pin names.

    Raises:
        PinnedVersionExpiredError: the log or a file of this version is gone.
    """
    try:
        yield from _everything(changelog, version)
    except SinkError as exc:
        raise PinnedVersionExpiredError(
            f'version {version} of "{changelog.path}" cannot be read any more: {exc}',
            hint="Restore the table's files from a backup; or acknowledge "
            '"pinned-version-expired" with the choice "repin", or stop the job.',
        ) from exc
