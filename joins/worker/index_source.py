"""Sources from which a worker builds the lookup indexes of a dimension.

The first that exists: an older index on this node and the later commits; the newest fold that is
not newer, and the later commits; all rows. A fold has no tombstones, but records up to which
positions it dropped them; if a later commit repeats something older, the whole changelog is read.
"""

import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import structlog

from joins.adapters.delta.log import DeltaLog
from joins.kernels.changelog.changes import CHANGE_COLUMNS, Progress
from joins.kernels.changelog.digest import ChangelogState
from joins.kernels.index.index import (
    FoldedRows,
    IndexSpec,
    advance,
    build,
    discard_damaged,
    is_usable,
    stored_versions,
)
from joins.kernels.table_path import TablePath
from joins.plan.errors import (
    IndexBuildError,
    IndexDirectoryError,
    PinnedVersionExpiredError,
    SinkError,
)

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def on_this_node(directory: Path) -> Path:
    """Expand `{host}` and `{NAME}` (a variable); raises IndexDirectoryError if it is not set."""
    return Path(_PLACEHOLDER.sub(_value, str(directory)))


def spill_directory() -> Path:
    of_executor = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(of_executor or tempfile.gettempdir())


def _value(match: re.Match[str]) -> str:
    name = match.group(1)
    value = socket.gethostname() if name == "host" else os.environ.get(name)
    if not value:
        raise IndexDirectoryError(
            f"variable {name}, which SLUICE_INDEX_DIR names, is not set on node "
            f'"{socket.gethostname()}"',
            hint="Set it there, for instance with spark.executorEnv, or name another directory.",
        )
    return value


VERSION_KEY = "sluice.changelog_version"
_MARKS_KEY = "sluice.marks"
_HIGH_WATER_KEY = "sluice.high_water"
_RECORDS_KEY = "sluice.records"


@dataclass(frozen=True, slots=True)
class Folded:
    """Records of the changelog topic that `current` contains, and their newest generation."""

    records: int
    generation: int

    @classmethod
    def of(cls, state: ChangelogState) -> Self:
        return cls(sum(state.next_offsets.values()), state.generation)


@dataclass(frozen=True, slots=True)
class FoldedVersion:
    """A version of `current` that a fold has written, equal to `changelog_version`.

    `progress` has the watermark records up to there, and the floor; `folded` is None if an older
    commit does not say.
    """

    table_version: int
    changelog_version: int
    progress: Progress
    folded: Folded | None = None


def fold_metadata(version: int, state: ChangelogState) -> Mapping[str, Any]:
    folded = Folded.of(state)
    return {
        VERSION_KEY: version,
        _RECORDS_KEY: [folded.records, folded.generation],
        _MARKS_KEY: [[at, *mark] for at, mark in sorted(state.marks.items())],
        _HIGH_WATER_KEY: [[at, *position] for at, position in sorted(state.high_water.items())],
    }


def newest_fold(current: DeltaLog, version: int) -> FoldedVersion | None:
    """The newest fold that is not newer than changelog version `version`.

    None if there is none, if its commit has left the log, or if an older commit does not record
    which tombstones it dropped. Raises SinkError if the log cannot be read.
    """
    committed = current.batches.newest_batch(version)
    metadata = current.batches.metadata_at(committed[0]) if committed is not None else None
    if committed is None or metadata is None or _HIGH_WATER_KEY not in metadata:
        return None
    marks = {(partition, generation): at for partition, generation, at in metadata[_MARKS_KEY]}
    floor = {at: (e, f, p, r) for at, e, f, p, r in metadata[_HIGH_WATER_KEY]}
    folded = Folded(*metadata[_RECORDS_KEY]) if _RECORDS_KEY in metadata else None
    return FoldedVersion(*committed, Progress(marks, floor), folded)


_BATCH_ROWS = 131_072
_FAR_COMMITS = 256  # further behind than this, a newer fold is the better start

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DimensionTables:
    """The tables of one dimension; picklable. Commits of `current` use `<app_id>:current`."""

    changelog: TablePath
    current: TablePath
    app_id: str


