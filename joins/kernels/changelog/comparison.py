"""Compares rows that were read from a source with a changelog's states, as hashes.

The source is read between two positions LOW and HIGH of its log, which are one where the read is a
consistent snapshot. The exact position of each row is unknown: a row of the source is right if it
equals any state that its key had from LOW to HIGH, and a row that only the copy has is wrong if
its key had a row in every state. `joins.lookback.verification` calls it.
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

_MODULUS = 1 << 64
_ORDER = (GENERATION, *POSITION_COLUMNS, "_offset")
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
    """One hash a row of its key, and one of all its columns, the key's included."""

    key: Hashes
    row: Hashes

    def __len__(self) -> int:
        return len(self.key)

    @staticmethod
    def of(rows: pa.Table, key: Sequence[str], columns: Sequence[str]) -> "RowDigests":
        return RowDigests(hashes_of(rows, key), hashes_of(rows, columns))

    @staticmethod
    def concatenated(parts: Iterable["RowDigests"]) -> "RowDigests":
        kept = list(parts)
        nothing = np.zeros(0, np.uint64)
        return RowDigests(
            np.concatenate([nothing, *(part.key for part in kept)]),
            np.concatenate([nothing, *(part.row for part in kept)]),
        )


@dataclass(frozen=True, slots=True)
class RowsSum:
    """What rows a set has, in any order: sets of the same rows have the same sum.

    `keys` and `values` are sums of the hashes of `RowDigests`, modulo 2^64.
    """

    rows: int = 0
    keys: int = 0
    values: int = 0

    @staticmethod
    def of(digests: RowDigests) -> "RowsSum":
        return RowsSum(len(digests), _sum(digests.key), _sum(digests.row))

    def __add__(self, other: "RowsSum") -> "RowsSum":
        return RowsSum(
            self.rows + other.rows,
            (self.keys + other.keys) % _MODULUS,
            (self.values + other.values) % _MODULUS,
        )

    def __sub__(self, other: "RowsSum") -> "RowsSum":
        return self + RowsSum(-other.rows, -other.keys, -other.values)


def _sum(hashes: Hashes) -> int:
    return int(hashes.sum(dtype=np.uint64))


def hashes_of(rows: pa.Table, names: Sequence[str]) -> Hashes:
    """One hash a row, of these columns."""
    return hash_rows([hashable(rows.column(name)) for name in names])


def hashable(column: pa.ChunkedArray) -> pa.Array:
    """A column that can be hashed: nested values as text."""
    values = whole(column)
    return encode_values(values) if pa.types.is_nested(values.type) else values


@dataclass(frozen=True, slots=True)
class RecordDigests:
    """Hashes and order of changelog records, one entry a record.

    Records of a key are ordered by generation, position and offset: a chunk that was copied twice
    has two rows at one position, and the later one counts.
    """

    rows: RowDigests
    deleted: Mask
    order: npt.NDArray[np.int64]  # rows are `_ORDER`, columns are records

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
        return RecordDigests(
            RowDigests.of(records, key, columns),
            mask_of(pc.equal(records.column("_op"), "d")),
            np.stack([numbers(records, name) for name in _ORDER]),
        )

    @staticmethod
    def concatenated(parts: Iterable["RecordDigests"]) -> "RecordDigests":
        kept = list(parts)
        nothing = np.zeros((len(_ORDER), 0), np.int64)
        return RecordDigests(
            RowDigests.concatenated(part.rows for part in kept),
            np.concatenate([np.zeros(0, np.bool_), *(part.deleted for part in kept)]),
            np.concatenate([nothing, *(part.order for part in kept)], axis=1),
        )

    def before(self, place: Place) -> Mask:
        return is_before([self.order[_ORDER.index(name)] for name in POSITION_COLUMNS], place)


@dataclass(frozen=True, slots=True)
class CopyStates:
    """What the keys of a copy were between two positions."""

    present: Hashes  # row hashes of all states in which a row is there, sorted
    # newest records of the keys that have a row in every state, as indices
    lasting: npt.NDArray[np.int64]
    lasting_keys: Hashes
    changing: int  # number of keys with several states

    def differing(self, source: RowDigests) -> Mask:
        """Rows of the source that equal no state."""
        return ~is_in(source.row, self.present)

    def extra(self, source: RowDigests) -> npt.NDArray[np.int64]:
        """Records whose keys have a row in every state, and none in the source."""
        return self.lasting[~is_in(self.lasting_keys, np.sort(source.key))]


def is_in(values: Hashes, members: Hashes) -> Mask:
    """Which values are among the sorted `members`; a sixth of the time of `numpy.isin`."""
    mask = np.zeros(len(values), np.bool_)
    if len(members):
        order = np.argsort(values)  # neighbours are looked up in the same places of memory
        ascending = values[order]
        at = np.minimum(np.searchsorted(members, ascending), len(members) - 1)
        mask[order] = members[at] == ascending
    return mask


def states_between(
    records: RecordDigests, low: Place, high: Place, *, generation: int
) -> CopyStates:
    """The states from `low` to `high`; rows of copies before `generation` are gone.

    A record is a state of its key unless the key's next record is before `low`, too. A key without
    a record before `low` has no row in its first state. With `high` equal to `low` there is one
    state: each key's newest record before it.
    """
    # masks over the records before `high`, sorted: those of one key are neighbours
    at, is_first = _by_key(records, np.flatnonzero(records.before(high)))
    if not len(at):
        return CopyStates(np.zeros(0, np.uint64), at, np.zeros(0, np.uint64), 0)
    is_newest = np.append(is_first[1:], True)
    is_early = records.before(low)[at]
    is_state = is_newest | ~np.append(is_early[1:], False)
    has_row = ~(records.deleted | (records.order[_ORDER.index(GENERATION)] < generation))[at]
    starts_absent = is_first & ~is_early
    # by key, in the order of its newest record
    firsts, newest = np.flatnonzero(is_first), np.flatnonzero(is_newest)
    is_ever_absent = np.logical_or.reduceat((is_state & ~has_row) | starts_absent, firsts)
    has_several = np.logical_or.reduceat((is_state & ~is_newest) | starts_absent, firsts)
    lasting = at[newest[~is_ever_absent]]
    return CopyStates(
        present=np.sort(records.rows.row[at[is_state & has_row]]),
        lasting=lasting,
        lasting_keys=records.rows.key[lasting],
        changing=int(np.count_nonzero(has_several)),
    )


def _by_key(
    records: RecordDigests, chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Mask]:
    """Chosen records by key, those of one key in their order; and which are the first of a key.

    Most keys have one record: only the others are sorted by all columns, which is slow.
    """
    keys = records.rows.key
    at = chosen[np.argsort(keys[chosen])]
    first = np.ones(len(at), np.bool_)
    first[1:] = keys[at[1:]] != keys[at[:-1]]
    shares_key = ~first
    shares_key[:-1] |= ~first[1:]
    places = np.flatnonzero(shares_key)
    several = at[places]
    order = records.order[:, several]
    at[places] = several[np.lexsort([*order[::-1], keys[several]])]
    return at, first


def is_before(positions: Sequence[npt.NDArray[np.int64]], place: Place) -> Mask:
    """Which records are before `place`: rows copied at it (row -1) are, its transaction is not."""
    before = np.zeros(len(positions[0]), np.bool_)
    for values, limit in zip(reversed(positions), (0, *reversed(place)), strict=True):
        before = (values < limit) | ((values == limit) & before)
    return before
