"""Indexes of versions that old pins name: attached where the runner keeps them, else built aside.

The runner's index directory is only read.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from joins.adapters.delta.log import DeltaLog
from joins.kernels.changelog.changes import CHANGE_COLUMNS
from joins.kernels.index.index import DimensionIndex, IndexSpec, build, remove_versions
from joins.kernels.local_files import OwnDirectory
from joins.lookback.history import HistoryPlaces
from joins.plan.errors import (
    IndexBuildError,
    IndexDirectoryError,
    PinnedVersionExpiredError,
    SinkError,
)
from joins.worker.probe_task import IndexPlace

_BATCH_ROWS = 131_072
_KEPT = 4


class PastIndexes(AbstractContextManager["PastIndexes"]):
    """Gives the indexes of any version that can still be read; a context manager."""

    def __init__(self, places: HistoryPlaces) -> None:
        self._places = places
        self._scratch = OwnDirectory("index")
        self._built: list[tuple[str, int]] = []
        self._changelogs = {
            name: DeltaLog(path / "changelog", f"{places.app_id}:{name}")
            for name, path in places.tables.items()
        }

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scratch.remove()

    def changelog(self, dimension: str) -> DeltaLog:
        return self._changelogs[dimension]

    def of(self, versions: Mapping[str, int]) -> dict[str, DimensionIndex]:
        """Role's alias → its index at the version of its dimension.

        Raises:
            PinnedVersionExpiredError: files of the version, or its log, are gone.
        """
        return {
            alias: self._of_role(role, versions[role.dimension])
            for alias, role in self._places.roles.items()
        }

    def _of_role(self, role: IndexPlace, version: int) -> DimensionIndex:
        try:
            return DimensionIndex.attach(role.on_node, version, role.spec)
        except (IndexBuildError, IndexDirectoryError):
            pass  # pruned, lost, or on other nodes only: the changelog has it
        directory = self._scratch.path / role.dimension
        try:
            return DimensionIndex.attach(directory, version, role.spec)
        except IndexBuildError:
            self._forget_oldest(role.dimension, directory)
        build(directory, version, role.spec, self._rows(role.dimension, version, role.spec))
        self._built.append((role.dimension, version))
        return DimensionIndex.attach(directory, version, role.spec)

    def _forget_oldest(self, dimension: str, directory: Path) -> None:
        mine = [version for name, version in self._built if name == dimension]
        if len(set(mine)) >= _KEPT:
            keep = set(mine[-(_KEPT - 1) :])
            remove_versions(directory, keep)
            self._built = [b for b in self._built if b[0] != dimension or b[1] in keep]

    def _rows(self, dimension: str, version: int, spec: IndexSpec) -> Iterator[pa.RecordBatch]:
        columns = (*spec.schema.names, *CHANGE_COLUMNS)
        for table in self.changelog_rows(dimension, version, columns):
            yield from table.to_batches(_BATCH_ROWS)

    def changelog_rows(
        self, dimension: str, version: int, columns: tuple[str, ...]
    ) -> Iterator[pa.Table]:
        """All changelog rows of `version`, one table a file.

        Raises:
            PinnedVersionExpiredError: files of the version, or its log, are gone.
        """
        log = self.changelog(dimension)
        try:
            yield from log.files.read_files(log.files.files_at(version), columns)
        except (SinkError, OSError) as exc:
            raise expired(dimension, version, exc) from exc


def expired(dimension: str, version: int, exc: Exception) -> PinnedVersionExpiredError:
    return PinnedVersionExpiredError(
        f'version {version} of dimension "{dimension}" cannot be read any more: {exc}',
        hint="Only batches whose pins are leased can be replayed; see SLUICE_REPLAY_BATCHES.",
    )
