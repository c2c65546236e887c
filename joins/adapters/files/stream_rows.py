"""Rows of a stream's history: ranges of the listed files as typed columns of records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.adapters.delta.source import in_declared_shape, place_of
from joins.adapters.files.listing import readable
from joins.adapters.files.readers import matched_columns, plain_type
from joins.kernels.expressions.casts import Checked, Mask, integers, sound, try_each
from joins.kernels.expressions.nested import mapped
from joins.kernels.json.wire import declared_encoding, to_declared, to_wire
from joins.kernels.records.layout import ROW, ROW_ERROR, record_type
from joins.kernels.table_path import TablePath, batch_rows
from joins.plan.errors import RecordsExpiredError, SourceError
from joins.plan.plan import Field, FileListing, ListedFile
from joins.plan.stream_topics import FILES
from joins.plan.types import SqlType, TypeName, arrow_type

_BATCH_ROWS = 20_000
_BATCH_BYTES = 8 << 20
_KEPT = 2  # open files of a process; a task reads one after the other
_AS_THEY_ARE = frozenset(
    (
        TypeName.TINYINT,
        TypeName.SMALLINT,
        TypeName.INT,
        TypeName.BIGINT,
        TypeName.BOOLEAN,
        TypeName.FLOAT,
        TypeName.DOUBLE,
        TypeName.DECIMAL,
        TypeName.STRING,
        TypeName.BYTES,
    )
)


_PER_S = {"s": 1, "ms": 10**3, "us": 10**6}  # nanoseconds reach less far
_FIRST_S, _END_S = -62_135_596_800, 253_402_300_800


class _Cursor(ABC):
    """An open file, at row `position`; rows before it are behind."""

    def __init__(self) -> None:
        self.position = 0
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def read(self, first: int, end: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """The rows from `first`, not before `position`, to `end`, with the error of each."""
        with self._errors():
            while self.position < end:
                batch = next(self._batches) if self._rest is None else self._rest
                start, behind = self.position, self.position + batch.num_rows
                low, high = max(first, start), min(end, behind)
                self._rest = None if high == behind else batch.slice(max(high, start) - start)
                self.position = behind if self._rest is None else max(high, start)
                if low < high:
                    yield self._typed(batch.slice(low - start, high - low))

    def _errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    @abstractmethod
    def _typed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]: ...

    @abstractmethod
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamFiles:
    """The files of a stream's history; picklable.

    `version` is that of a Delta table, None for Parquet files in a directory. `fields` are the
    columns that are read.
    """

    path: TablePath
    version: int | None
    fields: tuple[Field, ...]
    listed: FileListing

    def batches(self, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows from number `first` to `end` as records with `columns`, `ROW` and `ROW_ERROR`.

        Raises:
            SourceError: a file is not as listed, or cannot be read; SourceUnavailableError if it
                is gone.
        """
        for file, start, low, high in self._parts(first, end):
            for rows, errors in self._rows(file, low, high):
                yield _records(rows, errors, start + low, columns)
                low += rows.num_rows

    def check(self, first: int, end: int) -> None:
        """RecordsExpiredError unless the files of these rows are as listed."""
        if self.version is not None:
            return  # files of a version never change; a read finds out that one is gone
        for file, *_ in self._parts(first, end):
            path = self.path / file.path if file.path else self.path
            try:
                there = path.stat().st_size
            except OSError:
                there = -1
            if there != file.size_bytes:
                raise RecordsExpiredError(
                    f'file "{path}" of the stream\'s history '
                    + ("is gone" if there < 0 else "has changed"),
                    hint="The rows of this batch cannot be read again.",
                )

    def named(self, number: int) -> str:
        """The file that has row `number`, and the row's number in it, from 1."""
        file, _, low, _ = next(self._parts(number, number + 1))
        return f'row {low + 1} of file "{file.path or self.path}"'

    def _parts(self, first: int, end: int) -> Iterator[tuple[ListedFile, int, int, int]]:
        """(file, number of its first row, first row in it, end) for each file of the range."""
        start = 0
        for file in self.listed.files:
            low, high = max(first - start, 0), min(end - start, file.rows)
            if low < high:
                yield file, start, low, high
            start += file.rows
            if start >= end:
                return

    def _rows(
        self, file: ListedFile, first: int, end: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        key = (str(self.path), file.path, self.version, self.fields)
        cursor = _OPEN.pop(key, None)  # no other thread has it meanwhile
        if cursor is not None and cursor.position > first:
            cursor.close()
            cursor = None
        if cursor is None:
            cursor = self._opened(file)
        try:
            yield from cursor.read(first, end)
        except BaseException:
            cursor.close()
            raise
        while len(_OPEN) >= _KEPT:
            _OPEN.pop(next(iter(_OPEN))).close()
        _OPEN[key] = cursor

    def _opened(self, file: ListedFile) -> _Cursor:
        if self.version is None:
            assert isinstance(self.path, Path), "files are in a directory"
            return _ParquetCursor(self.path / file.path, file, self.fields)
        return _VersionCursor(self, file)


_OPEN: dict[Any, _Cursor] = {}


class _ParquetCursor(_Cursor):
    """A Parquet file; jumps to the row group of the first row that is read."""

    def __init__(self, path: Path, listed: ListedFile, fields: tuple[Field, ...]) -> None:
        super().__init__()
        self._path = path
        self._fields = fields
        with readable(path, "Parquet"):
            size = path.stat().st_size
            self._file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        rows = self._file.metadata.num_rows
        if (size, rows) != (listed.size_bytes, listed.rows):
            self.close()
            raise SourceError(
                f'file "{path}" has {rows:,} rows in {size:,} bytes, expected {listed.rows:,} in '
                f"{listed.size_bytes:,}: it was changed since the job was submitted",
                hint="Put the file back as it was, or submit the job again.",
            )
        self._items = matched_columns(path, self._file.schema_arrow, fields)
        self._names = [item["name"] for item in self._items.values()]
        self._ends = list(np.cumsum([self._rows_of(at) for at in range(self._groups)]))
        self._jump(0)

    @property
    def _groups(self) -> int:
        return int(self._file.metadata.num_row_groups)

    def _rows_of(self, group: int) -> int:
        return int(self._file.metadata.row_group(group).num_rows)

    def close(self) -> None:
        self._file.close()

    def _jump(self, group: int) -> None:
        count = batch_rows(self._file, self._names, _BATCH_ROWS, _BATCH_BYTES)
        groups = list(range(group, self._groups))
        self._batches = self._file.iter_batches(count, row_groups=groups, columns=self._names)
        self._rest = None
        self.position = int(self._ends[group - 1]) if group else 0

    def read(self, first: int, end: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        here, target = (
            int(np.searchsorted(self._ends, at, side="right")) for at in (self.position, first)
        )
        if target > here:
            self._jump(target)
        yield from super().read(first, end)

    def _errors(self) -> AbstractContextManager[None]:
        return readable(self._path, "Parquet")

    def _typed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        made = []
        for field in self._fields:
            item = self._items[field.name]
            values = batch.column(item["name"])
            if pa.types.is_null(values.type):
                values = values.cast(arrow_type(field.type))
            plain = values.cast(plain_type(values.type))
            shape = in_declared_shape(plain, field.type, place_of(item, field.type, "none").parts)
            made.append(typed(shape, field.type))
        return _with_errors(self._fields, made)


class _VersionCursor(_Cursor):
    """A data file of a version of a Delta table, without rows that a deletion vector removes."""

    def __init__(self, files: StreamFiles, file: ListedFile) -> None:
        from joins.adapters.files.delta_version import VersionFiles  # most streams have none

        super().__init__()
        self._fields = files.fields
        assert files.version is not None, "the caller has checked it"
        self._batches = VersionFiles(files.path, files.version, files.fields).rows(file.path)

    def close(self) -> None:
        self._batches = iter(())

    def _typed(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        columns = [_of_wire(batch.column(field.name), field.type) for field in self._fields]
        return _with_errors(self._fields, columns)


def typed(values: pa.Array, kind: SqlType) -> Checked:
    """Values of a file, in the shape of `kind`, as its Arrow type; marks those that do not fit."""
    target = arrow_type(kind)
    if kind.name in _AS_THEY_ARE:
        if values.type == target:
            return sound(values)
        return try_each(values, lambda part: part.cast(target), target)
    if kind.is_nested:
        kinds = [part.type for part in kind.members]
        return mapped(values, target, lambda at, child: typed(child, kinds[at]))
    outside = _beyond_calendar(values)
    if outside.any():
        values = pc.if_else(pa.array(outside), None, values)
    wire = to_wire(values.slice(0, 0), kind)
    made = try_each(values, lambda part: to_wire(part, kind), wire.type)
    declared = to_declared(made.values, declared_encoding(kind), kind)
    return Checked(declared.values, declared.failed | made.failed | outside)


def _beyond_calendar(values: pa.Array) -> Mask:
    """Timestamps outside the years 1 to 9999, which microseconds might not hold."""
    scale = _PER_S.get(getattr(values.type, "unit", ""))
    if scale is None or not pa.types.is_timestamp(values.type):
        return np.zeros(len(values), dtype=np.bool_)
    counts = integers(values.cast(pa.int64()))
    outside: Mask = (counts < _FIRST_S * scale) | (counts >= _END_S * scale)
    return outside


def _of_wire(values: pa.Array, kind: SqlType) -> Checked:
    if kind.name is TypeName.BYTES:
        return sound(values)
    return to_declared(values, declared_encoding(kind), kind)


def _with_errors(
    fields: Sequence[Field], columns: Sequence[Checked]
) -> tuple[pa.RecordBatch, pa.Array]:
    rows = pa.RecordBatch.from_arrays(
        [each.values for each in columns], names=[field.name for field in fields]
    )
    errors: list[str | None] | None = None
    for field, each in zip(fields, columns, strict=True):
        for row in np.flatnonzero(each.failed).tolist():
            errors = errors or [None] * rows.num_rows
            text = f'field "{field.name}": the value of the file is not {field.type}'
            errors[row] = errors[row] or text
    if errors is None:
        return rows, pa.nulls(rows.num_rows, pa.string())
    return rows, pa.array(errors, pa.string())


def _records(
    rows: pa.RecordBatch, errors: pa.Array, first: int, columns: Sequence[str]
) -> pa.RecordBatch:
    count = rows.num_rows
    known = {
        "partition": pa.repeat(pa.scalar(FILES, pa.int32()), count),
        "offset": pa.array(np.arange(first, first + count, dtype=np.int64)),
    }
    made = [
        known[name] if name in known else pa.nulls(count, record_type(name)) for name in columns
    ]
    row = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
    return pa.RecordBatch.from_arrays([*made, row, errors], names=[*columns, ROW, ROW_ERROR])
