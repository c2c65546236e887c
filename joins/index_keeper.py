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
from joins.kernels.index import IndexSpec, advance, build, usable_versions

_BATCH_ROWS = 131_072


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