class IndexSource:
    """The tables of one dimension, read only; `current` is None without a fold."""

    def __init__(self, changelog: DeltaLog, current: DeltaLog | None) -> None:
        self.changelog = changelog
        self._current = current

    @classmethod
    def of(cls, tables: DimensionTables) -> Self:
        return cls(
            DeltaLog(tables.changelog, tables.app_id),
            DeltaLog(tables.current, f"{tables.app_id}:current"),
        )

    def make(self, directory: Path, version: int, spec: IndexSpec) -> None:
        """Build the index of `version` on this node once, unless it is usable.

        Concurrent processes wait for the first. Raises IndexBuildError if the rows do not fit
        `spec`, IndexDirectoryError if the directory cannot be written, SinkError if the log or a
        file is gone.
        """
        if is_usable(directory, version, spec):
            return
        older = [usable for usable in stored_versions(directory, spec) if usable < version]
        if older and (spec.versioned is not None or self._is_near(older[-1], version)):
            try:
                changes = self._changes(older[-1], version, spec)
                advance(directory, older[-1], version, spec, changes)
                return
            except (IndexBuildError, SinkError):
                pass  # a damaged older version, or one from before the log's beginning
        self._build(directory, version, spec)

    def remake(self, directory: Path, version: int, spec: IndexSpec) -> None:
        """Read the index files of a pinned `version` and rebuild lost or damaged ones.

        Processes map the new files at their next `attach`. Raises IndexBuildError,
        IndexDirectoryError, and PinnedVersionExpiredError if the log or its files are gone.
        """
        discard_damaged(directory, version, spec)
        if not is_usable(directory, version, spec):
            with self.pinned(version):
                self._build(directory, version, spec)

    @contextmanager
    def pinned(self, version: int) -> Iterator[None]:
        """Turn SinkError into PinnedVersionExpiredError."""
        try:
            yield
        except SinkError as exc:
            raise PinnedVersionExpiredError(
                f'version {version} of "{self.changelog.path}" cannot be read any more: {exc}',
                hint="Restore the table's files from a backup; or acknowledge "
                '"pinned-version-expired" with the choice "repin", or stop the job.',
            ) from exc

    def everything(self, version: int, spec: IndexSpec) -> Iterator[pa.RecordBatch]:
        """Changelog rows up to `version` with the index's columns; raises SinkError."""
        files = self.changelog.files.files_at(version)
        for table in self.changelog.files.read_files(files, _columns(spec)):
            yield from table.to_batches(_BATCH_ROWS)

    def _is_near(self, older: int, version: int) -> bool:
        if version - older <= _FAR_COMMITS:
            return True
        try:
            return self._fold(version).changelog_version - older <= _FAR_COMMITS
        except SinkError:
            return True

    def _build(self, directory: Path, version: int, spec: IndexSpec) -> None:
        started = time.monotonic()
        made_from = "changelog" if spec.versioned is not None else "fold"
        try:
            if spec.versioned is None:
                fold = self._fold(version)
                changes = self._changes(fold.changelog_version, version, spec)
                folded = FoldedRows(self._folded(fold, spec), fold.progress)
                build(directory, version, spec, changes, fold=folded)
        except (IndexBuildError, SinkError, OSError, pa.ArrowException) as exc:
            made_from = f"changelog, for the fold cannot be used: {exc}"
        if made_from != "fold":
            build(directory, version, spec, self.everything(version, spec))
        _log.info(
            "index built",
            directory=str(directory),
            version=version,
            made_from=made_from,
            seconds=round(time.monotonic() - started, 3),
        )

    def _fold(self, version: int) -> FoldedVersion:
        """The fold to start from; raises SinkError if none can be read without Spark."""
        fold = newest_fold(self._current, version) if self._current is not None else None
        if self._current is None or fold is None:
            raise SinkError(
                f'no fold of "{self.changelog.path}" up to version {version} is known',
                hint="The first one comes after the snapshot; until then all changes are read.",
            )
        self._current.files.check_plain(fold.table_version)
        return fold

    def _folded(self, fold: FoldedVersion, spec: IndexSpec) -> Iterator[pa.RecordBatch]:
        assert self._current is not None
        files = self._current.files.files_at(fold.table_version)
        for table in self._current.files.read_files(files, _columns(spec)):
            yield from table.to_batches(_BATCH_ROWS)

    def _changes(self, after: int, last: int, spec: IndexSpec) -> Iterator[pa.RecordBatch]:
        for version in range(after + 1, last + 1):
            files = self.changelog.files.files_added(version, version)
            for table in self.changelog.files.read_files(files, _columns(spec)):
                yield from table.to_batches(_BATCH_ROWS)


def _columns(spec: IndexSpec) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*spec.schema.names, *CHANGE_COLUMNS)))
