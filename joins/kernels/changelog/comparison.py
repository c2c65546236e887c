"""Compares rows that were read from a source at a position with a changelog's states there.

Both sides are hashes of keys and of whole rows. A changelog has several states between two
positions; a row of the source is right if it equals any of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.changes import GENERATION, Progress, numbers
from joins.kernels.changelog.digest import POSITION_COLUMNS
from joins.kernels.changelog.envelope import (
    BinlogPosition,
    CapturedColumn,
    decode,
    encode_snapshot,
)
from joins.kernels.expressions.casts import Mask, mask_of, whole
from joins.kernels.index.hash_table import Hashes, hash_rows
from joins.kernels.json.encode import encode_values

Place = tuple[int, int, int]
"""Epoch, file and position between two transactions; changes before it have smaller ones."""

STATE_COLUMNS = ("_op", "_partition", "_offset", *POSITION_COLUMNS, GENERATION)


def copied_rows(
    wire: pa.RecordBatch, primary_key: tuple[str, ...], columns: tuple[CapturedColumn, ...]
) -> pa.Table:
    """Rows of a source as a copy has them: through its encoder and its decoder."""
    nowhere = BinlogPosition(0, 0, 0)
    records = encode_snapshot(wire, primary_key, nowhere, generation=0, partitions=1)
    offsets = pa.array(np.arange(records.num_rows, dtype=np.int64))
    decoded = decode(records.append_column("offset", offsets), columns, topic="the source")
    return pa.Table.from_batches([decoded.batch])


class DifferenceKind(StrEnum):
    """How a row differs.

    Attributes:
        MISSING: only the source has it.
        EXTRA: only the copy has it.
        CHANGED: both have the key, with other values.
    """

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class RowDigests:
    """Hashes of rows, by row; `row` covers all columns, the key's included."""

    key: Hashes
    row: Hashes

    def __len__(self) -> int:
        return len(self.key)

    @staticmethod
    def of(rows: pa.Table, key: Sequence[str], columns: Sequence[str]) -> "RowDigests":
        return RowDigests(hashes_of(rows, key), hashes_of(rows, columns))

    @staticmethod
    def joined(parts: Iterable["RowDigests"]) -> "RowDigests":
        kept = list(parts)
        nothing = np.zeros(0, np.uint64)
        return RowDigests(
            np.concatenate([nothing, *(part.key for part in kept)]),
            np.concatenate([nothing, *(part.row for part in kept)]),
        )


def hashes_of(rows: pa.Table, names: Sequence[str]) -> Hashes:
    """A hash of these columns by row."""
    return hash_rows([_plain(rows.column(name)) for name in names])


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column that can be hashed: nested values as text."""
    values = whole(column)
    return encode_values(values) if pa.types.is_nested(values.type) else values


@dataclass(frozen=True, slots=True)
class RecordDigests:
    """Hashes and order of changelog records.

    `order` is generation, epoch, file, pos, row, offset: a chunk that was copied twice has two rows
    at one position, and the later one counts.
    """

    rows: RowDigests
    deleted: Mask
    order: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of(
        records: pa.Table, key: Sequence[str], columns: Sequence[str], progress: Progress
    ) -> "RecordDigests":
        """Records without watermark records; `progress` has those of all files."""
        ignored = progress.ignored(records)
        if ignored.any():
            records = records.filter(pa.array(~ignored))
        names = (GENERATION, *POSITION_COLUMNS, "_offset")
        return RecordDigests(
            RowDigests.of(records, key, columns),
            mask_of(pc.equal(records.column("_op"), "d")),
            np.column_stack([numbers(records, name) for name in names]),
        )

    @staticmethod
    def joined(parts: Iterable["RecordDigests"]) -> "RecordDigests":
        kept = list(parts)
        return RecordDigests(
            RowDigests.joined(part.rows for part in kept),
            np.concatenate([np.zeros(0, np.bool_), *(part.deleted for part in kept)]),
            np.concatenate([np.zeros((0, 6), np.int64), *(part.order for part in kept)]),
        )


@dataclass(frozen=True, slots=True)
class CopyStates:
    """What the keys of a copy were between two positions."""

    present: Hashes  # row hashes of all states in which a row is there
    lasting: npt.NDArray[np.int64]  # indices of records whose keys have a row in every state
    lasting_keys: Hashes
    changing: int  # number of keys with several states

    def differing(self, source: RowDigests) -> Mask:
        """Rows of the source that equal no state."""
        return ~np.isin(source.row, self.present)

    def extra(self, source: RowDigests) -> npt.NDArray[np.int64]:
        """Records whose keys have a row in every state, and none in the source."""
        return self.lasting[~np.isin(self.lasting_keys, source.key)]


def states_between(
    records: RecordDigests, low: Place, high: Place, *, generation: int
) -> CopyStates:
    """The states from `low` to `high`; rows of copies before `generation` are gone.

    With `high` equal to `low` there is one state: each key's newest record before it.
    """
    before_high = np.flatnonzero(_before(records.order, high))
    order, keys = records.order[before_high], records.rows.key[before_high]
    sorted_rows = np.lexsort([*order.T[::-1], keys])
    at, order, keys = before_high[sorted_rows], order[sorted_rows], keys[sorted_rows]
    count = len(at)
    first = np.ones(count, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    is_base = _before(order, low)
    is_superseded = np.zeros(count, np.bool_)  # the next record of the key is a base, too
    is_superseded[:-1] = is_base[1:] & ~first[1:]
    starts_absent = first & ~is_base
    kept = ~is_superseded
    gone = records.deleted[at] | (order[:, 0] < generation)
    absent = np.unique(keys[(kept & gone) | starts_absent])
    is_there = kept & ~gone
    lasting = is_there & ~np.isin(keys, absent)
    newest = np.zeros(count, np.bool_)
    newest[:-1], newest[-1:] = first[1:], True
    chosen = lasting & newest
    several = np.unique(keys[(kept & ~newest) | starts_absent])
    return CopyStates(
        present=np.unique(records.rows.row[at[is_there]]),
        lasting=at[chosen],
        lasting_keys=keys[chosen],
        changing=len(several),
    )


def is_before(positions: Sequence[npt.NDArray[np.int64]], place: Place) -> Mask:
    """Which records are before `place`: copied rows at it (row -1) are, its transaction is not."""
    before = np.zeros(len(positions[0]), np.bool_)
    for values, limit in zip(reversed(positions), (0, *reversed(place)), strict=True):
        before = (values < limit) | ((values == limit) & before)
    return before


def _before(order: npt.NDArray[np.int64], place: Place) -> Mask:
    return is_before([order[:, column] for column in (1, 2, 3, 4)], place)
