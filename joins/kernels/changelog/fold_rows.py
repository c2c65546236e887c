"""Fewer rows with the same meaning: compaction of a changelog, and its fold into the table.

Compaction keeps each key's newest record, all watermark records, and for each partition the records
that define its progress. Records that hide a key go only with all older ones, and only when an
index drops them. With event time each version that may still be looked up stays.

A fold makes the newest record of each key its row, without Spark, and reads the table a slice at a
time. A file that loses no row stays, unless it is small.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.kernels.changelog.changes import (
    CHANGE_COLUMNS,
    GENERATION,
    Progress,
    deletions,
    exact_codes,
    newest_rows,
    numbers,
    with_rowtime,
)
from joins.kernels.changelog.digest import POSITION_COLUMNS, reads_of
from joins.kernels.expressions.casts import Mask, mask_of, whole
from joins.kernels.index.asof import without_ended
from joins.kernels.index.hash_table import Hashes, Rows, hash_rows
from joins.kernels.table_path import TablePath, readable, row_count

_STREAMED = pa.array(["c", "u", "d"])
FILE_ROWS = 1 << 20
CHANGE_TYPE = pa.field("_change_type", pa.string())
_AT = "__at"
_BATCH_ROWS = 131_072
_SMALL_ROWS = FILE_ROWS // 2


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """A compaction."""

    primary_key: tuple[str, ...]
    progress: Progress  # watermark records of the whole changelog
    complete: int  # greatest generation that every partition has completed, -1 for none
    is_whole: bool  # no older rows exist than the given ones
    versioned: str | None = None
    needed_from_ms: int | None = None  # versions that end before it are not needed; None keeps all


@dataclass(frozen=True, slots=True)
class Compacted:
    """Kept rows, watermark records last; and the number of removed `r` records by generation."""

    rows: pa.Table
    dropped_reads: Mapping[int, int]


def compact(rows: pa.Table, task: CompactionTask) -> Compacted:
    rows = rows.combine_chunks()
    marks = mask_of(pc.equal(rows.column("_op"), "w"))
    milestones = _milestones(rows)
    keep = marks.copy()
    keep[milestones] = True
    keep[_newest_of_keys(rows, task, marks, milestones)] = True
    order = np.flatnonzero(keep)
    order = order[np.argsort(marks[order], kind="stable")]
    kept = rows.take(pa.array(order))
    was, left = (reads_of(each.column("_op"), each.column("_generation")) for each in (rows, kept))
    dropped = {generation: count - left.get(generation, 0) for generation, count in was.items()}
    return Compacted(kept, {of: count for of, count in dropped.items() if count})


def _newest_of_keys(rows: pa.Table, task: CompactionTask, marks: Mask, milestones: Rows) -> Rows:
    usable = np.flatnonzero(~marks & ~task.progress.ignored(rows))
    rowtime = [] if task.versioned is None else [task.versioned]
    kept = [*task.primary_key, *rowtime, "_op", GENERATION, *POSITION_COLUMNS, "_offset"]
    names = list(dict.fromkeys(kept))
    keyed = rows.select(names).take(pa.array(usable)).append_column(_AT, pa.array(usable))
    newest = newest_rows(keyed, task.primary_key)
    if task.versioned is not None:
        identity = list(dict.fromkeys([*task.primary_key, task.versioned]))
        dated = with_rowtime(keyed, task.versioned)
        versions = without_ended(
            newest_rows(dated, identity, versioned=task.versioned),
            task.primary_key,
            task.versioned,
            task.needed_from_ms,
        )
        return np.concatenate([numbers(newest, _AT), numbers(versions, _AT)])
    if task.is_whole and newest.num_rows:
        protected = rows.column(task.primary_key[0]).take(pa.array(milestones))
        newest = newest.filter(pa.array(~_forgettable(newest, task, protected)))
    return numbers(newest, _AT)


def _forgettable(newest: pa.Table, task: CompactionTask, protected: pa.ChunkedArray) -> Mask:
    """Records that hide their key and are older than any change that may be repeated.

    The key of a milestone keeps its newest record, for the milestone may be an older one.
    """
    epoch, file, generation = (numbers(newest, n) for n in ("_epoch", "_file", GENERATION))
    hidden = mask_of(pc.equal(newest.column("_op"), "d")) | (generation < task.complete)
    newest_epoch = epoch.max()
    newest_file = file[epoch == newest_epoch].max()
    old = (epoch < newest_epoch) | (file < newest_file - 1)
    first_key = newest.column(task.primary_key[0])
    shared = mask_of(pc.is_in(first_key, value_set=pa.concat_arrays(protected.chunks)))
    forgettable: Mask = hidden & old & ~shared
    return forgettable


def _milestones(rows: pa.Table) -> Rows:
    """Places of the records that define the progress of each partition."""
    partition, offset, generation = (
        numbers(rows, name) for name in ("_partition", "_offset", GENERATION)
    )
    streamed = mask_of(pc.is_in(rows.column("_op"), value_set=_STREAMED))
    position = [numbers(rows, name) for name in POSITION_COLUMNS]
    made = np.asarray(pc.fill_null(rows.column("_source_ts"), 0), dtype=np.int64)
    latest = np.where(generation == generation.max(), offset, -1)
    milestones = {int(latest.argmax())}
    for each in np.unique(partition):
        own = np.flatnonzero(partition == each)
        milestones.add(int(own[offset[own].argmax()]))
        changes = own[streamed[own]]
        if len(changes):
            order = np.lexsort([part[changes] for part in reversed(position)])
            milestones.add(int(changes[order[-1]]))
            milestones.add(int(changes[made[changes].argmax()]))  # clocks of two servers differ
    return np.array(sorted(milestones), dtype=np.int64)


def watermarks(rows: Sequence[pa.Table]) -> Progress:
    progress = Progress()
    for table in rows:
        progress = progress.with_records(table.filter(pc.equal(table.column("_op"), "w")))
    return progress


@dataclass(frozen=True, slots=True)
class FoldTask:
    """A fold of changelog `files`, in any order, into the table files `current`.

    `r` records after those of `progress` are ignored. Rows of generations older than `complete` are
    removed.
    """

    files: Sequence[TablePath]
    primary_key: tuple[str, ...]
    progress: Progress
    complete: int
    current: Sequence[TablePath] = ()


@dataclass(frozen=True, slots=True)
class FoldSlice:
    """Rows that a fold writes; `images` is Delta's change data feed, with `CHANGE_TYPE`."""

    rows: pa.RecordBatch
    images: pa.RecordBatch


