"""Which keys were met, told by two hashes, each with the number that it came with first.

Runs are sorted by the first hash. Small ones are in memory, large ones in files without a name that
are mapped: the system reads the pages that a look-up needs, and drops them as it likes.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.kernels.index.hash_table import Hashes, hash_rows

Numbers = npt.NDArray[np.int32]
KeyHashes = tuple[Hashes, Hashes]
"""Two independent hashes of each key: that two of 10^9 keys share both has odds of 1 to 10^20."""
_KEPT = np.dtype([("hash", np.uint64), ("check", np.uint64), ("number", np.int32)])
_CHECK = 0xD6E8FEB86659FD93
_IN_MEMORY = 1 << 20
_MERGED = 1 << 18  # keys of each run that a merge has in memory


def key_hashes(columns: Sequence[pa.Array]) -> KeyHashes:
    return hash_rows(columns), hash_rows(columns, _CHECK)


@dataclass(frozen=True, slots=True)
class _Run:
    """Keys by ascending hash."""

    hashes: Hashes
    checks: Hashes
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.hashes)

    def cut(self, first: int, end: int) -> "_Run":
        return _Run(self.hashes[first:end], self.checks[first:end], self.numbers[first:end])

    def find(self, keys: "_Run") -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which of `keys` are here, and the number of each that is."""
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
    """A set of keys; adding is cheap however many there are.

    Args:
        directory: of the files of large runs.
        in_memory: keys of the largest run without a file.
    """

    def __init__(self, directory: Path, in_memory: int = _IN_MEMORY) -> None:
        self._directory = directory
        self._in_memory = in_memory
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, keys: KeyHashes, numbers: Numbers) -> tuple[Numbers, bytes]:
        """Meet keys.

        Returns:
            For each the number that it came with first; and the new ones, for `load`.
        """
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
        """Keys that `add` gave in an earlier process; all of them, in parts of any size."""
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
        """An empty run, in memory or in a file that goes with the process."""
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


def kept_size() -> int:
    """Bytes of a key in what `add` gives."""
    return _KEPT.itemsize


def _packed(keys: _Run) -> bytes:
    kept = np.empty(len(keys), _KEPT)
    kept["hash"], kept["check"], kept["number"] = keys.hashes, keys.checks, keys.numbers
    return kept.tobytes()
