"""Memory of a topic's keys: the number and the time of each.

`KnownKeys` has the number of the first record. `RowTimes` has the time of the newest row, whatever
its time is: a deletion without a time gets that of the row that it removes, as in Flink, which
takes the deleted row from the state of its key (`ChangelogNormalize`).
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

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
_KEPT_TIME = np.dtype([("hash", np.uint64), ("time", np.int64)])
TIME_BYTES = _KEPT_TIME.itemsize
"""Of a key in the bytes that `RowTimes.take` returns."""
Numbers = npt.NDArray[np.int32]
KeyHashes = tuple[Hashes, Hashes]
"""Two independent hashes of each key: that two of 10^9 keys share both has odds of 1 to 10^20."""
_KEPT = np.dtype([("hash", np.uint64), ("check", np.uint64), ("number", np.int32)])
KEY_BYTES = _KEPT.itemsize
"""Of a key in the bytes that `KnownKeys.add` returns."""
_CHECK = 0xD6E8FEB86659FD93
_IN_MEMORY = 1 << 20
_MERGED = 1 << 18  # keys of each run that a merge has in memory


class RowTimes:
    """Newest time per 64-bit key hash, in sorted runs, of which the newest counts.

    Two keys with the same hash count as one. 16 bytes a key, deleted ones too.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Times]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def take(self, hashes: Hashes, times: Times) -> tuple[Times, bytes]:
        """Applies changes in their order; returns the time before each, `GONE` without a row.

        `times` are those of the rows, `NO_TIME` for a NULL and `GONE` for a deletion. Also returns
        the bytes that `load` takes.
        """
        before = self.before(hashes, times)
        newest = _newest(hashes, times)
        self._append(*newest)
        return before, _packed_times(*newest)

    def before(self, hashes: Hashes, times: Times) -> Times:
        """As `take`, and applies nothing."""
        order = np.argsort(hashes, kind="stable")
        keys, of_key = hashes[order], times[order]
        first = np.ones(len(keys), dtype=np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        before = np.empty(len(keys), np.int64)
        before[1:] = of_key[:-1]
        before[first] = self._known(keys[first])
        back = np.empty_like(before)
        back[order] = before
        return back

    def load(self, data: bytes) -> None:
        kept = np.frombuffer(data, _KEPT_TIME)
        self._append(*_newest(kept["hash"], kept["time"]))

    def known(self) -> tuple[Hashes, Times]:
        """The newest time of each hash, by ascending hash."""
        parts = [np.concatenate(each) for each in zip(*self._runs, strict=True)]
        return _newest(*parts) if parts else (np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def all(self) -> bytes:
        return _packed_times(*self.known())

    def _known(self, hashes: Hashes) -> Times:
        known = np.full(len(hashes), GONE)
        for run, times in self._runs:
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            is_there = run[places] == hashes
            known[is_there] = times[places[is_there]]
        return known

    def _append(self, hashes: Hashes, times: Times) -> None:
        if not len(hashes):
            return
        runs = self._runs
        runs.append((hashes, times))
        while len(runs) > 1 and len(runs[-2][0]) <= 2 * len(runs[-1][0]):
            later, earlier = runs.pop(), runs.pop()
            keys = np.concatenate([earlier[0], later[0]])
            runs.append(_newest(keys, np.concatenate([earlier[1], later[1]])))


def _newest(hashes: Hashes, times: Times) -> tuple[Hashes, Times]:
    order = np.argsort(hashes, kind="stable")
    hashes, times = hashes[order], times[order]
    last = np.ones(len(hashes), dtype=np.bool_)
    last[:-1] = hashes[1:] != hashes[:-1]
    return hashes[last], times[last]


def _packed_times(hashes: Hashes, times: Times) -> bytes:
    kept = np.empty(len(hashes), _KEPT_TIME)
    kept["hash"], kept["time"] = hashes, times
    return kept.tobytes()


def key_hashes(columns: Sequence[pa.Array]) -> KeyHashes:
    return hash_rows(columns), hash_rows(columns, _CHECK)


@dataclass(frozen=True, slots=True)
class _Run:
    hashes: Hashes
    checks: Hashes
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.hashes)

    def cut(self, first: int, end: int) -> "_Run":
        return _Run(self.hashes[first:end], self.checks[first:end], self.numbers[first:end])

    def find(self, keys: "_Run") -> tuple[npt.NDArray[np.bool_], Numbers]:
        is_there = np.zeros(len(keys), dtype=np.bool_)
        numbers = keys.numbers.copy()
        places = np.searchsorted(self.hashes, keys.hashes)
        rows = np.arange(len(keys))
        while len(rows):  # once, but where keys share the first hash
            rows = rows[places[rows] < len(self)]
            rows = rows[self.hashes[places[rows]] == keys.hashes[rows]]
            same = self.checks[places[rows]] == keys.checks[rows]
            is_there[rows[same]] = True
            numbers[rows[same]] = self.numbers[places[rows[same]]]
            rows = rows[~same]
            places[rows] += 1
        return is_there, numbers

    def filter(self, which: npt.NDArray[np.bool_]) -> "_Run":
        return _Run(self.hashes[which], self.checks[which], self.numbers[which])


class KnownKeys:
    """Keys with the number of their first record, in runs sorted by the first hash.

    Runs up to `in_memory` keys are in memory. Larger ones are in mapped files without a name, below
    `directory`: the kernel loads the pages that a lookup needs and drops them under pressure.
    """

    def __init__(self, directory: Path, in_memory: int = _IN_MEMORY) -> None:
        self._directory = directory
        self._in_memory = in_memory
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, keys: KeyHashes, numbers: Numbers) -> tuple[Numbers, bytes]:
        """Adds keys; returns the first number of each, and the new keys as bytes for `load`."""
        hashes, checks = keys
        order = np.lexsort((checks, hashes))
        is_first = np.ones(len(order), dtype=np.bool_)
        same_hash = hashes[order[1:]] == hashes[order[:-1]]
        is_first[1:] = ~(same_hash & (checks[order[1:]] == checks[order[:-1]]))
        first = order[is_first]
        unique = _Run(hashes[first], checks[first], numbers[first].astype(np.int32))
        is_new = np.ones(len(unique), dtype=np.bool_)
        for run in self._runs:
            is_there, known = run.find(unique)
            unique.numbers[is_there] = known[is_there]
            is_new &= ~is_there
        new = unique.filter(is_new)
        self._append(new)
        result = np.empty(len(order), np.int32)
        result[order] = unique.numbers[np.cumsum(is_first) - 1]
        return result, _packed(new)

    def load(self, data: bytes) -> None:
        kept = np.frombuffer(data, _KEPT)
        kept = kept[np.argsort(kept["hash"], kind="stable")]
        names = ("hash", "check", "number")
        self._append(_Run(*(np.ascontiguousarray(kept[name]) for name in names)))

    def _append(self, run: _Run) -> None:
        if not len(run):
            return
        runs = self._runs
        runs.append(run)
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            later, earlier = runs.pop(), runs.pop()
            runs.append(self._merged(earlier, later))

    def _merged(self, one: _Run, other: _Run) -> _Run:
        target = self._room(len(one) + len(other))
        at = one_at = other_at = 0
        while one_at < len(one) or other_at < len(other):
            parts = one.cut(one_at, one_at + _MERGED), other.cut(other_at, other_at + _MERGED)
            # Up to where both are known: what is behind the lower end comes with the next parts.
            ends = [part.hashes[-1] for part in parts if len(part)]
            counts = [int(np.searchsorted(part.hashes, min(ends), "right")) for part in parts]
            hashes = np.concatenate([p.hashes[:n] for p, n in zip(parts, counts, strict=True)])
            checks = np.concatenate([p.checks[:n] for p, n in zip(parts, counts, strict=True)])
            numbers = np.concatenate([p.numbers[:n] for p, n in zip(parts, counts, strict=True)])
            order = np.argsort(hashes, kind="stable")
            end = at + len(order)
            target.hashes[at:end] = hashes[order]
            target.checks[at:end] = checks[order]
            target.numbers[at:end] = numbers[order]
            at, one_at, other_at = end, one_at + counts[0], other_at + counts[1]
        return target

    def _room(self, keys: int) -> _Run:
        if keys <= self._in_memory:
            return _Run(
                np.empty(keys, np.uint64), np.empty(keys, np.uint64), np.empty(keys, np.int32)
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._directory) as file:
            file.truncate(keys * _KEPT.itemsize)
            return _Run(
                np.memmap(file, np.uint64, "r+", 0, (keys,)),
                np.memmap(file, np.uint64, "r+", 8 * keys, (keys,)),
                np.memmap(file, np.int32, "r+", 16 * keys, (keys,)),
            )


