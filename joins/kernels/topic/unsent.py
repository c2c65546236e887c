"""Fills values that a database did not send from earlier rows of their keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joins.kernels.debezium.columns import MAY_BE_UNSENT
from joins.kernels.topic.keys import GONE, KeptTimes, KeyHashes, key_hashes
from joins.kernels.topic.pieces import Action, ChangePiece, Longs
from joins.plan.plan import Field
from joins.plan.types import arrow_type

OFFSET = "__offset"
"""Column of a block behind the values: the record's offset."""
_ROW_BITS = 20  # of a row in its block; the rest of a place is the block's position
_UNKNOWN = -1
BlockOf = Callable[[int], pa.RecordBatch]


def filled_fields(fields: Sequence[Field], primary_key: Sequence[str]) -> list[Field]:
    """Columns that a database may leave out of a change."""
    return [f for f in fields if f.name not in primary_key and f.type.name in MAY_BE_UNSENT]


def block_schema(fields: Sequence[Field]) -> pa.Schema:
    columns = [(field.name, arrow_type(field.type)) for field in fields]
    return pa.schema([*columns, (OFFSET, pa.int64())])


def place_of(position: int, rows: Longs) -> Longs:
    return (position << _ROW_BITS) + rows


def position_of(places: Longs) -> tuple[Longs, Longs]:
    """Positions of blocks, and rows in them."""
    return places >> _ROW_BITS, places & ((1 << _ROW_BITS) - 1)


@dataclass(frozen=True, slots=True)
class FilledPiece:
    """A piece without unsent values; `unknown` are positions whose earlier row is not known.

    `block` has the rows to keep, `places` where each key's newest row is from now on. Both count
    only without `unknown`.
    """

    piece: ChangePiece
    unknown: Longs
    keys: KeyHashes
    places: Longs
    block: pa.RecordBatch


def fill(
    piece: ChangePiece, names: Sequence[str], kept: KeptTimes, block_of: BlockOf, position: int
) -> FilledPiece:
    """Fill `piece` in its order; a deleted row has no values.

    `kept` has the place of each key's newest row, `block_of` the block at a position; the piece's
    own rows become the block at `position`.
    """
    acts = np.flatnonzero(piece.actions != Action.NOTHING)
    keys = key_hashes([column.take(pa.array(acts)) for column in piece.key.columns])
    is_row = piece.actions[acts] == Action.UPSERT
    places = np.where(is_row, place_of(position, np.arange(len(acts))), GONE)
    sources = _Sources(piece.offsets[acts], position, block_of)
    unknown: list[int] = []
    from_rows = {name: np.arange(len(acts)) for name in names}
    if piece.unsent is not None:
        before = kept.before(keys, places)
        open_rows = piece.unsent[acts] & is_row[:, None]
        columns = [piece.after.schema.get_field_index(name) for name in names]
        for row in np.flatnonzero(open_rows.any(axis=1)).tolist():
            earlier = sources.row_of(row, int(before[row]))
            if earlier == _UNKNOWN:
                unknown.append(int(acts[row]))
                continue
            for name, column in zip(names, columns, strict=True):
                if open_rows[row, column]:
                    same = earlier < len(acts)
                    from_rows[name][row] = from_rows[name][earlier] if same else earlier
    values = {
        name: _taken(piece.after.column(name).take(pa.array(acts)), sources, name, from_rows[name])
        for name in names
    }
    block = pa.RecordBatch.from_pydict({**values, OFFSET: pa.array(piece.offsets[acts])})
    filled = replace(piece, after=_spread(piece.after, values, acts), unsent=None)
    return FilledPiece(filled, np.array(unknown, np.int64), keys, places, block)


class _Sources:
    """Rows of other blocks that a piece needs; they count after the piece's own rows."""

    def __init__(self, offsets: Longs, position: int, of: BlockOf) -> None:
        self._offsets = offsets
        self._position = position
        self._block_of = of
        self.rows: list[pa.RecordBatch] = []

    def row_of(self, row: int, place: int) -> int:
        """Number of the earlier row at `place`, or `_UNKNOWN`."""
        if place == GONE:
            return _UNKNOWN
        position, at = place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1)
        if position == self._position:
            return at
        block = self._block_of(position)
        if block.column(OFFSET)[at].as_py() >= int(self._offsets[row]):
            return _UNKNOWN  # the topic is being read again
        self.rows.append(block.slice(at, 1))
        return len(self._offsets) + len(self.rows) - 1


def _taken(own: pa.Array, sources: _Sources, name: str, rows: Longs) -> pa.Array:
    if not sources.rows:
        return own.take(pa.array(rows))
    others = [batch.column(name) for batch in sources.rows]
    return pa.concat_arrays([own, *others]).take(pa.array(rows))


def _spread(after: pa.RecordBatch, values: dict[str, pa.Array], acts: Longs) -> pa.RecordBatch:
    places = np.full(after.num_rows, -1, np.int64)
    places[acts] = np.arange(len(acts))
    taken = pa.array(places, mask=places < 0)
    columns = [
        values[name].take(taken) if name in values else column
        for name, column in zip(after.schema.names, after.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=after.schema)
