"""The first fold of a changelog: each key's newest record, file by file, without Spark.

The table `current` is empty then, so that nothing has to be merged: a record is written or it is
not. Keys and positions of all records are held, all columns of one file at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.kernels.changelog.changes import (
    CHANGE_COLUMNS,
    GENERATION,
    Progress,
    deletions,
    newest_rows,
    numbers,
)
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.index.hash_table import Rows

_AT = "__at"
_BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class FirstFold:
    """What is folded, and how.

    Attributes:
        files: data files of the changelog, in any order.
        primary_key: columns whose newest record is the row.
        progress: the watermark records up to there; `r` records behind them are ignored.
        complete: rows of generations before this one are gone.
    """

    files: Sequence[Path]
    primary_key: tuple[str, ...]
    progress: Progress
    complete: int


def first_rows(fold: FirstFold, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the table, in the order of the files, with the columns of `schema`."""
    names = list(dict.fromkeys([*fold.primary_key, *CHANGE_COLUMNS]))
    counts: list[int] = []
    keyed: list[pa.Table] = []
    for file in fold.files:
        rows = _read(file, names)
        numbered = rows.append_column(_AT, pa.array(np.arange(rows.num_rows) + sum(counts)))
        keyed.append(numbered.filter(pa.array(_counted(rows, fold.progress))))
        counts.append(rows.num_rows)
    if not keyed:
        return
    kept = _places(pa.concat_tables(keyed), fold)
    del keyed
    start = 0
    for file, count in zip(fold.files, counts, strict=True):
        own = kept[np.searchsorted(kept, start) : np.searchsorted(kept, start + count)] - start
        if len(own):
            rows = _read(file, schema.names).take(pa.array(own)).cast(schema)
            yield from rows.combine_chunks().to_batches(_BATCH_ROWS)
        start += count


def _counted(rows: pa.Table, progress: Progress) -> Mask:
    """The records that say something about their key."""
    marks = mask_of(pc.equal(rows.column("_op"), "w"))
    return ~marks & ~progress.ignored(rows)


def _places(keyed: pa.Table, fold: FirstFold) -> Rows:
    """Where the records are that are rows of the table, ascending."""
    newest = newest_rows(keyed, fold.primary_key)
    there = ~deletions(newest) & (numbers(newest, GENERATION) >= fold.complete)
    return np.sort(numbers(newest, _AT)[there])


def _read(file: Path, columns: Sequence[str]) -> pa.Table:
    return pq.read_table(file, columns=list(columns), partitioning=None, use_threads=False)
