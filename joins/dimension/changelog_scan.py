"""Reads rows and keys of a changelog piece by piece; memory depends on the request only."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.delta.entries import has_log
from joins.adapters.delta.log import DeltaLog
from joins.kernels.changelog.changes import (
    CHANGE_COLUMNS,
    DELETED,
    GENERATION,
    Progress,
    read_changes,
)
from joins.kernels.expressions.casts import whole
from joins.kernels.index.segment import IndexSpec
from joins.kernels.table_path import TablePath, dataset_of
from joins.plan.errors import SinkError, UnknownVersionError, VersionExpiredError
from joins.plan.plan import Dimension, Field
from joins.plan.types import SqlType, TypeName, arrow_type
from watermark.errors import SluiceError

SOURCE_TIME = "_source_ts"
IS_MARK = pc.field("_op") == "w"
NO_MARK = pc.field("_op") != "w"
Key = tuple[pa.Scalar, ...]
_SHORT = ("_partition", "_epoch", GENERATION)
_BATCH_ROWS = 65_536
_ROW = "__row"
_FIRST_KEYS = 256
_MOST_KEYS = 16_384
_LIGHT_BYTES = 1 << 20


class ChangelogScan:
    """Reads rows from any files of a dimension's changelog, whose topic has `partitions`."""

    def __init__(self, dimension: Dimension, partitions: int) -> None:
        self._name = dimension.name
        self.key = list(dimension.primary_key)
        source_time = Field(SOURCE_TIME, SqlType(TypeName.BIGINT))
        fields = (*dimension.fields, source_time)
        self.spec = IndexSpec(dimension.primary_key, dimension.primary_key, fields, partitions)
        kinds = {"_op": pa.string(), **dict.fromkeys(_SHORT, pa.int32())}
        meta = [pa.field(name, kinds.get(name, pa.int64())) for name in CHANGE_COLUMNS]
        self._schema = pa.schema([*self.spec.schema, *meta])

    @property
    def columns(self) -> list[str]:
        return list(self._schema.names)

    def empty(self, columns: Sequence[str]) -> pa.Table:
        return pa.schema([self._schema.field(name) for name in columns]).empty_table()

    def rows(
        self, files: Sequence[TablePath], columns: Sequence[str], where: pc.Expression
    ) -> Iterator[pa.RecordBatch]:
        """`columns` where `where` is true; VersionExpiredError, SinkError (damaged file)."""
        if not files:
            return
        try:
            dataset = dataset_of(files, self._schema)
            scanner = dataset.scanner(
                columns={name: _of_source(name) for name in columns},
                filter=where,
                batch_size=_BATCH_ROWS,
                batch_readahead=1,
                fragment_readahead=1,
            )
            yield from scanner.to_batches()
        except FileNotFoundError as exc:
            raise self.expired(str(exc)) from exc
        except SluiceError:  # a store's error says what is wrong
            raise
        except (OSError, pa.ArrowException) as exc:
            raise SinkError(
                f'changelog of dimension "{self._name}" cannot be read: {exc}',
                hint="A file of it was changed from outside; restore it, or submit the job again.",
            ) from exc

    def expired(self, why: str) -> VersionExpiredError:
        return VersionExpiredError(
            f'a version of dimension "{self._name}" is not kept any more: {why}',
            hint="Choose a newer one; the list of the job's dimensions names the oldest version.",
        )

    def of_keys(self, files: Sequence[TablePath], keys: pa.Table) -> Iterator[pa.RecordBatch]:
        return self.rows(files, self.columns, NO_MARK & self.have(keys))

    def have(self, keys: pa.Table) -> pc.Expression:
        return reduce(and_, (pc.field(n).isin(whole(keys.column(n))) for n in self.key))

    def keys_behind(self, files: Sequence[TablePath], after: Key | None, count: int) -> pa.Table:
        """The `count` smallest keys after `after` in `files`, deleted ones included."""
        where = NO_MARK if after is None else NO_MARK & _behind(self.key, after)
        kept = pa.schema([self._schema.field(name) for name in self.key]).empty_table()
        bound: pa.Scalar | None = None
        for batch in self.rows(files, self.key, where):
            positions = pa.Table.from_batches([batch])
            if bound is not None:
                positions = positions.filter(pc.less_equal(positions.column(0), bound))
            kept = pa.concat_tables([kept, positions])
            if kept.num_rows > 2 * count + _BATCH_ROWS:
                kept = self._smallest(kept, count)
                bound = kept.column(0)[-1] if kept.num_rows == count else None
        return self._smallest(kept, count)

    def _smallest(self, keys: pa.Table, count: int) -> pa.Table:
        distinct = keys.group_by(self.key).aggregate([]).select(self.key)
        return distinct.sort_by([(name, "ascending") for name in self.key]).slice(0, count)

    def last_key(self, rows: pa.Table) -> Key:
        return tuple(rows.column(name)[-1] for name in self.key)


