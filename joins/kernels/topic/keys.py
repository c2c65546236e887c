"""Memory of a topic's keys: the number and the time of each.

`KnownKeys` has the number of the first record. `RowTimes` has the time of the newest row, whatever
its time is: a deletion without a time gets that of the row that it removes, as in Flink, which
takes the deleted row from the state of its key (`ChangelogNormalize`).
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.expressions.casts import mask_of
from joins.kernels.index.hash_table import Hashes, hash_rows
from joins.kernels.topic.pieces import Action, ChangePiece, Longs
from joins.plan.formats import RECORD_TIMESTAMP

Times = npt.NDArray[np.int64]

GONE = np.iinfo(np.int64).min
"""There is no row of the key."""
NO_TIME = GONE + 1
"""Its row has no time: the column is NULL."""
Numbers = npt.NDArray[np.int32]
KeyHashes = tuple[Hashes, Hashes]
"""Two independent hashes of each key: that two of 10^9 keys share both has odds of 1 to 10^20."""
_HASHES = [("hash", np.uint64), ("check", np.uint64)]
_KEPT = np.dtype([*_HASHES, ("value", np.int32)])
KEY_BYTES = _KEPT.itemsize
"""Of a key in the bytes that `KnownKeys.add` returns."""
_KEPT_TIME = np.dtype([*_HASHES, ("value", np.int64)])
TIME_BYTES = _KEPT_TIME.itemsize
"""Of a key in the bytes that `RowTimes.take` returns."""
_CHECK = 0xD6E8FEB86659FD93
_IN_MEMORY = 1 << 20
_MERGED = 1 << 18  # keys of each run that a merge has in memory


def key_hashes(columns: Sequence[pa.Array]) -> KeyHashes:
    return hash_rows(columns), hash_rows(columns, _CHECK)


def _by_key(keys: KeyHashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Positions by key, those of one key in their order; and where another key begins."""
    hashes, checks = keys
    order = np.lexsort((checks, hashes))
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(hashes[order]) != 0) | (np.diff(checks[order]) != 0)
    return order, begins


@dataclass(frozen=True, slots=True)
class _Run:
    """Entries sorted by their first hash; a pair of hashes occurs once."""

    hashes: Hashes
    checks: Hashes
    values: npt.NDArray[Any]

    @classmethod
    def newest(cls, hashes: Hashes, checks: Hashes, values: npt.NDArray[Any]) -> "_Run":
        """A run of the last of equal entries."""
        order, begins = _by_key((hashes, checks))
        last = order[np.append(begins[1:], True)] if len(order) else order
        return cls(hashes[last], checks[last], values[last])

    def __len__(self) -> int:
        return len(self.hashes)

    def cut(self, first: int, end: int) -> "_Run":
        return _Run(self.hashes[first:end], self.checks[first:end], self.values[first:end])

    def find(self, keys: "_Run") -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        is_there = np.zeros(len(keys), dtype=np.bool_)
        values = keys.values.copy()
        places = np.searchsorted(self.hashes, keys.hashes)
        rows = np.arange(len(keys))
        while len(rows):  # once, but where keys share the first hash
            rows = rows[places[rows] < len(self)]
            rows = rows[self.hashes[places[rows]] == keys.hashes[rows]]
            same = self.checks[places[rows]] == keys.checks[rows]
            is_there[rows[same]] = True
            values[rows[same]] = self.values[places[rows[same]]]
            rows = rows[~same]
            places[rows] += 1
        return is_there, values

    def filter(self, which: npt.NDArray[np.bool_]) -> "_Run":
        return _Run(self.hashes[which], self.checks[which], self.values[which])

    def packed(self, kind: np.dtype[Any]) -> bytes:
        kept = np.empty(len(self), kind)
        kept["hash"], kept["check"], kept["value"] = self.hashes, self.checks, self.values
        return kept.tobytes()