def _packed(keys: _Run) -> bytes:
    kept = np.empty(len(keys), _KEPT)
    kept["hash"], kept["check"], kept["number"] = keys.hashes, keys.checks, keys.numbers
    return kept.tobytes()


class KeptTimes(Protocol):
    """Newest time of each key."""

    def take(self, hashes: Hashes, times: Times) -> Times:
        """As `RowTimes.take`, without the bytes."""

    def before(self, hashes: Hashes, times: Times) -> Times:
        """As `RowTimes.before`."""


_OWNER_BITS = 32  # of a partition; the rest tells apart two keys with one hash


def foreign_keys(piece: ChangePiece, acts: Longs, kept: KeptTimes) -> Longs:
    """Positions of the records `acts` whose key has a row in another partition of the table.

    Returns the first such record of each key. Only without one `kept` receives the changes: of each
    key the partition that has its row. A tombstone names no partition, and deletes in any.
    """
    columns = [column.take(pa.array(acts)) for column in piece.key.columns]
    hashes, checks = key_hashes(columns)
    owner = (1 << _OWNER_BITS) - 1
    of_key = (checks.view(np.int64) & ((1 << 62) - 1)) & ~owner
    own = of_key | (piece.tables[acts] & owner)
    is_deleted = piece.actions[acts] == Action.DELETE
    values = np.where(is_deleted, GONE, own)
    before = kept.before(hashes, values)
    is_same_key = (before != GONE) & ((before & ~owner) == of_key)
    is_foreign = is_same_key & (before != own) & (piece.tables[acts] != 0)
    if not is_foreign.any():
        kept.take(hashes, values)
    _, first = np.unique(hashes[is_foreign], return_index=True)
    return acts[np.flatnonzero(is_foreign)[np.sort(first)]]


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

    def of(self, piece: ChangePiece, kept: KeptTimes | None) -> tuple[ChangePiece, Longs]:
        """`piece` with `ended`, and the positions of deletions whose time is unknown.

        Changes `piece.actions`. `kept` receives the changes; None if `needs_rows` is false.
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
