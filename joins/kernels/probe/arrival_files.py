"""Arrivals: the records of an event batch after the scan, and the files that hold them.

A row has the record's own columns, whose names begin with `_`, then the probe's columns `c0`, `c1`,
… with the true name in the metadata, so a changed plan can read waiting rows that have its columns.
Rows are mapped from Arrow files, so a task needs memory for a slice and 16 bytes for each row that
it sorts; Arrow files in a store are read into memory as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from joins.kernels.expressions.casts import Mask, whole_batch
from joins.kernels.probe.files import FileOrigin
from joins.kernels.table_path import TablePath, readable
from joins.plan.errors import CheckpointError
from joins.plan.plan import Field
from joins.plan.types import arrow_type

PARTITION = "_partition"
OFFSET = "_offset"
TIMESTAMP = "_timestamp"
VALUE = "_value"
TIME = "_time"
WATERMARK = "_wm"

_NAME = b"column"
RECORD = pa.schema(
    [
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIMESTAMP, pa.timestamp("us", tz="UTC")),
        (VALUE, pa.binary()),
    ]
)
"""The record's own columns, under these names."""

EVENT_TIME = pa.schema([(TIME, pa.int64()), (WATERMARK, pa.int64())])
"""Further columns in jobs with event time:

rowtime, and the operator's watermark before the record.
"""


