"""A fold of a changelog into its table, without Spark: the newest record of each key is its row.

Held are keys and positions of the changes, and of the rows that they may replace; the table itself
is read a slice at a time. A file of it that loses no row stays as it is, unless it is small.
"""

from collections.abc import Iterator, Sequence
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
)
from joins.kernels.expressions.casts import Mask, mask_of, whole
from joins.kernels.index.hash_table import Hashes, Rows, hash_rows
from joins.kernels.table_path import TablePath, readable, row_count

FILE_ROWS = 1 << 20
CHANGE_TYPE = pa.field("_change_type", pa.string())
_AT = "__at"
_BATCH_ROWS = 131_072
_SMALL_ROWS = FILE_ROWS // 2


@dataclass(frozen=True, slots=True)
class FoldTask:
    """What is folded, and how.

    Attributes:
        files: data files of the changelog that no fold has, in any order.
        primary_key: columns whose newest record is the row.
        progress: the watermark records up to there; `r` records behind them are ignored.
        complete: rows of generations before this one are gone.
        current: the data files of the table; none before the first fold.
    """

    files: Sequence[TablePath]
    primary_key: tuple[str, ...]
    progress: Progress
    complete: int
    current: Sequence[TablePath] = ()


@dataclass(frozen=True, slots=True)
class FoldSlice:
    """Some rows of the files that a fold writes, and what is new about the table with them.

    Attributes:
        rows: for the table, with its columns.
        images: rows that came or went, with `CHANGE_TYPE`, as Delta's change data feed has them.
    """

    rows: pa.RecordBatch
    images: pa.RecordBatch


class FoldRows:
    """What a fold does to a table. Rows are numbered: those of its files, then the changelog's.

    Attributes:
        rewritten: which files of `task.current` the fold replaces.
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
        """What is written, with the columns of `schema`, in the order of the files."""
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
        """Changes that are rows, rows that are gone, and of both those whose key was and is."""
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
        """Keys and positions of the records that say something about their key."""
        names = list(dict.fromkeys([*self._task.primary_key, *CHANGE_COLUMNS]))
        keyed = []
        starts = self._starts[len(self._task.current) : -1]
        for file, start in zip(self._task.files, starts, strict=True):
            rows = _numbered(_read(file, names), int(start))
            keyed.append(rows.filter(pa.array(_counted(rows, self._task.progress))))
        return pa.concat_tables(keyed)

    def _replaceable(self, changes: pa.Table) -> list[pa.Table]:
        """Keys and positions of the table's rows that a change may be of, or a new generation."""
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
        """Numbers of the rows of either whose key the other has, too."""
        both = pa.concat_tables([gone, kept])
        codes = exact_codes([whole(both.column(name)) for name in self._task.primary_key])
        shared = np.intersect1d(codes[: gone.num_rows], codes[gone.num_rows :])
        return np.sort(numbers(both, _AT)[np.isin(codes, shared)])

    def _rewritten(self) -> tuple[int, ...]:
        """Files that lose rows, and small ones that have no more rows than are written anyway."""
        ends = self._starts[: len(self._task.current) + 1]
        sizes, lost = np.diff(ends), np.diff(np.searchsorted(self._gone, ends))
        chosen = set(np.flatnonzero(lost).tolist())
        written = len(self._kept) + int((sizes - lost)[lost > 0].sum())
        for at in np.argsort(sizes, kind="stable").tolist():
            if at not in chosen and sizes[at] <= min(written, _SMALL_ROWS):
                chosen.add(at)
                written += int(sizes[at])
        return tuple(sorted(chosen))


def _counted(rows: pa.Table, progress: Progress) -> Mask:
    marks = mask_of(pc.equal(rows.column("_op"), "w"))
    return ~marks & ~progress.ignored(rows)


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
    """Slices of a file of the table, whoever wrote it."""
    with pq.ParquetFile(readable(file), coerce_int96_timestamp_unit="us") as source:
        for batch in source.iter_batches(_BATCH_ROWS, columns=schema.names, use_threads=False):
            rows = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
            yield from rows.combine_chunks().to_batches()
