"""States of a dimension: its versions that still exist, and its rows at each of them.

Rows are read in the order of their primary key, a page at a time: the key columns of all files and
the rows of the page's keys. Nothing is written, and no runner is needed.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog
from joins.dimension.changelog_scan import IS_MARK, ChangelogScan, Key, KeyWalk, rows_of_keys
from joins.kernels.changelog.changes import DELETED, GENERATION, Progress, read_changes
from joins.kernels.table_path import TablePath
from joins.plan.errors import SinkError, UnknownVersionError
from joins.plan.plan import Dimension

VISIBLE = "_visible"


@dataclass(frozen=True, slots=True)
class PageLimit:
    """Where a page ends, whichever comes first; its first row is always given.

    Attributes:
        bytes: of its rows in memory.
        seconds: after them no further keys are looked at.
    """

    rows: int
    bytes: int = 4 << 20
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class State:
    """What a version of the changelog consists of.

    Attributes:
        generation: the complete one whose rows are visible, -1 before the first.
        complete: a generation is complete, and no newer one is being copied.
    """

    version: int
    files: tuple[TablePath, ...]
    progress: Progress
    generation: int
    complete: bool


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows in the order of their keys.

    Attributes:
        rows: the dimension's columns, `_source_ts`, the position, `_generation`.
        next_after: the key behind which the next page begins, None after the last page.
    """

    rows: pa.Table
    next_after: Key | None


class DimensionStates:
    """Reads the states of one dimension.

    Args:
        partitions: of its changelog topic.
    """

    def __init__(self, changelog: DeltaLog, dimension: Dimension, partitions: int) -> None:
        self.log = changelog
        self.dimension = dimension
        self.scan = ChangelogScan(dimension, partitions)

    def newest(self) -> int:
        """The newest committed version.

        Raises:
            UnknownVersionError: the changelog is not there yet.
        """
        if not has_log(self.log.path):
            raise UnknownVersionError(
                f'dimension "{self.dimension.name}" has no version yet',
                hint="Its runner has not created it; look again when the job is in SNAPSHOT.",
            )
        return self.log.version()

    def oldest(self) -> int:
        """The oldest version that can be read; then all newer ones can be, too."""
        low, high = self.log.versions.oldest_version(), self.newest()
        while low < high:
            middle = (low + high) // 2
            if self._is_readable(middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_readable(self, version: int) -> bool:
        try:
            return all(file.exists() for file in self.log.files.files_at(version))
        except SinkError:
            return False

    def at(self, version: int | None = None) -> State:
        """The state at `version`, by default the newest.

        Raises:
            UnknownVersionError: there is no such version yet.
            VersionExpiredError: its log or its files are gone.
        """
        newest = self.newest()
        if version is not None and version > newest:
            raise UnknownVersionError(
                f'dimension "{self.dimension.name}" has versions up to {newest}, not {version}',
                hint="Leave the version out for the newest one.",
            )
        number = newest if version is None else version
        try:
            files = tuple(sorted(self.log.files.files_at(number), key=str))
        except SinkError as exc:
            raise self.scan.expired(exc.message) from exc
        return self._state(number, files)

    def _state(self, version: int, files: tuple[TablePath, ...]) -> State:
        progress = Progress()
        for marks in self.scan.rows(files, ("_partition", GENERATION, "_offset"), IS_MARK):
            progress = progress.with_records(pa.Table.from_batches([marks]))
        generation = progress.complete_generation(self.scan.spec.partitions)
        newer = self.scan.rows(files, (GENERATION,), pc.field(GENERATION) > generation)
        copying = any(batch.num_rows for batch in newer)
        return State(version, files, progress, generation, generation >= 0 and not copying)

    def records(self, state: State, keys: pa.Table) -> pa.Table:
        """The newest record of each of `keys` that has one, by key.

        `_visible` tells those that are rows of the dimension from those that were deleted, or that
        a newer copy of the table has not brought again.
        """
        changes = self.scan.of_keys(state.files, keys)
        newest = read_changes(changes, self.scan.spec, state.progress).rows
        names = self.scan.key
        if len(names) > 1:  # so far each column was looked at by itself
            newest = rows_of_keys(newest, keys.select(names))
        newest = newest.sort_by([(name, "ascending") for name in names])
        return with_visibility(newest, state.generation)

    def rows(self, state: State, keys: pa.Table) -> pa.Table:
        records = self.records(state, keys)
        return records.filter(records.column(VISIBLE))

    def page(self, state: State, after: Key | None, limit: PageLimit) -> RowPage:
        """The rows behind the key `after`."""
        parts: list[pa.Table] = []
        rows = weight = 0
        walk = KeyWalk(self.scan, state.files, after, limit.seconds)
        for keys in walk:
            parts.append(self.rows(state, keys))
            walk.weigh(parts[-1].nbytes)
            rows, weight = rows + parts[-1].num_rows, weight + parts[-1].nbytes
            if rows > limit.rows or weight > limit.bytes:
                break
        table = pa.concat_tables([self.no_rows(), *parts])
        kept = _within(table, limit)
        if kept.num_rows < table.num_rows:
            return RowPage(kept, self.scan.last_key(kept))
        return RowPage(kept, walk.position)

    def no_rows(self) -> pa.Table:
        nothing = read_changes((), self.scan.spec, Progress()).rows
        return nothing.append_column(VISIBLE, pa.chunked_array([pa.array([], pa.bool_())]))


def with_visibility(newest: pa.Table, generation: int) -> pa.Table:
    gone = pc.or_(newest.column(DELETED), pc.less(newest.column(GENERATION), generation))
    return newest.append_column(VISIBLE, pc.invert(gone))


def _within(rows: pa.Table, limit: PageLimit) -> pa.Table:
    """The first rows that are within the limit; one at least."""
    rows = rows.slice(0, limit.rows)
    if rows.nbytes <= limit.bytes or rows.num_rows < 2:
        return rows
    sizes = [rows.slice(at, 1).nbytes for at in range(rows.num_rows)]
    return rows.slice(0, max(1, int((np.cumsum(sizes) <= limit.bytes).sum())))