class FoldRows:
    """Result of a fold; rows are numbered: first the table's files, then the changelog.

    `rewritten` has the places of the files in `task.current` that the fold replaces.
    """

    def __init__(self, task: FoldTask) -> None:
        self._task = task
        files = (*task.current, *task.files)
        counts = [row_count(file) for file in files]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._first_change = int(self._starts[len(task.current)])
        self._kept, self._gone, self._updated = self._compared()
        self.rewritten = self._rewritten()

    def slices(self, schema: pa.Schema) -> Iterator[FoldSlice]:
        for at in self.rewritten:
            start = int(self._starts[at])
            for rows in _batches(self._task.current[at], schema):
                yield self._without_gone(rows, start)
                start += rows.num_rows
        starts = self._starts[len(self._task.current) :]
        for file, start, end in zip(self._task.files, starts[:-1], starts[1:], strict=True):
            own = _between(self._kept, int(start), int(end))
            if len(own):
                taken = _read(file, schema.names).take(pa.array(own - start)).cast(schema)
                yield from self._added(taken.combine_chunks(), own)

    def _without_gone(self, rows: pa.RecordBatch, start: int) -> FoldSlice:
        at = _between(self._gone, start, start + rows.num_rows)
        is_gone = np.zeros(rows.num_rows, dtype=np.bool_)
        is_gone[at - start] = True
        types = np.where(self._is_updated(at), "update_preimage", "delete")
        images = _typed(rows.filter(pa.array(is_gone)), types)
        return FoldSlice(rows.filter(pa.array(~is_gone)), images)

    def _is_updated(self, at: Rows) -> Mask:
        if not len(at):
            return np.zeros(0, dtype=np.bool_)
        return np.isin(at, _between(self._updated, int(at[0]), int(at[-1]) + 1))

    def _added(self, rows: pa.Table, at: Rows) -> Iterator[FoldSlice]:
        types = np.where(self._is_updated(at), "update_postimage", "insert")
        for batch in rows.to_batches(_BATCH_ROWS):
            own, types = types[: batch.num_rows], types[batch.num_rows :]
            yield FoldSlice(batch, _typed(batch, own))

    def _compared(self) -> tuple[Rows, Rows, Rows]:
        """Numbers of changes that become rows, of removed rows, and of those whose key stays."""
        changes = self._changes()
        held = self._replaceable(changes)
        newest = newest_rows(pa.concat_tables([*held, changes]), self._task.primary_key)
        is_row = ~deletions(newest) & (numbers(newest, GENERATION) >= self._task.complete)
        rows = newest.filter(pa.array(is_row))
        at = numbers(rows, _AT)
        kept = rows.filter(pa.array(at >= self._first_change))
        before = pa.concat_tables([changes.slice(0, 0), *held])
        gone = before.filter(pa.array(~np.isin(numbers(before, _AT), at)))
        return (
            np.sort(numbers(kept, _AT)),
            np.sort(numbers(gone, _AT)),
            self._shared(gone, kept),
        )

    def _changes(self) -> pa.Table:
        names = list(dict.fromkeys([*self._task.primary_key, *CHANGE_COLUMNS]))
        keyed = []
        starts = self._starts[len(self._task.current) : -1]
        for file, start in zip(self._task.files, starts, strict=True):
            rows = _numbered(_read(file, names), int(start))
            marks = mask_of(pc.equal(rows.column("_op"), "w"))
            keyed.append(rows.filter(pa.array(~marks & ~self._task.progress.ignored(rows))))
        return pa.concat_tables(keyed)

    def _replaceable(self, changes: pa.Table) -> list[pa.Table]:
        schema = pa.schema([field for field in changes.schema if field.name != _AT])
        hashes = np.unique(self._hashes(changes))
        held = []
        for file, start in zip(self._task.current, self._starts, strict=False):
            place = int(start)
            for batch in _batches(file, schema):
                rows = _numbered(pa.Table.from_batches([batch]), place)
                place += batch.num_rows
                may_go = _is_in(self._hashes(rows), hashes)
                may_go |= numbers(rows, GENERATION) < self._task.complete
                held.append(rows.filter(pa.array(may_go)))
        return held

    def _hashes(self, rows: pa.Table) -> Hashes:
        return hash_rows([whole(rows.column(name)) for name in self._task.primary_key])

    def _shared(self, gone: pa.Table, kept: pa.Table) -> Rows:
        both = pa.concat_tables([gone, kept])
        codes = exact_codes([whole(both.column(name)) for name in self._task.primary_key])
        shared = np.intersect1d(codes[: gone.num_rows], codes[gone.num_rows :])
        return np.sort(numbers(both, _AT)[np.isin(codes, shared)])

    def _rewritten(self) -> tuple[int, ...]:
        """Files that lose rows, and small ones that add no more rows than are written anyway."""
        ends = self._starts[: len(self._task.current) + 1]
        sizes, lost = np.diff(ends), np.diff(np.searchsorted(self._gone, ends))
        chosen = set(np.flatnonzero(lost).tolist())
        written = len(self._kept) + int((sizes - lost)[lost > 0].sum())
        for at in np.argsort(sizes, kind="stable").tolist():
            if at not in chosen and sizes[at] <= min(written, _SMALL_ROWS):
                chosen.add(at)
                written += int(sizes[at])
        return tuple(sorted(chosen))


def _is_in(hashes: Hashes, ordered: Hashes) -> Mask:
    if not len(ordered):
        return np.zeros(len(hashes), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    is_there: Mask = ordered[places] == hashes
    return is_there


def _between(ordered: Rows, first: int, end: int) -> Rows:
    return ordered[slice(*np.searchsorted(ordered, [first, end]))]


def _numbered(rows: pa.Table, first: int) -> pa.Table:
    return rows.append_column(_AT, pa.array(np.arange(first, first + rows.num_rows)))


def _typed(rows: pa.RecordBatch, types: npt.NDArray[np.str_]) -> pa.RecordBatch:
    return rows.append_column(CHANGE_TYPE, pa.array(types, CHANGE_TYPE.type))


def _read(file: TablePath, columns: Sequence[str]) -> pa.Table:
    return pq.read_table(
        readable(file), columns=list(columns), partitioning=None, use_threads=False
    )


def _batches(file: TablePath, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(readable(file), coerce_int96_timestamp_unit="us") as source:
        for batch in source.iter_batches(_BATCH_ROWS, columns=schema.names, use_threads=False):
            rows = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield from rows.combine_chunks().to_batches()