@dataclass(frozen=True, slots=True)
class ArrivalColumns:
    """Columns of arrivals: `carried` ones are read after the scan; `EVENT_TIME` may follow."""

    carried: tuple[Field, ...]
    event_time: bool

    @property
    def own(self) -> pa.Schema:
        return pa.schema([*RECORD, *(EVENT_TIME if self.event_time else ())])

    @property
    def schema(self) -> pa.Schema:
        columns = [
            pa.field(f"c{at}", arrow_type(item.type), metadata={_NAME: item.name.encode()})
            for at, item in enumerate(self.carried)
        ]
        return pa.schema([*self.own, *columns])

    def carried_of(self, arrivals: pa.RecordBatch) -> dict[str, pa.Array]:
        columns = arrivals.columns[len(self.own) :]
        return {item.name: column for item, column in zip(self.carried, columns, strict=True)}

    def places(self, stored: pa.Schema, path: object) -> list[int]:
        """Where `stored` has the columns of `schema`; raises CheckpointError without one."""
        places = {
            (item.metadata or {}).get(_NAME, b"").decode(): at for at, item in enumerate(stored)
        }
        names = [*self.own.names, *(item.name for item in self.carried)]
        numbers = [stored.get_field_index(name) for name in self.own.names]
        numbers += [places.get(item.name, -1) for item in self.carried]
        if -1 in numbers:
            raise CheckpointError(
                f'file "{path}" of records that wait has no column "{names[numbers.index(-1)]}"',
                hint="It was written for another plan; restore the job's directory as it was.",
            )
        return numbers

    def read(self, stored: pa.RecordBatch, path: object) -> pa.RecordBatch:
        """`stored` with the columns of `schema`; raises CheckpointError if one is missing."""
        columns = [stored.column(at) for at in self.places(stored.schema, path)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """`rows` with `values` in the column `name`; a new column comes last."""
    at = rows.schema.get_field_index(name)
    if at < 0:
        return rows.append_column(name, values)
    return rows.set_column(at, rows.schema.field(at), values)


Rows = npt.NDArray[np.int64]

SLICE_ROWS = 65_536
SLICE_BYTES = 64 << 20  # far below the 2 GiB that a column may have


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """A complete Arrow file in a batch's scratch place; `path` is relative to the place."""

    path: str
    rows: int
    bytes: int


def mapped(file: TablePath) -> list[pa.RecordBatch]:
    """The rows of a mapped Arrow file; raises OSError if it cannot be opened."""
    source = pa.memory_map(str(file)) if isinstance(file, Path) else file.open_input()
    reader = pa.ipc.open_file(source)
    return [reader.get_batch(at) for at in range(reader.num_record_batches)]


class ScratchWriter(AbstractContextManager["ScratchWriter"]):
    """Writes one new Arrow file into a scratch place; deleted on failure, not fsynced."""

    def __init__(self, place: TablePath, schema: pa.Schema, origin: FileOrigin) -> None:
        self._path = place / f"{origin.file_name().removesuffix('.parquet')}.arrow"
        self._schema = schema
        self._rows = 0
        self._memory = pa.BufferOutputStream()
        self._writer: pa.ipc.RecordBatchFileWriter | None = None

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            if isinstance(self._path, Path):
                self._path.unlink(missing_ok=True)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        if rows.num_rows == 0:
            return
        if self._writer is None:
            self._writer = self._opened()
        self._writer.write(rows)
        self._rows += rows.num_rows

    def _opened(self) -> pa.ipc.RecordBatchFileWriter:
        if isinstance(self._path, Path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return pa.ipc.new_file(str(self._path), self._schema)
        packed = pa.ipc.IpcWriteOptions(compression="lz4")
        return pa.ipc.new_file(self._memory, self._schema, options=packed)

    def finish(self) -> ScratchFile | None:
        if self._writer is None:
            return None
        self._writer.close()
        self._writer = None
        if isinstance(self._path, Path):
            size = self._path.stat().st_size
        else:
            content = self._memory.getvalue()
            self._path.put(content)
            size = int(content.size)
        return ScratchFile(self._path.name, self._rows, size)


class ScratchFiles(AbstractContextManager["ScratchFiles"]):
    """New Arrow files, one for each number, reported as `by`; deleted on failure."""

    def __init__(self, place: TablePath, schema: pa.Schema, origin: FileOrigin, *, by: str) -> None:
        self._place = place
        self._schema = schema
        self._origin = origin
        self._by = by
        self._open = ExitStack()
        self._writers: dict[int, ScratchWriter] = {}

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(self, number: int, rows: pa.RecordBatch | pa.Table) -> None:
        if number not in self._writers:
            writer = ScratchWriter(self._place, self._schema, self._origin)
            self._writers[number] = self._open.enter_context(writer)
        self._writers[number].write(rows)

    def finish(self) -> list[dict[str, Any]]:
        """The files, for a report: their number, `path`, `rows`, `bytes`."""
        files = ((number, each.finish()) for number, each in self._writers.items())
        return [{self._by: at, **asdict(file)} for at, file in files if file is not None]


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A Parquet file of waiting rows, read a row group at a time, unless `rows` are its rows."""

    path: TablePath
    columns: ArrivalColumns
    rows: Sequence[pa.RecordBatch] = ()

    def between(self, after_ms: int, upto_ms: int) -> Iterator[pa.RecordBatch]:
        """Rows with `after_ms` < time <= `upto_ms`; raises CheckpointError for other columns."""
        for rows in self.rows or self._stored(after_ms, upto_ms):
            times = times_of(rows)
            yield filtered(rows, (times > after_ms) & (times <= upto_ms))

    def _stored(self, after_ms: int, upto_ms: int) -> Iterator[pa.RecordBatch]:
        """The rows of the row groups that may have a time in between."""
        with pq.ParquetFile(readable(self.path), memory_map=True) as file:
            for group in range(file.metadata.num_row_groups):
                if not _meets(file, group, after_ms, upto_ms):
                    continue
                table = file.read_row_group(group, use_threads=False).combine_chunks()
                for batch in table.to_batches():
                    yield self.columns.read(batch, self.path)

    def carried(self, names: Sequence[str]) -> tuple[Rows, dict[str, pa.Array]]:
        """Times of all rows, and the carried columns `names`; reads nothing else."""
        if self.rows:
            carried = [self.columns.carried_of(rows) for rows in self.rows]
            times = np.concatenate([times_of(rows) for rows in self.rows])
            return times, {name: pa.concat_arrays([of[name] for of in carried]) for name in names}
        with pq.ParquetFile(readable(self.path), memory_map=True) as file:
            stored = file.schema_arrow
            places = self.columns.places(stored, self.path)[len(self.columns.own) :]
            by_name = {
                item.name: stored.names[at]
                for item, at in zip(self.columns.carried, places, strict=True)
                if item.name in names
            }
            table = file.read([TIME, *by_name.values()], use_threads=False)
        times = np.asarray(table.column(TIME).to_numpy(), dtype=np.int64)
        return times, {name: table.column(at).combine_chunks() for name, at in by_name.items()}


def _meets(file: pq.ParquetFile, group: int, after_ms: int, upto_ms: int) -> bool:
    """False only if the statistics exclude rows in between."""
    at = file.schema_arrow.get_field_index(TIME)  # no column of arrivals is nested
    stats = file.metadata.row_group(group).column(at).statistics if at >= 0 else None
    if stats is None or not stats.has_min_max:
        return True
    return bool(stats.min <= upto_ms and stats.max > after_ms)


def filtered(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))


class Released:
    """Copies rows that leave Parquet files to a mapped file; use as a context manager."""

    def __init__(self, directory: Path, columns: ArrivalColumns, origin: FileOrigin) -> None:
        self._open = ExitStack()
        self._directory = directory
        self._copy = ScratchWriter(directory, columns.schema, origin)
        self._copied: ScratchFile | None = None

    def __enter__(self) -> Self:
        self._open.enter_context(self._copy)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        if self._copied is not None:
            (self._directory / self._copied.path).unlink(missing_ok=True)

    def copy(self, rows: pa.RecordBatch) -> None:
        self._copy.write(rows)

    def and_then(self, arrived: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        self._copied = self._copy.finish()
        copied = [] if self._copied is None else mapped(self._directory / self._copied.path)
        return [*copied, *arrived]


def times_of(rows: pa.RecordBatch) -> Rows:
    return np.asarray(rows.column(TIME).to_numpy(), dtype=np.int64)


def in_order(
    parts: Iterable[pa.RecordBatch],
    chosen: Callable[[Rows], Mask],
    rank: Callable[[Rows], Rows],
) -> Iterator[pa.RecordBatch]:
    """Chosen rows of one partition by rank of their time, then by offset, in slices."""
    chosen_rows = [(each, np.flatnonzero(chosen(times_of(each)))) for each in parts]
    chosen_rows = [(each, rows) for each, rows in chosen_rows if len(rows)]
    if not chosen_rows:
        return
    chosen_rows.sort(key=lambda part: int(part[0].column(OFFSET).to_numpy()[part[1][0]]))
    offsets = np.concatenate([each.column(OFFSET).to_numpy()[rows] for each, rows in chosen_rows])
    ranks = np.concatenate([rank(times_of(each)[rows]) for each, rows in chosen_rows])
    limit = _slice_rows([each for each, _ in chosen_rows])
    falls = (ranks[1:] == ranks[:-1]) & (offsets[1:] < offsets[:-1])
    if not (falls | (ranks[1:] < ranks[:-1])).any():
        yield from _in_slices(chosen_rows, limit)
        return
    starts = np.cumsum([0, *(each.num_rows for each, _ in chosen_rows)])
    numbers = np.concatenate(
        [rows + at for (_, rows), at in zip(chosen_rows, starts, strict=False)]
    )
    numbers = numbers[np.lexsort((offsets, ranks))]
    batches = [each for each, _ in chosen_rows]
    for first in range(0, len(numbers), limit):
        yield _picked(batches, starts, numbers[first : first + limit])


def _slice_rows(batches: Sequence[pa.RecordBatch]) -> int:
    largest: int = max(each.nbytes // each.num_rows for each in batches)
    return max(1, min(SLICE_ROWS, SLICE_BYTES // max(1, largest)))


def _in_slices(
    chosen_rows: Sequence[tuple[pa.RecordBatch, Rows]], limit: int
) -> Iterator[pa.RecordBatch]:
    pending: list[pa.RecordBatch] = []
    for each, rows in chosen_rows:
        pending.append(each if len(rows) == each.num_rows else each.take(pa.array(rows)))
        if sum(part.num_rows for part in pending) >= limit:
            yield whole_batch(pending)
            pending = []
    if pending:
        yield whole_batch(pending)


def _picked(parts: Sequence[pa.RecordBatch], starts: Rows, rows: Rows) -> pa.RecordBatch:
    part = np.searchsorted(starts, rows, side="right") - 1
    by_part = np.argsort(part, kind="stable")
    pieces = []
    for at in np.unique(part):
        local = rows[by_part[part[by_part] == at]] - starts[at]
        pieces.append(parts[at].take(pa.array(local)))
    back = np.empty(len(rows), dtype=np.int64)
    back[by_part] = np.arange(len(rows))
    return whole_batch(pieces).take(pa.array(back))
