"""Parquet files that a task stages and the driver commits: whole, fsynced, described in one line.

A staged file is invisible until a commit names it; an uncommitted file is an orphan, never a
duplicate.
"""

import hashlib
import json
import re
import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from joins.kernels.local_files import sync
from joins.kernels.table_path import TablePath

_FILE_NAME = re.compile(
    r"part-(\d{5,})-(\d{10,})-(\d{5,})-(\d+)-[0-9a-f]{32}(?:-([0-9a-f]{16}))?\.parquet"
)


def writer_tag(app_id: str) -> str:
    return hashlib.sha256(app_id.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The writer of a file, unique for each attempt, so that no two attempts share a name.

    `task` is the Spark partition, `attempt` Spark's task attempt id. `writer` is the `writer_tag`
    of the committing job, in tables that others may write to.
    """

    epoch: int
    batch: int
    task: int
    attempt: int
    writer: str = ""

    def file_name(self) -> str:
        tag = f"-{self.writer}" if self.writer else ""
        return (
            f"part-{self.epoch:05d}-{self.batch:010d}-{self.task:05d}-{self.attempt}"
            f"-{uuid.uuid4().hex}{tag}.parquet"
        )

    @classmethod
    def of_name(cls, name: str) -> Self | None:
        """The origin in a file name; None for files of other writers."""
        match = _FILE_NAME.fullmatch(name)
        if match is None:
            return None
        epoch, batch, task, attempt = map(int, match.groups()[:4])
        return cls(epoch, batch, task, attempt, match.group(5) or "")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete file that waits for its commit; `stats` is Delta's JSON text."""

    path: str
    size_bytes: int
    rows: int
    stats: str


_GROUP_ROWS, _GROUP_BYTES = 65_536, 16 << 20  # gathered for one row group of a kept file
_SAMPLE_ROWS = 2048
_MIN_MAX_TYPES = (
    pa.types.is_integer,
    pa.types.is_date,
    pa.types.is_boolean,
    pa.types.is_timestamp,
)


def _json_bound(scalar: pa.Scalar) -> int | bool | str:
    """A value in Delta's statistics; raises OverflowError if it is not exact there."""
    if pa.types.is_timestamp(scalar.type):
        # Truncated to milliseconds, as in Delta
        micros = int(scalar.cast(pa.timestamp("us", scalar.type.tz)).value)
        if micros % 1000:
            raise OverflowError("a part of a millisecond")
        moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
        text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return text if scalar.type.tz is None else f"{text}Z"
    value: int | bool | date = scalar.as_py()
    return value.isoformat() if isinstance(value, date) else value


class _ColumnStats:
    """Null counts of plain columns; bounds where Delta stores exact values."""

    def __init__(self, kind: pa.DataType) -> None:
        self.nulls = 0
        self.counted = not pa.types.is_nested(kind)  # Delta counts in the leaves of these
        self.bounded = any(test(kind) for test in _MIN_MAX_TYPES)
        self.minimum: Any = None
        self.maximum: Any = None

    def add(self, column: pa.ChunkedArray) -> None:
        self.nulls += column.null_count
        if not self.bounded or column.null_count == len(column):
            return
        bounds = pc.min_max(column)
        try:
            low, high = _json_bound(bounds["min"]), _json_bound(bounds["max"])
        except (OverflowError, pa.ArrowInvalid):  # also a day that readers may not have
            self.bounded, self.minimum, self.maximum = False, None, None
            return
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _repeating(batch: pa.RecordBatch) -> list[str]:
    """Columns with repeated values; a dictionary of others would double the file."""
    sample = batch.slice(0, _SAMPLE_ROWS)
    columns = zip(sample.schema.names, sample.columns, strict=True)
    return [
        name
        for name, column in columns
        if not pa.types.is_nested(column.type)
        and 2 * pc.count_distinct(column).as_py() <= len(column)
    ]


class ParquetStage(AbstractContextManager["ParquetStage"]):
    """Writes batches of one schema into one new file below a table's root.

    Use as a context manager; `finish` gives the staged file, or None without rows. A file that is
    not `kept` is a transfer: it is written fast and is not fsynced. A `short_lived` one takes a
    quarter of the CPU time of others, and three times the space. `finish` uploads a file of a store
    as a whole.
    """

    def __init__(
        self,
        root: TablePath,
        schema: pa.Schema,
        origin: FileOrigin,
        *,
        kept: bool = True,
        short_lived: bool = False,
    ) -> None:
        self._root = root
        self._kept = kept
        self._short_lived = short_lived
        self._schema = schema
        self._name = origin.file_name()
        self._writer: pq.ParquetWriter | None = None
        self._memory: pa.BufferOutputStream | None = None
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._rows = 0
        self._stats = [_ColumnStats(field.type) for field in schema]

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            if self._memory is None:
                (self._root / self._name).unlink(missing_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        if not batch.schema.equals(self._schema):
            raise ValueError(f"rows have {batch.schema.names}, expected {self._schema.names}")
        if self._writer is None:
            options = self._options(batch)
            self._writer = pq.ParquetWriter(self._target(), self._schema, version="2.6", **options)
        self._gathered.append(batch)
        self._gathered_bytes += batch.nbytes
        rows = sum(each.num_rows for each in self._gathered)
        if not self._kept or rows >= _GROUP_ROWS or self._gathered_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        assert self._writer is not None, "a row opens the file"
        group = pa.Table.from_batches(self._gathered, self._schema)
        self._gathered, self._gathered_bytes = [], 0
        if group.num_rows == 0:
            return
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._rows += group.num_rows
        for stats, column in zip(self._stats, group.columns, strict=True):
            stats.add(column)

    def _options(self, batch: pa.RecordBatch) -> dict[str, Any]:
        if not self._kept:
            return {"compression": "none", "use_dictionary": False}
        if not self._short_lived:
            return {"compression": "zstd", "use_dictionary": _repeating(batch)}
        numbers = [each.name for each in self._schema if _is_number(each.type)]
        return {
            "compression": "none",
            "use_dictionary": False,
            "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        }

    def _target(self) -> Path | pa.BufferOutputStream:
        path = self._root / self._name
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
            return path
        self._memory = pa.BufferOutputStream()
        return self._memory

    def finish(self) -> StagedFile | None:
        """Close the file; a kept one is durable on return. Raises OSError."""
        if self._writer is None:
            return None
        self._write_group()
        self._writer.close()
        self._writer = None
        size = self._settled()
        names = self._schema.names
        bounded = [(n, s) for n, s in zip(names, self._stats, strict=True) if s.minimum is not None]
        stats = {
            "numRecords": self._rows,
            "minValues": {name: s.minimum for name, s in bounded},
            "maxValues": {name: s.maximum for name, s in bounded},
            "nullCount": {n: s.nulls for n, s in zip(names, self._stats, strict=True) if s.counted},
        }
        return StagedFile(self._name, size, self._rows, json.dumps(stats))

    def _settled(self) -> int:
        path = self._root / self._name
        if not isinstance(path, Path):
            assert self._memory is not None, "the writer has written somewhere"
            content = self._memory.getvalue()
            path.put(content)
            return int(content.size)
        for place in (path, path.parent) if self._kept else ():
            sync(place)
        return path.stat().st_size


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table that others may write to; `writer` tags this job's files."""

    root: TablePath
    writer: str = ""

    def stage(self, schema: pa.Schema, origin: FileOrigin) -> ParquetStage:
        return ParquetStage(self.root, schema, replace(origin, writer=self.writer))