class KeyWalk:
    """Walks the keys of some files in order, in chunks that grow while they are light.

    Begins after the key `after`; after `seconds` no further chunk begins. `position` is the last
    key that was given, None after the last one.
    """

    def __init__(
        self, scan: ChangelogScan, files: Sequence[TablePath], after: Key | None, seconds: float
    ) -> None:
        self._scan = scan
        self._files = files
        self._end = time.monotonic() + seconds
        self._count = _FIRST_KEYS
        self.position = after

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            keys = self._scan.keys_behind(self._files, self.position, self._count)
            is_last = keys.num_rows < self._count
            self.position = None if is_last else self._scan.last_key(keys)
            if keys.num_rows:
                yield keys
            if is_last or time.monotonic() > self._end:
                return

    def weigh(self, size: int) -> None:
        if size < _LIGHT_BYTES:
            self._count = min(2 * self._count, _MOST_KEYS)


def _of_source(name: str) -> pc.Expression:
    """The column; a row of a copy has the time of the copy, which is no time of its source."""
    column = pc.field(name)
    if name != SOURCE_TIME:
        return column
    return pc.if_else(pc.field("_op") == "r", pa.scalar(None, pa.int64()), column)


def key_table(dimension: Dimension, columns: Sequence[pa.Array]) -> pa.Table:
    kinds = {item.name: arrow_type(item.type) for item in dimension.fields}
    schema = pa.schema([(name, kinds[name]) for name in dimension.primary_key])
    return pa.table(list(columns), schema=schema)


def rows_of_keys(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The `rows` with one of `keys`, in order.

    Only keys are joined, as Arrow joins no nested columns.
    """
    names = keys.column_names
    numbers = pa.array(np.arange(rows.num_rows))
    numbered = rows.select(names).append_column(_ROW, numbers)
    row_numbers = numbered.join(keys, names, join_type="left semi").column(_ROW)
    return rows.take(whole(row_numbers).sort())


def _behind(names: Sequence[str], after: Key) -> pc.Expression:
    """Keys that are greater than `after`, compared column by column."""
    terms = []
    for at, name in enumerate(names):
        equal = [pc.field(n) == value for n, value in zip(names[:at], after, strict=False)]
        terms.append(reduce(and_, [*equal, pc.field(name) > after[at]]))
    return reduce(or_, terms)


VISIBLE = "_visible"


@dataclass(frozen=True, slots=True)
class PageLimit:
    """Limits of a page: bytes in memory, seconds of reading keys. A page has at least one row."""

    rows: int
    bytes: int = 4 << 20
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class State:
    """One version of the changelog; the rows of `generation` are visible (-1 before the first)."""

    version: int
    files: tuple[TablePath, ...]
    progress: Progress
    generation: int
    complete: bool


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows in key order: the dimension's columns, `_source_ts`, the position, `_generation`.

    The next page begins after the key `next_after`, None after the last page.
    """

    rows: pa.Table
    next_after: Key | None


class DimensionStates:
    """Reads the states of one dimension, whose changelog topic has `partitions`."""

    def __init__(self, changelog: DeltaLog, dimension: Dimension, partitions: int) -> None:
        self.log = changelog
        self.dimension = dimension
        self.scan = ChangelogScan(dimension, partitions)

    def newest(self) -> int:
        """The newest committed version; UnknownVersionError before the changelog exists."""
        if not has_log(self.log.path):
            raise UnknownVersionError(
                f'dimension "{self.dimension.name}" has no version yet',
                hint="Its runner has not created it; look again when the job is in SNAPSHOT.",
            )
        return self.log.version()

    def oldest(self) -> int:
        """The oldest readable version; all newer ones are readable, too."""
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

    def at(self, version: int | None = None, since: State | None = None) -> State:
        """The state at `version` (default: newest); UnknownVersionError, VersionExpiredError.

        After `since`, an earlier state, only the watermark records of new files are read.
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
        return self._state(number, files, since)

    def _state(self, version: int, files: tuple[TablePath, ...], since: State | None) -> State:
        progress = Progress() if since is None else since.progress
        new = files if since is None else [file for file in files if file not in since.files]
        for marks in self.scan.rows(new, ("_partition", GENERATION, "_offset"), IS_MARK):
            progress = progress.with_records(pa.Table.from_batches([marks]))
        generation = progress.complete_generation(self.scan.spec.partitions)
        newer = self.scan.rows(files, (GENERATION,), pc.field(GENERATION) > generation)
        copying = any(batch.num_rows for batch in newer)
        return State(version, files, progress, generation, generation >= 0 and not copying)

    def records(self, state: State, keys: pa.Table) -> pa.Table:
        """The newest record for each of `keys` that has one, by key.

        `_visible` is false for deleted rows, and for rows that a newer copy lacks.
        """
        changes = self.scan.of_keys(state.files, keys)
        newest = read_changes(changes, self.scan.spec, state.progress).rows
        names = self.scan.key
        if len(names) > 1:  # so far each column was compared alone
            newest = rows_of_keys(newest, keys.select(names))
        newest = newest.sort_by([(name, "ascending") for name in names])
        return with_visibility(newest, state.generation)

    def rows(self, state: State, keys: pa.Table) -> pa.Table:
        records = self.records(state, keys)
        return records.filter(records.column(VISIBLE))

    def page(self, state: State, after: Key | None, limit: PageLimit) -> RowPage:
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
    """The first rows within the limit; at least one."""
    rows = rows.slice(0, limit.rows)
    if rows.nbytes <= limit.bytes or rows.num_rows < 2:
        return rows
    sizes = [rows.slice(at, 1).nbytes for at in range(rows.num_rows)]
    return rows.slice(0, max(1, int((np.cumsum(sizes) <= limit.bytes).sum())))