class _Runs:
    """A value of each key, in runs, of which the newest counts.

    Runs up to `in_memory` keys are in memory. Larger ones are in mapped files without a name, below
    `directory`: the kernel loads the pages that a lookup needs and drops them under pressure.
    """

    def __init__(self, kind: np.dtype[Any], directory: Path, in_memory: int) -> None:
        self._kind = kind
        self._directory = directory
        self._in_memory = in_memory
        self.all: list[_Run] = []

    def __len__(self) -> int:
        return sum(map(len, self.all))

    def find(self, keys: _Run) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Which keys have a value, and the values; those of `keys` where there are none."""
        is_known, values = np.zeros(len(keys), dtype=np.bool_), keys.values.copy()
        for run in self.all:
            is_there, of_run = run.find(keys)
            values[is_there] = of_run[is_there]
            is_known |= is_there
        return is_known, values

    def load(self, data: bytes) -> None:
        kept = np.frombuffer(data, self._kind)
        self.append(_Run.newest(kept["hash"], kept["check"], kept["value"]))

    def append(self, run: _Run) -> None:
        if not len(run):
            return
        runs = self.all
        runs.append(run)
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            later, earlier = runs.pop(), runs.pop()
            runs.append(self._merged(earlier, later))

    def whole(self) -> _Run | None:
        """All keys as one run, which replaces the others; None without any."""
        while len(self.all) > 1:
            later, earlier = self.all.pop(), self.all.pop()
            self.all.append(self._merged(earlier, later))
        return self.all[0] if self.all else None

    def _merged(self, one: _Run, other: _Run) -> _Run:
        target, width = self._room(len(one) + len(other)), _MERGED
        at = one_at = other_at = 0
        while one_at < len(one) or other_at < len(other):
            parts = one.cut(one_at, one_at + width), other.cut(other_at, other_at + width)
            rests = len(one) - one_at - len(parts[0]), len(other) - other_at - len(parts[1])
            # Up to where both are known: what is behind the lower end comes with the next parts.
            ends = [part.hashes[-1] for part, rest in zip(parts, rests, strict=True) if rest]
            counts = [
                int(np.searchsorted(part.hashes, min(ends), "left")) if ends else len(part)
                for part in parts
            ]
            if not any(counts):  # one hash fills a part
                width *= 2
                continue
            known = [part.cut(0, count) for part, count in zip(parts, counts, strict=True)]
            merged = _Run.newest(
                np.concatenate([part.hashes for part in known]),
                np.concatenate([part.checks for part in known]),
                np.concatenate([part.values for part in known]),
            )
            end = at + len(merged)
            target.hashes[at:end] = merged.hashes
            target.checks[at:end] = merged.checks
            target.values[at:end] = merged.values
            at, one_at, other_at = end, one_at + counts[0], other_at + counts[1]
        return target.cut(0, at)

    def _room(self, keys: int) -> _Run:
        of_value = self._kind["value"]
        if keys <= self._in_memory:
            return _Run(
                np.empty(keys, np.uint64), np.empty(keys, np.uint64), np.empty(keys, of_value)
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._directory) as file:
            file.truncate(keys * self._kind.itemsize)
            return _Run(
                np.memmap(file, np.uint64, "r+", 0, (keys,)),
                np.memmap(file, np.uint64, "r+", 8 * keys, (keys,)),
                np.memmap(file, of_value, "r+", 16 * keys, (keys,)),
            )


class _Kept:
    """Keys with a value each, of which `load` takes those of an earlier process."""

    kind: ClassVar[np.dtype[Any]]

    def __init__(self, directory: Path, in_memory: int = _IN_MEMORY) -> None:
        self._runs = _Runs(self.kind, directory, in_memory)

    def __len__(self) -> int:
        return len(self._runs)

    def load(self, data: bytes) -> None:
        self._runs.load(data)


class KnownKeys(_Kept):
    """Keys with the number of their first record."""

    kind = _KEPT

    def add(self, keys: KeyHashes, numbers: Numbers) -> tuple[Numbers, bytes]:
        """Adds keys; returns the first number of each, and the new keys as bytes for `load`."""
        hashes, checks = keys
        order, is_first = _by_key(keys)
        first = order[is_first]
        unique = _Run(hashes[first], checks[first], numbers[first].astype(np.int32))
        is_known, known = self._runs.find(unique)
        new = unique.filter(~is_known)
        self._runs.append(new)
        result = np.empty(len(order), np.int32)
        result[order] = known[np.cumsum(is_first) - 1]
        return result, new.packed(_KEPT)


class RowTimes(_Kept):
    """The newest time of each key; deleted ones stay, too."""

    kind = _KEPT_TIME

    def take(self, keys: KeyHashes, times: Times) -> tuple[Times, bytes]:
        """Applies changes in their order; returns the time before each, `GONE` without a row.

        `times` are those of the rows, `NO_TIME` for a NULL and `GONE` for a deletion. Also returns
        the bytes that `load` takes.
        """
        before = self.before(keys, times)
        newest = _Run.newest(*keys, times)
        self._runs.append(newest)
        return before, newest.packed(_KEPT_TIME)

    def before(self, keys: KeyHashes, times: Times) -> Times:
        """As `take`, and applies nothing."""
        hashes, checks = keys
        order, is_first = _by_key(keys)
        first = order[is_first]
        before = np.empty(len(order), np.int64)
        before[1:] = times[order[:-1]]
        none = np.full(len(first), GONE)
        before[is_first] = self._runs.find(_Run(hashes[first], checks[first], none))[1]
        back = np.empty_like(before)
        back[order] = before
        return back

    def parts(self) -> Iterator[bytes]:
        """One entry a key, as bytes for `load`."""
        run = self._runs.whole()
        for first in range(0, 0 if run is None else len(run), _MERGED):
            assert run is not None
            yield run.cut(first, first + _MERGED).packed(_KEPT_TIME)

    def known(self) -> Iterator[tuple[KeyHashes, Times]]:
        """As `parts`, not packed."""
        for data in self.parts():
            kept = np.frombuffer(data, _KEPT_TIME)
            yield (kept["hash"].copy(), kept["check"].copy()), kept["value"].copy()


class KeptTimes(Protocol):
    """Newest time of each key."""

    def take(self, keys: KeyHashes, times: Times) -> Times:
        """As `RowTimes.take`, without the bytes."""

    def before(self, keys: KeyHashes, times: Times) -> Times:
        """As `RowTimes.before`."""


def foreign_keys(piece: ChangePiece, acts: Longs, kept: KeptTimes) -> Longs:
    """Positions of the records `acts` whose key has a row in another partition of the table.

    Only without one `kept` receives the changes: of each key the partition that has its row. A
    tombstone names no partition, and deletes in any.
    """
    keys = key_hashes([column.take(pa.array(acts)) for column in piece.key.columns])
    own = piece.tables[acts]
    owners = np.where(piece.actions[acts] == Action.DELETE, GONE, own)
    before = kept.before(keys, owners)
    is_foreign = (before != GONE) & (before != own) & (own != 0)
    if not is_foreign.any():
        kept.take(keys, owners)
    foreign: Longs = acts[is_foreign]
    return foreign


@dataclass(frozen=True, slots=True)
class DeletionTimes:
    """Gives deletions in a topic the rowtime that ends their row.

    `metadata` names the record's or the change's time; None takes the time of the removed row. A
    deletion of a row that does not exist, such as a tombstone after a delete, is ignored.
    """

    rowtime: str
    metadata: str | None = None

    @property
    def needs_rows(self) -> bool:
        return self.metadata != RECORD_TIMESTAMP

    def of(
        self, piece: ChangePiece, kept: KeptTimes | None, offsets: KeptTimes | None = None
    ) -> tuple[ChangePiece, Longs]:
        """`piece` with `ended`, and the positions of deletions whose time is unknown.

        Changes `piece.actions`. `kept` receives the changes; None if `needs_rows` is false.
        `offsets` receives their offsets, of a topic that may be read again from an earlier one: a
        row from behind a deletion is none that it removes.
        """
        if kept is None:
            return replace(piece, ended=piece.after.select([self.rowtime])), np.zeros(0, np.int64)
        acts = np.flatnonzero(piece.actions != Action.NOTHING)
        chosen = pa.array(acts)
        own = piece.after.column(self.rowtime).take(chosen).cast(pa.int64())
        is_deleted = piece.actions[acts] == Action.DELETE
        times = pc.fill_null(own, NO_TIME).to_numpy(zero_copy_only=False)
        keys = key_hashes(piece.key.take(chosen).columns)
        before = kept.take(keys, np.where(is_deleted, GONE, times))
        if offsets is not None:
            own_offsets = piece.offsets[acts]
            before = np.where(offsets.take(keys, own_offsets) < own_offsets, before, GONE)
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
