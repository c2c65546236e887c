"""Files of arrivals: Arrow files that a batch's stages exchange, Parquet files of rows that wait.

What is read of them is in order of arrival: rows that wait have lower offsets than those that have
just arrived. Arrow files are mapped into memory; what leaves a Parquet file is first copied to one,
a row group at a time. So a task needs memory for a slice of rows, and 16 bytes for each row that it
has to put in order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from joins.kernels.arrivals import OFFSET, TIME, ArrivalColumns
from joins.kernels.casts import Mask
from joins.kernels.files import FileOrigin

Rows = npt.NDArray[np.int64]

SLICE_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """A complete Arrow file in a batch's scratch directory."""

    path: str
    rows: int
    bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, mapped into memory."""
        reader = pa.ipc.open_file(pa.memory_map(self.path))
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)


class ScratchWriter:
    """Writes one new Arrow file into a scratch directory; gone on failure, not fsynced.

    It is read in the same batch only: what a crash loses or leaves, the batch writes again.
    """

    def __init__(self, directory: Path, schema: pa.Schema, origin: FileOrigin) -> None:
        self._path = directory / f"{origin.file_name().removesuffix('.parquet')}.arrow"
        self._schema = schema
        self._rows = 0
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._path.unlink(missing_ok=True)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Append `rows`, whose schema is the file's.

        Raises:
            OSError: the file system refused.
        """
        if rows.num_rows == 0:
            return
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
        self._writer.write(rows)
        self._rows += rows.num_rows

    def finish(self) -> ScratchFile | None:
        """Close the file; None if no row came."""
        if self._writer is None:
            return None
        self._writer.close()
        self._writer = None
        return ScratchFile(str(self._path), self._rows, self._path.stat().st_size)


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A Parquet file of rows that wait, read a row group at a time."""

    path: Path
    columns: ArrivalColumns

    def between(self, after_ms: int, upto_ms: int) -> Iterator[pa.RecordBatch]:
        """The rows with `after_ms` < time <= `upto_ms`, in the file's order.

        Raises:
            CheckpointError: the file has other columns.
        """
        with pq.ParquetFile(self.path, memory_map=True) as file:
            for group in range(file.metadata.num_row_groups):
                low, high = _bounds(file, group)
                if low is not None and (low > upto_ms or high <= after_ms):
                    continue
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                for batch in table.to_batches():
                    rows = self.columns.read(batch, self.path)
                    times = times_of(rows)
                    yield filtered(rows, (times > after_ms) & (times <= upto_ms))


def _bounds(file: pq.ParquetFile, group: int) -> tuple[int, int] | tuple[None, None]:
    """The least and the greatest time of a row group, if the file says so."""
    at = file.schema_arrow.get_field_index(TIME)
    stats = file.metadata.row_group(group).column(at).statistics if at >= 0 else None
    if stats is None or not stats.has_min_max:
        return None, None
    return int(stats.min), int(stats.max)


def filtered(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """The rows where `mask` is true; all of them are not copied."""
    return rows if mask.all() else rows.filter(pa.array(mask))


class Released:
    """Rows that have become due, given out in order; use as a context manager.

    Args:
        directory: for the copies of what leaves Parquet files.
        columns: of the rows.
        origin: the task.
    """

    def __init__(self, directory: Path, columns: ArrivalColumns, origin: FileOrigin) -> None:
        self._open = ExitStack()
        self._copy = ScratchWriter(directory, columns.schema, origin)
        self._copied: ScratchFile | None = None
        self._parts: list[pa.RecordBatch] = []

    def __enter__(self) -> Self:
        self._open.enter_context(self._copy)
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.clear()
        self._open.close()
        if self._copied is not None:
            Path(self._copied.path).unlink(missing_ok=True)

    def copy(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Add rows that are in memory only as long as they are the newest of the iterator."""
        for each in rows:
            self._copy.write(each)

    def in_order(
        self,
        arrived: Iterable[pa.RecordBatch],
        due: Callable[[Rows], Mask],
        rank: Callable[[Rows], Rows],
    ) -> Iterator[pa.RecordBatch]:
        """What was copied and `arrived` and is due, by the rank of its time, then by offset.

        `arrived` are mapped rows; `due` and `rank` are asked with the times of rows.
        """
        self._copied = self._copy.finish()
        copied = () if self._copied is None else self._copied.batches()
        parts = [(each, due(times_of(each))) for each in (*copied, *arrived)]
        self._parts = [each for each, mask in parts if mask.any()]
        chosen = [np.flatnonzero(mask) for _, mask in parts if mask.any()]
        if not self._parts:
            return
        found = list(zip(self._parts, chosen, strict=True))
        offsets = np.concatenate([each.column(OFFSET).to_numpy()[rows] for each, rows in found])
        ranks = np.concatenate([rank(times_of(each)[rows]) for each, rows in found])
        level = ranks[1:] == ranks[:-1]
        if (ranks[1:] < ranks[:-1]).any() or (offsets[1:] < offsets[:-1])[level].any():
            starts = np.cumsum([0, *(each.num_rows for each in self._parts)])
            numbers = np.concatenate([rows + at for rows, at in zip(chosen, starts, strict=False)])
            numbers = numbers[np.lexsort((offsets, ranks))]
            for first in range(0, len(numbers), SLICE_ROWS):
                yield _picked(self._parts, starts, numbers[first : first + SLICE_ROWS])
            return
        for each, rows in found:
            yield each if len(rows) == each.num_rows else each.take(pa.array(rows))


def times_of(rows: pa.RecordBatch) -> Rows:
    """When each of the rows was, epoch milliseconds."""
    return np.asarray(rows.column(TIME).to_numpy(), dtype=np.int64)


def _picked(parts: Sequence[pa.RecordBatch], starts: Any, rows: Rows) -> pa.RecordBatch:
    """The `rows`, numbers in all of `parts`, in this order."""
    part = np.searchsorted(starts, rows, side="right") - 1
    by_part = np.argsort(part, kind="stable")
    pieces = []
    for at in np.unique(part):
        local = rows[by_part[part[by_part] == at]] - starts[at]
        pieces.append(parts[at].take(pa.array(local)))
    back = np.empty(len(rows), dtype=np.int64)
    back[by_part] = np.arange(len(rows))
    table = pa.Table.from_batches(pieces).combine_chunks()
    (batch,) = table.take(pa.array(back)).combine_chunks().to_batches()
    return batch
