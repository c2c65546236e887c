"""When rows of a table with versions were deleted, as far as their topic tells it."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of
from joins.kernels.index.hash_table import Hashes, hash_rows
from joins.kernels.topic.pieces import Action, ChangePiece, Longs
from joins.kernels.topic.row_times import GONE, NO_TIME, Times
from joins.plan.formats import RECORD_TIMESTAMP


class KeptTimes(Protocol):
    """The newest time of each key."""

    def take(self, hashes: Hashes, times: Times) -> Times:
        """Take changes, `GONE` of deletions; what each key had before, as `RowTimes.take`."""


@dataclass(frozen=True, slots=True)
class DeletionTimes:
    """Gives the deletions of a topic the rowtime that ends their row.

    A deletion that has a time itself ends the row there: the column is the time of the record or
    of its change. Where the column is one of the value, a deletion brings none, and has the time
    of the row that it deletes. A deletion of a row that is not there, such as the tombstone behind
    a connector's deletion, is none.

    Attributes:
        rowtime: the column.
        metadata: the key of the metadata that it is, None of a column of the value.
    """

    rowtime: str
    metadata: str | None = None

    @property
    def needs_rows(self) -> bool:
        return self.metadata != RECORD_TIMESTAMP

    def of(self, piece: ChangePiece, kept: KeptTimes | None) -> tuple[ChangePiece, Longs]:
        """`piece` with `ended`, and the places of deletions of which nobody knows when they were.

        Args:
            piece: its `actions` are changed.
            kept: is given the changes; None where no rows are needed.
        """
        if kept is None:
            return replace(piece, ended=piece.after.select([self.rowtime])), np.zeros(0, np.int64)
        acts = np.flatnonzero(piece.actions != Action.NOTHING)
        chosen = pa.array(acts)
        own = piece.after.column(self.rowtime).take(chosen).cast(pa.int64())
        is_deleted = piece.actions[acts] == Action.DELETE
        times = pc.fill_null(own, NO_TIME).to_numpy(zero_copy_only=False)
        hashes = hash_rows(piece.key.take(chosen).columns)
        before = kept.take(hashes, np.where(is_deleted, GONE, times))
        is_open = is_deleted & ~mask_of(own.is_valid())
        is_none = is_open & (before == GONE)
        piece.actions[acts[is_none]] = Action.NOTHING
        ended = np.full(len(piece), NO_TIME)
        ended[acts] = np.where(is_open, before, times)
        column = pa.array(ended, mask=np.isin(ended, (GONE, NO_TIME)))
        unknown = acts[is_open & ~is_none] if self.metadata is not None else acts[:0]
        kind = piece.after.schema.field(self.rowtime).type
        times_of = pa.RecordBatch.from_arrays([column.cast(kind)], names=[self.rowtime])
        return replace(piece, ended=times_of), unknown
