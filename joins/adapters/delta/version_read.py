"""Reads the rows of one version of a Delta table, as changelog rows."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from joins.adapters.delta.feed_rows import DataFile, files_of, read_rows
from joins.adapters.delta.source import SourceTable, captured_columns
from joins.kernels.changelog.comparison import Place, copied_rows
from joins.kernels.expressions.casts import Mask
from joins.plan.plan import Field


class VersionRead:
    """What the table is at its `version`, in any order; files are its chunks."""

    is_repeatable = True
    left_out = 0

    def __init__(
        self,
        table: SourceTable,
        fields: tuple[Field, ...],
        primary_key: tuple[str, ...],
        epoch: int,
    ) -> None:
        self._table = table
        self._columns = captured_columns(fields)
        self._key = primary_key
        self.low: Place = (epoch, table.version + 1, 0)  # its own changes are before it

    def chunks(self, rows_each: int) -> list[DataFile]:
        return list(files_of(self._table)[0])

    def rows(
        self,
        chunk: DataFile,
        without: Collection[str] = (),
    ) -> Iterator[pa.Table]:
        for rows in read_rows(self._table, chunk):
            if rows.num_rows:
                yield copied_rows(rows, self._key, self._columns)

    def high(self) -> tuple[Place, Mapping[str, Any]]:
        return self.low, {"version": self._table.version}

    def keys_in(self, keys: pa.Table, chunk: DataFile) -> Mask | None:
        return None
