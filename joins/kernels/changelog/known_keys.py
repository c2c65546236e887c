"""Which keys were met, told by their hashes, each with the number that it came with first."""

import numpy as np
import numpy.typing as npt

from joins.kernels.index.hashing import Hashes

Numbers = npt.NDArray[np.int32]
_KEPT = np.dtype([("hash", np.uint64), ("number", np.int32)])


class KnownKeys:
    """Sorted runs of hashes, the older ones larger: adding is cheap however many there are.

    Two keys of one hash, of 2^64, count as one.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Numbers]] = []

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._runs)

    def add(self, hashes: Hashes, numbers: Numbers) -> tuple[Numbers, bytes]:
        """Meet keys.

        Returns:
            For each the number that its hash came with first; and the new ones, for `load`.
        """
        unique, first, back = np.unique(hashes, return_index=True, return_inverse=True)
        known = numbers[first].astype(np.int32)
        is_new = np.ones(len(unique), dtype=np.bool_)
        for run, run_numbers in self._runs:
            places = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            is_there = run[places] == unique
            known[is_there] = run_numbers[places[is_there]]
            is_new &= ~is_there
        self._append(unique[is_new], known[is_new])
        return known[back], _packed(unique[is_new], known[is_new])

    def load(self, data: bytes) -> None:
        """The keys that `add` gave in an earlier process."""
        kept = np.frombuffer(data, _KEPT)
        order = np.argsort(kept["hash"], kind="stable")
        self._append(kept["hash"][order], kept["number"][order])

    def _append(self, hashes: Hashes, numbers: Numbers) -> None:
        if not len(hashes):
            return
        runs = self._runs
        runs.append((hashes, numbers))
        while len(runs) > 1 and len(runs[-2][0]) <= 2 * len(runs[-1][0]):
            later, earlier = runs.pop(), runs.pop()
            merged = np.concatenate([earlier[0], later[0]])
            order = np.argsort(merged, kind="stable")
            runs.append((merged[order], np.concatenate([earlier[1], later[1]])[order]))


def kept_size() -> int:
    """Bytes of a key in what `add` gives."""
    return _KEPT.itemsize


def _packed(hashes: Hashes, numbers: Numbers) -> bytes:
    kept = np.empty(len(hashes), _KEPT)
    kept["hash"], kept["number"] = hashes, numbers
    return kept.tobytes()
