"""Keeps the lookup indexes of one dimension at its newest committed version, on this node.

The first index is built from the whole changelog; each later commit adds a segment.
Only versions whose index is usable are given to the probe, and they never go back.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from joins.adapters.delta_log import DeltaLog
from joins.errors import IndexBuildError
from joins.kernels.index import (
    IndexSpec,
    advance,
    build,
    remove_versions,
    usable_versions,
    verify,
)
from joins.kernels.manifest import manifest_path

_BATCH_ROWS = 131_072
_KEPT_VERSIONS = 16  # far more than are committed between the choice of a version and its pin


class IndexKeeper:
    """All specs (join keys) of one dimension; `prepare` comes from one thread at a time."""

    def __init__(self, directory: Path, specs: tuple[IndexSpec, ...], changelog: DeltaLog) -> None:
        self._directory = directory
        self._specs = specs
        self._changelog = changelog
        self._lock = threading.Lock()
        self._ready: int | None = None

    @property
    def ready_version(self) -> int | None:
        """The newest version that the probe may pin, None before the first build."""
        return self._ready

    def prepare(self, version: int) -> None:
        """Make the indexes of `version` usable; returns at once if they are.

        Raises:
            IndexBuildError: the index directory cannot be written.
        """
        with self._lock:
            if self._ready is not None and self._ready >= version:
                return
            for spec in self._specs:
                self._prepare_spec(spec, version)
            self._ready = version

    def restore(self, version: int) -> None:
        """Build the indexes of an older `version` anew where they are lost: a pin names it.

        Raises:
            IndexBuildError: the index directory cannot be written.
        """
        with self._lock:
            for spec in self._specs:
                try:
                    verify(self._directory, version, spec)
                except IndexBuildError:
                    home = self._directory / spec.digest
                    manifest_path(home, version).unlink(missing_ok=True)
                    build(self._directory, version, spec, self._everything(version))

    def prune(self, pinned: int | None) -> None:
        """Remove all but the newest versions and the `pinned` one, which a batch still needs."""
        with self._lock:
            found = {v for spec in self._specs for v in usable_versions(self._directory, spec)}
            keep = set(sorted(found)[-_KEPT_VERSIONS:])
            if found - keep - {pinned}:
                remove_versions(self._directory, keep | ({pinned} if pinned is not None else set()))

    def _prepare_spec(self, spec: IndexSpec, version: int) -> None:
        known = [v for v in usable_versions(self._directory, spec) if v <= version]
        if known and known[-1] == version:
            return
        if known:
            try:
                changes = self._changes(known[-1] + 1, version)
                advance(self._directory, known[-1], version, spec, changes)
                return
            except IndexBuildError:
                pass  # a damaged older version: build anew
        build(self._directory, version, spec, self._everything(version))

    def _changes(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        for version in range(first, last + 1):
            yield from self._changelog.read_commit(version).to_batches(_BATCH_ROWS)

    def _everything(self, version: int) -> Iterator[pa.RecordBatch]:
        for table in self._changelog.read_files(self._changelog.files_at(version)):
            yield from table.to_batches(_BATCH_ROWS)
