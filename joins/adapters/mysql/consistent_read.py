"""Reads chunks of a table at one position of the binlog, as changelog rows."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.adapters.mysql.chunks import Chunk, bounds_on, chunk_on
from joins.adapters.mysql.connection import MysqlConnectionConfig, SafeConnection, connected
from joins.adapters.mysql.position import BinlogMark, begin_read, end_of_binlog
from joins.adapters.mysql.table import CapturedTable
from joins.kernels.changelog.comparison import Place, copied_rows
from joins.kernels.expressions.casts import Mask, mask_of
from joins.kernels.json.encode import encode_objects


class ConsistentRead:
    """One transaction on the source; what it reads is true between `low` and `high()`."""

    def __init__(
        self,
        connection: SafeConnection,
        table: CapturedTable,
        mark: BinlogMark,
        *,
        is_repeatable: bool,
    ) -> None:
        self._connection = connection
        self._table = table
        self._mark = mark
        self.low = _place(mark)
        self.is_repeatable = is_repeatable  # a second read of a chunk gives the same rows
        self.left_out = 0  # rows whose keys were excluded, so far

    def chunks(self, rows_each: int) -> list[Chunk]:
        return list(bounds_on(self._connection, self._table, rows_each=rows_each))

    def rows(self, chunk: Chunk, without: Collection[str] = ()) -> Iterator[pa.Table]:
        """The chunk's rows, through the encoder and the decoder of a copy, so equal as there.

        Rows whose keys, as JSON, are in `without` are left out, and counted.
        """
        excluded = pa.array(list(without), pa.string())
        table = self._table
        for wire in chunk_on(self._connection, table, chunk):
            if len(excluded):
                keys = encode_objects(wire.select(table.primary_key))
                kept = pc.invert(pc.is_in(keys, value_set=excluded))
                self.left_out += len(kept) - (pc.sum(kept).as_py() or 0)
                wire = wire.filter(kept)
            if wire.num_rows:
                yield copied_rows(wire, table.primary_key, table.captured)

    def high(self) -> tuple[Place, Mapping[str, Any]]:
        """The position behind everything that was read so far, and its form for people."""
        mark = self._mark
        if not self.is_repeatable:
            mark = end_of_binlog(self._connection, mark.position.epoch)
        shown = {"file": mark.file_name, "pos": mark.position.pos}
        return _place(mark), shown if mark.gtid is None else {**shown, "gtid": mark.gtid}

    def keys_in(self, keys: pa.Table, chunk: Chunk) -> Mask | None:
        """Which of `keys` belong to the chunk; None if only the server can compare such keys."""
        column = keys.column(0)
        if keys.num_columns > 1 or not pa.types.is_integer(column.type):
            return None
        inside = np.ones(keys.num_rows, np.bool_)
        if chunk.after is not None:
            inside &= mask_of(pc.greater(column, int(chunk.after[0])))
        if chunk.through is not None:
            inside &= mask_of(pc.less_equal(column, int(chunk.through[0])))
        return inside


def _place(mark: BinlogMark) -> Place:
    position = mark.position
    return position.epoch, position.file, position.pos


@contextmanager
def consistent_read(
    config: MysqlConnectionConfig, table: CapturedTable, epoch: int
) -> Iterator[ConsistentRead]:
    """SourceUnavailableError or SnapshotNeededError as for the copy of the table."""
    with connected(config) as connection:
        mark, is_repeatable = begin_read(config, connection, epoch)
        yield ConsistentRead(connection, table, mark, is_repeatable=is_repeatable)
